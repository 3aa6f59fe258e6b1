/*
 * context_file.c -- contexts in the file of the user (contract: cli_settings.h).
 *
 * The file decides which server gets the user's credentials, and which command runs to read a token:
 * so only the user may write it. It is replaced by renaming, so that a reader sees the old or the
 * new one.
 */
#include "hearth/codec/yaml_reader.h"

#include "cli_settings.h"
#include "guess.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names and values ---- */

enum hearth_status cli_check_context_name(const char *name, struct hearth_err *err)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strlen(name);

    return n > 0 && n <= 64 && strspn(name, letters) == n && name[0] != '-'
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "\"%.100s\" is no name of a context: 1 to 64 letters, digits, . _ and "
                             "- make one",
                             name);
}

/* A text of one line, which hearth can write again. */
static enum hearth_status read_context_text(struct hearth_yaml *reading, const yaml_node_t *node,
                                            const char **ret)
{
    const char *text;

    HEARTH_TRY(hearth_yaml_string(reading, node, &text));
    bool is_plain = strlen(text) <= CONTEXT_TEXT_BYTES;
    for (const char *at = text; *at != '\0'; at++) {
        is_plain = is_plain && (unsigned char)*at >= ' ' && *at != 0x7f;
    }
    if (!is_plain) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: expected a text of one line, of at most %zu bytes",
                           hearth_yaml_line(node), CONTEXT_TEXT_BYTES);
    }
    *ret = text;

    return HEARTH_OK;
}

enum hearth_status cli_check_header_is_first(const struct cli_texts *headers, size_t n,
                                             struct hearth_str name, struct hearth_err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct hearth_header earlier;
        HEARTH_TRY(hearth_header_parse(hearth_str_c(headers->v[i]), &earlier, err));
        if (hearth_str_eq_nocase(earlier.name, name)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "the header " HEARTH_STR_FMT " is given twice; a context has one "
                               "value for each",
                               HEARTH_STR_ARG(name));
        }
    }

    return HEARTH_OK;
}

/* ---- reading ---- */

static enum hearth_status take_header(struct hearth_yaml *reading, void *context,
                                      struct hearth_str key, const yaml_node_t *value,
                                      bool *ret_known)
{
    struct cli_texts *headers = context;
    struct hearth_header header;
    const char *text;

    (void)ret_known;
    HEARTH_TRY(read_context_text(reading, value, &text));
    if (headers->n == HEARTH_CLIENT_MAX_HEADERS) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: the context has more than %d headers", hearth_yaml_line(value),
                           HEARTH_CLIENT_MAX_HEADERS);
    }
    char *line =
        hearth_arena_printf(reading->arena, HEARTH_STR_FMT ": %s", HEARTH_STR_ARG(key), text);
    if (line == NULL) {
        return HEARTH_FAIL_ARENA(reading->err, reading->arena);
    }
    enum hearth_status status = hearth_header_parse(hearth_str_c(line), &header, reading->err);
    if (status == HEARTH_OK && header.name.n != key.n) { /* it has a colon */
        status = HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                             "\"" HEARTH_STR_FMT "\" is no name of a header", HEARTH_STR_ARG(key));
    }
    if (status == HEARTH_OK) {
        status = cli_check_header_is_first(headers, headers->n, key, reading->err);
    }
    if (status != HEARTH_OK) {
        hearth_err_prefix(reading->err, "line %d", hearth_yaml_line(value));
        return HEARTH_INVALID_ARGUMENT;
    }
    headers->v[headers->n++] = line;

    return HEARTH_OK;
}

