/* flame_tree.c -- reads flame graphs into arrays, and answers what a screen needs to know. */
#include "flame_tree.h"

#include "hearth/base/mem.h"

#include <assert.h>
#include <stdlib.h>

/* ---- arrays ---- */

bool flame_tree_reserve(struct flame_tree *tree, size_t n_more)
{
    struct {
        void *array;
        size_t size;
    } const arrays[] = {
        {&tree->from, sizeof *tree->from},     {&tree->total, sizeof *tree->total},
        {&tree->self, sizeof *tree->self},     {&tree->name, sizeof *tree->name},
        {&tree->parent, sizeof *tree->parent},
    };
    size_t want = tree->n + n_more, cap = tree->cap;

    if (want > FLAME_TREE_MAX_NODES) {
        return false;
    }
    if (want <= tree->cap) {
        return true;
    }

    /* All arrays grow alike; after a refusal the smallest capacity still holds. */
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(arrays); i++) {
        cap = tree->cap;
        if (!hearth_mem_grow(arrays[i].array, &cap, want, arrays[i].size)) {
            return false;
        }
    }
    tree->cap = (uint32_t)cap;

    return true;
}

bool flame_tree_end_level(struct flame_tree *tree)
{
    if (!hearth_mem_grow((void *)&tree->level_first, &tree->cap_levels, tree->n_levels + 2,
                         sizeof *tree->level_first)) {
        return false;
    }
    if (tree->n_levels == 0) {
        tree->level_first[0] = 0;
    }
    tree->level_first[++tree->n_levels] = tree->n;

    return true;
}

bool flame_tree_seal(struct flame_tree *tree)
{
    tree->first_child = hearth_mem_calloc((size_t)tree->n + 1, sizeof *tree->first_child);
    if (tree->first_child == NULL) {
        return false;
    }

    /* Parents ascend with the numbers of their children. */
    uint32_t child = tree->n > 0 ? 1 : 0;
    for (uint32_t i = 0; i < tree->n; i++) {
        tree->first_child[i] = child;
        while (child < tree->n && tree->parent[child] == i) {
            child++;
        }
    }
    tree->first_child[tree->n] = tree->n;

    return true;
}

void flame_tree_release(struct flame_tree *tree)
{
    hearth_mem_free(tree->from);
    hearth_mem_free(tree->total);
    hearth_mem_free(tree->self);
    hearth_mem_free(tree->name);
    hearth_mem_free(tree->parent);
    hearth_mem_free(tree->first_child);
    hearth_mem_free(tree->level_first);
    *tree = (struct flame_tree){0};
}

/* ---- reading ---- */

/* The node of [parent, end) that holds [from, to); `end` if none does. */
static uint32_t find_holder(const struct flame_tree *tree, uint32_t parent, uint32_t end,
                            int64_t from, int64_t to)
{
    while (parent < end && tree->from[parent] + tree->total[parent] <= from) {
        parent++;
    }
    bool holds = parent < end && tree->from[parent] <= from &&
                 to <= tree->from[parent] + tree->total[parent];

    return holds ? parent : end;
}

static enum hearth_status read_flame_level(const struct hearth_flamegraph *graph, size_t level,
                                           struct flame_tree *tree, struct hearth_err *err)
{
    const struct hearth_flame_level *in = &graph->levels[level];
    uint32_t parent = level < 2 ? 0 : tree->level_first[level - 1];
    uint32_t parents_end = tree->n;
    int64_t end = 0;

    for (size_t i = 0; i + 4 <= in->n; i += 4) {
        const int64_t *v = in->values + i;
        int64_t from, to;
        bool bad = v[0] < 0 || v[1] < 0 || v[2] < 0 || v[2] > v[1] || v[3] < 0 ||
                   (uint64_t)v[3] >= graph->n_names;

        bad = bad || __builtin_add_overflow(end, v[0], &from) ||
              __builtin_add_overflow(from, v[1], &to);
        if (bad || (level == 0 && (from != 0 || in->n != 4))) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT,
                               "the flame graph is malformed at node %zu of level %zu", i / 4,
                               level);
        }

        end = to;
        if (v[1] == 0) {
            continue;
        }
        if (level > 0) {
            parent = find_holder(tree, parent, parents_end, from, to);
            if (parent == parents_end) {
                return HEARTH_FAIL(err, HEARTH_CORRUPT,
                                   "the flame graph is malformed: node %zu of level %zu lies "
                                   "outside of its parent",
                                   i / 4, level);
            }
        }
        tree->from[tree->n] = from;
        tree->total[tree->n] = v[1];
        tree->self[tree->n] = v[2];
        tree->name[tree->n] = (uint32_t)v[3];
        tree->parent[tree->n++] = parent;
    }

    return HEARTH_OK;
}

