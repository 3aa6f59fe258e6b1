/* mcp_tools.c -- the table of tools: their schemas, and arguments as fields of a call. */
#include "hearth/codec/json_reader.h"

#include "cli.h"
#include "mcp.h"
#include "word_list.h"

static const struct mcp_arg g_args[] = {
#define ARG(key, kind, field, values, help) \
    {key, MCP_##kind, offsetof(struct mcp_call, field), values, help},
#include "mcp_tools.def"
};

static const struct mcp_tool g_tools[] = {
#define TOOL(name, run, arguments, required, is_task, is_read, help) \
    {name, run, arguments, required, is_task, is_read, help},
#include "mcp_tools.def"
};

const struct mcp_tool *mcp_find_tool(struct hearth_str name, bool allow_tasks)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_tools); i++) {
        if (hearth_str_eq_c(name, g_tools[i].name) && (allow_tasks || !g_tools[i].is_task)) {
            return &g_tools[i];
        }
    }
    return NULL;
}

/* ---- schemas ---- */

static void write_values(const char *values, struct hearth_json *out)
{
    struct hearth_str value;
    const char *at = values;

    hearth_json_key_c(out, "enum");
    hearth_json_array(out);
    while (cli_next_value(values, &at, &value)) {
        hearth_json_string(out, value);
    }
    hearth_json_array_end(out);
}

static void write_argument(const struct mcp_arg *arg, struct hearth_json *out)
{
    static const char *const types[] = {"string", "array", "integer"};

    hearth_json_key_c(out, arg->key);
    hearth_json_object(out);
    hearth_json_key_c(out, "type");
    hearth_json_string_c(out, types[arg->kind]);
    hearth_json_key_c(out, "description");
    hearth_json_string_c(out, arg->help);
    if (arg->values != NULL) {
        write_values(arg->values, out);
    }
    if (arg->kind == MCP_LIST) {
        hearth_json_key_c(out, "items");
        hearth_json_object(out);
        hearth_json_key_c(out, "type");
        hearth_json_string_c(out, "string");
        hearth_json_object_end(out);
    }
    if (arg->kind == MCP_COUNT) {
        hearth_json_key_c(out, "minimum");
        hearth_json_i64(out, 1);
        hearth_json_key_c(out, "maximum");
        hearth_json_i64(out, MCP_MAX_COUNT);
    }
    hearth_json_object_end(out);
}

static void write_schema(const struct mcp_tool *tool, struct hearth_json *out)
{
    hearth_json_object(out);
    hearth_json_key_c(out, "type");
    hearth_json_string_c(out, "object");
    hearth_json_key_c(out, "properties");
    hearth_json_object(out);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_args); i++) {
        if (cli_list_has(tool->arguments, g_args[i].key)) {
            write_argument(&g_args[i], out);
        }
    }
    hearth_json_object_end(out);

    hearth_json_key_c(out, "required");
    hearth_json_array(out);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_args); i++) {
        if (cli_list_has(tool->required, g_args[i].key)) {
            hearth_json_string_c(out, g_args[i].key);
        }
    }
    hearth_json_array_end(out);
    hearth_json_key_c(out, "additionalProperties");
    hearth_json_bool(out, false);
    hearth_json_object_end(out);
}

void mcp_write_tools(bool allow_tasks, struct hearth_json *out)
{
    hearth_json_array(out);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_tools); i++) {
        const struct mcp_tool *tool = &g_tools[i];
        if (tool->is_task && !allow_tasks) {
            continue;
        }
        hearth_json_object(out);
        hearth_json_key_c(out, "name");
        hearth_json_string_c(out, tool->name);
        hearth_json_key_c(out, "description");
        hearth_json_string_c(out, tool->help);
        hearth_json_key_c(out, "inputSchema");
        write_schema(tool, out);
        hearth_json_key_c(out, "annotations");
        hearth_json_object(out);
        hearth_json_key_c(out, "readOnlyHint");
        hearth_json_bool(out, tool->is_read);
        hearth_json_key_c(out, "destructiveHint");
        hearth_json_bool(out, false);
        hearth_json_key_c(out, "openWorldHint");
        hearth_json_bool(out, false);
        hearth_json_object_end(out);
        hearth_json_object_end(out);
    }
    hearth_json_array_end(out);
}

/* ---- arguments ---- */

static const struct mcp_arg *find_argument(const struct mcp_tool *tool, struct hearth_str key)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_args); i++) {
        if (hearth_str_eq_c(key, g_args[i].key) && cli_list_has(tool->arguments, g_args[i].key)) {
            return &g_args[i];
        }
    }
    return NULL;
}

