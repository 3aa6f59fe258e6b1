/*
 * progress.h -- one line on a terminal that says what is going on.
 *
 * Threads: safe.
 */
#ifndef HEARTH_CLIENTS_PROGRESS_H
#define HEARTH_CLIENTS_PROGRESS_H

#include "cli.h"

/* Replaces the line of progress. Without a terminal nothing is shown. */
void cli_progress(const struct cli *cli, const char *fmt, ...) HEARTH_PRINTF(2, 3);
/* Erases the line of progress, before other lines are printed. */
void cli_progress_end(void);
/* Prints a line of a result on standard output, at once, instead of the progress. */
void cli_print_result(const char *fmt, ...) HEARTH_PRINTF(1, 2);

#endif
