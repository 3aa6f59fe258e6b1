/*
 * go_repair.h -- finds and joins stacks that Go's runtime cut, in a tree merge (private to the
 * engine; model/go_stacks.h explains such stacks).
 *
 * Threads: a merge belongs to one thread.
 */
#ifndef HEARTH_ENGINE_GO_REPAIR_H
#define HEARTH_ENGINE_GO_REPAIR_H

#include "hearth/model/dict.h"

#include "select/query_internal.h"

/*
  * Remembers the stacks of a dictionary that may be cut, if merge->go_max_frames > 0. `part` is
  * that of the dictionary's tree and covers its nodes. Errors: NO_MEMORY.
  */
HEARTH_MUST_CHECK
enum hearth_status hearth_go_find_cuts(struct hearth_tree_merge *merge,
                                       struct hearth_tree_part *part,
                                       const struct hearth_dict *dict,
                                       const struct hearth_dict_sums *sums, struct hearth_err *err);

/* Whether a stack may be cut, or a name has type arguments as the compiler writes them. */
bool hearth_go_needs_repair(const struct hearth_tree_merge *merge);

/*
 * Joins the cut stacks in the finished tree, which was made without a filter of stacks, and then
 * removes stacks that do not pass the filter: it applies to names and stacks as they are shown.
 * Sets merge->n_joined and joined_value. Errors: those of hearth_go_stacks_join and
 * hearth_stack_filter_nodes.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_go_repair(struct hearth_tree_merge *merge,
                                    const struct hearth_stack_filter *stacks,
                                    struct hearth_stacktree *tree, struct hearth_err *err);

#endif
