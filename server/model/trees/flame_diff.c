/*
 * flame_diff.c -- two stack trees side by side, as levels of seven values.
 *
 * First the nodes of both sides are merged into a common tree, by name. Then the common tree is
 * laid out like a single one (flamegraph.c): an explicit stack, children pushed in ascending order
 * with `other` last, so that boxes are produced right to left within their level and levels are
 * filled from their ends.
 *
 * Both totals of a node are at most those of its parent, so the get_larger of the two does not grow
 * on the way down either, and the bound of truncation is again the max_nodes-th largest. It is no
 * less than the bound of either side alone, so a node below both bounds never enters the common
 * tree: large trees cost only as much as their shown part.
 */
#include "hearth/model/flame_diff.h"

#include "hearth/base/mem.h"

#include "trees/ranked.h"

#include <assert.h>

#define OTHER      HEARTH_STR("other")
#define BOX_VALUES 7u

enum side {
    LEFT,
    RIGHT,
    N_SIDES
};

/* A value of both sides. */
struct pair {
    int64_t v[N_SIDES];
};

static int64_t get_larger(struct pair pair)
{
    return pair.v[LEFT] > pair.v[RIGHT] ? pair.v[LEFT] : pair.v[RIGHT];
}

/* A box on the stack of the walk. */
struct pair_step {
    uint32_t node; /* HEARTH_NO_NODE: an `other` */
    uint32_t level;
    size_t parent;         /* its box; the root's is its own */
    struct pair x, folded; /* folded: the values of an `other` */
};

struct pair_box {
    struct pair x, total, self;
    uint32_t level, name; /* name: index into the result's names */
    size_t parent;        /* index of its box */
    uint32_t place;       /* its number in the result */
};

struct diff_maker {
    struct hearth_arena *arena; /* for the result */
    struct hearth_arena scratch;
    struct hearth_stacktree tree; /* the common tree: names and links; its values are unused */
    struct pair *self, *total;    /* values of its nodes */
    struct pair *has;             /* 1: the side has the node */
    struct pair folded;           /* number of nodes of each side that are not shown */
    int64_t bound;
    uint32_t other_name; /* the tree's name "other", or HEARTH_NO_NODE */
    struct pair_step *stack;
    size_t n_stack, cap_stack;
    struct hearth_ranked *kids; /* children of the node that is being expanded */
    size_t n_kids, cap_kids;
    struct pair_box *boxes;
    size_t n_boxes, cap_boxes;
    size_t *per_level; /* number of boxes of each level */
    size_t n_levels, cap_levels;
    uint32_t *name_of; /* name of the tree -> index + 1; 0: not used yet */
    uint32_t *used;    /* index -> name of the tree; HEARTH_NO_NODE: `other` */
    size_t n_used, cap_used;
    uint32_t other; /* index + 1 of `other`; 0: not used yet */
};

static void diff_maker_init(struct diff_maker *d, struct hearth_arena *arena)
{
    *d = (struct diff_maker){.arena = arena, .other_name = HEARTH_NO_NODE};
    hearth_arena_init_like(&d->scratch, arena);
    hearth_stacktree_init(&d->tree, &d->scratch);
}

static void diff_maker_release(struct diff_maker *d)
{
    hearth_mem_free(d->stack);
    hearth_mem_free(d->kids);
    hearth_mem_free(d->boxes);
    hearth_mem_free(d->per_level);
    hearth_mem_free(d->used);
    hearth_stacktree_release(&d->tree);
    hearth_arena_release(&d->scratch);
}

static enum hearth_status fail_diff_memory(struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the flame graph of two sides");
}

/* ---- merging two trees ---- */

/* A side while it is merged into the common tree. */
struct placing {
    const struct hearth_stacktree *from;
    uint32_t *node_of; /* its node -> common node, or HEARTH_NO_NODE */
    uint32_t *name_of; /* its name -> common name; 0: not looked up yet, or the empty name */
};

