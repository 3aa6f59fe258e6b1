/*
 * catalog_prune.h -- deleting series from the catalogue (private to the store).
 *
 *   hearth_prune_version          without a lock; then find the series that have no hour
 *   BEGIN; hearth_prune_lock; hearth_prune_series; COMMIT (or ROLLBACK if none was deleted)
 *
 * Threads: confined to one thread.
 */
#ifndef HEARTH_STORE_CATALOG_PRUNE_H
#define HEARTH_STORE_CATALOG_PRUNE_H

#include "hearth/store/store.h"

#include "pg/pg.h"

struct hearth_prune {
    struct hearth_pg *pg;
    struct hearth_arena *arena;
    enum hearth_pg_fault *ret_fault; /* may be NULL */
    int64_t version;                 /* at which the series had no hour */
};

/* Read prune->version. */
HEARTH_MUST_CHECK enum hearth_status hearth_prune_version(struct hearth_prune *prune,
                                                          struct hearth_err *err);

/* In a transaction: acquire the clock's lock, raise version and epoch. */
HEARTH_MUST_CHECK enum hearth_status hearth_prune_lock(struct hearth_prune *prune,
                                                       struct hearth_err *err);

/*
 * Under the lock: delete those of n series that got no hour since prune->version, and the label
 * pairs, shapes and services that only they used. service_ids[i] is the service of series_ids[i].
 */
HEARTH_MUST_CHECK enum hearth_status hearth_prune_series(struct hearth_prune *prune,
                                                         const int32_t *service_ids,
                                                         const int32_t *series_ids, size_t n,
                                                         size_t *ret_n_gone,
                                                         struct hearth_err *err);

#endif
