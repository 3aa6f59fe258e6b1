/*
 * hearth.c -- hearth: commands out of a table, exit codes out of statuses.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/selector/timeexpr.h"

#include "cli.h"

#include <assert.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const struct cli_command g_commands[] = {
    {"upload", NULL, "FILE...", "push files of any profiler", cli_upload, CLI_MAX_ARGS, false,
     NULL},
    {"record", NULL, "[-- PROGRAM ...]",
     "run perf, py-spy, async-profiler or curl; upload the result", cli_record, 0, false, NULL},
    {"uploads", "create", "FILE...", "send files that the server parses later; --wait, --id",
     cli_uploads_create, CLI_MAX_ARGS, false, NULL},
    {"uploads", "list", "", "uploads of the tenant, newest first", cli_uploads_list, 0, false,
     NULL},
    {"uploads", "show", "ID", "state, progress and results of an upload; --wait", cli_uploads_show,
     1, false, NULL},
    {"uploads", "download", "ID FILE", "the original bytes; FILE may be -", cli_uploads_download, 2,
     false, NULL},
    {"uploads", "delete", "ID...", "delete originals; stored profiles stay", cli_uploads_delete,
     CLI_MAX_ARGS, false, NULL},
    {"query", "types", "", "profile types", cli_types, 0, false, NULL},
    {"query", "labels", "[SELECTOR]", "label names", cli_labels, 1, false, NULL},
    {"query", "values", "LABEL [SELECTOR]", "values of a label", cli_values, 2, false, NULL},
    {"query", "series", "[SELECTOR]", "label sets; --by: only these labels", cli_series, 1, false,
     NULL},
    {"query", "timeline", "[SELECTOR]", "totals over time; --by groups, --step", cli_timeline, 1,
     false, cli_explain_timeline},
    {"query", "profile", "[SELECTOR]", "merged profile: -o pprof=FILE, collapsed, json",
     cli_profile, 1, false, cli_explain_merge},
    {"query", "top", "[SELECTOR]", "the same as top", cli_top, 1, false, cli_explain_merge},
    {"query", "flamegraph", "[SELECTOR]", "the same as flame", cli_flame, 1, false,
     cli_explain_merge},
    {"flame", NULL, "[SELECTOR]", "flame graph as text", cli_flame, 1, false, cli_explain_merge},
    {"top", NULL, "[SELECTOR]", "exact table of functions; --by-kind, --search, --sort", cli_top, 1,
     false, cli_explain_merge},
    {"sandwich", NULL, "FUNCTION [SELECTOR]", "callers and callees of a function", cli_sandwich, 2,
     false, NULL},
    {"lines", NULL, "FUNCTION [SELECTOR]", "self and total of each line of a function", cli_lines,
     2, false, NULL},
    {"timeline", NULL, "[SELECTOR]", "as query timeline; --function: one line for each",
     cli_timeline, 1, false, cli_explain_timeline},
    {"label-stats", NULL, "LABEL [SELECTOR]",
     "count, sum, mean and deviation for each value of a label", cli_label_stats, 2, false, NULL},
    {"diff", NULL, "SELECTOR [SELECTOR]",
     "what changed against the range before, or between two selections", cli_diff, 2, false, NULL},
    {"heatmap", NULL, "[SELECTOR]", "sizes of profiles over time; --by-kind span", cli_heatmap, 1,
     false, NULL},
    {"network", NULL, "[topology|series|..]",
     "network topology and metrics; alone: list subcommands", cli_network, CLI_MAX_ARGS, false,
     NULL},
    {"policy", NULL, "[list|get|set|apply|..]",
     "automatic profiling by rules; alone: list subcommands", cli_policy, 2, false, NULL},
    {"rules", NULL, "[list|get|set|delete]", "recording rules: rules set METRIC SELECTOR",
     cli_rules, 3, false, NULL},
    {"admin", "status", "", "roll-ups, late profiles, sizes of tables", cli_admin_status, 0, false,
     NULL},
    {"admin", "doctor", "", "check the database; exit code 1 if a check fails", cli_admin_doctor, 0,
     false, NULL},
    {"admin", "rebuild", "[SERVICE]", "build roll-ups again from the profiles", cli_admin_rebuild,
     1, false, NULL},
    {"admin", "erase", "SELECTOR", "delete profiles for good", cli_admin_erase, 1, false, NULL},
    {"admin", "erasures", "", "deletions: selector, author, state", cli_admin_erasures, 0, false,
     NULL},
    {"admin", "errors", "", "uploads that were refused: client, route, reason", cli_admin_errors, 0,
     false, NULL},
    {"admin", "usage", "", "what a tenant uses of a server, beside its limits", cli_admin_usage, 0,
     false, NULL},
    {"admin", "targets", "", "targets of --scrape-config, and how their latest scrapes went",
     cli_admin_targets, 0, false, NULL},
    {"admin", "retention", "[show|set|reset]", "how long profiles and roll-ups are kept",
     cli_admin_retention, 3, false, NULL},
    {"admin", "limits", "[TENANT] [NAME=VALUE...]",
     "limits of a tenant that differ from the server's", cli_admin_limits, 64, false, NULL},
    {"admin", "applications", "[list|show|set|delete|rule]",
     "services: owners, approval, profiling on or off", cli_admin_applications, 4, false, NULL},
    {"admin", "sizing", "", "estimate processors, disk and memory for a fleet", cli_admin_sizing, 0,
     true, NULL},
    {"admin", "tokens", "[create|list|..]", "tokens of agents, scripts and people", cli_tokens, 8,
     false, NULL},
    {"admin", "users", "[create|list|..]", "users who log in with a password", cli_users, 8, false,
     NULL},
    {"admin", "grants", "[add|list|delete]", "roles of users, groups and certificates", cli_grants,
     8, false, NULL},
    {"admin", "sessions", "end [SUBJECT]", "log a subject out everywhere", cli_sessions, 8, false,
     NULL},
    {"admin", "audit", "", "who did what; --since, --subject, --action, --outcome", cli_audit, 0,
     false, NULL},
    {"admin", "whoami", "", "the same as whoami", cli_whoami, 0, false, NULL},
    {"whoami", NULL, "", "who the server says you are, and your roles", cli_whoami, 0, false, NULL},
    {"sql", NULL, "--materialize SELECTOR", "copy stack traces into tables for SQL", cli_sql, 0,
     false, NULL},
    {"agents", "services", "", "services whose agents report; --all: also those not seen lately",
     cli_agents_services, 0, false, NULL},
    {"agents", "instances", "SERVICE", "instances of a service and their properties",
     cli_agents_instances, 1, false, NULL},
    {"agents", "processes", "SERVICE", "processes of a service; --instance, --process-labels",
     cli_agents_processes, 1, false, NULL},
    {"task", NULL, "[prepare|create|list|..]",
     "profiling tasks for agents; alone: list subcommands", cli_task, CLI_MAX_ARGS, false, NULL},
    {"trace", NULL, "[ID...]", "profiles of a trace or span: by id, or service and time; --flame",
     cli_trace, CLI_MAX_LABELS, false, NULL},
    {"spans", "top", "[SELECTOR]", "spans, traces, endpoints by largest total; --by, --function",
     cli_spans_top, 1, false, NULL},
    {"spans", "list", "[SELECTOR]", "spans that have profiles, the largest first", cli_spans_list,
     1, false, NULL},
    {"spans", "count", "[SELECTOR]", "number of spans that have profiles over time; --step, --by",
     cli_spans_count, 1, false, NULL},
    {"profiles", "list", "[SELECTOR]", "each pushed profile; --label, --sort, --limit",
     cli_profiles_list, 1, false, NULL},
    {"profiles", "facets", "[SELECTOR]", "number of profiles for each value of labels; --by",
     cli_profiles_facets, 1, false, NULL},
    {"profiles", "show", "ID", "one pushed profile: labels, types, totals", cli_profiles_show, 1,
     false, NULL},
    {"profiles", "pprof", "ID", "all its types as one pprof: -o pprof=FILE", cli_profiles_pprof, 1,
     false, NULL},
    {"profiles", "original", "ID FILE [NAME]", "a file that it was made of, as sent",
     cli_profiles_original, 3, false, NULL},
    {"version", NULL, "", "print the version", cli_version, 0, true, NULL},
};

enum cli_exit cli_usage(const char *message)
{
    (void)fprintf(stderr, "hearth: %s; try hearth --help\n", message);
    return CLI_USAGE;
}

enum cli_exit cli_check_words(const char *group, const char *word, const char *arguments,
                              size_t min_args, size_t max_args, const struct cli *cli)
{
    assert(cli->n_args > 0 && min_args <= max_args);
    size_t n = cli->n_args - 1; /* the word is still there */
    if (n >= min_args && n <= max_args) {
        return CLI_OK;
    }
    struct hearth_buf line;
    hearth_buf_init(&line, 0);
    hearth_buf_printf(&line, "hearth: %s %s: ", group, word);
    if (n < min_args) {
        hearth_buf_printf(&line, "%s is missing", arguments);
    } else {
        hearth_buf_byte(&line, '"');
        cli_fit(hearth_str_c(cli->args[max_args + 1]), 100, false, &line);
        hearth_buf_cstr(&line, "\" is one argument too many");
    }
    (void)fprintf(stderr, "%.*s; usage: hearth %s %s%s%s [OPTIONS]; try hearth %s --help\n",
                  (int)line.n, line.n > 0 ? line.p : "", group, word,
                  arguments[0] == '\0' ? "" : " ", arguments, group);
    hearth_buf_release(&line);

    return CLI_USAGE;
}

