/*
 * kept_tree.h -- the truncated function tree of a repeated query, kept with the sums that it is
 * made of (private to the engine; sum_cache.h).
 *
 * A tree is found if all sums of the query are in the cache, nothing else was read, and the tree
 * was made of these sums in the same way before. It is kept at the second such query: that the sums
 * of all of its parts are found says that the same range was asked for before, while a range that
 * moves with the clock adds nothing.
 *
 * Threads: each object belongs to one query.
 */
#ifndef HEARTH_ENGINE_KEPT_TREE_H
#define HEARTH_ENGINE_KEPT_TREE_H

#include "select/query_internal.h"

struct hearth_cached_sums;

struct hearth_kept_tree {
    struct hearth_sum_cache *cache;
    bool is_wanted;             /* such a tree may be kept */
    struct hearth_hash128 form; /* of how the tree is made of sums */
    bool has_key;               /* hearth_kept_tree_find was called */
    struct hearth_hash128 key;
    const struct hearth_cached_sums *found; /* NULL: not in the cache */
};

/* What joining stacks of Go did to a tree (model/go_stacks.h). */
struct hearth_joined_stacks {
    size_t n;
    int64_t value;
};

/*
 * spec->go_stacks is resolved (not HEARTH_GO_OF_TENANT). Trees with filters of stacks or profiles,
 * and whole ones (max_nodes < 1), are not kept. Release `kept` in any case.
 */
void hearth_kept_tree_init(struct hearth_kept_tree *kept, const struct hearth_query *query,
                           const struct hearth_merge_spec *spec, int64_t max_nodes);
void hearth_kept_tree_release(struct hearth_kept_tree *kept);

/* A hearth_sums_known_fn with a hearth_kept_tree as its context: looks for the tree. */
bool hearth_kept_tree_find(void *kept, struct hearth_hash128 sums_key);

/* Makes the tree that was found, sealed, in an empty tree. Errors: NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_kept_tree_read(const struct hearth_kept_tree *kept,
                                         struct hearth_stacktree *tree,
                                         struct hearth_joined_stacks *ret_joined,
                                         struct hearth_err *err);

/* Keeps a sealed tree if all of its sums were in the cache, and it fits. */
void hearth_kept_tree_add(const struct hearth_kept_tree *kept, const struct hearth_stacktree *tree,
                          const struct hearth_joined_stacks *joined);

#endif
