/*
 * perf_index.h -- ids by key, whose memory counts against the budget of an arena (private to the
 * reader of perf.data).
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_FORMAT_PERF_INDEX_H
#define HEARTH_FORMAT_PERF_INDEX_H

#include "hearth/base/arena.h"
#include "hearth/base/budget.h"
#include "hearth/base/hash.h"

/* Zero-initialised. */
struct perf_index {
    struct hearth_idmap ids;
    size_t held_bytes;
};

/* A key of two numbers, the second of which may say which kind of key it is. */
static inline struct hearth_hash128 perf_key(uint64_t a, uint64_t b)
{
    uint64_t seed = hearth_hash_process_seed();

    return (struct hearth_hash128){hearth_hash_mix(a ^ seed, b), hearth_hash_mix(b, a ^ ~seed)};
}

/* As hearth_idmap_intern. The arena says why memory was refused. */
static inline uint32_t perf_index_intern(struct perf_index *index, struct hearth_arena *arena,
                                         struct hearth_hash128 key, uint32_t new_id,
                                         bool *ret_is_new)
{
    uint32_t id = hearth_idmap_intern(&index->ids, key, new_id, ret_is_new);

    return hearth_idmap_account(&index->ids, arena, &index->held_bytes) ? id : HEARTH_IDMAP_NONE;
}

static inline uint32_t perf_index_find(const struct perf_index *index, struct hearth_hash128 key)
{
    return hearth_idmap_find(&index->ids, key);
}

/* arena: the one of perf_index_intern; NULL if nothing was added. */
static inline void perf_index_release(struct perf_index *index, struct hearth_arena *arena)
{
    hearth_idmap_release(&index->ids);
    if (arena != NULL) {
        hearth_budget_give(arena->budget, index->held_bytes);
    }
    index->held_bytes = 0;
}

#endif
