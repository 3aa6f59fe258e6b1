/* hash.c -- XXH3 and the 128-bit id map. */
#include "hearth/base/hash.h"

#include "hearth/base/arena.h"
#include "hearth/base/budget.h"
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"

#include <assert.h>
#include <stdatomic.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hearth_hash64(const void *p, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(p, n, seed);
}

struct hearth_hash128 hearth_hash128(const void *p, size_t n, uint64_t seed)
{
    XXH128_hash_t h = XXH3_128bits_withSeed(p, n, seed);
    return (struct hearth_hash128){h.low64, h.high64};
}

uint64_t hearth_hash_process_seed(void)
{
    static _Atomic uint64_t g_seed; /* 0: not chosen yet; the first exchange decides */
    uint64_t seed = atomic_load(&g_seed);

    if (seed == 0) {
        uint64_t fresh = 0;
        if (getrandom(&fresh, sizeof fresh, 0) != (ssize_t)sizeof fresh) {
            fresh =
                hearth_hash_mix((uint64_t)hearth_clock_wall_ns(), (uint64_t)hearth_clock_mono_ns());
        }
        fresh |= 1; /* never 0 */
        if (atomic_compare_exchange_strong(&g_seed, &seed, fresh)) {
            seed = fresh;
        }
    }

    return seed;
}

void hearth_idmap_init(struct hearth_idmap *map)
{
    *map = (struct hearth_idmap){0};
}

void hearth_idmap_release(struct hearth_idmap *map)
{
    hearth_mem_free(map->slots);
    hearth_idmap_init(map);
}

void hearth_idmap_reset(struct hearth_idmap *map)
{
    if (map->n > 0) {
        memset(map->slots, 0, map->cap * sizeof map->slots[0]);
    }
    map->n = 0;
}

static size_t next_cap(const struct hearth_idmap *map)
{
    return map->cap == 0 ? 64 : map->cap * 2;
}

/*
 * Doubles the table and inserts all entries again. False if memory is refused; the map is then
 * unchanged.
 */
static bool grow_idmap(struct hearth_idmap *map)
{
    assert(map->n <= map->cap);

    size_t cap = next_cap(map);
    struct hearth_idmap_slot *slots = hearth_mem_calloc(cap, sizeof slots[0]);
    if (slots == NULL) {
        return false;
    }

    for (size_t i = 0; i < map->cap; i++) {
        if (map->slots[i].id != 0) {
            struct hearth_hash128 key;
            memcpy(&key, map->slots[i].key, sizeof key);
            *hearth_idmap_slot(slots, cap, key) = map->slots[i];
        }
    }

    hearth_mem_free(map->slots);
    map->slots = slots;
    map->cap = cap;

    return true;
}

uint32_t hearth_idmap_intern(struct hearth_idmap *map, struct hearth_hash128 key, uint32_t new_id,
                             bool *ret_inserted)
{
    *ret_inserted = false;

    /*
     * At least half full: a new key needs a larger table. If that is refused, known keys are still
     * found.
     */
    if (map->n * 2 >= map->cap) {
        uint32_t id = hearth_idmap_find(map, key);
        if (id != HEARTH_IDMAP_NONE || !grow_idmap(map)) {
            return id;
        }
    }

    struct hearth_idmap_slot *slot = hearth_idmap_slot(map->slots, map->cap, key);
    *ret_inserted = slot->id == 0;
    if (*ret_inserted) {
        assert(new_id != HEARTH_IDMAP_NONE);
        memcpy(slot->key, &key, sizeof key);
        slot->id = new_id + 1;
        map->n++;
    }

    return slot->id - 1;
}

size_t hearth_idmap_bytes(const struct hearth_idmap *map)
{
    return map->cap * sizeof map->slots[0];
}

size_t hearth_idmap_next_bytes(const struct hearth_idmap *map)
{
    size_t cap = map->n * 2 >= map->cap ? next_cap(map) : map->cap;
    return cap * sizeof map->slots[0];
}

bool hearth_idmap_account(const struct hearth_idmap *map, struct hearth_arena *arena, size_t *held)
{
    assert(held != NULL);

    size_t bytes = hearth_idmap_bytes(map);
    if (HEARTH_LIKELY(bytes <= *held)) {
        return true;
    }

    if (!hearth_budget_take(arena->budget, bytes - *held)) {
        arena->over_budget = true;
        return false;
    }

    *held = bytes;
    return true;
}
