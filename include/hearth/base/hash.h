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

/* Key and id are found by one access to memory. Of 20 bytes, because its members have four. */
struct hearth_idmap_slot {
    uint32_t key[4]; /* the bytes of a hearth_hash128 */
    uint32_t id;     /* id + 1; 0: empty slot */
};

/*
 * A map with open addressing (linear probing, at most half full); a key is its own hash. Values are
 * ids below UINT32_MAX. Entries are never removed.
 */
struct hearth_idmap {
    struct hearth_idmap_slot *slots;
    size_t n, cap; /* cap is a power of two or 0 */
};

#define HEARTH_IDMAP_NONE UINT32_MAX

void hearth_idmap_init(struct hearth_idmap *map);
void hearth_idmap_release(struct hearth_idmap *map);
void hearth_idmap_reset(struct hearth_idmap *map); /* removes all entries, keeps memory */

/*
 * The slot of `key`, or the empty slot for it; `cap` is not 0. There are empty slots (cap > n), so
 * the loop ends.
 */
static inline struct hearth_idmap_slot *hearth_idmap_slot(struct hearth_idmap_slot *slots,
                                                          size_t cap, struct hearth_hash128 key)
{
    size_t i = (size_t)key.lo & (cap - 1);
    while (slots[i].id != 0 && memcmp(slots[i].key, &key, sizeof key) != 0) {
        i = (i + 1) & (cap - 1);
    }

    return &slots[i];
}

/* The id of `key`, or HEARTH_IDMAP_NONE. */
static inline uint32_t hearth_idmap_find(const struct hearth_idmap *map, struct hearth_hash128 key)
{
    return map->cap == 0 ? HEARTH_IDMAP_NONE : hearth_idmap_slot(map->slots, map->cap, key)->id - 1;
}

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
