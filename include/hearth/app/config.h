/*
 * config.h -- the configuration of hearthd: one table of options (options.def), three sources.
 *
 * Precedence, highest first: flags, environment (HEARTH_...), file (--config FILE or
 * HEARTH_CONFIG), defaults. Unknown keys, unknown environment variables that begin with HEARTH_,
 * and invalid values are errors that name source, key and line.
 *
 * The file is YAML with a section for each group of options:
 *
 *   listening:
 *     listen: [127.0.0.1:4040]
 *   ingest:
 *     max-profile-bytes: 16m
 *
 * or, as in earlier versions, lines of "key = value" without sections: a file whose first line has
 * a '=' and no ':' before it. Comments begin with #.
 *
 * Ownership: texts live in the config's arena.
 * Threads:   immutable after loading.
 */
#ifndef HEARTH_APP_CONFIG_H
#define HEARTH_APP_CONFIG_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/log.h"
#include "hearth/base/secret.h"
#include "hearth/engine/network.h"
#include "hearth/engine/uploads.h"
#include "hearth/front/front.h"
#include "hearth/store/store.h"

#define HEARTH_MAX_MISTAKES 50

struct hearth_config {
    struct hearth_arena arena;
    const char *const *listen; /* NULL-terminated */
    const char *auth;          /* parsed into front.auth_modes */
    struct hearth_access_options access;
    bool insecure_no_auth;
    struct hearth_front_options front;
    int64_t ingest_threads, query_threads, tls_threads;
    const char *tls_min_version, *tls_client_auth, *row_level_security;
    const char *data_dir, *postgres_bin, *postgres_user, *user, *sandbox;
    bool dumpable;
    struct hearth_secret *database_url, *read_database_url, *agent_token, *admin_token;
    const char *database_url_file, *read_database_url_file, *agent_token_file, *admin_token_file,
        *oidc_client_secret_file;
    struct hearth_store_options store;
    int64_t committers, readers, commit_rows, commit_prepared_rows, max_batch_rows, max_queue_rows;
    int64_t max_queue_bytes, max_span_queue_bytes, ingest_dict_bytes, read_dict_bytes,
        statement_timeout_ns;
    int64_t label_index_bytes, push_memory_bytes, queries_memory_bytes, query_cache_bytes;
    const char *const *service_labels; /* NULL-terminated */
    const char *spool_dir;             /* empty: none */
    int64_t max_spool_bytes;
    struct hearth_limits limits;
    struct hearth_network_options network;
    struct hearth_upload_options uploads;
    const char *limits_profile;
    const char *scrape_config;
    int64_t max_scrape_targets, scrape_concurrency, metrics_tenants;
    const char *demangle; /* parsed into limits.demangle */
    const char *log_level, *log_format;
    enum hearth_log_level parsed_log_level;
    int64_t shutdown_timeout_ns;
    /* for --print-config: where each option was set; same order as the table */
    const char **origins;
    const struct hearth_config
        *before;             /* of a reload: the configuration in force; otherwise NULL */
    const char *warnings[8]; /* for the log of the start */
    size_t n_warnings;
    const char *mistakes[HEARTH_MAX_MISTAKES]; /* of all sources, one sentence each */
    size_t n_mistakes;                         /* may be more than are kept */
    struct hearth_err first_mistake;
    bool want_help, want_help_all, want_version, want_print;
};

/*
 * argv[0] is ignored; environment as in environ(7). Reads all sources even if there are mistakes:
 * `mistakes` has all of them, the error is the first. INVALID_ARGUMENT names source, key and
 * reason. The caller releases the config even after a failure.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_config_load(struct hearth_config *config, int argc, char *const *argv,
                                      char *const *environment, struct hearth_err *err);
/*
 * Read the sources again. Secrets in arguments and environment were overwritten: they are copied
 * from `before`, which is kept. Those with files of their own are read again; a file that only root
 * can read is a warning, and the secret stays.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_config_reload(struct hearth_config *config,
                                        const struct hearth_config *before, int argc,
                                        char *const *argv, char *const *environment,
                                        struct hearth_err *err);
void hearth_config_release(struct hearth_config *config);

/* Overwrite the secrets in arguments and environment, which other programs and dumps show. */
void hearth_config_wipe(int argc, char *const *argv, char *const *environment);

/* True if a source sets this option, which exists. */
bool hearth_config_is_set(const struct hearth_config *config, const char *flag);

/*
 * Append the flags of the options whose values differ, separated by ", ": of those that a reload
 * applies (live), or of the others. Returns their number.
 */
size_t hearth_config_changes(const struct hearth_config *a, const struct hearth_config *b,
                             bool live, struct hearth_buf *out);
/*
 * After a reload: give options that need a restart the values that they have in `before`.
 * NO_MEMORY: the config is of no use.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_config_keep_start_values(struct hearth_config *config,
                                                   struct hearth_err *err);

/* Append the text of --help, or of --help-all. */
void hearth_config_help(bool all, struct hearth_buf *out);
/* Append the effective configuration as a YAML file: origins as comments, secrets masked. */
void hearth_config_print(const struct hearth_config *config, struct hearth_buf *out);
/* The same, of options that a source sets. */
void hearth_config_print_set(const struct hearth_config *config, struct hearth_buf *out);
/*
 * Append on one line the options whose values differ between `now`, which is in effect, and `next`:
 * first those that a reload applies, then those that need a restart. Appends nothing if all values
 * are equal. Secrets are masked.
 */
void hearth_config_write_differences(const struct hearth_config *now,
                                     const struct hearth_config *next, struct hearth_buf *out);
/* Append the part of the configuration that a caller of front wants to see; not its problem. */
void hearth_config_write_part(const struct hearth_config *config, enum hearth_front_config which,
                              struct hearth_buf *out);

/* Keep a mistake of the sources, so that the next ones are found, too; nothing for OK. */
void hearth_config_note(struct hearth_config *config, enum hearth_status status,
                        const struct hearth_err *why);
/* Print the mistakes to stderr, one a line. */
void hearth_config_print_mistakes(const struct hearth_config *config);

/*
 * A copy in `arena` with the passwords of a URL or key=value text replaced by "***"; NULL: no
 * memory.
 */
const char *hearth_config_mask_url(const char *url, struct hearth_arena *arena);

#endif