/* INVALID_ARGUMENT: an unknown key, with the nearest. */
static enum hearth_status refuse_key(struct hearth_yaml *reading, struct hearth_str key,
                                     const yaml_node_t *value)
{
    struct cli_guess guess;
    struct hearth_buf out;
    char name[65];

    (void)snprintf(name, sizeof name, "%.*s", (int)(key.n < 64 ? key.n : 64), key.p);
    hearth_buf_init(&out, 0);
    hearth_buf_printf(&out, "\"%s\" is unknown here", name);
    cli_guess_begin(&guess, name);
    for (size_t i = 0; i < CLI_N_SETTINGS; i++) {
        if (cli_settings[i].is_in_file) {
            cli_guess_try(&guess, hearth_str_c(cli_settings[i].key));
        }
    }
    cli_guess_try(&guess, HEARTH_STR("headers"));
    cli_guess_try(&guess, HEARTH_STR("insecure-skip-verify"));
    if (strcmp(name, "token") == 0) {
        hearth_buf_cstr(&out, ": token-file names a file with the token, token-command prints it");
    } else {
        cli_guess_say(&guess, &out);
    }
    enum hearth_status status =
        HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT, "line %d: %.*s", hearth_yaml_line(value),
                    (int)out.n, out.n > 0 ? out.p : "");
    hearth_buf_release(&out);

    return status;
}

static enum hearth_status take_setting(struct hearth_yaml *reading, void *context,
                                       struct hearth_str key, const yaml_node_t *value,
                                       bool *ret_known)
{
    struct cli_context *into = context;

    (void)ret_known;
    if (hearth_str_eq_c(key, "headers")) {
        return hearth_yaml_mapping(reading, value, take_header, &into->headers);
    }
    if (hearth_str_eq_c(key, "insecure-skip-verify")) {
        return hearth_yaml_switch(reading, value, &into->skip_verify);
    }
    for (size_t i = 0; i < CLI_N_SETTINGS; i++) {
        if (!cli_settings[i].is_in_file || !hearth_str_eq_c(key, cli_settings[i].key)) {
            continue;
        }
        HEARTH_TRY(read_context_text(reading, value, &into->values[i]));
        if (cli_settings[i].is_path && into->values[i][0] != '/') {
            return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                               "line %d: %s must be an absolute path", hearth_yaml_line(value),
                               cli_settings[i].key);
        }
        return HEARTH_OK;
    }

    return refuse_key(reading, key, value);
}

static enum hearth_status take_context(struct hearth_yaml *reading, void *context,
                                       struct hearth_str key, const yaml_node_t *value,
                                       bool *ret_known)
{
    struct cli_contexts *contexts = context;
    struct cli_context *one = &contexts->v[contexts->n];

    (void)ret_known;
    if (contexts->n == MAX_CONTEXTS) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: there are more than %d contexts", hearth_yaml_line(value),
                           MAX_CONTEXTS);
    }
    one->name = hearth_arena_strndup(reading->arena, key.p, key.n);
    if (one->name == NULL) {
        return HEARTH_FAIL_ARENA(reading->err, reading->arena);
    }
    if (cli_check_context_name(one->name, reading->err) != HEARTH_OK) {
        hearth_err_prefix(reading->err, "line %d", hearth_yaml_line(value));
        return HEARTH_INVALID_ARGUMENT;
    }
    HEARTH_TRY(hearth_yaml_mapping(reading, value, take_setting, one));
    if (one->values[CLI_SETTING_URL] == NULL) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: the context %s has no url", hearth_yaml_line(value),
                           one->name);
    }
    contexts->n++;

    return HEARTH_OK;
}

static enum hearth_status take_root_key(struct hearth_yaml *reading, void *context,
                                        struct hearth_str key, const yaml_node_t *value,
                                        bool *ret_known)
{
    struct cli_contexts *contexts = context;

    if (hearth_str_eq_c(key, "current")) {
        HEARTH_TRY(read_context_text(reading, value, &contexts->current));
        return cli_check_context_name(contexts->current, reading->err);
    }
    if (hearth_str_eq_c(key, "contexts")) {
        return hearth_yaml_is_null(value)
                   ? HEARTH_OK
                   : hearth_yaml_mapping(reading, value, take_context, contexts);
    }
    *ret_known = false;

    return HEARTH_OK;
}

