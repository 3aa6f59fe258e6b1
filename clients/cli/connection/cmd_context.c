/* cmd_context.c -- hearth context: contexts of the user, and the settings that result. */
#include "hearth/codec/json_writer.h"

#include "cli_call.h"
#include "cli_messages.h"
#include "cli_settings.h"
#include "listing.h"
#include "text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- list ---- */

static bool is_current_context(const struct cli_contexts *contexts, size_t i)
{
    return contexts->current != NULL && strcmp(contexts->current, contexts->v[i].name) == 0;
}

static void json_contexts(const struct cli_contexts *contexts, struct hearth_buf *out)
{
    struct hearth_json json;

    hearth_json_init(&json, out);
    hearth_json_object(&json);
    hearth_json_key_c(&json, "file");
    hearth_json_string_c(&json, contexts->path == NULL ? "" : contexts->path);
    hearth_json_key_c(&json, "contexts");
    hearth_json_array(&json);
    for (size_t i = 0; i < contexts->n; i++) {
        const struct cli_context *one = &contexts->v[i];
        hearth_json_object(&json);
        hearth_json_key_c(&json, "name");
        hearth_json_string_c(&json, one->name);
        hearth_json_key_c(&json, "current");
        hearth_json_bool(&json, is_current_context(contexts, i));
        hearth_json_key_c(&json, "url");
        hearth_json_string_c(&json, one->values[CLI_SETTING_URL]);
        if (one->values[CLI_SETTING_TENANT] != NULL) {
            hearth_json_key_c(&json, "tenant");
            hearth_json_string_c(&json, one->values[CLI_SETTING_TENANT]);
        }
        hearth_json_object_end(&json);
    }
    hearth_json_array_end(&json);
    hearth_json_object_end(&json);
    hearth_buf_byte(out, '\n');
}

static void list_contexts(const struct cli_contexts *contexts, struct cli_listing *list)
{
    for (size_t i = 0; i < contexts->n; i++) {
        const struct cli_context *one = &contexts->v[i];
        cli_list_text(list, one->name);
        cli_list_number(list, is_current_context(contexts, i));
        cli_list_text(list, one->values[CLI_SETTING_TENANT]);
        cli_list_text(list, one->values[CLI_SETTING_URL]);
    }
}

static void print_contexts(const struct cli_contexts *contexts, struct hearth_buf *out)
{
    for (size_t i = 0; i < contexts->n; i++) {
        const struct cli_context *one = &contexts->v[i];
        const char *tenant = one->values[CLI_SETTING_TENANT];
        hearth_buf_printf(out, "%s %-20s ", is_current_context(contexts, i) ? "*" : " ", one->name);
        cli_fit(hearth_str_c(one->values[CLI_SETTING_URL]), INT_MAX, false, out);
        if (tenant != NULL) {
            hearth_buf_cstr(out, "  tenant ");
            cli_fit(hearth_str_c(tenant), INT_MAX, false, out);
        }
        hearth_buf_byte(out, '\n');
    }
}

enum cli_exit cli_context_list(struct cli *cli)
{
    struct cli_contexts contexts;
    enum hearth_status status = cli_read_contexts(cli, &contexts);

