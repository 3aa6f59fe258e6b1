/*
 * commands.h -- what hearthd does instead of serving: `hearthd migrate`, `hearthd scale-out`,
 * `hearthd check-config` (private to app).
 *
 * Exit codes: 0; 1 if the database refuses, or with --dry-run if there is work to do; 2 for invalid
 * options.
 */
#ifndef HEARTH_APP_COMMANDS_H
#define HEARTH_APP_COMMANDS_H

#include "hearth/app/config.h"

enum hearth_command {
    HEARTH_COMMAND_SERVE,
    HEARTH_COMMAND_MIGRATE,
    HEARTH_COMMAND_MIGRATE_PLAN,
    HEARTH_COMMAND_SCALE_OUT,
    HEARTH_COMMAND_SCALE_OUT_PLAN,
    HEARTH_COMMAND_SCALE_OUT_UNDO,
    HEARTH_COMMAND_CHECK_CONFIG,
    HEARTH_COMMAND_CHECK_ORIGIN, /* check-config --origin */
};

/* Returns the command of the arguments, and moves both to the last word of its name. */
enum hearth_command hearth_command_take(int *argc, char *const **argv);

/*
 * Applies, or with `dry_run` names, the migrations that the database of database-url lacks. Prints
 * a line for each. Returns the exit code.
 */
int hearth_command_migrate(const struct hearth_config *config, bool dry_run);

/*
 * HEARTH_COMMAND_SCALE_OUT and its other forms: distributes the data tables of database-url over
 * the nodes of Citus, plans to, or moves their rows to the coordinator again. Prints a line for
 * each table. Returns the exit code.
 */
int hearth_command_scale_out(const struct hearth_config *config, enum hearth_command command);

#endif
