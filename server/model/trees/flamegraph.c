/*
 * flamegraph.c -- truncation of a stack tree, and its two external forms: levels and tree bytes.
 *
 * Both forms walk the tree with an explicit stack, children pushed in ascending order of names and
 * `other` last, so they are visited last to first. Within a level that means right to left, so
 * levels are filled from their ends.
 *
 * Truncation: totals never grow on the way down. So the nodes that a min-heap of the max_nodes
 * largest totals would keep are those at or above the max_nodes-th largest total. Radix selection
 * finds this number in a few passes over an array of totals; no input makes it slow.
 */
#include "hearth/base/mem.h"
#include "hearth/model/stacktree.h"

#include "trees/ranked.h"

#include <assert.h>

/* The frame into which truncation folds nodes; a real frame with this name joins it. */
#define OTHER HEARTH_STR("other")

/* ---- the bound ---- */

#define DIGIT_BITS 11u
#define N_DIGITS   (1u << DIGIT_BITS)

/*
 * The rank-th largest (1-based) of v[0..n); 1 <= rank <= n; v is reordered. Each round compares the
 * highest bits in which the candidates differ and keeps those with the wanted digit, until all
 * candidates are equal.
 */
static uint64_t select_largest(uint64_t *v, size_t n, size_t rank)
{
    uint64_t ones = 0, common = UINT64_MAX; /* bitwise or, bitwise and of all candidates */

    for (size_t i = 0; i < n; i++) {
        ones |= v[i];
        common &= v[i];
    }

    while (ones != common) {
        /* Count the candidates by their highest differing digit. */
        unsigned top = 64 - (unsigned)__builtin_clzll(ones ^ common);
        unsigned shift = top > DIGIT_BITS ? top - DIGIT_BITS : 0;
        uint32_t counts[N_DIGITS] = {0};
        for (size_t i = 0; i < n; i++) {
            counts[v[i] >> shift & (N_DIGITS - 1)]++;
        }

        /* Find the digit of the wanted candidate. */
        size_t digit = N_DIGITS - 1;
        while (counts[digit] < rank) { /* ends, because the counts sum to n >= rank */
            rank -= counts[digit--];
        }

        /* Keep the candidates with this digit. */
        size_t kept = 0;
        ones = 0;
        common = UINT64_MAX;
        for (size_t i = 0; i < n; i++) {
            if ((v[i] >> shift & (N_DIGITS - 1)) == digit) {
                ones |= v[i];
                common &= v[i];
                v[kept++] = v[i];
            }
        }

        n = kept;
    }

    return v[0];
}

int64_t hearth_stacktree_bound(uint64_t *totals, size_t n, size_t max_nodes)
{
    HEARTH_ASSERT(max_nodes >= 1 && max_nodes <= n);
    return (int64_t)select_largest(totals, n, max_nodes);
}

enum hearth_status hearth_stacktree_min_total(const struct hearth_stacktree *tree,
                                              int64_t max_nodes, int64_t *ret_min_total,
                                              struct hearth_err *err)
{
    assert(tree != NULL && ret_min_total != NULL);

    size_t n = tree->n_nodes == 0 ? 0 : tree->n_nodes - 1; /* the root is not counted */

    if (tree->is_cut || max_nodes < 1 || (uint64_t)max_nodes >= n) {
        *ret_min_total = 0;
        return HEARTH_OK;
    }

    HEARTH_CLEANUP(hearth_mem_freep)
    uint64_t *totals = hearth_mem_reallocarray(NULL, n, sizeof *totals);
    if (totals == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to truncate a tree of %zu nodes", n);
    }

    for (size_t i = 0; i < n; i++) {
        totals[i] = (uint64_t)tree->nodes[i + 1].total; /* >= 0 in a sealed tree */
    }

    *ret_min_total = (int64_t)select_largest(totals, n, (size_t)max_nodes);

    return HEARTH_OK;
}

/* ---- the walk ---- */

/* A node on the stack of the walk. */
struct step {
    uint32_t node; /* HEARTH_NO_NODE: an `other` */
    uint32_t level;
    int64_t x;
    int64_t folded; /* value of an `other` */
};

struct walk {
    const struct hearth_stacktree *tree;
    int64_t min_total;
    uint32_t other_name; /* the tree's name "other", or HEARTH_NO_NODE */
    struct step *stack;
    size_t n_stack, cap_stack;
    struct hearth_ranked *kids; /* children of the node that is being expanded */
    size_t n_kids, cap_kids;
    size_t n_other; /* number of `other` nodes pushed */
};

