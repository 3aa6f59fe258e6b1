/* commands.c -- what hearthd does instead of serving. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

enum hearth_command hearth_command_take(int *argc, char *const **argv)
{
    static const struct {
        const char *words[2];
        enum hearth_command command;
    } commands[] = {
        {{"migrate", "--dry-run"}, HEARTH_COMMAND_MIGRATE_PLAN},
        {{"migrate", NULL}, HEARTH_COMMAND_MIGRATE},
        {{"scale-out", "--dry-run"}, HEARTH_COMMAND_SCALE_OUT_PLAN},
        {{"scale-out", "--undo"}, HEARTH_COMMAND_SCALE_OUT_UNDO},
        {{"scale-out", NULL}, HEARTH_COMMAND_SCALE_OUT},
        {{"check-config", "--origin"}, HEARTH_COMMAND_CHECK_ORIGIN},
        {{"check-config", NULL}, HEARTH_COMMAND_CHECK_CONFIG},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(commands); i++) {
        int n_words = commands[i].words[1] == NULL ? 1 : 2;
        bool matches = *argc > n_words;
        for (int k = 0; k < n_words && matches; k++) {
            matches = strcmp((*argv)[1 + k], commands[i].words[k]) == 0;
        }
        if (matches) {
            *argc -= n_words;
            *argv += n_words;
            return commands[i].command;
        }
    }

    return HEARTH_COMMAND_SERVE;
}

struct migrations {
    const char *done; /* what happened to each */
    int n;
};

static void print_migration(void *arg, const char *name)
{
    struct migrations *migrations = arg;

    (void)printf("%s %s\n", migrations->done, name);
    migrations->n++;
}

int hearth_command_migrate(const struct hearth_config *config, bool dry_run)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct migrations migrations = {.done = dry_run ? "missing" : "applied"};

    if (config->database_url == NULL) {
        (void)fprintf(stderr, "hearthd: migrate needs --database-url; the embedded database is "
                              "migrated when hearthd starts\n");
        return 2;
    }

    if (hearth_store_migrate(config->database_url, dry_run, print_migration, &migrations, &err) !=
        HEARTH_OK) {
        (void)fprintf(stderr, "hearthd: %s\n", err.msg);
        return 1;
    }

    if (migrations.n == 0) {
        (void)printf("the schema is up to date\n");
    }

    return dry_run && migrations.n > 0 ? 1 : 0;
}

static void print_scale_out_line(void *arg, const char *line)
{
    (void)arg;
    (void)printf("%s\n", line);
    (void)fflush(stdout); /* a table may take minutes */
}

int hearth_command_scale_out(const struct hearth_config *config, enum hearth_command command)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    bool is_plan = command == HEARTH_COMMAND_SCALE_OUT_PLAN;
    bool is_undo = command == HEARTH_COMMAND_SCALE_OUT_UNDO;
    enum hearth_scale_out what = is_plan   ? HEARTH_SCALE_OUT_PLAN
                                 : is_undo ? HEARTH_SCALE_OUT_UNDO
                                           : HEARTH_SCALE_OUT_MOVE;
    size_t n = 0;

    if (config->database_url == NULL) {
        (void)fprintf(stderr, "hearthd: scale-out needs --database-url; the embedded database is "
                              "one machine\n");
        return 2;
    }

    if (hearth_store_scale_out(config->database_url, what, print_scale_out_line, NULL, &n, &err) !=
        HEARTH_OK) {
        (void)fprintf(stderr, "hearthd: %s\n", err.msg);
        return 1;
    }

    if (n == 0) {
        (void)printf(is_undo ? "no data table is distributed\n"
                             : "all data tables are distributed\n");
    }

    return is_plan && n > 0 ? 1 : 0;
}
