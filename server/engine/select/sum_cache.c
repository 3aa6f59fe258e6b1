/*
 * sum_cache.c -- a table of buckets and a list by last use, under one lock that is held for a few
 * pointers only: entries are built before it is acquired and freed after it is released.
 */
#include "select/sum_cache.h"

#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "common/call_internal.h"

#include <assert.h>
#include <string.h>

#define N_BUCKETS 2048u /* entries have 10 KB and more */
/* No entry may have more than this part of the whole, so that one query cannot empty the cache. */
#define LARGEST_PART 8

struct entry {
    struct hearth_cached_sums sums; /* first: users know the entry by it */
    struct hearth_hash128 key;
    struct entry *next;          /* of the bucket */
    struct entry *newer, *older; /* by last use */
    size_t n_users, n_bytes;
    bool is_listed;
    struct hearth_read_row rows[]; /* then their bytes */
};

struct hearth_sum_cache {
    struct hearth_mutex lock;
    size_t limit_bytes, used_bytes;
    struct entry *newest, *oldest;
    struct entry *buckets[N_BUCKETS];
};

struct hearth_sum_cache *hearth_sum_cache_new(size_t limit_bytes)
{
    struct hearth_sum_cache *cache = hearth_mem_zalloc(sizeof *cache);
    if (cache == NULL) {
        return NULL;
    }

    cache->limit_bytes = limit_bytes;
    hearth_mutex_init(&cache->lock, HEARTH_RANK_SUM_CACHE, "sum_cache.lock");
    return cache;
}

void hearth_sum_cache_free(struct hearth_sum_cache *cache)
{
    if (cache == NULL) {
        return;
    }

    for (struct entry *entry = cache->newest; entry != NULL;) {
        struct entry *older = entry->older;
        assert(entry->n_users == 0);
        hearth_mem_free(entry);
        entry = older;
    }

    hearth_mutex_destroy(&cache->lock);
    hearth_mem_free(cache);
}

bool hearth_sum_cache_is_on(const struct hearth_sum_cache *cache)
{
    return cache->limit_bytes > 0;
}

size_t hearth_sum_cache_largest(const struct hearth_sum_cache *cache)
{
    return cache->limit_bytes / LARGEST_PART;
}

/* ---- under the lock ---- */

static struct entry **find_entry(struct hearth_sum_cache *cache, struct hearth_hash128 key)
{
    struct entry **at = &cache->buckets[key.lo % N_BUCKETS];
    while (*at != NULL && !hearth_hash128_eq((*at)->key, key)) {
        at = &(*at)->next;
    }

    return at;
}

static void leave_use_list(struct hearth_sum_cache *cache, struct entry *entry)
{
    *(entry->newer != NULL ? &entry->newer->older : &cache->newest) = entry->older;
    *(entry->older != NULL ? &entry->older->newer : &cache->oldest) = entry->newer;
}

static void enter_use_list(struct hearth_sum_cache *cache, struct entry *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
}

/* Takes the oldest entry out. Returns it if nobody uses it, for the caller to free. */
static struct entry *remove_oldest(struct hearth_sum_cache *cache)
{
    struct entry *entry = cache->oldest;

    struct entry **at = find_entry(cache, entry->key);
    assert(*at == entry);
    *at = entry->next;
    leave_use_list(cache, entry);
    cache->used_bytes -= entry->n_bytes;
    entry->is_listed = false;
    return entry->n_users == 0 ? entry : NULL;
}

/* ---- ---- */

/* Finds an entry and makes the caller a user of it. NULL: the cache lacks the key. */
static struct entry *use_entry(struct hearth_sum_cache *cache, struct hearth_hash128 key)
{
    hearth_mutex_lock(&cache->lock);
    struct entry *entry = *find_entry(cache, key);
    if (entry != NULL) {
        entry->n_users++;
        leave_use_list(cache, entry);
        enter_use_list(cache, entry);
    }
    hearth_mutex_unlock(&cache->lock);

    return entry;
}

const struct hearth_cached_sums *hearth_sum_cache_find(struct hearth_sum_cache *cache,
                                                       struct hearth_hash128 key)
{
    struct entry *entry = use_entry(cache, key);

    hearth_metric_add_label(HEARTH_M_QUERY_CACHE, hearth_str_c(entry != NULL ? "found" : "missing"),
                            1);
    return entry != NULL ? &entry->sums : NULL;
}

