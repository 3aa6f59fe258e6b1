/* side_by_side.h -- runs a command for each of its files, several at a time. */
#ifndef HEARTH_CLIENTS_SIDE_BY_SIDE_H
#define HEARTH_CLIENTS_SIDE_BY_SIDE_H

#include "cli.h"

#define DEFAULT_JOBS 4
#define MAX_JOBS     16

/* Sends one file, and prints its result. Runs in several threads, with a `cli` for each. */
typedef enum cli_exit cli_file_fn(struct cli *cli, const char *path);

/*
 * Runs it for each argument, --jobs at a time. With several files, prints at the end how many
 * failed, and which. The exit code is that of the first failure in the order of the arguments.
 */
enum cli_exit cli_each_file(struct cli *cli, cli_file_fn *run);

#endif
