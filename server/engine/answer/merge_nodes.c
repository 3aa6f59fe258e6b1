/*
 * merge_nodes.c -- turns the sums of one name tree into nodes of a function tree.
 *
 * If the name tree holds the whole answer, only visible nodes are made: totals are summed and the
 * bound of truncation is found in dense arrays first. Otherwise all nodes with a value are unified
 * by name, with other trees, or with each other if several names are shown as one.
 */
#include "answer/merge_nodes.h"

#include "hearth/model/frame_name.h"
#include "hearth/model/go_stacks.h"

#include "select/stack_filter.h"

#include <assert.h>
#include <string.h>

static enum hearth_status fail_tree_range(struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum of the flame graph exceeds 64 bits");
}

/*
 * Sets the selfs of stacks that do not pass to 0. Returns the first node with a negative self, or
 * NO_NODE.
 */
static uint32_t apply_filter(struct hearth_tree_part *part, const bool *inside)
{
    int64_t signs = 0;

    for (uint32_t i = 0; inside != NULL && i < part->n_nodes; i++) {
        part->self[i] = inside[i] ? part->self[i] : 0;
    }

    for (uint32_t i = 0; i < part->n_nodes; i++) {
        signs |= part->self[i];
    }

    for (uint32_t i = 0; signs < 0; i++) {
        if (part->self[i] < 0) {
            return i;
        }
    }

    return HEARTH_NO_NODE;
}

/* Turns the selfs in total[] into totals, in place_only_part, children before parents. */
static enum hearth_status sum_node_totals(const struct hearth_tree_part *part, int64_t *total,
                                          struct hearth_err *err)
{
    bool overflow = false;

    for (uint32_t end = part->n_nodes; end > 1;) {
        uint32_t at, segment = hearth_name_tree_segment(end - 1, &at);
        uint32_t first = end - 1 - at;
        const struct hearth_name_node *nodes = part->tree->nodes[segment];
        uint32_t last = first == 0 ? 1 : first; /* the root has no parent */
        for (; end > last; end--) {
            int64_t *above = &total[nodes[end - 1 - first].parent];
            overflow |= __builtin_add_overflow(*above, total[end - 1], above);
        }
    }

    return overflow ? fail_tree_range(err) : HEARTH_OK;
}

/* The state of turning a part into nodes of a function tree. */
struct part_placement {
    const struct hearth_tree_part *part;
    struct hearth_stacktree *tree;
    struct hearth_arena *arena;
    bool empty_names, repair_go; /* as in the merge_spec */
    int64_t *total;              /* [n_nodes of the part] */
    uint32_t *node_of, *name_of; /* the tree's node and name of each node and name of the part */
    uint32_t n_names;            /* number of names at the beginning: the name tree may grow */
    bool names_meet;             /* a name of the tree stands for several names of the part */
    bool *meets, *name_meets;    /* by node and name: see place_meeting_node; NULL if not needed */
};

/* ---- the bound of truncation ---- */

/*
 * Totals are counted by size: exactly below 64, then in 32 steps for each power of two. One pass
 * finds the step of the wanted rank; only totals in that step are compared exactly.
 */
#define N_STEPS (64u + 57u * 32u)

static unsigned find_step(int64_t total)
{
    if (total < 64) {
        return (unsigned)total;
    }
    unsigned shift = 58 - (unsigned)__builtin_clzll((unsigned long long)total);
    return shift * 32 + (unsigned)(total >> shift);
}

/* The smallest total of a step. */
static uint64_t find_step_start(unsigned step)
{
    return step < 64 ? step : (uint64_t)(32 + step % 32) << (step / 32 - 1);
}

/* Finds the smallest visible total, at least 1, and the number of nodes with a value. */
static enum hearth_status find_tree_bound(const struct part_placement *p, int64_t max_nodes,
                                          int64_t *ret_bound, size_t *ret_n_live,
                                          struct hearth_err *err)
{
    const int64_t *total = p->total;
    uint32_t n_nodes = p->part->n_nodes;
    struct hearth_arena *arena = p->arena;
    /*
     * Two counters, in turn: neighbours are often equal, and an increment waits for the previous
     * one.
     */
    uint32_t counts[N_STEPS] = {0}, odd[N_STEPS] = {0};
    uint32_t i = 1;

