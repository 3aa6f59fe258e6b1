/*
 * mcp.h -- what the tools of `hearth mcp` share.
 *
 * A tool reads the arguments of its call, makes requests with cli_call.h and ask.h, and writes the
 * members of a JSON object. Its failures are statuses with a message in call->cli.err.
 *
 * Threads: confined to the main thread.
 */
#ifndef HEARTH_CLIENTS_MCP_H
#define HEARTH_CLIENTS_MCP_H

#include "hearth/codec/json_writer.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli.h"

#define MCP_META             "io.modelcontextprotocol/" /* begins the keys of _meta */
#define MCP_MAX_COUNT        1000
#define MCP_MAX_DEPTH        6
#define MCP_MAX_FRAMES       200        /* in one answer */
#define MCP_MAX_POINTS       120        /* of one line */
#define MCP_MAX_LINE_BYTES   (1u << 20) /* of one message of the client */
#define MCP_MAX_ANSWER_BYTES (256u << 10)
#define MCP_MAX_NOTES_BYTES  4096u

/* A call of a tool. Texts that are NULL and counts that are 0 were not given. */
struct mcp_call {
    struct cli
        cli; /* a copy of the command's, with an arena of the call and the options of the call */
    struct hearth_json answer; /* within an object */
    const char *selector, *base_selector, *function, *label, *group_by, *by, *frame, *kind, *task;
    int64_t depth;
};

typedef enum hearth_status mcp_tool_fn(struct mcp_call *call);

mcp_tool_fn mcp_services, mcp_types, mcp_labels, mcp_top, mcp_flame_slice, mcp_diff, mcp_sandwich,
    mcp_history, mcp_spans, mcp_tasks_list, mcp_task_get, mcp_task_create;

enum mcp_arg_kind {
    MCP_TEXT,
    MCP_LIST,
    MCP_COUNT,
};

/* Rows of mcp_tools.def. */
struct mcp_arg {
    const char *key;
    enum mcp_arg_kind kind;
    size_t at; /* offset of the field in struct mcp_call */
    const char *values, *help;
};
struct mcp_tool {
    const char *name;
    mcp_tool_fn *run;
    const char *arguments, *required;
    bool is_task, is_read;
    const char *help;
};

/* A message of the client. Texts borrow from the line, or live in the arena of the message. */
struct mcp_message {
    struct hearth_str id; /* as JSON; n is 0 for a notification */
    struct hearth_str method;
    struct hearth_str tool, arguments; /* of tools/call; `arguments` as JSON */
    struct hearth_str offered;         /* protocolVersion of initialize */
    struct hearth_str version;         /* that the request names; p is NULL: none */
};

/* ---- mcp_message.c ---- */

/*
 * Reads a line of valid UTF-8 without white space around it. INVALID_ARGUMENT says what is wrong, at
 * which offset; what was read before stays in `ret`.
 */
HEARTH_MUST_CHECK
enum hearth_status mcp_read_message(struct hearth_str line, struct hearth_arena *arena,
                                    struct mcp_message *ret, struct hearth_err *err);

/* ---- mcp_tools.c ---- */

/* Returns the tool of that name; NULL if no tool has it, or if the tool needs --allow-tasks. */
const struct mcp_tool *mcp_find_tool(struct hearth_str name, bool allow_tasks);
/* Appends the array of tools with the schemas of their arguments. */
void mcp_write_tools(bool allow_tasks, struct hearth_json *out);
/*
 * Reads the object of arguments, {} if `text` is empty, into `call`. INVALID_ARGUMENT names the
 * argument that is unknown, has another type or another value than allowed, or is missing.
 */
HEARTH_MUST_CHECK
enum hearth_status mcp_read_arguments(const struct mcp_tool *tool, struct hearth_str text,
                                      struct mcp_call *call);

/* ---- mcp_answer.c ---- */

/* The selection of the call's arguments. */
HEARTH_MUST_CHECK enum hearth_status mcp_selection(struct mcp_call *call,
                                                   Hearth__V1__Selection *ret);
/* The limit of the call, or the tool's own. */
int64_t mcp_limit(const struct mcp_call *call, int64_t standard);
/* Each writes a member of the answer. Names are cut at 300 bytes. */
void mcp_put_text(struct mcp_call *call, const char *key, const char *text);
void mcp_put_name(struct mcp_call *call, const char *key, const char *name);
void mcp_put_count(struct mcp_call *call, const char *key, int64_t value);
/* part / whole in percent, rounded to hundredths; `key` is its member. */
void mcp_put_percent(struct mcp_call *call, const char *key, double part, double whole);
void mcp_put_time(struct mcp_call *call, const char *key, int64_t ms);
/* "selector", "type", "from", "to"; with a type also "unit". */
void mcp_put_query(struct mcp_call *call, const char *key, const Hearth__V1__Selection *selection,
                   const char *unit);
/* "cut": what is missing and how to see it; nothing if all `n` rows from `offset` on are shown. */
void mcp_put_cut(struct mcp_call *call, const char *rows, int64_t offset, int64_t shown, int64_t n);

/* A tree of frames: a flame graph, or a side of a sandwich. */
struct mcp_tree {
    const struct hearth_client_node *nodes; /* parents before their children; [0] is the root */
    size_t n;
    int64_t whole;           /* 100 % */
    const uint64_t *handles; /* of the nodes; NULL: they have no handles */
};

/* The member `key`: the children of a node, `depth` levels of them, at most `limit` of each. */
HEARTH_MUST_CHECK
enum hearth_status mcp_put_children(struct mcp_call *call, const char *key,
                                    const struct mcp_tree *tree, size_t node);

#endif
