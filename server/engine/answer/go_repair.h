/*
 * go_repair.h -- what Go's runtime did to the stacks of a tree merge, found and undone (private to the
 * engine; what that is: model/go_stacks.h).
 *
 * Threads: as the merge.
 */
#ifndef HEARTH_ENGINE_GO_REPAIR_H
#define HEARTH_ENGINE_GO_REPAIR_H

#include "hearth/model/dict.h"

#include "select/query_internal.h"

/*
 * Remember the stacks of a dictionary that may be cut, for merge->go_max_frames > 0. `part` is that of its
 * tree and covers its nodes. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_go_find_cuts(struct hearth_tree_merge *merge,
                                       struct hearth_tree_part *part,
                                       const struct hearth_dict *dict,
                                       const struct hearth_dict_sums *sums, struct hearth_err *err);

/* Some stack may be cut, or some name has type arguments of the compiler. */
bool hearth_go_needs_repair(const struct hearth_tree_merge *merge);

/*
 * Join the cuts of the merge in its finished tree, which was made without a filter of stacks, and then keep
 * what passes the filter: it is asked of names and stacks as they are shown. Counts go to merge->n_joined
 * and its like. The errors of hearth_go_stacks_join and hearth_stack_filter_nodes.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_go_repair(struct hearth_tree_merge *merge,
                                    const struct hearth_stack_filter *stacks,
                                    struct hearth_stacktree *tree, struct hearth_err *err);

#endif