    for (; i + 1 < n_nodes; i += 2) {
        counts[find_step(total[i])]++;
        odd[find_step(total[i + 1])]++;
    }

    if (i < n_nodes) {
        counts[find_step(total[i])]++;
    }

    for (unsigned step = 0; step < N_STEPS; step++) {
        counts[step] += odd[step];
    }

    size_t n_live = n_nodes - 1 - counts[0];
    *ret_n_live = n_live;
    *ret_bound = 1;
    if (max_nodes < 1 || (uint64_t)max_nodes >= n_live) {
        return HEARTH_OK;
    }

    /* The step of the wanted rank, then the exact bound among the totals in it. */
    size_t rank = (size_t)max_nodes;
    unsigned step = N_STEPS - 1;
    while (counts[step] < rank) { /* the counts above 0 sum to n_live > rank */
        rank -= counts[step--];
    }

    uint64_t *totals = hearth_arena_array(arena, counts[step], sizeof totals[0]);
    if (totals == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n = 0;
    uint64_t least = find_step_start(step), width = find_step_start(step + 1) - least;
    for (i = 1; i < n_nodes; i++) {
        if ((uint64_t)total[i] - least < width) {
            totals[n++] = (uint64_t)total[i];
        }
    }

    *ret_bound = hearth_stacktree_bound(totals, n, rank);
    return HEARTH_OK;
}

/* ---- nodes ---- */

/* False: memory was refused. */
static bool init_placement(struct part_placement *p)
{
    const struct hearth_tree_part *part = p->part;

    p->node_of = hearth_arena_array(p->arena, part->n_nodes, sizeof p->node_of[0]);
    p->n_names = hearth_name_tree_n_names(part->tree);
    p->name_of = hearth_arena_calloc(p->arena, p->n_names, sizeof p->name_of[0]);
    p->total = hearth_arena_array(p->arena, part->n_nodes, sizeof p->total[0]);
    if (p->node_of == NULL || p->name_of == NULL || p->total == NULL) {
        return false;
    }

    p->node_of[0] = hearth_stacktree_root(p->tree);
    return p->node_of[0] != HEARTH_NO_NODE;
}

/* A name as the tree shows it. .p is NULL if memory was refused. */
static struct hearth_str show_name(struct part_placement *p, struct hearth_str name)
{
    if (p->repair_go && hearth_go_name_is_generic(name)) {
        size_t n = 0;
        char *text = hearth_arena_alloc(p->arena, name.n);
        return text != NULL && hearth_go_name_shorten(name, text, &n) ? hearth_str_n(text, n)
                                                                      : (struct hearth_str){0};
    }

    return p->empty_names ? name : hearth_frame_shown(name);
}

/* Whether several names of a part may be shown as this one. */
static bool may_meet_name(struct hearth_str shown)
{
    return memmem(shown.p, shown.n, "[...]", strlen("[...]")) != NULL ||
           hearth_str_eq(shown, HEARTH_FRAME_UNKNOWN);
}

/* The tree's number of a name of the part. HEARTH_IDMAP_NONE: memory was refused. */
static uint32_t place_part_name(struct part_placement *p, uint32_t name)
{
    if (p->name_of[name] == 0) { /* 0 is the root's name: not placed yet, or the empty name */
        struct hearth_str text = show_name(p, hearth_name_tree_name(p->part->tree, name));
        size_t n_names = p->tree->n_names;
        p->name_of[name] =
            text.p == NULL ? HEARTH_IDMAP_NONE : hearth_stacktree_name(p->tree, text);
        if (p->name_meets != NULL && p->name_of[name] != HEARTH_IDMAP_NONE) {
            p->name_meets[name] = may_meet_name(p->tree->names[p->name_of[name]]);
        }
        p->names_meet |= p->tree->n_names == n_names && p->name_of[name] != 0;
    }

    return p->name_of[name];
}

/*
 * Adds a node to an empty tree in which names meet. Most nodes are still the only one of their name
 * below their parent; only nodes of names that may meet, and the nodes below them, are looked up.
 */
static uint32_t place_meeting_node(struct part_placement *p, uint32_t i, uint32_t parent,
                                   uint32_t name, struct hearth_idmap *met)
{
    struct hearth_name_node from = hearth_name_tree_node(p->part->tree, i);

    p->meets[i] = p->meets[from.parent] || p->name_meets[from.name];
    if (!p->meets[i]) {
        return hearth_stacktree_append(p->tree, parent, name);
    }

    if (!hearth_stacktree_reserve(p->tree, 1)) {
        return HEARTH_NO_NODE;
    }

    bool inserted;
    uint64_t pair = (uint64_t)parent << 32 | name;
    struct hearth_hash128 key = {hearth_hash_mix(pair, p->tree->seed), pair};
    uint32_t node = hearth_idmap_intern(met, key, (uint32_t)p->tree->n_nodes, &inserted);

    return node != HEARTH_IDMAP_NONE && inserted ? hearth_stacktree_append(p->tree, parent, name)
                                                 : node;
}

/*
 * Adds all nodes with a value to a tree that may hold other parts. met: nodes of the first part,
 * for place_meeting_node; NULL for later parts.
 */
static enum hearth_status unify_nodes(struct part_placement *p, struct hearth_idmap *met,
                                      struct hearth_err *err)
{
    const struct hearth_tree_part *part = p->part;
    const int64_t *total = p->total;
    int64_t *root = &p->tree->nodes[0].self;
    bool overflow = __builtin_add_overflow(*root, part->self[0], root);

