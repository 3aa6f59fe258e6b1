/* mcp_answer.c -- members that the answers of several tools have. */
#include "ask.h"
#include "mcp.h"
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_NAME_BYTES 300

/* ---- the query ---- */

enum hearth_status mcp_selection(struct mcp_call *call, Hearth__V1__Selection *ret)
{
    if (call->selector != NULL) {
        call->cli.args[0] = call->selector;
        call->cli.n_args = 1;
    }

    return cli_selection(&call->cli, 0, ret);
}

int64_t mcp_limit(const struct mcp_call *call, int64_t standard)
{
    return call->cli.limit > 0 ? call->cli.limit : standard;
}

void mcp_put_query(struct mcp_call *call, const char *key, const Hearth__V1__Selection *selection,
                   const char *unit)
{
    hearth_json_key_c(&call->answer, key);
    hearth_json_object(&call->answer);
    mcp_put_text(call, "selector", selection->label_selector);
    if (unit != NULL) {
        mcp_put_text(call, "type", selection->profile_type);
        mcp_put_text(call, "unit", unit);
    }
    mcp_put_time(call, "from", selection->start);
    mcp_put_time(call, "to", selection->end);
    hearth_json_object_end(&call->answer);
}

/* ---- members ---- */

void mcp_put_text(struct mcp_call *call, const char *key, const char *text)
{
    hearth_json_key_c(&call->answer, key);
    hearth_json_string_c(&call->answer, text);
}

void mcp_put_name(struct mcp_call *call, const char *key, const char *name)
{
    struct hearth_str text = hearth_str_c(name);

    hearth_json_key_c(&call->answer, key);
    if (text.n <= MAX_NAME_BYTES) {
        hearth_json_string(&call->answer, text);
        return;
    }

    /* Not within a character. */
    text.n = MAX_NAME_BYTES;
    while (text.n > 0 && ((unsigned char)text.p[text.n] & 0xc0u) == 0x80u) {
        text.n--;
    }
    struct hearth_buf cut;
    hearth_buf_init(&cut, 0);
    hearth_buf_str(&cut, text);
    hearth_buf_cstr(&cut, "\xe2\x80\xa6");
    hearth_json_string(&call->answer, hearth_buf_view(&cut));
    hearth_buf_release(&cut);
}

void mcp_put_count(struct mcp_call *call, const char *key, int64_t value)
{
    hearth_json_key_c(&call->answer, key);
    hearth_json_i64(&call->answer, value);
}

void mcp_put_percent(struct mcp_call *call, const char *key, double part, double whole)
{
    hearth_json_key_c(&call->answer, key);
    hearth_json_double(&call->answer, whole == 0 ? 0 : round(10000 * part / whole) / 100);
}

void mcp_put_time(struct mcp_call *call, const char *key, int64_t ms)
{
    char date[32];

    cli_date(ms, date);
    mcp_put_text(call, key, date);
}

void mcp_put_cut(struct mcp_call *call, const char *rows, int64_t offset, int64_t shown, int64_t n)
{
    char text[160];

    if (offset == 0 && shown >= n) {
        return;
    }
    (void)snprintf(text, sizeof text,
                   "%s %lld to %lld of %lld; a larger limit, or offset if the tool has it, shows "
                   "others",
                   rows, (long long)offset + 1, (long long)(offset + shown), (long long)n);
    mcp_put_text(call, "cut", text);
}

/* ---- frames ---- */

struct child {
    size_t node;
    int64_t total;
};

static int by_total(const void *a, const void *b)
{
    const struct child *x = a, *y = b;
    return x->total != y->total ? (x->total < y->total ? 1 : -1)
                                : (x->node > y->node) - (x->node < y->node);
}

/* How much of a tree an answer may still have. */
struct room {
    const struct mcp_tree *tree;
    int64_t frames, limit;
};

static enum hearth_status put_level(struct mcp_call *call, const char *key, struct room *room,
                                    size_t parent, int64_t depth);

static enum hearth_status put_frame(struct mcp_call *call, struct room *room, size_t node,
                                    int64_t depth)
{
    const struct hearth_client_node *frame = &room->tree->nodes[node];

    hearth_json_object(&call->answer);
    if (room->tree->handles != NULL) {
        char handle[24];
        (void)snprintf(handle, sizeof handle, "%016llx",
                       (unsigned long long)room->tree->handles[node]);
        mcp_put_text(call, "frame", handle);
    }
    mcp_put_name(call, "name", frame->name);
    mcp_put_count(call, "self", frame->self);
    mcp_put_count(call, "total", frame->total);
    mcp_put_percent(call, "percent", (double)frame->total, (double)room->tree->whole);
    enum hearth_status status = put_level(call, "children", room, node, depth);
    hearth_json_object_end(&call->answer);

    return status;
}

/* Says how many children are missing, and what they are worth. */
static void put_missing(struct mcp_call *call, const struct mcp_tree *tree,
                        const struct child *children, size_t shown, size_t n)
{
    int64_t total = 0;

    for (size_t i = shown; i < n; i++) {
        total += children[i].total;
    }
    hearth_json_key_c(&call->answer, "cut");
    hearth_json_object(&call->answer);
    mcp_put_count(call, "frames", (int64_t)(n - shown));
    mcp_put_count(call, "total", total);
    mcp_put_percent(call, "percent", (double)total, (double)tree->whole);
    hearth_json_object_end(&call->answer);
}

static enum hearth_status put_level(struct mcp_call *call, const char *key, struct room *room,
                                    size_t parent, int64_t depth)
{
    const struct mcp_tree *tree = room->tree;
    size_t n = 0, shown = 0;

    /* Collect the children, the largest first. */
    for (size_t i = parent + 1; i < tree->n; i++) {
        n += tree->nodes[i].parent == parent;
    }
    struct child *children = hearth_arena_array(&call->cli.arena, n, sizeof *children);
    if (children == NULL) {
        return HEARTH_FAIL_ARENA(&call->cli.err, &call->cli.arena);
    }
    n = 0;
    for (size_t i = parent + 1; i < tree->n; i++) {
        if (tree->nodes[i].parent == parent) {
            children[n++] = (struct child){.node = i, .total = tree->nodes[i].total};
        }
    }
    if (n == 0) {
        return HEARTH_OK;
    }
    qsort(children, n, sizeof *children, by_total);

    /* Write as many as there is room for, and what is missing. */
    int64_t limit = depth == 0 ? 0 : room->limit;
    if (limit > 0 && room->frames > 0) {
        hearth_json_key_c(&call->answer, key);
        hearth_json_array(&call->answer);
        for (; shown < n && (int64_t)shown < limit && room->frames > 0; shown++) {
            room->frames--;
            HEARTH_TRY(put_frame(call, room, children[shown].node, depth - 1));
        }
        hearth_json_array_end(&call->answer);
    }
    if (shown < n) {
        put_missing(call, tree, children, shown, n);
    }

    return HEARTH_OK;
}

enum hearth_status mcp_put_children(struct mcp_call *call, const char *key,
                                    const struct mcp_tree *tree, size_t node)
{
    int64_t depth = call->depth > 0 ? call->depth : 2;
    struct room room = {.tree = tree, .frames = MCP_MAX_FRAMES, .limit = mcp_limit(call, 8)};

    if (depth > MCP_MAX_DEPTH) {
        return HEARTH_FAIL(&call->cli.err, HEARTH_INVALID_ARGUMENT,
                           "the argument \"depth\" is at most %d", MCP_MAX_DEPTH);
    }

    return put_level(call, key, &room, node, depth);
}
