/*
 * store_state.h -- the parts of a store, the ranks of its locks (private to the store).
 *
 * A store is a root and rooms, each a folder with a README. A part has a state and a lock, which
 * its room defines; this header has the pointers to the parts, and the state of small parts:
 *   root         store.c: connects, migrates, registers the writer, loads the catalogue;
 *                then runs the housekeeping
 *   pool         pg/pool.c: a bounded set of connections for readers and the catalogue
 *   replica      session/replica.c: reads on another node, if the options name one
 *   nodes        nodes/nodes.c: which node of distributed tables owns a service
 *   partitions   session/partitions.c: the leaves that are known to exist
 *   disk         session/disk.c: how full the disk is
 *   wall         session/wall.c: the role of row-level security
 *   catalog      catalog/: tenants, services, series, hours: writes, and the index in memory
 *   settings     catalog/settings.c: settings of tenants
 *   known_applications  tenants/known_applications.c: which profiles are accepted
 *   cache        read/read_dict.c: dictionaries of queries
 *   builder      build/: roll-ups, compaction, deletion, retention; erase, retention and
 *                rule_evaluator are its state
 *   committers   commit/: group commit
 *   dicts        commit/ingest_dict.c: dictionaries of ingest
 *   monitors     policies/: the writer of metrics
 *   poll_memo    tasks/task_delivery.c: which agents poll this server for tasks
 *   trace_writer spans/: the queue of spans and snapshots, and its thread
 *
 * The order of locks is that of enum hearth_store_rank. Only settings.refreshing is held while a
 * statement runs.
 */
#ifndef HEARTH_STORE_STATE_H
#define HEARTH_STORE_STATE_H

#include "hearth/base/clock.h"
#include "hearth/base/sync.h"
#include "hearth/store/store_rules.h"

#include "pg/lineage.h"

#include <pthread.h>

struct hearth_pool;
struct hearth_catalog;
struct hearth_committers;
struct hearth_ingest_dicts;
struct hearth_read_cache;
struct hearth_partitions;
struct hearth_builder_thread;
struct hearth_known_applications;
struct hearth_settings;
struct hearth_monitors;
struct hearth_replica;
struct hearth_nodes;
struct hearth_node_follower;
struct hearth_poll_memo;
struct hearth_trace_writer;

/*
 * Ranks of the store's locks (hearth/base/sync.h), outermost first: a thread may acquire a lock
 * only if its rank is higher than the ranks of all locks that it holds.
 */
enum hearth_store_rank {
    HEARTH_RANK_SETTINGS_REFRESH = HEARTH_RANKS_STORE, /* settings.refreshing */
    HEARTH_RANK_CATALOG,         /* catalog.rw: label indexes of all tenants */
    HEARTH_RANK_CATALOG_WRITERS, /* catalog.writers: the queue of new series */
    HEARTH_RANK_DICTS,           /* dicts.lock: the table of the dictionaries of ingest */
    HEARTH_RANK_DICT,            /* dict.lock: one of them */
    HEARTH_RANK_COMMITTER,       /* committer.lock */
    HEARTH_RANK_TRACE_WRITER,    /* trace_writer.lock */
    HEARTH_RANK_TRACE_LANES,     /* trace_lanes.lock */
    HEARTH_RANK_BUILDER,         /* builder.lock */
    HEARTH_RANK_NODE_FOLLOWER,   /* node_follower.lock */
    HEARTH_RANK_MONITORS,        /* monitors.lock */
    HEARTH_RANK_POOL,            /* pool.lock: which connections are taken */
    HEARTH_RANK_READ_CACHE,      /* cache.lock: the dictionaries of queries */
    /* leaves: no other lock of the store is acquired below them */
    HEARTH_RANK_SETTINGS,           /* settings.lock: the settings of all tenants */
    HEARTH_RANK_KNOWN_APPLICATIONS, /* known_applications.lock: applications and rules */
    HEARTH_RANK_SEEN,               /* known_applications.seen_lock: services that were seen */
    HEARTH_RANK_SERIES_CACHE,
    HEARTH_RANK_CATALOG_REFRESH,
    HEARTH_RANK_PARTITIONS,
    HEARTH_RANK_REPLICA,
    HEARTH_RANK_NODES,
    HEARTH_RANK_REASON,
    HEARTH_RANK_LINEAGE,
};

/*
 * Keys of transaction-level advisory locks: random, so that no other program of the database uses
 * them.
 */
#define HEARTH_LOCK_MIGRATE    "4721170935208671301"
#define HEARTH_LOCK_PARTITIONS "4721170935208671302"
/*
 * Every ingest transaction holds it, shared, from its first statement on. Roll-ups wait for these
 * transactions by it.
 */
#define HEARTH_LOCK_INGEST "4721170935208671303"

#define HEARTH_WALL_ROLE_BYTES 64 /* a name of PostgreSQL and its NUL */