static bool placing_init(struct placing *p, struct hearth_arena *arena)
{
    p->node_of = hearth_arena_array(arena, p->from->n_nodes + 1, sizeof p->node_of[0]);
    p->name_of = hearth_arena_calloc(arena, p->from->n_names, sizeof p->name_of[0]);
    return p->node_of != NULL && p->name_of != NULL;
}

static uint32_t place_name(struct diff_maker *d, struct placing *p, uint32_t name)
{
    if (p->name_of[name] == 0) {
        p->name_of[name] = hearth_stacktree_name(&d->tree, p->from->names[name]);
    }
    return p->name_of[name];
}

/* Make common nodes of those whose total of this side is large enough to be shown. */
static enum hearth_status place_large_nodes(struct diff_maker *d, struct placing *p, int64_t least,
                                            struct hearth_err *err)
{
    p->node_of[0] = 0;
    for (size_t i = 1; i < p->from->n_nodes; i++) {
        const struct hearth_tree_node *node = &p->from->nodes[i];
        p->node_of[i] = HEARTH_NO_NODE;
        if (node->total < least) {
            continue;
        }

        uint32_t name = place_name(d, p, node->name);
        if (name != HEARTH_IDMAP_NONE) {
            p->node_of[i] = hearth_stacktree_child(&d->tree, p->node_of[node->parent], name);
        }

        if (p->node_of[i] == HEARTH_NO_NODE) {
            return HEARTH_FAIL_ARENA(err, &d->scratch);
        }
    }

    return HEARTH_OK;
}

/* Find the smaller nodes among those that the other side has made. */
static enum hearth_status find_small_nodes(struct diff_maker *d, struct placing *p, int64_t least,
                                           struct hearth_err *err)
{
    for (size_t i = 1; i < p->from->n_nodes; i++) {
        const struct hearth_tree_node *node = &p->from->nodes[i];
        if (node->total >= least || p->node_of[node->parent] == HEARTH_NO_NODE) {
            continue;
        }
        uint32_t name = place_name(d, p, node->name);
        if (name == HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL_ARENA(err, &d->scratch);
        }
        p->node_of[i] = hearth_stacktree_find(&d->tree, p->node_of[node->parent], name);
    }

    return HEARTH_OK;
}

static enum hearth_status collect_values(struct diff_maker *d, const struct placing sides[N_SIDES],
                                         struct hearth_err *err)
{
    d->self = hearth_arena_calloc(&d->scratch, d->tree.n_nodes, sizeof d->self[0]);
    d->total = hearth_arena_calloc(&d->scratch, d->tree.n_nodes, sizeof d->total[0]);
    d->has = hearth_arena_calloc(&d->scratch, d->tree.n_nodes, sizeof d->has[0]);
    if (d->self == NULL || d->total == NULL || d->has == NULL) {
        return HEARTH_FAIL_ARENA(err, &d->scratch);
    }

    for (size_t s = 0; s < N_SIDES; s++) {
        for (size_t i = 0; i < sides[s].from->n_nodes; i++) {
            uint32_t node = sides[s].node_of[i];
            if (node != HEARTH_NO_NODE) {
                d->self[node].v[s] = sides[s].from->nodes[i].self;
                d->total[node].v[s] = sides[s].from->nodes[i].total;
                d->has[node].v[s] = 1;
            }
        }

        d->folded.v[s] = (int64_t)sides[s].from->n_nodes; /* each shown node is subtracted later */
    }

    return HEARTH_OK;
}

static enum hearth_status align_sides(struct diff_maker *d,
                                      const struct hearth_stacktree *const trees[N_SIDES],
                                      int64_t max_nodes, struct hearth_err *err)
{
    struct placing sides[N_SIDES];
    int64_t least = 0;

    if (hearth_stacktree_root(&d->tree) == HEARTH_NO_NODE) {
        return HEARTH_FAIL_ARENA(err, &d->scratch);
    }

    /* The get_larger bound of the sides holds for the common tree, too. */
    for (size_t s = 0; s < N_SIDES; s++) {
        int64_t bound;
        HEARTH_ASSERT(!trees[s]->is_cut);
        sides[s] = (struct placing){.from = trees[s]};
        if (!placing_init(&sides[s], &d->scratch)) {
            return HEARTH_FAIL_ARENA(err, &d->scratch);
        }

        HEARTH_TRY(hearth_stacktree_min_total(trees[s], max_nodes, &bound, err));
        least = bound > least ? bound : least;
    }

    /* Large nodes first, so that small ones find their counterparts. */
    for (size_t s = 0; s < N_SIDES; s++) {
        HEARTH_TRY(place_large_nodes(d, &sides[s], least, err));
    }

    for (size_t s = 0; s < N_SIDES; s++) {
        HEARTH_TRY(find_small_nodes(d, &sides[s], least, err));
    }

    return collect_values(d, sides, err);
}

