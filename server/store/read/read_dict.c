/*
 * read_dict.c -- the dictionaries of queries: loaded from their chunks, extended, kept within a
 * memory limit.
 *
 * A loaded dictionary (struct copy) never changes while somebody holds it. When a query needs more
 * stacks than it has, and nobody holds it, it is taken out and extended in place; when it is held,
 * a fresh copy is loaded beside it and takes its place, the old one going with its last holder. So
 * nobody waits for a holder: a query may hold several dictionaries while it asks for more (a
 * read-write lock per dictionary would let two queries wait for each other for ever). What is
 * loading is waited for, but a load waits for nobody.
 *
 * The copies of a service share a name tree (decision 0012), which only grows, also while others
 * read it. It counts against the limit once, as long as a copy is in it. When much of it is dead
 * (name_tree.h), copies that are made from then on begin a new one.
 *
 * Held copies count against the limit but stay; the rest goes, least recently released first.
 *
 * Locks: cache.lock guards everything but the contents of a dictionary; those belong to the loader
 * until it is published. A copy is freed without cache.lock: its tree may be in use by a loader
 * for milliseconds.
 */
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "pg/session.h"
#include "pg/store_state.h"
#include "read/read_cache.h"
#include "read/read_dict_load.h"

#include <time.h>

#define N_BUCKETS    1024u
#define WAIT_STEP_NS (50 * HEARTH_NS_PER_MS)

struct entry;

/* A name tree with at least one copy in it. */
struct grove {
    int32_t service_id;
    struct hearth_name_tree *tree; /* a reference is held by each copy's dictionary */
    unsigned n_copies;
    size_t n_bytes; /* as accounted */
    struct grove *bucket_next;
};

struct copy {
    struct hearth_loaded_dict loaded;
    struct grove *grove;
    struct entry *entry; /* whose current copy this is; NULL: it was replaced */
    unsigned refs;
    size_t n_bytes; /* as accounted */
    struct copy *bucket_next;
    struct copy *lru_prev, *lru_next; /* current and not held: older, newer */
};

struct entry {
    int32_t service_id, day, writer_id;
    struct copy *current; /* NULL: none, or taken out by the loader */
    bool loading;
    unsigned n_users; /* callers that look at this entry */
    struct entry *bucket_next;
};

struct hearth_read_cache {
    struct hearth_store *store;
    pthread_mutex_t lock;
    pthread_cond_t loaded;
    size_t n_bytes;
    struct copy *oldest, *newest;
    struct entry *entries[N_BUCKETS];
    struct copy *copies[N_BUCKETS];  /* by address of the dictionary */
    struct grove *groves[N_BUCKETS]; /* by service; the one to join is the first of its service */
    struct copy *dead;               /* to be freed without the lock (bucket_next) */
};

enum hearth_status hearth_read_cache_new(struct hearth_store *store,
                                         struct hearth_read_cache **ret_cache,
                                         struct hearth_err *err)
{
    struct hearth_read_cache *cache = hearth_mem_zalloc(sizeof *cache);
    if (cache == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the dictionary cache");
    }

    cache->store = store;
    (void)pthread_mutex_init(&cache->lock, NULL);
    hearth_cond_init(&cache->loaded);
    *ret_cache = cache;

    return HEARTH_OK;
}

/* ---- tables ---- */

static struct entry **entry_bucket(struct hearth_read_cache *cache, int32_t service_id, int32_t day,
                                   int32_t writer_id)
{
    uint64_t hash =
        hearth_hash_mix((uint64_t)(uint32_t)service_id << 32 | (uint32_t)day, (uint32_t)writer_id);
    return &cache->entries[hash % N_BUCKETS];
}

static struct copy **copy_bucket(struct hearth_read_cache *cache, const struct hearth_dict *dict)
{
    return &cache->copies[hearth_hash_mix((uint64_t)(uintptr_t)dict, 0) % N_BUCKETS];
}

/* The entry, made when it is missing, with one more user; NULL when memory was refused. */
static struct entry *use_entry(struct hearth_read_cache *cache, int32_t service_id, int32_t day,
                               int32_t writer_id)
{
    struct entry **bucket = entry_bucket(cache, service_id, day, writer_id);
    struct entry *entry = *bucket;
    while (entry != NULL && (entry->service_id != service_id || entry->day != day ||
                             entry->writer_id != writer_id)) {
        entry = entry->bucket_next;
    }

    if (entry == NULL) {
        entry = hearth_mem_zalloc(sizeof *entry);
        if (entry == NULL) {
            return NULL;
        }

        *entry = (struct entry){
            .service_id = service_id, .day = day, .writer_id = writer_id, .bucket_next = *bucket};
        *bucket = entry;
    }

    entry->n_users++;

    return entry;
}

