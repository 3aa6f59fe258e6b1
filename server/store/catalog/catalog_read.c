/*
 * catalog_read.c -- the label indexes of all tenants: which refresh serves which callers, locking.
 *
 * A caller must see all profiles that were acknowledged before its call. So a refresh serves it
 * only if the refresh started after the call: refreshes are numbered, and a caller waits for a
 * number above that of the last one started. If no thread is refreshing, a waiting caller runs the
 * refresh for all that wait.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"

#include "catalog/catalog.h"
#include "pg/session.h"
#include "pg/store_state.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

/* ---- life cycle ---- */

/*
 * New readers of rw wait until a waiting writer is done: otherwise a steady flow of queries would
 * keep the index from being refreshed.
 */
static void init_catalog_locks(struct hearth_catalog *catalog)
{
    pthread_rwlockattr_t rw_attr;

    (void)pthread_rwlockattr_init(&rw_attr);
    (void)pthread_rwlockattr_setkind_np(&rw_attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    (void)pthread_rwlock_init(&catalog->rw, &rw_attr);
    (void)pthread_rwlockattr_destroy(&rw_attr);

    hearth_cond_init(&catalog->refreshed);
    hearth_mutex_init(&catalog->refresh, HEARTH_RANK_CATALOG_REFRESH, "catalog.refresh");
    hearth_mutex_init(&catalog->writers, HEARTH_RANK_CATALOG_WRITERS, "catalog.writers");
    (void)pthread_cond_init(&catalog->written, NULL);
}

enum hearth_status hearth_catalog_new(struct hearth_store *store,
                                      struct hearth_catalog **ret_catalog, struct hearth_err *err)
{
    assert(store != NULL && ret_catalog != NULL);

    struct hearth_catalog *catalog = hearth_mem_zalloc(sizeof *catalog);
    if (catalog == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the catalogue");
    }

    init_catalog_locks(catalog);
    catalog->store = store;
    catalog->series = hearth_series_cache_new();
    catalog->nothing = hearth_label_index_new();
    if (catalog->series == NULL || catalog->nothing == NULL) {
        hearth_catalog_free(catalog);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the catalogue");
    }

    *ret_catalog = catalog;

    return HEARTH_OK;
}

void hearth_catalog_free(struct hearth_catalog *catalog)
{
    if (catalog == NULL) {
        return;
    }

    hearth_catalog_forget(catalog);
    hearth_mem_free(catalog->tenants);
    hearth_idmap_release(&catalog->by_name);
    hearth_idmap_release(&catalog->by_id);
    hearth_label_index_free(catalog->nothing);
    hearth_series_cache_free(catalog->series);
    (void)pthread_cond_destroy(&catalog->written);
    hearth_mutex_destroy(&catalog->writers);
    (void)pthread_cond_destroy(&catalog->refreshed);
    hearth_mutex_destroy(&catalog->refresh);
    (void)pthread_rwlock_destroy(&catalog->rw);
    hearth_mem_free(catalog);
}

/* ---- locks that a request stops waiting for ---- */

/* The end of the next wait step, on the only clock that timed locks have. */
static struct timespec end_of_wait_step(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_nsec += (long)HEARTH_CATALOG_WAIT_STEP_NS;
    if (ts.tv_nsec >= (long)HEARTH_NS_PER_SEC) {
        ts.tv_nsec -= (long)HEARTH_NS_PER_SEC;
        ts.tv_sec++;
    }

    return ts;
}

/* `lock` is pthread_rwlock_timedrdlock or pthread_rwlock_timedwrlock. */
static enum hearth_status lock_rw(struct hearth_catalog *catalog,
                                  int (*lock)(pthread_rwlock_t *, const struct timespec *),
                                  struct hearth_cancel *cancel, struct hearth_err *err)
{
    hearth_lock_check(&catalog->rw, HEARTH_RANK_CATALOG, HEARTH_CATALOG_RW_NAME);

    for (;;) {
        struct timespec until = end_of_wait_step();
        int rc = lock(&catalog->rw, &until);
        if (rc == 0) {
            hearth_lock_acquired(&catalog->rw, HEARTH_RANK_CATALOG, HEARTH_CATALOG_RW_NAME);
            return HEARTH_OK;
        }

        HEARTH_ASSERT(rc == ETIMEDOUT || rc == EAGAIN);
        HEARTH_TRY(hearth_cancel_check(cancel, err));
    }
}

enum hearth_status hearth_catalog_lock(struct hearth_catalog *catalog, struct hearth_cancel *cancel,
                                       struct hearth_err *err)
{
    return lock_rw(catalog, pthread_rwlock_timedwrlock, cancel, err);
}

/* ---- refreshing ---- */

/*
 * Run a refresh for all waiting callers. The caller holds catalog->refresh, which is released
 * during the refresh.
 */
static enum hearth_status lead_refresh(struct hearth_catalog *catalog, struct hearth_cancel *cancel,
                                       struct hearth_err *err)
{
    hearth_mutex_assert_held(&catalog->refresh);
    assert(!catalog->refreshing);

    /* Load, without the lock. */
    uint64_t number = ++catalog->n_started;
    catalog->refreshing = true;
    hearth_mutex_unlock(&catalog->refresh);
    struct hearth_err failure = HEARTH_ERR_INIT;
    enum hearth_status status = hearth_catalog_load(catalog, cancel, &failure);
    hearth_mutex_lock(&catalog->refresh);

    /* Tell the result to the waiting callers. */
    assert(catalog->refreshing && catalog->n_started == number);
    catalog->refreshing = false;
    if (status == HEARTH_OK) {
        catalog->n_done = number;
    } else if (status != HEARTH_CANCELLED && status != HEARTH_DEADLINE_EXCEEDED) {
        /*
         * A failure that is not the end of this request ends the waiting calls too: each of them
         * would fail in the same way, one after the other.
         */
        catalog->n_failed = number;
        catalog->failed_err = failure;
    }

    if (status != HEARTH_OK && err != NULL) {
        *err = failure;
    }

    (void)pthread_cond_broadcast(&catalog->refreshed);

    return status;
}

enum hearth_status hearth_catalog_refresh(struct hearth_catalog *catalog,
                                          struct hearth_cancel *cancel, struct hearth_err *err)
{
    assert(catalog != NULL);

    enum hearth_status status = HEARTH_OK;
    hearth_mutex_lock(&catalog->refresh);
    uint64_t want = catalog->n_started + 1;
    while (status == HEARTH_OK && catalog->n_done < want) {
        if (catalog->n_failed >= want) {
            status = catalog->failed_err.status;
            if (err != NULL) {
                *err = catalog->failed_err;
            }
        } else if (!catalog->refreshing) {
            status = lead_refresh(catalog, cancel, err);
        } else {
            (void)hearth_mutex_wait_until(&catalog->refresh, &catalog->refreshed,
                                          hearth_clock_mono_ns() + HEARTH_CATALOG_WAIT_STEP_NS);
            status = hearth_cancel_check(cancel, err);
        }
    }

    hearth_mutex_unlock(&catalog->refresh);

    return status;
}

/* ---- public functions ---- */

/*
 * Find the indexes of all tenants; the caller holds catalog->rw. False if one is not in memory:
 * *ret_missing is the id of its tenant.
 */
static bool find_indexes(struct hearth_catalog *catalog, const struct hearth_str *tenants, size_t n,
                         const struct hearth_label_index **ret_indexes, int32_t *ret_missing)
{
    for (size_t i = 0; i < n; i++) {
        struct hearth_catalog_tenant *found = hearth_catalog_tenant_named(catalog, tenants[i]);
        if (found != NULL && found->index == NULL) {
            *ret_missing = found->tenant_id;
            return false;
        }

        ret_indexes[i] = catalog->nothing;
        if (found != NULL) {
            atomic_store(&found->asked_mono_ns, hearth_clock_mono_ns());
            ret_indexes[i] = found->index;
        }
    }

    return true;
}

enum hearth_status hearth_store_indexes_lock(struct hearth_store *store,
                                             const struct hearth_str *tenants, size_t n,
                                             struct hearth_cancel *cancel,
                                             const struct hearth_label_index **ret_indexes,
                                             struct hearth_err *err)
{
    assert(store != NULL && tenants != NULL && n > 0 && ret_indexes != NULL);

    HEARTH_TRY(hearth_store_check_open(store, err));

    struct hearth_catalog *catalog = store->catalog;
    for (;;) {
        HEARTH_TRY(hearth_catalog_refresh(catalog, cancel, err));
        HEARTH_TRY(lock_rw(catalog, pthread_rwlock_timedrdlock, cancel, err));

        /* Return the indexes under the lock if they are in memory. */
        int32_t tenant_id = 0;
        bool partial = catalog->is_partial; /* then a later refresh loads the whole catalogue */
        if (!partial && find_indexes(catalog, tenants, n, ret_indexes, &tenant_id)) {
            return HEARTH_OK;
        }

        /* Otherwise load one, and look them up again. */
        hearth_catalog_unlock(catalog);
        if (!partial) {
            HEARTH_TRY(hearth_catalog_fetch(catalog, tenant_id, cancel, err));
        }
    }
}

enum hearth_status hearth_store_index_lock(struct hearth_store *store, struct hearth_str tenant,
                                           struct hearth_cancel *cancel,
                                           const struct hearth_label_index **ret_index,
                                           struct hearth_err *err)
{
    assert(ret_index != NULL);

    return hearth_store_indexes_lock(store, &tenant, 1, cancel, ret_index, err);
}

void hearth_store_index_unlock(struct hearth_store *store, const struct hearth_label_index *index)
{
    if (index != NULL) {
        hearth_catalog_unlock(store->catalog);
    }
}
