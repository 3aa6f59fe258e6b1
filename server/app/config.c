/*
 * config.c -- reads the options of options.def from defaults, file, environment and flags, in this
 * order: a later source overrides an earlier one.
 */
#include "hearth/front/listen_text.h"
#include "hearth/selector/timeexpr.h"

#include "config_options.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_FILE_BYTES (1024 * 1024)
#define MIN_GRPC_QUOTA (INT64_C(256) * 1024 * 1024)

static const struct hearth_option *find_option(struct hearth_str flag)
{
    for (size_t i = 0; i < hearth_n_options; i++) {
        if (hearth_options[i].flag != NULL && hearth_str_eq_c(flag, hearth_options[i].flag)) {
            return &hearth_options[i];
        }
    }

    return NULL;
}

/*
 * The option of a variable: "limits-profile" means limits.profile, because names of variables have
 * no dots.
 */
static const struct hearth_option *find_variable_option(const char *flag)
{
    for (size_t i = 0; i < hearth_n_options; i++) {
        const char *name = hearth_options[i].flag;
        size_t n = 0;
        while (name != NULL && name[n] != '\0' && (name[n] == '.' ? '-' : name[n]) == flag[n]) {
            n++;
        }
        if (name != NULL && name[n] == '\0' && flag[n] == '\0') {
            return &hearth_options[i];
        }
    }

    return NULL;
}

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

/* Set one option from text. `from`: place of the text, for messages. `more`: append to a list. */
static enum hearth_status set_option(struct hearth_config *config,
                                     const struct hearth_option *option, struct hearth_str text,
                                     const char *from, bool more, struct hearth_err *err)
{
    assert(option->flag != NULL && from != NULL);

    void *to = find_member(config, option);
    bool ok = false;
    const char *wanted = "";
    const char *copy;

    switch (option->kind) {
    case TEXT:
    case SECRET:
    case TOKEN:
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
            option->kind == SECRET || option->kind == TOKEN ? "***" : quote_text(config, text),
            wanted);
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
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%s: expected \"key = value\", found \"%s\"", from,
                           quote_text(config, line));
    }

    /* The value may be in double quotes, which preserve white space. */
    struct hearth_str key = hearth_str_trim(hearth_str_n(line.p, eq));
    struct hearth_str value = hearth_str_trim(hearth_str_n(line.p + eq + 1, line.n - eq - 1));
    if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"') {
        value = hearth_str_n(value.p + 1, value.n - 2);
    }

    const struct hearth_option *option = find_option(key);
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

static enum hearth_status load_file(struct hearth_config *config, const char *path,
                                    struct hearth_err *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "cannot open configuration file \"%s\": %s", path,
                           strerrordesc_np(errno));
    }

    char *text = hearth_arena_alloc(&config->arena, MAX_FILE_BYTES);
    size_t n = text == NULL ? 0 : fread(text, 1, MAX_FILE_BYTES, file);
    bool failed = ferror(file) != 0;
    int saved = errno;
    (void)fclose(file);
    if (failed) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "cannot read configuration file \"%s\": %s", path,
                           strerrordesc_np(saved));
    }

    if (text == NULL || n == MAX_FILE_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "configuration file \"%s\" is larger than 1 MiB", path);
    }

    /* Each line, with its number for messages. */
    struct hearth_str all = {text, n};
    unsigned number = 1;
    for (size_t at = 0; at < n; number++) {
        size_t end = hearth_str_find(all, '\n', at);
        const char *from = hearth_arena_printf(&config->arena, "%s:%u", path, number);
        HEARTH_TRY(
            load_line(config, hearth_str_n(text + at, end - at), from == NULL ? path : from, err));
        at = end + 1;
    }

    return HEARTH_OK;
}

/* max-samples for HEARTH_MAX_SAMPLES; false for variables of other programs. */
static bool make_flag(struct hearth_str name, char out[64])
{
    static const char prefix[] = "HEARTH_";

    if (!hearth_str_starts(name, HEARTH_STR("HEARTH_"))) {
        return false;
    }

    size_t n = 0;
    for (size_t i = sizeof prefix - 1; i < name.n && n < 63; i++) { /* longer names are no flags */
        char c = name.p[i];
        out[n++] = (char)(c == '_' ? '-' : c >= 'A' && c <= 'Z' ? c + 32 : c);
    }

    out[n] = '\0';

    return true;
}