static void drop_entry_if_idle(struct hearth_read_cache *cache, struct entry *entry)
{
    if (entry->n_users > 0 || entry->current != NULL) {
        return;
    }

    struct entry **at = entry_bucket(cache, entry->service_id, entry->day, entry->writer_id);
    while (*at != entry) {
        at = &(*at)->bucket_next;
    }

    *at = entry->bucket_next;
    hearth_mem_free(entry);
}

static void account(struct hearth_read_cache *cache, size_t before, size_t after)
{
    cache->n_bytes = cache->n_bytes - before + after;
    hearth_metric_set(HEARTH_M_CACHE_BYTES, (int64_t)cache->n_bytes);
}

/* ---- groves: the trees of the services ---- */

static struct grove **grove_bucket(struct hearth_read_cache *cache, int32_t service_id)
{
    return &cache->groves[hearth_hash_mix((uint64_t)(uint32_t)service_id, 1) % N_BUCKETS];
}

/* One more copy of the service: where it belongs. NULL when memory was refused. */
static struct grove *join_grove(struct hearth_read_cache *cache, int32_t service_id,
                                struct hearth_dict *dict)
{
    struct grove **bucket = grove_bucket(cache, service_id);
    struct grove *grove = *bucket;
    while (grove != NULL && grove->service_id != service_id) {
        grove = grove->bucket_next;
    }

    if (grove == NULL || hearth_name_tree_is_stale(grove->tree)) {
        grove = hearth_mem_zalloc(sizeof *grove);
        struct hearth_name_tree *tree = hearth_name_tree_new();
        if (grove == NULL || tree == NULL) {
            hearth_mem_free(grove);
            hearth_name_tree_unref(tree);
            return NULL;
        }

        *grove = (struct grove){.service_id = service_id, .tree = tree, .bucket_next = *bucket};
        *bucket = grove;
        hearth_dict_use_tree(dict, tree);
        hearth_name_tree_unref(tree);
    } else {
        hearth_dict_use_tree(dict, grove->tree);
    }

    grove->n_copies++;

    return grove;
}

/* Its size is looked at anew. */
static void weigh_grove(struct hearth_read_cache *cache, struct grove *grove)
{
    size_t n_bytes = sizeof *grove + hearth_name_tree_bytes(grove->tree);
    account(cache, grove->n_bytes, n_bytes);
    grove->n_bytes = n_bytes;
}

static void leave_grove(struct hearth_read_cache *cache, struct grove *grove)
{
    if (--grove->n_copies > 0) {
        weigh_grove(cache, grove); /* a load that failed has added to it, too */
        return;
    }

    struct grove **at = grove_bucket(cache, grove->service_id);
    while (*at != grove) {
        at = &(*at)->bucket_next;
    }

    *at = grove->bucket_next;
    account(cache, grove->n_bytes, 0);
    hearth_mem_free(grove);
}

/* ---- copies ---- */

static struct copy *copy_new(struct hearth_read_cache *cache, int32_t service_id)
{
    struct copy *copy = hearth_mem_zalloc(sizeof *copy);
    struct hearth_dict *dict = hearth_dict_new();
    struct grove *grove = copy == NULL || dict == NULL ? NULL : join_grove(cache, service_id, dict);
    if (grove == NULL) {
        hearth_mem_free(copy);
        hearth_dict_free(dict);
        return NULL;
    }

    *copy = (struct copy){.loaded = {.dict = dict, .last_stack = -1, .last_string = -1},
                          .grove = grove};

    return copy;
}

/* A copy that nobody finds or holds: its end, once the lock is left. */
static void bury(struct hearth_read_cache *cache, struct copy *copy)
{
    leave_grove(cache, copy->grove);
    copy->grove = NULL;
    copy->bucket_next = cache->dead;
    cache->dead = copy;
}

static void lru_remove(struct hearth_read_cache *cache, struct copy *copy)
{
    *(copy->lru_prev == NULL ? &cache->oldest : &copy->lru_prev->lru_next) = copy->lru_next;
    *(copy->lru_next == NULL ? &cache->newest : &copy->lru_next->lru_prev) = copy->lru_prev;
    copy->lru_prev = copy->lru_next = NULL;
}