const struct hearth_cached_sums *hearth_sum_cache_find_bytes(struct hearth_sum_cache *cache,
                                                             struct hearth_hash128 key)
{
    struct entry *entry = use_entry(cache, key);
    if (entry == NULL) {
        return NULL;
    }

    hearth_metric_add_label(HEARTH_M_QUERY_CACHE, HEARTH_STR("tree"), 1);
    return &entry->sums;
}

void hearth_sum_cache_release(struct hearth_sum_cache *cache, const struct hearth_cached_sums *sums)
{
    struct entry *entry = (struct entry *)(uintptr_t)sums;

    hearth_mutex_lock(&cache->lock);
    entry->n_users--;
    bool is_last = entry->n_users == 0 && !entry->is_listed;
    hearth_mutex_unlock(&cache->lock);

    if (is_last) {
        hearth_mem_free(entry);
    }
}

/* Makes an entry of its own memory. NULL: it is too large, or memory was refused. */
static struct entry *make_entry(const struct hearth_sum_cache *cache, struct hearth_hash128 key,
                                const struct hearth_read_row *rows, size_t n_rows,
                                struct hearth_str kept)
{
    size_t n_bytes = sizeof(struct entry) + n_rows * sizeof rows[0] + kept.n;
    for (size_t i = 0; i < n_rows; i++) {
        n_bytes += rows[i].ids.n + rows[i].val.n;
    }

    struct entry *entry =
        n_bytes <= hearth_sum_cache_largest(cache) ? hearth_mem_alloc(n_bytes) : NULL;
    if (entry == NULL) {
        return NULL;
    }

    *entry = (struct entry){.key = key, .n_bytes = n_bytes, .is_listed = true};
    char *bytes = (char *)(entry->rows + n_rows);
    if (n_rows > 0) {
        memcpy(entry->rows, rows, n_rows * sizeof rows[0]);
    }
    if (kept.n > 0) {
        memcpy(bytes, kept.p, kept.n);
    }
    entry->sums = (struct hearth_cached_sums){entry->rows, n_rows, hearth_str_n(bytes, kept.n)};
    bytes += kept.n;

    /* Point the copied rows to copied bytes. */
    for (size_t i = 0; i < n_rows; i++) {
        struct hearth_str *texts[2] = {&entry->rows[i].ids, &entry->rows[i].val};
        for (size_t k = 0; k < 2; k++) {
            memcpy(bytes, texts[k]->p, texts[k]->n);
            texts[k]->p = bytes;
            bytes += texts[k]->n;
        }
    }

    return entry;
}

/* Enters an entry, and frees those that it replaces or that make way. NULL: does nothing. */
static void enter_entry(struct hearth_sum_cache *cache, struct entry *entry)
{
    if (entry == NULL) {
        return;
    }

    struct hearth_hash128 key = entry->key;
    struct entry *unused = NULL;
    hearth_mutex_lock(&cache->lock);
    struct entry **at = find_entry(cache, key);
    if (*at != NULL) {
        /* Another query was faster. */
        entry->older = unused;
        unused = entry;
    } else {
        *at = entry;
        enter_use_list(cache, entry);
        cache->used_bytes += entry->n_bytes;
        while (cache->used_bytes > cache->limit_bytes) {
            struct entry *oldest = remove_oldest(cache);
            if (oldest != NULL) {
                oldest->older = unused;
                unused = oldest;
            }
        }
    }
    size_t used_bytes = cache->used_bytes;
    hearth_mutex_unlock(&cache->lock);

    hearth_metric_set(HEARTH_M_QUERY_CACHE_BYTES, (int64_t)used_bytes);
    while (unused != NULL) {
        struct entry *next = unused->older;
        hearth_mem_free(unused);
        unused = next;
    }
}

void hearth_sum_cache_add(struct hearth_sum_cache *cache, struct hearth_hash128 key,
                          const struct hearth_read_row *rows, size_t n_rows)
{
    assert(n_rows == 0 || rows != NULL);

    enter_entry(cache, make_entry(cache, key, rows, n_rows, HEARTH_STR("")));
}

void hearth_sum_cache_add_bytes(struct hearth_sum_cache *cache, struct hearth_hash128 key,
                                struct hearth_str bytes)
{
    enter_entry(cache, make_entry(cache, key, NULL, 0, bytes));
}