static void walk_release(struct walk *walk)
{
    hearth_mem_free(walk->stack);
    hearth_mem_free(walk->kids);
}

static enum hearth_status walk_start(struct walk *walk, const struct hearth_stacktree *tree,
                                     int64_t max_nodes, struct hearth_err *err)
{
    *walk = (struct walk){.tree = tree, .other_name = HEARTH_NO_NODE};
    HEARTH_TRY(hearth_stacktree_min_total(tree, max_nodes, &walk->min_total, err));

    struct hearth_str other = OTHER;
    uint32_t name =
        hearth_idmap_find(&tree->name_ids, hearth_hash128(other.p, other.n, tree->seed));
    if (name != HEARTH_IDMAP_NONE) {
        walk->other_name = name;
    }

    if (!hearth_mem_grow(&walk->stack, &walk->cap_stack, 64, sizeof walk->stack[0])) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to walk a stack tree");
    }

    walk->stack[walk->n_stack++] = (struct step){0};

    return HEARTH_OK;
}

/*
 * Push the children of `step` that are shown, ascending, then `other`. *ret_n_pushed counts them.
 */
static enum hearth_status expand_step(struct walk *walk, const struct step *step,
                                      size_t *ret_n_pushed, struct hearth_err *err)
{
    const struct hearth_tree_node *nodes = walk->tree->nodes;
    int64_t folded = 0;

    /* Collect the children that are shown, and fold the others. */
    walk->n_kids = 0;
    for (uint32_t at = nodes[step->node].first_child; at != HEARTH_NO_NODE;
         at = nodes[at].next_sibling) {
        if (nodes[at].total < walk->min_total || nodes[at].name == walk->other_name) {
            folded += nodes[at].total; /* at most the parent's total */
            continue;
        }
        if (walk->n_kids == walk->cap_kids &&
            !hearth_mem_grow(&walk->kids, &walk->cap_kids, walk->n_kids + 1,
                             sizeof walk->kids[0])) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to walk a stack tree");
        }
        struct hearth_str name = walk->tree->names[nodes[at].name];
        walk->kids[walk->n_kids++] = hearth_ranked(at, name);
    }

    size_t n_pushed = walk->n_kids + (folded != 0);
    if (walk->cap_stack - walk->n_stack < n_pushed &&
        !hearth_mem_grow(&walk->stack, &walk->cap_stack, walk->n_stack + n_pushed,
                         sizeof walk->stack[0])) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to walk a stack tree");
    }

    /* Push them from left to right, after the node's self. */
    hearth_ranked_sort(walk->kids, walk->n_kids);
    int64_t x = step->x + nodes[step->node].self;
    for (size_t i = 0; i < walk->n_kids; i++) {
        uint32_t node = walk->kids[i].node;
        walk->stack[walk->n_stack++] =
            (struct step){.node = node, .level = step->level + 1, .x = x};
        x += nodes[node].total;
    }

    if (folded != 0) {
        walk->stack[walk->n_stack++] = (struct step){
            .node = HEARTH_NO_NODE, .level = step->level + 1, .x = x, .folded = folded};
        walk->n_other++;
    }

    *ret_n_pushed = n_pushed;

    return HEARTH_OK;
}

/* ---- levels ---- */

struct box {
    int64_t x, total, self;
    uint32_t level, name; /* name: index into the flame graph's names */
};

struct boxes {
    struct box *v;
    size_t n, cap;
    size_t *per_level; /* number of boxes of each level */
    size_t n_levels, cap_levels;
    uint32_t *name_of; /* tree name -> index + 1; 0: not used yet */
    uint32_t *used;    /* index -> tree name; HEARTH_NO_NODE: `other` */
    size_t n_used, cap_used;
    uint32_t other; /* index + 1 of `other`; 0: not used yet */
};

static void boxes_release(struct boxes *boxes)
{
    hearth_mem_free(boxes->v);
    hearth_mem_free(boxes->per_level);
    hearth_mem_free(boxes->name_of);
    hearth_mem_free(boxes->used);
}

/* The flame graph's index of a name; the caller has made room for one more in `used`. */
static uint32_t use_name(struct boxes *boxes, uint32_t tree_name)
{
    assert(boxes->n_used < boxes->cap_used);

    uint32_t *slot = tree_name == HEARTH_NO_NODE ? &boxes->other : &boxes->name_of[tree_name];
    if (*slot == 0) {
        boxes->used[boxes->n_used++] = tree_name;
        *slot = (uint32_t)boxes->n_used;
    }
    return *slot - 1;
}

