/*
 * cli.h -- what the commands of `hearth` share: options, the connection, output.
 *
 * hearth.c dispatches and turns statuses into exit codes; options.c parses as the tables of table.h say;
 * help.c prints their texts; cmd_*.c are the commands; text.c formats values; filters.c puts filters into requests;
 * ask.c makes the calls that several commands need; sizing.c is the arithmetic of `admin sizing`.
 */
#ifndef HEARTH_CLIENTS_CLI_H
#define HEARTH_CLIENTS_CLI_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/human.h"
#include "hearth/base/secret.h"
#include "hearth/format/profile_file.h"
#include "hearth/model/profile.h"
#include "hearth/model/profile_type.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"

#include "client_call.h"
#include "client_headers.h"
#include "flame_cells.h"
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

#define CLI_WAITING_MS 5000 /* before a call says that it takes long */
#define CLI_MAX_ARGS   1024
#define CLI_MAX_LABELS 64

/* Values of an option that may be repeated. */
struct cli_texts {
    const char *v[CLI_MAX_LABELS];
    size_t n;
};

/* Kinds of rows of `top`, numbered as in hearth.v1.TopKind; each is also a filter: --class. */
#define CLI_ROW_KINDS 10
extern const char *const cli_row_kinds[CLI_ROW_KINDS]; /* [0] is NULL */

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

/* ---- hearth.c ---- */

/* The settings, after cli_settle. Notes and long waits are printed; the client keeps `cli`. */
void cli_client_options(struct cli *cli, struct hearth_client_options *ret_options);
/* Print "hearth: <message>" and return the exit code of a status. */
enum cli_exit cli_fail(struct cli *cli, enum hearth_status status);
enum cli_exit cli_usage(const char *message);
/* The command that cli_usage names; NULL: none. */
void cli_set_usage(const struct cli_command *command);
/* "note: ..." on standard error, without control bytes. */
void cli_say(const char *what, const char *text);

/* ---- progress.c ---- */

/* Replaces the line of progress. Without a terminal nothing is shown. Threads: safe. */
void cli_progress(const struct cli *cli, const char *fmt, ...) HEARTH_PRINTF(2, 3);
/* Erases the line of progress, before other lines are printed. Threads: safe. */
void cli_progress_end(void);
/* Prints a line of a result on standard output, at once, instead of the progress. Threads: safe. */
void cli_print_result(const char *fmt, ...) HEARTH_PRINTF(1, 2);
/* For hearth_client_options: shows how long a call lasts. `cli` is a struct cli. */
void cli_waits(void *cli, int64_t waited_ms);

/* ---- connection/cli_settings.c ---- */

/*
 * Fills the settings that no option gives from variables, the context and defaults. NOT_FOUND for a
 * context that does not exist; INVALID_ARGUMENT for mistakes in headers and in the file of contexts.
 */
HEARTH_MUST_CHECK enum hearth_status cli_settle(struct cli *cli);

/* ---- credential.c: what the client shows to a server, and secrets in files ---- */

#define CLI_MAX_SECRET_BYTES ((size_t)16 << 10)

/*
 * A client with the token of the settings, after cli_settle. INVALID_ARGUMENT for a token file that
 * cannot be read, or that others can read, and for a command that fails; what hearth_client_new
 * returns.
 */
HEARTH_MUST_CHECK enum hearth_status cli_connect(struct cli *cli,
                                                 const struct hearth_client_options *options,
                                                 struct hearth_client **ret_client,
                                                 struct hearth_err *err);
/* Adds to a refusal what the user can do about it. */
void cli_explain_refusal(struct cli *cli, enum hearth_status status);
/* The only line of a text, without its end; p is NULL if there are several. Borrows. */
struct hearth_str cli_take_line(struct hearth_str text);
/*
 * The only line of a file that only its owner can read, in the arena; "-": of standard input.
 * `what` names it in messages. INVALID_ARGUMENT if it cannot be read, is empty, longer than
 * CLI_MAX_SECRET_BYTES, has more lines, or if others can read it; NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status cli_read_secret(struct cli *cli, const char *what,
                                                     const char *path, struct hearth_str *ret,
                                                     struct hearth_err *err);

/* ---- password.c ---- */

