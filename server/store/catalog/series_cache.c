/*
 * series_cache.c -- a sharded map in two generations.
 *
 * Entries are added to the young table of their shard. When it is full, it becomes the old table,
 * and the previous old table is freed. A look-up that finds its entry in the old table copies it to
 * the young one, so entries in use stay: an approximation of least-recently-used without links.
 */
#include "catalog/series_cache.h"

#include "hearth/base/hash.h"
#include "hearth/base/mem.h"
#include "hearth/base/sync.h"

#include "pg/store_state.h"

#include <assert.h>

#define N_SHARDS       16u
#define GENERATION_MAX ((size_t)HEARTH_SERIES_CACHE_MAX / N_SHARDS / 2)
#define FIRST_CAP      64u
/* Hours of an entry: several, because late profiles belong to earlier hours. */
#define N_HOURS 4u
#define NO_HOUR INT32_MIN

struct entry {
    struct hearth_hash128 key;
    struct hearth_series_ids ids; /* series_id 0: empty slot */
    int32_t hours[N_HOURS];       /* the last one added first; NO_HOUR: unused */
};

struct table {
    struct entry *entries;
    size_t n, cap; /* cap is a power of two or 0; n <= cap / 2 */
};

struct shard {
    struct hearth_mutex lock; /* guards both tables */
    struct table young, old;
};

struct hearth_series_cache {
    struct shard shards[N_SHARDS];
};

struct hearth_series_cache *hearth_series_cache_new(void)
{
    struct hearth_series_cache *cache = hearth_mem_zalloc(sizeof *cache);
    for (size_t i = 0; cache != NULL && i < N_SHARDS; i++) {
        hearth_mutex_init(&cache->shards[i].lock, HEARTH_RANK_SERIES_CACHE, "series_cache.lock");
    }
    return cache;
}

void hearth_series_cache_clear(struct hearth_series_cache *cache)
{
    for (size_t i = 0; i < N_SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        hearth_mutex_lock(&shard->lock);
        hearth_mem_free(shard->young.entries);
        hearth_mem_free(shard->old.entries);
        shard->young = (struct table){0};
        shard->old = (struct table){0};
        hearth_mutex_unlock(&shard->lock);
    }
}

void hearth_series_cache_free(struct hearth_series_cache *cache)
{
    if (cache == NULL) {
        return;
    }

    hearth_series_cache_clear(cache);
    for (size_t i = 0; i < N_SHARDS; i++) {
        hearth_mutex_destroy(&cache->shards[i].lock);
    }

    hearth_mem_free(cache);
}

/* ---- keys ---- */

static size_t count_text_bytes(struct hearth_str s)
{
    return s.n + sizeof(uint32_t);
}

/* Write the length and the text, so that different lists of texts have different bytes. */
static char *put_key_text(char *at, struct hearth_str s)
{
    uint32_t n = (uint32_t)s.n;
    memcpy(at, &n, sizeof n);
    at += sizeof n;
    if (s.n > 0) {
        memcpy(at, s.p, s.n);
    }
    return at + s.n;
}

enum hearth_status hearth_series_cache_key(struct hearth_str tenant,
                                           const struct hearth_series_key *series,
                                           struct hearth_hash128 *ret_key, struct hearth_err *err)
{
    size_t n_bytes =
        count_text_bytes(tenant) + count_text_bytes(series->service_name) + sizeof(uint32_t);
    for (size_t i = 0; i < series->n_types; i++) {
        n_bytes += count_text_bytes(series->type_ids[i]);
    }

    for (size_t i = 0; i < series->labels.n; i++) {
        n_bytes += count_text_bytes(series->labels.v[i].name) +
                   count_text_bytes(series->labels.v[i].value);
    }

    /* Write the fields one after the other. */
    char local[4096];
    char *bytes = n_bytes <= sizeof local ? local : hearth_mem_alloc(n_bytes);
    if (bytes == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the key of a series");
    }

    uint32_t n_types = (uint32_t)series->n_types;
    char *at = put_key_text(put_key_text(bytes, tenant), series->service_name);
    memcpy(at, &n_types, sizeof n_types);
    at += sizeof n_types;
    for (size_t i = 0; i < series->n_types; i++) {
        at = put_key_text(at, series->type_ids[i]);
    }

    for (size_t i = 0; i < series->labels.n; i++) {
        at = put_key_text(put_key_text(at, series->labels.v[i].name), series->labels.v[i].value);
    }

    /* Hash them. */
    assert(at == bytes + n_bytes);
    *ret_key = hearth_hash128(bytes, (size_t)(at - bytes), hearth_hash_process_seed());
    if (bytes != local) {
        hearth_mem_free(bytes);
    }

    return HEARTH_OK;
}

/* ---- tables ---- */