enum hearth_status cli_parse_contexts(struct hearth_str text, struct hearth_arena *arena,
                                      struct cli_contexts *ret, struct hearth_err *err)
{
    /* One more, for a context that is added. */
    ret->v = hearth_arena_calloc(arena, MAX_CONTEXTS + 1, sizeof ret->v[0]);
    if (ret->v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    return text.n == 0 ? HEARTH_OK : hearth_yaml_read_text(text, arena, take_root_key, ret, err);
}

/* ---- the file ---- */

static bool has_secrets(const struct cli_contexts *contexts)
{
    for (size_t i = 0; i < contexts->n; i++) {
        bool has_command = false;
        for (size_t k = 0; k < CLI_N_SETTINGS; k++) {
            has_command = has_command || (cli_settings[k].is_token && !cli_settings[k].is_path &&
                                          contexts->v[i].values[k] != NULL);
        }
        if (has_command || contexts->v[i].headers.n > 0) {
            return true;
        }
    }

    return false;
}

static enum hearth_status check_owner(const struct stat *found, const struct cli_contexts *contexts,
                                      struct hearth_err *err)
{
    unsigned mode = (unsigned)found->st_mode & 07777u;

    if (found->st_uid != geteuid() && found->st_uid != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the file belongs to another user");
    }
    if ((mode & 022u) != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "others may write the file (mode %04o): chmod 600 %.200s", mode,
                           contexts->path);
    }

    return (mode & 044u) == 0 || !has_secrets(contexts)
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "others may read the file, which has secrets (mode %04o): chmod 600 "
                             "%.200s",
                             mode, contexts->path);
}

static enum hearth_status read_open_file(struct cli *cli, FILE *file, struct cli_contexts *contexts)
{
    struct stat found;

    if (fstat(fileno(file), &found) != 0 || !S_ISREG(found.st_mode) ||
        (size_t)found.st_size > CONTEXT_FILE_BYTES) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "not a regular file of at most %zu KiB", CONTEXT_FILE_BYTES >> 10);
    }

    /* A file that grows meanwhile is cut. */
    char *text = hearth_arena_alloc(&cli->arena, (size_t)found.st_size + 1);
    if (text == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    size_t n = fread(text, 1, (size_t)found.st_size, file);
    HEARTH_TRY(cli_parse_contexts(hearth_str_n(text, n), &cli->arena, contexts, &cli->err));

    return n == 0 ? HEARTH_OK : check_owner(&found, contexts, &cli->err);
}

enum hearth_status cli_read_contexts(struct cli *cli, struct cli_contexts *ret)
{
    struct cli_contexts contexts = {
        .path = cli_user_path(cli, "XDG_CONFIG_HOME", ".config", "config.yaml")};
    char reason[128];

    FILE *file = contexts.path == NULL ? NULL : fopen(contexts.path, "rbe");
    if (file == NULL && contexts.path != NULL && errno != ENOENT && errno != ENOTDIR) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "%.200s: %s", contexts.path,
                           strerror_r(errno, reason, sizeof reason));
    }

    if (file == NULL) {
        HEARTH_TRY(cli_parse_contexts(hearth_str_n(NULL, 0), &cli->arena, &contexts, &cli->err));
    } else {
        enum hearth_status status = read_open_file(cli, file, &contexts);
        (void)fclose(file);
        if (status != HEARTH_OK) {
            hearth_err_prefix(&cli->err, "%.200s", contexts.path);
            return status;
        }
    }
    *ret = contexts;

    return HEARTH_OK;
}

