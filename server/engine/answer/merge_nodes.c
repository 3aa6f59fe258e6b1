/*
 * merge_nodes.c -- the sums of one name tree to nodes of a function tree.
 *
 * Where the name tree holds all of an answer, only what is shown becomes a node: totals are summed and
 * the bound of truncation is found in dense arrays first. Otherwise all nodes that carry something are
 * unified by name, with other trees, or with each other where several names are shown as one.
 */
#include "answer/merge_nodes.h"

#include "hearth/model/frame_name.h"
#include "hearth/model/go_stacks.h"

#include "select/stack_filter.h"

#include <string.h>

static enum hearth_status fail_range(struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum of the flame graph exceeds 64 bits");
}

/* Stacks that do not pass the filter go. The first node with a negative self, or NO_NODE. */
static uint32_t keep_inside(struct hearth_tree_part *part, const bool *inside)
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

/* From the selfs in total[] to totals, in place, children before parents. */
static enum hearth_status sum_totals(const struct hearth_tree_part *part, int64_t *total,
                                     struct hearth_err *err)
{
    bool overflow = false;
    for (uint32_t end = part->n_nodes; end > 1;) {
        uint32_t at, segment = hearth_name_tree_segment(end - 1, &at);
        uint32_t first = end - 1 - at;
        const struct hearth_name_node *nodes = part->tree->nodes[segment];
        uint32_t last = first == 0 ? 1 : first; /* the root is nobody's child */
        for (; end > last; end--) {
            int64_t *above = &total[nodes[end - 1 - first].parent];
            overflow |= __builtin_add_overflow(*above, total[end - 1], above);
        }
    }
    return overflow ? fail_range(err) : HEARTH_OK;
}

/* ---- the bound of truncation ---- */

/*
 * Totals by size: exact below 64, then 32 steps for each power of two. One pass tells in which step
 * the wanted rank lies; only what is in that step is looked at closer.
 */
#define N_STEPS (64u + 57u * 32u)

static unsigned step_of(int64_t total)
{
    if (total < 64) {
        return (unsigned)total;
    }
    unsigned shift = 58 - (unsigned)__builtin_clzll((unsigned long long)total);
    return shift * 32 + (unsigned)(total >> shift);
}

/* The smallest total of a step. */
static uint64_t first_of(unsigned step)
{
    return step < 64 ? step : (uint64_t)(32 + step % 32) << (step / 32 - 1);
}

/* The smallest total that is shown, at least 1, and how many nodes have any. */
static enum hearth_status find_bound(const int64_t *total, uint32_t n_nodes, int64_t max_nodes,
                                     struct hearth_arena *arena, int64_t *ret_bound,
                                     size_t *ret_n_live, struct hearth_err *err)
{
    /* Two, in turn: neighbours are often alike, and an increment waits for the one before. */
    uint32_t counts[N_STEPS] = {0}, odd[N_STEPS] = {0};
    uint32_t i = 1;
    for (; i + 1 < n_nodes; i += 2) {
        counts[step_of(total[i])]++;
        odd[step_of(total[i + 1])]++;
    }
    if (i < n_nodes) {
        counts[step_of(total[i])]++;
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
    uint64_t least = first_of(step), width = first_of(step + 1) - least;
    for (i = 1; i < n_nodes; i++) {
        if ((uint64_t)total[i] - least < width) {
            totals[n++] = (uint64_t)total[i];
        }
    }
    *ret_bound = hearth_stacktree_bound(totals, n, rank);
    return HEARTH_OK;
}

/* ---- nodes ---- */

/* What it takes to turn a part into nodes of a function tree. */
struct placing {
    const struct hearth_tree_part *part;
    struct hearth_stacktree *tree;
    struct hearth_arena *arena;
    bool empty_names, repair_go; /* of the merge_spec */
    int64_t *total;              /* of the nodes of the part */
    uint32_t *node_of, *name_of; /* of its nodes and names */
    uint32_t n_names;            /* that there were at the beginning: the name tree grows */
    bool names_meet;             /* a name of the tree stands for several of the part */
    bool *meets, *name_meets;    /* of nodes and names: see place_meeting; NULL otherwise */
};

static bool placing_init(struct placing *p)
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

/* A name as the tree shall have it. .p is NULL when memory was refused. */
static struct hearth_str shown_name(struct placing *p, struct hearth_str name)
{
    if (p->repair_go && hearth_go_name_is_generic(name)) {
        size_t n = 0;
        char *text = hearth_arena_alloc(p->arena, name.n);
        return text != NULL && hearth_go_name_shorten(name, text, &n) ? hearth_str_n(text, n)
                                                                      : (struct hearth_str){0};
    }
    return p->empty_names ? name : hearth_frame_shown(name);
}

/* Several names of a part may be shown as this one. */
static bool may_meet(struct hearth_str shown)
{
    return memmem(shown.p, shown.n, "[...]", strlen("[...]")) != NULL ||
           hearth_str_eq(shown, HEARTH_FRAME_UNKNOWN);
}

/* The tree's number of a name of the part. HEARTH_IDMAP_NONE: memory was refused. */
static uint32_t place_name(struct placing *p, uint32_t name)
{
    if (p->name_of[name] == 0) { /* 0 is the root's name: not asked yet, or the empty name */
        struct hearth_str text = shown_name(p, hearth_name_tree_name(p->part->tree, name));
        size_t n_names = p->tree->n_names;
        p->name_of[name] =
            text.p == NULL ? HEARTH_IDMAP_NONE : hearth_stacktree_name(p->tree, text);
        if (p->name_meets != NULL && p->name_of[name] != HEARTH_IDMAP_NONE) {
            p->name_meets[name] = may_meet(p->tree->names[p->name_of[name]]);
        }
        p->names_meet |= p->tree->n_names == n_names && p->name_of[name] != 0;
    }
    return p->name_of[name];
}

/*
 * Nodes of an empty tree where names meet. Most nodes are still the only one of their name below their
 * parent; only those of names that may meet, and what is below them, are looked up.
 */
static uint32_t place_meeting(struct placing *p, uint32_t i, uint32_t parent, uint32_t name,
                              struct hearth_idmap *met)
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

/* Nodes of a tree that holds other parts, too; met: of the first one (place_meeting), else NULL. */
static enum hearth_status unify(struct placing *p, struct hearth_idmap *met, struct hearth_err *err)
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
        uint32_t parent = p->node_of[from.parent], name = place_name(p, from.name);
        if (parent == HEARTH_NO_NODE) { /* values of both signs cancelled each other above it */
            return fail_range(err);
        }
        uint32_t node = name == HEARTH_IDMAP_NONE ? HEARTH_NO_NODE
                        : met != NULL             ? place_meeting(p, i, parent, name, met)
                                                  : hearth_stacktree_child(p->tree, parent, name);
        if (node == HEARTH_NO_NODE) {
            return HEARTH_FAIL_ARENA(err, p->arena);
        }
        p->node_of[i] = node;
        int64_t *self = &p->tree->nodes[node].self;
        overflow |= __builtin_add_overflow(*self, part->self[i], self);
    }
    return overflow ? fail_range(err) : HEARTH_OK;
}

