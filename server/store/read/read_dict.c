/*
 * read_dict.c -- the dictionaries of queries, shared and kept within a memory limit (contract:
 * hearth/store/store.h).
 *
 * A loaded dictionary (struct copy) does not change while a query holds it. If a query needs more
 * stacks than it has:
 *
 *     no query holds it   it is withdrawn, extended in place and published again
 *     a query holds it    a new copy is loaded and replaces it; its last holder frees it
 *
 * So a load never waits for a holder. A query may hold several dictionaries while it acquires more;
 * with a read-write lock per dictionary, two such queries could wait for each other for ever. A
 * query only waits for a load of the same dictionary.
 *
 * The copies of a service share a name tree (decision 0012), which only grows, also while queries
 * read it. Its bytes count once, as long as a copy uses it. When much of it is dead (name_tree.h),
 * later copies use a new tree.
 *
 * Held copies count against the limit, but are not evicted; the others are, the one that was
 * released first before the others.
 *
 * Locks: cache.lock guards everything except the contents of a dictionary that is being loaded,
 * which belong to the loader until it publishes them. It is not held while a statement runs, nor
 * while copies are freed: a loader may hold their tree's lock for milliseconds.
 */
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "pg/store_state.h"
#include "read/read_cache.h"
#include "read/read_dict_load.h"
#include "session/session.h"

#include <assert.h>

#define N_BUCKETS    1024u
#define WAIT_STEP_NS (50 * HEARTH_NS_PER_MS)

struct entry;

/* A name tree that at least one copy uses. */
struct grove {
    int32_t service_id;
    struct hearth_name_tree *tree; /* the dictionaries of the copies hold references */
    unsigned n_copies;
    size_t n_bytes; /* as counted in cache.n_bytes */
    struct grove *bucket_next;
};

/*
 * States: loading (its loader alone knows it), current (entry->current), replaced (held by queries,
 * entry is NULL), dead (in cache.dead).
 */
struct copy {
    struct hearth_loaded_dict loaded;
    struct grove *grove;
    struct entry *entry; /* whose current copy it is; NULL in other states */
    unsigned refs;       /* queries that hold it */
    size_t n_bytes;      /* as counted in cache.n_bytes */
    struct copy *bucket_next;
    struct copy *lru_prev, *lru_next; /* if current and not held: released before, after it */
};

/* A dictionary of the database. */
struct entry {
    struct hearth_dict_key key;
    struct copy *current; /* NULL: not loaded yet, or withdrawn by the loader */
    bool loading;         /* one thread loads a copy without the lock */
    unsigned n_users;     /* calls that use this entry; 0 and no current copy: it is freed */
    struct entry *bucket_next;
};

struct hearth_read_cache {
    struct hearth_store *store;
    struct hearth_mutex lock; /* guards all that follows */
    pthread_cond_t loaded;    /* an entry is no longer loading */
    size_t n_bytes;           /* of copies and groves */
    struct copy *oldest, *newest;
    struct entry *entries[N_BUCKETS];
    struct copy *copies[N_BUCKETS];  /* current and replaced ones, by address of the dictionary */
    struct grove *groves[N_BUCKETS]; /* by service; the newest of a service is its first */
    struct copy *dead;               /* to be freed without the lock; linked by bucket_next */
};

enum hearth_status hearth_read_cache_new(struct hearth_store *store,
                                         struct hearth_read_cache **ret_cache,
                                         struct hearth_err *err)
{
    assert(store != NULL && ret_cache != NULL);

    struct hearth_read_cache *cache = hearth_mem_zalloc(sizeof *cache);
    if (cache == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the dictionary cache");
    }

    cache->store = store;
    hearth_mutex_init(&cache->lock, HEARTH_RANK_READ_CACHE, "cache.lock");
    hearth_cond_init(&cache->loaded);
    *ret_cache = cache;

    return HEARTH_OK;
}

/* ---- tables ---- */

static struct entry **entry_bucket(struct hearth_read_cache *cache, struct hearth_dict_key key)
{
    uint64_t hash = hearth_hash_mix((uint64_t)(uint32_t)key.service_id << 32 | (uint32_t)key.day,
                                    (uint32_t)key.writer_id);
    return &cache->entries[hash % N_BUCKETS];
}

static struct copy **copy_bucket(struct hearth_read_cache *cache, const struct hearth_dict *dict)
{
    return &cache->copies[hearth_hash_mix((uint64_t)(uintptr_t)dict, 0) % N_BUCKETS];
}

