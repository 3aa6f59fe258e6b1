/*
 * config.c -- reads the options of options.def from defaults, file, environment and flags, in this
 * order: a later source overrides an earlier one.
 */
#include "hearth/front/listen_text.h"
#include "hearth/selector/timeexpr.h"

#include "config_options.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE_BYTES (1024 * 1024)
#define MIN_GRPC_QUOTA (INT64_C(256) * 1024 * 1024)

static void *find_member(struct hearth_config *config, const struct hearth_option *option)
{
    return (char *)config + option->offset;
}

/* A text as quoted in messages: the password of a URL in the wrong place must not be shown. */
static const char *quote_text(struct hearth_config *config, struct hearth_str text)
{
    const char *copy = hearth_arena_strndup(&config->arena, text.p, text.n);
    const char *masked = copy == NULL ? NULL : hearth_config_mask_url(copy, &config->arena);
    return masked == NULL ? "***" : hearth_arena_printf(&config->arena, "%.200s", masked);
}

/* ---- values ---- */

/* A value must be one line of text, so that a printed configuration can be read again. */
static bool is_line(struct hearth_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if ((unsigned char)text.p[i] < 0x20 && text.p[i] != '\t') {
            return false;
        }
    }

    return true;
}

static bool parse_int(struct hearth_str text, bool bytes, int64_t *ret)
{
    int64_t factor = 1;
    if (bytes && text.n > 1) {
        char unit = text.p[text.n - 1];
        factor = unit == 'k' || unit == 'K'   ? 1024
                 : unit == 'm' || unit == 'M' ? 1024 * 1024
                 : unit == 'g' || unit == 'G' ? 1024 * 1024 * 1024
                                              : 1;
        text.n -= factor > 1 ? 1 : 0;
    }

    int64_t value;

    return hearth_str_to_i64(text, &value) && value >= 0 &&
           !__builtin_mul_overflow(value, factor, ret);
}

/*
 * Set *list to a NULL-terminated array in the config's arena: the comma-separated items of the text
 * or, with `more`, the present items and these. False if memory is refused.
 */
static bool parse_list(struct hearth_config *config, const char *const **list,
                       struct hearth_str text, bool more)
{
    size_t n_old = 0;
    while (more && *list != NULL && (*list)[n_old] != NULL) {
        n_old++;
    }

    /* One item more than there are commas, and NULL. */
    size_t n_max = n_old + 2;
    for (size_t i = 0; i < text.n; i++) {
        n_max += text.p[i] == ',' ? 1 : 0;
    }

    const char **items = hearth_arena_calloc(&config->arena, n_max, sizeof items[0]);
    if (items == NULL) {
        return false;
    }

    for (size_t i = 0; i < n_old; i++) {
        items[i] = (*list)[i];
    }

    /* Empty items are ignored. */
    for (size_t from = 0; from < text.n;) {
        size_t to = hearth_str_find(text, ',', from);
        struct hearth_str item = hearth_str_trim(hearth_str_n(text.p + from, to - from));
        if (item.n > 0) {
            items[n_old++] = hearth_arena_strndup(&config->arena, item.p, item.n);
        }
        from = to + 1;
    }

    *list = items;
    return true;
}

static bool parse_bool(struct hearth_str text, bool *ret)
{
    static const char *const yes[] = {"true", "1", "yes", "on"};
    static const char *const no[] = {"false", "0", "no", "off"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(yes); i++) {
        if (hearth_str_eq_c(text, yes[i])) {
            *ret = true;
            return true;
        }
        if (hearth_str_eq_c(text, no[i])) {
            *ret = false;
            return true;
        }
    }

    return false;
}

static bool parse_duration(struct hearth_str text, int64_t *ret)
{
    if (hearth_str_eq_c(text, "0")) {
        *ret = 0;
        return true;
    }
    return hearth_duration_parse(text, ret, NULL) == HEARTH_OK;
}

/* False if memory is refused or the text is too long. */
static bool replace_secret(void *to, struct hearth_str text)
{
    struct hearth_secret *old, *made = NULL;
    if (hearth_secret_new(text, &made, NULL) != HEARTH_OK) {
        return false;
    }

    memcpy(&old, to, sizeof old);
    hearth_secret_free(old);
    memcpy(to, &made, sizeof made);

    return true;
}

