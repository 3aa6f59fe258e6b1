/* flame_export.c -- reads the levels of flame graphs and diffs into arrays for writers of files. */
#include "flame_export.h"

#include <assert.h>

/* Levels of either format: an x offset, a total and a self for each side, and the name. */
struct side_levels {
    const struct hearth_flame_level *v;
    size_t n, stride;
};

static size_t count_level_nodes(const struct side_levels *levels)
{
    size_t n = 0;

    for (size_t l = 0; l < levels->n; l++) {
        n += levels->v[l].n / levels->stride;
    }
    return n;
}

static bool reserve_export(struct hearth_arena *arena, size_t n, struct flame_export *ret,
                           int64_t *ret_from[2])
{
    ret->parent = hearth_arena_array(arena, n, sizeof *ret->parent);
    ret->name = hearth_arena_array(arena, n, sizeof *ret->name);
    for (int side = 0; side < ret->n_sides; side++) {
        ret->total[side] = hearth_arena_array(arena, n, sizeof *ret->total[side]);
        ret->self[side] = hearth_arena_array(arena, n, sizeof *ret->self[side]);
        ret_from[side] = hearth_arena_array(arena, n, sizeof *ret_from[side]);
    }

    return !arena->refused;
}

/* Whether a node lies within another one on every side. */
static bool lies_within(const struct flame_export *graph, int64_t *const from[2], uint32_t node,
                        uint32_t parent)
{
    bool is_within = true;

    for (int side = 0; side < graph->n_sides; side++) {
        int64_t end = from[side][node] + graph->total[side][node];
        is_within = is_within && from[side][parent] <= from[side][node] &&
                    end <= from[side][parent] + graph->total[side][parent];
    }
    return is_within;
}

/* Reads the values of a node; end[side] is where the node before it ends. False: they are malformed. */
static bool read_side_values(struct flame_export *graph, const int64_t *v, int64_t *const from[2],
                             int64_t end[2])
{
    uint32_t node = graph->n_nodes;
    int64_t name = v[3 * graph->n_sides];

    if (name < 0 || (uint64_t)name >= graph->n_names) {
        return false;
    }
    graph->name[node] = (uint32_t)name;
    for (int side = 0; side < graph->n_sides; side++, v += 3) {
        if (v[0] < 0 || v[1] < 0 || v[2] < 0 || v[2] > v[1] ||
            __builtin_add_overflow(end[side], v[0], &from[side][node]) ||
            __builtin_add_overflow(from[side][node], v[1], &end[side])) {
            return false;
        }
        graph->total[side][node] = v[1];
        graph->self[side][node] = v[2];
    }

    return true;
}

static enum hearth_status read_side_levels(const struct side_levels *levels, int64_t *const from[2],
                                           struct flame_export *graph, struct hearth_err *err)
{
    uint32_t above = 0;

    for (size_t l = 0; l < levels->n; l++) {
        uint32_t begin = graph->n_nodes, parent = above;
        int64_t end[2] = {0, 0};

        for (size_t i = 0; i + levels->stride <= levels->v[l].n; i += levels->stride) {
            uint32_t node = graph->n_nodes;
            bool ok = read_side_values(graph, levels->v[l].values + i, from, end);

            /* Both levels go from left to right, so the search for parents does as well. */
            while (ok && l > 0 && parent < begin && !lies_within(graph, from, node, parent)) {
                parent++;
            }
            if (!ok || (l > 0 && parent == begin) || (l == 0 && node > 0)) {
                return HEARTH_FAIL(err, HEARTH_CORRUPT,
                                   "the flame graph is malformed at node %zu of level %zu",
                                   i / levels->stride, l);
            }
            graph->parent[node] = parent;
            graph->n_nodes++;
        }
        above = begin;
        graph->n_levels = l + (graph->n_nodes > begin);
    }

    return HEARTH_OK;
}

static enum hearth_status read_export(const struct side_levels *levels, struct hearth_arena *arena,
                                      struct flame_export *ret, struct hearth_err *err)
{
    size_t n = count_level_nodes(levels);
    int64_t *from[2] = {NULL, NULL};

    if (n == 0 || n >= HEARTH_NO_NODE) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "the flame graph has %zu nodes", n);
    }
    if (!reserve_export(arena, n, ret, from)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    return read_side_levels(levels, from, ret, err);
}

enum hearth_status flame_export_read(const struct hearth_flamegraph *graph,
                                     const struct flame_export_facts *facts,
                                     struct hearth_arena *arena, struct flame_export *ret,
                                     struct hearth_err *err)
{
    assert(graph != NULL && facts != NULL && ret != NULL);

    const struct side_levels levels = {graph->levels, graph->n_levels, 4};

    *ret = (struct flame_export){
        .facts = *facts,
        .names = graph->names,
        .n_names = (uint32_t)graph->n_names,
        .n_sides = 1,
        .n_left_out = graph->n_folded,
    };
    return read_export(&levels, arena, ret, err);
}

enum hearth_status flame_export_read_diff(const struct hearth_flame_diff *diff, const float *q,
                                          const struct flame_export_facts *facts,
                                          struct hearth_arena *arena, struct flame_export *ret,
                                          struct hearth_err *err)
{
    assert(diff != NULL && facts != NULL && ret != NULL);

    const struct side_levels levels = {diff->levels, diff->n_levels, 7};

    *ret = (struct flame_export){
        .facts = *facts,
        .names = diff->names,
        .n_names = (uint32_t)diff->n_names,
        .n_sides = 2,
        .q = q,
        .n_left_out =
            diff->left_folded > diff->right_folded ? diff->left_folded : diff->right_folded,
    };
    return read_export(&levels, arena, ret, err);
}
