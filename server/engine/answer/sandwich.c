/*
 * sandwich.c -- who calls a function, and what it calls.
 *
 * Each sample with the function counts once: its callers are those above the outermost call, its
 * callees those below the innermost.
 */
#include "hearth/base/mem.h"
#include "hearth/model/frame_name.h"

#include "select/query_internal.h"

#include <stdlib.h>

static enum hearth_status add_self(struct hearth_stacktree *tree, uint32_t node, int64_t value,
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

/* The child with a name of another tree, or HEARTH_NO_NODE. */
static uint32_t child_named(struct hearth_stacktree *tree, uint32_t parent,
                            const struct hearth_stacktree *from, uint32_t name)
{
    uint32_t own = hearth_stacktree_name(tree, from->names[name]);
    return own == HEARTH_IDMAP_NONE || parent == HEARTH_NO_NODE
               ? HEARTH_NO_NODE
               : hearth_stacktree_child(tree, parent, own);
}

/* What is called by the function, and the function: below its innermost calls. */
static enum hearth_status add_callees(const struct hearth_stacktree *tree, uint32_t function,
                                      struct hearth_arena *arena, struct hearth_stacktree *callees,
                                      struct hearth_err *err)
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
        node_of[i] = child_named(callees, parent, tree, node->name);
        HEARTH_TRY(add_self(callees, node_of[i], node->self, err));
    }
    return HEARTH_OK;
}

/* The function, and who calls it: above its outermost calls. */
static enum hearth_status add_callers(const struct hearth_stacktree *tree, uint32_t function,
                                      struct hearth_arena *arena, struct hearth_stacktree *callers,
                                      struct hearth_err *err)
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
            at = child_named(callers, at, tree, tree->nodes[up].name);
        }
        HEARTH_TRY(add_self(callers, at, node->total, err));
    }
    return HEARTH_OK;
}

/* ---- the answer ---- */

struct step {
    uint32_t node;
    int32_t parent; /* in the answer */
};

/* A side on its way into an answer. */
struct side {
    const struct hearth_stacktree *tree;
    int64_t min_total;
    struct step *todo; /* [n_nodes]: a node waits there at most once */
    size_t n_todo;
    uint32_t *kids; /* [n_nodes] */
    struct hearth_sandwich_node *out;
    size_t n_out;
};

static int by_name_descending(const void *left, const void *right, void *tree_ptr)
{
    const struct hearth_stacktree *tree = tree_ptr;
    const uint32_t *a = left, *b = right;
    return hearth_str_cmp(tree->names[tree->nodes[*b].name], tree->names[tree->nodes[*a].name]);
}

/* Put the children of a node that stay on the list, the first name on top; what the others come to. */
static int64_t push_children(struct side *side, uint32_t node, int32_t parent)
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
        qsort_r(side->kids, n_kids, sizeof side->kids[0], by_name_descending,
                (void *)(uintptr_t)tree);
    }
    for (size_t i = 0; i < n_kids; i++) {
        side->todo[side->n_todo++] = (struct step){side->kids[i], parent};
    }
    return folded;
}

