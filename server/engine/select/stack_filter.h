/*
 * stack_filter.h -- a filter of stack traces applied to a name tree (private to the engine).
 *
 * Threads: pure.
 */
#ifndef HEARTH_ENGINE_STACK_FILTER_H
#define HEARTH_ENGINE_STACK_FILTER_H

#include "hearth/base/arena.h"
#include "hearth/engine/filter.h"
#include "hearth/model/name_tree.h"

/*
 * INVALID_ARGUMENT, naming the field, for a regular expression that is none and for too many functions. To be
 * asked before anything is read; those below fail the same way.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_filter_check(const struct hearth_stack_filter *filter,
                                             struct hearth_err *err);

/*
 * inside[node] for the first n_nodes nodes of a name tree: a stack whose leaf is that node passes.
 * It is the node's own path that counts: below one that passes, others need not (`without`).
 * NULL in *ret for an empty filter (everything passes). In arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_filter_nodes(const struct hearth_stack_filter *filter,
                                             const struct hearth_name_tree *tree, uint32_t n_nodes,
                                             struct hearth_arena *arena, bool **ret_inside,
                                             struct hearth_err *err);

/* What a filter says of one name tree after the other: most dictionaries in a row share theirs. */
struct hearth_stack_mask {
    const struct hearth_stack_filter *filter; /* borrowed */
    struct hearth_name_tree *tree;            /* a reference */
    uint32_t n_nodes;
    bool *inside;
    struct hearth_arena arena;
};

/* `like`: whose limits the memory has. */
void hearth_stack_mask_init(struct hearth_stack_mask *mask,
                            const struct hearth_stack_filter *filter,
                            const struct hearth_arena *like);
void hearth_stack_mask_release(struct hearth_stack_mask *mask);
/* inside[] of all nodes that the tree has now, until the next call; NULL: everything passes. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_mask_of(struct hearth_stack_mask *mask,
                                        struct hearth_name_tree *tree, const bool **ret_inside,
                                        struct hearth_err *err);

#endif
