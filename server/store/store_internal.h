/*
 * store_internal.h -- the parts of a store and how they meet (private to the store).
 *
 * A store is five parts, each with its own file, state and lock:
 *   boot       store.c, migrate.c: connect, migrate, register the writer, load the catalogue;
 *              then housekeeping.c: partitions, trimming
 *   pool       pool.c: connections for readers and the catalogue, bounded
 *   catalog    catalog_*.c: tenants, services, pairs, shapes, series, hours: writes and the
 *              in-memory index
 *   commit     committer.c, batch.c, partitions.c, ingest_dict.c: dictionaries of ingest, group
 *              commit
 *   read       read*.c: what stands where, streams of rows, dictionaries of queries
 *
 * Lock order (a thread may take a lock only below those it holds): catalog.rw, catalog.writers,
 * dicts.lock, dict.lock, committer.lock, pool.lock, cache.lock; partitions.lock and reason_lock are
 * leaves. No lock is held while a statement runs.
 */
#ifndef HEARTH_STORE_INTERNAL_H
#define HEARTH_STORE_INTERNAL_H

#include "hearth/base/sync.h"
#include "hearth/store/store_rules.h"

#include "pg/pg.h"

#include <pthread.h>

struct hearth_pool;
struct hearth_catalog;
struct hearth_committers;
struct hearth_ingest_dicts;
struct hearth_read_cache;
struct hearth_partitions;
struct hearth_builder_thread;
struct hearth_settings;
struct hearth_monitors;
struct hearth_replica;
struct hearth_poll_memo;
struct hearth_trace_writer;

/*
 * Keys of transaction-level advisory locks: random, so that no other program of the database has
 * them.
 */
#define HEARTH_LOCK_MIGRATE    "4721170935208671301"
#define HEARTH_LOCK_PARTITIONS "4721170935208671302"
/* Held, shared, by every ingest transaction from its first statement on: the barrier of roll-ups. */
#define HEARTH_LOCK_INGEST "4721170935208671303"

/* disk.c; next_sizes_mono_ns is the housekeeper's own. */
struct hearth_disk {
    _Atomic int state;
    _Atomic int64_t n_bytes, n_free;
    int64_t next_sizes_mono_ns;
};

/* Where erase_step.c is in its tombstone, and retention_step.c in its round: the builder's own. */
struct hearth_erase_progress {
    int64_t erasure_id;
    int32_t service_id; /* 0: none */
    int stage;
    int64_t next_ns;
    int32_t next_day;
    int64_t segment_t0_ns, segment_part; /* the last one looked at */
    int32_t segment_ordinal;
};
struct hearth_retention_progress {
    int64_t next_pass_mono_ns, next_rows_mono_ns, next_sweep_mono_ns, settled_mono_ns;
    uint64_t settings; /* a hash of all tenants' */
    int32_t tenant_id, next_day;
    unsigned table;
    int32_t sweep_service;
};

struct hearth_store {
    struct hearth_store_options options;
    char *url; /* owned copy; options.url points here */
    struct hearth_pool *pool;
    struct hearth_catalog *catalog;
    struct hearth_committers *committers;
    struct hearth_ingest_dicts *dicts;
    struct hearth_read_cache *cache;
    _Atomic bool ready; /* migrated, writer registered, catalogue loaded once */
    _Atomic bool closing;
    _Atomic int32_t
        writer_id; /* of this server; a new one is taken when a dictionary was evicted (ingest_dict.c) */
    _Atomic int64_t next_profile_no;
    pthread_mutex_t reason_lock; /* guards reason */
    char reason[256];
    pthread_t boot_thread;
    bool boot_started;
    struct hearth_partitions *partitions;
    _Atomic bool away; /* ready once, but the database cannot be reached now: reason says why */
    struct hearth_cancel boot_cancel; /* of what the boot thread runs; set by close */
    pthread_cond_t boot_wake;         /* with reason_lock: ends the boot thread's sleep */
    int32_t batch_writer_id; /* the first writer id: key of ingest_batch rows; set before ready */
    struct hearth_replica *replica;           /* NULL: reads run on the primary */
    struct hearth_trace_writer *trace_writer; /* started when ready */
    struct hearth_builder_thread *builder;    /* started when ready, unless switched off */
    struct hearth_settings *settings;
    struct hearth_monitors *monitors;
    struct hearth_poll_memo *poll_memo;
    struct hearth_disk disk;
    _Atomic int64_t clock_ahead_ns; /* see hearth_store_clock_ahead_ns */
    struct hearth_erase_progress erase;
    struct hearth_retention_progress retention;
    struct hearth_rule_evaluator rule_evaluator; /* set before the next is */
    _Atomic bool has_rule_evaluator;
};