static void lru_append(struct hearth_read_cache *cache, struct copy *copy)
{
    copy->lru_prev = cache->newest;
    *(cache->newest == NULL ? &cache->oldest : &cache->newest->lru_next) = copy;
    cache->newest = copy;
}

/* Make a loaded copy known, and the one to use from now on. Its size is looked at anew. */
static void publish(struct hearth_read_cache *cache, struct entry *entry, struct copy *copy)
{
    struct copy **bucket = copy_bucket(cache, copy->loaded.dict);

    copy->bucket_next = *bucket;
    *bucket = copy;
    size_t n_bytes = sizeof *copy + hearth_dict_bytes(copy->loaded.dict);
    account(cache, 0, n_bytes);
    copy->n_bytes = n_bytes;
    weigh_grove(cache, copy->grove);
    copy->entry = entry;
    entry->current = copy;
}

/* The opposite: nobody finds it any more. */
static void withdraw(struct hearth_read_cache *cache, struct copy *copy)
{
    struct copy **at = copy_bucket(cache, copy->loaded.dict);
    while (*at != copy) {
        at = &(*at)->bucket_next;
    }

    *at = copy->bucket_next;
    account(cache, copy->n_bytes, 0);
    if (copy->entry != NULL) {
        copy->entry->current = NULL;
        copy->entry = NULL;
    }
}

/*
 * Take out what nobody holds until the limit holds; everything that is dead, to be freed without
 * the lock.
 */
static struct copy *evict(struct hearth_read_cache *cache)
{
    while (cache->n_bytes > cache->store->options.read_dict_bytes && cache->oldest != NULL) {
        struct copy *copy = cache->oldest;
        struct entry *entry = copy->entry;
        lru_remove(cache, copy);
        withdraw(cache, copy);
        drop_entry_if_idle(cache, entry);
        bury(cache, copy);
    }

    struct copy *dead = cache->dead;
    cache->dead = NULL;

    return dead;
}

static void free_list(struct copy *dead)
{
    while (dead != NULL) {
        struct copy *next = dead->bucket_next;
        hearth_dict_free(dead->loaded.dict);
        hearth_mem_free(dead);
        dead = next;
    }
}

void hearth_read_cache_free(struct hearth_read_cache *cache)
{
    if (cache == NULL) {
        return;
    }

    for (size_t i = 0; i < N_BUCKETS; i++) {
        while (cache->copies[i] != NULL) {
            struct copy *copy = cache->copies[i];
            HEARTH_ASSERT(copy->refs == 0);
            struct entry *entry = copy->entry;
            lru_remove(cache, copy);
            withdraw(cache, copy);
            drop_entry_if_idle(cache, entry);
            bury(cache, copy);
        }
    }

    free_list(cache->dead);
    (void)pthread_cond_destroy(&cache->loaded);
    (void)pthread_mutex_destroy(&cache->lock);
    hearth_mem_free(cache);
}

/* ---- acquiring ---- */

static void hold(struct hearth_read_cache *cache, struct copy *copy)
{
    if (copy->refs++ == 0) {
        lru_remove(cache, copy);
    }
}

/*
 * Load more of the entry. Called and left with the lock held, with nobody else loading it. The
 * result is current, and not held; it may still have too few stacks.
 */
static enum hearth_status load_entry(struct hearth_read_cache *cache, struct entry *entry,
                                     struct hearth_cancel *cancel, struct hearth_err *err)
{
    struct copy *copy = entry->current;
    if (copy != NULL && copy->refs == 0) {
        lru_remove(cache, copy);
        withdraw(cache, copy);
    } else {
        copy = copy_new(cache, entry->service_id);
    }

    if (copy == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to load a dictionary");
    }

    entry->loading = true;
    (void)pthread_mutex_unlock(&cache->lock);
    hearth_metric_add(HEARTH_M_CACHE_MISSES, 1);
    enum hearth_status status = hearth_read_dict_load(
        cache->store, (struct hearth_dict_key){entry->service_id, entry->day, entry->writer_id},
        &copy->loaded, cancel, err);
    (void)pthread_mutex_lock(&cache->lock);
    entry->loading = false;
    (void)pthread_cond_broadcast(&cache->loaded);