/* Find the bound of the common tree. Nodes that are not in it are below the bound in both sides. */
static enum hearth_status find_bound(struct diff_maker *d, int64_t max_nodes,
                                     struct hearth_err *err)
{
    size_t n = d->tree.n_nodes - 1; /* the root is not counted */

    d->bound = 0;
    if (max_nodes < 1 || (uint64_t)max_nodes >= n) {
        return HEARTH_OK;
    }

    uint64_t *totals = hearth_arena_array(&d->scratch, n, sizeof totals[0]);
    if (totals == NULL) {
        return HEARTH_FAIL_ARENA(err, &d->scratch);
    }

    for (size_t i = 0; i < n; i++) {
        totals[i] = (uint64_t)get_larger(d->total[i + 1]);
    }

    d->bound = hearth_stacktree_bound(totals, n, (size_t)max_nodes);

    return HEARTH_OK;
}

/* ---- the walk ---- */

/* Push the children of `step`, whose box is the latest, that are shown, ascending, then `other`. */
static enum hearth_status expand_pair_step(struct diff_maker *d, const struct pair_step *step,
                                           struct hearth_err *err)
{
    const struct hearth_tree_node *nodes = d->tree.nodes;
    struct pair folded, x = step->x;

    /* The values of all children; shown ones are subtracted below. */
    for (size_t s = 0; s < N_SIDES; s++) {
        folded.v[s] = d->total[step->node].v[s] - d->self[step->node].v[s];
    }

    /* Collect the children that are shown. */
    d->n_kids = 0;
    for (uint32_t at = nodes[step->node].first_child; at != HEARTH_NO_NODE;
         at = nodes[at].next_sibling) {
        if (get_larger(d->total[at]) < d->bound || nodes[at].name == d->other_name) {
            continue;
        }
        if (!hearth_mem_grow(&d->kids, &d->cap_kids, d->n_kids + 1, sizeof d->kids[0])) {
            return fail_diff_memory(err);
        }
        d->kids[d->n_kids++] = hearth_ranked(at, d->tree.names[nodes[at].name]);
    }

    if (!hearth_mem_grow(&d->stack, &d->cap_stack, d->n_stack + d->n_kids + 1,
                         sizeof d->stack[0])) {
        return fail_diff_memory(err);
    }

    /* Push them from left to right, after the node's self. */
    hearth_ranked_sort(d->kids, d->n_kids);
    for (size_t s = 0; s < N_SIDES; s++) {
        x.v[s] += d->self[step->node].v[s];
    }

    for (size_t i = 0; i < d->n_kids; i++) {
        uint32_t node = d->kids[i].node;
        d->stack[d->n_stack++] = (struct pair_step){
            .node = node, .level = step->level + 1, .parent = d->n_boxes - 1, .x = x};
        for (size_t s = 0; s < N_SIDES; s++) {
            x.v[s] += d->total[node].v[s];
            folded.v[s] -= d->total[node].v[s];
        }
    }

    /* The rest is `other`. */
    if (get_larger(folded) != 0) {
        d->stack[d->n_stack++] = (struct pair_step){.node = HEARTH_NO_NODE,
                                                    .level = step->level + 1,
                                                    .parent = d->n_boxes - 1,
                                                    .x = x,
                                                    .folded = folded};
    }

    return HEARTH_OK;
}

