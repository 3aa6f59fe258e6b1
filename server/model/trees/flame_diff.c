/*
 * flame_diff.c -- two stack trees side by side, as levels of seven values.
 *
 * The nodes of both are brought into one tree first, by name. Then it goes as with one tree
 * (flamegraph.c): an explicit stack, children pushed in ascending order with `other` last, so that
 * boxes come right to left within their level and levels are filled from their ends.
 *
 * Both totals of a node are at most those of its parent, so the larger of the two does not grow on
 * the way down either, and the bound of truncation is again the max_nodes-th largest. It is no less
 * than the bound of either side alone, so what is below that in both sides never becomes a node of
 * the common tree: large trees cost what is shown of them.
 */
#include "hearth/model/flame_diff.h"

#include "hearth/base/mem.h"

#include "trees/ranked.h"

#define OTHER      HEARTH_STR("other")
#define BOX_VALUES 7u

enum side {
    LEFT,
    RIGHT,
    N_SIDES
};

struct pair {
    int64_t v[N_SIDES];
};

static int64_t larger(struct pair pair)
{
    return pair.v[LEFT] > pair.v[RIGHT] ? pair.v[LEFT] : pair.v[RIGHT];
}

/* A box that waits to be emitted. */
struct step {
    uint32_t node; /* HEARTH_NO_NODE: an `other` */
    uint32_t level;
    struct pair x, folded; /* folded: the values of an `other` */
};

struct box {
    struct pair x, total, self;
    uint32_t level, name; /* name: index into the answer's names */
};

struct differ {
    struct hearth_arena *arena; /* of the answer */
    struct hearth_arena scratch;
    struct hearth_stacktree tree; /* names and shape of both; its values are not used */
    struct pair *self, *total;    /* of its nodes */
    struct pair *has;             /* 1: the side has the node */
    struct pair folded;           /* nodes of the sides that are not shown */
    int64_t bound;
    uint32_t other_name; /* of the tree, or HEARTH_NO_NODE */
    struct step *stack;
    size_t n_stack, cap_stack;
    struct hearth_ranked *kids; /* of the node that is being expanded */
    size_t n_kids, cap_kids;
    struct box *boxes;
    size_t n_boxes, cap_boxes;
    size_t *per_level; /* boxes of each level */
    size_t n_levels, cap_levels;
    uint32_t *name_of; /* name of the tree -> index + 1; 0: not used yet */
    uint32_t *used;    /* index -> name of the tree; HEARTH_NO_NODE: `other` */
    size_t n_used, cap_used;
    uint32_t other; /* index + 1 of `other`; 0: not used yet */
};

static void differ_init(struct differ *d, struct hearth_arena *arena)
{
    *d = (struct differ){.arena = arena, .other_name = HEARTH_NO_NODE};
    hearth_arena_init_like(&d->scratch, arena);
    hearth_stacktree_init(&d->tree, &d->scratch);
}

static void differ_release(struct differ *d)
{
    hearth_mem_free(d->stack);
    hearth_mem_free(d->kids);
    hearth_mem_free(d->boxes);
    hearth_mem_free(d->per_level);
    hearth_mem_free(d->used);
    hearth_stacktree_release(&d->tree);
    hearth_arena_release(&d->scratch);
}

static enum hearth_status fail_memory(struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the flame graph of two sides");
}

/* ---- one tree of two ---- */

/* A side on its way into the common tree. */
struct placing {
    const struct hearth_stacktree *from;
    uint32_t *node_of; /* of its nodes; HEARTH_NO_NODE: none */
    uint32_t *name_of; /* of its names; 0: not asked yet, or the empty name */
};

static bool placing_init(struct placing *p, struct hearth_arena *arena)
{
    p->node_of = hearth_arena_array(arena, p->from->n_nodes + 1, sizeof p->node_of[0]);
    p->name_of = hearth_arena_calloc(arena, p->from->n_names, sizeof p->name_of[0]);
    return p->node_of != NULL && p->name_of != NULL;
}

static uint32_t place_name(struct differ *d, struct placing *p, uint32_t name)
{
    if (p->name_of[name] == 0) {
        p->name_of[name] = hearth_stacktree_name(&d->tree, p->from->names[name]);
    }
    return p->name_of[name];
}

