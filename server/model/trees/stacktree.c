/*
 * stacktree.c -- build a tree of names, sum it, list its functions.
 *
 * Children are found through one map of (parent, name) for the whole tree, so that a node with
 * thousands of children costs no more than one with two. Appended nodes enter the map at the next
 * look-up of a child. Nothing here recurses: stacks may be thousands deep. Truncation and the forms
 * that are sent to clients are in flamegraph.c.
 */
#include "hearth/model/stacktree.h"

#include "hearth/base/budget.h"
#include "hearth/base/mem.h"

#include <assert.h>
#include <stdlib.h>

_Static_assert(HEARTH_IDMAP_NONE == HEARTH_NO_NODE, "a failed look-up is no node");

void hearth_stacktree_init(struct hearth_stacktree *tree, struct hearth_arena *arena)
{
    assert(tree != NULL && arena != NULL);

    *tree = (struct hearth_stacktree){.arena = arena, .seed = hearth_hash_process_seed()};
    hearth_idmap_init(&tree->name_ids);
    hearth_idmap_init(&tree->child_ids);
}

void hearth_stacktree_release(struct hearth_stacktree *tree)
{
    hearth_mem_free(tree->nodes);
    hearth_mem_free(tree->names);
    hearth_idmap_release(&tree->name_ids);
    hearth_idmap_release(&tree->child_ids);
    hearth_budget_give(tree->arena->budget, tree->budgeted_bytes);
    hearth_stacktree_init(tree, tree->arena);
}

/*
 * Check that more_bytes fit. The arrays are not in the arena, but its limit and its budget apply to
 * them too. Maps are counted when an array grows.
 */
static bool take_budget(struct hearth_stacktree *tree, size_t more_bytes)
{
    size_t limit = tree->arena->limit_bytes;
    size_t held = tree->cap_nodes * sizeof tree->nodes[0] +
                  tree->cap_names * sizeof tree->names[0] + hearth_idmap_bytes(&tree->name_ids) +
                  hearth_idmap_bytes(&tree->child_ids);

    if (limit != 0 && (held >= limit || more_bytes >= limit - held)) {
        return false;
    }

    /* Charge the budget for the growth since the last call. */
    size_t want = held + more_bytes;
    size_t more = want > tree->budgeted_bytes ? want - tree->budgeted_bytes : 0;
    if (!hearth_budget_take(tree->arena->budget, more)) {
        tree->arena->over_budget = true;
        return false;
    }

    tree->budgeted_bytes += more;

    return true;
}

static bool reserve_name(struct hearth_stacktree *tree)
{
    if (HEARTH_LIKELY(tree->n_names < tree->cap_names)) {
        return true;
    }
    return tree->n_names < UINT32_MAX - 1 &&
           take_budget(tree, tree->cap_names * sizeof tree->names[0]) &&
           hearth_mem_grow(&tree->names, &tree->cap_names, tree->n_names + 1,
                           sizeof tree->names[0]);
}

static bool reserve_node(struct hearth_stacktree *tree)
{
    if (HEARTH_LIKELY(tree->n_nodes < tree->cap_nodes)) {
        return true;
    }
    return tree->n_nodes < UINT32_MAX - 1 &&
           take_budget(tree, tree->cap_nodes * sizeof tree->nodes[0]) &&
           hearth_mem_grow(&tree->nodes, &tree->cap_nodes, tree->n_nodes + 1,
                           sizeof tree->nodes[0]);
}

/* Make the root and its name, which init cannot do because it cannot fail. */
static bool ensure_root(struct hearth_stacktree *tree)
{
    if (HEARTH_LIKELY(tree->n_nodes > 0)) {
        return true;
    }

    if (!reserve_name(tree) || !reserve_node(tree)) {
        return false;
    }

    tree->names[0] = hearth_str_n("", 0);
    tree->n_names = 1;
    tree->nodes[0] = (struct hearth_tree_node){
        .parent = HEARTH_NO_NODE, .first_child = HEARTH_NO_NODE, .next_sibling = HEARTH_NO_NODE};
    tree->n_nodes = 1;

    return true;
}

uint32_t hearth_stacktree_root(struct hearth_stacktree *tree)
{
    return ensure_root(tree) ? 0 : HEARTH_NO_NODE;
}