/* Set one option from text. `from`: place of the text, for messages. `more`: append to a list. */
static enum hearth_status set_option(struct hearth_config *config,
                                     const struct hearth_option *option, struct hearth_str text,
                                     const char *from, bool more, struct hearth_err *err)
{
    assert(option->flag != NULL && from != NULL);

    if (config->before != NULL && hearth_option_is_secret(option)) {
        return HEARTH_OK; /* overwritten where it stood; it was copied */
    }

    void *to = find_member(config, option);
    bool ok = false;
    const char *wanted = "";
    const char *copy;

    switch (option->kind) {
    case SECRET:
    case TOKEN:
        wanted = "one line of text";
        ok = is_line(text) && replace_secret(to, text);
        break;
    case TEXT:
        wanted = "one line of text";
        copy = hearth_arena_strndup(&config->arena, text.p, text.n);
        ok = copy != NULL && is_line(text);
        memcpy(to, &copy, sizeof copy);
        break;
    case LIST:
        wanted = "a list on one line";
        ok = is_line(text) && parse_list(config, to, text, more);
        break;
    case INT:
        wanted = "a whole number";
        ok = parse_int(text, false, to);
        break;
    case BYTES:
        wanted = "a number of bytes (64k, 16m, 2g)";
        ok = parse_int(text, true, to);
        break;
    case DURATION:
        wanted = "a duration (500ms, 90s, 2h, 7d)";
        ok = parse_duration(text, to);
        break;
    case BOOL:
        wanted = "true or false";
        ok = parse_bool(text, to);
        break;
    }

    if (!ok) { /* values of secrets are never shown */
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT, "%s: %s = \"%s\" is not %s", from, option->flag,
            hearth_option_is_secret(option) ? "***" : quote_text(config, text), wanted);
    }

    config->origins[option - hearth_options] = from;
    return HEARTH_OK;
}

/* ---- sources ---- */

static enum hearth_status load_defaults(struct hearth_config *config, struct hearth_err *err)
{
    for (size_t i = 0; i < hearth_n_options; i++) {
        if (hearth_options[i].flag != NULL) {
            HEARTH_TRY(set_option(config, &hearth_options[i], hearth_str_c(hearth_options[i].def),
                                  "default", false, err));
        }
    }

    return HEARTH_OK;
}

static enum hearth_status load_line(struct hearth_config *config, struct hearth_str line,
                                    const char *from, struct hearth_err *err)
{
    line = hearth_str_trim(line);
    if (line.n == 0 || line.p[0] == '#') {
        return HEARTH_OK;
    }

    size_t eq = hearth_str_find(line, '=', 0);
    if (eq == line.n) {
        /* Not quoted: it may be the rest of a secret. */
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s: expected \"key = value\"", from);
    }

    /* The value may be in double quotes, which preserve white space. */
    struct hearth_str key = hearth_str_trim(hearth_str_n(line.p, eq));
    struct hearth_str value = hearth_str_trim(hearth_str_n(line.p + eq + 1, line.n - eq - 1));
    if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"') {
        value = hearth_str_n(value.p + 1, value.n - 2);
    }

    const struct hearth_option *option = hearth_option_find(key);
    if (option == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s: unknown key \"%s\"", from,
                           quote_text(config, key));
    }

    /* A repeated key is an error, because one of the values would be ignored. */
    const char *before = config->origins[option - hearth_options];
    if (strcmp(before, "default") != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s: %s is already set at %s", from,
                           option->flag, before);
    }

    return set_option(config, option, value, from, false, err);
}

static enum hearth_status load_lines(struct hearth_config *config, struct hearth_str all,
                                     const char *path, struct hearth_err *err)
{
    /* Each line, with its number for messages. */
    unsigned number = 1;
    for (size_t at = 0; at < all.n; number++) {
        size_t end = hearth_str_find(all, '\n', at);
        const char *from = hearth_arena_printf(&config->arena, "%s:%u", path, number);
        HEARTH_TRY(
            load_line(config, hearth_str_n(all.p + at, end - at), from == NULL ? path : from, err));
        at = end + 1;
    }

    return HEARTH_OK;
}

