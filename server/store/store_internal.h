/*
 * store_internal.h -- the parts of a store and how they meet (private to the store).
 *
 * A store is five parts, each with its own file, state and lock:
 *   boot       store.c, migrate.c    connect, migrate, register the writer, load the catalogue; readiness
 *   pool       pool.c                connections for readers and the catalogue, bounded
 *   catalog    catalog_*.c           tenants, services, pairs, shapes, series, hours: writes and the in-memory index
 *   commit     committer.c, partitions.c, ingest_dict.c   dictionaries of ingest; group commit
 *   read       scan.c, read_dict.c   streams of rows; dictionaries of queries
 *
 * Lock order (a thread may take a lock only below those it holds): catalog.rw, catalog.writers, dicts.lock, dict.lock, committer.lock,
 * pool.lock, cache.lock. No lock is held while a statement runs, but for the leader of a catalogue write (catalog.writers) and
 * the loading of one read dictionary (its own lock).
 */
#ifndef HEARTH_STORE_INTERNAL_H
#define HEARTH_STORE_INTERNAL_H

#include "hearth/store/store.h"

#include "pg.h"

#include <pthread.h>

struct hearth_pool;
struct hearth_catalog;
struct hearth_committers;
struct hearth_ingest_dicts;
struct hearth_read_cache;

struct hearth_store {
    struct hearth_store_options options;
    char *url; /* owned copy; options.url points here */
    struct hearth_pool *pool;
    struct hearth_catalog *catalog;
    struct hearth_committers *committers;
    struct hearth_ingest_dicts *dicts;
    struct hearth_read_cache *cache;
    _Atomic bool ready;     /* migrated, writer registered, catalogue loaded once */
    _Atomic bool closing;
    _Atomic int32_t writer_id; /* of this server; a new one is taken when a dictionary was evicted (ingest_dict.c) */
    _Atomic int64_t next_profile_no;
    pthread_mutex_t reason_lock; /* guards reason */
    char reason[256];
    pthread_t boot_thread;
    bool boot_started;
};

/* ---- pool.c ---- */
HEARTH_MUST_CHECK enum hearth_status
hearth_pool_new(const char *url, unsigned max_connections, struct hearth_pool **ret_pool, struct hearth_err *err);
void hearth_pool_free(struct hearth_pool *pool);
/* A connected connection; waits for a free one until the request's deadline, at most 10 s (UNAVAILABLE then). */
HEARTH_MUST_CHECK enum hearth_status hearth_pool_take(struct hearth_pool *pool,
                                                      struct hearth_cancel *cancel,
                                                      struct hearth_pg **ret_pg,
                                                      struct hearth_err *err);
/* Give it back; a broken one is closed. */
void hearth_pool_give(struct hearth_pool *pool, struct hearth_pg *pg);

/* ---- migrate.c ---- */
/*
 * Create schema hearth_data and apply what is missing of hearth_embedded_migrations, under an advisory lock, each in a transaction, with
 * its checksum. FAILED_PRECONDITION: the database has a newer or an altered history (the message names the file).
 */
HEARTH_MUST_CHECK enum hearth_status hearth_migrate(struct hearth_pg *pg, struct hearth_err *err);

/* ---- catalog_*.c ---- */
HEARTH_MUST_CHECK enum hearth_status
hearth_catalog_new(struct hearth_store *store, struct hearth_catalog **ret_catalog, struct hearth_err *err);
void hearth_catalog_free(struct hearth_catalog *catalog);
/* Bring everything up to the database's version (first: load). */
HEARTH_MUST_CHECK enum hearth_status hearth_catalog_refresh(struct hearth_catalog *catalog,
                                                            struct hearth_cancel *cancel,
                                                            struct hearth_err *err);

/* ---- partitions.c ---- */
/* Make sure the leaves of the day (days since the epoch) exist: profile, dict_chunk, series_hour. Memory first. */
HEARTH_MUST_CHECK enum hearth_status hearth_partitions_ensure(struct hearth_store *store,
                                                              struct hearth_pg *pg,
                                                              int32_t day,
                                                              struct hearth_err *err);

/* ---- ingest_dict.c ---- */
struct hearth_ingest_dict {
    int32_t service_id, day, writer_id;
    pthread_mutex_t lock; /* guards writer */
    struct hearth_dict_writer *writer;
    _Atomic uint32_t refs; /* items and callers; evicted only at 0 and when nothing is pending */
    struct hearth_ingest_dict *lru_prev, *lru_next, *hash_next; /* under dicts.lock */
    size_t n_bytes;                                             /* as last accounted, under dicts.lock */
};
HEARTH_MUST_CHECK enum hearth_status
hearth_ingest_dicts_new(struct hearth_store *store, struct hearth_ingest_dicts **ret_dicts, struct hearth_err *err);
void hearth_ingest_dicts_free(struct hearth_ingest_dicts *dicts);

/* ---- committer.c ---- */
HEARTH_MUST_CHECK enum hearth_status hearth_committers_start(struct hearth_store *store,
                                                             struct hearth_committers **ret_committers,
                                                             struct hearth_err *err);
void hearth_committers_stop(struct hearth_committers *committers, int64_t deadline_mono_ns);

/* ---- read_dict.c ---- */
HEARTH_MUST_CHECK enum hearth_status
hearth_read_cache_new(struct hearth_store *store, struct hearth_read_cache **ret_cache, struct hearth_err *err);
void hearth_read_cache_free(struct hearth_read_cache *cache);

static inline int32_t hearth_day_of(int64_t ts_ns)
{
    return (int32_t)(ts_ns / HEARTH_NS_PER_DAY - (ts_ns % HEARTH_NS_PER_DAY < 0));
}

static inline int32_t hearth_hour_of(int64_t ts_ns)
{
    return (int32_t)(ts_ns / HEARTH_NS_PER_HOUR - (ts_ns % HEARTH_NS_PER_HOUR < 0));
}

#endif