uint32_t hearth_stacktree_name(struct hearth_stacktree *tree, struct hearth_str text)
{
    if (!ensure_root(tree)) {
        return HEARTH_IDMAP_NONE;
    }

    if (text.n == 0) {
        return 0;
    }

    /* Look the name up; if it is new, copy it. */
    struct hearth_hash128 key = hearth_hash128(text.p, text.n, tree->seed);
    uint32_t name = hearth_idmap_find(&tree->name_ids, key);
    if (name != HEARTH_IDMAP_NONE) {
        return name;
    }

    if (!reserve_name(tree)) {
        return HEARTH_IDMAP_NONE;
    }

    struct hearth_str copy = hearth_arena_str(tree->arena, text);
    if (copy.p == NULL) {
        return HEARTH_IDMAP_NONE;
    }

    bool inserted;
    name = hearth_idmap_intern(&tree->name_ids, key, (uint32_t)tree->n_names, &inserted);
    if (name != HEARTH_IDMAP_NONE) {
        tree->names[tree->n_names++] = copy;
    }

    return name;
}

bool hearth_stacktree_reserve(struct hearth_stacktree *tree, size_t n_more)
{
    size_t want;

    if (!ensure_root(tree) || __builtin_add_overflow(tree->n_nodes, n_more, &want) ||
        want >= UINT32_MAX) {
        return false;
    }

    return want <= tree->cap_nodes ||
           (take_budget(tree, (want - tree->cap_nodes) * sizeof tree->nodes[0]) &&
            hearth_mem_grow(&tree->nodes, &tree->cap_nodes, want, sizeof tree->nodes[0]));
}

uint32_t hearth_stacktree_append(struct hearth_stacktree *tree, uint32_t parent, uint32_t name)
{
    if (!ensure_root(tree) || !reserve_node(tree)) {
        return HEARTH_NO_NODE;
    }

    HEARTH_ASSERT(parent < tree->n_nodes && name < tree->n_names);
    uint32_t node = (uint32_t)tree->n_nodes;
    tree->nodes[node] = (struct hearth_tree_node){.parent = parent,
                                                  .first_child = HEARTH_NO_NODE,
                                                  .next_sibling = tree->nodes[parent].first_child,
                                                  .name = name};
    tree->nodes[parent].first_child = node;
    tree->n_nodes++;

    return node;
}

static struct hearth_hash128 hash_child(const struct hearth_stacktree *tree, uint32_t parent,
                                        uint32_t name)
{
    uint64_t pair = (uint64_t)parent << 32 | name;
    return (struct hearth_hash128){hearth_hash_mix(pair, tree->seed), pair};
}

/* Enter appended nodes into the map. */
static bool map_children(struct hearth_stacktree *tree)
{
    if (tree->n_mapped == 0) {
        tree->n_mapped = 1; /* the root has no parent */
    }

    for (; tree->n_mapped < tree->n_nodes; tree->n_mapped++) {
        const struct hearth_tree_node *node = &tree->nodes[tree->n_mapped];
        bool inserted;
        if (hearth_idmap_intern(&tree->child_ids, hash_child(tree, node->parent, node->name),
                                (uint32_t)tree->n_mapped, &inserted) == HEARTH_IDMAP_NONE) {
            return false;
        }
    }

    return true;
}

uint32_t hearth_stacktree_find(struct hearth_stacktree *tree, uint32_t parent, uint32_t name)
{
    assert(parent < tree->n_nodes || tree->n_nodes == 0);

    if (tree->n_mapped < tree->n_nodes && !map_children(tree)) {
        return HEARTH_NO_NODE;
    }
    return hearth_idmap_find(&tree->child_ids, hash_child(tree, parent, name));
}