    for (uint32_t i = 1; i < part->n_nodes; i++) {
        p->node_of[i] = HEARTH_NO_NODE;
        if (total[i] == 0) {
            continue;
        }

        struct hearth_name_node from = hearth_name_tree_node(part->tree, i);
        uint32_t parent = p->node_of[from.parent], name = place_part_name(p, from.name);
        /* Values of both signs cancelled each other in the totals above it. */
        if (parent == HEARTH_NO_NODE) {
            return fail_tree_range(err);
        }

        uint32_t node = name == HEARTH_IDMAP_NONE ? HEARTH_NO_NODE
                        : met != NULL             ? place_meeting_node(p, i, parent, name, met)
                                                  : hearth_stacktree_child(p->tree, parent, name);
        if (node == HEARTH_NO_NODE) {
            return HEARTH_FAIL_ARENA(err, p->arena);
        }

        p->node_of[i] = node;
        int64_t *self = &p->tree->nodes[node].self;
        overflow |= __builtin_add_overflow(*self, part->self[i], self);
    }

    return overflow ? fail_tree_range(err) : HEARTH_OK;
}

/* Adds all nodes of the first part of a tree. */
static enum hearth_status place_whole_part(struct part_placement *p, struct hearth_err *err)
{
    p->meets = hearth_arena_calloc(p->arena, p->part->n_nodes, sizeof p->meets[0]);
    p->name_meets = hearth_arena_calloc(p->arena, p->n_names, sizeof p->name_meets[0]);
    if (p->meets == NULL || p->name_meets == NULL) {
        return HEARTH_FAIL_ARENA(err, p->arena);
    }

    struct hearth_idmap met;
    hearth_idmap_init(&met);
    enum hearth_status status = unify_nodes(p, &met, err);
    hearth_idmap_release(&met);

    return status;
}

/*
 * Adds a child "other" to each node whose total, which is still the value of its left-out children,
 * is not 0.
 */
static enum hearth_status add_rest_nodes(struct part_placement *p, struct hearth_err *err)
{
    struct hearth_stacktree *tree = p->tree;
    uint32_t other = hearth_stacktree_name(tree, HEARTH_STR("other"));
    if (other == HEARTH_IDMAP_NONE) {
        return HEARTH_FAIL_ARENA(err, p->arena);
    }

    for (uint32_t i = 0, n = (uint32_t)tree->n_nodes; i < n; i++) {
        int64_t rest = tree->nodes[i].total;
        if (rest == 0) {
            continue;
        }
        uint32_t node = hearth_stacktree_append(tree, i, other);
        if (node == HEARTH_NO_NODE) {
            return HEARTH_FAIL_ARENA(err, p->arena);
        }
        tree->nodes[node].self = rest;
    }

    return HEARTH_OK;
}

/*
 * Adds the nodes whose total reaches the bound to an empty tree, without look-ups. Totals do not
 * grow towards the leaves, so the parent of such a node reaches the bound, too. Until
 * add_rest_nodes the total of a node is the value that its children lack.
 */
static enum hearth_status place_visible_nodes(struct part_placement *p, int64_t bound,
                                              struct hearth_err *err)
{
    struct hearth_stacktree *tree = p->tree;
    const int64_t *self = p->part->self, *total = p->total;

