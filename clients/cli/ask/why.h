/*
 * why.h -- why nothing was found, and what was meant.
 */
#ifndef HEARTH_CLIENTS_WHY_H
#define HEARTH_CLIENTS_WHY_H

#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli.h"

/* NOT_FOUND with the reason: an empty store, an unknown label, value or type, or the range. After
 * cli_selector, if the command has a selector. */
enum hearth_status cli_fail_no_data(struct cli *cli);
/* The same as cli_fail. */
enum cli_exit cli_no_data(struct cli *cli);
/* NOT_FOUND, with the nearest label, if no series has this one at any time. */
HEARTH_MUST_CHECK enum hearth_status cli_check_label(struct cli *cli, const char *label);
/* NOT_FOUND: no stack trace of a selection contains a function; the message has functions with
 * similar names. */
enum hearth_status cli_fail_no_function(struct cli *cli, Hearth__V1__Selection *selection,
                                        const char *function);
/* Values of a label in a range, in arena. */
HEARTH_MUST_CHECK enum hearth_status cli_ask_values(struct cli *cli, const char *label,
                                                    const char *selector, int64_t from_ms,
                                                    int64_t to_ms, char ***ret, size_t *ret_n);
/* Names of labels at any time, in arena. */
HEARTH_MUST_CHECK enum hearth_status cli_ask_labels(struct cli *cli, char ***ret, size_t *ret_n);
/* Replaces a short --type like "cpu" by the only type that it stands for. After cli_resolve_range. */
HEARTH_MUST_CHECK enum hearth_status cli_complete_type(struct cli *cli, const char *selector);
/* A selector for a word without braces: the word, if it is a family, otherwise the service. */
HEARTH_MUST_CHECK enum hearth_status cli_complete_selector(struct cli *cli, const char *word,
                                                           const char **ret);

#endif
