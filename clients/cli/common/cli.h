/*
 * cli.h -- what a command of `hearth` knows: its options and arguments, the connection, the output.
 *
 * hearth.c runs the commands of table.h. server/LAYERS lists the folders: common is below output and
 * ask, which are below the commands.
 */
#ifndef HEARTH_CLIENTS_CLI_H
#define HEARTH_CLIENTS_CLI_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/secret.h"

#include "client_call.h"
#include "client_headers.h"
#include "sizing.h"

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_NO_DATA = 3,
    CLI_AUTH = 4,
    CLI_SERVER = 5,
};

enum cli_output {
    CLI_TABLE,
    CLI_WIDE,
    CLI_JSON,
    CLI_JSONL,
    CLI_CSV,
    CLI_TSV,
    CLI_YAML,
    CLI_PPROF,
    CLI_COLLAPSED,
    CLI_HTML,
    CLI_SVG,
    CLI_DOT,
    CLI_SPEEDSCOPE,
    CLI_FLAME, /* the text tree */
};

#define CLI_MAX_ARGS   1024
#define CLI_MAX_LABELS 64

/* Values of an option that may be repeated. */
struct cli_texts {
    const char *v[CLI_MAX_LABELS];
    size_t n;
};

/* Kinds of rows of `top`, numbered as in hearth.v1.TopKind; each is also a filter: --class. */
#define CLI_ROW_KINDS 10

/* The options --KIND and --not-KIND. */
struct cli_rows {
    struct cli_texts with, without;
};

/* Transforms of stack traces, in the order in which they are applied. */
struct cli_transforms {
    struct cli_transform {
        const char *flag, *name; /* --focus FUNCTION */
    } v[CLI_MAX_LABELS];
    size_t n;
};

/* Options of the commands for agents; NULL: not given. `hearth trace` uses some of them. */
struct cli_agent {
    const char *call, *dump_period, *duration, *endpoint, *events, *exec_args, *file, *instance,
        *instances, *kind, *max_samples, *min_duration, *modified_by, *monitor, *process,
        *process_labels, *sample_type, *service, *start, *weight;
    struct cli_texts metrics, samples;
    bool dot, log, observe, watch;
};

/* Options of `hearth trace`. */
struct cli_trace {
    const char *end, *query, *pad;
    struct cli_texts tags, maps;
    bool trace, span, root, flame, top, children, each, exact;
};

/* Options of the commands for tokens, users, grants and the audit log. */
struct cli_access {
    const char *role, *selector, *expires, *overlap, *password_file, *subject, *action, *outcome;
    struct cli_texts grants;
};

/* Options of `hearth import`: the connection to the source, as that to the server. */
struct cli_source {
    const char *tenant, *token_file, *ca_file;
    struct cli_texts headers;
    int64_t rate; /* pushes a second; 0: the default */
};

/* Where a setting of the connection was found. */
enum cli_origin {
    CLI_DEFAULT,
    CLI_FLAG,
    CLI_ENVIRONMENT,
    CLI_CONTEXT,
};

/* Rows of connection/cli_settings.c. */
enum {
    CLI_SETTING_URL,
    CLI_SETTING_TENANT,
    CLI_SETTING_TOKEN,
    CLI_SETTING_TOKEN_FILE,
    CLI_SETTING_TOKEN_COMMAND,
    CLI_SETTING_CA_FILE,
    CLI_SETTING_CERT_FILE,
    CLI_SETTING_KEY_FILE,
    CLI_SETTING_TIMEOUT,
    CLI_N_SETTINGS,
};

#define CLI_DEFAULT_URL "http://127.0.0.1:4040"
struct cli_command;

