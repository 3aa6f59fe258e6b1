/*
 * main.c -- hearth: commands and options out of two tables, exit codes out of statuses.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"

#include "cli.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct command {
    const char *name, *sub; /* sub: NULL, or the second word */
    const char *arguments, *help;
    cli_command_fn *run;
    size_t max_args;
    bool offline; /* makes no call */
};

static const struct command g_commands[] = {
    {"upload", NULL, "FILE...", "push pprof, perf script or collapsed files", cli_upload,
     CLI_MAX_ARGS, false},
    {"query", "types", "", "profile types", cli_types, 0, false},
    {"query", "labels", "[SELECTOR]", "label names", cli_labels, 1, false},
    {"query", "values", "LABEL [SELECTOR]", "values of a label", cli_values, 2, false},
    {"query", "series", "[SELECTOR]", "label sets; --by restricts them to labels", cli_series, 1,
     false},
    {"query", "timeline", "[SELECTOR]", "totals over time; --by groups, --step", cli_timeline, 1,
     false},
    {"query", "profile", "[SELECTOR]", "merged profile: -o pprof=FILE, collapsed, json",
     cli_profile, 1, false},
    {"query", "top", "[SELECTOR]", "functions by self, exact", cli_top, 1, false},
    {"flame", NULL, "[SELECTOR]", "flame graph as text", cli_flame, 1, false},
    {"version", NULL, "", "print the version", cli_version, 0, true},
};

static const char g_options_help[] =
    "Options\n"
    "  --url URL          server [$HEARTH_URL, http://127.0.0.1:4040]\n"
    "  --tenant NAME      tenant [$HEARTH_TENANT]\n"
    "  --since 1h         range ends now [1h]\n"
    "  --from T --to T    range: RFC 3339, unix time, now-30m\n"
    "  --type ID          profile type [the only one, or process_cpu's cpu]\n"
    "  --by LABEL         series, timeline: labels to group by (repeat, or separate with commas)\n"
    "  --step 15s         timeline: distance of points [range / 60]\n"
    "  --limit N          rows or series to print\n"
    "  --max-nodes N      flame, profile: nodes asked for\n"
    "  --min-percent P    flame: leave out what is smaller [0.5]\n"
    "  --label K=V        upload: labels (repeat); service_name and __name__ are guessed when "
    "absent\n"
    "  --name NAME        upload: __name__ [guessed from the sample types]\n"
    "  --time now|keep    upload: time of the profiles [keep; now, with a note, for old files]\n"
    "  -o, --output FMT   table, json, pprof=FILE, collapsed [table]\n"
    "\n"
    "Exit codes: 0 done, 1 failed, 2 usage, 3 no data, 4 not allowed, 5 server or network\n"
    "\n"
    "Examples\n"
    "  hearth upload cpu.pb.gz --label service_name=api --label region=eu\n"
    "  hearth query top '{service_name=\"api\"}' --since 30m --limit 20\n"
    "  hearth query profile '{service_name=\"api\"}' -o pprof=api.pb.gz\n";

static void print_help(void)
{
    (void)printf("hearth -- client of the Hearth continuous-profiling server\n\n"
                 "usage: hearth COMMAND [ARGUMENTS] [OPTIONS]\n\nCommands\n");
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_commands); i++) {
        const struct command *c = &g_commands[i];
        char left[64];
        (void)snprintf(left, sizeof left, "%s%s%s %s", c->name, c->sub == NULL ? "" : " ",
                       c->sub == NULL ? "" : c->sub, c->arguments);
        (void)printf("  %-32s %s\n", left, c->help);
    }
    (void)printf("\n%s", g_options_help);
}

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

/* ---- options ---- */

static bool parse_output(struct cli *cli, const char *value)
{
    if (strcmp(value, "table") == 0) {
        cli->output = CLI_TABLE;
    } else if (strcmp(value, "json") == 0) {
        cli->output = CLI_JSON;
    } else if (strcmp(value, "collapsed") == 0) {
        cli->output = CLI_COLLAPSED;
    } else if (strncmp(value, "pprof=", 6) == 0 && value[6] != '\0') {
        cli->output = CLI_PPROF;
        cli->output_file = value + 6;
    } else {
        return false;
    }
    return true;
}

static bool parse_count(const char *value, int64_t *ret)
{
    return hearth_str_to_i64(hearth_str_c(value), ret) && *ret > 0;
}

/* Labels after --by, separated by commas. */
static bool parse_by(struct cli *cli, const char *value)
{
    struct hearth_str all = hearth_str_c(value);
    for (size_t from = 0; from <= all.n;) {
        size_t to = hearth_str_find(all, ',', from);
        if (to > from) {
            if (cli->n_by == CLI_MAX_LABELS) {
                return false;
            }
            cli->by[cli->n_by++] = hearth_arena_strndup(&cli->arena, value + from, to - from);
        }
        from = to + 1;
    }
    return true;
}

