/*
 * flame_diff.h -- the flame graph of two trees: what each has of every stack of names.
 *
 * The trees are aligned by name: a node stands for the same path from the root in both, and has
 * zeros where one of them lacks it. Children are in byte order of their names, `other` last.
 *
 * Truncation: as in stacktree.h, by the larger of a node's two totals. A frame really named "other"
 * is always folded.
 *
 * Shapes:  level l has n values, seven per node: left x offset delta, left total, left self, the
 *          same of the right, name index. The offsets of the two sides are independent of each
 *          other.
 * Threads: pure.
 * Source:  FlameGraphDiff of querier.v1 (docs/api.md).
 */
#ifndef HEARTH_MODEL_FLAME_DIFF_H
#define HEARTH_MODEL_FLAME_DIFF_H

#include "hearth/model/stacktree.h"

struct hearth_flame_diff {
    struct hearth_str *names; /* names[0] is "total", the root's alone */
    size_t n_names;
    struct hearth_flame_level *levels; /* seven values per node */
    size_t n_levels;
    int64_t total;    /* of both sides together */
    int64_t max_self; /* of either side */
    int64_t left_total, right_total;
    /* Nodes of each side without a box of their own: folded into an "other". */
    int64_t left_folded, right_folded;
};

/*
 * Of two sealed trees, neither of them truncated (is_cut). Two empty ones give names ["total"] and
 * one level of seven zeros. Output in arena. max_nodes < 1: no truncation.
 *
 * Returns  OK; NO_MEMORY; OUT_OF_RANGE when the totals together exceed 64 bits.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_flame_diff_make(const struct hearth_stacktree *left,
                                          const struct hearth_stacktree *right, int64_t max_nodes,
                                          struct hearth_arena *arena, struct hearth_flame_diff *ret,
                                          struct hearth_err *err);

#endif
