/*
 * ingest_dict.c -- the dictionaries that ingest appends to, one for each (service, day), within a
 * memory limit.
 *
 * A dictionary is named (service, day, writer id); its stack ids count from 0. After an eviction, a
 * new dictionary of the same service and day must not have the same writer id: its ids would mean
 * other stacks. So an eviction sets `rotate`. The next *new* dictionary, of any service and day,
 * first inserts a row into hearth_data.writer, and all later dictionaries have the id of that row
 * until the next rotation. Dictionaries in memory keep their ids. An evicted dictionary always has
 * an older writer id than a new one, so no two dictionaries have one name.
 *
 * A dictionary may be evicted if it has no references: every queued profile holds the dictionary of
 * its ids, and a committed profile needs committed stacks only. If stacks are pending at the
 * eviction, they belong to pushes that failed before they were queued.
 *
 * A dictionary that cannot be used further (full, or its chunks collide with rows of another
 * history) is retired: the next acquire replaces it by a new one.
 */
#include "commit/ingest_dict.h"

#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "pg/pool.h"
#include "pg/store_state.h"
#include "session/session.h"

#include <assert.h>

#define FIRST_BUCKETS 256 /* a power of two */

struct hearth_ingest_dicts {
    struct hearth_store *store;
    struct hearth_mutex lock; /* "dicts.lock": guards the rest */
    struct hearth_ingest_dict **buckets;
    size_t n_buckets; /* a power of two */
    size_t n_dicts, n_bytes;
    struct hearth_ingest_dict
        lru;     /* head of the ring: lru_next was used last, lru_prev is the oldest */
    bool rotate; /* a dictionary was evicted: the next new one needs a new writer id */
};

enum hearth_status hearth_ingest_dicts_new(struct hearth_store *store,
                                           struct hearth_ingest_dicts **ret_dicts,
                                           struct hearth_err *err)
{
    struct hearth_ingest_dicts *dicts = hearth_mem_zalloc(sizeof *dicts);
    struct hearth_ingest_dict **buckets = hearth_mem_calloc(FIRST_BUCKETS, sizeof *buckets);

    if (dicts == NULL || buckets == NULL) {
        hearth_mem_free(dicts);
        hearth_mem_free(buckets);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the table of dictionaries");
    }

    dicts->store = store;
    dicts->buckets = buckets;
    dicts->n_buckets = FIRST_BUCKETS;
    dicts->lru.lru_prev = dicts->lru.lru_next = &dicts->lru;
    hearth_mutex_init(&dicts->lock, HEARTH_RANK_DICTS, "dicts.lock");
    *ret_dicts = dicts;

    return HEARTH_OK;
}

static void free_ingest_dict(struct hearth_ingest_dict *dict)
{
    hearth_dict_writer_free(dict->writer);
    hearth_mutex_destroy(&dict->lock);
    hearth_mem_free(dict);
}

/* ---- table and ring (under dicts->lock) ---- */

static struct hearth_ingest_dict **find_dict_bucket(const struct hearth_ingest_dicts *dicts,
                                                    int32_t service_id, int32_t day)
{
    hearth_mutex_assert_held(&dicts->lock);

    uint64_t h = hearth_hash_mix((uint32_t)service_id, (uint32_t)day);
    return &dicts->buckets[h & (dicts->n_buckets - 1)];
}

static void remove_from_ring(struct hearth_ingest_dict *dict)
{
    dict->lru_prev->lru_next = dict->lru_next;
    dict->lru_next->lru_prev = dict->lru_prev;
}

static void insert_into_ring(struct hearth_ingest_dicts *dicts, struct hearth_ingest_dict *dict)
{
    dict->lru_next = dicts->lru.lru_next;
    dict->lru_prev = &dicts->lru;
    dict->lru_next->lru_prev = dict;
    dicts->lru.lru_next = dict;
}

/* Double the table. Without memory, its chains become longer. */
static void grow_dict_table(struct hearth_ingest_dicts *dicts)
{
    size_t n = dicts->n_buckets;
    struct hearth_ingest_dict **old = dicts->buckets;
    struct hearth_ingest_dict **grown = hearth_mem_calloc(n * 2, sizeof *grown);

    if (grown == NULL) {
        return;
    }

    dicts->buckets = grown;
    dicts->n_buckets = n * 2;
    for (size_t i = 0; i < n; i++) {
        while (old[i] != NULL) {
            struct hearth_ingest_dict *dict = old[i];
            old[i] = dict->hash_next;
            struct hearth_ingest_dict **at = find_dict_bucket(dicts, dict->service_id, dict->day);
            dict->hash_next = *at;
            *at = dict;
        }
    }

    hearth_mem_free(old);
}