/* Make room for one more box and name, and for the level. */
static bool reserve_box(struct boxes *boxes, uint32_t level)
{
    return hearth_mem_grow(&boxes->v, &boxes->cap, boxes->n + 1, sizeof boxes->v[0]) &&
           hearth_mem_grow(&boxes->used, &boxes->cap_used, boxes->n_used + 1,
                           sizeof boxes->used[0]) &&
           hearth_mem_grow(&boxes->per_level, &boxes->cap_levels, (size_t)level + 1,
                           sizeof boxes->per_level[0]);
}

static bool add_box(struct boxes *boxes, const struct hearth_stacktree *tree,
                    const struct step *step)
{
    bool has_room =
        boxes->n < boxes->cap && boxes->n_used < boxes->cap_used && step->level < boxes->cap_levels;
    if (HEARTH_UNLIKELY(!has_room) && !reserve_box(boxes, step->level)) {
        return false;
    }

    while (boxes->n_levels <= step->level) {
        boxes->per_level[boxes->n_levels++] = 0;
    }

    boxes->per_level[step->level]++;
    struct box *box = &boxes->v[boxes->n++];
    if (step->level == 0) {
        boxes->used[boxes->n_used++] = 0; /* only the root is named "total" */
        *box = (struct box){.total = tree->nodes[0].total, .self = tree->nodes[0].self};
    } else if (step->node == HEARTH_NO_NODE) {
        *box = (struct box){.total = step->folded, .self = step->folded};
        box->name = use_name(boxes, HEARTH_NO_NODE);
    } else {
        const struct hearth_tree_node *node = &tree->nodes[step->node];
        *box = (struct box){.total = node->total, .self = node->self};
        box->name = use_name(boxes, node->name);
    }

    box->x = step->x;
    box->level = step->level;

    return true;
}

static enum hearth_status collect_boxes(struct walk *walk, struct boxes *boxes,
                                        struct hearth_err *err)
{
    boxes->name_of = hearth_mem_calloc(walk->tree->n_names, sizeof boxes->name_of[0]);
    if (boxes->name_of == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a flame graph");
    }

    while (walk->n_stack > 0) {
        struct step step = walk->stack[--walk->n_stack];
        if (!add_box(boxes, walk->tree, &step)) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a flame graph");
        }
        size_t n_pushed;
        if (step.node != HEARTH_NO_NODE) {
            HEARTH_TRY(expand_step(walk, &step, &n_pushed, err));
        }
    }

    return HEARTH_OK;
}

/*
 * Boxes come right to left within their level. Write each level left to right, then make x relative
 * to the end of the previous box.
 */
static enum hearth_status fill_levels(const struct boxes *boxes, struct hearth_arena *arena,
                                      struct hearth_flamegraph *graph, struct hearth_err *err)
{
    graph->levels = hearth_arena_calloc(arena, boxes->n_levels, sizeof graph->levels[0]);
    int64_t *values = hearth_arena_array(arena, boxes->n, 4 * sizeof *values);
    if (graph->levels == NULL || values == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* All levels share one array. */
    graph->n_levels = boxes->n_levels;
    for (size_t l = 0; l < boxes->n_levels; l++) {
        size_t n = 4 * boxes->per_level[l];
        graph->levels[l] = (struct hearth_flame_level){.values = values, .n = n, .cap = n};
        values += n;
    }

    /* Fill each level from its end. */
    for (size_t i = 0; i < boxes->n; i++) {
        const struct box *box = &boxes->v[i];
        struct hearth_flame_level *level = &graph->levels[box->level];
        int64_t *to = level->values + 4 * --boxes->per_level[box->level];
        to[0] = box->x;
        to[1] = box->total;
        to[2] = box->self;
        to[3] = box->name;
        graph->max_self = box->self > graph->max_self ? box->self : graph->max_self;
    }

    /* Make positions relative. */
    for (size_t l = 0; l < graph->n_levels; l++) {
        int64_t end = 0; /* end of the previous box of the level */
        for (size_t i = 0; i < graph->levels[l].n; i += 4) {
            int64_t *box = graph->levels[l].values + i;
            int64_t x = box[0];
            box[0] = x - end;
            end = x + box[1];
        }
    }

    return HEARTH_OK;
}

static enum hearth_status make_from_walk(struct walk *walk, struct boxes *boxes,
                                         struct hearth_arena *arena, struct hearth_flamegraph *ret,
                                         struct hearth_err *err)
{
    const struct hearth_stacktree *tree = walk->tree;