/* Return the entry of `key`, or the empty slot for it; NULL: the table has no slots. */
static struct entry *find_cache_slot(const struct table *table, struct hearth_hash128 key)
{
    if (table->cap == 0) {
        return NULL;
    }

    assert((table->cap & (table->cap - 1)) == 0 && table->n <= table->cap / 2);
    size_t i = (size_t)key.lo & (table->cap - 1);
    while (table->entries[i].ids.ref.series_id != 0 &&
           !hearth_hash128_eq(table->entries[i].key, key)) {
        i = (i + 1) & (table->cap - 1);
    }

    return &table->entries[i];
}

static struct entry *find_cache_entry(const struct table *table, struct hearth_hash128 key)
{
    struct entry *entry = find_cache_slot(table, key);
    return entry == NULL || entry->ids.ref.series_id == 0 ? NULL : entry;
}

/* Double the table. False: no memory. */
static bool grow_cache_table(struct table *table)
{
    struct table bigger = {.n = table->n, .cap = table->cap == 0 ? FIRST_CAP : table->cap * 2};
    bigger.entries = hearth_mem_calloc(bigger.cap, sizeof *bigger.entries);
    if (bigger.entries == NULL) {
        return false;
    }

    for (size_t i = 0; i < table->cap; i++) {
        if (table->entries[i].ids.ref.series_id != 0) {
            *find_cache_slot(&bigger, table->entries[i].key) = table->entries[i];
        }
    }

    hearth_mem_free(table->entries);
    *table = bigger;

    return true;
}

/* Add an entry whose key the young table lacks. NULL: no memory. */
static struct entry *add_young_entry(struct shard *shard, const struct entry *entry)
{
    if (shard->young.n >= GENERATION_MAX) {
        hearth_mem_free(shard->old.entries);
        shard->old = shard->young;
        shard->young = (struct table){0};
    }

    if (shard->young.n >= shard->young.cap / 2 && !grow_cache_table(&shard->young)) {
        return NULL;
    }

    struct entry *slot = find_cache_slot(&shard->young, entry->key);
    assert(slot->ids.ref.series_id == 0);
    *slot = *entry;
    shard->young.n++;

    return slot;
}

/* Return the shard of the key, locked. */
static struct shard *lock_shard(struct hearth_series_cache *cache, struct hearth_hash128 key)
{
    struct shard *shard = &cache->shards[key.hi % N_SHARDS];
    hearth_mutex_lock(&shard->lock);
    return shard;
}

/* Return the entry of the key, after moving it to the young table. NULL: unknown, or no memory. */
static struct entry *find_in_shard(struct shard *shard, struct hearth_hash128 key)
{
    hearth_mutex_assert_held(&shard->lock);

    struct entry *entry = find_cache_entry(&shard->young, key);
    if (entry != NULL) {
        return entry;
    }

    entry = find_cache_entry(&shard->old, key);
    if (entry != NULL) {
        struct entry copy = *entry; /* add_young_entry may free the old table */
        entry = add_young_entry(shard, &copy);
    }

    return entry;
}

enum hearth_series_known hearth_series_cache_find(struct hearth_series_cache *cache,
                                                  struct hearth_hash128 key, int32_t hour,
                                                  struct hearth_series_ids *ret_ids)
{
    enum hearth_series_known known = HEARTH_SERIES_UNKNOWN;
    struct shard *shard = lock_shard(cache, key);
    const struct entry *entry = find_in_shard(shard, key);

    if (entry != NULL) {
        *ret_ids = entry->ids;
        known = HEARTH_SERIES_NEW_HOUR;
        for (size_t i = 0; i < N_HOURS; i++) {
            if (entry->hours[i] == hour) {
                known = HEARTH_SERIES_KNOWN;
            }
        }
    }

    hearth_mutex_unlock(&shard->lock);

    return known;
}

void hearth_series_cache_put(struct hearth_series_cache *cache, struct hearth_hash128 key,
                             int32_t hour, struct hearth_series_ids ids)
{
    assert(ids.ref.series_id > 0);

    /* Find or add the entry. */
    struct shard *shard = lock_shard(cache, key);
    struct entry *entry = find_in_shard(shard, key);

    if (entry == NULL) {
        struct entry fresh = {
            .key = key, .ids = ids, .hours = {NO_HOUR, NO_HOUR, NO_HOUR, NO_HOUR}};
        entry = add_young_entry(shard, &fresh);
    }

    /* Add the hour, if it is new, in place of the oldest one. */
    if (entry != NULL) {
        bool has = false;
        for (size_t i = 0; i < N_HOURS; i++) {
            has = has || entry->hours[i] == hour;
        }
        if (!has) {
            memmove(&entry->hours[1], &entry->hours[0], (N_HOURS - 1) * sizeof entry->hours[0]);
            entry->hours[0] = hour;
        }
        entry->ids = ids;
    }

    hearth_mutex_unlock(&shard->lock);
}
