/*
 * client_flame.c -- a merged flame graph as a list of nodes.
 *
 * The server sends levels of boxes: each has the distance to the box before it, its total, its self
 * and its name. The box above begins at or before it and ends at or after it.
 */
#include "hearth/base/mem.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "client_call.h"

#include <assert.h>

#define BOX_VALUES 4 /* distance, total, self, name */

/* What hearth_client_flame gives; `flame` is the first member. */
struct kept_flame {
    struct hearth_client_flame flame;
    struct hearth_arena arena;
};

/* Boxes of a level: nodes [first, end), the places where they begin, and where the last ends. */
struct level {
    size_t first, end;
    int64_t *from;
};

static enum hearth_status fail_graph(struct hearth_err *err, size_t level)
{
    return HEARTH_FAIL(err, HEARTH_CORRUPT, "the server's flame graph is malformed at level %zu",
                       level);
}

/* Reads the boxes of level l below those of `above`, which is empty for the root. */
static enum hearth_status read_boxes(const Querier__V1__FlameGraph *graph, size_t l,
                                     const struct level *above, struct level *level,
                                     struct hearth_client_node *nodes, struct hearth_err *err)
{
    const int64_t *values = graph->levels[l]->values;
    int64_t at = 0;
    size_t parent = above->first;

    for (size_t i = level->first; i < level->end; i++, values += BOX_VALUES) {
        int64_t end;
        if (values[0] < 0 || values[1] < 0 || values[3] < 0 ||
            (uint64_t)values[3] >= graph->n_names || __builtin_add_overflow(at, values[0], &at) ||
            __builtin_add_overflow(at, values[1], &end)) {
            return fail_graph(err, l);
        }

        /* The box above that it lies in. */
        while (l > 0 && parent < above->end &&
               above->from[parent - above->first] + nodes[parent].total <= at) {
            parent++;
        }
        if (l > 0 && (parent == above->end || above->from[parent - above->first] > at)) {
            return fail_graph(err, l);
        }
        nodes[i] = (struct hearth_client_node){.name = graph->names[values[3]],
                                               .self = values[2],
                                               .total = values[1],
                                               .parent = (uint32_t)(l == 0 ? i : parent)};
        level->from[i - level->first] = at;
        at = end;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_call_flame(const struct Querier__V1__FlameGraph *graph,
                                     struct hearth_arena *arena, struct hearth_client_flame *flame,
                                     struct hearth_err *err)
{
    size_t n = 0;
    struct level above = {0};

    for (size_t l = 0; l < graph->n_levels; l++) {
        n += graph->levels[l]->n_values / BOX_VALUES;
    }
    struct hearth_client_node *nodes = hearth_arena_array(arena, n, sizeof *nodes);
    if (nodes == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    if (n > UINT32_MAX || (n > 0 && graph->levels[0]->n_values != BOX_VALUES)) {
        return fail_graph(err, 0);
    }
    for (size_t l = 0; l < graph->n_levels; l++) {
        size_t n_boxes = graph->levels[l]->n_values / BOX_VALUES;
        struct level level = {.first = above.end,
                              .end = above.end + n_boxes,
                              .from = hearth_arena_array(arena, n_boxes, sizeof(int64_t))};
        if (level.from == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        HEARTH_TRY(read_boxes(graph, l, &above, &level, nodes, err));
        above = level;
    }
    flame->nodes = nodes;
    flame->n_nodes = graph->total > 0 ? n : 0;
    flame->total = graph->total;

    return HEARTH_OK;
}

static char *copy_given(struct hearth_arena *arena, const char *text)
{
    return hearth_arena_strndup(arena, text == NULL ? "" : text, text == NULL ? 0 : strlen(text));
}

static enum hearth_status ask_flame(struct hearth_client *client,
                                    const struct hearth_client_query *query,
                                    struct hearth_arena *arena, struct hearth_client_flame *flame,
                                    struct hearth_call *call, struct hearth_err *err)
{
    Hearth__V1__Selection selection;
    Hearth__V1__MergeRequest request;
    struct ProtobufCMessage *message;

    hearth__v1__selection__init(&selection);
    selection.profile_type = copy_given(arena, query->type);
    selection.label_selector = copy_given(arena, query->selector);
    selection.start = query->from_ms;
    selection.end = query->to_ms;
    hearth__v1__merge_request__init(&request);
    request.selection = &selection;
    request.max_nodes = query->max_nodes;
    if (arena->refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    HEARTH_TRY(hearth_call_message(client, call, &request.base,
                                   &hearth__v1__merge_response__descriptor, arena, &message, err));

    const Hearth__V1__MergeResponse *answer = (const void *)message;
    flame->unit = answer->unit;

    return answer->flamegraph == NULL ? HEARTH_OK
                                      : hearth_call_flame(answer->flamegraph, arena, flame, err);
}

enum hearth_client_status hearth_client_flame(struct hearth_client *client,
                                              const struct hearth_client_query *query,
                                              const struct hearth_client_flame **ret,
                                              struct hearth_client_error *error)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_call call = {.method = "hearth.v1.QueryService/Merge"};
    assert(client != NULL && query != NULL && ret != NULL);

    struct kept_flame *kept = hearth_mem_zalloc(sizeof *kept);
    if (kept == NULL) {
        enum hearth_status status =
            HEARTH_FAIL(&err, HEARTH_NO_MEMORY, "cannot allocate a flame graph");
        return hearth_call_error_out(&err, status, false, error);
    }
    hearth_arena_init(&kept->arena, 0);
    enum hearth_status status = ask_flame(client, query, &kept->arena, &kept->flame, &call, &err);
    if (status == HEARTH_OK) {
        *ret = &kept->flame;
    } else {
        hearth_client_flame_free(&kept->flame);
    }

    return hearth_call_error_out(&err, status, call.is_open, error);
}

void hearth_client_flame_free(const struct hearth_client_flame *flame)
{
    if (flame != NULL) {
        struct kept_flame *kept = (struct kept_flame *)(uintptr_t)flame;
        hearth_arena_release(&kept->arena);
        hearth_mem_free(kept);
    }
}