/* A new password, in the arena: of --password-file, or typed twice on the terminal without echo.
 * INVALID_ARGUMENT without a terminal; FAILED_PRECONDITION if the two differ. */
HEARTH_MUST_CHECK enum hearth_status cli_new_password(struct cli *cli, char **ret);

/* ---- cmd_upload.c ---- */

/* Prints that an upload takes long, and the reason if the server knows it. */
void cli_upload_waits(struct cli *cli);

/* Appends all of a file, "-": of standard input, to a buffer, whose limit it may not exceed.
 * INVALID_ARGUMENT if it cannot be read, or is larger. */
HEARTH_MUST_CHECK enum hearth_status cli_read_file(struct cli *cli, const char *path,
                                                   struct hearth_buf *out);
/*
 * Decodes the profiles of a file, which are at least one; they borrow from `plain`, which the caller
 * has initialised and releases. INVALID_ARGUMENT if the file cannot be read or has no profile.
 */
HEARTH_MUST_CHECK
enum hearth_status cli_open_profile(struct cli *cli, const char *path, struct hearth_buf *plain,
                                    struct hearth_file_profiles *ret);

/* ---- flame_file.c ---- */

/* One type of a file as a sealed tree; it borrows from itself until flame_file_release. */
struct flame_file {
    struct hearth_buf plain;
    struct hearth_profile *profile;
    uint32_t type_idx; /* the type in it that the graph shows */
    struct hearth_stacktree tree;
    char *type, *range; /* in the arena of the client */
};

/*
 * Whether an argument names a file: it begins with a dot or a slash, or has one and exists, and is
 * no selector.
 */
bool flame_is_file(const char *argument);
/*
 * Reads a type out of a file: `wanted`, or NULL for CPU time or the default of the file.
 * INVALID_ARGUMENT, with what there is, if the file has no such type, and for options of a query.
 * Release in every case.
 */
HEARTH_MUST_CHECK enum hearth_status flame_file_open(struct cli *cli, const char *path,
                                                     const char *wanted, struct flame_file *ret);
void flame_file_release(struct flame_file *file);
/*
 * Asks for the stack traces of the query, all of them, and transforms them. INVALID_ARGUMENT for
 * options that do not go with transforms; NOT_FOUND if the query finds no profiles, or if no frame
 * matches --focus. Release *ret in every case.
 */
HEARTH_MUST_CHECK enum hearth_status flame_query_open(struct cli *cli, struct flame_file *ret);
/* Makes the profile that of the transformed tree, for outputs of profiles. */
HEARTH_MUST_CHECK enum hearth_status flame_file_take_tree(struct cli *cli, struct flame_file *file);
/* Says that a file has only zeroes; returns CLI_NO_DATA. */
enum cli_exit flame_file_is_empty(const char *path, const char *type);

/* ---- flame_transforms.c ---- */

/* Takes an option; false: it is wrong, or one too many. */
bool cli_add_transform(struct cli *cli, const char *flag, const char *name);
/*
 * Replaces a sealed tree by the one that the options make of it; says which of them no frame
 * matches. NOT_FOUND if --focus leaves nothing; INVALID_ARGUMENT for a wrong regular expression.
 */
HEARTH_MUST_CHECK enum hearth_status flame_transform_tree(struct cli *cli,
                                                          struct hearth_stacktree *tree);
/* Appends them to the address of a page. False: the page has no words for them. */
HEARTH_MUST_CHECK bool flame_put_transforms(const struct cli *cli, struct hearth_buf *link);

/* ---- options.c, help.c ---- */

/* Reads options and arguments into `cli`. *ret: the command or the group; NULL: none. CLI_USAGE, with
 * a message, for mistakes. */
HEARTH_MUST_CHECK enum cli_exit cli_parse(struct cli *cli, int argc, char **argv,
                                          const struct cli_command **ret);
/* Says that a group, "" for all commands, has no such command. */
enum cli_exit cli_no_such(const char *group, const char *word);
/* The help of a command or group; NULL: the list of commands. */
enum cli_exit cli_print_help(const struct cli_command *command);
/* The help of everything. */
enum cli_exit cli_print_manual(void);

