/*
 * config.c -- reads the options of options.def from defaults, file, environment and flags, in this
 * order: a later source overrides an earlier one.
 */
#include "hearth/front/listen_text.h"

#include "config_options.h"

#include <assert.h>
#include <ctype.h>
#include <unistd.h>

#define MIN_GRPC_QUOTA (INT64_C(256) * 1024 * 1024)

/* ---- sources ---- */

static enum hearth_status load_defaults(struct hearth_config *config, struct hearth_err *err)
{
    for (size_t i = 0; i < hearth_n_options; i++) {
        if (hearth_options[i].flag != NULL) {
            HEARTH_TRY(hearth_option_set(config, &hearth_options[i],
                                         hearth_str_c(hearth_options[i].def), "default", false,
                                         err));
        }
    }

    return HEARTH_OK;
}

/* True for variables of the client (clients/cli), which may be in the same environment. */
static bool is_client_variable(struct hearth_str name)
{
    static const char *const names[] = {"HEARTH_CONFIG",  "HEARTH_URL",       "HEARTH_TENANT",
                                        "HEARTH_CA_FILE", "HEARTH_CERT_FILE", "HEARTH_KEY_FILE",
                                        "HEARTH_TOKEN",   "HEARTH_TOKEN_FILE"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        if (hearth_str_eq_c(name, names[i])) {
            return true;
        }
    }

    return false;
}

/* "; did you mean HEARTH_MAX_SAMPLES?" or an empty text. */
static const char *suggest_variable(struct hearth_config *config, struct hearth_str name)
{
    char flag[64];
    size_t n = 0;

    /* As a flag. */
    for (size_t i = sizeof "HEARTH_" - 1; i < name.n && n < sizeof flag; i++, n++) {
        flag[n] = name.p[i] == '_' ? '-' : (char)tolower((unsigned char)name.p[i]);
    }
    const char *nearest = hearth_option_nearest(hearth_str_n(flag, n));
    if (nearest == NULL) {
        return "";
    }

    /* As a variable. */
    char *text = hearth_arena_printf(&config->arena, "; did you mean HEARTH_%s?", nearest);
    for (char *c = text; c != NULL && *c != '\0'; c++) {
        bool is_name = c >= text + sizeof "; did you mean HEARTH_" - 1;
        *c = !is_name ? *c : *c == '-' || *c == '.' ? '_' : (char)toupper((unsigned char)*c);
    }

    return text == NULL ? "" : text;
}

static enum hearth_status load_variable(struct hearth_config *config, struct hearth_str name,
                                        struct hearth_str value, struct hearth_err *err)
{
    const struct hearth_option *option = hearth_option_find_variable(name);

    if (option == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "environment: unknown variable \"%s\"%s",
                           hearth_config_quote(config, name), suggest_variable(config, name));
    }

    return hearth_option_set(config, option, value, HEARTH_FROM_ENVIRONMENT, false, err);
}

static void load_environment(struct hearth_config *config, char *const *environment)
{
    for (; *environment != NULL; environment++) {
        struct hearth_err why = HEARTH_ERR_INIT;
        struct hearth_str pair = hearth_str_c(*environment);
        size_t eq = hearth_str_find(pair, '=', 0);
        struct hearth_str name = hearth_str_n(pair.p, eq);
        if (eq == pair.n || !hearth_str_starts(name, HEARTH_STR("HEARTH_")) ||
            is_client_variable(name)) {
            continue;
        }

        struct hearth_str value = hearth_str_n(pair.p + eq + 1, pair.n - eq - 1);
        hearth_config_note(config, load_variable(config, name, value, &why), &why);
    }
}

/* Read an option that has no value; false for other arguments. */
static bool take_switch(struct hearth_config *config, const char *arg)
{
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
        config->want_help = true;
    } else if (strcmp(arg, "--help-all") == 0) {
        config->want_help = config->want_help_all = true;
    } else if (strcmp(arg, "--version") == 0) {
        config->want_version = true;
    } else if (strcmp(arg, "--print-config") == 0) {
        config->want_print = true;
    } else {
        return false;
    }

    return true;
}

/* The arguments of the command, and the one that is read. */
struct argument_list {
    char *const *v;
    int n, i;
};

/*
 * Split --flag=value, or --flag and the next argument; args->i moves to the last argument that was
 * used.
 */