/* True for variables of the client (clients/cli), which may be in the same environment. */
static bool is_client_variable(const char *flag)
{
    static const char *const names[] = {"config",  "url",       "tenant",
                                        "ca-file", "cert-file", "key-file"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        if (strcmp(flag, names[i]) == 0) {
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
        char flag[64];
        if (eq == pair.n || !make_flag(hearth_str_n(pair.p, eq), flag) ||
            is_client_variable(flag)) {
            continue;
        }

        const struct hearth_option *option = find_variable_option(flag);
        if (option == NULL) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "environment: unknown variable \"%s\"",
                               quote_text(config, hearth_str_n(pair.p, eq)));
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
    const struct hearth_option *option = find_option(*ret_flag);
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
            const struct hearth_option *option = find_option(flag);
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
        const struct hearth_option *option = find_option(hearth_str_c(g_pyroscope[i].flag));
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

static enum hearth_status check_options(struct hearth_config *config, struct hearth_err *err)
{
    if (config->listen == NULL || config->listen[0] == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "listen: at least one address is needed");
    }
    if (strcmp(config->log_format, "logfmt") != 0 && strcmp(config->log_format, "json") != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "log-format must be logfmt or json");
    }
    if (!hearth_demangle_parse(config->demangle, &config->limits.demangle)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "demangle must be full, simple or none");
    }

    HEARTH_TRY(read_tls_options(config, err));
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
    config->front.max_request_bytes = config->limits.max_request_bytes;
    config->front.max_query_memory_bytes = config->limits.max_query_memory_bytes;

    config->store.url = config->database_url;
    config->store.n_committers = clamp_to_unsigned(config->committers);
    config->store.max_readers = clamp_to_unsigned(config->readers);
    config->store.max_batch_rows = (size_t)config->max_batch_rows;
    config->store.max_queue_rows = (size_t)config->max_queue_rows;
    config->store.max_queue_bytes = (size_t)config->max_queue_bytes;
    config->store.max_span_queue_bytes = (size_t)config->max_span_queue_bytes;
    config->store.ingest_dict_bytes = (size_t)config->ingest_dict_bytes;
    config->store.read_dict_bytes = (size_t)config->read_dict_bytes;
    config->store.label_index_bytes = (size_t)config->label_index_bytes;
    config->store.max_series = (size_t)config->limits.max_series;
    config->store.statement_timeout_ms = config->statement_timeout_ns / 1000000;
    config->store.read_url =
        config->read_database_url[0] == '\0' ? NULL : config->read_database_url;
}

static enum hearth_status set_default_data_dir(struct hearth_config *config, const char *home,
                                               bool root, struct hearth_err *err)
{
    if (config->data_dir[0] != '\0' || config->database_url[0] != '\0') {
        return HEARTH_OK;
    }

    if (root || home == NULL) {
        config->data_dir = "/var/lib/hearth";
    } else {
        config->data_dir = hearth_arena_printf(&config->arena, "%s/.local/share/hearth", home);
    }

    return config->data_dir == NULL ? HEARTH_FAIL_ARENA(err, &config->arena) : HEARTH_OK;
}

enum hearth_status hearth_config_load(struct hearth_config *config, int argc, char *const *argv,
                                      char *const *environment, struct hearth_err *err)
{
    assert(environment != NULL);

    *config = (struct hearth_config){0};
    hearth_arena_init(&config->arena, 0);
    hearth_front_options_init(&config->front);
    hearth_store_options_init(&config->store);
    hearth_limits_init(&config->limits);
    config->origins =
        hearth_arena_calloc(&config->arena, hearth_n_options, sizeof config->origins[0]);
    if (config->origins == NULL) {
        return HEARTH_FAIL_ARENA(err, &config->arena);
    }

    /* --config first, then all sources in their order. */
    const char *file = find_variable(environment, "HEARTH_CONFIG");
    HEARTH_TRY(load_defaults(config, err));
    HEARTH_TRY(load_flags(config, argc, argv, &file, err));
    if (config->want_help || config->want_version) {
        return HEARTH_OK;
    }
    if (file != NULL) {
        HEARTH_TRY(load_file(config, file, err));
    }

    HEARTH_TRY(load_environment(config, environment, err));
    HEARTH_TRY(load_flags(config, argc, argv, NULL, err));
    HEARTH_TRY(load_limits_profile(config, err));
    HEARTH_TRY(
        set_default_data_dir(config, find_variable(environment, "HOME"), geteuid() == 0, err));
    HEARTH_TRY(check_options(config, err));
    copy_to_layers(config);

    return hearth_listen_join(config->listen, &config->arena, &config->front.listen, err);
}

void hearth_config_release(struct hearth_config *config)
{
    hearth_arena_release(&config->arena);
}