static bool is_same_key(struct hearth_dict_key a, struct hearth_dict_key b)
{
    return a.service_id == b.service_id && a.day == b.day && a.writer_id == b.writer_id;
}

/* Return the entry, created if it is missing, with one more user; NULL: no memory. */
static struct entry *use_entry(struct hearth_read_cache *cache, struct hearth_dict_key key)
{
    hearth_mutex_assert_held(&cache->lock);

    struct entry **bucket = entry_bucket(cache, key);
    struct entry *entry = *bucket;
    while (entry != NULL && !is_same_key(entry->key, key)) {
        entry = entry->bucket_next;
    }

    if (entry == NULL) {
        entry = hearth_mem_zalloc(sizeof *entry);
        if (entry == NULL) {
            return NULL;
        }

        *entry = (struct entry){.key = key, .bucket_next = *bucket};
        *bucket = entry;
    }

    entry->n_users++;

    return entry;
}

static void free_idle_entry(struct hearth_read_cache *cache, struct entry *entry)
{
    if (entry->n_users > 0 || entry->current != NULL) {
        return;
    }

    assert(!entry->loading);
    struct entry **at = entry_bucket(cache, entry->key);
    while (*at != entry) {
        at = &(*at)->bucket_next;
    }

    *at = entry->bucket_next;
    hearth_mem_free(entry);
}

/* Something grew or shrank from `before` to `after` bytes. */
static void count_bytes(struct hearth_read_cache *cache, size_t before, size_t after)
{
    assert(before <= cache->n_bytes);

    cache->n_bytes = cache->n_bytes - before + after;
    hearth_metric_set(HEARTH_M_CACHE_BYTES, (int64_t)cache->n_bytes);
}

/* ---- groves: the name trees of the services ---- */

static struct grove **grove_bucket(struct hearth_read_cache *cache, int32_t service_id)
{
    return &cache->groves[hearth_hash_mix((uint64_t)(uint32_t)service_id, 1) % N_BUCKETS];
}

/* Make a new dictionary of the service use its tree, or a new tree; NULL: no memory. */
static struct grove *join_grove(struct hearth_read_cache *cache, int32_t service_id,
                                struct hearth_dict *dict)
{
    struct grove **bucket = grove_bucket(cache, service_id);
    struct grove *grove = *bucket;
    while (grove != NULL && grove->service_id != service_id) {
        grove = grove->bucket_next;
    }

    /* A new tree becomes the first of its service. */
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

/* Count the present size of its tree. */
static void count_grove_bytes(struct hearth_read_cache *cache, struct grove *grove)
{
    size_t n_bytes = sizeof *grove + hearth_name_tree_bytes(grove->tree);
    count_bytes(cache, grove->n_bytes, n_bytes);
    grove->n_bytes = n_bytes;
}

static void leave_grove(struct hearth_read_cache *cache, struct grove *grove)
{
    assert(grove->n_copies > 0);

    if (--grove->n_copies > 0) {
        count_grove_bytes(cache, grove); /* a failed load may have grown it */
        return;
    }

    struct grove **at = grove_bucket(cache, grove->service_id);
    while (*at != grove) {
        at = &(*at)->bucket_next;
    }

    *at = grove->bucket_next;
    count_bytes(cache, grove->n_bytes, 0);
    hearth_mem_free(grove);
}

/* ---- copies ---- */

static struct copy *new_copy(struct hearth_read_cache *cache, int32_t service_id)
{
    struct copy *copy = hearth_mem_zalloc(sizeof *copy);
    struct hearth_dict *dict = hearth_dict_new();
    struct grove *grove = copy == NULL || dict == NULL ? NULL : join_grove(cache, service_id, dict);
    if (grove == NULL) {
        hearth_mem_free(copy);
        hearth_dict_free(dict);
        return NULL;
    }

    *copy = (struct copy){
        .loaded = {.dict = dict, .last_stack = -1, .last_string = -1},
        .grove = grove,
    };

