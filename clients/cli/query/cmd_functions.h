/*
 * cmd_functions.h -- tables of functions, for other commands.
 */
#ifndef HEARTH_CLIENTS_CMD_FUNCTIONS_H
#define HEARTH_CLIENTS_CMD_FUNCTIONS_H

#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli.h"

/* Appends a table of functions or, by `kind`, of lines, files, .. */
HEARTH_MUST_CHECK enum hearth_status cli_draw_top(struct cli *cli,
                                                  const Hearth__V1__TopResponse *answer,
                                                  const char *kind, struct hearth_buf *out);

#endif
