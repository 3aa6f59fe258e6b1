/*
 * catalog.h -- the catalogue's two halves and their shared state (private to the store).
 *
 * Read half:  the label index of each tenant, updated by row versions.
 *             catalog_read.c (which refresh serves which callers), catalog_load.c (which rows a
 *             refresh loads), catalog_rows.c (the statements), catalog_join.c (loading the index of
 *             one tenant on demand), catalog_tenants.c (which tenants have their index in memory).
 * Write half: new tenants, services, pairs, shapes, series and hours, by many callers in one
 *             transaction. catalog_write.c (which caller leads), catalog_insert.c (the
 *             transaction), catalog_tables.c (its statements).
 * They meet only in the database: the next refresh reads the rows that the write half has written.
 *
 * Locks and the fields that they guard:
 *   rw        tenants, n_tenants, cap_tenants, by_name, by_id, is_partial and the indexes: write to
 *             change, read to use
 *   refresh   n_started, n_done, n_failed, failed_err, refreshing, joins; version, loaded_epoch and
 *             is_over belong to the refreshing thread
 *   writers   first, last, writing
 *
 * Epoch. Rows are only added, until retention or a deletion removes some: that raises the epoch of
 * the clock row. Ids in memory that were read in an older epoch may be of deleted rows. So the read
 * half then loads the whole catalogue again, and the write half clears the ids of series. A
 * transaction that relies on ids of another epoch than its own looks them up again; it holds the
 * clock's lock, so its own epoch cannot change. A known series in a known hour needs no
 * transaction: the next refresh, at most half a minute later, notices that the series is deleted.
 *
 * Tenants that do not fit. No index grows beyond label_index_bytes: further series are left out,
 * and answers say so (hearth_label_index_is_cut). They are counted all the same, for max_series.
 *
 * Residence. All indexes together stay within label_index_bytes. The least recently queried ones
 * are evicted; of their tenants only the number of series stays, which refreshes keep up to date. A
 * query of such a tenant loads its rows into an index of its own, on a connection of its own, as of
 * a version of the clock that it read first; only queries of the same tenant wait for it. Then it
 * hands the index over (a join), and the next refresh adopts it. Only the refresh moves versions,
 * so it knows which rows the new index lacks: it adds those of that tenant, and then the new rows
 * of all tenants. A row that is added twice changes nothing. A join of another epoch, or from
 * before a load of the whole catalogue, is freed, and its query loads again.
 */
#ifndef HEARTH_STORE_CATALOG_H
#define HEARTH_STORE_CATALOG_H

#include "hearth/base/sync.h"

#include "catalog/series_cache.h"

#include <time.h>

/* Limits of one series: the capacity of the label index and of one statement (read_sql.c). */
#define HEARTH_SERIES_MAX_TYPES  64
#define HEARTH_SERIES_MAX_LABELS 1024

struct hearth_catalog_tenant {
    int32_t tenant_id;
    struct hearth_str name;           /* owned */
    struct hearth_label_index *index; /* NULL: not in memory */
    size_t n_series;                  /* all series, if the index is NULL or cut */
    size_t n_more;                    /* further ones that the current refresh has found */
    _Atomic int64_t asked_mono_ns;    /* time of the last query; 0: never */
    bool is_told;                     /* the log says that its index is cut */
};

/* A tenant whose index is being loaded for a query, or is loaded and not yet adopted. */
struct hearth_catalog_join {
    int32_t tenant_id;
    struct hearth_label_index *index; /* NULL: not loaded yet, or taken by a refresh, or failed */
    int64_t version, epoch;           /* of the clock when the load began */
    uint64_t n_starts;                /* the catalogue's when the load began */
    struct hearth_catalog_join *next;
};

/* One series to resolve. */
struct hearth_catalog_item {
    struct hearth_str tenant;
    const struct hearth_series_key *series;
    struct hearth_hash128 cache_key;
    int32_t hour;
    bool has_ids;  /* `ids` are known, only the hour is new */
    int64_t epoch; /* the catalogue's when `ids` were looked up; once written, the transaction's */
    struct hearth_series_ids ids;
};

struct hearth_catalog_request;

struct hearth_catalog {
    struct hearth_store *store;
    struct hearth_series_cache *series;
    struct hearth_label_index *nothing; /* index of tenants without data; immutable */

    pthread_rwlock_t rw;
    struct hearth_catalog_tenant *tenants;
    size_t n_tenants, cap_tenants;
    struct hearth_idmap by_name, by_id; /* values are indexes into tenants */
    bool is_partial;                    /* a load of the whole catalogue has not ended: unusable */

    struct hearth_mutex refresh;
    pthread_cond_t refreshed;
    uint64_t n_started;                /* number of the latest refresh that has started */
    uint64_t n_done, n_failed;         /* number of the latest that succeeded, that failed */
    struct hearth_err failed_err;      /* error of refresh n_failed */
    bool refreshing;                   /* a thread runs a refresh, without the lock */
    struct hearth_catalog_join *joins; /* list; each lives on its query's stack */
    int64_t version, loaded_epoch;     /* of the clock, that the indexes are up to */
    bool is_over;                      /* indexes exceed the limit, no one may be evicted yet */