    return copy;
}

/* Put a copy that is neither published nor held in the list of dead ones. */
static void bury_copy(struct hearth_read_cache *cache, struct copy *copy)
{
    assert(copy->refs == 0 && copy->entry == NULL);

    leave_grove(cache, copy->grove);
    copy->grove = NULL;
    copy->bucket_next = cache->dead;
    cache->dead = copy;
}

static void remove_from_lru(struct hearth_read_cache *cache, struct copy *copy)
{
    assert(copy->refs == 0);

    *(copy->lru_prev == NULL ? &cache->oldest : &copy->lru_prev->lru_next) = copy->lru_next;
    *(copy->lru_next == NULL ? &cache->newest : &copy->lru_next->lru_prev) = copy->lru_prev;
    copy->lru_prev = copy->lru_next = NULL;
}

static void append_to_lru(struct hearth_read_cache *cache, struct copy *copy)
{
    assert(copy->refs == 0 && copy->lru_prev == NULL && copy->lru_next == NULL);

    copy->lru_prev = cache->newest;
    *(cache->newest == NULL ? &cache->oldest : &cache->newest->lru_next) = copy;
    cache->newest = copy;
}

/* Make a loaded copy the current one of its entry, and count its present size. */
static void publish_copy(struct hearth_read_cache *cache, struct entry *entry, struct copy *copy)
{
    assert(copy->loaded.has_tree && copy->entry == NULL);
    assert(entry->current == NULL || entry->current->entry == NULL);

    /* In the table. */
    struct copy **bucket = copy_bucket(cache, copy->loaded.dict);
    copy->bucket_next = *bucket;
    *bucket = copy;

    /* Its size. */
    size_t n_bytes = sizeof *copy + hearth_dict_bytes(copy->loaded.dict);
    count_bytes(cache, 0, n_bytes);
    copy->n_bytes = n_bytes;
    count_grove_bytes(cache, copy->grove);

    copy->entry = entry;
    entry->current = copy;
}

/* The opposite: remove a current or replaced copy from the table and from its entry. */
static void withdraw_copy(struct hearth_read_cache *cache, struct copy *copy)
{
    struct copy **at = copy_bucket(cache, copy->loaded.dict);
    while (*at != copy) {
        at = &(*at)->bucket_next;
    }

    *at = copy->bucket_next;
    count_bytes(cache, copy->n_bytes, 0);
    if (copy->entry != NULL) {
        copy->entry->current = NULL;
        copy->entry = NULL;
    }
}

/*
 * Remove copies that no query holds until the limit is kept. Return the dead copies, which the
 * caller frees without the lock.
 */
static struct copy *evict_copies(struct hearth_read_cache *cache)
{
    hearth_mutex_assert_held(&cache->lock);

    while (cache->n_bytes > cache->store->options.read_dict_bytes && cache->oldest != NULL) {
        struct copy *copy = cache->oldest;
        struct entry *entry = copy->entry;
        remove_from_lru(cache, copy);
        withdraw_copy(cache, copy);
        free_idle_entry(cache, entry);
        bury_copy(cache, copy);
    }

    struct copy *dead = cache->dead;
    cache->dead = NULL;

    return dead;
}

static void free_dead(struct copy *dead)
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
            remove_from_lru(cache, copy);
            withdraw_copy(cache, copy);
            free_idle_entry(cache, entry);
            bury_copy(cache, copy);
        }
    }

    free_dead(cache->dead);
    (void)pthread_cond_destroy(&cache->loaded);
    hearth_mutex_destroy(&cache->lock);
    hearth_mem_free(cache);
}

/* ---- acquiring ---- */

static void hold_copy(struct hearth_read_cache *cache, struct copy *copy)
{
    if (copy->refs == 0) {
        remove_from_lru(cache, copy);
    }

    copy->refs++;
}

/*
 * Load more of an entry that no other thread loads. The lock is held at the call and at the return,
 * but not meanwhile. After success the entry has a current copy, which may be held by no query and
 * may still have too few stacks.
 */