uint32_t hearth_stacktree_child(struct hearth_stacktree *tree, uint32_t parent, uint32_t name)
{
    if (!ensure_root(tree) || (tree->n_mapped < tree->n_nodes && !map_children(tree))) {
        return HEARTH_NO_NODE;
    }

    HEARTH_ASSERT(parent < tree->n_nodes && name < tree->n_names);
    struct hearth_hash128 key = hash_child(tree, parent, name);

    /* Without room for a node, existing children are still found. */
    if (HEARTH_UNLIKELY(tree->n_nodes == tree->cap_nodes)) {
        uint32_t node = hearth_idmap_find(&tree->child_ids, key);
        if (node != HEARTH_IDMAP_NONE) {
            return node;
        }

        if (!reserve_node(tree)) {
            return HEARTH_NO_NODE;
        }
    }

    /* Find it, or enter it as the next node. */
    bool inserted;
    uint32_t fresh = (uint32_t)tree->n_nodes;
    uint32_t node = hearth_idmap_intern(&tree->child_ids, key, fresh, &inserted);
    if (node == HEARTH_IDMAP_NONE || !inserted) {
        return node;
    }

    tree->n_mapped++;

    return hearth_stacktree_append(tree, parent, name); /* there is room, so it is `fresh` */
}

enum hearth_status hearth_stacktree_seal(struct hearth_stacktree *tree, struct hearth_err *err)
{
    if (!ensure_root(tree)) {
        return HEARTH_FAIL_ARENA(err, tree->arena);
    }

    /* Start with the selfs. */
    struct hearth_tree_node *nodes = tree->nodes;
    for (size_t i = 0; i < tree->n_nodes; i++) {
        if (nodes[i].self < 0) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                               "frame \"" HEARTH_STR_FMT "\" has a negative value",
                               HEARTH_STR_ARG(tree->names[nodes[i].name]));
        }

        nodes[i].total = nodes[i].self;
    }

    /* Children follow their parents: add from the end. */
    for (size_t i = tree->n_nodes; i-- > 1;) {
        int64_t *above = &nodes[nodes[i].parent].total;
        if (__builtin_add_overflow(*above, nodes[i].total, above)) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                               "the sum of values exceeds 64 bits below frame \"" HEARTH_STR_FMT
                               "\"",
                               HEARTH_STR_ARG(tree->names[nodes[nodes[i].parent].name]));
        }
    }

    return HEARTH_OK;
}

/* Remove the nodes of a sealed tree whose total is below `least`, which is at least 1. */
static enum hearth_status keep_large_nodes(struct hearth_stacktree *tree, int64_t least,
                                           struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_mem_freep)
    uint32_t *new_number = hearth_mem_calloc(tree->n_nodes, sizeof *new_number);
    if (new_number == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to prune a tree of stack traces");
    }

    /* A node moves towards the front, over nodes that have been copied already. */
    struct hearth_tree_node *nodes = tree->nodes;
    uint32_t n = 1;
    nodes[0].first_child = HEARTH_NO_NODE;
    for (size_t i = 1; i < tree->n_nodes; i++) {
        if (nodes[i].total < least) {
            continue;
        }

        struct hearth_tree_node node = nodes[i];
        node.parent = new_number[node.parent];
        node.first_child = HEARTH_NO_NODE;
        node.next_sibling = nodes[node.parent].first_child;
        nodes[node.parent].first_child = n;
        new_number[i] = n;
        nodes[n++] = node;
    }

    tree->n_nodes = n;

    /* The map is rebuilt at the next look-up of a child. */
    hearth_idmap_reset(&tree->child_ids);
    tree->n_mapped = 0;

    return HEARTH_OK;
}

/* No value is negative, so a total is 0 if all selfs below are. */
enum hearth_status hearth_stacktree_prune(struct hearth_stacktree *tree, struct hearth_err *err)
{
    assert(tree != NULL);

    HEARTH_TRY(hearth_stacktree_seal(tree, err));
    return keep_large_nodes(tree, 1, err);
}

/* Add a child "other" to each node, with the part of its total that its self and children lack. */
static enum hearth_status add_other_nodes(struct hearth_stacktree *tree, struct hearth_err *err)
{
    uint32_t other = hearth_stacktree_name(tree, HEARTH_STR("other"));
    uint32_t n = (uint32_t)tree->n_nodes;
    if (other == HEARTH_IDMAP_NONE) {
        return HEARTH_FAIL_ARENA(err, tree->arena);
    }

    /* Children follow their parents: a total is whole until its node is passed. */
    for (uint32_t i = 0; i < n; i++) {
        int64_t total = tree->nodes[i].total;
        tree->nodes[i].total -= tree->nodes[i].self;
        if (i > 0) {
            tree->nodes[tree->nodes[i].parent].total -= total;
        }
    }

