/*
 * catalog.h -- the catalogue's two halves and what they share (private to the store).
 *
 * Read half:  every tenant's label index, brought up to date by row versions.
 *             catalog_read.c (whose refresh, who waits), catalog_load.c (the statements, the rows),
 *             catalog_tenants.c (which tenants have their index in memory), catalog_join.c (loading
 *             one that was asked).
 * Write half: new tenants, services, pairs, shapes, series and hours, by many callers in one
 *             transaction. catalog_write.c (who leads, who waits), catalog_insert.c (the
 *             transaction), catalog_tables.c (its statements).
 * They meet only in the database: what was written is read back by the next refresh.
 *
 * Locks and what they guard:
 *   rw        tenants, n_tenants, cap_tenants, by_name, by_id, is_partial and the indexes: write to
 *             change, read to use
 *   refresh   n_started, n_done, n_failed, failed_err, refreshing, joins; version, loaded_epoch and is_over
 *             belong to the refreshing thread
 *   writers   first, last, writing
 *
 * Epoch. Rows are only ever added, until retention or a deletion removes some: that raises the
 * epoch of the clock row. What is in memory of an older epoch may name what is gone. The read half
 * then loads everything anew; the write half forgets the ids of series, and a transaction that
 * relies on ids looked up in another epoch than its own (it holds the clock's lock, so its epoch
 * cannot change) asks for them again. What needs no transaction at all, a known series in a known
 * hour, is noticed by the next refresh: at most half a minute later.
 *
 * A tenant that does not fit. No index grows beyond label_index_bytes: what comes then is left out, and
 * answers say so (hearth_label_index_is_cut). Its series are counted all the same, for max_series.
 *
 * Residence. All indexes together stay within label_index_bytes: those that were asked least
 * recently go, and of their tenants only the number of series stays, counted on by refreshes. Who
 * asks for such a tenant loads its rows into an index of its own, on a connection of its own, as of
 * a version of the clock that it read first; nobody waits meanwhile but those who want the same
 * tenant. Then it is handed over (a join), and the next refresh adopts it: it alone moves versions,
 * so it knows which rows the new index has missed, adds those of that tenant, and goes on with what
 * is new for all. Rows that come twice change nothing. A join of another epoch, or from before
 * everything was loaded anew, is thrown away, and its owner loads again.
 */
#ifndef HEARTH_STORE_CATALOG_H
#define HEARTH_STORE_CATALOG_H

#include "hearth/base/sync.h"

#include "catalog/series_cache.h"

#include <time.h>

/* Of one series; what the label index and one statement (read_sql.c) can take. */
#define HEARTH_SERIES_MAX_TYPES  64
#define HEARTH_SERIES_MAX_LABELS 1024

struct hearth_catalog_tenant {
    int32_t tenant_id;
    struct hearth_str name;           /* owned */
    struct hearth_label_index *index; /* NULL: not in memory */
    size_t n_series;                  /* then, or if the index is cut: how many there are, */
    size_t n_more;                    /* and how many this refresh has found */
    _Atomic int64_t asked_mono_ns;    /* the last time; 0: never */
    bool is_told;                     /* the log says that its index is cut */
};

/* A tenant that is being loaded because it was asked, or waits to be adopted. */
struct hearth_catalog_join {
    int32_t tenant_id;
    struct hearth_label_index *index; /* NULL: still loading, or failed */
    int64_t version, epoch;           /* that it is of */
    uint64_t n_starts;                /* of the catalogue when it began */
    struct hearth_catalog_join *next;
};

/* One series to resolve. */
struct hearth_catalog_item {
    struct hearth_str tenant;
    const struct hearth_series_key *series;
    struct hearth_hash128 cache_key;
    int32_t hour;
    bool has_ids;  /* they are known already, only the hour is new */
    int64_t epoch; /* of the catalogue when that was looked up, and when it was written */
    struct hearth_series_ids ids;
};

struct hearth_catalog_request;

struct hearth_catalog {
    struct hearth_store *store;
    struct hearth_series_cache *series;
    struct hearth_label_index *nothing; /* of tenants without data; immutable */

    pthread_rwlock_t rw;
    struct hearth_catalog_tenant *tenants;
    size_t n_tenants, cap_tenants;
    struct hearth_idmap by_name, by_id; /* index into tenants */
    bool is_partial;                    /* being loaded anew: not to be read */

