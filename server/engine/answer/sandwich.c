/*
 * sandwich.c -- callers and callees of a function.
 *
 * Each sample with the function counts once: its callers are the frames above the outermost call,
 * its callees the frames below the innermost call.
 */
#include "hearth/base/mem.h"
#include "hearth/model/frame_name.h"

#include "select/query_internal.h"

#include <assert.h>
#include <stdlib.h>

/* Adds to the self of a node; HEARTH_NO_NODE: memory was refused. */
static enum hearth_status add_node_self(struct hearth_stacktree *tree, uint32_t node, int64_t value,
                                        struct hearth_err *err)
{
    if (node == HEARTH_NO_NODE) {
        return HEARTH_FAIL_ARENA(err, tree->arena);
    }

    int64_t *self = &tree->nodes[node].self;
    return __builtin_add_overflow(*self, value, self)
               ? HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum of the sandwich exceeds 64 bits")
               : HEARTH_OK;
}

/* Finds or adds the child with a name of another tree; HEARTH_NO_NODE if memory was refused. */
static uint32_t find_child_by_name(struct hearth_stacktree *tree, uint32_t parent,
                                   const struct hearth_stacktree *from, uint32_t name)
{
    uint32_t own = hearth_stacktree_name(tree, from->names[name]);
    return own == HEARTH_IDMAP_NONE || parent == HEARTH_NO_NODE
               ? HEARTH_NO_NODE
               : hearth_stacktree_child(tree, parent, own);
}

/* Adds the function and its callees: the frames below its innermost calls. */
static enum hearth_status add_callee_nodes(const struct hearth_stacktree *tree, uint32_t function,
                                           struct hearth_arena *arena,
                                           struct hearth_stacktree *callees, struct hearth_err *err)
{
    uint32_t *node_of = hearth_arena_array(arena, tree->n_nodes, sizeof node_of[0]);
    if (node_of == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    node_of[0] = HEARTH_NO_NODE;
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct hearth_tree_node *node = &tree->nodes[i];
        bool begins = node->name == function;
        node_of[i] = HEARTH_NO_NODE;
        if (node->total == 0 || (!begins && node_of[node->parent] == HEARTH_NO_NODE)) {
            continue;
        }
        uint32_t parent = begins ? hearth_stacktree_root(callees) : node_of[node->parent];
        node_of[i] = find_child_by_name(callees, parent, tree, node->name);
        HEARTH_TRY(add_node_self(callees, node_of[i], node->self, err));
    }

    return HEARTH_OK;
}

/* Adds the function and its callers: the frames above its outermost calls. */
static enum hearth_status add_caller_nodes(const struct hearth_stacktree *tree, uint32_t function,
                                           struct hearth_arena *arena,
                                           struct hearth_stacktree *callers, struct hearth_err *err)
{
    bool *below = hearth_arena_array(arena, tree->n_nodes, sizeof below[0]);
    if (below == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    below[0] = false;
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct hearth_tree_node *node = &tree->nodes[i];
        below[i] = below[node->parent] || node->name == function;
        if (below[node->parent] || !below[i] || node->total == 0) {
            continue;
        }
        uint32_t at = hearth_stacktree_root(callers);
        for (uint32_t up = i; up != 0; up = tree->nodes[up].parent) {
            at = find_child_by_name(callers, at, tree, tree->nodes[up].name);
        }
        HEARTH_TRY(add_node_self(callers, at, node->total, err));
    }

    return HEARTH_OK;
}

/* ---- the answer ---- */

/* A node that is still to be written. */
struct walk_step {
    uint32_t node;
    int32_t parent; /* in the answer */
};

/* One side, while it is written. */
struct sandwich_side {
    struct hearth_stacktree *tree;
    struct hearth_arena *scratch, *arena; /* for the write_side_nodes; for the answer */
    int64_t max_nodes;
    size_t n_folded; /* nodes that are summed into "other" */
    int64_t min_total;
    struct walk_step *todo; /* [n_nodes]: a stack; each node is on it at most once */
    size_t n_todo;
    uint32_t *kids; /* [n_nodes]: children of the current node */
    struct hearth_sandwich_node *out;
    size_t n_out;
};