    if (status == HEARTH_OK && contexts.n == 0) {
        status = HEARTH_FAIL(&cli->err, HEARTH_NOT_FOUND,
                             "there are no contexts yet: hearth context add NAME --url URL");
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    if (cli->output == CLI_JSON) {
        struct hearth_buf out;
        hearth_buf_init(&out, 0);
        json_contexts(&contexts, &out);
        return cli_print(&out);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.is_drawn = true;
    list_contexts(&contexts, &list);
    print_contexts(&contexts, &list.foot);

    return cli_list_end(&list, NULL);
}

/* ---- show ---- */

struct shown {
    const char *setting, *value, *origin, *source; /* NULL: none */
};

/* The option, the variable or the context that gave a value. */
static const char *name_source(struct cli *cli, const char *flag, const char *variable,
                               enum cli_origin origin)
{
    switch (origin) {
    case CLI_FLAG:
        return hearth_arena_printf(&cli->arena, "--%s", flag);
    case CLI_ENVIRONMENT:
        return variable;
    case CLI_CONTEXT:
        return hearth_arena_printf(&cli->arena, "context %s", cli->context_name);
    case CLI_DEFAULT:
        break;
    }
    return NULL;
}

/* A row of a setting that has an option and perhaps a variable. */
static struct shown show_setting(struct cli *cli, const char *flag, const char *variable,
                                 const char *value, enum cli_origin origin)
{
    static const char *const origins[] = {"default", "flag", "environment", "file"};

    return (struct shown){flag, value, origins[origin], name_source(cli, flag, variable, origin)};
}

/* At most CLI_N_SETTINGS + HEARTH_CLIENT_MAX_HEADERS + 3 rows. */
static size_t list_settings(struct cli *cli, struct shown *rows)
{
    static const char hidden[] = "(not shown)";
    size_t n = 0;

    if (cli->context_name != NULL) {
        rows[n++] =
            show_setting(cli, "context", "HEARTH_CONTEXT", cli->context_name, cli->context_origin);
    }
    for (size_t i = 0; i < CLI_N_SETTINGS; i++) {
        const char *value = *cli_setting_at(cli, i);
        bool is_secret = cli_settings[i].is_token && !cli_settings[i].is_path;
        if (value != NULL) {
            rows[n++] = show_setting(cli, cli_settings[i].key, cli_settings[i].variable,
                                     is_secret ? hidden : value, cli->origins[i]);
        }
    }

    for (size_t i = 0; i < cli->n_headers; i++) {
        rows[n] = show_setting(cli, "header", NULL, hidden, cli->header_origins[i]);
        rows[n++].setting = hearth_arena_printf(&cli->arena, "header " HEARTH_STR_FMT,
                                                HEARTH_STR_ARG(cli->headers[i].name));
    }
    if (cli->skip_verify) {
        rows[n++] =
            show_setting(cli, "insecure-skip-verify", NULL, "true", cli->skip_verify_origin);
    }
    if (cli->proxy != NULL) {
        const char *at = strrchr(cli->proxy, '@');
        rows[n++] = show_setting(cli, "proxy", cli->proxy_variable,
                                 at == NULL ? cli->proxy : at + 1, CLI_ENVIRONMENT);
    }

    return n;
}

static void json_settings(const struct cli *cli, const struct shown *rows, size_t n,
                          struct hearth_buf *out)
{
    struct hearth_json json;

    hearth_json_init(&json, out);
    hearth_json_object(&json);
    hearth_json_key_c(&json, "settings");
    hearth_json_array(&json);
    for (size_t i = 0; i < n; i++) {
        hearth_json_object(&json);
        hearth_json_key_c(&json, "setting");
        hearth_json_string_c(&json, rows[i].setting);
        hearth_json_key_c(&json, "value");
        hearth_json_string_c(&json, rows[i].value);
        if (cli->origin) {
            hearth_json_key_c(&json, "origin");
            hearth_json_string_c(&json, rows[i].origin);
        }
        if (cli->origin && rows[i].source != NULL) {
            hearth_json_key_c(&json, "source");
            hearth_json_string_c(&json, rows[i].source);
        }
        hearth_json_object_end(&json);
    }
    hearth_json_array_end(&json);
    hearth_json_object_end(&json);
    hearth_buf_byte(out, '\n');
}

static void list_settings_rows(const struct cli *cli, const struct shown *rows, size_t n,
                               struct cli_listing *list)
{
    for (size_t i = 0; i < n; i++) {
        cli_list_text(list, rows[i].setting);
        cli_list_text(list, cli->origin ? rows[i].origin : NULL);
        cli_list_text(list, cli->origin ? rows[i].source : NULL);
        cli_list_text(list, rows[i].value);
    }
}

static void print_settings(const struct cli *cli, const struct shown *rows, size_t n,
                           struct hearth_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        hearth_buf_printf(out, "%-20s  ", rows[i].setting);
        cli_fit(hearth_str_c(rows[i].value), INT_MAX, false, out);
        if (cli->origin) {
            hearth_buf_printf(out, "  [%s%s%s]", rows[i].origin, rows[i].source == NULL ? "" : ": ",
                              rows[i].source == NULL ? "" : rows[i].source);
        }
        hearth_buf_byte(out, '\n');
    }
}

enum cli_exit cli_context_show(struct cli *cli)
{
    if (cli->n_args > 0 && cli->context_name != NULL) {
        return cli_usage("the context is given as an argument and as --context");
    }
    if (cli->n_args > 0) {
        cli->context_name = cli->args[0];
    }
    enum hearth_status status = cli_settle(cli);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct shown rows[CLI_N_SETTINGS + HEARTH_CLIENT_MAX_HEADERS + 3];
    size_t n = list_settings(cli, rows);
    if (cli->arena.refused) {
        return cli_fail(cli, HEARTH_FAIL_ARENA(&cli->err, &cli->arena));
    }
    if (cli->output == CLI_JSON) {
        struct hearth_buf out;
        hearth_buf_init(&out, 0);
        json_settings(cli, rows, n, &out);
        return cli_print(&out);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.is_drawn = true;
    list_settings_rows(cli, rows, n, &list);
    print_settings(cli, rows, n, &list.foot);

    return cli_list_end(&list, NULL);
}

/* ---- changes ---- */

enum cli_exit cli_context_use(struct cli *cli)
{
    struct cli_contexts contexts;
    struct cli_context *found;
    enum hearth_status status = cli_read_contexts(cli, &contexts);

