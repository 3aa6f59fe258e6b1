/* decode_memory.c -- the limit is a part of the budget that the arena has. */
#include "pprof/decode_memory.h"

#include "hearth/base/limit.h"

#include <assert.h>

#define TIMES 16u /* the plain bytes */

void hearth_decode_memory_begin(struct decode_memory *memory, struct hearth_arena *arena,
                                size_t limit_bytes, size_t n_plain_bytes)
{
    size_t n_bytes;

    if (__builtin_mul_overflow(n_plain_bytes, TIMES, &n_bytes)) {
        n_bytes = SIZE_MAX;
    }
    n_bytes = n_bytes > limit_bytes ? n_bytes : limit_bytes;

    memory->arena = arena;
    hearth_budget_init_part(&memory->part, "max-decode-memory-bytes", limit_bytes > 0 ? n_bytes : 0,
                            0, arena->budget);
    arena->budget = &memory->part;
}

enum hearth_status hearth_decode_memory_end(struct decode_memory *memory, enum hearth_status status,
                                            struct hearth_err *err)
{
    assert(memory->arena->budget == &memory->part);
    memory->arena->budget = memory->part.parent;
    if (status != HEARTH_NO_MEMORY || memory->part.refused_by != &memory->part) {
        return status;
    }

    (void)hearth_budget_refused_bytes(); /* the memory of others does not matter */
    return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                       "decoding needs more than %zu bytes of memory, the limit for its "
                       "size" HEARTH_RAISE_LIMIT("max-decode-memory-bytes"),
                       memory->part.limit_bytes);
}