/* Make nodes of those that may be shown for what this side has of them. */
static enum hearth_status place_large(struct differ *d, struct placing *p, int64_t least,
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

/* Find the others where the other side has made them. */
static enum hearth_status find_small(struct differ *d, struct placing *p, int64_t least,
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

static enum hearth_status take_values(struct differ *d, const struct placing sides[N_SIDES],
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
        d->folded.v[s] = (int64_t)sides[s].from->n_nodes; /* until they are shown */
    }

    return HEARTH_OK;
}

static enum hearth_status align(struct differ *d,
                                const struct hearth_stacktree *const trees[N_SIDES],
                                int64_t max_nodes, struct hearth_err *err)
{
    struct placing sides[N_SIDES];
    int64_t least = 0;

    if (hearth_stacktree_root(&d->tree) == HEARTH_NO_NODE) {
        return HEARTH_FAIL_ARENA(err, &d->scratch);
    }

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

    for (size_t s = 0; s < N_SIDES; s++) {
        HEARTH_TRY(place_large(d, &sides[s], least, err));
    }

    for (size_t s = 0; s < N_SIDES; s++) {
        HEARTH_TRY(find_small(d, &sides[s], least, err));
    }

    return take_values(d, sides, err);
}

/* Of the nodes that are left; what is not reaches it in no side. */
static enum hearth_status find_bound(struct differ *d, int64_t max_nodes, struct hearth_err *err)
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
        totals[i] = (uint64_t)larger(d->total[i + 1]);
    }

    d->bound = hearth_stacktree_bound(totals, n, (size_t)max_nodes);

    return HEARTH_OK;
}

/* ---- the walk ---- */

/* Push the children of `step` that stay, ascending, then `other`. */
static enum hearth_status expand(struct differ *d, const struct step *step, struct hearth_err *err)
{
    const struct hearth_tree_node *nodes = d->tree.nodes;
    struct pair folded, x = step->x;

    for (size_t s = 0; s < N_SIDES; s++) {
        folded.v[s] = d->total[step->node].v[s] - d->self[step->node].v[s];
    }

    d->n_kids = 0;
    for (uint32_t at = nodes[step->node].first_child; at != HEARTH_NO_NODE;
         at = nodes[at].next_sibling) {
        if (larger(d->total[at]) < d->bound || nodes[at].name == d->other_name) {
            continue;
        }
        if (!hearth_mem_grow(&d->kids, &d->cap_kids, d->n_kids + 1, sizeof d->kids[0])) {
            return fail_memory(err);
        }
        d->kids[d->n_kids++] = hearth_ranked(at, d->tree.names[nodes[at].name]);
    }

    if (!hearth_mem_grow(&d->stack, &d->cap_stack, d->n_stack + d->n_kids + 1,
                         sizeof d->stack[0])) {
        return fail_memory(err);
    }

    hearth_ranked_sort(d->kids, d->n_kids);
    for (size_t s = 0; s < N_SIDES; s++) {
        x.v[s] += d->self[step->node].v[s];
    }

    for (size_t i = 0; i < d->n_kids; i++) {
        uint32_t node = d->kids[i].node;
        d->stack[d->n_stack++] = (struct step){.node = node, .level = step->level + 1, .x = x};
        for (size_t s = 0; s < N_SIDES; s++) {
            x.v[s] += d->total[node].v[s];
            folded.v[s] -= d->total[node].v[s];
        }
    }

    if (larger(folded) != 0) {
        d->stack[d->n_stack++] = (struct step){
            .node = HEARTH_NO_NODE, .level = step->level + 1, .x = x, .folded = folded};
    }

    return HEARTH_OK;
}

/* The answer's index of a name; the caller has made room for one more in `used`. */
static uint32_t use_name(struct differ *d, uint32_t name)
{
    uint32_t *slot = name == HEARTH_NO_NODE ? &d->other : &d->name_of[name];
    if (*slot == 0) {
        d->used[d->n_used++] = name;
        *slot = (uint32_t)d->n_used;
    }
    return *slot - 1;
}

static bool add_box(struct differ *d, const struct step *step)
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
        d->used[d->n_used++] = 0; /* "total" is the root's alone */
    }

    for (size_t s = 0; !is_other && s < N_SIDES; s++) {
        d->folded.v[s] -= d->has[step->node].v[s];
    }

    d->boxes[d->n_boxes++] = (struct box){
        .x = step->x,
        .total = is_other ? step->folded : d->total[step->node],
        .self = is_other ? step->folded : d->self[step->node],
        .level = step->level,
        .name = step->level == 0
                    ? 0
                    : use_name(d, is_other ? HEARTH_NO_NODE : d->tree.nodes[step->node].name),
    };

    return true;
}