/* ---- store.c ---- */
/* OK, or UNAVAILABLE with the reason: not migrated and loaded yet, or closing. */
HEARTH_MUST_CHECK enum hearth_status hearth_store_check_open(struct hearth_store *store,
                                                             struct hearth_err *err);
/* A connection of the committers was lost or is back: what /ready and the log say. */
void hearth_store_note_away(struct hearth_store *store, const char *reason);
void hearth_store_note_back(struct hearth_store *store);
/* A fresh row of hearth_data.writer. */
HEARTH_MUST_CHECK enum hearth_status hearth_writer_register(struct hearth_pg *pg,
                                                            struct hearth_cancel *cancel,
                                                            int32_t *ret_writer_id,
                                                            struct hearth_err *err);

/* ---- pool.c ---- */
HEARTH_MUST_CHECK enum hearth_status hearth_pool_new(const char *url, unsigned max_connections,
                                                     struct hearth_pool **ret_pool,
                                                     struct hearth_err *err);
void hearth_pool_free(struct hearth_pool *pool);
/*
 * A connected connection; waits for a free one until the request's deadline, at most 10 s
 * (UNAVAILABLE then).
 */
HEARTH_MUST_CHECK enum hearth_status hearth_pool_take(struct hearth_pool *pool,
                                                      struct hearth_cancel *cancel,
                                                      struct hearth_pg **ret_pg,
                                                      struct hearth_err *err);
/* Of statements whose request has no deadline; before the first take. */
void hearth_pool_set_timeout(struct hearth_pool *pool, int64_t timeout_ms);
/* Give it back; one that is broken or in a transaction is closed. */
void hearth_pool_give(struct hearth_pool *pool, struct hearth_pg *pg);

/* ---- migrate.c ---- */
/*
 * Create schema hearth_data and apply what is missing of hearth_embedded_migrations, under an
 * advisory lock, each in a transaction, with its checksum. FAILED_PRECONDITION: the database has a
 * newer or an altered history (the message names the file).
 */
HEARTH_MUST_CHECK enum hearth_status hearth_migrate(struct hearth_pg *pg, struct hearth_err *err);

/* ---- catalog_*.c ---- */
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

/* ---- partitions.c ---- */
HEARTH_MUST_CHECK enum hearth_status
hearth_partitions_new(struct hearth_partitions **ret_partitions, struct hearth_err *err);
void hearth_partitions_free(struct hearth_partitions *partitions);
/* Leaves of a day, a bit for each partitioned table. */
enum {
    HEARTH_LEAF_PROFILE = 1 << 0,
    HEARTH_LEAF_DICT_CHUNK = 1 << 1,
    HEARTH_LEAF_SERIES_HOUR = 1 << 2,
    HEARTH_LEAF_ROLL_10M = 1 << 3,
    HEARTH_LEAF_ROLL_1H = 1 << 4,
    HEARTH_LEAF_ROLL_1D = 1 << 5,
    HEARTH_LEAF_HOUR_TOTALS = 1 << 6,
    HEARTH_LEAF_SEGMENT = 1 << 7,
    HEARTH_LEAF_SPAN_GROUP = 1 << 8,
    HEARTH_LEAF_SPAN_INDEX = 1 << 9,
    HEARTH_LEAF_MONITOR_MINUTE = 1 << 10,
    HEARTH_LEAF_NETWORK_SAMPLE = 1 << 11,
    HEARTH_LEAVES_ALL = (1 << 12) - 1,
    HEARTH_LEAVES_ROLL =
        HEARTH_LEAF_ROLL_10M | HEARTH_LEAF_ROLL_1H | HEARTH_LEAF_ROLL_1D | HEARTH_LEAF_HOUR_TOTALS,
};