static void publish_dict_sizes(const struct hearth_ingest_dicts *dicts)
{
    hearth_metric_set(HEARTH_M_DICT_LIVE, (int64_t)dicts->n_dicts);
    hearth_metric_set(HEARTH_M_DICT_BYTES, (int64_t)dicts->n_bytes);
}

/* Remove the dictionary from the table; its name is not used again. Its last release frees it. */
static void evict_dict(struct hearth_ingest_dicts *dicts, struct hearth_ingest_dict *dict)
{
    hearth_mutex_assert_held(&dicts->lock);

    struct hearth_ingest_dict **at = find_dict_bucket(dicts, dict->service_id, dict->day);
    while (*at != dict) {
        at = &(*at)->hash_next;
    }

    *at = dict->hash_next;
    remove_from_ring(dict);
    dicts->n_dicts--;
    dicts->n_bytes -= dict->n_bytes;
    dicts->rotate = true;
    dict->unlinked = true;
    hearth_metric_add(HEARTH_M_DICT_EVICTED, 1);
    if (atomic_load(&dict->refs) == 0) {
        free_ingest_dict(dict);
    }
}

/* Evict dictionaries without references, the oldest first, until the memory limit holds. */
static void evict_unused_dicts(struct hearth_ingest_dicts *dicts)
{
    hearth_mutex_assert_held(&dicts->lock);

    struct hearth_ingest_dict *dict = dicts->lru.lru_prev;
    while (dicts->n_bytes > dicts->store->options.ingest_dict_bytes && dict != &dicts->lru) {
        struct hearth_ingest_dict *newer = dict->lru_prev;
        if (atomic_load(&dict->refs) == 0) {
            evict_dict(dicts, dict);
        }
        dict = newer;
    }

    publish_dict_sizes(dicts);
}

/* Return the dictionary in use; NULL: there is no such one. A retired one is evicted. */
static struct hearth_ingest_dict *find_ingest_dict(struct hearth_ingest_dicts *dicts,
                                                   int32_t service_id, int32_t day)
{
    struct hearth_ingest_dict *dict = *find_dict_bucket(dicts, service_id, day);
    while (dict != NULL && (dict->service_id != service_id || dict->day != day)) {
        dict = dict->hash_next;
    }

    if (dict != NULL && atomic_load(&dict->retired)) {
        evict_dict(dicts, dict);
        dict = NULL;
    }

    return dict;
}

static struct hearth_ingest_dict *add_ingest_dict(struct hearth_ingest_dicts *dicts,
                                                  int32_t service_id, int32_t day,
                                                  int32_t writer_id)
{
    struct hearth_ingest_dict *dict = hearth_mem_zalloc(sizeof *dict);
    struct hearth_dict_writer *writer = hearth_dict_writer_new();

    if (dict == NULL || writer == NULL) {
        hearth_mem_free(dict);
        hearth_dict_writer_free(writer);
        return NULL;
    }

    dict->service_id = service_id;
    dict->day = day;
    dict->writer_id = writer_id;
    dict->writer = writer;
    hearth_mutex_init(&dict->lock, HEARTH_RANK_DICT, "dict.lock");
    dict->n_bytes = sizeof *dict + hearth_dict_writer_bytes(writer);
    atomic_init(&dict->bytes_now, dict->n_bytes);
    if (dicts->n_dicts >= dicts->n_buckets) {
        grow_dict_table(dicts);
    }

    struct hearth_ingest_dict **at = find_dict_bucket(dicts, service_id, day);
    dict->hash_next = *at;
    *at = dict;
    insert_into_ring(dicts, dict);
    dicts->n_dicts++;
    dicts->n_bytes += dict->n_bytes;
    publish_dict_sizes(dicts);

    return dict;
}

/* ---- acquire, resolve, release ---- */

static enum hearth_status register_new_writer_id(struct hearth_ingest_dicts *dicts,
                                                 struct hearth_err *err)
{
    struct hearth_pg *pg = NULL;
    int32_t writer_id = 0;

    HEARTH_TRY(hearth_pool_take(dicts->store->pool, NULL, &pg, err));
    enum hearth_status status = hearth_writer_register(pg, NULL, &writer_id, err);
    hearth_pool_give(dicts->store->pool, pg);
    HEARTH_TRY(status);
    hearth_mutex_lock(&dicts->lock);

    /* No dictionary has this id yet, so none that was evicted meanwhile has it. */
    atomic_store(&dicts->store->writer_id, writer_id);
    dicts->rotate = false;
    hearth_mutex_unlock(&dicts->lock);

    return HEARTH_OK;
}

enum hearth_status hearth_store_dict_acquire(struct hearth_store *store, int32_t service_id,
                                             int64_t ts_ns, struct hearth_ingest_dict **ret_dict,
                                             struct hearth_err *err)
{
    assert(ret_dict != NULL);

