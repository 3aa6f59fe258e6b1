/*
 * decode_memory.h -- a limit for the memory of one decoding (private to this layer).
 *
 * A small file can describe a large profile. While a decoder runs, its arena, and all scratch
 * arenas and maps that share its budget, may take the limit, or 16 times the plain bytes if that
 * is more: no ordinary file needs so much (collapsed stacks of short lines need over ten times).
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_FORMAT_DECODE_MEMORY_H
#define HEARTH_FORMAT_DECODE_MEMORY_H

#include "hearth/base/arena.h"
#include "hearth/base/budget.h"

struct decode_memory {
    struct hearth_budget part; /* of the budget of the arena */
    struct hearth_arena *arena;
};

/* limit_bytes: 0: no limit. The arena must have no other user until the end. */
void hearth_decode_memory_begin(struct decode_memory *memory, struct hearth_arena *arena,
                                size_t limit_bytes, size_t n_plain_bytes);
/*
 * Ends the limit; memory that the arena holds stays charged to its budget. Returns `status`, but
 * RESOURCE_EXHAUSTED instead of NO_MEMORY if this limit was hit.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_decode_memory_end(struct decode_memory *memory, enum hearth_status status,
                                            struct hearth_err *err);

#endif