static enum hearth_status take_flag(struct hearth_config *config, struct argument_list *args,
                                    struct hearth_str *ret_flag, struct hearth_str *ret_value,
                                    struct hearth_err *err)
{
    struct hearth_str arg = hearth_str_c(args->v[args->i]);
    if (!hearth_str_starts(arg, HEARTH_STR("--"))) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "unexpected argument \"%s\"; try --help",
                           hearth_config_quote(config, arg));
    }

    size_t eq = hearth_str_find(arg, '=', 0);
    *ret_flag = hearth_str_n(arg.p + 2, eq - 2);
    const struct hearth_option *option = hearth_option_find(*ret_flag);
    bool is_config = hearth_str_eq_c(*ret_flag, "config");
    if (option == NULL && !is_config) {
        /* The next argument is its value, unless it is an option. */
        bool takes_next = eq == arg.n && args->i + 1 < args->n &&
                          !hearth_str_starts(hearth_str_c(args->v[args->i + 1]), HEARTH_STR("--"));
        args->i += takes_next ? 1 : 0;
        const char *nearest = hearth_option_nearest(*ret_flag);
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "unknown option \"--%s\"; %s%s%s",
                           hearth_config_quote(config, *ret_flag),
                           nearest == NULL ? "try --help" : "did you mean --",
                           nearest == NULL ? "" : nearest, nearest == NULL ? "" : "?");
    }

    if (eq < arg.n) {
        *ret_value = hearth_str_n(arg.p + eq + 1, arg.n - eq - 1);
    } else if (option != NULL && option->kind == BOOL) {
        *ret_value = HEARTH_STR("true");
    } else if (args->i + 1 < args->n) {
        *ret_value = hearth_str_c(args->v[++args->i]);
    } else {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "option \"%s\" needs a value",
                           args->v[args->i]);
    }

    return HEARTH_OK;
}

/* With ret_file: only read --config. Without: set all other options, and note mistakes. */
static void load_flags(struct hearth_config *config, int argc, char *const *argv,
                       const char **ret_file)
{
    static const char from[] = HEARTH_FROM_FLAG;

    for (struct argument_list args = {argv, argc, 1}; args.i < argc; args.i++) {
        struct hearth_err why = HEARTH_ERR_INIT;
        struct hearth_str flag, value;

        if (take_switch(config, argv[args.i])) {
            continue;
        }

        enum hearth_status status = take_flag(config, &args, &flag, &value, &why);
        if (status == HEARTH_OK && hearth_str_eq_c(flag, "config")) {
            if (ret_file != NULL) {
                *ret_file = hearth_arena_strndup(&config->arena, value.p, value.n);
            }
        } else if (status == HEARTH_OK && ret_file == NULL) {
            const struct hearth_option *option = hearth_option_find(flag);
            bool more = config->origins[option - hearth_options] == from;
            status = hearth_option_set(config, option, value, from, more, &why);
        }
        if (ret_file == NULL) {
            hearth_config_note(config, status, &why);
        }
    }
}

static const struct {
    const char *flag, *value;
} g_pyroscope[] = {
#define P(flag, value, theirs) {flag, value},
#include "hearth/app/limits_pyroscope.def"
#undef P
};

/*
 * Set the limits that have no value from file, environment or flag to the defaults of the profile.
 */
static enum hearth_status load_limits_profile(struct hearth_config *config, struct hearth_err *err)
{
    struct hearth_str profile = hearth_str_c(config->limits_profile);
    if (hearth_str_eq_c(profile, "hearth")) {
        return HEARTH_OK;
    }

    if (!hearth_str_eq_c(profile, "pyroscope")) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "limits.profile must be hearth or pyroscope");
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_pyroscope); i++) {
        const struct hearth_option *option = hearth_option_find(hearth_str_c(g_pyroscope[i].flag));
        HEARTH_ASSERT(option != NULL);
        if (strcmp(config->origins[option - hearth_options], "default") == 0) {
            HEARTH_TRY(hearth_option_set(config, option, hearth_str_c(g_pyroscope[i].value),
                                         "limits.profile", false, err));
        }
    }

    return HEARTH_OK;
}

/* The value of an environment variable, or NULL. */
static const char *find_variable(char *const *environment, const char *name)
{
    size_t n = strlen(name);
    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=') {
            return *environment + n + 1;
        }
    }

    return NULL;
}

/* ---- rules that the table cannot express ---- */

static unsigned clamp_to_unsigned(int64_t value)
{
    return value > 4096 ? 4096 : (unsigned)value;
}

/* A rule that the options must follow. */
static void require(struct hearth_config *config, bool holds, const char *rule)
{
    struct hearth_err why = HEARTH_ERR_INIT;

    if (!holds) {
        hearth_config_note(config, HEARTH_FAIL(&why, HEARTH_INVALID_ARGUMENT, "%s", rule), &why);
    }
}

