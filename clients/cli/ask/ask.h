/*
 * ask.h -- ranges, selectors, types and calls that several commands need.
 */
#ifndef HEARTH_CLIENTS_ASK_H
#define HEARTH_CLIENTS_ASK_H

#include "hearth/model/profile.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli.h"

/* Sets from_ms and to_ms from --since, --from, --to; prints the range on standard error. */
HEARTH_MUST_CHECK enum hearth_status cli_resolve_range(struct cli *cli);
/* Parses a time, in nanoseconds. A date without a zone is in the zone of the client. */
HEARTH_MUST_CHECK enum hearth_status cli_parse_time(struct cli *cli, const char *text,
                                                    int64_t *ret_ns);
/* Returns the selector argument, or "{}" if it was not given. It is parsed here: on an error, a caret
 * is printed below the place. */
HEARTH_MUST_CHECK enum hearth_status cli_selector(struct cli *cli, size_t arg,
                                                  const char **ret_selector);
/* As cli_selector, for queries: a word without braces may also name a service. */
HEARTH_MUST_CHECK enum hearth_status cli_query_selector(struct cli *cli, size_t arg,
                                                        const char **ret_selector);
/* Returns the type that is shown by default: process_cpu:cpu in nanoseconds, then in another unit,
 * wall:cpu:... (Node), the space in use of a heap, the delay of locks; otherwise the first. */
const char *cli_prefer_type(const char *first, const char *second);
/* Returns --type, or a type that the server has: the only one, or else the one of cli_prefer_type.
 * Prints the choice on standard error. */
HEARTH_MUST_CHECK enum hearth_status cli_profile_type(struct cli *cli, const char *selector,
                                                      const char **ret_type);
/* Asks for the merged profile. *ret_wire is its encoded form. n_samples is 0 if there is no data. */
HEARTH_MUST_CHECK enum hearth_status cli_ask_profile(struct cli *cli,
                                                     Hearth__V1__Selection *selection,
                                                     struct hearth_str *ret_wire,
                                                     struct hearth_profile *ret_profile);

/* Returns --step, or a sixtieth of the range, at least a second. Call it after cli_resolve_range. */
HEARTH_MUST_CHECK enum hearth_status cli_timeline_step(struct cli *cli, double *ret_seconds);
/* Returns --label as labels of a request, and the "K=V" texts of `more` whose names no --label has. */
HEARTH_MUST_CHECK enum hearth_status cli_label_pairs(struct cli *cli, const char *const *more,
                                                     size_t n_more, Types__V1__LabelPair ***ret,
                                                     size_t *ret_n);
/* Whether a --label is the service. */
bool cli_names_service(const struct cli *cli);
/* Makes the selection of a request of hearth.v1, from selector argument, range, type and filters. */
HEARTH_MUST_CHECK enum hearth_status cli_selection(struct cli *cli, size_t arg,
                                                   Hearth__V1__Selection *ret);

#endif
