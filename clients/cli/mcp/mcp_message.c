/* mcp_message.c -- reads the messages of a client of `hearth mcp`. Source: as of cmd_mcp.c. */
#include "hearth/codec/json_reader.h"

#include "mcp.h"

/* The next value as its JSON. */
static struct hearth_str read_raw(struct hearth_json_reader *r)
{
    (void)hearth_json_reader_peek(r); /* skips white space */
    size_t from = r->at;

    hearth_json_reader_skip(r);

    return hearth_json_reader_failed(r) ? (struct hearth_str){0}
                                        : hearth_str_n(r->text.p + from, r->at - from);
}

static void read_meta(struct hearth_json_reader *r, struct hearth_arena *arena,
                      struct mcp_message *m)
{
    struct hearth_str key;

    hearth_json_reader_object(r);
    while (hearth_json_reader_member(r, &key)) {
        if (hearth_str_eq_c(key, MCP_META "protocolVersion")) {
            m->version = hearth_json_reader_text(r, arena);
        } else {
            hearth_json_reader_skip(r);
        }
    }
}

static void read_params(struct hearth_json_reader *r, struct hearth_arena *arena,
                        struct mcp_message *m)
{
    struct hearth_str key;

    hearth_json_reader_object(r);
    while (hearth_json_reader_member(r, &key)) {
        if (hearth_str_eq_c(key, "name")) {
            m->tool = hearth_json_reader_text(r, arena);
        } else if (hearth_str_eq_c(key, "arguments")) {
            m->arguments = read_raw(r);
        } else if (hearth_str_eq_c(key, "protocolVersion")) {
            m->offered = hearth_json_reader_text(r, arena);
        } else if (hearth_str_eq_c(key, "_meta")) {
            read_meta(r, arena, m);
        } else {
            hearth_json_reader_skip(r);
        }
    }
}

static void read_id(struct hearth_json_reader *r, struct mcp_message *m)
{
    char kind = hearth_json_reader_peek(r);

    m->id = read_raw(r);
    if (kind != '"' && kind != '0') {
        m->id = (struct hearth_str){0};
        hearth_json_reader_fail(r, "the id of a request must be a string or a number");
    }
}

enum hearth_status mcp_read_message(struct hearth_str line, struct hearth_arena *arena,
                                    struct mcp_message *ret, struct hearth_err *err)
{
    struct hearth_json_reader r;
    struct hearth_str key, params = {0};

    *ret = (struct mcp_message){0};
    hearth_json_reader_init(&r, line);
    hearth_json_reader_object(&r);
    while (hearth_json_reader_member(&r, &key)) {
        if (hearth_str_eq_c(key, "id")) {
            read_id(&r, ret);
        } else if (hearth_str_eq_c(key, "method")) {
            ret->method = hearth_json_reader_text(&r, arena);
        } else if (hearth_str_eq_c(key, "params")) {
            params = read_raw(&r);
        } else {
            hearth_json_reader_skip(&r); /* also results: this server makes no requests */
        }
    }
    HEARTH_TRY(hearth_json_reader_end(&r, err));

    /* Other methods may have params of any shape. */
    bool is_known = hearth_str_eq_c(ret->method, "tools/call") ||
                    hearth_str_eq_c(ret->method, "tools/list") ||
                    hearth_str_eq_c(ret->method, "initialize");
    if (is_known && params.n > 0) {
        hearth_json_reader_init(&r, params);
        read_params(&r, arena, ret);
        HEARTH_TRY(hearth_json_reader_end(&r, err));
    }

    return HEARTH_OK;
}