/* The first part of a tree, whole. */
static enum hearth_status place_whole(struct placing *p, struct hearth_err *err)
{
    p->meets = hearth_arena_calloc(p->arena, p->part->n_nodes, sizeof p->meets[0]);
    p->name_meets = hearth_arena_calloc(p->arena, p->n_names, sizeof p->name_meets[0]);
    if (p->meets == NULL || p->name_meets == NULL) {
        return HEARTH_FAIL_ARENA(err, p->arena);
    }
    struct hearth_idmap met;
    hearth_idmap_init(&met);
    enum hearth_status status = unify(p, &met, err);
    hearth_idmap_release(&met);
    return status;
}

/* What is folded below a node, until now its total, becomes a child "other". */
static enum hearth_status fold_rests(struct placing *p, struct hearth_err *err)
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
 * Nodes from bound on, of an empty tree: nothing is looked up, and what would be folded becomes no
 * node. Totals do not grow on the way down, so whoever reaches the bound has a parent that does.
 * For now the total of a node is what its children have not.
 */
static enum hearth_status place_from(struct placing *p, int64_t bound, struct hearth_err *err)
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
        uint32_t parent = p->node_of[from.parent], name = place_name(p, from.name);
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

/* Frames without a name beside others that are really called [unknown]: siblings may be one. */
static enum hearth_status place_again(struct placing *p, struct hearth_err *err)
{
    hearth_stacktree_release(p->tree);
    memset(p->name_of, 0, p->n_names * sizeof p->name_of[0]);
    p->node_of[0] = hearth_stacktree_root(p->tree);
    if (p->node_of[0] == HEARTH_NO_NODE) {
        return HEARTH_FAIL_ARENA(err, p->arena);
    }
    return place_whole(p, err);
}

/* The only part, truncated unless names meet. */
static enum hearth_status place(struct placing *p, int64_t max_nodes, struct hearth_err *err)
{
    int64_t bound;
    size_t n_live;
    HEARTH_TRY(find_bound(p->total, p->part->n_nodes, max_nodes, p->arena, &bound, &n_live, err));
    if (bound == 1 && !hearth_stacktree_reserve(p->tree, n_live)) {
        return HEARTH_FAIL_ARENA(err, p->arena);
    }
    HEARTH_TRY(place_from(p, bound, err));
    if (p->names_meet) {
        return place_again(p, err);
    }
    if (bound > 1) {
        HEARTH_TRY(fold_rests(p, err));
        p->tree->is_cut = true;
        p->tree->n_left_out = n_live + 1 - p->tree->n_nodes;
    }
    return HEARTH_OK;
}

static enum hearth_status fail_negative(const struct hearth_tree_part *part, uint32_t node,
                                        struct hearth_err *err)
{
    struct hearth_str name =
        hearth_name_tree_name(part->tree, hearth_name_tree_node(part->tree, node).name);
    return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                       "frame \"" HEARTH_STR_FMT "\" has a negative value", HEARTH_STR_ARG(name));
}

enum hearth_status hearth_tree_part_place(struct hearth_tree_part *part,
                                          const struct hearth_merge_spec *spec, bool alone,
                                          int64_t max_nodes, struct hearth_stacktree *tree,
                                          struct hearth_arena *arena, struct hearth_err *err)
{
    bool *inside;
    uint32_t size = hearth_name_tree_size(part->tree);
    part->n_nodes = part->n_nodes < size ? part->n_nodes : size;
    HEARTH_TRY(
        hearth_stack_filter_nodes(&spec->stacks, part->tree, part->n_nodes, arena, &inside, err));
    struct placing p = {.part = part,
                        .tree = tree,
                        .arena = arena,
                        .empty_names = spec->empty_names,
                        .repair_go = spec->go_stacks == HEARTH_GO_REPAIRED};
    if (!placing_init(&p)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    uint32_t negative = keep_inside(part, inside);
    if (alone && negative != HEARTH_NO_NODE) { /* else another part may make up for it */
        return fail_negative(part, negative, err);
    }
    memcpy(p.total, part->self, part->n_nodes * sizeof p.total[0]);
    HEARTH_TRY(sum_totals(part, p.total, err));
    part->node_of = p.node_of;
    return alone                ? place(&p, max_nodes, err)
           : tree->n_nodes == 1 ? place_whole(&p, err)
                                : unify(&p, NULL, err);
}