static void read_tls_options(struct hearth_config *config)
{
    static const char *const ways[] = {[HEARTH_CLIENT_AUTH_NONE] = "none",
                                       [HEARTH_CLIENT_AUTH_REQUEST] = "request",
                                       [HEARTH_CLIENT_AUTH_REQUIRE] = "require"};
    struct hearth_tls_options *tls = &config->front.tls;
    size_t way = 0;

    tls->only_tls13 = strcmp(config->tls_min_version, "1.3") == 0;
    require(config, tls->only_tls13 || strcmp(config->tls_min_version, "1.2") == 0,
            "tls-min-version must be 1.2 or 1.3");

    while (way < HEARTH_ARRAY_LEN(ways) && strcmp(config->tls_client_auth, ways[way]) != 0) {
        way++;
    }
    require(config, way < HEARTH_ARRAY_LEN(ways),
            "tls-client-auth must be none, request or require");

    tls->client_auth = (enum hearth_client_auth)way;
    if (tls->client_auth == HEARTH_CLIENT_AUTH_NONE && tls->client_ca_file[0] != '\0') {
        hearth_config_warn(config, "tls-client-ca-file has no effect: clients are not asked for "
                                   "certificates unless tls-client-auth is request or require");
    }
    tls->threads = clamp_to_unsigned(config->tls_threads);
}

static bool parse_row_level_security(const char *text, enum hearth_row_level_security *ret)
{
    static const char *const names[] = {[HEARTH_ROW_LEVEL_SECURITY_AUTO] = "auto",
                                        [HEARTH_ROW_LEVEL_SECURITY_REQUIRE] = "require",
                                        [HEARTH_ROW_LEVEL_SECURITY_OFF] = "off"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum hearth_row_level_security)i;
            return true;
        }
    }

    return false;
}

static void check_options(struct hearth_config *config)
{
    struct hearth_store_options *store = &config->store;

    /* Words. */
    require(config, config->listen != NULL && config->listen[0] != NULL,
            "listen: at least one address is needed");
    require(config,
            strcmp(config->log_format, "logfmt") == 0 || strcmp(config->log_format, "json") == 0,
            "log-format must be logfmt or json");
    require(config, hearth_log_parse_level(config->log_level, &config->parsed_log_level),
            "log-level must be debug, info, warn or error");
    require(config,
            strcmp(config->sandbox, "on") == 0 || strcmp(config->sandbox, "off") == 0 ||
                strcmp(config->sandbox, "log") == 0,
            "sandbox must be on, off or log");
    require(config, hearth_demangle_parse(config->demangle, &config->limits.demangle),
            "demangle must be full, simple or none");
    read_tls_options(config);
    require(config,
            parse_row_level_security(config->row_level_security, &store->row_level_security),
            "row-level-security must be auto, require or off");

    /* One tenant needs no wall, and does not pay for it. */
    if (!config->front.multitenancy &&
        store->row_level_security == HEARTH_ROW_LEVEL_SECURITY_AUTO) {
        store->row_level_security = HEARTH_ROW_LEVEL_SECURITY_OFF;
    }

    /* Numbers. */
    require(config,
            config->committers >= 1 && config->readers >= 2 && config->commit_rows >= 1 &&
                config->max_batch_rows >= 1 && config->max_queue_rows >= 1,
            "committers, commit-rows, max-batch-rows and max-queue-rows must be at least 1, "
            "readers at least 2");
    require(config, config->front.memory_quota_bytes >= MIN_GRPC_QUOTA,
            "grpc-memory-quota must be at least 256m");
    require(config, config->max_spool_bytes >= 1 << 20, "max-spool-bytes must be at least 1m");
    require(config, store->partition_days_ahead >= 1 && store->partition_days_ahead <= 30,
            "partition-days-ahead must be 1 to 30");
}

/* Copy the values whose members have other types in the options of other layers. */
static void copy_to_layers(struct hearth_config *config)
{
    config->front.ingest_threads = clamp_to_unsigned(config->ingest_threads);
    config->front.query_threads = clamp_to_unsigned(config->query_threads);
    config->front.option_help = hearth_option_help;
    config->front.max_request_bytes = config->limits.max_request_bytes;
    config->front.max_query_memory_bytes = config->limits.max_query_memory_bytes;

    config->store.url = config->database_url;
    config->store.disk_metric_tenants = config->metrics_tenants;
    config->store.n_committers = clamp_to_unsigned(config->committers);
    config->store.max_readers = clamp_to_unsigned(config->readers);
    config->store.commit_rows = (size_t)config->commit_rows;
    config->store.commit_prepared_rows = (size_t)config->commit_prepared_rows;
    config->store.max_batch_rows = (size_t)config->max_batch_rows;
    config->store.max_queue_rows = (size_t)config->max_queue_rows;
    config->store.max_queue_bytes = (size_t)config->max_queue_bytes;
    config->store.share_queue = config->front.multitenancy;
    config->store.max_span_queue_bytes = (size_t)config->max_span_queue_bytes;
    config->store.ingest_dict_bytes = (size_t)config->ingest_dict_bytes;
    config->store.read_dict_bytes = (size_t)config->read_dict_bytes;
    config->store.label_index_bytes = (size_t)config->label_index_bytes;
    config->store.max_services = (size_t)config->limits.max_services;
    config->store.max_series = (size_t)config->limits.max_series;
    config->store.statement_timeout_ms = config->statement_timeout_ns / 1000000;
    config->store.read_url = config->read_database_url;
    config->front.agents.token = config->agent_token;
}

