/*
 * flame_tree.h -- a flame graph of up to millions of nodes for a screen: arrays by field, level by
 * level.
 *
 * Nodes are numbered level by level from 0, the root, and within a level from left to right. The
 * children of a node have successive numbers, and its descendants on any level lie between `from`
 * and `from + total`, so the visible nodes of a level are found by binary search.
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_CLIENTS_FLAME_TREE_H
#define HEARTH_CLIENTS_FLAME_TREE_H

#include "hearth/model/stacktree.h"

/* A tree has at most so many nodes; stacks from their leaves may need more than the server's 1 Mi. */
#define FLAME_TREE_MAX_NODES ((size_t)1 << 24)

/* The names of a graph; all trees made of the graph refer to them. */
struct flame_names {
    const struct hearth_str *v; /* [0] is "total" */
    uint32_t n;
    uint32_t *rank; /* place in alphabetical order, by name */
};

struct flame_tree {
    uint32_t n, cap;       /* nodes */
    int64_t *from, *total; /* place and width, in the unit of the values; total > 0 */
    int64_t *self;
    uint32_t *name, *parent;
    uint32_t *first_child; /* n + 1; children of k are [first_child[k], first_child[k + 1]) */
    uint32_t n_levels;
    uint32_t *level_first; /* n_levels + 1; nodes of level l are [l, l + 1) of it */
    size_t cap_levels;
};

/* The names are borrowed from the graph. NO_MEMORY. Release with flame_names_release. */
HEARTH_MUST_CHECK
enum hearth_status flame_names_init(struct flame_names *names,
                                    const struct hearth_flamegraph *graph, struct hearth_err *err);
void flame_names_release(struct flame_names *names);

/*
 * Copy a graph; nodes whose total is 0 are omitted. CORRUPT if a node has no name, a negative
 * value, or does not lie within a node of the level above; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status flame_tree_read(const struct hearth_flamegraph *graph, struct flame_tree *ret,
                                   struct hearth_err *err);
void flame_tree_release(struct flame_tree *tree); /* a zeroed tree is empty */

/* Callers of a node with less than 1 / this of the root's total are omitted. */
#define FLAME_TREE_CALLERS_SHARE 100000

/*
 * All stacks from their leaves: the root is the total, its children are functions with a self, and
 * below them are their callers.
 */
HEARTH_MUST_CHECK
enum hearth_status flame_tree_invert(const struct flame_tree *tree, const struct flame_names *names,
                                     struct flame_tree *ret, struct hearth_err *err);
/*
 * The callers, or the callees, of a function, which is the root. A recursive call is part of the
 * outermost one. The result is empty if no node has that name.
 */
HEARTH_MUST_CHECK
enum hearth_status flame_tree_sandwich(const struct flame_tree *tree,
                                       const struct flame_names *names, uint32_t name, bool callers,
                                       struct flame_tree *ret, struct hearth_err *err);

/* The level of a node. */
uint32_t flame_tree_level(const struct flame_tree *tree, uint32_t node);
/* The first node of a level that ends after `at`, or the end of the level. */
uint32_t flame_tree_at(const struct flame_tree *tree, uint32_t level, int64_t at);

/*
 * The sum of the totals of nodes whose name is marked (marks[name] != 0). A marked node below
 * another one is not counted again. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status flame_tree_matched(const struct flame_tree *tree, const uint8_t *marks,
                                      int64_t *ret_total, struct hearth_err *err);
/*
 * Self and total by name, into arrays of n_names zeroes. A recursive function counts once.
 * NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status flame_tree_functions(const struct flame_tree *tree, uint32_t n_names,
                                        int64_t *self, int64_t *total, struct hearth_err *err);

/* ---- for flame_tree_merge.c ---- */

/* Make room for n_more nodes. False: memory was refused, or FLAME_TREE_MAX_NODES is reached. */
HEARTH_MUST_CHECK bool flame_tree_reserve(struct flame_tree *tree, size_t n_more);
HEARTH_MUST_CHECK bool flame_tree_end_level(struct flame_tree *tree);
/* Set first_child and the last level_first after all nodes are there. */
HEARTH_MUST_CHECK bool flame_tree_seal(struct flame_tree *tree);

#endif
