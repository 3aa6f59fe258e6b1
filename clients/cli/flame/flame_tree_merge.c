/*
 * flame_tree_merge.c -- makes trees from the nodes of another one: stacks from their leaves, callers
 * and callees of a function.
 *
 * Works level by level. An item says that a node of the source is part of a group, which becomes one
 * node of the result. The items of the next level are sorted by group and name; each run of equal
 * keys is a new group. Items of the same node in the same group are joined, so that a level never
 * has more items than the source has nodes for each group.
 */
#include "hearth/base/mem.h"

#include "flame_tree.h"

#include <stdlib.h>

struct merge_item {
    uint64_t key;  /* group of the level above, then the rank of the name */
    int64_t value; /* what the item adds to the total of its group */
    uint32_t node; /* of the source */
};

struct merge_items {
    struct merge_item *v;
    size_t n, cap;
};

struct merge {
    const struct flame_tree *source;
    const struct flame_names *names;
    bool callers; /* items lead to parents; otherwise to children */
    struct merge_items items, next;
    struct flame_tree tree;
    int64_t *ends; /* by node of the last level: end of its children so far */
    size_t cap_ends;
};

static bool add_item(struct merge *m, uint32_t group, uint32_t node, int64_t value)
{
    struct merge_items *items = &m->next;

    if (!hearth_mem_grow((void *)&items->v, &items->cap, items->n + 1, sizeof *items->v)) {
        return false;
    }
    uint64_t rank = m->names->rank[m->source->name[node]];
    items->v[items->n++] = (struct merge_item){(uint64_t)group << 32 | rank, value, node};

    return true;
}

