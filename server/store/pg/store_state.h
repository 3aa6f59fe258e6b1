/*
 * store_state.h -- the parts of a store and how they meet (private to the store).
 *
 * A store is a root and rooms, each a folder with a README. A part of a store has its own state and lock, which its
 * room defines; here are the pointers to the parts, and the state of small ones:
 *   root       store.c: connects, migrates, registers the writer, loads the catalogue; then keeps house
 *   pool       pg/pool.c: connections for readers and the catalogue, bounded
 *   replica    pg/replica.c: reads on another node, if there is one
 *   partitions pg/partitions.c: which leaves exist
 *   disk       pg/disk.c: how full it is
 *   catalog    catalog/: tenants, services, series, hours: writes and the index in memory
 *   settings   catalog/settings.c: settings of tenants
 *   cache      read/read_dict.c: dictionaries of queries
 *   builder    build/: roll-ups, compaction, deletion, retention; erase, retention and rule_evaluator are its state
 *   committers commit/: group commit; dicts: the dictionaries of ingest
 *   monitors   policies/: the writer of metrics
 *   poll_memo  tasks/task_delivery.c: which agents ask
 *   trace_writer  spans/: the queue of spans and snapshots and its thread
 *
 * The order of locks is that of enum hearth_store_rank. No lock is held while a statement runs.
 */
#ifndef HEARTH_STORE_STATE_H
#define HEARTH_STORE_STATE_H

#include "hearth/base/clock.h"
#include "hearth/base/sync.h"
#include "hearth/store/store_rules.h"

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
 * Ranks of the store's locks (hearth/base/sync.h), outermost first: a thread may acquire a lock only
 * if its rank is higher than the ranks of all locks that it holds.
 */
enum hearth_store_rank {
    HEARTH_RANK_SETTINGS_REFRESH = HEARTH_RANKS_STORE, /* settings.refreshing */
    HEARTH_RANK_SETTINGS,                              /* settings.lock */
    HEARTH_RANK_CATALOG,         /* catalog.rw: label indexes of all tenants */
    HEARTH_RANK_CATALOG_WRITERS, /* catalog.writers: the queue of new series */
    HEARTH_RANK_DICTS,           /* dicts.lock: the table of the dictionaries of ingest */
    HEARTH_RANK_DICT,            /* dict.lock: one of them */
    HEARTH_RANK_COMMITTER,       /* committer.lock */
    HEARTH_RANK_TRACE_WRITER,    /* trace_writer.lock */
    HEARTH_RANK_BUILDER,         /* builder.lock */
    HEARTH_RANK_MONITORS,        /* monitors.lock */
    HEARTH_RANK_POOL,            /* pool.lock: which connections are taken */
    HEARTH_RANK_READ_CACHE,      /* cache.lock: the dictionaries of queries */
    /* leaves: no other lock of the store is acquired below them */
    HEARTH_RANK_SERIES_CACHE,
    HEARTH_RANK_CATALOG_REFRESH,
    HEARTH_RANK_PARTITIONS,
    HEARTH_RANK_REPLICA,
    HEARTH_RANK_REASON,
};

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
    struct hearth_mutex reason_lock; /* guards reason */
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

#endif
