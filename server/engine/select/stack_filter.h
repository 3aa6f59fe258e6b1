/*
 * stack_filter.h -- applies a filter of stack traces to a name tree (private to the engine).
 *
 * Threads: pure functions; a mask belongs to one thread.
 */
#ifndef HEARTH_ENGINE_STACK_FILTER_H
#define HEARTH_ENGINE_STACK_FILTER_H

#include "hearth/base/arena.h"
#include "hearth/engine/filter.h"
#include "hearth/model/name_tree.h"

/*
 * Checks a filter before anything is read; `like` has the limits for memory. Errors:
 * INVALID_ARGUMENT names the field, for an invalid regular expression, too many functions or too
 * many conditions on rows; the functions below fail in the same way.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_filter_check(const struct hearth_stack_filter *filter,
                                             const struct hearth_arena *like,
                                             struct hearth_err *err);

/*
 * inside[node] for the first n_nodes nodes of a name tree: true if a stack whose leaf is that node
 * passes. Only the node's own path decides: below a node that passes, others may not (`without`).
 * *ret_inside is NULL without conditions on names: everything passes. Conditions on rows are
 * row_mask.h's and thread_filter.h's. In arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_filter_nodes(const struct hearth_stack_filter *filter,
                                             const struct hearth_name_tree *tree, uint32_t n_nodes,
                                             struct hearth_arena *arena, bool **ret_inside,
                                             struct hearth_err *err);

/*
 * The verdicts of a filter for the latest name tree: most neighbouring dictionaries share theirs.
 */
struct hearth_stack_mask {
    const struct hearth_stack_filter *filter; /* borrowed */
    struct hearth_name_tree *tree;            /* a reference; NULL: none yet */
    uint32_t n_nodes;
    bool *inside;
    struct hearth_arena arena;
};

/* `like` has the limits for the memory of the mask. */
void hearth_stack_mask_init(struct hearth_stack_mask *mask,
                            const struct hearth_stack_filter *filter,
                            const struct hearth_arena *like);
void hearth_stack_mask_release(struct hearth_stack_mask *mask);
/*
 * inside[] for all current nodes of the tree, valid until the next call; NULL: everything passes.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_mask_of(struct hearth_stack_mask *mask,
                                        struct hearth_name_tree *tree, const bool **ret_inside,
                                        struct hearth_err *err);

#endif