    tree->nodes[0].self = self[0];
    tree->nodes[0].total = total[0] - self[0];
    for (uint32_t i = 1; i < p->part->n_nodes; i++) {
        if (total[i] < bound) {
            continue;
        }
        struct hearth_name_node from = hearth_name_tree_node(p->part->tree, i);
        uint32_t parent = p->node_of[from.parent], name = place_part_name(p, from.name);
        uint32_t node = name == HEARTH_IDMAP_NONE ? HEARTH_NO_NODE
                                                  : hearth_stacktree_append(tree, parent, name);
        if (node == HEARTH_NO_NODE) {
            return HEARTH_FAIL_ARENA(err, p->arena);
        }
        p->node_of[i] = node;
        tree->nodes[node].self = self[i];
        tree->nodes[node].total = total[i] - self[i];
        tree->nodes[parent].total -= total[i];
    }

    return HEARTH_OK;
}

/*
 * Frames without a name are shown as [unknown], and others are called so: siblings may be one node.
 */
static enum hearth_status place_part_again(struct part_placement *p, struct hearth_err *err)
{
    hearth_stacktree_release(p->tree);
    memset(p->name_of, 0, p->n_names * sizeof p->name_of[0]);
    p->node_of[0] = hearth_stacktree_root(p->tree);
    if (p->node_of[0] == HEARTH_NO_NODE) {
        return HEARTH_FAIL_ARENA(err, p->arena);
    }

    return place_whole_part(p, err);
}

/* Places the only part of an answer, truncated unless names meet. */
static enum hearth_status place_only_part(struct part_placement *p, int64_t max_nodes,
                                          struct hearth_err *err)
{
    int64_t bound;
    size_t n_live;

    HEARTH_TRY(find_tree_bound(p, max_nodes, &bound, &n_live, err));
    if (bound == 1 && !hearth_stacktree_reserve(p->tree, n_live)) {
        return HEARTH_FAIL_ARENA(err, p->arena);
    }

    HEARTH_TRY(place_visible_nodes(p, bound, err));
    if (p->names_meet) {
        return place_part_again(p, err);
    }

    if (bound > 1) {
        HEARTH_TRY(add_rest_nodes(p, err));
        p->tree->is_cut = true;
        p->tree->n_left_out = n_live + 1 - p->tree->n_nodes;
    }

    return HEARTH_OK;
}

static enum hearth_status fail_negative_frame(const struct hearth_tree_part *part, uint32_t node,
                                              struct hearth_err *err)
{
    struct hearth_str name =
        hearth_name_tree_name(part->tree, hearth_name_tree_node(part->tree, node).name);
    return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                       "frame \"" HEARTH_STR_FMT "\" has a negative value", HEARTH_STR_ARG(name));
}

enum hearth_status hearth_tree_part_place(struct hearth_tree_part *part,
                                          const struct hearth_part_form *form,
                                          struct hearth_stacktree *tree, struct hearth_arena *arena,
                                          struct hearth_err *err)
{
    const struct hearth_merge_spec *spec = form->spec;
    bool *inside;

    assert(!form->alone || tree->n_nodes == 0);
    uint32_t size = hearth_name_tree_size(part->tree);
    part->n_nodes = part->n_nodes < size ? part->n_nodes : size;

    HEARTH_TRY(
        hearth_stack_filter_nodes(&spec->stacks, part->tree, part->n_nodes, arena, &inside, err));
    struct part_placement p = {.part = part,
                               .tree = tree,
                               .arena = arena,
                               .empty_names = spec->empty_names,
                               .repair_go = spec->go_stacks == HEARTH_GO_REPAIRED};
    if (!init_placement(&p)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    uint32_t negative = apply_filter(part, inside);
    if (form->alone && negative != HEARTH_NO_NODE) { /* otherwise another part may compensate it */
        return fail_negative_frame(part, negative, err);
    }

    memcpy(p.total, part->self, part->n_nodes * sizeof p.total[0]);
    HEARTH_TRY(sum_node_totals(part, p.total, err));
    part->node_of = p.node_of;

    return form->alone          ? place_only_part(&p, form->max_nodes, err)
           : tree->n_nodes == 1 ? place_whole_part(&p, err)
                                : unify_nodes(&p, NULL, err);
}
