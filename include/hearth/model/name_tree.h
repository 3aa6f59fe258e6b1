/*
 * name_tree.h -- an append-only tree of function names that the dictionaries of a service share.
 *
 * Node 0 is the root: its own parent, with the empty name. Every other node is a name below its
 * parent, and its parent has a smaller number. Each name is a text interned once; name 0 is empty.
 * Nodes and names are never changed, moved or removed: a number is valid as long as the tree.
 *
 * Dictionaries report which nodes and names they use, so the tree can count dead ones. Dead nodes
 * stay, because their numbers may be in use elsewhere. When a tree is stale (mostly dead, or large:
 * hearth_name_tree_is_stale), dictionaries loaded later start a new tree.
 *
 * Limits:  HEARTH_NAME_TREE_MAX nodes and as many names (hard); stale at a quarter of it.
 * Threads: readers need no lock: entries below a size they have read are complete. A writer holds
 *          the tree's lock between _begin and _end, and must not wait for anything else there. Node
 *          and name numbers may be passed to other threads only after _end.
 */
#ifndef HEARTH_MODEL_NAME_TREE_H
#define HEARTH_MODEL_NAME_TREE_H

#include "hearth/base/hash.h"
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
    _Atomic uint32_t n_nodes, n_names; /* published sizes: entries below them are complete */
    struct hearth_name_tree_impl *impl;
};

/* The caller owns the one reference. NULL if memory was refused. */
struct hearth_name_tree *hearth_name_tree_new(void);
struct hearth_name_tree *hearth_name_tree_ref(struct hearth_name_tree *tree);
void hearth_name_tree_unref(struct hearth_name_tree *tree); /* NULL-safe */

/* ---- reading ---- */

/* The segment of entry i; *ret_at is the position of the entry in it. */
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

/* Number of names; covers the names of all nodes below a size read earlier. */
static inline uint32_t hearth_name_tree_n_names(const struct hearth_name_tree *tree)
{
    return atomic_load_explicit(&tree->n_names, memory_order_acquire);
}

/* Node i; i must be below a size read earlier. */
static inline struct hearth_name_node hearth_name_tree_node(const struct hearth_name_tree *tree,
                                                            uint32_t i)
{
    uint32_t at, segment = hearth_name_tree_segment(i, &at);
    return tree->nodes[segment][at];
}

/* The text of a name; it lives as long as the tree. */
static inline struct hearth_str hearth_name_tree_name(const struct hearth_name_tree *tree,
                                                      uint32_t name)
{
    uint32_t at, segment = hearth_name_tree_segment(name, &at);
    return tree->names[segment][at];
}

/* Memory in use. */
size_t hearth_name_tree_bytes(const struct hearth_name_tree *tree);

/* True if more nodes or names are dead than alive (and not few), or a limit is near. */
bool hearth_name_tree_is_stale(const struct hearth_name_tree *tree);
/* Number of nodes that no dictionary uses (the root is never dead). */
uint32_t hearth_name_tree_n_dead(const struct hearth_name_tree *tree);

/* ---- adding ---- */

/* Take the tree's lock; release it and publish the new sizes. */
void hearth_name_tree_begin(struct hearth_name_tree *tree);
void hearth_name_tree_end(struct hearth_name_tree *tree);

/* Find or add; between _begin and _end. HEARTH_NO_INDEX: memory was refused or the tree is full. */
uint32_t hearth_name_tree_intern(struct hearth_name_tree *tree, struct hearth_str text);
uint32_t hearth_name_tree_child(struct hearth_name_tree *tree, uint32_t parent, uint32_t name);
/*
 * The node where the stack with this key ends (dict.h), if a dictionary of this tree has noted it;
 * likewise. HEARTH_NO_INDEX: it is not known. Notes are forgotten when there are more than 65,536
 * and more than two for each stack of the dictionaries, and a note that finds no memory is lost.
 */
uint32_t hearth_name_tree_find_stack(const struct hearth_name_tree *tree,
                                     struct hearth_hash128 key);
void hearth_name_tree_note_stack(struct hearth_name_tree *tree, struct hearth_hash128 key,
                                 uint32_t node);
/* Count one use more, or one less, of a node with all its ancestors, or of a name; likewise. */
void hearth_name_tree_use_node(struct hearth_name_tree *tree, uint32_t node);
void hearth_name_tree_use_name(struct hearth_name_tree *tree, uint32_t name);
void hearth_name_tree_drop_node(struct hearth_name_tree *tree, uint32_t node);
void hearth_name_tree_drop_name(struct hearth_name_tree *tree, uint32_t name);

#endif