static int compare_items(const void *a, const void *b)
{
    const struct merge_item *x = a, *y = b;

    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Sort the next items, join those of one node in one group, and make them the current ones. */
static void take_next_items(struct merge *m)
{
    struct merge_items *items = &m->next;
    size_t n = 0;

    if (items->n > 1) {
        qsort(items->v, items->n, sizeof *items->v, compare_items);
    }
    for (size_t i = 0; i < items->n; i++) {
        if (n > 0 && compare_items(&items->v[n - 1], &items->v[i]) == 0) {
            items->v[n - 1].value += items->v[i].value;
        } else {
            items->v[n++] = items->v[i];
        }
    }
    items->n = n;

    struct merge_items spare = m->items;
    m->items = *items;
    m->next = spare;
    m->next.n = 0;
}

static bool add_node(struct merge *m, uint32_t parent, int64_t from, uint32_t name)
{
    struct flame_tree *tree = &m->tree;

    if (!flame_tree_reserve(tree, 1)) {
        return false;
    }
    tree->parent[tree->n] = parent;
    tree->from[tree->n] = from;
    tree->name[tree->n] = name;
    tree->total[tree->n] = 0;
    tree->self[tree->n++] = 0;

    return true;
}

/* Add the items of the level below that follow from one item of a node of the result. */
static bool follow_item(struct merge *m, const struct merge_item *item, uint32_t group,
                        int64_t *self)
{
    const struct flame_tree *source = m->source;

    if (m->callers) {
        uint32_t parent = source->parent[item->node];
        if (parent == 0) { /* the root is the total, not a function */
            *self += item->value;
            return true;
        }
        return add_item(m, group, parent, item->value);
    }
    *self += source->self[item->node];
    for (uint32_t i = source->first_child[item->node]; i < source->first_child[item->node + 1];
         i++) {
        if (!add_item(m, group, i, source->total[i])) {
            return false;
        }
    }

    return true;
}

/*
 * The items [i, end) become a node, and lead to items of the next level. Paths from leaves multiply
 * in graphs whose stacks have little in common: the callers of tiny nodes are not followed.
 */
static bool make_node(struct merge *m, size_t i, size_t end, uint32_t above, uint32_t first)
{
    struct flame_tree *tree = &m->tree;
    uint32_t group = (uint32_t)(m->items.v[i].key >> 32);
    int64_t total = 0;

    for (size_t k = i; k < end; k++) {
        total += m->items.v[k].value;
    }
    if (!add_node(m, first > 0 ? above + group : 0, first > 0 ? m->ends[group] : 0,
                  m->source->name[m->items.v[i].node])) {
        return false;
    }
    uint32_t node = tree->n - 1;
    tree->total[node] = total;
    if (first > 0) {
        m->ends[group] += total;
    }

    if (m->callers && total < tree->total[0] / FLAME_TREE_CALLERS_SHARE) {
        tree->self[node] = total;
        return true;
    }
    for (size_t k = i; k < end; k++) {
        if (!follow_item(m, &m->items.v[k], node - first, &tree->self[node])) {
            return false;
        }
    }

    return true;
}

/* One level: groups of the current items become nodes. */
static bool make_level(struct merge *m)
{
    struct flame_tree *tree = &m->tree;
    uint32_t above = tree->n_levels > 0 ? tree->level_first[tree->n_levels - 1] : 0;
    uint32_t first = tree->n;

    /* The children of a node begin where it begins. */
    if (!hearth_mem_grow((void *)&m->ends, &m->cap_ends, (size_t)(first - above) + 1,
                         sizeof *m->ends)) {
        return false;
    }
    for (uint32_t i = above; i < first; i++) {
        m->ends[i - above] = tree->from[i];
    }

    for (size_t i = 0, end; i < m->items.n; i = end) {
        for (end = i + 1; end < m->items.n && m->items.v[end].key == m->items.v[i].key;) {
            end++;
        }
        if (!make_node(m, i, end, above, first)) {
            return false;
        }
    }

    return flame_tree_end_level(tree);
}

static enum hearth_status finish_merge(struct merge *m, bool ok, struct flame_tree *ret,
                                       struct hearth_err *err)
{
    while (ok && m->next.n > 0) {
        take_next_items(m);
        ok = make_level(m);
    }
    ok = ok && flame_tree_seal(&m->tree);
    hearth_mem_free(m->items.v);
    hearth_mem_free(m->next.v);
    hearth_mem_free(m->ends);
    if (!ok) {
        flame_tree_release(&m->tree);
        return HEARTH_FAIL(
            err, HEARTH_NO_MEMORY,
            "the merged stacks need more memory than there is, or more than %zu nodes",
            FLAME_TREE_MAX_NODES);
    }
    *ret = m->tree;

    return HEARTH_OK;
}

enum hearth_status flame_tree_invert(const struct flame_tree *tree, const struct flame_names *names,
                                     struct flame_tree *ret, struct hearth_err *err)
{
    struct merge m = {.source = tree, .names = names, .callers = true};
    bool ok = tree->n > 0 && add_node(&m, 0, 0, tree->name[0]);

    /* The root holds the self of all nodes, and its own. */
    if (ok) {
        m.tree.total[0] = tree->total[0];
        m.tree.self[0] = tree->self[0];
        ok = flame_tree_end_level(&m.tree);
    }
    for (uint32_t i = 1; ok && i < tree->n; i++) {
        ok = tree->self[i] == 0 || add_item(&m, 0, i, tree->self[i]);
    }

    return finish_merge(&m, ok, ret, err);
}

enum hearth_status flame_tree_sandwich(const struct flame_tree *tree,
                                       const struct flame_names *names, uint32_t name, bool callers,
                                       struct flame_tree *ret, struct hearth_err *err)
{
    struct merge m = {.source = tree, .names = names, .callers = callers};
    uint8_t *inside = hearth_mem_zalloc((size_t)tree->n + 1);
    bool ok = inside != NULL;

    for (uint32_t i = 0; ok && i < tree->n; i++) {
        bool below = i > 0 && inside[tree->parent[i]] != 0;
        bool here = tree->name[i] == name;
        inside[i] = here || below;
        ok = !here || below || add_item(&m, 0, i, tree->total[i]);
    }
    hearth_mem_free(inside);

    return finish_merge(&m, ok, ret, err);
}
