/*
 * fuzz_cli_mcp.c -- any bytes as a message of a client of `hearth mcp`: it is refused with a reason, or calls a tool
 * with arguments within their limits.
 */
#include "hearth/codec/json_reader.h"

#include "mcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The list of tools, which says what arguments they take, is JSON. */
static void require_tools(bool allow_tasks)
{
    struct hearth_buf out;
    struct hearth_json json;
    struct hearth_json_reader r;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_buf_init(&out, 0);
    hearth_json_init(&json, &out);
    mcp_write_tools(allow_tasks, &json);
    hearth_json_reader_init(&r, hearth_buf_view(&out));
    hearth_json_reader_skip(&r);
    HEARTH_ASSERT(hearth_json_reader_end(&r, &err) == HEARTH_OK);
    hearth_buf_release(&out);
}

static void require_list(const struct cli_texts *list)
{
    HEARTH_ASSERT(list->n <= CLI_MAX_LABELS);
    for (size_t i = 0; i < list->n; i++) {
        HEARTH_ASSERT(list->v[i] != NULL);
    }
}

static void read_call(const struct mcp_message *m)
{
    static struct mcp_call call;
    const struct mcp_tool *tool = mcp_find_tool(m->tool, true);

    if (tool == NULL) {
        return;
    }

    call = (struct mcp_call){.cli = {.err = HEARTH_ERR_INIT}};
    hearth_arena_init(&call.cli.arena, 8u << 20);
    if (mcp_read_arguments(tool, m->arguments, &call) == HEARTH_OK) {
        require_list(&call.cli.functions);
        require_list(&call.cli.without);
        HEARTH_ASSERT(call.depth >= 0 && call.depth <= MCP_MAX_COUNT);
        HEARTH_ASSERT(call.cli.limit >= 0 && call.cli.limit <= MCP_MAX_COUNT);
        HEARTH_ASSERT(call.cli.offset >= 0 && call.cli.offset <= MCP_MAX_COUNT);
        HEARTH_ASSERT(tool->required[0] == '\0' || m->arguments.n > 0);
    } else {
        HEARTH_ASSERT(call.cli.err.msg[0] != '\0');
    }
    hearth_arena_release(&call.cli.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_str text = hearth_str_trim(hearth_str_n((const char *)data, size));
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct mcp_message m;

    if (size < 2) {
        require_tools(size == 1);
    }
    if (!hearth_str_utf8_valid(text)) {
        return 0;
    }

    hearth_arena_init(&arena, 4 * MCP_MAX_LINE_BYTES);
    if (mcp_read_message(text, &arena, &m, &err) == HEARTH_OK) {
        HEARTH_ASSERT(m.id.n == 0 || m.id.p[0] == '"' || m.id.p[0] == '-' ||
                      (m.id.p[0] >= '0' && m.id.p[0] <= '9'));
        read_call(&m);
    } else {
        HEARTH_ASSERT(err.msg[0] != '\0');
    }
    hearth_arena_release(&arena);

    return 0;
}