    if (status == HEARTH_OK) {
        status = cli_find_context(cli, &contexts, cli->args[0], &found);
    }
    if (status == HEARTH_OK) {
        contexts.current = found->name;
        status = cli_write_contexts(cli, &contexts);
    }

    return status == HEARTH_OK ? CLI_OK : cli_fail(cli, status);
}

/* The values of the options. A path is made absolute, since commands run in any directory. */
static enum hearth_status fill_context(struct cli *cli, struct cli_context *ret)
{
    for (size_t i = 0; i < CLI_N_SETTINGS; i++) {
        const char *value = *cli_setting_at(cli, i);
        char *room = hearth_arena_alloc(&cli->arena, PATH_MAX);
        if (room == NULL) {
            return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
        }
        if (value == NULL || !cli_settings[i].is_in_file) {
            continue;
        }
        ret->values[i] = cli_settings[i].is_path ? realpath(value, room) : value;
        if (ret->values[i] == NULL) {
            return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "there is no %s %.200s",
                               cli_settings[i].key, value);
        }
    }
    ret->headers = cli->header_texts;
    ret->skip_verify = cli->skip_verify;

    return HEARTH_OK;
}

/* Refuses what would be refused at each use: a client is made, and connects to nothing. */
static enum hearth_status check_context(struct cli *cli)
{
    struct hearth_client_options options;
    struct hearth_client *client = NULL;
    struct hearth_client_error error;

    for (size_t i = 0; i < cli->header_texts.n; i++) {
        cli->header_lines[i] = cli->header_texts.v[i];
        HEARTH_TRY(
            hearth_header_parse(hearth_str_c(cli->header_lines[i]), &cli->headers[i], &cli->err));
        HEARTH_TRY(
            cli_check_header_is_first(&cli->header_texts, i, cli->headers[i].name, &cli->err));
    }
    cli->n_headers = cli->header_texts.n;
    cli_client_options(cli, &options);
    if (hearth_client_new(&options, &client, &error) != HEARTH_CLIENT_OK) {
        return hearth_call_error_in(&error, &cli->err);
    }
    hearth_client_free(client);

    return HEARTH_OK;
}

static enum hearth_status add_context(struct cli *cli)
{
    struct cli_contexts contexts;
    struct cli_context *found;

    HEARTH_TRY(cli_check_context_name(cli->args[0], &cli->err));
    HEARTH_TRY(cli_read_contexts(cli, &contexts));
    if (cli_find_context(cli, &contexts, cli->args[0], &found) == HEARTH_OK) {
        return HEARTH_FAIL(
            &cli->err, HEARTH_ALREADY_EXISTS,
            "there is a context %s already: hearth context delete %s, or edit %.200s", cli->args[0],
            cli->args[0], contexts.path);
    }
    if (contexts.n == MAX_CONTEXTS) {
        return HEARTH_FAIL(&cli->err, HEARTH_FAILED_PRECONDITION, "there are %d contexts already",
                           MAX_CONTEXTS);
    }

    struct cli_context *one = &contexts.v[contexts.n++];
    one->name = cli->args[0];
    HEARTH_TRY(fill_context(cli, one));
    HEARTH_TRY(check_context(cli));
    contexts.current = contexts.current == NULL ? one->name : contexts.current;
    HEARTH_TRY(cli_write_contexts(cli, &contexts));
    (void)fprintf(stderr, "%s: stored in %s%s\n", one->name, contexts.path,
                  strcmp(contexts.current, one->name) == 0 ? ", and used from now on" : "");

    return HEARTH_OK;
}

enum cli_exit cli_context_add(struct cli *cli)
{
    if (cli->url == NULL) {
        return cli_usage("--url is missing");
    }
    if (cli->token_file != NULL && cli->token_command != NULL) {
        return cli_usage("--token-file and --token-command cannot be combined");
    }
    enum hearth_status status = add_context(cli);

    return status == HEARTH_OK ? CLI_OK : cli_fail(cli, status);
}

static enum hearth_status delete_contexts(struct cli *cli)
{
    struct cli_contexts contexts;

    HEARTH_TRY(cli_read_contexts(cli, &contexts));
    for (size_t i = 0; i < cli->n_args; i++) {
        struct cli_context *found;
        HEARTH_TRY(cli_find_context(cli, &contexts, cli->args[i], &found));
        if (contexts.current != NULL && strcmp(contexts.current, found->name) == 0) {
            contexts.current = NULL;
        }
        size_t n_behind = (size_t)(contexts.v + contexts.n - (found + 1));
        memmove(found, found + 1, n_behind * sizeof *found);
        contexts.n--;
    }

    return cli_write_contexts(cli, &contexts);
}

enum cli_exit cli_context_delete(struct cli *cli)
{
    enum hearth_status status = delete_contexts(cli);
    return status == HEARTH_OK ? CLI_OK : cli_fail(cli, status);
}