/* Forget which leaves of the day are known to be there (a statement just missed its table). */
void hearth_partitions_forget(struct hearth_store *store, int32_t day);
/* "hearth_data.profile_20261120" for ("profile", day); out holds 64 bytes. */
void hearth_partition_name(const char *parent, int32_t day, char out[64]);
/*
 * Make sure that these leaves (HEARTH_LEAF_...) of the day (days since the epoch) exist. Ask for what is about to be
 * written, no more: a leaf takes a few milliseconds to make, and one that retention drops cannot be made until it has
 * gone (UNAVAILABLE). Memory first. `pg` must not be in a transaction.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_partitions_ensure(struct hearth_store *store,
                                                              struct hearth_pg *pg, unsigned leaves,
                                                              int32_t day, struct hearth_err *err);
/* Is a leaf of that parent and day on its way out, so that no other can take its place yet? */
HEARTH_MUST_CHECK enum hearth_status hearth_partitions_is_leaving(struct hearth_pg *pg,
                                                                  const char *parent, int32_t day,
                                                                  bool *ret_leaving,
                                                                  struct hearth_err *err);

/* ---- partitions_drop.c ---- */
#define HEARTH_SCHEMA_DOT     "hearth_data."
#define HEARTH_LEAVING_PREFIX "drop_" /* a leaf on its way out: drop_profile_20261120 */
/*
 * Remove the leaf of the day, without keeping readers or writers waiting; if one is on its way out, only that: a leaf
 * that was made since has profiles of its own. OK when it is gone, or was; UNAVAILABLE while statements that began
 * before read it: call again later. Safe to be killed in, and to call from several servers. `pg` must not be in a
 * transaction; it may be another connection afterwards.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_partitions_drop(struct hearth_store *store,
                                                            struct hearth_pg *pg,
                                                            const char *parent, int32_t day,
                                                            struct hearth_err *err);

/* The same for a leaf that has its leaving name already, or has gone: never another one. */
HEARTH_MUST_CHECK enum hearth_status hearth_partitions_finish_drop(struct hearth_store *store,
                                                                   struct hearth_pg *pg,
                                                                   const char *parent, int32_t day,
                                                                   struct hearth_err *err);

/* The first day from from_day on that has a leaf of one of the parents ("'profile', 'segment'"). */
HEARTH_MUST_CHECK enum hearth_status
hearth_partitions_next_day(struct hearth_pg *pg, const char *quoted_parents, int32_t from_day,
                           int32_t *ret_day, bool *ret_found, struct hearth_err *err);
/* A day whose leaf is on its way out: somebody began to drop it. */
HEARTH_MUST_CHECK enum hearth_status hearth_partitions_leaving(struct hearth_pg *pg,
                                                               const char *parent, int32_t *ret_day,
                                                               bool *ret_found,
                                                               struct hearth_err *err);

/* ---- settings.c ---- */
HEARTH_MUST_CHECK enum hearth_status hearth_settings_new(struct hearth_settings **ret,
                                                         struct hearth_err *err);
void hearth_settings_free(struct hearth_settings *settings); /* NULL-safe */
/* Read all from the database. */
HEARTH_MUST_CHECK enum hearth_status
hearth_settings_refresh(struct hearth_store *store, struct hearth_pg *pg, struct hearth_err *err);

/* ---- reach.c ---- */

/*
 * The begin of the first day that has a leaf of profiles within the tenant's retention: before it
 * none are whole. INT64_MAX: there is none.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_profiles_reach(struct hearth_store *store,
                                                           struct hearth_pg *pg,
                                                           struct hearth_str tenant,
                                                           int64_t *ret_ns, struct hearth_err *err);
/*
 * Raise *reach_ns, a day's begin, past the last day of which the service has roll-ups without their
 * profiles: blocks from there on can be built again. Looks from the day of from_ns on.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_profiles_check_reach(struct hearth_pg *pg,
                                                                 int32_t service_id,
                                                                 int64_t from_ns, int64_t *reach_ns,
                                                                 enum hearth_pg_fault *ret_fault,
                                                                 struct hearth_err *err);

/* ---- disk.c ---- */
/* RESOURCE_EXHAUSTED while the disk is too full for profiles. */
HEARTH_MUST_CHECK enum hearth_status hearth_disk_check(struct hearth_store *store,
                                                       struct hearth_err *err);
/* Once in a while: look how full it is. */
HEARTH_MUST_CHECK enum hearth_status hearth_disk_look(struct hearth_store *store,
                                                      struct hearth_pg *pg, struct hearth_err *err);

/* ---- clocks.c ---- */
/* Once in a while: compare the database's clock with ours. */
HEARTH_MUST_CHECK enum hearth_status
hearth_clocks_compare(struct hearth_store *store, struct hearth_pg *pg, struct hearth_err *err);
/* A difference as a sentence; empty for 0. */
void hearth_clocks_explain(int64_t ahead_ns, char out[256]);