    struct hearth_mutex refresh;
    pthread_cond_t refreshed;
    uint64_t n_started;           /* refreshes are numbered as they start */
    uint64_t n_done, n_failed;    /* number of the latest that ended well, ended badly */
    struct hearth_err failed_err; /* of n_failed */
    bool refreshing;
    struct hearth_catalog_join *joins;
    int64_t version, loaded_epoch;
    bool is_over; /* the limit: nobody may go yet */

    struct hearth_mutex writers;
    pthread_cond_t written;
    struct hearth_catalog_request *first, *last;
    bool writing;

    _Atomic int64_t newest;     /* highest committed version that either half saw */
    _Atomic int64_t epoch;      /* that the ids in `series` are of */
    _Atomic bool must_load_all; /* the database went back in time */
    _Atomic uint64_t n_starts;  /* how often everything was loaded anew */
};

/* ---- life ---- */

HEARTH_MUST_CHECK enum hearth_status hearth_catalog_new(struct hearth_store *store,
                                                        struct hearth_catalog **ret_catalog,
                                                        struct hearth_err *err);
void hearth_catalog_free(struct hearth_catalog *catalog);
/* Bring everything up to the database's version (first: load). */
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_refresh(struct hearth_catalog *catalog,
                                                            struct hearth_cancel *cancel,
                                                            struct hearth_err *err);
/* Forget activity before the hour, in all label indexes: its leaves are gone. */
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_trim(struct hearth_catalog *catalog,
                                                         int32_t hour, struct hearth_err *err);

/* ---- catalog_read.c ---- */

/* How long a request waits at a time before it checks whether it has been cancelled. */
#define HEARTH_CATALOG_WAIT_STEP_NS (50 * HEARTH_NS_PER_MS)
/* Acquire catalog->rw for writing; the status of `cancel` (may be NULL) ends the wait. */
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_lock(struct hearth_catalog *catalog,
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

/* ---- catalog_tenants.c ---- */

/* Under the write lock: the tenant, added when it is new, with an empty index. */
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_add_tenant(struct hearth_catalog *catalog,
                                                               int32_t tenant_id,
                                                               struct hearth_str name,
                                                               struct hearth_err *err);
/* An empty label index with the catalogue's limit; NULL without memory. */
struct hearth_label_index *hearth_catalog_new_index(const struct hearth_catalog *catalog);
/* Under either lock; NULL: no such tenant. */
struct hearth_catalog_tenant *hearth_catalog_tenant_of(const struct hearth_catalog *catalog,
                                                       int32_t tenant_id);
struct hearth_catalog_tenant *hearth_catalog_tenant_named(const struct hearth_catalog *catalog,
                                                          struct hearth_str name);
/* Series of a tenant as of the last refresh; 0 for an unknown one. Takes the read lock. */
size_t hearth_catalog_count_series(struct hearth_catalog *catalog, int32_t tenant_id);
/* Under the write lock: forget all tenants. */
void hearth_catalog_forget(struct hearth_catalog *catalog);
/* The refreshing thread: let go of indexes until the limit holds, and publish sizes. */
void hearth_catalog_shrink(struct hearth_catalog *catalog);

/* ---- catalog_join.c ---- */

/* Load a tenant that was asked and is not in memory, or wait for who does. Ask again after it. */
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_fetch(struct hearth_catalog *catalog,
                                                          int32_t tenant_id,
                                                          struct hearth_cancel *cancel,
                                                          struct hearth_err *err);

/*
 * The clock was read after `at_least` had been committed. True when it is below that: the database
 * has gone back in time (restored, or a replica took over that had not seen everything), and ids
 * may have been given to other series since. Ingest's memory of them is cleared, the next refresh
 * loads all.
 */
bool hearth_catalog_went_back(struct hearth_catalog *catalog, int64_t at_least, int64_t version);
/* The epoch was read: ids in memory are forgotten when they are of another. */
void hearth_catalog_saw_epoch(struct hearth_catalog *catalog, int64_t epoch);
/* A version is known to be committed. */
void hearth_catalog_note(struct hearth_catalog *catalog, int64_t version);

/* ---- catalog_load.c ---- */

/* The refresh itself, by the one thread that is refreshing. */
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_load(struct hearth_catalog *catalog,
                                                         struct hearth_cancel *cancel,
                                                         struct hearth_err *err);
/* One transaction for all items: series and hours exist, ids are filled in. */
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_insert(struct hearth_catalog *catalog,
                                                           struct hearth_catalog_item *const *items,
                                                           size_t n, struct hearth_err *err);

#endif
