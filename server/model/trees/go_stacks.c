/*
 * go_stacks.c -- joins stacks that Go's runtime cut, and shortens generic names (go_stacks.h).
 *
 * In a tree, all cut stacks with the same root-most frames are below one node of depth
 * HEARTH_GO_OVERLAP, their anchor; they are joined together. A place for them is a deeper node
 * whose path ends with the same names as the anchor's path, found by a hash of these names: the
 * frames above them are the part that was cut off.
 *
 * A place on stacks with a root is final. A place that is only on other cut stacks counts after
 * these have been joined, in the next round. So chains of overlapping stacks are followed, and no
 * stack is put below itself.
 */
#include "hearth/model/go_stacks.h"

#include "hearth/base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define OVERLAP    HEARTH_GO_OVERLAP
#define MAX_ROUNDS 16 /* most links of a chain: some 700 frames of recursion */

/* ---- names and types ---- */

/* Find the start and the end of the type arguments. False if the name has none. */
static bool find_shape(struct hearth_str name, size_t *ret_from, size_t *ret_behind)
{
    static const char shape[] = "[go.shape.";
    const size_t n_shape = sizeof shape - 1;

    for (size_t at = 0; at + n_shape < name.n; at++) {
        const char *bracket = memchr(name.p + at, '[', name.n - at);
        if (bracket == NULL) {
            return false;
        }
        at = (size_t)(bracket - name.p);
        if (name.n - at <= n_shape || memcmp(bracket, shape, n_shape) != 0) {
            continue;
        }

        size_t behind = name.n;
        while (behind > at + n_shape && name.p[behind - 1] != ']') {
            behind--;
        }

        *ret_from = at;
        *ret_behind = behind;
        return behind > at + n_shape;
    }

    return false;
}

bool hearth_go_name_is_generic(struct hearth_str name)
{
    size_t from, behind;
    return find_shape(name, &from, &behind);
}

bool hearth_go_name_shorten(struct hearth_str name, char *out, size_t *ret_n)
{
    assert(out != NULL && ret_n != NULL);

    static const char dots[] = "[...]";
    size_t from, behind;

    if (!find_shape(name, &from, &behind)) {
        return false;
    }

    memcpy(out, name.p, from);
    memcpy(out + from, dots, sizeof dots - 1);
    memcpy(out + from + sizeof dots - 1, name.p + behind, name.n - behind);
    *ret_n = from + sizeof dots - 1 + name.n - behind;

    return true;
}

uint32_t hearth_go_max_frames(const struct hearth_profile_type *type)
{
    assert(type != NULL);

    if (hearth_str_eq_c(type->sample_type, "cpu") || hearth_str_eq_c(type->period_type, "cpu")) {
        return HEARTH_GO_MAX_CPU_FRAMES;
    }
    bool is_heap = hearth_str_starts(type->sample_type, HEARTH_STR("alloc_")) ||
                   hearth_str_starts(type->sample_type, HEARTH_STR("inuse_"));
    return is_heap ? HEARTH_GO_MAX_HEAP_FRAMES : 0;
}

/* ---- nodes to join ---- */

/* A node where the cut stacks below an anchor may belong. */
struct place {
    uint32_t anchor; /* index into anchors */
    uint32_t node;
};

struct anchor {
    uint32_t node;
    uint32_t best; /* the best place in this round, or HEARTH_NO_NODE */
    bool is_joined;
};

struct joiner {
    struct hearth_stacktree *tree;
    struct hearth_arena *arena;
    uint32_t n; /* number of nodes at the start */
    uint32_t *depth;
    uint32_t *anchor_of; /* the node at depth OVERLAP on the node's path, or HEARTH_NO_NODE */
    int64_t *own;        /* part of a node's self that comes from cut stacks */
    int64_t *cut, *rest; /* parts of its total: from cut stacks, from others */
    uint32_t *moved;     /* the node that its cut stacks moved to, or HEARTH_NO_NODE */
    uint32_t *index_of;  /* index of a node that is an anchor, or HEARTH_NO_NODE */
    struct anchor *anchors;
    size_t n_anchors;
    struct place *places;
    size_t n_places, cap_places;
    struct hearth_idmap children; /* (parent, name) -> node, for parents that stacks moved to */
    bool *has_children;           /* [n]: `children` contains the children of this node */
    size_t n_joined;
    int64_t value;
};