enum hearth_status cli_find_context(struct cli *cli, const struct cli_contexts *contexts,
                                    const char *name, struct cli_context **ret)
{
    struct cli_guess guess;
    struct hearth_buf out;

    cli_guess_begin(&guess, name);
    for (size_t i = 0; i < contexts->n; i++) {
        if (strcmp(contexts->v[i].name, name) == 0) {
            *ret = &contexts->v[i];
            return HEARTH_OK;
        }
        cli_guess_try(&guess, hearth_str_c(contexts->v[i].name));
    }

    hearth_buf_init(&out, 0);
    cli_guess_say(&guess, &out);
    enum hearth_status status =
        HEARTH_FAIL(&cli->err, HEARTH_NOT_FOUND, "%.200s has no context \"%.64s\"%.*s",
                    contexts->path == NULL ? "this user" : contexts->path, name, (int)out.n,
                    out.n > 0 ? out.p : "");
    hearth_buf_release(&out);

    return status;
}

/* ---- writing ---- */

/* A text of one line in single quotes, in which only the quote is special. */
static void put_quoted(struct hearth_buf *out, const char *text, size_t n)
{
    hearth_buf_byte(out, '\'');
    for (size_t i = 0; i < n; i++) {
        hearth_buf_cstr(out, text[i] == '\'' ? "'" : "");
        hearth_buf_byte(out, (unsigned char)text[i]);
    }
    hearth_buf_cstr(out, "'\n");
}

static void put_context(struct hearth_buf *out, const struct cli_context *context)
{
    hearth_buf_printf(out, "  '%s':\n", context->name);
    for (size_t i = 0; i < CLI_N_SETTINGS; i++) {
        if (context->values[i] != NULL) {
            hearth_buf_printf(out, "    %s: ", cli_settings[i].key);
            put_quoted(out, context->values[i], strlen(context->values[i]));
        }
    }
    hearth_buf_cstr(out, context->skip_verify ? "    insecure-skip-verify: true\n" : "");
    hearth_buf_cstr(out, context->headers.n > 0 ? "    headers:\n" : "");
    for (size_t i = 0; i < context->headers.n; i++) {
        struct hearth_str line = hearth_str_c(context->headers.v[i]);
        size_t colon = hearth_str_find(line, ':', 0);
        struct hearth_str value =
            hearth_str_trim(hearth_str_n(line.p + colon + 1, line.n - colon - 1));
        hearth_buf_printf(out, "      %.*s: ", (int)colon, line.p);
        put_quoted(out, value.p, value.n);
    }
}

void cli_format_contexts(const struct cli_contexts *contexts, struct hearth_buf *out)
{
    hearth_buf_cstr(out, "# Written by `hearth context`, which keeps no comments.\n");
    if (contexts->current != NULL) {
        hearth_buf_printf(out, "current: '%s'\n", contexts->current);
    }
    hearth_buf_cstr(out, "contexts:\n");
    for (size_t i = 0; i < contexts->n; i++) {
        put_context(out, &contexts->v[i]);
    }
}

enum hearth_status cli_write_contexts(struct cli *cli, const struct cli_contexts *contexts)
{
    struct hearth_buf out;

    if (contexts->path == NULL) {
        return HEARTH_FAIL(&cli->err, HEARTH_FAILED_PRECONDITION,
                           "there is no place for the file: HOME is not set");
    }
    hearth_buf_init(&out, CONTEXT_FILE_BYTES);
    cli_format_contexts(contexts, &out);

    /* A link, such as into a repository of settings, stays one. */
    const char *path = contexts->path;
    if (hearth_buf_failed(&out)) {
        hearth_buf_release(&out);
        return HEARTH_FAIL(&cli->err, HEARTH_NO_MEMORY, "the file would have more than %zu KiB",
                           CONTEXT_FILE_BYTES >> 10);
    }
    char *room = hearth_arena_alloc(&cli->arena, PATH_MAX);
    const char *real = room == NULL ? NULL : realpath(path, room);
    enum hearth_status status =
        cli_replace_file(cli, real == NULL ? path : real, hearth_buf_view(&out));
    hearth_buf_release(&out);

    return status;
}