/* True if a secret was set by a line of this file: "path:7". */
static bool has_secret_from(const struct hearth_config *config, const char *path)
{
    for (size_t i = 0; i < hearth_n_options; i++) {
        if (hearth_option_is_secret(&hearth_options[i]) &&
            hearth_str_starts(hearth_str_c(config->origins[i]), hearth_str_c(path))) {
            return true;
        }
    }

    return false;
}

static void close_if_open(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

static enum hearth_status load_file(struct hearth_config *config, const char *path,
                                    struct hearth_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (fd < 0 || fstat(fd, &about) != 0) {
        int saved = errno;
        close_if_open(fd);
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "cannot open configuration file \"%s\": %s", path,
                           strerrordesc_np(saved));
    }

    /* Without the buffers of stdio, which would keep a copy of secrets. */
    char *text = hearth_arena_alloc(&config->arena, MAX_FILE_BYTES);
    size_t n = 0;
    ssize_t got = text == NULL ? 0 : 1;
    while (got > 0 && n < MAX_FILE_BYTES) {
        got = read(fd, text + n, MAX_FILE_BYTES - n);
        n += got > 0 ? (size_t)got : 0;
    }
    int saved = errno;
    (void)close(fd);
    if (got < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "cannot read configuration file \"%s\": %s", path,
                           strerrordesc_np(saved));
    }

    if (text == NULL || n == MAX_FILE_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "configuration file \"%s\" is larger than 1 MiB", path);
    }

    enum hearth_status status = load_lines(config, hearth_str_n(text, n), path, err);
    explicit_bzero(text, n);
    if (status == HEARTH_OK && (about.st_mode & S_IROTH) != 0 && has_secret_from(config, path)) {
        hearth_config_warn(config, hearth_arena_printf(&config->arena,
                                                       "every user of this machine can read "
                                                       "\"%s\", which has a secret; chmod o-r it",
                                                       path));
    }

    return status;
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

static enum hearth_status load_environment(struct hearth_config *config, char *const *environment,
                                           struct hearth_err *err)
{
    for (; *environment != NULL; environment++) {
        struct hearth_str pair = hearth_str_c(*environment);
        size_t eq = hearth_str_find(pair, '=', 0);
        struct hearth_str name = hearth_str_n(pair.p, eq);
        if (eq == pair.n || !hearth_str_starts(name, HEARTH_STR("HEARTH_")) ||
            is_client_variable(name)) {
            continue;
        }

        const struct hearth_option *option = hearth_option_find_variable(name);
        if (option == NULL) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "environment: unknown variable \"%s\"",
                               quote_text(config, name));
        }

        HEARTH_TRY(set_option(config, option, hearth_str_n(pair.p + eq + 1, pair.n - eq - 1),
                              "environment", false, err));
    }

    return HEARTH_OK;
}

/* Read an option that has no value; false for other arguments. */
static bool take_switch(struct hearth_config *config, const char *arg)
{
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
        config->want_help = true;
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
                           quote_text(config, arg));
    }

    size_t eq = hearth_str_find(arg, '=', 0);
    *ret_flag = hearth_str_n(arg.p + 2, eq - 2);
    const struct hearth_option *option = hearth_option_find(*ret_flag);
    bool is_config = hearth_str_eq_c(*ret_flag, "config");
    if (option == NULL && !is_config) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "unknown option \"--%s\"; try --help",
                           quote_text(config, *ret_flag));
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

