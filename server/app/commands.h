/*
 * commands.h -- what hearthd does instead of serving: `hearthd migrate`, `hearthd check-config`
 * (private to app).
 *
 * Exit codes: 0; 1 if the database refuses, or with --dry-run if migrations are missing; 2 for
 * invalid options.
 */
#ifndef HEARTH_APP_COMMANDS_H
#define HEARTH_APP_COMMANDS_H

#include "hearth/app/config.h"

enum hearth_command {
    HEARTH_COMMAND_SERVE,
    HEARTH_COMMAND_MIGRATE,
    HEARTH_COMMAND_MIGRATE_PLAN,
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

#endif