static uint32_t *make_no_nodes(struct hearth_arena *arena, size_t n)
{
    uint32_t *array = hearth_arena_array(arena, n, sizeof array[0]);
    if (array != NULL) {
        memset(array, 0xff, n * sizeof array[0]);
    }
    return array;
}

static bool joiner_init(struct joiner *j)
{
    j->n = (uint32_t)j->tree->n_nodes;
    j->depth = hearth_arena_calloc(j->arena, j->n, sizeof j->depth[0]);
    j->own = hearth_arena_calloc(j->arena, j->n, sizeof j->own[0]);
    j->cut = hearth_arena_calloc(j->arena, j->n, sizeof j->cut[0]);
    j->rest = hearth_arena_calloc(j->arena, j->n, sizeof j->rest[0]);
    j->has_children = hearth_arena_calloc(j->arena, j->n, sizeof j->has_children[0]);
    j->anchor_of = make_no_nodes(j->arena, j->n);
    j->moved = make_no_nodes(j->arena, j->n);
    j->index_of = make_no_nodes(j->arena, j->n);

    return !j->arena->refused;
}

static enum hearth_status fail_join_range(struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum of the flame graph exceeds 64 bits");
}

/* Compute depths and anchors from the root down, sums from the leaves up. */
static enum hearth_status measure_nodes(struct joiner *j, const struct hearth_go_cut *cuts,
                                        size_t n_cuts, struct hearth_err *err)
{
    const struct hearth_tree_node *nodes = j->tree->nodes;
    bool overflow = false;

    /* The cut part of each self. */
    for (size_t i = 0; i < n_cuts; i++) {
        assert(cuts[i].node < j->n);
        int64_t *own = &j->own[cuts[i].node];
        int64_t value = cuts[i].value > 0 ? cuts[i].value : 0;
        overflow |= __builtin_add_overflow(*own, value, own);
    }

    /* From the root down. */
    for (uint32_t i = 1; i < j->n; i++) {
        uint32_t parent = nodes[i].parent;
        j->depth[i] = j->depth[parent] + 1;
        j->anchor_of[i] = j->depth[i] == OVERLAP ? i : j->anchor_of[parent];
    }

    /* From the leaves up. */
    for (uint32_t i = j->n; i-- > 1;) {
        uint32_t parent = nodes[i].parent;
        overflow |= __builtin_add_overflow(j->cut[i], j->own[i], &j->cut[i]);
        overflow |= __builtin_add_overflow(j->rest[i], nodes[i].self - j->own[i], &j->rest[i]);
        overflow |= __builtin_add_overflow(j->cut[parent], j->cut[i], &j->cut[parent]);
        overflow |= __builtin_add_overflow(j->rest[parent], j->rest[i], &j->rest[parent]);
    }

    return overflow ? fail_join_range(err) : HEARTH_OK;
}

/* A hash of the names of the OVERLAP frames that end at a node. */
static struct hearth_hash128 hash_names(const struct joiner *j, uint32_t node)
{
    uint32_t names[OVERLAP];
    for (uint32_t i = 0; i < OVERLAP; i++, node = j->tree->nodes[node].parent) {
        names[i] = j->tree->nodes[node].name;
    }
    return hearth_hash128(names, sizeof names, j->tree->seed);
}

static enum hearth_status fail_join_memory(const struct joiner *j, struct hearth_err *err)
{
    return j->arena->refused
               ? HEARTH_FAIL_ARENA(err, j->arena)
               : HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to join cut stack traces");
}

/* Collect the anchors. last_name marks their names, so that only few other nodes need a hash. */
static enum hearth_status find_anchors(struct joiner *j, struct hearth_idmap *by_names,
                                       bool *last_name, struct hearth_err *err)
{
    size_t cap = 0;

    for (uint32_t i = 1; i < j->n; i++) {
        if (j->anchor_of[i] != i || j->cut[i] == 0) {
            continue;
        }

        bool inserted;
        if (!hearth_mem_grow(&j->anchors, &cap, j->n_anchors + 1, sizeof j->anchors[0]) ||
            hearth_idmap_intern(by_names, hash_names(j, i), (uint32_t)j->n_anchors, &inserted) ==
                HEARTH_IDMAP_NONE) {
            return fail_join_memory(j, err);
        }

        j->index_of[i] = (uint32_t)j->n_anchors;
        j->anchors[j->n_anchors++] = (struct anchor){.node = i, .best = HEARTH_NO_NODE};
        last_name[j->tree->nodes[i].name] = true;
    }

    return HEARTH_OK;
}