/* ---- why.c: why nothing was found, and what was meant ---- */

/* NOT_FOUND with the reason: an empty store, an unknown label, value or type, or the range. After
 * cli_selector, if the command has a selector. */
enum hearth_status cli_fail_no_data(struct cli *cli);
/* The same as cli_fail. */
enum cli_exit cli_no_data(struct cli *cli);
/* NOT_FOUND, with the nearest label, if no series has this one at any time. */
HEARTH_MUST_CHECK enum hearth_status cli_check_label(struct cli *cli, const char *label);
/* NOT_FOUND: no stack trace of a selection contains a function; the message has functions with
 * similar names. */
enum hearth_status cli_fail_no_function(struct cli *cli, Hearth__V1__Selection *selection,
                                        const char *function);
/* Values of a label in a range, in arena. */
HEARTH_MUST_CHECK enum hearth_status cli_ask_values(struct cli *cli, const char *label,
                                                    const char *selector, int64_t from_ms,
                                                    int64_t to_ms, char ***ret, size_t *ret_n);
/* Names of labels at any time, in arena. */
HEARTH_MUST_CHECK enum hearth_status cli_ask_labels(struct cli *cli, char ***ret, size_t *ret_n);
/* Replaces a short --type like "cpu" by the only type that it stands for. After cli_resolve_range. */
HEARTH_MUST_CHECK enum hearth_status cli_complete_type(struct cli *cli, const char *selector);
/* A selector for a word without braces: the word, if it is a family, otherwise the service. */
HEARTH_MUST_CHECK enum hearth_status cli_complete_selector(struct cli *cli, const char *word,
                                                           const char **ret);

/* ---- ask.c ---- */

/* Sets from_ms and to_ms from --since, --from, --to; prints the range on standard error. */
HEARTH_MUST_CHECK enum hearth_status cli_resolve_range(struct cli *cli);
/* A point in time, in nanoseconds; a date without a zone is one of the client's zone. */
HEARTH_MUST_CHECK enum hearth_status cli_parse_time(struct cli *cli, const char *text,
                                                    int64_t *ret_ns);
/* The selector argument, "{}" if there is none; checked locally, a caret marks an error. */
HEARTH_MUST_CHECK enum hearth_status cli_selector(struct cli *cli, size_t arg,
                                                  const char **ret_selector);
/* The same for queries, where a bare word may also be a service. */
HEARTH_MUST_CHECK enum hearth_status cli_query_selector(struct cli *cli, size_t arg,
                                                        const char **ret_selector);
/* The type of CPU: process_cpu:cpu in nanoseconds, else in another unit, else wall:cpu:... (Node);
 * without one, the space in use of a heap, else the delay of locks; otherwise the first. */
const char *cli_prefer_type(const char *first, const char *second);
/* --type, or a type that the server has: the only one, otherwise cli_prefer_type. Prints its choice
 * on standard error. */
HEARTH_MUST_CHECK enum hearth_status cli_profile_type(struct cli *cli, const char *selector,
                                                      const char **ret_type);
/* The merged profile, decoded; *ret_wire is its encoded form. n_samples is 0 if there is no data. */
HEARTH_MUST_CHECK enum hearth_status cli_ask_profile(struct cli *cli,
                                                     Hearth__V1__Selection *selection,
                                                     struct hearth_str *ret_wire,
                                                     struct hearth_profile *ret_profile);
HEARTH_MUST_CHECK enum hearth_status cli_call(struct cli *cli, const char *method,
                                              const void *request,
                                              const struct ProtobufCMessageDescriptor *answer_type,
                                              void *ret_answer);

/* --step, or a sixtieth of the range, at least a second. After cli_resolve_range. */
HEARTH_MUST_CHECK enum hearth_status cli_timeline_step(struct cli *cli, double *ret_seconds);
/* --by as the repeated field of a request, cli->n_by texts; in cmd_query.c. */
char **cli_by_names(struct cli *cli);
/* Prints the answer as JSON, or `text`, the table. Releases text. */
enum cli_exit cli_print_answer(struct cli *cli, const ProtobufCMessage *answer,
                               struct hearth_buf *text);
