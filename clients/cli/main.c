/*
 * main.c -- hearth: commands out of a table, exit codes out of statuses.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"

#include "cli.h"

#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const struct cli_command g_commands[] = {
    {"upload", NULL, "FILE...", "push pprof, perf script or collapsed files", cli_upload,
     CLI_MAX_ARGS, false, NULL},
    {"query", "types", "", "profile types", cli_types, 0, false, NULL},
    {"query", "labels", "[SELECTOR]", "label names", cli_labels, 1, false, NULL},
    {"query", "values", "LABEL [SELECTOR]", "values of a label", cli_values, 2, false, NULL},
    {"query", "series", "[SELECTOR]", "label sets; --by restricts them to labels", cli_series, 1,
     false, NULL},
    {"query", "timeline", "[SELECTOR]", "totals over time; --by groups, --step", cli_timeline, 1,
     false, cli_explain_timeline},
    {"query", "profile", "[SELECTOR]", "merged profile: -o pprof=FILE, collapsed, json",
     cli_profile, 1, false, cli_explain_merge},
    {"query", "top", "[SELECTOR]", "the same as top", cli_top, 1, false, cli_explain_merge},
    {"query", "flamegraph", "[SELECTOR]", "the same as flame", cli_flame, 1, false,
     cli_explain_merge},
    {"flame", NULL, "[SELECTOR]", "flame graph as text", cli_flame, 1, false, cli_explain_merge},
    {"top", NULL, "[SELECTOR]", "exact table by --by-kind; --search, --sort", cli_top, 1, false,
     cli_explain_merge},
    {"sandwich", NULL, "FUNCTION [SELECTOR]", "who calls a function, and what it calls",
     cli_sandwich, 2, false, NULL},
    {"lines", NULL, "FUNCTION [SELECTOR]", "self and total of each line of a function", cli_lines,
     2, false, NULL},
    {"timeline", NULL, "[SELECTOR]", "as query timeline; --function: a line each", cli_timeline, 1,
     false, cli_explain_timeline},
    {"label-stats", NULL, "LABEL [SELECTOR]", "count, sum, mean, deviation of each value",
     cli_label_stats, 2, false, NULL},
    {"diff", NULL, "SELECTOR [SELECTOR]", "what changed: since the range before, or of another",
     cli_diff, 2, false, NULL},
    {"heatmap", NULL, "[SELECTOR]", "sizes of profiles over time; --by-kind span", cli_heatmap, 1,
     false, NULL},
    {"network", NULL, "[topology|series|..]", "what network tasks saw; alone: what it can",
     cli_network, CLI_MAX_ARGS, false, NULL},
    {"policy", NULL, "[list|get|set|apply|..]",
     "when agents start by themselves; alone: what it can", cli_policy, 2, false, NULL},
    {"rules", NULL, "[list|get|set|delete]", "recording rules: rules set METRIC SELECTOR",
     cli_rules, 3, false, NULL},
    {"admin", "status", "", "roll-ups, late profiles, sizes of tables", cli_admin_status, 0, false,
     NULL},
    {"admin", "doctor", "", "check the database; exit code 1: something is wrong", cli_admin_doctor,
     0, false, NULL},
    {"admin", "rebuild", "[SERVICE]", "build roll-ups again from the profiles", cli_admin_rebuild,
     1, false, NULL},
    {"admin", "erase", "SELECTOR", "delete profiles for good", cli_admin_erase, 1, false, NULL},
    {"admin", "erasures", "", "what was deleted, by whom, and whether it is gone",
     cli_admin_erasures, 0, false, NULL},
    {"admin", "retention", "[show|set|reset]", "how long profiles and roll-ups are kept",
     cli_admin_retention, 3, false, NULL},
    {"admin", "limits", "[TENANT] [NAME=VALUE...]", "limits that a tenant has of its own",
     cli_admin_limits, 64, false, NULL},
    {"admin", "sizing", "", "calculator: processors, disk and memory", cli_admin_sizing, 0, true,
     NULL},
    {"sql", NULL, "--materialize SELECTOR", "copy stack traces into tables for SQL", cli_sql, 0,
     false, NULL},
    {"agents", "services", "", "services whose agents report; --all: also of long ago",
     cli_agents_services, 0, false, NULL},
    {"agents", "instances", "SERVICE", "its instances and their properties", cli_agents_instances,
     1, false, NULL},
    {"agents", "processes", "SERVICE", "its processes; --instance, --process-labels",
     cli_agents_processes, 1, false, NULL},
    {"task", NULL, "[prepare|create|list|..]", "direct profilers; alone: what it can", cli_task,
     CLI_MAX_ARGS, false, NULL},
    {"version", NULL, "", "print the version", cli_version, 0, true, NULL},
};

enum cli_exit cli_usage(const char *message)
{
    (void)fprintf(stderr, "hearth: %s; try hearth --help\n", message);
    return CLI_USAGE;
}

enum cli_exit cli_fail(struct cli *cli, enum hearth_status status)
{
    (void)fprintf(stderr, "hearth: %s\n", cli->err.msg);
    switch (status) {
    case HEARTH_INVALID_ARGUMENT:
    case HEARTH_OUT_OF_RANGE:
        return CLI_USAGE;
    case HEARTH_NOT_FOUND:
        return CLI_NO_DATA;
    case HEARTH_UNAUTHENTICATED:
    case HEARTH_PERMISSION_DENIED:
        return CLI_AUTH;
    case HEARTH_NO_MEMORY:
        return CLI_FAILED;
    default:
        return CLI_SERVER;
    }
}

enum cli_exit cli_no_data(struct cli *cli)
{
    (void)cli;
    (void)fprintf(stderr,
                  "hearth: no data in this range; try a longer --since or `hearth query series`\n");
    return CLI_NO_DATA;
}

enum cli_exit cli_version(struct cli *cli)
{
    (void)cli;
    (void)printf("hearth %s\n", HEARTH_VERSION);
    return CLI_OK;
}

/* ---- run ---- */

