/*
 * cmd_diff.h -- the sides of a comparison, for other commands.
 */
#ifndef HEARTH_CLIENTS_CMD_DIFF_H
#define HEARTH_CLIENTS_CMD_DIFF_H

#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli.h"

/* The two sides of a comparison: of two selectors, or of one in the range and in the base range. */
HEARTH_MUST_CHECK enum hearth_status
cli_diff_sides(struct cli *cli, Hearth__V1__Selection *ret_base, Hearth__V1__Selection *ret_now);

#endif