    HEARTH_TRY(hearth_store_check_writable(store, err));
    struct hearth_ingest_dicts *dicts = store->dicts;
    int32_t day = hearth_day_of(ts_ns);
    for (;;) {
        /* Find or add it, and take a reference. */
        hearth_mutex_lock(&dicts->lock);
        struct hearth_ingest_dict *dict = find_ingest_dict(dicts, service_id, day);
        bool wants_id = dict == NULL && dicts->rotate;
        if (dict == NULL && !wants_id) {
            dict = add_ingest_dict(dicts, service_id, day, atomic_load(&store->writer_id));
        } else if (dict != NULL) {
            remove_from_ring(dict);
            insert_into_ring(dicts, dict);
        }
        if (dict != NULL) {
            atomic_fetch_add(&dict->refs, 1);
        }
        hearth_mutex_unlock(&dicts->lock);

        if (dict != NULL) {
            *ret_dict = dict;
            return HEARTH_OK;
        }
        if (!wants_id) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a dictionary");
        }

        /* Otherwise try again with a new writer id. */
        HEARTH_TRY(register_new_writer_id(dicts, err));
    }
}

enum hearth_status hearth_store_dict_resolve(struct hearth_ingest_dict *dict,
                                             const struct hearth_profile *profile,
                                             const struct hearth_stack_keys *keys,
                                             uint32_t *ret_ids, struct hearth_err *err)
{
    assert(dict != NULL && atomic_load(&dict->refs) > 0);

    hearth_mutex_lock(&dict->lock);
    enum hearth_status status =
        hearth_dict_writer_resolve(dict->writer, profile, keys, ret_ids, err);
    atomic_store(&dict->bytes_now, sizeof *dict + hearth_dict_writer_bytes(dict->writer));
    hearth_mutex_unlock(&dict->lock);
    if (status == HEARTH_RESOURCE_EXHAUSTED) {
        hearth_ingest_dict_retire(dict);
    }

    return status;
}

void hearth_ingest_dict_retire(struct hearth_ingest_dict *dict)
{
    atomic_store(&dict->retired, true);
}

void hearth_store_dict_release(struct hearth_store *store, struct hearth_ingest_dict *dict)
{
    struct hearth_ingest_dicts *dicts = store->dicts;
    hearth_mutex_lock(&dicts->lock);
    assert(atomic_load(&dict->refs) > 0);
    bool last = atomic_fetch_sub(&dict->refs, 1) == 1;
    if (!dict->unlinked) {
        size_t n_bytes = atomic_load(&dict->bytes_now);
        dicts->n_bytes += n_bytes - dict->n_bytes;
        dict->n_bytes = n_bytes;
        evict_unused_dicts(dicts);
    } else if (last) {
        free_ingest_dict(dict);
    }

    hearth_mutex_unlock(&dicts->lock);
}

void hearth_ingest_dicts_free(struct hearth_ingest_dicts *dicts)
{
    if (dicts == NULL) {
        return;
    }

    for (struct hearth_ingest_dict *dict = dicts->lru.lru_next; dict != &dicts->lru;) {
        struct hearth_ingest_dict *next = dict->lru_next;
        HEARTH_ASSERT(atomic_load(&dict->refs) == 0);
        free_ingest_dict(dict);
        dict = next;
    }

    hearth_mutex_destroy(&dicts->lock);
    hearth_mem_free(dicts->buckets);
    hearth_mem_free(dicts);
}

/* ---- for the committer ---- */

bool hearth_ingest_dict_cut(struct hearth_ingest_dict *dict, struct hearth_buf *out,
                            struct hearth_dict_mark *ret_from, struct hearth_dict_mark *ret_upto)
{
    hearth_mutex_lock(&dict->lock);
    struct hearth_dict_mark from = hearth_dict_writer_committed(dict->writer);

    /*
     * Strings without a stack, of a resolve that failed, stay pending until there is a stack:
     * first_stack must grow from chunk to chunk.
     */
    bool pending = hearth_dict_writer_stacks(dict->writer) > from.n_stacks;
    if (pending) {
        hearth_dict_writer_cut(dict->writer, out, ret_upto);
    }

    hearth_mutex_unlock(&dict->lock);
    *ret_from = from;

    return pending;
}

void hearth_ingest_dict_commit(struct hearth_ingest_dict *dict, struct hearth_dict_mark upto)
{
    hearth_mutex_lock(&dict->lock);
    uint32_t n_before = hearth_dict_writer_committed(dict->writer).n_stacks;
    assert(upto.n_stacks >= n_before);
    hearth_dict_writer_commit(dict->writer, upto);
    hearth_mutex_unlock(&dict->lock);
    hearth_metric_add(HEARTH_M_DICT_STACKS, (int64_t)upto.n_stacks - n_before);
}
