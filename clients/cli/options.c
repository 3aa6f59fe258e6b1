/* options.c -- options and arguments out of the command line. */
#include "cli.h"

#include <stdio.h>

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

/* Where the value of an option goes; NULL: it is none of these. */
static const char **find_text(struct cli *cli, const char *flag)
{
    const struct {
        const char *flag;
        const char **to;
    } texts[] = {
        {"--url", &cli->url},
        {"--tenant", &cli->tenant},
        {"--ca-file", &cli->ca_file},
        {"--cert-file", &cli->cert_file},
        {"--key-file", &cli->key_file},
        {"--type", &cli->type},
        {"--from", &cli->from},
        {"--to", &cli->to},
        {"--since", &cli->since},
        {"--step", &cli->step},
        {"--time", &cli->time_mode},
        {"--name", &cli->name},
        {"--materialize", &cli->materialize},
        {"--database-url", &cli->database_url},
        {"--reason", &cli->reason},
        {"--owner", &cli->owner},
        {"--description", &cli->description},
        {"--profiling", &cli->profiling},
        {"--aggregation", &cli->aggregation},
        {"--go-stacks", &cli->go_stacks},
        {"--by-kind", &cli->by_kind},
        {"--search", &cli->search},
        {"--sort", &cli->sort},
        {"--base-from", &cli->base_from},
        {"--base-to", &cli->base_to},
        {"--id", &cli->id},
        {"--timeout", &cli->timeout},
        {"--pid", &cli->pid},
        {"--for", &cli->duration},
        {"--with", &cli->profiler},
        {"--pprof-url", &cli->pprof_url},
        {"--token", &cli->token},
        {"--token-file", &cli->token_file},
#define CLI_TEXT_TEXT(field, flag) {flag, &cli->field},
#define CLI_TEXT_LIST(field, flag)
#define CLI_TEXT_SWITCH(field, flag)
#define X(kind, name, flag, value, help) CLI_TEXT_##kind(agent.name, flag)
#include "agent_options.def"
#undef X
#define X(kind, name, flag, value, help) CLI_TEXT_##kind(trace.name, flag)
#include "trace_options.def"
#undef X
#define X(kind, name, flag, value, help) CLI_TEXT_##kind(access.name, flag)
#include "access_options.def"
#undef X
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        if (strcmp(flag, texts[i].flag) == 0) {
            return texts[i].to;
        }
    }

    return NULL;
}

static struct cli_texts *find_list(struct cli *cli, const char *flag)
{
    const struct {
        const char *flag;
        struct cli_texts *to;
    } lists[] = {
        {"--function", &cli->functions},  {"--without", &cli->without},
        {"--call-site", &cli->call_site}, {"--profile-id", &cli->profile_ids},
        {"--span-id", &cli->span_ids},    {"--trace-id", &cli->trace_ids},
#define CLI_LIST_TEXT(field, flag)
#define CLI_LIST_LIST(field, flag) {flag, &cli->field},
#define CLI_LIST_SWITCH(field, flag)
#define X(kind, name, flag, value, help) CLI_LIST_##kind(agent.name, flag)
#include "agent_options.def"
#undef X
#define X(kind, name, flag, value, help) CLI_LIST_##kind(trace.name, flag)
#include "trace_options.def"
#undef X
#define X(kind, name, flag, value, help) CLI_LIST_##kind(access.name, flag)
#include "access_options.def"
#undef X
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(lists); i++) {
        if (strcmp(flag, lists[i].flag) == 0) {
            return lists[i].to;
        }
    }

    return NULL;
}