static void fail_unknown(const struct mcp_tool *tool, struct hearth_str key,
                         struct hearth_json_reader *r)
{
    hearth_json_reader_fail(r, "%s has no argument \"" HEARTH_STR_FMT "\"; it takes: %s",
                            tool->name, HEARTH_STR_ARG(key), tool->arguments);
}

static bool is_allowed(const struct mcp_arg *arg, struct hearth_str text)
{
    struct hearth_str value;
    const char *at = arg->values;

    while (arg->values != NULL && cli_next_value(arg->values, &at, &value)) {
        if (hearth_str_eq(text, value)) {
            return true;
        }
    }
    return arg->values == NULL;
}

/* A text of one of the allowed values, in the arena of the call. */
static const char *read_argument_text(const struct mcp_arg *arg, struct hearth_json_reader *r,
                                      struct mcp_call *call)
{
    if (hearth_json_reader_peek(r) != '"') {
        hearth_json_reader_fail(r, "the argument \"%s\" must be %s", arg->key,
                                arg->kind == MCP_LIST ? "an array of strings" : "a string");
        return NULL;
    }
    struct hearth_arena *arena = &call->cli.arena;
    struct hearth_str text = hearth_arena_str(arena, hearth_json_reader_text(r, arena));
    if (text.p == NULL && !hearth_json_reader_failed(r)) {
        hearth_json_reader_fail_arena(r, arena);
    }

    if (!is_allowed(arg, text)) {
        hearth_json_reader_fail(r, "the argument \"%s\" must be one of %s", arg->key, arg->values);
    }

    return text.p;
}

static void read_list_text(const struct mcp_arg *arg, struct hearth_json_reader *r,
                           struct mcp_call *call, struct cli_texts *list)
{
    if (list->n == HEARTH_ARRAY_LEN(list->v)) {
        hearth_json_reader_fail(r, "the argument \"%s\" has more than %zu texts", arg->key,
                                HEARTH_ARRAY_LEN(list->v));
        return;
    }
    list->v[list->n++] = read_argument_text(arg, r, call);
}

/* A repeated member adds its texts to those of the members before. */
static void read_list(const struct mcp_arg *arg, struct hearth_json_reader *r,
                      struct mcp_call *call, struct cli_texts *list)
{
    if (hearth_json_reader_peek(r) == '"') {
        read_list_text(arg, r, call, list);
        return;
    }
    hearth_json_reader_array(r);
    while (hearth_json_reader_element(r)) {
        read_list_text(arg, r, call, list);
    }
}

static void read_argument(const struct mcp_arg *arg, struct hearth_json_reader *r,
                          struct mcp_call *call)
{
    char *field = (char *)call + arg->at;

    if (hearth_json_reader_peek(r) == 'n') {
        hearth_json_reader_skip(r); /* null: not given */
        return;
    }
    if (arg->kind == MCP_LIST) {
        read_list(arg, r, call, (struct cli_texts *)(void *)field);
        return;
    }
    if (arg->kind == MCP_TEXT) {
        const char *text = read_argument_text(arg, r, call);
        memcpy(field, &text, sizeof text);
        return;
    }

    int64_t count = hearth_json_reader_peek(r) == '0' ? hearth_json_reader_i64(r) : 0;
    if (count < 1 || count > MCP_MAX_COUNT) {
        hearth_json_reader_fail(r, "the argument \"%s\" must be a whole number from 1 to %d",
                                arg->key, MCP_MAX_COUNT);
    }
    memcpy(field, &count, sizeof count);
}

/* Fails if a required argument is missing. Required ones are texts. */
static enum hearth_status check_required(const struct mcp_tool *tool, struct mcp_call *call)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_args); i++) {
        const char *text;
        memcpy(&text, (char *)call + g_args[i].at, sizeof text);
        if (cli_list_has(tool->required, g_args[i].key) && (text == NULL || text[0] == '\0')) {
            return HEARTH_FAIL(&call->cli.err, HEARTH_INVALID_ARGUMENT,
                               "%s needs the argument \"%s\": %s", tool->name, g_args[i].key,
                               g_args[i].help);
        }
    }
    return HEARTH_OK;
}

enum hearth_status mcp_read_arguments(const struct mcp_tool *tool, struct hearth_str text,
                                      struct mcp_call *call)
{
    struct hearth_json_reader r;
    struct hearth_str key;

    hearth_json_reader_init(&r, text.n == 0 ? HEARTH_STR("{}") : text);
    hearth_json_reader_object(&r);
    while (hearth_json_reader_member(&r, &key)) {
        const struct mcp_arg *arg = find_argument(tool, key);
        if (arg == NULL) {
            fail_unknown(tool, key, &r);
        } else {
            read_argument(arg, &r, call);
        }
    }
    HEARTH_TRY(hearth_json_reader_end(&r, &call->cli.err));

    return check_required(tool, call);
}