struct cli {
    struct hearth_arena arena;
    struct hearth_client *client;
    struct hearth_err err;
    const struct cli_command *command; /* that runs; in table.h */
    bool is_terminal;                  /* standard output is one */
    bool color;                        /* of the output, as --color, NO_COLOR, .. say */
    int width;                         /* width of the output in columns */
    int64_t now_ns;
    /* options */
    const char *url, *tenant, *type, *from, *to, *since, *step, *time_mode, *output_file, *name;
    const char *ca_file, *cert_file, *key_file; /* of https */
    bool skip_verify;
    bool origin;            /* option of context show */
    const char *wait_for;   /* option of ready: a duration */
    const char *page;       /* option of open */
    bool browser;           /* option of open */
    bool is_for_pgo;        /* merged profiles keep what Go's compiler needs */
    int64_t keep_locations; /* option of query go-pgo; 0: 5 */
    bool all_callees;       /* option of query go-pgo */
    bool utc;               /* times are read and printed in UTC instead of the local zone */
    const char *materialize, *database_url; /* options of sql; the URL is masked after the start */
    struct hearth_secret *database;         /* database_url; NULL: not given */
    const char *by[CLI_MAX_LABELS];
    size_t n_by;
    const char *labels[CLI_MAX_LABELS]; /* k=v, for upload */
    size_t n_labels;
    int64_t limit, max_nodes;
    double min_percent;
    enum cli_output output;
    const char *columns, *color_when; /* options of tables */
    bool no_headers, no_pager;
    bool has_limit;
    bool explain;                                /* print the plan of the query, do not run it */
    bool all, yes, dry_run, sample;              /* options of admin */
    bool interactive, no_interactive;            /* options of flame */
    bool wait;                                   /* uploads: until the file is parsed */
    const char *owner, *description, *profiling; /* of an application */
    bool approve, withdraw;
    const char *reason;
    const char *sizing[SIZING_N_INPUTS]; /* NULL: the default */
    /* filters of hearth.v1; querier.v1 supports some of them */
    struct cli_texts functions, without, call_site, profile_ids, span_ids, trace_ids;
    struct cli_rows rows[CLI_ROW_KINDS]; /* those of functions are `functions` and `without` */
    struct cli_transforms transforms;    /* of flame, top and open */
    const char *aggregation, *go_stacks, *by_kind, *search, *sort, *base_from, *base_to, *id;
    int64_t offset;
    struct cli_texts fail_on; /* of diff, as are the next three */
    const char *junit, *annotate, *report;
    const char *against; /* of changes */
    const char *timeout; /* time limit of a call */
    int64_t timeout_ms;  /* after cli_settle; 0: the default */
    int64_t jobs;        /* option of upload: files at a time; 0: the default */
    const char *pid, *duration, *profiler, *pprof_url; /* options of record */
    char **program;        /* words after "--", ends with NULL; NULL: none */
    const char *uploading; /* path of the file that is being sent */
    struct cli_agent agent;
    struct cli_trace trace;
    struct cli_access access;
    struct cli_source source;
    bool allow_tasks; /* of mcp */
    bool wants_help, wants_manual, wants_version;
    bool is_quiet;                  /* notes of the server are not printed */
    struct hearth_buf *kept_notes;  /* they are appended here instead; NULL: printed */
    const char *selector;           /* of the query, set by cli_selector; NULL: none */
    const char *token, *token_file; /* options */
    const char *token_command;      /* of the context */
    const char *token_from;         /* what the sent token was read from; NULL: none is given */
    struct hearth_str token_text;
    /* the connection, after cli_settle */
    struct cli_texts header_texts; /* options: "NAME: VALUE" */
    struct hearth_header headers[HEARTH_CLIENT_MAX_HEADERS];
    const char *header_lines[HEARTH_CLIENT_MAX_HEADERS]; /* the same as texts */
    enum cli_origin header_origins[HEARTH_CLIENT_MAX_HEADERS];
    size_t n_headers;
    const char *context_name;       /* NULL: none */
    enum cli_origin context_origin; /* CLI_CONTEXT: the current one */
    enum cli_origin origins[CLI_N_SETTINGS];
    enum cli_origin skip_verify_origin;
    const char *proxy, *proxy_variable; /* NULL: none */
    /* arguments */
    const char *args[CLI_MAX_ARGS];
    size_t n_args;
    /* range in milliseconds, set by cli_resolve_range */
    int64_t from_ms, to_ms;
};

typedef enum cli_exit cli_command_fn(struct cli *cli);