/* One option with its value; false when the value is wrong. *ret_known false: no such option. */
static bool set_option(struct cli *cli, const char *flag, const char *value, bool *ret_known)
{
    const char **text = find_text(cli, flag);
    struct cli_texts *rows = cli_row_option(cli, flag);
    struct cli_texts *list = rows != NULL ? rows : find_list(cli, flag);

    *ret_known = true;
    if (text != NULL) {
        *text = value;
        return true;
    }
    if (list != NULL) {
        if (list->n == CLI_MAX_LABELS || (value[0] == '\0' && rows == NULL)) {
            return false;
        }
        list->v[list->n++] = value;
        return true;
    }
    for (size_t i = 0; i < SIZING_N_INPUTS; i++) {
        if (strcmp(flag, sizing_fields[i].flag) == 0) {
            cli->sizing[i] = value;
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
    if (strcmp(flag, "--offset") == 0) {
        return hearth_str_to_i64(hearth_str_c(value), &cli->offset) && cli->offset >= 0;
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

/* The options without a value (after `=`: NULL, or not). *ret_known false: no such option. */
static bool set_switch(struct cli *cli, const char *flag, const char *value, bool *ret_known)
{
    const struct {
        const char *flag;
        bool *to;
    } switches[] = {
        {"--all", &cli->all},           {"--dry-run", &cli->dry_run},
        {"--explain", &cli->explain},   {"--wait", &cli->wait},
        {"--yes", &cli->yes},           {"--approve", &cli->approve},
        {"--withdraw", &cli->withdraw}, {"--insecure-skip-verify", &cli->skip_verify},
    };
    const struct {
        const char *flag, **to;
    } more_switches[] = {
#define CLI_SWITCH_TEXT(field, flag)
#define CLI_SWITCH_LIST(field, flag)
#define CLI_SWITCH_SWITCH(field, flag)   {flag, &cli->field},
#define X(kind, name, flag, value, help) CLI_SWITCH_##kind(agent.name, flag)
#include "agent_options.def"
#undef X
#define X(kind, name, flag, value, help) CLI_SWITCH_##kind(trace.name, flag)
#include "trace_options.def"
#undef X
    };

    *ret_known = false;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(more_switches); i++) {
        if (strcmp(flag, more_switches[i].flag) == 0) {
            *ret_known = true;
            *more_switches[i].to = "";
            return value == NULL;
        }
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(switches); i++) {
        if (strcmp(flag, switches[i].flag) == 0) {
            *ret_known = true;
            *switches[i].to = true;
            if (value != NULL && switches[i].to == &cli->explain && strcmp(value, "json") == 0) {
                cli->output = CLI_JSON;
                return true;
            }
            return value == NULL;
        }
    }

    return false;
}

/* So that one that a command has no use for is not passed over in silence. */
static void remember_option(struct cli *cli, const char *flag)
{
    static const char *const agent[] = {
#define X(kind, name, flag, value, help) flag,
#include "agent_options.def"
#undef X
    };
    static const char *const trace[] = {
#define X(kind, name, flag, value, help) flag,
#include "trace_options.def"
#undef X
    };
    static const char *const access[] = {
#define X(kind, name, flag, value, help) flag,
#include "access_options.def"
#undef X
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(access); i++) {
        cli->access_option = strcmp(flag, access[i]) == 0 ? access[i] : cli->access_option;
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(agent); i++) {
        cli->agent_option = strcmp(flag, agent[i]) == 0 ? agent[i] : cli->agent_option;
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(trace); i++) {
        cli->trace_option = strcmp(flag, trace[i]) == 0 ? trace[i] : cli->trace_option;
    }
}

static enum cli_exit parse_option(struct cli *cli, const char *arg, const char *next,
                                  bool *ret_used)
{
    const char *eq = strncmp(arg, "--", 2) == 0 ? strchr(arg, '=') : NULL;
    const char *flag =
        eq == NULL ? arg : hearth_arena_strndup(&cli->arena, arg, (size_t)(eq - arg));
    const char *value = eq != NULL ? eq + 1 : next != NULL ? next : "";
    bool known = false;
    char message[256];

    *ret_used = false;
    bool ok = flag != NULL && set_switch(cli, flag, eq != NULL ? eq + 1 : NULL, &known);
    if (flag != NULL && !known) {
        ok = set_option(cli, flag, value, &known);
        *ret_used = eq == NULL;
        if (known && eq == NULL && next == NULL) {
            (void)snprintf(message, sizeof message, "%.60s needs a value", flag);
            return cli_usage(message);
        }
    }
    if (!ok && known) {
        (void)snprintf(message, sizeof message, "\"%.100s\" is not a value for %.60s", value, flag);
        return cli_usage(message);
    }
    if (!ok) {
        (void)snprintf(message, sizeof message, "unknown option %.60s", arg);
        return cli_usage(message);
    }
    remember_option(cli, flag);

    return CLI_OK;
}

enum cli_exit cli_parse(struct cli *cli, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (strcmp(arg, "--") == 0) {
            cli->program = &argv[i + 1];
            break;
        }
        if (arg[0] != '-' || arg[1] == '\0') {
            if (cli->n_args == CLI_MAX_ARGS) {
                return cli_usage("too many arguments");
            }
            cli->args[cli->n_args++] = arg;
            continue;
        }
        bool used;
        enum cli_exit code = parse_option(cli, arg, i + 1 < argc ? argv[i + 1] : NULL, &used);
        if (code != CLI_OK) {
            return code;
        }
        i += used ? 1 : 0;
    }

    return CLI_OK;
}