enum cli_exit cli_no_such(const char *group, const char *word)
{
    char message[160];
    (void)snprintf(message, sizeof message, "there is no such %s command: %.60s", group, word);
    (void)fprintf(stderr, "hearth: %s; try hearth %s --help\n", message, group);
    return CLI_USAGE;
}

enum cli_exit cli_fail(struct cli *cli, enum hearth_status status)
{
    assert(status != HEARTH_OK);

    cli_explain_refusal(cli, status);
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
    case HEARTH_ALREADY_EXISTS:
    case HEARTH_FAILED_PRECONDITION:
    case HEARTH_ABORTED:
        return CLI_FAILED;
    default:
        return CLI_SERVER;
    }
}

enum cli_exit cli_no_data(struct cli *cli)
{
    const char *hint = cli_has_stack_filter(cli)
                           ? " that the filters leave; their names must be exact"
                           : "; try a longer --since or `hearth query series`";

    (void)fprintf(stderr, "hearth: no data in this range%s\n", hint);
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

/* Of "agents" or "agents x": what may follow the first word. */
static enum cli_exit unknown_command(const struct cli *cli)
{
    char message[256];
    size_t n = 0;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_commands); i++) {
        if (g_commands[i].sub != NULL && strcmp(cli->args[0], g_commands[i].name) == 0) {
            int wrote = snprintf(message + n, sizeof message - n, "%s%s%s",
                                 n == 0 ? g_commands[i].name : "",
                                 n == 0 ? " is followed by " : ", ", g_commands[i].sub);
            n += wrote > 0 ? (size_t)wrote : 0;
        }
        if (n >= sizeof message) {
            break;
        }
    }
    if (n == 0) {
        (void)snprintf(message, sizeof message, "there is no such command: %.60s", cli->args[0]);
    }

    return cli_usage(message);
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