    /* Lay out the boxes. */
    HEARTH_TRY(collect_boxes(walk, boxes, err));

    /* Names in order of their first use; the root's comes first. */
    struct hearth_flamegraph graph = {.total = tree->nodes[0].total, .n_names = boxes->n_used};
    graph.names = hearth_arena_array(arena, boxes->n_used, sizeof graph.names[0]);
    if (graph.names == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    graph.names[0] = HEARTH_STR("total");
    for (size_t i = 1; i < boxes->n_used; i++) {
        graph.names[i] = boxes->used[i] == HEARTH_NO_NODE ? OTHER : tree->names[boxes->used[i]];
    }

    HEARTH_TRY(fill_levels(boxes, arena, &graph, err));
    graph.n_folded = (int64_t)(tree->n_nodes + tree->n_left_out - (boxes->n - walk->n_other));
    *ret = graph;

    return HEARTH_OK;
}

/*
 * The graph of an empty result: one empty box, because clients treat a missing graph as an error.
 */
static enum hearth_status make_empty(struct hearth_arena *arena, struct hearth_flamegraph *ret,
                                     struct hearth_err *err)
{
    struct hearth_flamegraph graph = {.n_names = 1, .n_levels = 1};

    graph.names = hearth_arena_array(arena, 1, sizeof graph.names[0]);
    graph.levels = hearth_arena_array(arena, 1, sizeof graph.levels[0]);
    int64_t *values = hearth_arena_calloc(arena, 4, sizeof *values);
    if (graph.names == NULL || graph.levels == NULL || values == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    graph.names[0] = HEARTH_STR("total");
    graph.levels[0] = (struct hearth_flame_level){.values = values, .n = 4, .cap = 4};
    *ret = graph;

    return HEARTH_OK;
}

enum hearth_status hearth_flamegraph_make(const struct hearth_stacktree *tree, int64_t max_nodes,
                                          struct hearth_arena *arena, struct hearth_flamegraph *ret,
                                          struct hearth_err *err)
{
    assert(tree != NULL && arena != NULL && ret != NULL);

    if (tree->n_nodes <= 1) {
        return make_empty(arena, ret, err);
    }

    struct boxes boxes = {0};
    struct walk walk;
    enum hearth_status status = walk_start(&walk, tree, max_nodes, err);
    if (status == HEARTH_OK) {
        status = make_from_walk(&walk, &boxes, arena, ret, err);
    }

    walk_release(&walk);
    boxes_release(&boxes);

    return status;
}

/* ---- tree bytes ---- */

static void append_node(struct hearth_buf *out, struct hearth_str name, int64_t self,
                        size_t n_children)
{
    hearth_buf_varint(out, name.n);
    hearth_buf_str(out, name);
    hearth_buf_varint(out, (uint64_t)self);
    hearth_buf_varint(out, n_children);
}

enum hearth_status hearth_stacktree_write_bytes(const struct hearth_stacktree *tree,
                                                int64_t max_nodes, struct hearth_buf *out,
                                                struct hearth_err *err)
{
    assert(tree != NULL && out != NULL);

    if (tree->n_nodes <= 1) {
        return HEARTH_OK;
    }

    /*
     * Pre-order: a node is written when it is expanded, because its number of children is known
     * then.
     */
    struct walk walk;
    enum hearth_status status = walk_start(&walk, tree, max_nodes, err);

    while (status == HEARTH_OK && walk.n_stack > 0) {
        struct step step = walk.stack[--walk.n_stack];
        if (step.node == HEARTH_NO_NODE) {
            append_node(out, OTHER, step.folded, 0);
            continue;
        }

        size_t n_children;
        status = expand_step(&walk, &step, &n_children, err);
        if (status == HEARTH_OK) {
            const struct hearth_tree_node *node = &tree->nodes[step.node];
            append_node(out, tree->names[node->name], node->self, n_children);
        }
    }

    walk_release(&walk);
    if (status == HEARTH_OK && hearth_buf_failed(out)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "the tree exceeds the answer limit of %zu bytes",
                           out->limit_bytes);
    }

    return status;
}