/* State of wall.c. role is written before is_up is set, and not changed afterwards. */
struct hearth_wall_role {
    _Atomic bool is_up;
    char role[HEARTH_WALL_ROLE_BYTES];
};

/*
 * Background work that can wait begins this long after the start: the first queries, which read
 * dictionaries and label indexes, need not share the processors with it.
 */
#define HEARTH_QUIET_START_NS (15 * HEARTH_NS_PER_SEC)

/* State of disk.c. Any thread reads the atomic fields; the boot thread writes. */
struct hearth_disk {
    _Atomic int state; /* enum disk_state of disk.c */
    _Atomic int64_t n_bytes, n_free;
    int64_t next_sizes_mono_ns; /* time of the next measurement; the boot thread's own */
};

/* The tombstone that erase_step.c works on, and how far it is. Belongs to the builder thread. */
struct hearth_erase_progress {
    int64_t erasure_id;
    int32_t service_id; /* 0: no tombstone */
    int stage;          /* rows, then segments, then days: the enum of erase_step.c */
    int64_t next_ns;    /* stage rows: erased up to this time */
    int32_t next_day;   /* stage days: the first day that is left */
    int64_t segment_t0_ns, segment_part; /* stage segments: key of the last checked segment */
    int32_t segment_ordinal;
};

/* How far retention_step.c is in its round. Belongs to the builder thread. */
struct hearth_retention_progress {
    int64_t next_pass_mono_ns, next_rows_mono_ns, next_sweep_mono_ns; /* when each is due; 0: now */
    int64_t settled_mono_ns;     /* from then on, the present settings are applied */
    uint64_t settings;           /* a hash of the settings of all tenants; 0: not read yet */
    int32_t tenant_id, next_day; /* the tenant in work, and the first day that is left of it */
    unsigned table;              /* index of the table in work */
    int32_t sweep_service;       /* the last service whose series were swept */
};

struct hearth_store {
    struct hearth_store_options options; /* of the start; some fields of it are replaced by live */
    _Atomic(const struct hearth_store_options *) live; /* read by hearth_store_live */
    struct hearth_lineage lineage;                     /* checked by connections to the primary */
    struct hearth_secret *url;                         /* owned copy; options.url points here */
    struct hearth_pool *pool;
    struct hearth_catalog *catalog;
    struct hearth_committers *committers;
    struct hearth_ingest_dicts *dicts;
    struct hearth_read_cache *cache;
    /* Set once: migrated, the writer is registered, the catalogue is loaded. */
    _Atomic bool ready;
    /* Why nothing may be written (read_only_text); NULL: writing is allowed. Set before ready. */
    _Atomic(const char *) read_only;
    char read_only_text[256];
    _Atomic bool closing; /* hearth_store_close was called */
    /* This server's; changes when a dictionary is evicted (ingest_dict.c). */
    _Atomic int32_t writer_id;
    _Atomic int64_t next_upload;     /* count of the next one, from 1 */
    struct hearth_mutex reason_lock; /* guards reason and the numbers of looks */
    char reason[256];                /* why the store is not ready, or why it is away */
    pthread_t boot_thread;
    bool boot_started;
    struct hearth_partitions *partitions;
    _Atomic bool away; /* after ready: the database cannot be reached now; reason says why */
    struct hearth_cancel boot_cancel; /* cancels the statements of the boot thread; set by close */
    pthread_cond_t boot_wake;         /* with reason_lock: ends the boot thread's sleep */
    pthread_cond_t looked;            /* with reason_lock: n_looked has grown */
    uint64_t n_looks_wanted;          /* calls of hearth_store_look_whether_away */
    uint64_t n_looked;                /* those for which the database was tried */
    int32_t batch_writer_id; /* the first writer id: key of ingest_batch rows; set before ready */
    struct hearth_replica *replica; /* NULL: reads run on the primary */
    struct hearth_nodes *nodes;     /* NULL: one database has all data; set before ready */
    struct hearth_node_follower *node_follower; /* started when ready, if there are nodes */
    struct hearth_trace_writer *trace_writer;   /* started when ready */
    struct hearth_builder_thread *builder;      /* started when ready, unless switched off */
    struct hearth_settings *settings;
    struct hearth_known_applications *known_applications;
    struct hearth_monitors *monitors;
    struct hearth_poll_memo *poll_memo;
    struct hearth_disk disk;
    struct hearth_wall_role wall;
    _Atomic bool is_distributed;    /* see nodes/layout.h; set before ready */
    _Atomic int64_t clock_ahead_ns; /* see hearth_store_clock_ahead_ns */
    struct hearth_erase_progress erase;
    struct hearth_retention_progress retention;
    struct hearth_rule_evaluator rule_evaluator; /* written before has_rule_evaluator is set */
    _Atomic bool has_rule_evaluator;
};

/* The options that hearth_store_set_options may change while the store runs. */
static inline const struct hearth_store_options *hearth_store_live(const struct hearth_store *store)
{
    return atomic_load_explicit(&store->live, memory_order_acquire);
}

#endif
