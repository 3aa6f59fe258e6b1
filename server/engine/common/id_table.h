/*
 * id_table.h -- dense numbers for keys of 128 bits: ids of spans and traces, and pairs of them
 * (private to the engine).
 *
 * A key costs 32 to 64 bytes of the budget. Keys are compared whole, because the counts made with
 * these numbers are exact.
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_ENGINE_ID_TABLE_H
#define HEARTH_ENGINE_ID_TABLE_H

#include "hearth/base/hash.h"
#include "hearth/base/status.h"

struct hearth_budget;

struct hearth_id_key {
    uint64_t hi, lo;
};

struct hearth_id_table {
    struct hearth_budget *budget;
    struct hearth_id_key *keys; /* [n] */
    uint64_t *slots; /* [n_slots]: 32 bits of the key's hash, then its number + 1; 0: empty */
    size_t n, cap, n_slots, held_bytes;
    uint64_t seed;
};

/* budget is kept; NULL: no limit. */
void hearth_id_table_init(struct hearth_id_table *table, struct hearth_budget *budget);
void hearth_id_table_release(struct hearth_id_table *table);
/* Removes all keys and keeps the memory. */
void hearth_id_table_reset(struct hearth_id_table *table);
/*
 * The number of a key; a new number if it is not in the table. HEARTH_IDMAP_NONE: memory was
 * refused.
 */
uint32_t hearth_id_table_intern(struct hearth_id_table *table, uint64_t hi, uint64_t lo,
                                bool *ret_inserted);

HEARTH_ALWAYS_INLINE uint32_t hearth_id_table_hash(const struct hearth_id_table *table, uint64_t hi,
                                                   uint64_t lo)
{
    return (uint32_t)hearth_hash_mix(hearth_hash_mix(lo, table->seed), hi ^ table->seed);
}

/*
 * Prefetches the slot of a key that is looked up soon; callers with many keys save waiting for
 * memory.
 */
HEARTH_ALWAYS_INLINE void hearth_id_table_prefetch(const struct hearth_id_table *table, uint64_t hi,
                                                   uint64_t lo)
{
    if (table->n_slots > 0) {
        __builtin_prefetch(
            &table->slots[hearth_id_table_hash(table, hi, lo) & (table->n_slots - 1)]);
    }
}

#endif