enum hearth_status hearth_config_keep_start_values(struct hearth_config *config,
                                                   struct hearth_err *err)
{
    assert(config->before != NULL);

    HEARTH_TRY(hearth_config_keep_start_secrets(config, err));

    for (size_t i = 0; i < hearth_n_options; i++) {
        const struct hearth_option *option = &hearth_options[i];
        if (option->group == NULL && !option->is_live && !hearth_option_is_secret(option)) {
            hearth_option_copy(config, config->before, option);
        }
    }

    copy_to_layers(config);

    return HEARTH_OK;
}

static enum hearth_status set_default_data_dir(struct hearth_config *config, const char *home,
                                               bool root, struct hearth_err *err)
{
    if (config->before != NULL && config->data_dir[0] == '\0') { /* the user may have changed */
        config->data_dir = hearth_arena_printf(&config->arena, "%s", config->before->data_dir);
        return config->data_dir == NULL ? HEARTH_FAIL_ARENA(err, &config->arena) : HEARTH_OK;
    }
    if (config->data_dir[0] != '\0' || config->database_url != NULL) {
        return HEARTH_OK;
    }

    if (root || home == NULL) {
        config->data_dir = "/var/lib/hearth";
    } else {
        config->data_dir = hearth_arena_printf(&config->arena, "%s/.local/share/hearth", home);
    }

    return config->data_dir == NULL ? HEARTH_FAIL_ARENA(err, &config->arena) : HEARTH_OK;
}

static enum hearth_status load_sources(struct hearth_config *config, int argc, char *const *argv,
                                       char *const *environment, struct hearth_err *err)
{
    const char *file = find_variable(environment, "HEARTH_CONFIG");

    /* --config first, then all sources in their order. */
    HEARTH_TRY(load_defaults(config, err));
    if (config->before != NULL) {
        HEARTH_TRY(hearth_config_copy_secrets(config, err));
    }
    load_flags(config, argc, argv, &file);
    if (config->want_help || config->want_version) {
        return HEARTH_OK;
    }
    struct hearth_err why = HEARTH_ERR_INIT;
    if (file != NULL) {
        hearth_config_note(config, hearth_config_load_file(config, file, &why), &why);
    }

    load_environment(config, environment);
    load_flags(config, argc, argv, NULL);
    hearth_config_read_secrets(config, environment);

    /* What the table cannot express. */
    why = (struct hearth_err)HEARTH_ERR_INIT;
    hearth_config_note(config, load_limits_profile(config, &why), &why);
    HEARTH_TRY(
        set_default_data_dir(config, find_variable(environment, "HOME"), geteuid() == 0, err));
    check_options(config);
    copy_to_layers(config);
    why = (struct hearth_err)HEARTH_ERR_INIT;
    hearth_config_note(
        config, hearth_listen_join(config->listen, &config->arena, &config->front.listen, &why),
        &why);
    if (config->n_mistakes > 0 && err != NULL) {
        *err = config->first_mistake;
    }

    return config->n_mistakes == 0 ? HEARTH_OK : config->first_mistake.status;
}

/* before: the configuration in force, for a reload; otherwise NULL. */
static enum hearth_status load_config(struct hearth_config *config,
                                      const struct hearth_config *before, int argc,
                                      char *const *argv, char *const *environment,
                                      struct hearth_err *err)
{
    assert(environment != NULL);

    *config = (struct hearth_config){.before = before};
    hearth_arena_init(&config->arena, 0);
    hearth_front_options_init(&config->front);
    hearth_store_options_init(&config->store);
    hearth_limits_init(&config->limits);
    config->origins =
        hearth_arena_calloc(&config->arena, hearth_n_options, sizeof config->origins[0]);
    if (config->origins == NULL) {
        return HEARTH_FAIL_ARENA(err, &config->arena);
    }

    return load_sources(config, argc, argv, environment, err);
}

enum hearth_status hearth_config_load(struct hearth_config *config, int argc, char *const *argv,
                                      char *const *environment, struct hearth_err *err)
{
    return load_config(config, NULL, argc, argv, environment, err);
}

enum hearth_status hearth_config_reload(struct hearth_config *config,
                                        const struct hearth_config *before, int argc,
                                        char *const *argv, char *const *environment,
                                        struct hearth_err *err)
{
    assert(before != NULL);
    return load_config(config, before, argc, argv, environment, err);
}

void hearth_config_release(struct hearth_config *config)
{
    hearth_config_free_secrets(config);
    hearth_arena_release(&config->arena);
}
