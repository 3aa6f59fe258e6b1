/*
 * cmd_explain.h -- plans of queries, for other commands.
 */
#ifndef HEARTH_CLIENTS_CMD_EXPLAIN_H
#define HEARTH_CLIENTS_CMD_EXPLAIN_H

#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli.h"

/* Prints the answer of Explain. */
enum cli_exit cli_ask_explain(struct cli *cli, Hearth__V1__ExplainRequest *request);
/* Prints a plan. type: the profile type, may be empty; plan: NULL if the server sent none. */
enum cli_exit cli_print_plan(struct cli *cli, const char *type,
                             const Hearth__V1__ExplainResponse *plan);

#endif
