/*
 * cmd_mcp.c -- hearth mcp: a server of the Model Context Protocol on standard input and output.
 *
 * A message is a line of JSON-RPC 2.0. Messages are handled one after the other. Standard output
 * carries the protocol alone: everything else that this process prints there is moved to standard
 * error. A tool that fails answers with `isError` and the message that the command line would print,
 * so that the model can correct its call; JSON-RPC errors are for messages that are not calls of tools.
 *
 * Source: modelcontextprotocol.io, revisions of g_handshakes, and 2026-07-28, in which each request
 *         names its version (server/discover instead of initialize). Batches of 2025-03-26 are
 *         refused.
 */
#include "hearth/base/clock.h"

#include "cli_messages.h"
#include "mcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MODERN         "2026-07-28"
#define MAX_CALL_BYTES ((size_t)1 << 30)

/* Revisions that begin with `initialize`, the newest last. */
static const char *const g_handshakes[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};

static const char g_instructions[] =
    "Hearth stores profiles of running programs: where their CPU time, memory and locks went. "
    "Begin "
    "with `services`, then `top` or `flame_slice` of one service. Go deeper with the `frame` "
    "handles "
    "of flame_slice, and from a function with `sandwich`. `diff` says what changed and whether it "
    "is "
    "beyond noise: report only changes beyond noise as changes. `history` shows since when. Values "
    "are exact, in the unit of the answer; percentages are of the whole selection. Answers are "
    "small: `cut` says what was left out. Times are UTC.";

enum {
    PARSE_ERROR = -32700,
    INVALID_REQUEST = -32600,
    NO_METHOD = -32601,
    INVALID_PARAMS = -32602,
    BAD_VERSION = -32022,
};

struct session {
    struct cli *cli;
    FILE *out;
    struct hearth_buf notes; /* notes of the server to the running call */
    struct mcp_call call;
};

/* ---- reading ---- */

/*
 * Reads a line without its end. If it is longer than MCP_MAX_LINE_BYTES, the rest is skipped and
 * `line` has failed. Returns false at the end of the input.
 */
static bool read_line(FILE *from, struct hearth_buf *line)
{
    int c;

    hearth_buf_reset(line);
    while ((c = getc_unlocked(from)) != EOF && c != '\n') {
        hearth_buf_byte(line, (unsigned char)c);
    }

    return c != EOF || line->n > 0;
}

/* ---- writing ---- */

/* Begins the answer to a message: its result or its error follows. */
static void begin_answer(struct hearth_str id, const char *member, struct hearth_buf *out)
{
    hearth_buf_cstr(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    hearth_buf_str(out, id.n > 0 ? id : HEARTH_STR("null"));
    hearth_buf_printf(out, ",\"%s\":", member);
}

static void write_error(struct hearth_str id, int code, const char *text, struct hearth_buf *out)
{
    struct hearth_json json;

    begin_answer(id, "error", out);
    hearth_json_init(&json, out);
    hearth_json_object(&json);
    hearth_json_key_c(&json, "code");
    hearth_json_i64(&json, code);
    hearth_json_key_c(&json, "message");
    hearth_json_string_c(&json, text);
    if (code == BAD_VERSION) {
        hearth_json_key_c(&json, "data");
        hearth_json_object(&json);
        hearth_json_key_c(&json, "supported");
        hearth_json_array(&json);
        hearth_json_string_c(&json, MODERN);
        hearth_json_array_end(&json);
        hearth_json_object_end(&json);
    }
    hearth_json_object_end(&json);
    hearth_buf_byte(out, '}');
}

static void put_text_member(struct hearth_json *json, const char *key, const char *text)
{
    hearth_json_key_c(json, key);
    hearth_json_string_c(json, text);
}

/* What results of requests that name their version have in addition. */
static void put_modern(const struct mcp_message *m, bool is_cacheable, struct hearth_json *json)
{
    if (m->version.p == NULL && !hearth_str_eq_c(m->method, "server/discover")) {
        return;
    }
    put_text_member(json, "resultType", "complete");
    if (is_cacheable) {
        hearth_json_key_c(json, "ttlMs");
        hearth_json_i64(json, 0);
        put_text_member(json, "cacheScope", "private");
    }
}

static void put_server(struct hearth_json *json, const char *key)
{
    hearth_json_key_c(json, key);
    hearth_json_object(json);
    put_text_member(json, "name", "hearth");
    put_text_member(json, "version", HEARTH_VERSION);
    hearth_json_object_end(json);
}

static void put_abilities(struct hearth_json *json)
{
    hearth_json_key_c(json, "capabilities");
    hearth_json_object(json);
    hearth_json_key_c(json, "tools");
    hearth_json_object(json);
    hearth_json_object_end(json);
    hearth_json_object_end(json);
    put_text_member(json, "instructions", g_instructions);
}

/* ---- methods ---- */

static void answer_initialize(const struct mcp_message *m, struct hearth_json *json)
{
    /* A version that is not known here is answered with the newest; the client then decides. */
    const char *version = g_handshakes[HEARTH_ARRAY_LEN(g_handshakes) - 1];
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_handshakes); i++) {
        version = hearth_str_eq_c(m->offered, g_handshakes[i]) ? g_handshakes[i] : version;
    }

    put_text_member(json, "protocolVersion", version);
    put_abilities(json);
    put_server(json, "serverInfo");
}