void cli_say(const char *what, const char *text)
{
    struct hearth_buf line;
    hearth_buf_init(&line, 0);
    cli_fit(hearth_str_c(text), INT_MAX, false, &line);
    (void)fprintf(stderr, "%s: %.*s\n", what, (int)line.n, line.n > 0 ? line.p : "");
    hearth_buf_release(&line);
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

#define MESSAGE              128
#define SAY_WAITING_AFTER_MS 5000

/* A message for an option that the command would silently ignore; NULL if there is none. */
static const char *find_misplaced(const struct cli *cli, const struct cli_command *command,
                                  char message[MESSAGE])
{
    bool is_top = command->run == cli_top;
    bool has_pages = is_top || command->run == cli_spans_top || command->run == cli_spans_list;
    const char *const shared[] = {"--service", "--start", "--duration"};

    if (cli->explain && command->explain == NULL) {
        return "--explain is for flame, query flamegraph, timeline, profile and top";
    }
    if (cli->by_kind != NULL && !is_top && command->run != cli_heatmap) {
        return "--by-kind is for top and heatmap";
    }
    const char *const groups[] = {"agents", "network", "policy", "task"};
    bool directs_agents = false;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(groups); i++) {
        directs_agents = directs_agents || strcmp(command->name, groups[i]) == 0;
    }
    for (size_t i = 0; cli->agent_option != NULL && i < HEARTH_ARRAY_LEN(shared); i++) {
        directs_agents = directs_agents ||
                         (command->run == cli_trace && strcmp(cli->agent_option, shared[i]) == 0);
    }
    if (cli->trace_option != NULL && command->run != cli_trace) {
        (void)snprintf(message, MESSAGE, "%s is for trace", cli->trace_option);
        return message;
    }
    if (cli->access_option != NULL &&
        cli_find_misplaced_access(cli, command->sub, message, MESSAGE)) {
        return message;
    }
    if (cli->agent_option != NULL && !directs_agents) {
        (void)snprintf(message, MESSAGE, "%s is for task, policy, network or agents",
                       cli->agent_option);
        return message;
    }
    if (cli->search != NULL && !is_top) {
        return "--search is for top";
    }
    if (cli->sort != NULL && !is_top && command->run != cli_profiles_list) {
        return "--sort is for top and profiles list";
    }
    if (cli->id != NULL && command->run != cli_upload && command->run != cli_rules &&
        command->run != cli_uploads_create) {
        return "--id is for upload, uploads create and rules set";
    }
    bool records = cli->pid != NULL || cli->duration != NULL || cli->profiler != NULL ||
                   cli->pprof_url != NULL || cli->program != NULL;
    if (records && command->run != cli_record) {
        return "--pid, --for, --with, --pprof-url and -- PROGRAM are for record";
    }
    if (cli->wait && command->run != cli_uploads_create && command->run != cli_uploads_show) {
        return "--wait is for uploads create and uploads show";
    }
    if (cli->offset > 0 && !has_pages) {
        return "--offset is for top, spans top and spans list";
    }

    return NULL;
}

