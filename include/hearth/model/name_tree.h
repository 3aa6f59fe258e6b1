/*
 * name_tree.h -- an append-only tree of function names that the dictionaries of a service share.
 *
 * Node 0 is the root, its own parent, with the empty name; a node is a name below its parent, and
 * its parent has a smaller number. Names are texts interned once; name 0 is the empty one. Nodes
 * and names are never changed, moved or removed: what a number means holds as long as the tree.
 *
 * The dictionaries say what they use, so that the tree knows what of it is dead. Dead nodes stay
 * (their numbers are in use elsewhere); when they are the larger part, dictionaries that are loaded
 * from then on start a tree of their own: hearth_name_tree_is_stale.
 *
 * Limits:  HEARTH_NAME_TREE_MAX entries of either kind, hard; a tree is stale at a quarter of it.
 * Threads: readers need no lock: everything below the size that they asked for stands. Who adds is
 *          alone between _begin and _end (a lock of the tree; nothing else may be waited for
 *          there). Node and name numbers go to other threads after _end only.
 */
#ifndef HEARTH_MODEL_NAME_TREE_H
#define HEARTH_MODEL_NAME_TREE_H

#include "hearth/base/str.h"
#include "hearth/model/profile.h"

#include <stdatomic.h>

/* Segment k holds HEARTH_NAME_TREE_FIRST << k entries. */
#define HEARTH_NAME_TREE_FIRST_BITS 8u
#define HEARTH_NAME_TREE_FIRST      (UINT32_C(1) << HEARTH_NAME_TREE_FIRST_BITS)
#define HEARTH_NAME_TREE_SEGMENTS   20u
#define HEARTH_NAME_TREE_MAX \
    ((HEARTH_NAME_TREE_FIRST << HEARTH_NAME_TREE_SEGMENTS) - HEARTH_NAME_TREE_FIRST)

struct hearth_name_node {
    uint32_t parent, name;
};

struct hearth_name_tree {
    struct hearth_name_node *nodes[HEARTH_NAME_TREE_SEGMENTS];
    struct hearth_str *names[HEARTH_NAME_TREE_SEGMENTS];
    _Atomic uint32_t n_nodes, n_names; /* published */
    struct hearth_name_tree_impl *impl;
};

/* With one reference, the caller's. NULL when memory was refused. */
struct hearth_name_tree *hearth_name_tree_new(void);
struct hearth_name_tree *hearth_name_tree_ref(struct hearth_name_tree *tree);
void hearth_name_tree_unref(struct hearth_name_tree *tree); /* NULL-safe */

/* ---- reading ---- */

static inline uint32_t hearth_name_tree_segment(uint32_t i, uint32_t *ret_at)
{
    uint32_t j = i + HEARTH_NAME_TREE_FIRST;
    uint32_t bit = 31 - (uint32_t)__builtin_clz(j);
    *ret_at = j - (UINT32_C(1) << bit);
    return bit - HEARTH_NAME_TREE_FIRST_BITS;
}

/* Number of nodes; 1 for an empty tree. */
static inline uint32_t hearth_name_tree_size(const struct hearth_name_tree *tree)
{
    return atomic_load_explicit(&tree->n_nodes, memory_order_acquire);
}

/* Number of names: covers those of all nodes below a size that was asked for before. */
static inline uint32_t hearth_name_tree_n_names(const struct hearth_name_tree *tree)
{
    return atomic_load_explicit(&tree->n_names, memory_order_acquire);
}

/* Node i < size. */
static inline struct hearth_name_node hearth_name_tree_node(const struct hearth_name_tree *tree,
                                                            uint32_t i)
{
    uint32_t at, segment = hearth_name_tree_segment(i, &at);
    return tree->nodes[segment][at];
}

/* The text lives as long as the tree. */
static inline struct hearth_str hearth_name_tree_name(const struct hearth_name_tree *tree,
                                                      uint32_t name)
{
    uint32_t at, segment = hearth_name_tree_segment(name, &at);
    return tree->names[segment][at];
}

size_t hearth_name_tree_bytes(const struct hearth_name_tree *tree);

/* More of it is dead than alive (and not little), or it is near its limits. */
bool hearth_name_tree_is_stale(const struct hearth_name_tree *tree);
/* Nodes that no dictionary uses (the root is never dead). */
uint32_t hearth_name_tree_n_dead(const struct hearth_name_tree *tree);

/* ---- adding ---- */

void hearth_name_tree_begin(struct hearth_name_tree *tree);
void hearth_name_tree_end(struct hearth_name_tree *tree);

/* Between _begin and _end. HEARTH_NO_INDEX when memory was refused or the tree is full. */
uint32_t hearth_name_tree_intern(struct hearth_name_tree *tree, struct hearth_str text);
uint32_t hearth_name_tree_child(struct hearth_name_tree *tree, uint32_t parent, uint32_t name);
/* Between _begin and _end: it is used once more, with all that it stands on; once less. */
void hearth_name_tree_use_node(struct hearth_name_tree *tree, uint32_t node);
void hearth_name_tree_use_name(struct hearth_name_tree *tree, uint32_t name);
void hearth_name_tree_drop_node(struct hearth_name_tree *tree, uint32_t node);
void hearth_name_tree_drop_name(struct hearth_name_tree *tree, uint32_t name);

#endif