static void answer_discover(struct hearth_json *json)
{
    hearth_json_key_c(json, "supportedVersions");
    hearth_json_array(json);
    hearth_json_string_c(json, MODERN);
    hearth_json_array_end(json);
    put_abilities(json);
    hearth_json_key_c(json, "_meta");
    hearth_json_object(json);
    put_server(json, MCP_META "serverInfo");
    hearth_json_object_end(json);
}

/* Runs the tool; the answer is in `text`, or the reason of a failure in call->cli.err. */
static enum hearth_status run_tool(struct session *s, const struct mcp_tool *tool,
                                   const struct mcp_message *m, struct hearth_buf *text)
{
    struct mcp_call *call = &s->call;

    HEARTH_TRY(mcp_read_arguments(tool, m->arguments, call));
    hearth_json_init(&call->answer, text);
    hearth_json_object(&call->answer);
    HEARTH_TRY(tool->run(call));
    if (s->notes.n > 0) {
        hearth_json_key_c(&call->answer, "notes");
        hearth_json_string(&call->answer, hearth_buf_view(&s->notes));
    }
    hearth_json_object_end(&call->answer);

    return hearth_buf_failed(text)
               ? HEARTH_FAIL(&call->cli.err, HEARTH_OUT_OF_RANGE,
                             "the answer is larger than %u KiB; use a smaller limit or depth",
                             MCP_MAX_ANSWER_BYTES >> 10)
               : HEARTH_OK;
}

static void answer_call(struct session *s, const struct mcp_tool *tool, const struct mcp_message *m,
                        struct hearth_json *json)
{
    struct mcp_call *call = &s->call;
    struct hearth_buf text;

    /* Begin with what the command line has set. */
    *call = (struct mcp_call){.cli = *s->cli};
    hearth_arena_init(&call->cli.arena, MAX_CALL_BYTES);
    call->cli.now_ns = hearth_clock_wall_ns();
    hearth_buf_reset(&s->notes);
    hearth_buf_init(&text, MCP_MAX_ANSWER_BYTES);

    enum hearth_status status = run_tool(s, tool, m, &text);
    if (status != HEARTH_OK) {
        cli_explain_refusal(&call->cli, status);
    }
    hearth_json_key_c(json, "content");
    hearth_json_array(json);
    hearth_json_object(json);
    put_text_member(json, "type", "text");
    hearth_json_key_c(json, "text");
    hearth_json_string(json, status == HEARTH_OK ? hearth_buf_view(&text)
                                                 : hearth_str_c(call->cli.err.msg));
    hearth_json_object_end(json);
    hearth_json_array_end(json);
    hearth_json_key_c(json, "isError");
    hearth_json_bool(json, status != HEARTH_OK);

    hearth_buf_release(&text);
    hearth_arena_release(&call->cli.arena);
}