static enum hearth_status collect_boxes(struct differ *d, struct hearth_err *err)
{
    struct hearth_str other = OTHER;

    d->other_name =
        hearth_idmap_find(&d->tree.name_ids, hearth_hash128(other.p, other.n, d->tree.seed));
    d->name_of = hearth_arena_calloc(&d->scratch, d->tree.n_names, sizeof d->name_of[0]);
    if (d->name_of == NULL) {
        return HEARTH_FAIL_ARENA(err, &d->scratch);
    }

    if (!hearth_mem_grow(&d->stack, &d->cap_stack, 64, sizeof d->stack[0])) {
        return fail_memory(err);
    }

    d->stack[d->n_stack++] = (struct step){0};
    while (d->n_stack > 0) {
        struct step step = d->stack[--d->n_stack];
        if (!add_box(d, &step)) {
            return fail_memory(err);
        }
        if (step.node != HEARTH_NO_NODE) {
            HEARTH_TRY(expand(d, &step, err));
        }
    }

    return HEARTH_OK;
}

/* ---- levels ---- */

/* Places to differences, each side by itself. */
static void encode_level(struct hearth_flame_level *level)
{
    struct pair end = {0}; /* where the previous box of the level ends */

    for (size_t i = 0; i < level->n; i += BOX_VALUES) {
        for (size_t s = 0; s < N_SIDES; s++) {
            int64_t *box = level->values + i + 3 * s;
            int64_t x = box[0];
            box[0] = x - end.v[s];
            end.v[s] = x + box[1];
        }
    }
}

static enum hearth_status fill_levels(struct differ *d, struct hearth_flame_diff *diff,
                                      struct hearth_err *err)
{
    diff->levels = hearth_arena_calloc(d->arena, d->n_levels, sizeof diff->levels[0]);
    int64_t *values = hearth_arena_array(d->arena, d->n_boxes, BOX_VALUES * sizeof *values);
    if (diff->levels == NULL || values == NULL) {
        return HEARTH_FAIL_ARENA(err, d->arena);
    }

    diff->n_levels = d->n_levels;
    for (size_t l = 0; l < d->n_levels; l++) {
        size_t n = BOX_VALUES * d->per_level[l];
        diff->levels[l] = (struct hearth_flame_level){.values = values, .n = n, .cap = n};
        values += n;
    }

    for (size_t i = 0; i < d->n_boxes; i++) {
        const struct box *box = &d->boxes[i];
        int64_t *to = diff->levels[box->level].values + BOX_VALUES * --d->per_level[box->level];
        for (size_t s = 0; s < N_SIDES; s++) {
            to[3 * s] = box->x.v[s];
            to[3 * s + 1] = box->total.v[s];
            to[3 * s + 2] = box->self.v[s];
        }
        to[6] = box->name;
        diff->max_self = larger(box->self) > diff->max_self ? larger(box->self) : diff->max_self;
    }

    for (size_t l = 0; l < diff->n_levels; l++) {
        encode_level(&diff->levels[l]);
    }

    return HEARTH_OK;
}

/* Texts are copied: the common tree goes away with its arena. */
static enum hearth_status fill_names(struct differ *d, struct hearth_flame_diff *diff,
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

static enum hearth_status make(struct differ *d,
                               const struct hearth_stacktree *const sides[N_SIDES],
                               int64_t max_nodes, struct hearth_flame_diff *ret,
                               struct hearth_err *err)
{
    HEARTH_TRY(align(d, sides, max_nodes, err));
    struct hearth_flame_diff diff = {.left_total = d->total[0].v[LEFT],
                                     .right_total = d->total[0].v[RIGHT]};
    if (__builtin_add_overflow(diff.left_total, diff.right_total, &diff.total)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "the totals of both sides exceed 64 bits");
    }

    HEARTH_TRY(find_bound(d, max_nodes, err));
    HEARTH_TRY(collect_boxes(d, err));
    HEARTH_TRY(fill_names(d, &diff, err));
    HEARTH_TRY(fill_levels(d, &diff, err));
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
    const struct hearth_stacktree *const sides[N_SIDES] = {left, right};
    struct differ d;
    differ_init(&d, arena);
    enum hearth_status status = make(&d, sides, max_nodes, ret, err);
    differ_release(&d);
    return status;
}