    struct copy *old = entry->current; /* held by others, or released meanwhile */
    if (!copy->loaded.has_tree ||
        (old != NULL && copy->loaded.dict->n_tree_stacks <= old->loaded.dict->n_tree_stacks)) {
        bury(cache, copy); /* it failed, or found nothing new */
        return status;
    }

    if (old != NULL && old->refs == 0) {
        lru_remove(cache, old);
        withdraw(cache, old);
        bury(cache, old);
    } else if (old != NULL) {
        old->entry = NULL; /* freed by its last holder */
    }

    publish(cache, entry, copy);
    lru_append(cache, copy);

    return status;
}

/* Wait for whoever loads the entry; the lock is held. */
static enum hearth_status wait_loaded(struct hearth_read_cache *cache, struct hearth_cancel *cancel,
                                      struct hearth_err *err)
{
    int64_t until_ns = hearth_clock_mono_ns() + WAIT_STEP_NS;
    (void)hearth_cond_wait_until(&cache->loaded, &cache->lock, until_ns);
    return hearth_cancel_check(cancel, err);
}

/* The entry's copy with enough stacks, held. The lock is held. */
static enum hearth_status hold_entry(struct hearth_read_cache *cache, struct entry *entry,
                                     uint32_t min_stacks, struct hearth_cancel *cancel,
                                     struct copy **ret_copy, struct hearth_err *err)
{
    for (bool loaded = false;;) {
        struct copy *copy = entry->current;
        if (copy != NULL && copy->loaded.dict->n_tree_stacks >= min_stacks) {
            hearth_metric_add(HEARTH_M_CACHE_HITS, loaded ? 0 : 1);
            hold(cache, copy);
            *ret_copy = copy;
            return HEARTH_OK;
        }

        if (entry->loading) {
            HEARTH_TRY(wait_loaded(cache, cancel, err));
        } else if (loaded) {
            return HEARTH_FAIL(
                err, HEARTH_CORRUPT,
                "dictionary of service %d, day %d, writer %d has %u stacks, profiles name %u",
                (int)entry->service_id, (int)entry->day, (int)entry->writer_id,
                copy == NULL ? 0u : (unsigned)copy->loaded.dict->n_tree_stacks,
                (unsigned)min_stacks);
        } else {
            struct hearth_err failure = HEARTH_ERR_INIT;
            enum hearth_status status = load_entry(cache, entry, cancel, &failure);
            copy = entry->current;
            if (status != HEARTH_OK &&
                (copy == NULL || copy->loaded.dict->n_tree_stacks < min_stacks)) {
                if (err != NULL) {
                    *err = failure;
                }

                return status;
            }

            loaded = true;
        }
    }
}

enum hearth_status hearth_store_read_dict(struct hearth_store *store, struct hearth_dict_key key,
                                          uint32_t min_stacks, struct hearth_cancel *cancel,
                                          const struct hearth_dict **ret_dict,
                                          struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(store, err));
    struct hearth_read_cache *cache = store->cache;
    struct copy *copy = NULL;
    enum hearth_status status;
    (void)pthread_mutex_lock(&cache->lock);
    struct entry *entry = use_entry(cache, key.service_id, key.day, key.writer_id);
    if (entry == NULL) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to load a dictionary");
    } else {
        status = hold_entry(cache, entry, min_stacks, cancel, &copy, err);
        entry->n_users--;
        drop_entry_if_idle(cache, entry);
    }

    struct copy *dead = evict(cache);
    (void)pthread_mutex_unlock(&cache->lock);
    free_list(dead);
    if (status == HEARTH_OK) {
        *ret_dict = copy->loaded.dict;
    }

    return status;
}

void hearth_store_read_dict_release(struct hearth_store *store, const struct hearth_dict *dict)
{
    struct hearth_read_cache *cache = store->cache;

    if (dict == NULL) {
        return;
    }

    (void)pthread_mutex_lock(&cache->lock);
    struct copy *copy = *copy_bucket(cache, dict);
    while (copy != NULL && copy->loaded.dict != dict) {
        copy = copy->bucket_next;
    }

    HEARTH_ASSERT(copy != NULL && copy->refs > 0);
    if (--copy->refs == 0 && copy->entry == NULL) {
        withdraw(cache, copy);
        bury(cache, copy);
    } else if (copy->refs == 0) {
        lru_append(cache, copy);
    }

    struct copy *dead = evict(cache);
    (void)pthread_mutex_unlock(&cache->lock);
    free_list(dead);
}