static int compare_names_descending(const void *left, const void *right, void *tree_ptr)
{
    const struct hearth_stacktree *tree = tree_ptr;
    const uint32_t *a = left, *b = right;
    return hearth_str_cmp(tree->names[tree->nodes[*b].name], tree->names[tree->nodes[*a].name]);
}

/* Pushes the visible children of a node, the first name on top. Returns the sum of the others. */
static int64_t push_visible_children(struct sandwich_side *side, uint32_t node, int32_t parent)
{
    const struct hearth_stacktree *tree = side->tree;
    size_t n_kids = 0;
    int64_t folded = 0;

    for (uint32_t kid = tree->nodes[node].first_child; kid != HEARTH_NO_NODE;
         kid = tree->nodes[kid].next_sibling) {
        if (tree->nodes[kid].total >= side->min_total) {
            side->kids[n_kids++] = kid;
        } else {
            folded += tree->nodes[kid].total;
        }
    }

    if (n_kids > 1) {
        qsort_r(side->kids, n_kids, sizeof side->kids[0], compare_names_descending,
                (void *)(uintptr_t)tree);
    }

    for (size_t i = 0; i < n_kids; i++) {
        side->todo[side->n_todo++] = (struct walk_step){side->kids[i], parent};
    }

    return folded;
}

/* Writes the nodes in pre-order, siblings by name. */
static enum hearth_status write_side_nodes(struct sandwich_side *side, struct hearth_err *err)
{
    const struct hearth_stacktree *tree = side->tree;
    struct hearth_arena *arena = side->arena;

    (void)push_visible_children(side, 0, -1);
    while (side->n_todo > 0) {
        struct walk_step step = side->todo[--side->n_todo];
        const struct hearth_tree_node *node = &tree->nodes[step.node];
        struct hearth_str name = hearth_arena_str(arena, tree->names[node->name]);
        int32_t at = (int32_t)side->n_out;
        if (name.p == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }

        side->out[side->n_out++] =
            (struct hearth_sandwich_node){name, step.parent, node->self, node->total};
        int64_t folded = push_visible_children(side, step.node, at);

        /* "other" precedes its siblings, each of which is followed by its descendants. */
        if (folded > 0) {
            side->out[side->n_out++] =
                (struct hearth_sandwich_node){HEARTH_STR("other"), at, folded, folded};
        }
    }

    return HEARTH_OK;
}

/* Truncates a side, and writes it into the answer. */
static enum hearth_status answer_sandwich_side(struct sandwich_side *side,
                                               struct hearth_sandwich_node **ret, size_t *ret_n,
                                               struct hearth_err *err)
{
    struct hearth_stacktree *tree = side->tree;

    HEARTH_TRY(hearth_stacktree_seal(tree, err));
    HEARTH_TRY(hearth_stacktree_min_total(tree, side->max_nodes, &side->min_total, err));

    /* Nodes that only lead to deeper calls of the function have no value of their own. */
    side->min_total = side->min_total > 0 ? side->min_total : 1;
    if (tree->n_nodes > INT32_MAX / 2) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "the sandwich has too many nodes");
    }

    size_t n_kept = 0;
    for (size_t i = 1; i < tree->n_nodes; i++) {
        n_kept += tree->nodes[i].total >= side->min_total;
        side->n_folded += tree->nodes[i].total > 0 && tree->nodes[i].total < side->min_total;
    }

    side->todo = hearth_arena_array(side->scratch, tree->n_nodes, sizeof side->todo[0]);
    side->kids = hearth_arena_array(side->scratch, tree->n_nodes, sizeof side->kids[0]);
    side->out = hearth_arena_array(side->arena, 2 * n_kept, sizeof side->out[0]);
    if (side->todo == NULL || side->kids == NULL || side->out == NULL) {
        return HEARTH_FAIL_ARENA(err, side->out == NULL ? side->arena : side->scratch);
    }

    HEARTH_TRY(write_side_nodes(side, err));
    assert(side->n_todo == 0 && side->n_out <= 2 * n_kept);
    *ret = side->out;
    *ret_n = side->n_out;
    return HEARTH_OK;
}