static enum hearth_status load_entry(struct hearth_read_cache *cache, struct entry *entry,
                                     const struct hearth_scope *scope, struct hearth_err *err)
{
    hearth_mutex_assert_held(&cache->lock);
    assert(!entry->loading && entry->n_users > 0);

    /* A copy to extend: the current one if no query holds it, otherwise a new one. */
    struct copy *copy = entry->current;
    if (copy != NULL && copy->refs == 0) {
        remove_from_lru(cache, copy);
        withdraw_copy(cache, copy);
    } else {
        copy = new_copy(cache, entry->key.service_id);
    }

    if (copy == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to load a dictionary");
    }

    /* Load it without the lock. */
    entry->loading = true;
    hearth_mutex_unlock(&cache->lock);
    hearth_metric_add(HEARTH_M_CACHE_MISSES, 1);
    enum hearth_status status = hearth_read_dict_load(scope, entry->key, &copy->loaded, err);
    hearth_mutex_lock(&cache->lock);
    entry->loading = false;
    (void)pthread_cond_broadcast(&cache->loaded);

    /* Discard it if the load failed or found nothing new. */
    struct copy *old = entry->current; /* was held, and may have been released meanwhile */
    if (!copy->loaded.has_tree ||
        (old != NULL && copy->loaded.dict->n_tree_stacks <= old->loaded.dict->n_tree_stacks)) {
        bury_copy(cache, copy);
        return status;
    }

    /* Replace the old one. */
    if (old != NULL && old->refs == 0) {
        remove_from_lru(cache, old);
        withdraw_copy(cache, old);
        bury_copy(cache, old);
    } else if (old != NULL) {
        old->entry = NULL; /* its last holder frees it */
    }

    publish_copy(cache, entry, copy);
    append_to_lru(cache, copy);

    return status;
}

/* Wait until a load has ended or some time has passed; the lock is held. */
static enum hearth_status wait_for_load(struct hearth_read_cache *cache,
                                        struct hearth_cancel *cancel, struct hearth_err *err)
{
    int64_t until_ns = hearth_clock_mono_ns() + WAIT_STEP_NS;

    (void)hearth_mutex_wait_until(&cache->lock, &cache->loaded, until_ns);
    return hearth_cancel_check(cancel, err);
}

/* Hold the entry's copy when it has enough stacks; load at most once. The lock is held. */
static enum hearth_status hold_entry(struct hearth_read_cache *cache, struct entry *entry,
                                     uint32_t min_stacks, const struct hearth_scope *scope,
                                     struct copy **ret_copy, struct hearth_err *err)
{
    for (bool loaded = false;;) {
        struct copy *copy = entry->current;
        if (copy != NULL && copy->loaded.dict->n_tree_stacks >= min_stacks) {
            hearth_metric_add(HEARTH_M_CACHE_HITS, loaded ? 0 : 1);
            hold_copy(cache, copy);
            *ret_copy = copy;
            return HEARTH_OK;
        }

        if (entry->loading) {
            HEARTH_TRY(wait_for_load(cache, scope->cancel, err));
        } else if (loaded) {
            return HEARTH_FAIL(
                err, HEARTH_CORRUPT,
                "dictionary of service %d, day %d, writer %d has %u stacks, profiles name %u",
                (int)entry->key.service_id, (int)entry->key.day, (int)entry->key.writer_id,
                copy == NULL ? 0u : (unsigned)copy->loaded.dict->n_tree_stacks,
                (unsigned)min_stacks);
        } else {
            struct hearth_err failure = HEARTH_ERR_INIT;
            enum hearth_status status = load_entry(cache, entry, scope, &failure);
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

enum hearth_status hearth_store_read_dict(const struct hearth_scope *scope,
                                          struct hearth_dict_key key, uint32_t min_stacks,
                                          const struct hearth_dict **ret_dict,
                                          struct hearth_err *err)
{
    assert(ret_dict != NULL);
    HEARTH_TRY(hearth_store_check_open(scope->store, err));

    /* Hold a copy. */
    struct hearth_read_cache *cache = scope->store->cache;
    struct copy *copy = NULL;
    enum hearth_status status;
    hearth_mutex_lock(&cache->lock);
    struct entry *entry = use_entry(cache, key);
    if (entry == NULL) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to load a dictionary");
    } else {
        status = hold_entry(cache, entry, min_stacks, scope, &copy, err);
        entry->n_users--;
        free_idle_entry(cache, entry);
    }

    /* Keep the limit. */
    struct copy *dead = evict_copies(cache);
    hearth_mutex_unlock(&cache->lock);
    free_dead(dead);

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

    hearth_mutex_lock(&cache->lock);
    struct copy *copy = *copy_bucket(cache, dict);
    while (copy != NULL && copy->loaded.dict != dict) {
        copy = copy->bucket_next;
    }

    /* After the last holder, a replaced copy is freed, and the current one may be evicted. */
    HEARTH_ASSERT(copy != NULL && copy->refs > 0);
    if (--copy->refs == 0 && copy->entry == NULL) {
        withdraw_copy(cache, copy);
        bury_copy(cache, copy);
    } else if (copy->refs == 0) {
        append_to_lru(cache, copy);
    }

    struct copy *dead = evict_copies(cache);
    hearth_mutex_unlock(&cache->lock);
    free_dead(dead);
}
