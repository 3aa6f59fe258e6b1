/*
 * hash.h -- 64 and 128-bit hashes (XXH3) under the names Hearth uses, and a map from 128-bit keys
 * to ids.
 *
 * Two uses must not be mixed: *stable* hashes are stored (series fingerprints: seed 0); *keyed*
 * hashes are used in memory only and take a random seed of the process, so that clients cannot
 * prepare collisions.
 *
 * Threads: hash functions are pure; a map is not thread-safe.
 * Source: xxHash 0.8 (XXH3_64bits_withSeed, XXH3_128bits_withSeed).
 */
#ifndef HEARTH_BASE_HASH_H
#define HEARTH_BASE_HASH_H

#include "hearth/base/str.h"

struct hearth_arena;

struct hearth_hash128 {
    uint64_t lo, hi;
};

uint64_t hearth_hash64(const void *p, size_t n, uint64_t seed);
struct hearth_hash128 hearth_hash128(const void *p, size_t n, uint64_t seed);
/* The random seed of this process, chosen at the first call. Never 0. */
uint64_t hearth_hash_process_seed(void);

/* Mixes two words that are already well distributed; cheap. */
static inline uint64_t hearth_hash_mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 u128;
    u128 m = (u128)(a ^ 0x9E3779B97F4A7C15ull) * (b ^ 0xC2B2AE3D27D4EB4Full);
    return (uint64_t)m ^ (uint64_t)(m >> 64) ^ a;
}

static inline bool hearth_hash128_eq(struct hearth_hash128 a, struct hearth_hash128 b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

/*
 * A map with open addressing (linear probing, at most half full); a key is its own hash. Values are
 * ids below UINT32_MAX. 20 bytes per slot. Entries are never removed.
 */
struct hearth_idmap {
    struct hearth_hash128 *keys;
    uint32_t *ids; /* id + 1; 0: empty slot */
    size_t n, cap; /* cap is a power of two or 0 */
};

#define HEARTH_IDMAP_NONE UINT32_MAX

void hearth_idmap_init(struct hearth_idmap *map);
void hearth_idmap_release(struct hearth_idmap *map);
void hearth_idmap_reset(struct hearth_idmap *map); /* removes all entries, keeps memory */
/* The id of `key`, or HEARTH_IDMAP_NONE. */
uint32_t hearth_idmap_find(const struct hearth_idmap *map, struct hearth_hash128 key);
/*
 * The id of `key`, which is inserted with `new_id` if it is absent; *ret_inserted says whether it
 * was. Returns HEARTH_IDMAP_NONE if memory is refused; the map is then unchanged.
 */
uint32_t hearth_idmap_intern(struct hearth_idmap *map, struct hearth_hash128 key, uint32_t new_id,
                             bool *ret_inserted);
/* Memory of the map, without the struct. */
size_t hearth_idmap_bytes(const struct hearth_idmap *map);
/* The same after the insertion of another key. */
size_t hearth_idmap_next_bytes(const struct hearth_idmap *map);
/*
 * Charge the growth of `map` to the budget of `arena`, after an insertion. *held is the number of
 * bytes that were charged for it so far: 0 at first, and the caller gives them back with
 * hearth_budget_give. Returns false if the budget refuses; *held is then unchanged.
 */
HEARTH_MUST_CHECK bool hearth_idmap_account(const struct hearth_idmap *map,
                                            struct hearth_arena *arena, size_t *held);

#endif