/* The result's index of a name; the caller has made room for one more in `used`. */
static uint32_t use_common_name(struct diff_maker *d, uint32_t name)
{
    assert(d->n_used < d->cap_used);

    uint32_t *slot = name == HEARTH_NO_NODE ? &d->other : &d->name_of[name];
    if (*slot == 0) {
        d->used[d->n_used++] = name;
        *slot = (uint32_t)d->n_used;
    }
    return *slot - 1;
}

static bool add_pair_box(struct diff_maker *d, const struct pair_step *step)
{
    if (!hearth_mem_grow(&d->boxes, &d->cap_boxes, d->n_boxes + 1, sizeof d->boxes[0]) ||
        !hearth_mem_grow(&d->used, &d->cap_used, d->n_used + 1, sizeof d->used[0]) ||
        !hearth_mem_grow(&d->per_level, &d->cap_levels, (size_t)step->level + 1,
                         sizeof d->per_level[0])) {
        return false;
    }

    while (d->n_levels <= step->level) {
        d->per_level[d->n_levels++] = 0;
    }

    d->per_level[step->level]++;
    bool is_other = step->node == HEARTH_NO_NODE;
    if (step->level == 0) {
        d->used[d->n_used++] = 0; /* only the root is named "total" */
    }

    for (size_t s = 0; !is_other && s < N_SIDES; s++) {
        d->folded.v[s] -= d->has[step->node].v[s];
    }

    d->boxes[d->n_boxes++] = (struct pair_box){
        .x = step->x,
        .total = is_other ? step->folded : d->total[step->node],
        .self = is_other ? step->folded : d->self[step->node],
        .level = step->level,
        .parent = step->parent,
        .name = step->level == 0 ? 0
                                 : use_common_name(d, is_other ? HEARTH_NO_NODE
                                                               : d->tree.nodes[step->node].name),
    };

    return true;
}

static enum hearth_status collect_pair_boxes(struct diff_maker *d, struct hearth_err *err)
{
    /* Prepare: the name "other", the table of used names, the root on the stack. */
    struct hearth_str other = OTHER;

    d->other_name =
        hearth_idmap_find(&d->tree.name_ids, hearth_hash128(other.p, other.n, d->tree.seed));
    d->name_of = hearth_arena_calloc(&d->scratch, d->tree.n_names, sizeof d->name_of[0]);
    if (d->name_of == NULL) {
        return HEARTH_FAIL_ARENA(err, &d->scratch);
    }

    if (!hearth_mem_grow(&d->stack, &d->cap_stack, 64, sizeof d->stack[0])) {
        return fail_diff_memory(err);
    }

    d->stack[d->n_stack++] = (struct pair_step){0};

    /* Walk. */
    while (d->n_stack > 0) {
        struct pair_step step = d->stack[--d->n_stack];
        if (!add_pair_box(d, &step)) {
            return fail_diff_memory(err);
        }
        if (step.node != HEARTH_NO_NODE) {
            HEARTH_TRY(expand_pair_step(d, &step, err));
        }
    }

    return HEARTH_OK;
}

/* ---- levels ---- */

/* Make positions relative to the end of the previous box, each side separately. */
static void encode_level(struct hearth_flame_level *level)
{
    struct pair end = {0}; /* end of the previous box of the level */

    for (size_t i = 0; i < level->n; i += BOX_VALUES) {
        for (size_t s = 0; s < N_SIDES; s++) {
            int64_t *box = level->values + i + 3 * s;
            int64_t x = box[0];
            box[0] = x - end.v[s];
            end.v[s] = x + box[1];
        }
    }
}

static enum hearth_status fill_pair_levels(struct diff_maker *d, struct hearth_flame_diff *diff,
                                           struct hearth_err *err)
{
    diff->levels = hearth_arena_calloc(d->arena, d->n_levels, sizeof diff->levels[0]);
    diff->parents = hearth_arena_array(d->arena, d->n_boxes, sizeof diff->parents[0]);
    int64_t *all = hearth_arena_array(d->arena, d->n_boxes, BOX_VALUES * sizeof *all);
    if (diff->levels == NULL || diff->parents == NULL || all == NULL) {
        return HEARTH_FAIL_ARENA(err, d->arena);
    }