static uint32_t find_tree_name(const struct hearth_stacktree *tree, struct hearth_str name)
{
    for (size_t i = 1; i < tree->n_names; i++) {
        if (hearth_str_eq(tree->names[i], name)) {
            return (uint32_t)i;
        }
    }

    return HEARTH_NO_NODE;
}

enum hearth_status hearth_sandwich_make(const struct hearth_stacktree *tree,
                                        struct hearth_str function, int64_t max_nodes,
                                        struct hearth_arena *arena, struct hearth_sandwich *ret,
                                        size_t *ret_n_folded, struct hearth_err *err)
{
    assert(tree != NULL && arena != NULL && ret != NULL && ret_n_folded != NULL);

    *ret = (struct hearth_sandwich){0};
    *ret_n_folded = 0;
    struct hearth_arena scratch;
    struct hearth_stacktree callers, callees;
    uint32_t name = find_tree_name(tree, hearth_frame_shown(function));

    hearth_arena_init_like(&scratch, arena);
    hearth_stacktree_init(&callers, &scratch);
    hearth_stacktree_init(&callees, &scratch);
    struct sandwich_side above = {
        .tree = &callers, .scratch = &scratch, .arena = arena, .max_nodes = max_nodes};
    struct sandwich_side below = {
        .tree = &callees, .scratch = &scratch, .arena = arena, .max_nodes = max_nodes};
    enum hearth_status status = HEARTH_OK;
    if (name != HEARTH_NO_NODE) {
        status = add_caller_nodes(tree, name, &scratch, &callers, err);
    }

    if (status == HEARTH_OK && callers.n_nodes == 0) {
        status = HEARTH_FAIL(err, HEARTH_NOT_FOUND,
                             "no selected stack trace contains the function \"" HEARTH_STR_FMT "\"",
                             HEARTH_STR_ARG(function));
    }

    if (status == HEARTH_OK) {
        status = add_callee_nodes(tree, name, &scratch, &callees, err);
    }

    if (status == HEARTH_OK) {
        status = answer_sandwich_side(&above, &ret->callers, &ret->n_callers, err);
    }

    if (status == HEARTH_OK) {
        status = answer_sandwich_side(&below, &ret->callees, &ret->n_callees, err);
    }

    if (status == HEARTH_OK) {
        *ret_n_folded = above.n_folded + below.n_folded;
        ret->self = ret->callees[0].self;
        ret->total = ret->callees[0].total;
        ret->whole = tree->nodes[0].total;
    }

    hearth_stacktree_release(&callers);
    hearth_stacktree_release(&callees);
    hearth_arena_release(&scratch);

    return status;
}

static enum hearth_status note_folded_callers(const struct hearth_query *query, size_t n_folded,
                                              int64_t max_nodes, struct hearth_err *err)
{
    if (query->call.notes == NULL || n_folded == 0) {
        return HEARTH_OK;
    }

    hearth_buf_printf(
        query->call.notes,
        "%zu callers and callees are folded into \"other\" (max_nodes %lld of each side): ask "
        "for more with max_nodes\n",
        n_folded, (long long)max_nodes);

    return hearth_buf_failed(query->call.notes)
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the notes of an answer")
               : HEARTH_OK;
}

enum hearth_status hearth_query_sandwich(const struct hearth_query *query,
                                         const struct hearth_merge_spec *spec,
                                         struct hearth_str function, struct hearth_sandwich *ret,
                                         struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret != NULL);

    *ret = (struct hearth_sandwich){0};
    int64_t max_nodes;

    HEARTH_TRY(hearth_query_max_nodes(query, spec, &max_nodes, err));
    HEARTH_ASSERT(!spec->empty_names); /* otherwise functions could have the root's name */
    struct hearth_stacktree tree;
    hearth_stacktree_init(&tree, query->call.arena);
    enum hearth_status status = hearth_query_function_tree(query, spec, 0, &tree, err);
    if (status == HEARTH_OK) {
        size_t n_folded;
        status = hearth_sandwich_make(&tree, function, max_nodes, query->call.arena, ret, &n_folded,
                                      err);
        status =
            status == HEARTH_OK ? note_folded_callers(query, n_folded, max_nodes, err) : status;
    }

    hearth_stacktree_release(&tree);
    return status;
}