void cli_client_options(const struct cli *cli, struct hearth_client_options *ret_options)
{
    hearth_client_options_init(ret_options);
    if (cli->url != NULL) {
        ret_options->url = cli->url;
    }
    ret_options->tenant = cli->tenant;
    ret_options->ca_file = cli->ca_file;
    ret_options->cert_file = cli->cert_file;
    ret_options->key_file = cli->key_file;
    ret_options->skip_verify = cli->skip_verify;
}

static enum cli_exit run_command(struct cli *cli, const struct cli_command *command)
{
    struct hearth_client_options options;

    cli_client_options(cli, &options);
    options.note = print_note;
    if (command->run == cli_upload) {
        options.waiting = cli_upload_waits;
        options.waiting_context = cli;
        options.waiting_after_ms = SAY_WAITING_AFTER_MS;
    }
    if (cli->timeout != NULL) {
        int64_t ns;
        enum hearth_status status =
            hearth_duration_parse(hearth_str_c(cli->timeout), &ns, &cli->err);
        options.timeout_ms = status == HEARTH_OK ? ns / HEARTH_NS_PER_MS : 0;
        if (options.timeout_ms <= 0) {
            return cli_usage("--timeout must be a duration like 90s, at least 1ms");
        }
    }
    if (!command->offline) {
        enum hearth_status status = cli_connect(cli, &options, &cli->client, &cli->err);
        if (status != HEARTH_OK) {
            (void)cli_fail(cli, status);
            return CLI_USAGE;
        }
    }
    enum cli_exit code = cli->explain ? command->explain(cli) : command->run(cli);
    hearth_client_free(cli->client);