static enum hearth_status walk(struct side *side, struct hearth_arena *arena,
                               struct hearth_err *err)
{
    const struct hearth_stacktree *tree = side->tree;
    (void)push_children(side, 0, -1);
    while (side->n_todo > 0) {
        struct step step = side->todo[--side->n_todo];
        const struct hearth_tree_node *node = &tree->nodes[step.node];
        struct hearth_str name = hearth_arena_str(arena, tree->names[node->name]);
        int32_t at = (int32_t)side->n_out;
        if (name.p == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        side->out[side->n_out++] =
            (struct hearth_sandwich_node){name, step.parent, node->self, node->total};
        int64_t folded = push_children(side, step.node, at);
        if (folded > 0) { /* before its siblings, which come with all that is below them */
            side->out[side->n_out++] =
                (struct hearth_sandwich_node){HEARTH_STR("other"), at, folded, folded};
        }
    }
    return HEARTH_OK;
}

static enum hearth_status answer_side(struct hearth_stacktree *tree, int64_t max_nodes,
                                      struct hearth_arena *scratch, struct hearth_arena *arena,
                                      struct hearth_sandwich_node **ret, size_t *ret_n,
                                      size_t *n_folded, struct hearth_err *err)
{
    struct side side = {.tree = tree};
    HEARTH_TRY(hearth_stacktree_seal(tree, err));
    HEARTH_TRY(hearth_stacktree_min_total(tree, max_nodes, &side.min_total, err));
    /* What only leads to deeper calls of the function has nothing of its own. */
    side.min_total = side.min_total > 0 ? side.min_total : 1;
    if (tree->n_nodes > INT32_MAX / 2) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "the sandwich has too many nodes");
    }
    size_t n_kept = 0;
    for (size_t i = 1; i < tree->n_nodes; i++) {
        n_kept += tree->nodes[i].total >= side.min_total;
        *n_folded += tree->nodes[i].total > 0 && tree->nodes[i].total < side.min_total;
    }
    side.todo = hearth_arena_array(scratch, tree->n_nodes, sizeof side.todo[0]);
    side.kids = hearth_arena_array(scratch, tree->n_nodes, sizeof side.kids[0]);
    side.out = hearth_arena_array(arena, 2 * n_kept, sizeof side.out[0]);
    if (side.todo == NULL || side.kids == NULL || side.out == NULL) {
        return HEARTH_FAIL_ARENA(err, side.out == NULL ? arena : scratch);
    }
    HEARTH_TRY(walk(&side, arena, err));
    *ret = side.out;
    *ret_n = side.n_out;
    return HEARTH_OK;
}

static uint32_t find_name(const struct hearth_stacktree *tree, struct hearth_str name)
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
    *ret = (struct hearth_sandwich){0};
    *ret_n_folded = 0;
    struct hearth_arena scratch;
    struct hearth_stacktree callers, callees;
    uint32_t name = find_name(tree, hearth_frame_shown(function));
    hearth_arena_init_like(&scratch, arena);
    hearth_stacktree_init(&callers, &scratch);
    hearth_stacktree_init(&callees, &scratch);
    enum hearth_status status = HEARTH_OK;
    if (name != HEARTH_NO_NODE) {
        status = add_callers(tree, name, &scratch, &callers, err);
    }
    if (status == HEARTH_OK && callers.n_nodes == 0) {
        status = HEARTH_FAIL(err, HEARTH_NOT_FOUND,
                             "no selected stack trace contains the function \"" HEARTH_STR_FMT "\"",
                             HEARTH_STR_ARG(function));
    }
    if (status == HEARTH_OK) {
        status = add_callees(tree, name, &scratch, &callees, err);
    }
    if (status == HEARTH_OK) {
        status = answer_side(&callers, max_nodes, &scratch, arena, &ret->callers, &ret->n_callers,
                             ret_n_folded, err);
    }
    if (status == HEARTH_OK) {
        status = answer_side(&callees, max_nodes, &scratch, arena, &ret->callees, &ret->n_callees,
                             ret_n_folded, err);
    }
    if (status == HEARTH_OK) {
        ret->self = ret->callees[0].self;
        ret->total = ret->callees[0].total;
        ret->whole = tree->nodes[0].total;
    }
    hearth_stacktree_release(&callers);
    hearth_stacktree_release(&callees);
    hearth_arena_release(&scratch);
    return status;
}

static enum hearth_status note_cut(const struct hearth_query *query, size_t n_folded,
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
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the notes of an answer")
               : HEARTH_OK;
}

enum hearth_status hearth_query_sandwich(const struct hearth_query *query,
                                         const struct hearth_merge_spec *spec,
                                         struct hearth_str function, struct hearth_sandwich *ret,
                                         struct hearth_err *err)
{
    *ret = (struct hearth_sandwich){0};
    int64_t max_nodes;
    HEARTH_TRY(hearth_query_max_nodes(query, spec, &max_nodes, err));
    HEARTH_ASSERT(!spec->empty_names); /* the root's name is no function's then */
    struct hearth_stacktree tree;
    hearth_stacktree_init(&tree, query->call.arena);
    enum hearth_status status = hearth_query_function_tree(query, spec, 0, &tree, err);
    if (status == HEARTH_OK) {
        size_t n_folded;
        status = hearth_sandwich_make(&tree, function, max_nodes, query->call.arena, ret, &n_folded,
                                      err);
        status = status == HEARTH_OK ? note_cut(query, n_folded, max_nodes, err) : status;
    }
    hearth_stacktree_release(&tree);
    return status;
}