    for (uint32_t i = 0; i < n; i++) {
        int64_t rest = tree->nodes[i].total;
        uint32_t node = rest == 0 ? 0 : hearth_stacktree_append(tree, i, other);
        if (node == HEARTH_NO_NODE) {
            return HEARTH_FAIL_ARENA(err, tree->arena);
        }
        if (rest != 0) {
            tree->nodes[node].self = rest;
        }
    }

    return hearth_stacktree_seal(tree, err);
}

enum hearth_status hearth_stacktree_cut(struct hearth_stacktree *tree, int64_t max_nodes,
                                        struct hearth_err *err)
{
    assert(tree != NULL);

    int64_t bound;
    HEARTH_TRY(hearth_stacktree_min_total(tree, max_nodes, &bound, err));
    if (bound <= 1) {
        return HEARTH_OK;
    }

    size_t n_all = tree->n_nodes;
    HEARTH_TRY(keep_large_nodes(tree, bound, err));
    HEARTH_TRY(add_other_nodes(tree, err));
    tree->is_cut = true;
    tree->n_left_out = n_all - tree->n_nodes; /* each "other" stands for a node at least */

    return HEARTH_OK;
}

/* ---- functions ---- */

/*
 * Sum selfs and totals by name. Depth first along the links, counting how often each name is on the
 * path from the root: only its outermost node adds to the total, so recursion is not counted twice.
 * The counted subtrees of a name are disjoint, so the sum is at most the root's total and cannot
 * overflow in a sealed tree.
 */
static void sum_by_name(const struct hearth_stacktree *tree, struct hearth_function_total *sums,
                        uint32_t *on_path)
{
    const struct hearth_tree_node *nodes = tree->nodes;
    uint32_t at = nodes[0].first_child;

    while (at != HEARTH_NO_NODE && at != 0) {
        const struct hearth_tree_node *node = &nodes[at];
        struct hearth_function_total *sum = &sums[node->name];
        sum->self += node->self;
        if (on_path[node->name]++ == 0) {
            sum->total += node->total;
        }

        if (node->first_child != HEARTH_NO_NODE) {
            at = node->first_child;
            continue;
        }

        /* A leaf: go up to the next node with a sibling. */
        for (;;) {
            on_path[nodes[at].name]--;
            if (nodes[at].next_sibling != HEARTH_NO_NODE) {
                at = nodes[at].next_sibling;
                break;
            }
            at = nodes[at].parent;
            if (at == 0) {
                break;
            }
        }
    }
}

static int compare_functions(const void *a_ptr, const void *b_ptr, void *names_ptr)
{
    const struct hearth_function_total *a = a_ptr, *b = b_ptr;
    const struct hearth_str *names = names_ptr;

    if (a->self != b->self) {
        return a->self > b->self ? -1 : 1;
    }

    if (a->total != b->total) {
        return a->total > b->total ? -1 : 1;
    }

    return hearth_str_cmp(names[a->name], names[b->name]);
}

enum hearth_status hearth_stacktree_functions(const struct hearth_stacktree *tree,
                                              struct hearth_arena *arena,
                                              struct hearth_function_total **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    assert(tree != NULL && arena != NULL && ret != NULL && ret_n != NULL);

    struct hearth_function_total *sums =
        hearth_arena_calloc(arena, tree->n_names + 1, sizeof *sums);

    HEARTH_CLEANUP(hearth_mem_freep)
    uint32_t *on_path = hearth_mem_calloc(tree->n_names + 1, sizeof *on_path);
    if (sums == NULL || on_path == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (tree->n_nodes > 0) {
        sum_by_name(tree, sums, on_path);
    }

    /* Keep the names with a value, sorted. */
    size_t n = 0;
    for (size_t name = 0; name < tree->n_names; name++) {
        if (sums[name].self != 0 || sums[name].total != 0) {
            sums[n] =
                (struct hearth_function_total){(uint32_t)name, sums[name].self, sums[name].total};
            n++;
        }
    }

    if (n > 0) {
        qsort_r(sums, n, sizeof *sums, compare_functions, tree->names);
    }

    *ret = sums;
    *ret_n = n;

    return HEARTH_OK;
}