/* --label, and "K=V" texts of `more` whose names no --label has, as labels of a request. */
HEARTH_MUST_CHECK enum hearth_status cli_label_pairs(struct cli *cli, const char *const *more,
                                                     size_t n_more, Types__V1__LabelPair ***ret,
                                                     size_t *ret_n);
/* Whether a --label is the service. */
bool cli_names_service(const struct cli *cli);
/* A copy of a text for a field of a request: protobuf-c declares them writable. */
char *cli_field(struct cli *cli, const char *text);

/* ---- filters.c ---- */

/* The selection of a request of hearth.v1, from selector argument, range, type and filters. */
HEARTH_MUST_CHECK enum hearth_status cli_selection(struct cli *cli, size_t arg,
                                                   Hearth__V1__Selection *ret);
/* Puts all filters but ids into an initialised message; arena.refused if that failed. */
void cli_stack_filter(struct cli *cli, Hearth__V1__StackFilter *ret);
/* Whether --by-kind is span. */
bool cli_is_by_span(const struct cli *cli);
/* Whether a name is "/RE/", a regular expression. */
bool cli_is_expression(const char *value);
/* Whether there is an option that cli_stack_filter reads. */
bool cli_has_stack_filter(const struct cli *cli);
/* Whether there is an option of a selection that the web page does not have. */
bool cli_is_beyond_page(const struct cli *cli);
HEARTH_MUST_CHECK
enum hearth_status cli_read_go_stacks(struct cli *cli, Hearth__V1__GoStacks *ret);
/* Prints on standard error how a gauge was aggregated, unless --aggregation was given. */
void cli_say_aggregation(const Hearth__V1__Selection *selection,
                         Hearth__V1__Aggregation aggregation);
/* The figure of a line of n points: their sum, or, of means, their mean. */
double cli_line_figure(double sum, size_t n_points, Hearth__V1__Aggregation aggregation);
/* The values as the repeated field of a request. */
char **cli_repeated(struct cli *cli, const struct cli_texts *texts);

/* ---- cmd_flame.c, cmd_functions.c, cmd_profile.c: answers as text and files ---- */

/* Appends a non-empty graph as a picture or, without colour, as a tree. */
HEARTH_MUST_CHECK enum hearth_status cli_draw_flame(struct cli *cli,
                                                    const Querier__V1__FlameGraph *graph,
                                                    struct hearth_str unit, struct hearth_buf *out);
/* Whether to open the full-screen view. CLI_USAGE, with a message, if it is demanded and cannot be. */
enum cli_exit cli_choose_screen(const struct cli *cli, bool *ret_is_screen);
struct flame_facts; /* flame_screen.h */
/* Shows a non-empty graph until its user quits, and appends a copied address. Errors of the terminal. */
HEARTH_MUST_CHECK enum hearth_status cli_run_screen(struct cli *cli,
                                                    const struct hearth_flamegraph *graph,
                                                    const struct flame_facts *facts,
                                                    struct hearth_str unit, struct hearth_buf *out);
/* Appends a table of functions or, by `kind`, of lines, files, .. */
HEARTH_MUST_CHECK enum hearth_status cli_draw_top(struct cli *cli,
                                                  const Hearth__V1__TopResponse *answer,
                                                  const char *kind, struct hearth_buf *out);
/*
 * The table of functions of a file, or with NULL of the transformed stack traces of the query, as
 * --search, --sort and --offset choose it; in the arena. Errors of flame_file_open and _query_open.
 */
HEARTH_MUST_CHECK enum hearth_status cli_top_tree(struct cli *cli, const char *path, int64_t limit,
                                                  const char **ret_type,
                                                  Hearth__V1__TopResponse **ret);
/* A profile.proto message into the file of -o pprof=FILE, gzipped. */
enum cli_exit cli_save_pprof(struct cli *cli, struct hearth_str wire, uint32_t n_samples);

/* ---- cmd_explain.c ---- */

