/*
 * stacktree.h -- a tree of function names with self and total, its truncation, and flame graph
 * levels.
 *
 * Node 0 is the root (no name, self 0). node[i].parent < i. Children of a node are linked; order
 * comes with the levels. Values are in the unit of the profile type; totals are computed by
 * hearth_stacktree_seal.
 *
 * Truncation: with more than max_nodes nodes (the root not counted), the max_nodes-th largest total
 * is the bound; nodes below it are folded into one child "other" of their parent. Ties stay. A
 * frame really named "other" is always folded into it.
 *
 * Limits:  the arena's limit holds for its texts and, by itself, for the tree's arrays; sums
 *          beyond int64 and negative values are OUT_OF_RANGE.
 * Threads: not thread-safe.
 * Source:  flame graph encoding and truncation of querier.v1 (docs/api.md).
 */
#ifndef HEARTH_MODEL_STACKTREE_H
#define HEARTH_MODEL_STACKTREE_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/hash.h"
#include "hearth/base/status.h"
#include "hearth/model/profile.h"

struct hearth_tree_node {
    uint32_t parent, first_child, next_sibling; /* HEARTH_NO_NODE ends a list */
    uint32_t name;                              /* index into names */
    int64_t self, total;
};

#define HEARTH_NO_NODE UINT32_MAX

struct hearth_stacktree {
    struct hearth_tree_node *nodes;
    size_t n_nodes, cap_nodes;
    struct hearth_str *names; /* names[0] is "" (the root's) */
    size_t n_names, cap_names;
    struct hearth_idmap name_ids;  /* hash of text -> name index */
    struct hearth_idmap child_ids; /* (parent, name) -> node, of nodes [1, n_mapped) */
    size_t n_mapped;
    struct hearth_arena *arena; /* texts of names, copied */
    size_t budgeted_bytes;      /* of the arrays and maps, taken from the arena's budget */
    uint64_t seed;
    /*
     * Truncated while it was made: what would be folded stands in it as nodes "other" already, and
     * n_left_out nodes less. No max_nodes is looked at any more.
     */
    bool is_cut;
    size_t n_left_out;
};

/* `arena` is kept; the arrays are the tree's own (release it). */
void hearth_stacktree_init(struct hearth_stacktree *tree, struct hearth_arena *arena);
void hearth_stacktree_release(struct hearth_stacktree *tree);

/* Node 0, made when absent: for the self of stacks without any frame. HEARTH_NO_NODE when memory
 * was refused. */
uint32_t hearth_stacktree_root(struct hearth_stacktree *tree);

/* Index of a name, copying its text at first sight. HEARTH_IDMAP_NONE when memory was refused. */
uint32_t hearth_stacktree_name(struct hearth_stacktree *tree, struct hearth_str text);
/* The child of `parent` with that name, made when absent. HEARTH_NO_NODE: memory was refused. */
uint32_t hearth_stacktree_child(struct hearth_stacktree *tree, uint32_t parent, uint32_t name);
/* Its number when there is one, else HEARTH_NO_NODE; also when memory was refused. */
uint32_t hearth_stacktree_find(struct hearth_stacktree *tree, uint32_t parent, uint32_t name);
/*
 * Make a child that is known to be absent, after _reserve: no table is asked. HEARTH_NO_NODE:
 * memory was refused.
 */
uint32_t hearth_stacktree_append(struct hearth_stacktree *tree, uint32_t parent, uint32_t name);
/* Room for n_more nodes. false: memory was refused. */
HEARTH_MUST_CHECK bool hearth_stacktree_reserve(struct hearth_stacktree *tree, size_t n_more);
/*
 * Add the stacks of a decoded profile, with the values of sample type type_idx as self; every line
 * of a location is a frame, a location without lines is named as in frame_name.h, a
 * dangling one [unknown]. Zero values are
 * left out. NO_MEMORY; OUT_OF_RANGE when a self exceeds 64 bits; type_idx must be below n_types.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_add_profile(struct hearth_stacktree *tree,
                                                const struct hearth_profile *profile,
                                                uint32_t type_idx, struct hearth_err *err);
/*
 * Compute totals bottom-up (parents come before children in the array); to be called again after
 * values changed. OUT_OF_RANGE on overflow and for a negative self.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_seal(struct hearth_stacktree *tree, struct hearth_err *err);

/*
 * Remove the nodes below which all selfs are 0, after values were moved. Numbers of nodes change, parents
 * still come before children; the tree is sealed. NO_MEMORY; OUT_OF_RANGE as by _seal.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_prune(struct hearth_stacktree *tree, struct hearth_err *err);

/*
 * Smallest total that stays under max_nodes; 0: everything (max_nodes < 1 or few nodes). Sealed
 * trees only. Returns OK or NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_min_total(const struct hearth_stacktree *tree,
                                              int64_t max_nodes, int64_t *ret_min_total,
                                              struct hearth_err *err);

/*
 * The max_nodes-th largest of n totals (1 <= max_nodes <= n), none of them negative: the bound of
 * truncation. The array is scratch.
 */
int64_t hearth_stacktree_bound(uint64_t *totals, size_t n, size_t max_nodes);

/* The flame graph: level l has n values, four per node: x offset delta, total, self, name index. */
struct hearth_flame_level {
    int64_t *values;
    size_t n, cap;
};

struct hearth_flamegraph {
    struct hearth_str *names; /* names[0] is "total", the root's alone; texts are the tree's */
    size_t n_names;
    struct hearth_flame_level *levels;
    size_t n_levels;
    int64_t total, max_self;
    int64_t n_folded; /* nodes without a box of their own: folded into an "other" */
};

/*
 * Levels of a sealed tree. An empty tree gives names ["total"], one level [0, 0, 0, 0]. Output in
 * arena. max_nodes < 1: no truncation.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_flamegraph_make(const struct hearth_stacktree *tree, int64_t max_nodes,
                                          struct hearth_arena *arena, struct hearth_flamegraph *ret,
                                          struct hearth_err *err);

/* The tree byte format of querier.v1 (pre-order; siblings last to first); an empty tree is zero
 * bytes. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_write_bytes(const struct hearth_stacktree *tree,
                                                int64_t max_nodes, struct hearth_buf *out,
                                                struct hearth_err *err);

/* One row of the exact table of functions. A recursive function counts once in its total. */
struct hearth_function_total {
    uint32_t name;
    int64_t self, total;
};

/* All names with self or total not 0, by self descending, then total, then name. In arena. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_functions(const struct hearth_stacktree *tree,
                                              struct hearth_arena *arena,
                                              struct hearth_function_total **ret, size_t *ret_n,
                                              struct hearth_err *err);

#endif
