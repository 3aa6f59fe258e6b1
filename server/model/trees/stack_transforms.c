/* stack_transforms.c -- makes a tree of another one, node by node. */
#include "hearth/model/stack_transforms.h"

#include "hearth/base/mem.h"
#include "hearth/model/frame_package.h"

#include <assert.h>

struct transformation {
    const struct hearth_stacktree *tree;
    enum hearth_transform_kind kind;
    uint8_t *is_meant;          /* by name of the tree */
    uint32_t *name_of;          /* the same names in the new tree, plus 1; 0: not there yet */
    uint32_t *places;           /* by node: where its self goes; HEARTH_NO_NODE: it is left out */
    uint32_t *outermost;        /* recursion: the place of the outermost call above, or of it */
    struct hearth_str new_name; /* package: the name of the frames that are made */
    struct hearth_stacktree *out;
};

static bool is_name_meant(const struct hearth_transform *transform, struct hearth_str name,
                          char *room)
{
    if (transform->kind == HEARTH_TRANSFORM_PACKAGE) {
        return hearth_str_eq(hearth_frame_package(name, room), transform->name);
    }
    return transform->is_meant != NULL ? transform->is_meant(transform->context, name)
                                       : hearth_str_eq(name, transform->name);
}

/* Marks the names that are meant; name 0 is that of the root. */
static bool mark_names(struct transformation *t, const struct hearth_transform *transform)
{
    size_t longest = 1;

    for (size_t i = 0; i < t->tree->n_names; i++) {
        longest = t->tree->names[i].n > longest ? t->tree->names[i].n : longest;
    }
    char *room = hearth_mem_zalloc(longest);
    for (size_t i = 1; room != NULL && i < t->tree->n_names; i++) {
        t->is_meant[i] = is_name_meant(transform, t->tree->names[i], room);
    }
    hearth_mem_free(room);

    return room != NULL;
}

/* The child of a place with a node's name. HEARTH_NO_NODE: memory was refused. */
static uint32_t make_child(struct transformation *t, uint32_t place, uint32_t node)
{
    uint32_t name = t->tree->nodes[node].name;
    bool is_package = t->kind == HEARTH_TRANSFORM_PACKAGE && t->is_meant[name] != 0;

    if (t->name_of[name] == 0) {
        /* NONE + 1 is 0, so a refusal is not stored as a name. */
        t->name_of[name] =
            hearth_stacktree_name(t->out, is_package ? t->new_name : t->tree->names[name]) + 1;
    }
    return t->name_of[name] == 0 ? HEARTH_NO_NODE
                                 : hearth_stacktree_child(t->out, place, t->name_of[name] - 1);
}

/* Finds the place of a node other than the root. False: memory was refused. */
static bool place_node(struct transformation *t, uint32_t node)
{
    const struct hearth_tree_node *of = &t->tree->nodes[node];
    uint32_t *place = &t->places[node];
    bool is_meant = t->is_meant[of->name] != 0;

    *place = t->places[of->parent];
    switch (t->kind) {
    case HEARTH_TRANSFORM_FOCUS:
        if (*place == HEARTH_NO_NODE && !is_meant) {
            return true;
        }
        *place = make_child(t, *place == HEARTH_NO_NODE ? 0 : *place, node);
        break;
    case HEARTH_TRANSFORM_HIDE:
        *place = is_meant ? *place : make_child(t, *place, node);
        break;
    case HEARTH_TRANSFORM_RECURSION:
        t->outermost[node] = t->outermost[of->parent];
        if (!is_meant) {
            *place = make_child(t, *place, node);
            break;
        }
        if (t->outermost[node] == HEARTH_NO_NODE) {
            t->outermost[node] = make_child(t, *place, node);
        }
        *place = t->outermost[node];
        break;
    case HEARTH_TRANSFORM_PACKAGE:
        if (!is_meant || of->parent == 0 || t->is_meant[t->tree->nodes[of->parent].name] == 0) {
            *place = make_child(t, *place, node);
        }
        break;
    }

    return *place != HEARTH_NO_NODE;
}

/* Makes the tree; selfs are those of a sealed tree, so their sums do not overflow. */
static bool move_nodes(struct transformation *t, size_t *ret_n_frames)
{
    const struct hearth_stacktree *tree = t->tree;
    bool ok = hearth_stacktree_root(t->out) != HEARTH_NO_NODE;
    size_t n_frames = 0;

    if (tree->n_nodes > 0) {
        t->places[0] = t->kind == HEARTH_TRANSFORM_FOCUS ? HEARTH_NO_NODE : 0;
        t->outermost[0] = HEARTH_NO_NODE;
    }
    for (uint32_t i = 1; ok && i < tree->n_nodes; i++) {
        n_frames += t->is_meant[tree->nodes[i].name];
        ok = place_node(t, i);
    }
    for (size_t i = 0; ok && i < tree->n_nodes; i++) {
        if (t->places[i] != HEARTH_NO_NODE) {
            t->out->nodes[t->places[i]].self += tree->nodes[i].self;
        }
    }
    *ret_n_frames = n_frames;

    return ok;
}

enum hearth_status hearth_stacktree_transform(const struct hearth_stacktree *tree,
                                              const struct hearth_transform *transform,
                                              struct hearth_arena *arena,
                                              struct hearth_stacktree *ret, size_t *ret_n_frames,
                                              struct hearth_err *err)
{
    assert(tree != NULL && transform != NULL && arena != NULL && ret != NULL);

    struct transformation t = {
        .tree = tree,
        .kind = transform->kind,
        .is_meant = hearth_mem_zalloc(tree->n_names + 1),
        .name_of = hearth_mem_calloc(tree->n_names + 1, sizeof *t.name_of),
        .places = hearth_mem_calloc(tree->n_nodes + 1, sizeof *t.places),
        .outermost = hearth_mem_calloc(tree->n_nodes + 1, sizeof *t.outermost),
        .new_name = transform->name,
        .out = ret,
    };

    hearth_stacktree_init(ret, arena);
    bool ok = t.is_meant != NULL && t.name_of != NULL && t.places != NULL && t.outermost != NULL &&
              mark_names(&t, transform) && move_nodes(&t, ret_n_frames);
    hearth_mem_free(t.is_meant);
    hearth_mem_free(t.name_of);
    hearth_mem_free(t.places);
    hearth_mem_free(t.outermost);
    if (!ok) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to transform a tree of stack traces");
    }

    /* Frames between the calls of a collapsed recursion are left without any value. */
    return hearth_stacktree_prune(ret, err);
}
