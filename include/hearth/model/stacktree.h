/*
 * stacktree.h -- a tree of function names with self and total, its truncation, and flame graph
 * levels.
 *
 * Node 0 is the root (no name, self 0). node[i].parent < i. The children of a node are linked in no
 * order; flame graphs sort them. Values are in the unit of the profile type; hearth_stacktree_seal
 * computes totals.
 *
 * Truncation: in a tree of more than max_nodes nodes (the root not counted), the max_nodes-th
 * largest total is the bound. Nodes with a smaller total are folded into one child "other" of their
 * parent; nodes with equal totals stay. A frame with the real name "other" is always folded into
 * it.
 *
 * Limits:  the arena's limit applies to texts and, separately, to the tree's arrays. Sums beyond
 *          int64 and negative values are OUT_OF_RANGE.
 * Threads: not thread-safe.
 * Source:  flame graph encoding and truncation of querier.v1 (docs/reference/api-querier.md).
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
    struct hearth_str *names; /* names[0] is "" (for the root) */
    size_t n_names, cap_names;
    struct hearth_idmap name_ids;  /* hash of text -> name index */
    struct hearth_idmap child_ids; /* (parent, name) -> node, for nodes [1, n_mapped) */
    size_t n_mapped;
    struct hearth_arena *arena; /* owns the texts of names */
    size_t budgeted_bytes;      /* bytes of arrays and maps charged to the arena's budget */
    uint64_t seed;
    /*
     * True if the tree was truncated while it was made: folded nodes are nodes "other" already, and
     * n_left_out nodes are missing. max_nodes is then ignored.
     */
    bool is_cut;
    size_t n_left_out;
};

/* The tree keeps `arena`; its arrays are freed by _release. */
void hearth_stacktree_init(struct hearth_stacktree *tree, struct hearth_arena *arena);
void hearth_stacktree_release(struct hearth_stacktree *tree);

/*
 * Node 0, made if absent: it holds the self of stacks without any frame. HEARTH_NO_NODE: memory was
 * refused.
 */
uint32_t hearth_stacktree_root(struct hearth_stacktree *tree);

/* Index of a name; a new text is copied. HEARTH_IDMAP_NONE: memory was refused. */
uint32_t hearth_stacktree_name(struct hearth_stacktree *tree, struct hearth_str text);
/* The child of `parent` with that name, made if absent. HEARTH_NO_NODE: memory was refused. */
uint32_t hearth_stacktree_child(struct hearth_stacktree *tree, uint32_t parent, uint32_t name);
/* The child if there is one. HEARTH_NO_NODE: absent, or memory was refused. */
uint32_t hearth_stacktree_find(struct hearth_stacktree *tree, uint32_t parent, uint32_t name);
/*
 * Make a child that is known to be absent, without a look-up, after _reserve. HEARTH_NO_NODE:
 * memory was refused.
 */
uint32_t hearth_stacktree_append(struct hearth_stacktree *tree, uint32_t parent, uint32_t name);
/* Make room for n_more nodes. False: memory was refused. */
HEARTH_MUST_CHECK bool hearth_stacktree_reserve(struct hearth_stacktree *tree, size_t n_more);
/*
 * Add the stacks of a decoded profile, with the values of sample type type_idx (below n_types) as
 * self. Every line of a location is a frame; a location without lines is named as in frame_name.h,
 * a dangling one [unknown]. Zero values are ignored. NO_MEMORY; OUT_OF_RANGE if a self exceeds 64
 * bits.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_add_profile(struct hearth_stacktree *tree,
                                                const struct hearth_profile *profile,
                                                uint32_t type_idx, struct hearth_err *err);
/* The same with the names that are shown: that of a function without a name is [unknown]. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_add_shown(struct hearth_stacktree *tree,
                                              const struct hearth_profile *profile,
                                              uint32_t type_idx, struct hearth_err *err);
/*
 * The reverse of _add_profile: a profile with one type of values and a sample for each node with a
 * self, in the tree's arena; every frame is a location and a function of that name, without file,
 * line or address. Texts are the tree's. NO_MEMORY; OUT_OF_RANGE for more than 2^31 frames in all.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_to_profile(const struct hearth_stacktree *tree,
                                               struct hearth_str type, struct hearth_str unit,
                                               struct hearth_profile *ret, struct hearth_err *err);
/*
 * Compute all totals; call again after values changed. OUT_OF_RANGE if a sum exceeds 64 bits and
 * for a negative self.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_seal(struct hearth_stacktree *tree, struct hearth_err *err);

/*
 * Remove the nodes below which all selfs are 0, after values were moved.
 * Node numbers change, parents still precede children, and the tree is sealed. NO_MEMORY;
 * OUT_OF_RANGE as _seal.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_prune(struct hearth_stacktree *tree, struct hearth_err *err);

/*
 * The bound of truncation of a sealed tree. 0: nothing is folded (max_nodes < 1, or few nodes).
 * Returns OK or NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_min_total(const struct hearth_stacktree *tree,
                                              int64_t max_nodes, int64_t *ret_min_total,
                                              struct hearth_err *err);

/*
 * Truncate a sealed tree: it is then sealed and is_cut, and answers for max_nodes are the same as
 * before. A tree in which nothing is folded for max_nodes stays whole. Node numbers change.
 * NO_MEMORY: the tree is then unusable.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_cut(struct hearth_stacktree *tree, int64_t max_nodes,
                                        struct hearth_err *err);

/*
 * The max_nodes-th largest of n totals (1 <= max_nodes <= n), all of them >= 0. The array is
 * reordered.
 */
int64_t hearth_stacktree_bound(uint64_t *totals, size_t n, size_t max_nodes);

/* Level l of a flame graph has n values, four per node: x offset delta, total, self, name index. */
struct hearth_flame_level {
    int64_t *values;
    size_t n, cap;
};

struct hearth_flamegraph {
    struct hearth_str *names; /* names[0] is "total", for the root only; texts are the tree's */
    size_t n_names;
    struct hearth_flame_level *levels;
    size_t n_levels;
    int64_t total, max_self;
    int64_t n_folded; /* nodes without a box of their own: they are folded into an "other" */
};

/*
 * Make the levels of a sealed tree, in arena. An empty tree gives names ["total"] and one level
 * [0, 0, 0, 0]. max_nodes < 1: no truncation. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_flamegraph_make(const struct hearth_stacktree *tree, int64_t max_nodes,
                                          struct hearth_arena *arena, struct hearth_flamegraph *ret,
                                          struct hearth_err *err);

/*
 * Append the tree byte format of querier.v1 (pre-order; siblings last to first); an empty tree is
 * zero bytes. The tree must be sealed. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_write_bytes(const struct hearth_stacktree *tree,
                                                int64_t max_nodes, struct hearth_buf *out,
                                                struct hearth_err *err);

/* One row of the exact table of functions. A recursive function counts once in its total. */
struct hearth_function_total {
    uint32_t name;
    int64_t self, total;
};

/*
 * All names with a self or total other than 0, sorted by self descending, then total, then name. In
 * arena. The tree must be sealed. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stacktree_functions(const struct hearth_stacktree *tree,
                                              struct hearth_arena *arena,
                                              struct hearth_function_total **ret, size_t *ret_n,
                                              struct hearth_err *err);

#endif
