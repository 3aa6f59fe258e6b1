/* catalog.c -- the life of the catalogue, and its lock (contract: catalog.h). */
#include "catalog/catalog.h"

#include "hearth/base/clock.h"
#include "hearth/base/mem.h"

#include "pg/store_state.h"
#include "session/session.h"

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

enum hearth_status hearth_catalog_lock_shared(struct hearth_catalog *catalog,
                                              struct hearth_cancel *cancel, struct hearth_err *err)
{
    return lock_rw(catalog, pthread_rwlock_timedrdlock, cancel, err);
}