/* The command that the first words name; they are taken off the arguments. */
static const struct cli_command *find_command(struct cli *cli)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_commands); i++) {
        const struct cli_command *c = &g_commands[i];
        size_t words = c->sub == NULL ? 1 : 2;
        if (cli->n_args >= words && strcmp(cli->args[0], c->name) == 0 &&
            (c->sub == NULL || strcmp(cli->args[1], c->sub) == 0)) {
            cli->n_args -= words;
            memmove(cli->args, cli->args + words, cli->n_args * sizeof cli->args[0]);
            return c;
        }
    }
    return NULL;
}

static void look_at_terminal(struct cli *cli)
{
    struct winsize size;
    bool terminal = isatty(STDOUT_FILENO) == 1;
    const char *no_color = getenv("NO_COLOR");
    cli->color = terminal && (no_color == NULL || no_color[0] == '\0');
    cli->width = terminal ? 100 : 1000; /* a pipe has no edge: nothing is cut */
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) {
        cli->width = size.ws_col;
    }
}

static void print_note(void *context, struct hearth_str text)
{
    struct hearth_buf line;
    (void)context;
    hearth_buf_init(&line, 0);
    cli_fit(text, INT_MAX, false, &line);
    (void)fprintf(stderr, "note: %.*s\n", (int)line.n, line.n > 0 ? line.p : "");
    hearth_buf_release(&line);
}

/* An option that would be passed over in silence, so that the answer is to another question; else NULL. */
static const char *find_misplaced(const struct cli *cli, const struct cli_command *command)
{
    bool is_top = command->run == cli_top;
    if (cli->explain && command->explain == NULL) {
        return "--explain is for flame, query flamegraph, timeline, profile and top";
    }
    if (cli->by_kind != NULL && !is_top && command->run != cli_heatmap) {
        return "--by-kind is for top and heatmap";
    }
    if ((cli->search != NULL || cli->sort != NULL || cli->offset > 0) && !is_top) {
        return "--search, --sort and --offset are for top";
    }
    return NULL;
}

static enum cli_exit run(struct cli *cli, const struct cli_command *command)
{
    struct hearth_client_options options;
    hearth_client_options_init(&options);
    if (cli->url != NULL) {
        options.url = cli->url;
    }
    options.tenant = cli->tenant;
    options.note = print_note;
    if (!command->offline) {
        enum hearth_status status = hearth_client_new(&options, &cli->client, &cli->err);
        if (status != HEARTH_OK) {
            (void)cli_fail(cli, status);
            return CLI_USAGE;
        }
    }
    enum cli_exit code = cli->explain ? command->explain(cli) : command->run(cli);
    hearth_client_free(cli->client);
    return code;
}

/* An empty variable says as much as none. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || value[0] == '\0' ? NULL : value;
}

int main(int argc, char **argv)
{
    (void)setlocale(LC_TIME, "");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            if (argc > 2 && strcmp(argv[1], "admin") == 0) {
                cli_print_admin_help(argv[2]);
            } else {
                cli_print_help(g_commands, HEARTH_ARRAY_LEN(g_commands));
            }
            return CLI_OK;
        }
    }
    struct cli *cli = hearth_mem_zalloc(sizeof *cli);
    if (cli == NULL) {
        return CLI_FAILED;
    }
    hearth_arena_init(&cli->arena, 0);
    cli->url = variable("HEARTH_URL");
    cli->tenant = variable("HEARTH_TENANT");
    cli->now_ns = hearth_clock_wall_ns();
    cli->min_percent = 0.5;
    look_at_terminal(cli);
    enum cli_exit code = cli_parse(cli, argc, argv);
    if (code == CLI_OK) {
        const struct cli_command *command = find_command(cli);
        const char *misplaced = command == NULL ? NULL : find_misplaced(cli, command);
        if (command != NULL && cli->n_args > command->max_args) {
            code = cli_usage("too many arguments; a selector is one argument: put it in quotes");
        } else if (misplaced != NULL) {
            code = cli_usage(misplaced);
        } else if (command != NULL) {
            code = run(cli, command);
        } else if (cli->n_args == 1 && strcmp(cli->args[0], "admin") == 0) {
            cli_print_admin_help(NULL);
            code = CLI_USAGE;
        } else if (cli->n_args == 0) {
            cli_print_help(g_commands, HEARTH_ARRAY_LEN(g_commands));
            code = CLI_USAGE;
        } else {
            code = cli_usage("there is no such command");
        }
    }
    hearth_arena_release(&cli->arena);
    hearth_mem_free(cli);
    return (int)code;
}
