/*
 * why.h -- why nothing was found, and what was meant.
 */
#ifndef HEARTH_CLIENTS_WHY_H
#define HEARTH_CLIENTS_WHY_H

#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli.h"

/* Returns NOT_FOUND with the reason: an empty store, an unknown label, value or type, or the range.
 * If the command has a selector, call cli_selector before. */
enum hearth_status cli_fail_no_data(struct cli *cli);
/* Calls cli_fail with that status. */
enum cli_exit cli_no_data(struct cli *cli);
/* Returns NOT_FOUND, with the nearest label, if no series ever had this one. */
HEARTH_MUST_CHECK enum hearth_status cli_check_label(struct cli *cli, const char *label);
/* Returns NOT_FOUND: no stack trace of a selection contains the function. The message lists functions
 * with similar names. */
enum hearth_status cli_fail_no_function(struct cli *cli, Hearth__V1__Selection *selection,
                                        const char *function);
/* Asks for the values of a label in a range. They are in the arena. */
HEARTH_MUST_CHECK enum hearth_status cli_ask_values(struct cli *cli, const char *label,
                                                    const char *selector, int64_t from_ms,
                                                    int64_t to_ms, char ***ret, size_t *ret_n);
/* Asks for the names of all labels, of any time. They are in the arena. */
HEARTH_MUST_CHECK enum hearth_status cli_ask_labels(struct cli *cli, char ***ret, size_t *ret_n);
/* Replaces a short --type like "cpu" by the only type that it stands for. Call it after
 * cli_resolve_range. */
HEARTH_MUST_CHECK enum hearth_status cli_complete_type(struct cli *cli, const char *selector);
/* Makes a selector of a word without braces: the word itself if it is a family, otherwise the service
 * of that name. */
HEARTH_MUST_CHECK enum hearth_status cli_complete_selector(struct cli *cli, const char *word,
                                                           const char **ret);

#endif
