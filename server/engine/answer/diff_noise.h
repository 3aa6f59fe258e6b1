/*
 * diff_noise.h -- which changes of a diff are beyond noise (private to the engine).
 *
 * Threads: a diff belongs to one query.
 */
#ifndef HEARTH_ENGINE_DIFF_NOISE_H
#define HEARTH_ENGINE_DIFF_NOISE_H

#include "hearth/engine/query.h"

/* A diff whose noise is to be estimated; all is borrowed. */
struct hearth_noise_task {
    const struct hearth_query *queries[2];
    const struct hearth_merge_spec *specs[2];
    const struct hearth_stacktree *trees[2]; /* whole and sealed */
    const struct hearth_flame_diff *diff;
};

/* Reads both sides again, part by part. Arrays are in the query's arena. */
HEARTH_MUST_CHECK
enum hearth_status hearth_diff_noise_make(const struct hearth_noise_task *task,
                                          struct hearth_diff_noise *ret, struct hearth_err *err);

#endif