static enum hearth_status find_places(struct joiner *j, struct hearth_err *err)
{
    struct hearth_idmap by_names;
    bool *last_name = hearth_arena_calloc(j->arena, j->tree->n_names, sizeof last_name[0]);

    if (last_name == NULL) {
        return fail_join_memory(j, err);
    }

    /* The anchors, by their names. */
    hearth_idmap_init(&by_names);
    enum hearth_status status = find_anchors(j, &by_names, last_name, err);

    /* Every deeper node with the same names as an anchor is a place for it. */
    for (uint32_t i = 1; status == HEARTH_OK && j->n_anchors > 0 && i < j->n; i++) {
        if (j->depth[i] <= OVERLAP || !last_name[j->tree->nodes[i].name]) {
            continue;
        }

        uint32_t anchor = hearth_idmap_find(&by_names, hash_names(j, i));
        if (anchor == HEARTH_IDMAP_NONE || j->anchors[anchor].node == j->anchor_of[i]) {
            continue; /* below the anchor itself: recursion, which does not reveal the root */
        }

        if (!hearth_mem_grow(&j->places, &j->cap_places, j->n_places + 1, sizeof j->places[0])) {
            status = fail_join_memory(j, err);
            break;
        }
        j->places[j->n_places++] = (struct place){anchor, i};
    }

    hearth_idmap_release(&by_names);

    return status;
}

/* ---- rounds ---- */

/* The value of the stacks through a place; 0: the place does not count yet. */
static int64_t weigh_place(const struct joiner *j, uint32_t node)
{
    return j->rest[node] != 0 ? j->rest[node] : j->moved[node] != HEARTH_NO_NODE ? j->cut[node] : 0;
}

/* Order of two paths of the same depth: by the names in which they differ nearest to the root. */
static int compare_paths(const struct joiner *j, uint32_t a, uint32_t b)
{
    const struct hearth_tree_node *nodes = j->tree->nodes;
    int order = 0;

    while (a != b) {
        int here = hearth_str_cmp(j->tree->names[nodes[a].name], j->tree->names[nodes[b].name]);
        order = here != 0 ? here : order;
        a = nodes[a].parent;
        b = nodes[b].parent;
    }

    return order;
}

static bool is_better(const struct joiner *j, uint32_t node, uint32_t than)
{
    if (than == HEARTH_NO_NODE) {
        return true;
    }

    int64_t a = weigh_place(j, node), b = weigh_place(j, than);
    if (a != b) {
        return a > b;
    }

    return j->depth[node] != j->depth[than] ? j->depth[node] < j->depth[than]
                                            : compare_paths(j, node, than) < 0;
}

/* Choose the best place of each anchor that is not joined yet. False if there is no place. */
static bool choose_places(struct joiner *j)
{
    bool any = false;

    for (size_t i = 0; i < j->n_places; i++) {
        struct anchor *anchor = &j->anchors[j->places[i].anchor];
        uint32_t node = j->places[i].node;
        if (!anchor->is_joined && weigh_place(j, node) > 0 && is_better(j, node, anchor->best)) {
            anchor->best = node;
            any = true;
        }
    }

    return any;
}

/* Add a child to `children`; returns the child that it has. HEARTH_IDMAP_NONE: no memory. */
static uint32_t map_moved_child(struct joiner *j, uint32_t parent, uint32_t name, uint32_t node)
{
    bool inserted;
    uint64_t pair = (uint64_t)parent << 32 | name;
    struct hearth_hash128 key = {hearth_hash_mix(pair, j->tree->seed), pair};
    return hearth_idmap_intern(&j->children, key, node, &inserted);
}

/*
 * The child of a node that stacks move to, made if absent. It uses a map of its own: the tree's map
 * would first have to contain all nodes, of which few are needed. HEARTH_NO_NODE: memory was
 * refused.
 */