    return code;
}

/* NULL if the variable is unset or empty. */
static const char *read_variable(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || value[0] == '\0' ? NULL : value;
}

/* Keep the database URL as a secret, and overwrite it in the arguments, which other users see. */
static enum cli_exit hide_database_url(struct cli *cli, int argc, char **argv)
{
    if (cli->database_url == NULL) {
        return CLI_OK;
    }

    struct hearth_str url = hearth_str_c(cli->database_url);
    if (hearth_secret_new(url, &cli->database, &cli->err) != HEARTH_OK) {
        return cli_fail(cli, cli->err.status);
    }

    for (int i = 1; i < argc; i++) {
        size_t n = strlen(argv[i]);
        if (n >= url.n && argv[i] + n - url.n == url.p) {
            hearth_secret_wipe(argv[i] + n - url.n);
            break;
        }
    }

    return CLI_OK;
}

int main(int argc, char **argv)
{
    (void)setlocale(LC_TIME, "");
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            if (argc > 2 && strcmp(argv[1], "admin") == 0) {
                cli_print_admin_help(argv[2]);
            } else if (strcmp(argv[1], "task") == 0) {
                cli_print_task_help();
            } else if (strcmp(argv[1], "network") == 0) {
                cli_print_network_help();
            } else if (strcmp(argv[1], "policy") == 0) {
                cli_print_policy_help();
            } else if (strcmp(argv[1], "trace") == 0) {
                cli_print_trace_help();
            } else if (strcmp(argv[1], "spans") == 0) {
                cli_print_spans_help();
            } else if (strcmp(argv[1], "profiles") == 0) {
                cli_print_profiles_help();
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
    cli->url = read_variable("HEARTH_URL");
    cli->tenant = read_variable("HEARTH_TENANT");
    cli->ca_file = read_variable("HEARTH_CA_FILE");
    cli->cert_file = read_variable("HEARTH_CERT_FILE");
    cli->key_file = read_variable("HEARTH_KEY_FILE");
    cli->now_ns = hearth_clock_wall_ns();
    cli->min_percent = 0.5;
    look_at_terminal(cli);
    enum cli_exit code = cli_parse(cli, argc, argv);
    if (code == CLI_OK) {
        code = hide_database_url(cli, argc, argv);
    }
    if (code == CLI_OK) {
        const struct cli_command *command = find_command(cli);
        char message[MESSAGE];
        const char *misplaced = command == NULL ? NULL : find_misplaced(cli, command, message);
        if (command != NULL && cli->n_args > command->max_args) {
            code = cli_usage(command->max_args == 0
                                 ? "this command has options, but no arguments"
                                 : "too many arguments; quote the selector: it is one argument");
        } else if (misplaced != NULL) {
            code = cli_usage(misplaced);
        } else if (command != NULL) {
            code = run_command(cli, command);
        } else if (cli->n_args == 1 && strcmp(cli->args[0], "admin") == 0) {
            cli_print_admin_help(NULL);
            code = CLI_USAGE;
        } else if (cli->n_args == 0) {
            cli_print_help(g_commands, HEARTH_ARRAY_LEN(g_commands));
            code = CLI_USAGE;
        } else {
            code = unknown_command(cli);
        }
    }
    hearth_secret_free(cli->database);
    hearth_arena_release(&cli->arena);
    hearth_mem_free(cli);

    return (int)code;
}
