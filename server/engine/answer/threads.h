/*
 * threads.h -- values by thread (private to the engine).
 *
 * Threads: one query is one thread.
 */
#ifndef HEARTH_ENGINE_THREADS_H
#define HEARTH_ENGINE_THREADS_H

#include "select/query_internal.h"

/*
 * One row per name of a thread (or its id, if it has no name) of the samples that spec selects, in
 * no order; samples without a thread are the row "". Reads single profiles, and always sums:
 * spec->mean is ignored. Rows live in arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_threads(const struct hearth_query *query,
                                        const struct hearth_merge_spec *spec,
                                        struct hearth_arena *arena,
                                        struct hearth_top_row **ret_rows, size_t *ret_n,
                                        int64_t *ret_total, struct hearth_err *err);

#endif