/* Prints the answer of Explain. */
enum cli_exit cli_ask_explain(struct cli *cli, Hearth__V1__ExplainRequest *request);
/* Prints a plan. type: the profile type, may be empty; plan: NULL if the server sent none. */
enum cli_exit cli_print_plan(struct cli *cli, const char *type,
                             const Hearth__V1__ExplainResponse *plan);

/* ---- cmd_diff.c ---- */

/* The two sides of a comparison: of two selectors, or of one in the range and in the base range. */
HEARTH_MUST_CHECK enum hearth_status
cli_diff_sides(struct cli *cli, Hearth__V1__Selection *ret_base, Hearth__V1__Selection *ret_now);

/* ---- text.c ---- */

/* Short names for base/human.h. */
static inline void cli_value(double value, struct hearth_str unit, char out[48])
{
    hearth_human_value(value, unit, out);
}
static inline void cli_bar(double fraction, int width, struct hearth_buf *out)
{
    hearth_human_bar(fraction, width, out);
}
static inline void cli_fit(struct hearth_str text, int width, bool pad, struct hearth_buf *out)
{
    hearth_human_fit(text, width, pad, out);
}
/* 2026-11-20T11:36:00.000+01:00 in the zone of the client, ...Z in UTC; as --from accepts it. */
void cli_zoned(int64_t ns, char out[32]);
/* The same without parts of a second. */
void cli_zoned_seconds(int64_t ms, char out[48]);
/* Names the zone of cli_time and cli_local_date on standard error, unless it is UTC. */
void cli_say_zone(void);
/* 11-20 10:36:00 local time. */
void cli_time(int64_t ms, char out[32]);
/* 2026-11-20T10:36:00Z, as --from accepts it and servers write it in messages. */
void cli_date(int64_t ms, char out[32]);
/* 2026-11-20 11:36:00 local time. */
void cli_local_date(int64_t ms, char out[32]);
/* 7d, 1h30m; 0: for ever. `out` holds 48 bytes. */
void cli_duration(int64_t ms, char out[48]);
/* 1,234,567. `out` holds 32 bytes. */
void cli_count(int64_t n, char out[32]);
/* "1 series", "12 series", "1 service", "3 services": n with its noun. `out` holds 64 bytes. */
void cli_number(int64_t n, const char *one, const char *many, char out[64]);
/* The sample type of a profile type, which is its second part; all of it if it has no parts. Borrows. */
struct hearth_str cli_type_name(const char *type);
/* The unit of a profile type, which is its third part; empty if it has none. Borrows. */
struct hearth_str cli_type_unit(const char *type);
/* The course of values over [start, end]: the largest value of each sixtieth of the range. */
struct cli_course {
    int64_t start, end;
    double cells[60];
};
/* Adds a value; times outside the range are in the first or last cell. */
void cli_course_add(struct cli_course *course, int64_t at, double value);
/* The course of values in block characters, one cell each; max is the full cell. */
void cli_course(const double *cells, size_t n, double max, struct hearth_buf *out);
/* 12.34%, <0.01%, +1.20% with sign; of `whole`. `out` holds 32 bytes. */
void cli_percent(double part, double whole, bool sign, char out[32]);
/*
 * How texts for people are printed: is_ascii replaces block and box characters; a text of more than
 * page_lines lines is shown by a pager (0: never).
 */
void cli_set_screen(bool is_ascii, int page_lines);
/* Writes and flushes a text for people; CLI_FAILED if standard output is closed. Releases out. */
enum cli_exit cli_print(struct hearth_buf *out);
/* The same for programs: not a byte is changed. */
enum cli_exit cli_print_exact(struct hearth_buf *out);
/*
 * Writes bytes into a file and says so on standard error, with `what` before the number of bytes; NULL or "-":
 * standard output. CLI_FAILED, with a message, if that fails.
 */
enum cli_exit cli_save(const char *path, struct hearth_str bytes, const char *what);

/* ---- pager.c ---- */

/* Shows a text with $PAGER, otherwise less. False: no pager runs, nothing was shown. */
bool cli_page(struct hearth_str text);

#endif