/* With ret_file: only read --config. Without: set all other options. */
static enum hearth_status load_flags(struct hearth_config *config, int argc, char *const *argv,
                                     const char **ret_file, struct hearth_err *err)
{
    static const char from[] = "flag";

    for (struct argument_list args = {argv, argc, 1}; args.i < argc; args.i++) {
        struct hearth_str flag, value;

        if (take_switch(config, argv[args.i])) {
            continue;
        }

        HEARTH_TRY(take_flag(config, &args, &flag, &value, err));
        if (hearth_str_eq_c(flag, "config")) {
            if (ret_file != NULL) {
                *ret_file = hearth_arena_strndup(&config->arena, value.p, value.n);
            }
        } else if (ret_file == NULL) {
            const struct hearth_option *option = hearth_option_find(flag);
            bool more = config->origins[option - hearth_options] == from;
            HEARTH_TRY(set_option(config, option, value, from, more, err));
        }
    }

    return HEARTH_OK;
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
            HEARTH_TRY(set_option(config, option, hearth_str_c(g_pyroscope[i].value),
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

static enum hearth_status read_tls_options(struct hearth_config *config, struct hearth_err *err)
{
    static const char *const ways[] = {[HEARTH_CLIENT_AUTH_NONE] = "none",
                                       [HEARTH_CLIENT_AUTH_REQUEST] = "request",
                                       [HEARTH_CLIENT_AUTH_REQUIRE] = "require"};
    struct hearth_tls_options *tls = &config->front.tls;
    size_t way = 0;

    tls->only_tls13 = strcmp(config->tls_min_version, "1.3") == 0;
    if (!tls->only_tls13 && strcmp(config->tls_min_version, "1.2") != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "tls-min-version must be 1.2 or 1.3");
    }

    while (way < HEARTH_ARRAY_LEN(ways) && strcmp(config->tls_client_auth, ways[way]) != 0) {
        way++;
    }
    if (way == HEARTH_ARRAY_LEN(ways)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "tls-client-auth must be none, request or require");
    }

    tls->client_auth = (enum hearth_client_auth)way;
    tls->threads = clamp_to_unsigned(config->tls_threads);

    return HEARTH_OK;
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

static enum hearth_status check_options(struct hearth_config *config, struct hearth_err *err)
{
    if (config->listen == NULL || config->listen[0] == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "listen: at least one address is needed");
    }
    if (strcmp(config->log_format, "logfmt") != 0 && strcmp(config->log_format, "json") != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "log-format must be logfmt or json");
    }
    if (strcmp(config->sandbox, "on") != 0 && strcmp(config->sandbox, "off") != 0 &&
        strcmp(config->sandbox, "log") != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "sandbox must be on, off or log");
    }
    if (!hearth_demangle_parse(config->demangle, &config->limits.demangle)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "demangle must be full, simple or none");
    }

    HEARTH_TRY(read_tls_options(config, err));
    if (!parse_row_level_security(config->row_level_security, &config->store.row_level_security)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "row-level-security must be auto, require or off");
    }
    /* One tenant needs no wall, and does not pay for it. */
    if (!config->front.multitenancy &&
        config->store.row_level_security == HEARTH_ROW_LEVEL_SECURITY_AUTO) {
        config->store.row_level_security = HEARTH_ROW_LEVEL_SECURITY_OFF;
    }

    if (config->committers < 1 || config->readers < 2 || config->max_batch_rows < 1 ||
        config->max_queue_rows < 1) {
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT,
            "committers, max-batch-rows and max-queue-rows must be at least 1, readers at "
            "least 2");
    }

    if (config->front.memory_quota_bytes < MIN_GRPC_QUOTA) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "grpc-memory-quota must be at least 256m");
    }

    return HEARTH_OK;
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
    config->store.n_committers = clamp_to_unsigned(config->committers);
    config->store.max_readers = clamp_to_unsigned(config->readers);
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
        HEARTH_TRY(hearth_config_copy_secrets(config, config->before, err));
    }
    HEARTH_TRY(load_flags(config, argc, argv, &file, err));
    if (config->want_help || config->want_version) {
        return HEARTH_OK;
    }
    if (file != NULL) {
        HEARTH_TRY(load_file(config, file, err));
    }

    HEARTH_TRY(load_environment(config, environment, err));
    HEARTH_TRY(load_flags(config, argc, argv, NULL, err));
    if (config->before == NULL) {
        HEARTH_TRY(hearth_config_read_secrets(config, environment, err));
    }

    /* What the table cannot express. */
    HEARTH_TRY(load_limits_profile(config, err));
    HEARTH_TRY(
        set_default_data_dir(config, find_variable(environment, "HOME"), geteuid() == 0, err));
    HEARTH_TRY(check_options(config, err));
    copy_to_layers(config);

    return hearth_listen_join(config->listen, &config->arena, &config->front.listen, err);
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
