/*
 * cmd_flame.h -- flame graphs on a terminal, for other commands.
 */
#ifndef HEARTH_CLIENTS_CMD_FLAME_H
#define HEARTH_CLIENTS_CMD_FLAME_H

#include "hearth/model/stacktree.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"

#include "cli.h"

/* Appends a non-empty graph as a picture or, without colour, as a tree. */
HEARTH_MUST_CHECK enum hearth_status cli_draw_flame(struct cli *cli,
                                                    const Querier__V1__FlameGraph *graph,
                                                    struct hearth_str unit, struct hearth_buf *out);
/* Whether to open the full-screen view. CLI_USAGE, with a message, if it is demanded and cannot be. */
enum cli_exit cli_choose_screen(const struct cli *cli, bool *ret_is_screen);
struct flame_facts; /* flame_screen.h */
/* Shows a non-empty graph until its user quits, and appends a copied address. Errors of the terminal. */
HEARTH_MUST_CHECK enum hearth_status cli_run_screen(struct cli *cli,
                                                    const struct hearth_flamegraph *graph,
                                                    const struct flame_facts *facts,
                                                    struct hearth_str unit, struct hearth_buf *out);

#endif