/* Appends the answer to a request. */
static void answer_request(struct session *s, const struct mcp_message *m, struct hearth_buf *out)
{
    const char *const known[] = {"initialize", "ping", "tools/list", "tools/call",
                                 "server/discover"};
    size_t method = 0;
    const struct mcp_tool *tool = mcp_find_tool(m->tool, s->cli->allow_tasks);
    struct hearth_json json;

    /* Refuse a message that does not call an existing method. */
    while (method < HEARTH_ARRAY_LEN(known) && !hearth_str_eq_c(m->method, known[method])) {
        method++;
    }
    if (method == HEARTH_ARRAY_LEN(known)) {
        write_error(m->id, NO_METHOD, "this server has no such method", out);
        return;
    }
    if (m->version.p != NULL && !hearth_str_eq_c(m->version, MODERN)) {
        write_error(m->id, BAD_VERSION, "this server does not speak that version", out);
        return;
    }
    if (method == 3 && tool == NULL) {
        write_error(m->id, INVALID_PARAMS,
                    "there is no such tool; tools for tasks need `hearth mcp --allow-tasks`", out);
        return;
    }

    begin_answer(m->id, "result", out);
    hearth_json_init(&json, out);
    hearth_json_object(&json);
    if (method == 0) {
        answer_initialize(m, &json);
    } else if (method == 2) {
        hearth_json_key_c(&json, "tools");
        mcp_write_tools(s->cli->allow_tasks, &json);
    } else if (method == 3) {
        answer_call(s, tool, m, &json);
    } else if (method == 4) {
        answer_discover(&json);
    }
    put_modern(m, method == 2 || method == 4, &json);
    hearth_json_object_end(&json);
    hearth_buf_byte(out, '}');
}

/* Appends the answer to a line, if it needs one. */
static void handle_line(struct session *s, const struct hearth_buf *line, struct hearth_buf *out)
{
    struct hearth_str text = hearth_str_trim(hearth_buf_view(line));
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct mcp_message m;

    if (hearth_buf_failed(line)) {
        write_error((struct hearth_str){0}, INVALID_REQUEST, "a message is at most 1 MiB", out);
        return;
    }
    if (text.n == 0) {
        return;
    }
    if (text.p[0] == '[') {
        write_error((struct hearth_str){0}, INVALID_REQUEST,
                    "batches are not accepted: send one message a line", out);
        return;
    }
    if (!hearth_str_utf8_valid(text)) {
        write_error((struct hearth_str){0}, PARSE_ERROR, "the message is not UTF-8", out);
        return;
    }

    hearth_arena_init(&arena, 4 * MCP_MAX_LINE_BYTES);
    if (mcp_read_message(text, &arena, &m, &err) != HEARTH_OK) {
        write_error(m.id, m.method.n > 0 ? INVALID_PARAMS : PARSE_ERROR, err.msg, out);
    } else if (m.id.n > 0 && m.method.n > 0) {
        answer_request(s, &m, out);
    } else if (m.id.n == 0 && m.method.n == 0) {
        write_error(m.id, INVALID_REQUEST, "a message needs a method", out);
    }
    hearth_arena_release(&arena);
}

/* ---- the command ---- */

/* The standard output for the protocol alone: from now on, descriptor 1 is standard error. NULL if
 * that fails. */
static FILE *take_standard_output(void)
{
    int fd = dup(STDOUT_FILENO);

    if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        return NULL;
    }
    return fdopen(fd, "we");
}

enum cli_exit cli_mcp(struct cli *cli)
{
    struct session *s = hearth_arena_zalloc(&cli->arena, sizeof *s);
    struct hearth_buf line, out;

    if (s == NULL || (s->out = take_standard_output()) == NULL) {
        return cli_fail(cli, HEARTH_FAIL(&cli->err, HEARTH_NO_MEMORY,
                                         "cannot take standard output for the protocol"));
    }
    if (isatty(STDIN_FILENO) == 1) {
        cli_say("hearth mcp", "waits for messages of an assistant that starts it: "
                              "docs/how-to/mcp.md");
    }

    /* Models read and write times in UTC. */
    (void)setenv("TZ", "UTC", 1);
    tzset();
    s->cli = cli;
    hearth_buf_init(&s->notes, MCP_MAX_NOTES_BYTES);
    cli->kept_notes = &s->notes;
    hearth_buf_init(&line, MCP_MAX_LINE_BYTES);
    hearth_buf_init(&out, 0);
    bool is_open = true;
    while (is_open && read_line(stdin, &line)) {
        hearth_buf_reset(&out);
        handle_line(s, &line, &out);
        if (out.n > 0) {
            hearth_buf_byte(&out, '\n');
            is_open = !hearth_buf_failed(&out) && fwrite(out.p, 1, out.n, s->out) == out.n &&
                      fflush(s->out) == 0;
        }
    }
    hearth_buf_release(&line);
    hearth_buf_release(&out);
    hearth_buf_release(&s->notes);
    (void)fclose(s->out);

    return is_open ? CLI_OK : CLI_FAILED;
}