/* One option with its value; false when the value is wrong. *ret_known false: no such option. */
static bool set_option(struct cli *cli, const char *flag, const char *value, bool *ret_known)
{
    const struct {
        const char *flag;
        const char **to;
    } texts[] = {
        {"--url", &cli->url},   {"--tenant", &cli->tenant},  {"--type", &cli->type},
        {"--from", &cli->from}, {"--to", &cli->to},          {"--since", &cli->since},
        {"--step", &cli->step}, {"--time", &cli->time_mode}, {"--name", &cli->name},
    };
    *ret_known = true;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        if (strcmp(flag, texts[i].flag) == 0) {
            *texts[i].to = value;
            return true;
        }
    }
    if (strcmp(flag, "--by") == 0) {
        return parse_by(cli, value);
    }
    if (strcmp(flag, "--label") == 0) {
        if (cli->n_labels == CLI_MAX_LABELS || strchr(value, '=') == NULL || value[0] == '=') {
            return false;
        }
        cli->labels[cli->n_labels++] = value;
        return true;
    }
    if (strcmp(flag, "--limit") == 0) {
        cli->has_limit = true;
        return parse_count(value, &cli->limit);
    }
    if (strcmp(flag, "--max-nodes") == 0) {
        return parse_count(value, &cli->max_nodes);
    }
    if (strcmp(flag, "--min-percent") == 0) {
        return hearth_str_to_double(hearth_str_c(value), &cli->min_percent) &&
               cli->min_percent >= 0 && cli->min_percent <= 100;
    }
    if (strcmp(flag, "-o") == 0 || strcmp(flag, "--output") == 0) {
        return parse_output(cli, value);
    }
    *ret_known = false;
    return false;
}

static enum cli_exit parse_arguments(struct cli *cli, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (arg[0] != '-' || arg[1] == '\0') {
            if (cli->n_args == CLI_MAX_ARGS) {
                return cli_usage("too many arguments");
            }
            cli->args[cli->n_args++] = arg;
            continue;
        }
        const char *eq = strncmp(arg, "--", 2) == 0 ? strchr(arg, '=') : NULL;
        const char *flag =
            eq == NULL ? arg : hearth_arena_strndup(&cli->arena, arg, (size_t)(eq - arg));
        const char *value = eq != NULL ? eq + 1 : i + 1 < argc ? argv[i + 1] : "";
        bool known = true;
        bool ok = flag != NULL && set_option(cli, flag, value, &known);
        char message[256];
        if (known && eq == NULL && i + 1 == argc) {
            (void)snprintf(message, sizeof message, "%.60s needs a value", flag);
            return cli_usage(message);
        }
        if (!ok && known) {
            (void)snprintf(message, sizeof message, "\"%.100s\" is not a value for %.60s", value,
                           flag);
            return cli_usage(message);
        }
        if (!ok) {
            (void)snprintf(message, sizeof message, "unknown option %.60s", arg);
            return cli_usage(message);
        }
        i += eq == NULL ? 1 : 0;
    }
    return CLI_OK;
}

/* ---- run ---- */

/* The command that the first words name; they are taken off the arguments. */
static const struct command *find_command(struct cli *cli)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_commands); i++) {
        const struct command *c = &g_commands[i];
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

static enum cli_exit run(struct cli *cli, const struct command *command)
{
    struct hearth_client_options options;
    hearth_client_options_init(&options);
    if (cli->url != NULL) {
        options.url = cli->url;
    }
    options.tenant = cli->tenant;
    if (!command->offline) {
        enum hearth_status status = hearth_client_new(&options, &cli->client, &cli->err);
        if (status != HEARTH_OK) {
            (void)cli_fail(cli, status);
            return CLI_USAGE;
        }
    }
    enum cli_exit code = command->run(cli);
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
            print_help();
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
    enum cli_exit code = parse_arguments(cli, argc, argv);
    if (code == CLI_OK) {
        const struct command *command = find_command(cli);
        if (command != NULL && cli->n_args > command->max_args) {
            code = cli_usage("too many arguments; a selector is one argument: put it in quotes");
        } else if (command != NULL) {
            code = run(cli, command);
        } else if (cli->n_args == 0) {
            print_help();
            code = CLI_USAGE;
        } else {
            code = cli_usage("there is no such command");
        }
    }
    hearth_arena_release(&cli->arena);
    hearth_mem_free(cli);
    return (int)code;
}