/* ---- ingest_dict.c ---- */
struct hearth_ingest_dict {
    int32_t service_id, day, writer_id;
    pthread_mutex_t lock; /* guards writer */
    struct hearth_dict_writer *writer;
    _Atomic uint32_t refs; /* items and callers; evicted only at 0; changed under dicts.lock */
    struct hearth_ingest_dict *lru_prev, *lru_next, *hash_next; /* under dicts.lock */
    size_t n_bytes;           /* as last accounted, under dicts.lock */
    bool unlinked;            /* out of the table, under dicts.lock: the last reference frees it */
    _Atomic size_t bytes_now; /* after the last resolve */
    _Atomic bool retired;     /* the next acquire makes another in its place */
};
HEARTH_MUST_CHECK enum hearth_status hearth_ingest_dicts_new(struct hearth_store *store,
                                                             struct hearth_ingest_dicts **ret_dicts,
                                                             struct hearth_err *err);
void hearth_ingest_dicts_free(struct hearth_ingest_dicts *dicts);

/*
 * The committer of the service only. Append what is pending to `out` as one chunk; false when
 * nothing is. After COMMIT: _commit. Retire: no new profile gets it any more.
 */
HEARTH_MUST_CHECK bool hearth_ingest_dict_cut(struct hearth_ingest_dict *dict,
                                              struct hearth_buf *out,
                                              struct hearth_dict_mark *ret_from,
                                              struct hearth_dict_mark *ret_upto);
void hearth_ingest_dict_commit(struct hearth_ingest_dict *dict, struct hearth_dict_mark upto);
void hearth_ingest_dict_retire(struct hearth_ingest_dict *dict);

/* ---- housekeeping.c ---- */
/* Everything that is due now, on a connection of the boot thread. `times` starts as zeros. */
struct hearth_housekeeping {
    int64_t next_partitions_ns, next_trim_ns, next_disk_ns, next_agents_ns,
        next_network_ns; /* monotonic */
};
HEARTH_MUST_CHECK enum hearth_status hearth_housekeeping_run(struct hearth_store *store,
                                                             struct hearth_pg *pg,
                                                             struct hearth_housekeeping *times,
                                                             struct hearth_err *err);

/* ---- agents_expire.c ---- */
/* Instances and processes that nobody reported for that long go; 0: none do. */
HEARTH_MUST_CHECK enum hearth_status hearth_agents_expire(struct hearth_pg *pg, int64_t retain_ns,
                                                          struct hearth_err *err);

/* ---- task_results_expire.c ---- */
/* Stack traces and files of tasks that are over for that long, or gone; 0: none go. */
HEARTH_MUST_CHECK enum hearth_status
hearth_task_results_expire(struct hearth_pg *pg, int64_t retain_ns, struct hearth_err *err);

/* ---- network_expire.c ---- */
HEARTH_MUST_CHECK enum hearth_status
hearth_network_expire(struct hearth_store *store, struct hearth_pg *pg, struct hearth_err *err);

/* ---- snapshots_expire.c ---- */
/* Snapshots that came longer ago, of tasks that ended as long ago or are gone. 0: none go. */
HEARTH_MUST_CHECK enum hearth_status
hearth_snapshots_expire(struct hearth_pg *pg, int64_t retain_ns, struct hearth_err *err);

/* ---- task_delivery.c ---- */
/* For which agents this server has noted that they ask; NULL without memory. */
struct hearth_poll_memo *hearth_poll_memo_new(void);
void hearth_poll_memo_free(struct hearth_poll_memo *memo); /* NULL-safe */

/* ---- tasks_expire.c ---- */
/* Tasks that ended before that; 0: none. */
HEARTH_MUST_CHECK enum hearth_status hearth_tasks_expire(struct hearth_pg *pg, int64_t retain_ns,
                                                         struct hearth_err *err);

/* ---- committer.c ---- */
/* No batch with a lower seq will be sent again. */
int64_t hearth_committers_settled_below(struct hearth_committers *all);
HEARTH_MUST_CHECK enum hearth_status
hearth_committers_start(struct hearth_store *store, struct hearth_committers **ret_committers,
                        struct hearth_err *err);
void hearth_committers_stop(struct hearth_committers *all, int64_t deadline_mono_ns);

/* ---- read_dict.c ---- */
HEARTH_MUST_CHECK enum hearth_status hearth_read_cache_new(struct hearth_store *store,
                                                           struct hearth_read_cache **ret_cache,
                                                           struct hearth_err *err);
void hearth_read_cache_free(struct hearth_read_cache *cache);

#endif
