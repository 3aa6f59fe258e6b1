/*
 * filters.h -- options that filter stack traces and profiles, as fields of requests.
 */
#ifndef HEARTH_CLIENTS_FILTERS_H
#define HEARTH_CLIENTS_FILTERS_H

#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli.h"

/* The names of the kinds of rows; [0] is NULL. */
extern const char *const cli_row_kinds[CLI_ROW_KINDS];

/* Puts all filters except ids into an initialised message. Sets arena.refused if memory was refused. */
void cli_stack_filter(struct cli *cli, Hearth__V1__StackFilter *ret);
/* Whether a name is "/RE/", a regular expression. */
bool cli_is_expression(const char *value);
/* Whether there is an option that cli_stack_filter reads. */
bool cli_has_stack_filter(const struct cli *cli);
/* Whether there is an option of a selection that the web page does not have. */
bool cli_is_beyond_page(const struct cli *cli);
HEARTH_MUST_CHECK
enum hearth_status cli_read_go_stacks(struct cli *cli, Hearth__V1__GoStacks *ret);
/* Prints on standard error how a gauge was aggregated, unless --aggregation was given. */
void cli_say_aggregation(const Hearth__V1__Selection *selection,
                         Hearth__V1__Aggregation aggregation);
/* Returns the figure of a line of n points: the sum, or the mean if the points are means. */
double cli_line_figure(double sum, size_t n_points, Hearth__V1__Aggregation aggregation);
/* Copies the values for a repeated field of a request. */
char **cli_repeated(struct cli *cli, const struct cli_texts *texts);
/* Copies the names of --by, cli->n_by texts, for a repeated field of a request. */
char **cli_by_names(struct cli *cli);

#endif