    /* All levels share one array. */
    diff->n_levels = d->n_levels;
    diff->n_nodes = d->n_boxes;
    int64_t *values = all;
    for (size_t l = 0; l < d->n_levels; l++) {
        size_t n = BOX_VALUES * d->per_level[l];
        diff->levels[l] = (struct hearth_flame_level){.values = values, .n = n, .cap = n};
        values += n;
    }

    /* Boxes of a level come right to left. */
    for (size_t i = 0; i < d->n_boxes; i++) {
        struct pair_box *box = &d->boxes[i];
        int64_t *to = diff->levels[box->level].values + BOX_VALUES * --d->per_level[box->level];
        for (size_t s = 0; s < N_SIDES; s++) {
            to[3 * s] = box->x.v[s];
            to[3 * s + 1] = box->total.v[s];
            to[3 * s + 2] = box->self.v[s];
        }

        to[6] = box->name;
        box->place = (uint32_t)((size_t)(to - all) / BOX_VALUES);
        diff->parents[box->place] = d->boxes[box->parent].place; /* made before it */
        diff->max_self =
            get_larger(box->self) > diff->max_self ? get_larger(box->self) : diff->max_self;
    }

    for (size_t l = 0; l < diff->n_levels; l++) {
        encode_level(&diff->levels[l]);
    }

    return HEARTH_OK;
}

/* Texts are copied, because the common tree is freed with its arena. */
static enum hearth_status fill_names(struct diff_maker *d, struct hearth_flame_diff *diff,
                                     struct hearth_err *err)
{
    diff->names = hearth_arena_array(d->arena, d->n_used, sizeof diff->names[0]);
    if (diff->names == NULL) {
        return HEARTH_FAIL_ARENA(err, d->arena);
    }

    diff->n_names = d->n_used;
    diff->names[0] = HEARTH_STR("total"); /* the root comes first */
    for (size_t i = 1; i < d->n_used; i++) {
        diff->names[i] = d->used[i] == HEARTH_NO_NODE
                             ? OTHER
                             : hearth_arena_str(d->arena, d->tree.names[d->used[i]]);
        if (diff->names[i].p == NULL) {
            return HEARTH_FAIL_ARENA(err, d->arena);
        }
    }

    return HEARTH_OK;
}

static enum hearth_status make_flame_diff(struct diff_maker *d,
                                          const struct hearth_stacktree *const sides[N_SIDES],
                                          int64_t max_nodes, struct hearth_flame_diff *ret,
                                          struct hearth_err *err)
{
    HEARTH_TRY(align_sides(d, sides, max_nodes, err));
    struct hearth_flame_diff diff = {.left_total = d->total[0].v[LEFT],
                                     .right_total = d->total[0].v[RIGHT]};
    if (__builtin_add_overflow(diff.left_total, diff.right_total, &diff.total)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "the totals of both sides exceed 64 bits");
    }

    HEARTH_TRY(find_bound(d, max_nodes, err));
    HEARTH_TRY(collect_pair_boxes(d, err));
    HEARTH_TRY(fill_names(d, &diff, err));
    HEARTH_TRY(fill_pair_levels(d, &diff, err));
    diff.left_folded = d->folded.v[LEFT];
    diff.right_folded = d->folded.v[RIGHT];
    *ret = diff;

    return HEARTH_OK;
}

enum hearth_status hearth_flame_diff_make(const struct hearth_stacktree *left,
                                          const struct hearth_stacktree *right, int64_t max_nodes,
                                          struct hearth_arena *arena, struct hearth_flame_diff *ret,
                                          struct hearth_err *err)
{
    assert(left != NULL && right != NULL && arena != NULL && ret != NULL);

    const struct hearth_stacktree *const sides[N_SIDES] = {left, right};
    struct diff_maker d;
    diff_maker_init(&d, arena);
    enum hearth_status status = make_flame_diff(&d, sides, max_nodes, ret, err);
    diff_maker_release(&d);
    return status;
}