    struct hearth_mutex writers;
    pthread_cond_t written;
    struct hearth_catalog_request *first, *last; /* queue; each lives on its caller's stack */
    bool writing;                                /* a thread writes a group, without the lock */

    _Atomic int64_t newest;     /* highest committed version that either half has read */
    _Atomic int64_t epoch;      /* epoch of the ids in `series` */
    _Atomic bool must_load_all; /* the next refresh loads the whole catalogue */
    _Atomic uint64_t n_starts;  /* number of loads of the whole catalogue */
};

/* ---- catalog.c ---- */

HEARTH_MUST_CHECK enum hearth_status hearth_catalog_new(struct hearth_store *store,
                                                        struct hearth_catalog **ret_catalog,
                                                        struct hearth_err *err);
void hearth_catalog_free(struct hearth_catalog *catalog); /* NULL-safe */

/* A request waits this long at a time before it checks whether it has been cancelled. */
#define HEARTH_CATALOG_WAIT_STEP_NS (50 * HEARTH_NS_PER_MS)

/*
 * Acquire catalog->rw for writing, or for reading. The status of `cancel` (may be NULL) ends the
 * wait.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_lock(struct hearth_catalog *catalog,
                                                         struct hearth_cancel *cancel,
                                                         struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_lock_shared(struct hearth_catalog *catalog,
                                                                struct hearth_cancel *cancel,
                                                                struct hearth_err *err);

/* The name of catalog->rw in messages about the order of locks. */
#define HEARTH_CATALOG_RW_NAME "catalog.rw"

/* Release catalog->rw, which the calling thread has acquired for writing or for reading. */
static inline void hearth_catalog_unlock(struct hearth_catalog *catalog)
{
    hearth_lock_released(&catalog->rw, HEARTH_CATALOG_RW_NAME);
    (void)pthread_rwlock_unlock(&catalog->rw);
}

/* ---- catalog_refresh.c ---- */

/*
 * Update all label indexes to the database's version. A refresh that another thread starts during
 * the call serves this caller too. `cancel` may be NULL.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_refresh(struct hearth_catalog *catalog,
                                                            struct hearth_cancel *cancel,
                                                            struct hearth_err *err);

/* ---- catalog_tenants.c ---- */

/* Under the write lock: add the tenant with an empty index, unless it is known. */
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_add_tenant(struct hearth_catalog *catalog,
                                                               int32_t tenant_id,
                                                               struct hearth_str name,
                                                               struct hearth_err *err);

/* Return an empty label index with the catalogue's limit; NULL: no memory. */
struct hearth_label_index *hearth_catalog_new_index(const struct hearth_catalog *catalog);

/* Under rw, read or write. NULL: the tenant is unknown. */
struct hearth_catalog_tenant *hearth_catalog_tenant_of(const struct hearth_catalog *catalog,
                                                       int32_t tenant_id);
struct hearth_catalog_tenant *hearth_catalog_tenant_named(const struct hearth_catalog *catalog,
                                                          struct hearth_str name);

/* Return the number of series of a tenant at the last refresh; 0 if it is unknown. Acquires rw. */
size_t hearth_catalog_count_series(struct hearth_catalog *catalog, int32_t tenant_id);

/* Under the write lock, or in hearth_catalog_free: remove all tenants from memory. */
void hearth_catalog_forget(struct hearth_catalog *catalog);

/* For the refreshing thread: evict indexes until they are within the limit, and publish sizes. */
void hearth_catalog_shrink(struct hearth_catalog *catalog);

/* ---- catalog_join.c ---- */

/*
 * Load the index of a tenant, or wait for the thread that loads it. After OK, look the tenant up
 * again: its index may be in memory, or evicted again.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_fetch(struct hearth_catalog *catalog,
                                                          int32_t tenant_id,
                                                          struct hearth_cancel *cancel,
                                                          struct hearth_err *err);

/* ---- catalog_load.c ---- */

/*
 * Tell the catalogue that the clock says `version`, read after version `at_least` had been
 * committed. Returns true if it is lower: the database went back in time (it was restored, or a
 * replica that lacked transactions took over), and other series may have the ids that this server
 * knows. Then the series cache is cleared, and the next refresh loads the whole catalogue.
 */
bool hearth_catalog_went_back(struct hearth_catalog *catalog, int64_t at_least, int64_t version);

/* Tell the catalogue the clock's epoch: ids of another epoch are removed from the series cache. */
void hearth_catalog_saw_epoch(struct hearth_catalog *catalog, int64_t epoch);

/* Tell the catalogue that a version is committed. */
void hearth_catalog_note(struct hearth_catalog *catalog, int64_t version);

/* The work of a refresh, by the one thread that is refreshing. `cancel` may be NULL. */
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_load(struct hearth_catalog *catalog,
                                                         struct hearth_cancel *cancel,
                                                         struct hearth_err *err);

/* Remove activity before the hour from all label indexes, once its leaves are dropped. */
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_trim(struct hearth_catalog *catalog,
                                                         int32_t hour, struct hearth_err *err);

/* ---- catalog_insert.c ---- */

/* Create series and hours of n >= 1 items in one transaction, and set their ids. */
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_insert(struct hearth_catalog *catalog,
                                                           struct hearth_catalog_item *const *items,
                                                           size_t n, struct hearth_err *err);

#endif
