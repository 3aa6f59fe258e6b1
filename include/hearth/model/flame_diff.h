/*
 * flame_diff.h -- the flame graph of two trees: the cost of every stack of names in each of them.
 *
 * The trees are aligned by name: a node stands for the same path from the root in both, and has
 * zeros for a tree that lacks the path. Children are in byte order of their names, `other` last.
 *
 * Truncation: as in stacktree.h, by the larger of a node's two totals. A frame with the real name
 * "other" is always folded.
 *
 * Levels:  level l has n values, seven per node: left x offset delta, left total, left self, the
 *          same three of the right, name index. The x offsets of the two sides are independent.
 * Threads: pure.
 * Source:  FlameGraphDiff of querier.v1 (docs/reference/api-querier.md).
 */
#ifndef HEARTH_MODEL_FLAME_DIFF_H
#define HEARTH_MODEL_FLAME_DIFF_H

#include "hearth/model/stacktree.h"

struct hearth_flame_diff {
    struct hearth_str *names; /* names[0] is "total", used by the root only */
    size_t n_names;
    struct hearth_flame_level *levels; /* seven values per node */
    size_t n_levels;
    uint32_t *parents; /* [n_nodes]: of nodes numbered level by level; the root's is 0 */
    size_t n_nodes;
    int64_t total;    /* both sides together */
    int64_t max_self; /* largest self of either side */
    int64_t left_total, right_total;
    /* Number of nodes of each side without a box of their own: they are folded into an "other". */
    int64_t left_folded, right_folded;
};

/*
 * Make the graph of two sealed trees, neither of them truncated (is_cut). Two empty trees give
 * names ["total"] and one level of seven zeros. Output in arena. max_nodes < 1: no truncation.
 *
 * Returns OK; NO_MEMORY; OUT_OF_RANGE if the sum of both totals exceeds 64 bits.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_flame_diff_make(const struct hearth_stacktree *left,
                                          const struct hearth_stacktree *right, int64_t max_nodes,
                                          struct hearth_arena *arena, struct hearth_flame_diff *ret,
                                          struct hearth_err *err);

#endif
