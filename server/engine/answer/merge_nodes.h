/*
 * merge_nodes.h -- turns one part of a tree merge into nodes of a function tree (private to the
 * engine).
 *
 * Threads: a merge belongs to one thread.
 */
#ifndef HEARTH_ENGINE_MERGE_NODES_H
#define HEARTH_ENGINE_MERGE_NODES_H

#include "select/query_internal.h"

/* How the parts of a merge become one tree. */
struct hearth_part_form {
    const struct hearth_merge_spec *spec;
    /*
     * True if the part is the whole answer and the tree is empty. Then the tree is truncated to
     * max_nodes (stacktree.h: is_cut), unless different names are shown as one.
     */
    bool alone;
    int64_t max_nodes;
};

/*
 * Adds the stacks of a part that pass spec->stacks to the tree, with names as spec says, and sets
 * part->node_of. The part's sums must not be used afterwards. Errors: NO_MEMORY, OUT_OF_RANGE and
 * those of the filter.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_tree_part_place(struct hearth_tree_part *part,
                                          const struct hearth_part_form *form,
                                          struct hearth_stacktree *tree, struct hearth_arena *arena,
                                          struct hearth_err *err);

#endif