static uint32_t find_moved_child(struct joiner *j, uint32_t parent, uint32_t name)
{
    struct hearth_stacktree *tree = j->tree;

    /* At first use, enter the children that the node has. */
    if (parent < j->n && !j->has_children[parent]) {
        for (uint32_t kid = tree->nodes[parent].first_child; kid != HEARTH_NO_NODE;
             kid = tree->nodes[kid].next_sibling) {
            if (map_moved_child(j, parent, tree->nodes[kid].name, kid) == HEARTH_IDMAP_NONE) {
                return HEARTH_NO_NODE;
            }
        }
        j->has_children[parent] = true;
    }

    /* Make room first, so that the map never refers to a missing node. */
    if (!hearth_stacktree_reserve(tree, 1)) {
        return HEARTH_NO_NODE;
    }

    uint32_t fresh = (uint32_t)tree->n_nodes;
    uint32_t node = map_moved_child(j, parent, name, fresh);

    return node == fresh ? hearth_stacktree_append(tree, parent, name) : node;
}

/* Move the cut stacks of a node whose anchor is joined to `place`. */
static enum hearth_status move_node(struct joiner *j, uint32_t node, uint32_t place,
                                    struct hearth_err *err)
{
    struct hearth_stacktree *tree = j->tree;
    uint32_t to = place;

    /*
     * An anchor moves to the place itself, or to where that has moved; other nodes follow their
     * parent.
     */
    if (j->anchor_of[node] != node) {
        to = find_moved_child(j, j->moved[tree->nodes[node].parent], tree->nodes[node].name);
    } else if (j->rest[place] == 0) {
        to = j->moved[place];
    }

    if (to == HEARTH_NO_NODE) {
        return HEARTH_FAIL_ARENA(err, tree->arena);
    }

    j->moved[node] = to;

    /* Move the value. */
    if (j->own[node] == 0) {
        return HEARTH_OK;
    }

    j->n_joined++;
    tree->nodes[node].self -= j->own[node];
    int64_t *self = &tree->nodes[to].self;

    return __builtin_add_overflow(*self, j->own[node], self) ||
                   __builtin_add_overflow(j->value, j->own[node], &j->value)
               ? fail_join_range(err)
               : HEARTH_OK;
}

static enum hearth_status move_round(struct joiner *j, struct hearth_err *err)
{
    for (uint32_t i = 1; i < j->n; i++) { /* parents precede children */
        if (j->cut[i] == 0 || j->anchor_of[i] == HEARTH_NO_NODE) {
            continue;
        }

        const struct anchor *anchor = &j->anchors[j->index_of[j->anchor_of[i]]];

        if (!anchor->is_joined && anchor->best != HEARTH_NO_NODE) {
            HEARTH_TRY(move_node(j, i, anchor->best, err));
        }
    }

    for (size_t i = 0; i < j->n_anchors; i++) {
        j->anchors[i].is_joined |= j->anchors[i].best != HEARTH_NO_NODE;
    }

    return HEARTH_OK;
}

static enum hearth_status join_stacks(struct joiner *j, const struct hearth_go_cut *cuts,
                                      size_t n_cuts, struct hearth_err *err)
{
    if (!joiner_init(j)) {
        return HEARTH_FAIL_ARENA(err, j->arena);
    }

    HEARTH_TRY(measure_nodes(j, cuts, n_cuts, err));
    HEARTH_TRY(find_places(j, err));
    for (int round = 0; round < MAX_ROUNDS && choose_places(j); round++) {
        HEARTH_TRY(move_round(j, err));
    }

    return HEARTH_OK;
}

enum hearth_status hearth_go_stacks_join(struct hearth_stacktree *tree,
                                         const struct hearth_go_cut *cuts, size_t n_cuts,
                                         struct hearth_arena *scratch, size_t *ret_n_joined,
                                         int64_t *ret_value, struct hearth_err *err)
{
    assert(tree != NULL && scratch != NULL && ret_n_joined != NULL && ret_value != NULL);
    assert(cuts != NULL || n_cuts == 0);

    struct joiner j = {.tree = tree, .arena = scratch};

    hearth_idmap_init(&j.children);
    enum hearth_status status = tree->n_nodes == 0 ? HEARTH_OK : join_stacks(&j, cuts, n_cuts, err);
    hearth_idmap_release(&j.children);
    hearth_mem_free(j.anchors);
    hearth_mem_free(j.places);
    if (status == HEARTH_OK && j.n_joined > 0) {
        status = hearth_stacktree_prune(tree, err);
    }

    if (status == HEARTH_OK) {
        *ret_n_joined = j.n_joined;
        *ret_value = j.value;
    }

    return status;
}