enum cli_row_of {
    CLI_ROW_SECTION,
    CLI_ROW_GROUP,
    CLI_ROW_COMMAND,
};

/* A row of commands.def. A section has only its title, in `help`. */
struct cli_command {
    enum cli_row_of row;
    const char *words;
    const char *arguments;
    size_t min_args, max_args;
    const char *options, *help, *examples[2];
};

cli_command_fn cli_sandwich, cli_lines, cli_label_stats, cli_function_timeline, cli_diff,
    cli_changes, cli_heatmap, cli_rules_list, cli_rules_get, cli_rules_set, cli_rules_delete,
    cli_trace, cli_spans_top, cli_spans_list, cli_spans_count;
cli_command_fn cli_network_topology, cli_network_series, cli_network_requests, cli_network_request,
    cli_network_addresses;
cli_command_fn cli_policy_list, cli_policy_get, cli_policy_set, cli_policy_apply, cli_policy_diff,
    cli_policy_dry_run, cli_policy_monitored, cli_policy_series, cli_policy_history,
    cli_policy_delete;
cli_command_fn cli_task_prepare, cli_task_create, cli_task_list, cli_task_get, cli_task_log,
    cli_task_cancel, cli_task_keep, cli_task_schedules, cli_task_stacks, cli_task_uploads,
    cli_task_analyze, cli_task_download, cli_task_export, cli_task_import, cli_task_segments,
    cli_task_threads;
cli_command_fn cli_whoami, cli_tokens_create, cli_tokens_list, cli_tokens_rotate, cli_tokens_delete,
    cli_users_create, cli_users_list, cli_users_password, cli_users_disable, cli_users_enable,
    cli_users_delete, cli_grants_add, cli_grants_list, cli_grants_delete, cli_sessions_end,
    cli_audit;
cli_command_fn cli_ready, cli_probe, cli_open, cli_adhoc, cli_go_pgo, cli_services, cli_cardinality,
    cli_exemplars;
cli_command_fn cli_context_list, cli_context_show, cli_context_use, cli_context_add,
    cli_context_delete;
cli_command_fn cli_uploads_create, cli_uploads_list, cli_uploads_show, cli_uploads_download,
    cli_uploads_delete;
cli_command_fn cli_mcp;
cli_command_fn cli_record, cli_upload, cli_import_pyroscope, cli_types, cli_labels, cli_values,
    cli_series, cli_timeline, cli_profile, cli_top, cli_flame, cli_sql, cli_version, cli_help,
    cli_completion, cli_explain_merge, cli_explain_timeline, cli_explain_function, cli_explain_diff,
    cli_explain_heatmap, cli_explain_label_stats, cli_explain_spans, cli_explain_catalogue,
    cli_explain_values, cli_explain_changes, cli_explain_trace, cli_explain_profiles,
    cli_explain_exemplars, cli_profiles_list, cli_profiles_facets, cli_profiles_show,
    cli_profiles_pprof, cli_profiles_original, cli_admin_status, cli_admin_doctor,
    cli_admin_rebuild, cli_admin_erase, cli_admin_erasures, cli_admin_errors, cli_admin_usage,
    cli_admin_disk, cli_admin_scale_out, cli_admin_targets, cli_retention_show, cli_retention_set,
    cli_retention_reset, cli_admin_limits, cli_applications_list, cli_applications_show,
    cli_applications_set, cli_applications_delete, cli_applications_rule_list,
    cli_applications_rule_add, cli_applications_rule_delete, cli_admin_sizing, cli_agents_services,
    cli_agents_instances, cli_agents_processes;

/* Whether the answer is a table, for people. */
static inline bool cli_is_table(const struct cli *cli)
{
    return cli->output == CLI_TABLE || cli->output == CLI_WIDE;
}

/* Whether the table fits the width of a terminal. */
static inline bool cli_is_fitted(const struct cli *cli)
{
    return cli->is_terminal && cli->output == CLI_TABLE;
}

/* Whether --by-kind is span. */
static inline bool cli_is_by_span(const struct cli *cli)
{
    return cli->by_kind != NULL && strcmp(cli->by_kind, "span") == 0;
}

#endif
