/*
 * merge_nodes.h -- one part of a tree merge to nodes of a function tree (private to the engine).
 *
 * Threads: as the merge.
 */
#ifndef HEARTH_ENGINE_MERGE_NODES_H
#define HEARTH_ENGINE_MERGE_NODES_H

#include "select/query_internal.h"

/*
 * Add what passes spec->stacks to the tree, names as spec has them; part->node_of is set. alone: it is all
 * of the answer and the tree is empty; then the tree is truncated to max_nodes (stacktree.h: is_cut) unless
 * names that differ are shown as one. The part's sums are used up. NO_MEMORY, OUT_OF_RANGE and the errors
 * of the filter.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_tree_part_place(struct hearth_tree_part *part,
                                          const struct hearth_merge_spec *spec, bool alone,
                                          int64_t max_nodes, struct hearth_stacktree *tree,
                                          struct hearth_arena *arena, struct hearth_err *err);

#endif
