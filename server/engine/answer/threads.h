/*
 * threads.h -- values by thread (private to the engine).
 */
#ifndef HEARTH_ENGINE_THREADS_H
#define HEARTH_ENGINE_THREADS_H

#include "select/query_internal.h"

/*
 * A row per thread name (or id, where it has no name) of what spec selects, in no order; samples without a
 * thread are the row "". Always sums: spec->mean is not looked at. Reads single profiles. Rows in arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_threads(const struct hearth_query *query,
                                        const struct hearth_merge_spec *spec,
                                        struct hearth_arena *arena,
                                        struct hearth_top_row **ret_rows, size_t *ret_n,
                                        int64_t *ret_total, struct hearth_err *err);

#endif