enum hearth_status flame_tree_read(const struct hearth_flamegraph *graph, struct flame_tree *ret,
                                   struct hearth_err *err)
{
    struct flame_tree tree = {0};
    enum hearth_status status = HEARTH_OK;
    size_t n = 0;

    for (size_t level = 0; level < graph->n_levels; level++) {
        n += graph->levels[level].n / 4;
    }
    bool ok = n > 0 && flame_tree_reserve(&tree, n);

    for (size_t level = 0; ok && status == HEARTH_OK && level < graph->n_levels; level++) {
        uint32_t before = tree.n;
        status = read_flame_level(graph, level, &tree, err);
        if (tree.n == before) {
            break; /* below nothing there is nothing */
        }
        ok = flame_tree_end_level(&tree);
    }

    if (status == HEARTH_OK && (!ok || !flame_tree_seal(&tree))) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate %zu nodes (the most is %zu)",
                             n, FLAME_TREE_MAX_NODES);
    }
    if (status != HEARTH_OK) {
        flame_tree_release(&tree);
        return status;
    }
    *ret = tree;

    return HEARTH_OK;
}

/* ---- names ---- */

static int compare_names(const void *a, const void *b, void *names)
{
    const struct hearth_str *v = names;
    return hearth_str_cmp(v[*(const uint32_t *)a], v[*(const uint32_t *)b]);
}

enum hearth_status flame_names_init(struct flame_names *names,
                                    const struct hearth_flamegraph *graph, struct hearth_err *err)
{
    uint32_t *order = hearth_mem_calloc(graph->n_names + 1, sizeof *order);
    uint32_t *rank = hearth_mem_calloc(graph->n_names + 1, sizeof *rank);

    if (order == NULL || rank == NULL || graph->n_names >= UINT32_MAX) {
        hearth_mem_free(order);
        hearth_mem_free(rank);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate %zu names", graph->n_names);
    }

    *names = (struct flame_names){graph->names, (uint32_t)graph->n_names, rank};
    for (uint32_t i = 0; i < names->n; i++) {
        order[i] = i;
    }
    qsort_r(order, names->n, sizeof *order, compare_names, graph->names);
    for (uint32_t i = 0; i < names->n; i++) {
        rank[order[i]] = i;
    }
    hearth_mem_free(order);

    return HEARTH_OK;
}

void flame_names_release(struct flame_names *names)
{
    hearth_mem_free(names->rank);
    *names = (struct flame_names){0};
}

/* ---- answers ---- */

uint32_t flame_tree_level(const struct flame_tree *tree, uint32_t node)
{
    uint32_t level = 0;

    assert(node < tree->n);
    for (; node > 0; node = tree->parent[node]) {
        level++;
    }
    return level;
}

uint32_t flame_tree_at(const struct flame_tree *tree, uint32_t level, int64_t at)
{
    assert(level < tree->n_levels);

    uint32_t low = tree->level_first[level], high = tree->level_first[level + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tree->from[middle] + tree->total[middle] > at) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

enum hearth_status flame_tree_matched(const struct flame_tree *tree, const uint8_t *marks,
                                      int64_t *ret_total, struct hearth_err *err)
{
    uint8_t *covered = hearth_mem_zalloc((size_t)tree->n + 1);
    int64_t total = 0;

    if (covered == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the search");
    }
    for (uint32_t i = 0; i < tree->n; i++) {
        bool above = i > 0 && covered[tree->parent[i]] != 0;
        bool here = marks[tree->name[i]] != 0;
        total += here && !above ? tree->total[i] : 0;
        covered[i] = here || above;
    }
    hearth_mem_free(covered);
    *ret_total = total;

    return HEARTH_OK;
}

enum hearth_status flame_tree_functions(const struct flame_tree *tree, uint32_t n_names,
                                        int64_t *self, int64_t *total, struct hearth_err *err)
{
    uint32_t *open = hearth_mem_calloc((size_t)n_names + 1, sizeof *open);
    uint32_t node = 0;

    if (open == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the table");
    }

    /* Depth first; open[name] is the number of frames above, and with, the node of that name. */
    while (tree->n > 0) {
        uint32_t name = tree->name[node];
        self[name] += tree->self[node];
        total[name] += open[name]++ == 0 ? tree->total[node] : 0;

        if (tree->first_child[node] < tree->first_child[node + 1]) {
            node = tree->first_child[node];
            continue;
        }
        open[name]--;
        while (node > 0 && node + 1 == tree->first_child[tree->parent[node] + 1]) {
            node = tree->parent[node];
            open[tree->name[node]]--;
        }
        if (node == 0) {
            break;
        }
        node++;
    }
    hearth_mem_free(open);

    return HEARTH_OK;
}
