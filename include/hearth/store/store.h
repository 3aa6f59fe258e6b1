/*
 * store.h -- Hearth's tables in PostgreSQL: the catalogue, committed ingest, reads.
 *
 * The only user of libpq. A store opens at once and connects, migrates and loads in the background:
 * until hearth_store_ready() all functions return UNAVAILABLE with the reason. It reconnects by
 * itself when it loses its database.
 *
 * Ingest: resolve series (catalogue, memory first) -> get the dictionary of (service, day) ->
 * resolve stacks to dense ids -> submit the encoded rows. Committers (services are spread over them
 * by id) gather the queued rows and write them in one transaction; `done` is called after COMMIT.
 * Acknowledged means committed. When the answer to a commit is lost, the committer sends the batch
 * again under the same key.
 *
 * Reads: one SQL statement per query, one snapshot, rows streamed to a callback.
 *
 * Ownership: stated at each function. Tenants are names here; each call concerns one tenant.
 * Threads:   safe: locks internally, unless a comment says otherwise.
 * Errors:    UNAVAILABLE (not connected, queue full: the message says what to do), otherwise
 *            INTERNAL with the SQLSTATE; CANCELLED and DEADLINE_EXCEEDED from the request's
 *            hearth_cancel.
 */
#ifndef HEARTH_STORE_STORE_H
#define HEARTH_STORE_STORE_H

#include "hearth/base/cancel.h"
#include "hearth/base/secret.h"
#include "hearth/model/columns.h"
#include "hearth/model/dict.h"
#include "hearth/model/labels.h"
#include "hearth/model/span_index.h"
#include "hearth/selector/label_index.h"
#include "hearth/store/scope.h"

struct hearth_store;

/* Whether the database separates tenants, too. */
enum hearth_row_level_security {
    HEARTH_ROW_LEVEL_SECURITY_AUTO,    /* if its role can be used; otherwise /ready says so */
    HEARTH_ROW_LEVEL_SECURITY_REQUIRE, /* the store is not ready without it */
    HEARTH_ROW_LEVEL_SECURITY_OFF,
};

struct hearth_store_options {
    const struct hearth_secret *url; /* libpq URL or key=value text; borrowed during _open */
    unsigned n_committers;           /* connections that write; 2 */
    unsigned max_readers;            /* connections of queries and the catalogue; 8 */
    int64_t linger_ns;               /* how long a committer waits for commit_rows; 6 ms */
    int64_t busy_linger_ns;          /* if an item arrived in the second half of linger_ns; 10 ms */
    size_t commit_rows;              /* rows that are committed at once; 16 */
    int64_t alone_ns; /* mean gap between items from which on may_lead counts; 0: never; 25 ms */
    size_t commit_prepared_rows;          /* rows of a batch by prepared statements; 0: none; 16 */
    size_t max_batch_rows;                /* rows of one commit; 1000 */
    size_t max_queue_rows;                /* more rows are refused; 20,000 */
    size_t max_queue_bytes;               /* more bytes are refused; 64 MiB */
    bool share_queue;                     /* a tenant has three quarters of it; otherwise all */
    size_t label_index_bytes;             /* memory of the label indexes of all tenants; 160 MiB */
    size_t max_services;                  /* of one tenant; 0: no limit; 10,000 */
    size_t max_series;                    /* of one tenant; 0: no limit; 500,000 */
    size_t ingest_dict_bytes;             /* memory of dictionaries that ingest holds; 256 MiB */
    size_t read_dict_bytes;               /* memory of dictionaries that queries hold; 128 MiB */
    int64_t statement_timeout_ms;         /* limit of statements without a deadline; 60,000 */
    const struct hearth_secret *read_url; /* a replica for reads; may be NULL; borrowed in _open */
    int64_t read_wait_ns;                 /* how long a read waits for the replica; 500 ms */
    bool node_connections;      /* connect to the nodes of distributed tables themselves; true */
    const char *node_addresses; /* "known:port=host:port,.."; NULL: as Citus knows them; borrowed */
    int64_t partition_days_ahead;   /* days after today whose leaves are made; 3; at least 1 */
    bool builder;                   /* take part in roll-ups, compaction and retention; true */
    int64_t builder_interval_ns;    /* pause between rounds; 10 s */
    int64_t rollup_grace_ns;        /* a bucket is closed this long after its end; 60 s */
    int64_t rollup_min_profiles;    /* blocks that would sum fewer are left out; 0: none; 16 */
    int64_t rollup_min_profiles_1h; /* the same of hours and days; 40 */
    bool compaction;                /* rewrite closed hours into segments; true */
    int64_t compact_after_ns;       /* an hour is compacted this long after its end; 6 h */
    int64_t retain_raw_ns;          /* profiles (rows and segments); 0: for ever; 7 d */
    int64_t rule_window_ns; /* profiles that arrive later than this are ignored by rules; 8 d */
    int64_t retain_10m_ns, retain_1h_ns, retain_1d_ns; /* blocks; 7 d, 31 d, 366 d */
    int64_t retain_agents_ns; /* instances and processes, after the last report; 0: for ever; 7 d */
    int64_t retain_tasks_ns;  /* results of tasks, after their end; 0: for ever; 7 d */
    int64_t retain_uploads_ns;   /* uploads of people, after their end; 0: for ever; 7 d */
    int64_t max_originals_bytes; /* of a tenant; the oldest are deleted; 0: no limit; 1 GiB */
    int64_t upload_idle_ns;      /* unfinished uploads that receive nothing; 0: for ever; 1 d */
    int64_t retain_spans_ns;     /* spans of traces; 0: for ever; 3 d */
    int64_t retain_network_ns; /* metrics and sampled requests of network tasks; 0: for ever; 7 d */
    int64_t retain_captured_ns; /* bodies and system calls of sampled requests; 0: for ever; 24 h */
    int64_t retain_ingest_errors_ns; /* after the latest upload of a row; 0: for ever; 7 d */
    int64_t retain_audit_ns;         /* the audit log; whole months; 0: for ever; 400 d */
    int64_t max_ingest_errors;       /* rows of a tenant; 0: no limit; 1000 */
    size_t max_span_queue_bytes;     /* more spans and snapshots are refused; 32 MiB */
    int64_t retain_monitors_ns;      /* metrics of policies; 7 d */
    int64_t max_disk_bytes; /* of all Hearth tables; with more, profiles are refused; 0: no limit */
    int64_t max_disk_sample_bytes; /* of a table, for an estimate by service; 0: all; 16 MiB */
    int64_t disk_metric_tenants; /* that have lines in hearth_tenant_disk_bytes; 0: no metric; 0 */
    int64_t min_free_disk_bytes; /* free below data_dir; with less, profiles are refused; 1 GiB */
    enum hearth_row_level_security row_level_security; /* AUTO */
    /* Folder of the embedded PostgreSQL; NULL: an external one. Kept until _close. */
    const char *data_dir;
};

void hearth_store_options_init(struct hearth_store_options *options); /* the defaults above */
/* INVALID_ARGUMENT for options that no store could be opened with. `url` may still be NULL. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_check_options(const struct hearth_store_options *options,
                                              struct hearth_err *err);

HEARTH_MUST_CHECK
enum hearth_status hearth_store_open(const struct hearth_store_options *options,
                                     struct hearth_store **ret_store, struct hearth_err *err);

/*
 * Apply new values of the retention (retain_*), max_services, max_series, max_disk_bytes,
 * min_free_disk_bytes, max_ingest_errors, max_originals_bytes, upload_idle_ns, compaction,
 * compact_after_ns, rollup_min_profiles, rollup_min_profiles_1h, builder_interval_ns and
 * partition_days_ahead; other options are ignored. Keeps the options until _close. Work in
 * progress may end with the values that it began with.
 */
void hearth_store_set_options(struct hearth_store *store,
                              const struct hearth_store_options *options);

/*
 * Refuse new submissions, commit the queued rows until the deadline, fail the rest with
 * UNAVAILABLE, close all connections and free the store. NULL-safe.
 */
void hearth_store_close(struct hearth_store *store, int64_t deadline_mono_ns);

/*
 * Return whether the store is ready, and one line. False: `reason` says why not ("waiting for the
 * database: connection refused"). True with a line: the store works, but has a problem (the disk is
 * full, clocks differ). True with an empty line: the store has no problem.
 */
bool hearth_store_ready(struct hearth_store *store, char reason[256]);
/* Return whether the database cannot be reached, or was not reached yet; false at the stop. */
bool hearth_store_is_away(struct hearth_store *store);
/*
 * Try to reach the database again, then return the same. For a caller whose statement has just
 * failed. Waits at most timeout_ns.
 */
bool hearth_store_look_whether_away(struct hearth_store *store, int64_t timeout_ns);

/*
 * Return whether the database may have lost commits since the store was opened (restored, or a
 * standby was promoted), and then write why. The ids in memory are then wrong: the store neither
 * reads nor writes any more, and has to be closed.
 */
bool hearth_store_lost(struct hearth_store *store, char reason[256]);

/*
 * Return by how many ns the database's clock was ahead of this machine's at the last comparison
 * (twice a minute); negative: it was late. 0 while they differ by less than 10 s.
 */
int64_t hearth_store_clock_ahead_ns(struct hearth_store *store);

/* ---- schema ---- */

/* `name` is a migration such as "0001_init.sql". */
typedef void hearth_store_migration_fn(void *arg, const char *name);

/*
 * Apply the migrations that the database of a URL lacks, as opening a store does; `on_each`, which
 * may be NULL, is called after each. With `dry_run`, it is called for each that would be applied,
 * and nothing is changed. Blocks. UNAVAILABLE: no connection; FAILED_PRECONDITION: a newer or an
 * altered history.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_migrate(const struct hearth_secret *url, bool dry_run,
                                        hearth_store_migration_fn *on_each, void *arg,
                                        struct hearth_err *err);

/* A line of progress or advice, without its end. */
typedef void hearth_store_scale_out_fn(void *arg, const char *line);

enum hearth_scale_out {
    HEARTH_SCALE_OUT_MOVE, /* distribute the data tables over the nodes of Citus, by service */
    HEARTH_SCALE_OUT_PLAN, /* only say what would move */
    HEARTH_SCALE_OUT_UNDO, /* move all rows to the coordinator, and separate tenants there again */
};

/*
 * Change where the data tables of the database of a URL lie; those that are there already are
 * skipped. *ret_n_tables: the tables that moved, or would move. Blocks, and so do writers of a
 * table while it moves. A run that was interrupted may be repeated. UNAVAILABLE: no connection;
 * FAILED_PRECONDITION: no extension or no nodes, another schema, or a server that runs; INTERNAL:
 * a table would have other rows (nothing is changed).
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_scale_out(const struct hearth_secret *url,
                                          enum hearth_scale_out what,
                                          hearth_store_scale_out_fn *on_line, void *arg,
                                          size_t *ret_n_tables, struct hearth_err *err);

/* ---- ingest ---- */

/*
 * The key of a series: service name, profile types in column order, and its own labels (sorted;
 * without derived labels).
 */
struct hearth_series_key {
    struct hearth_str service_name;
    const struct hearth_str *type_ids;
    size_t n_types;
    struct hearth_labels labels;
};

struct hearth_series_ref {
    int32_t service_id, series_id;
};

/*
 * Return the ids of n series of one tenant that have a profile at ts_ns. New series are created in
 * one transaction, which calls that wait at the same time share. Known series in a known hour cost
 * a hash look-up. Blocks while the catalogue is written.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_resolve_series(struct hearth_store *store, struct hearth_str tenant,
                                               const struct hearth_series_key *keys, size_t n,
                                               int64_t ts_ns, struct hearth_series_ref *ret_refs,
                                               struct hearth_err *err);

/*
 * Return whether all n series and their hour are known in memory, and then their ids. Never blocks.
 */
bool hearth_store_knows_series(struct hearth_store *store, struct hearth_str tenant,
                               const struct hearth_series_key *keys, size_t n, int64_t ts_ns,
                               struct hearth_series_ref *ret_refs);

/* The dictionary that ingest appends to for (service, day of ts). */
struct hearth_ingest_dict;

/* Return the dictionary; the caller holds it until hearth_store_dict_release. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_dict_acquire(struct hearth_store *store, int32_t service_id,
                                             int64_t ts_ns, struct hearth_ingest_dict **ret_dict,
                                             struct hearth_err *err);
void hearth_store_dict_release(struct hearth_store *store, struct hearth_ingest_dict *dict);

/* Call hearth_dict_writer_resolve under the dictionary's lock. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_dict_resolve(struct hearth_ingest_dict *dict,
                                             const struct hearth_profile *profile,
                                             const struct hearth_stack_keys *keys,
                                             uint32_t *ret_ids, struct hearth_err *err);

struct hearth_push_row {
    int32_t series_id;
    int64_t duration_ns, period;
    struct hearth_columns columns;
    struct hearth_str attrs; /* empty: no attributes */
    /* The distinct ids in attrs (hearth_associations_of_samples), stored with the row. */
    const struct hearth_association *associations;
    size_t n_associations;
};

/*
 * One pushed profile. Its rows (one per label set) are committed together or not at all. The caller
 * fills the fields up to `done` and keeps all memory alive until `done` is called. Until then the
 * item holds a reference to its dictionary, which the store releases.
 */
/* A file that a profile was made of. */
struct hearth_push_original {
    struct hearth_str name;        /* valid UTF-8 without NUL */
    struct hearth_str bytes;       /* as sent; empty: the file is not kept */
    int32_t part;                  /* number of the file in its upload, from 0 */
    struct hearth_str client_tags; /* as hearth_original.client_tags; valid UTF-8 without NUL */
};

struct hearth_push_item {
    int32_t service_id;
    struct hearth_str
        tenant; /* its rows wait with others of the tenant; not used after submission */
    int64_t ts_ns;
    struct hearth_ingest_dict *dict;
    struct hearth_push_row *rows;
    size_t n_rows;
    /*
     * Count of the upload (hearth_store_count_upload) that the profile is a part of: its profiles
     * share an id if they are of one service and minute. 0: the profile is an upload of its own.
     */
    int64_t upload_count;
    struct hearth_push_original original; /* stored in the transaction of the rows */
    bool has_id; /* repeated pushes with the same id_hash within an hour store nothing */
    struct hearth_hash128 id_hash;
    /*
     * The caller can keep the profile elsewhere: if the database is away, the item need not wait
     * for it, unless it may be stored already.
     */
    bool may_give_back;
    /*
     * The thread that submits the item has no other work for its caller: it may store the item
     * itself, and call `done`, before hearth_store_submit returns (options.alone_ns).
     */
    bool may_lead;
    /*
     * Called exactly once, by a committer thread, by hearth_store_withdraw, or by
     * hearth_store_submit if may_lead is set. Must not block.
     * item->repeated: the profile was stored before and is acknowledged without a second row.
     * item->is_given_back, with UNAVAILABLE: the database is away, and the profile is not stored.
     */
    void (*done)(struct hearth_push_item *item, enum hearth_status status,
                 const struct hearth_err *err);
    bool repeated, is_given_back;
    int64_t profile_no; /* set at submission: with writer_id, the identity of the profile */
    int32_t writer_id;
    /* Private to the store; zero before the submission. */
    struct hearth_push_item *prev, *next;
    int64_t queued_mono_ns;
    size_t n_bytes;
    unsigned lane;      /* of the commit queue */
    unsigned committer; /* its number */
    int stage;          /* enum hearth_item_stage of the commit queue */
    bool is_withdrawn;
};

/* Return a count for the profiles of one upload. */
int64_t hearth_store_count_upload(struct hearth_store *store);

/*
 * Queue the item. UNAVAILABLE when the queue is full or the store is closing: then `done` is not
 * called, and the caller keeps its reference to the dictionary. With may_lead, the call may take as
 * long as a commit.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_submit(struct hearth_store *store, struct hearth_push_item *item,
                                       struct hearth_err *err);

/*
 * Withdraw an item whose result is not needed any more: it is not stored, unless a transaction with
 * it may be under way. Returns whether the item is or may be stored. For an item in the queue,
 * `done` is called at once with `status` and `err`. For an item that a committer holds, the
 * committer calls `done` soon. An item that is not submitted yet is refused at its submission. The
 * caller keeps the item alive during the call. Any thread may call this, any number of times, also
 * after `done`.
 */
bool hearth_store_withdraw(struct hearth_store *store, struct hearth_push_item *item,
                           enum hearth_status status, const struct hearth_err *err);

/* ---- reads ---- */

/*
 * Return the tenant's label index, updated from the database (it has all profiles that any server
 * acknowledged before this call), under a read lock until hearth_store_index_unlock. The index of a
 * tenant without data is empty. A thread locks one index at a time, and unlocks it itself.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_index_lock(struct hearth_store *store, struct hearth_str tenant,
                                           struct hearth_cancel *cancel,
                                           const struct hearth_label_index **ret_index,
                                           struct hearth_err *err);
/*
 * The same for several tenants at once, with distinct names: ret_indexes[i] is that of tenants[i].
 * One hearth_store_index_unlock, of any of them, unlocks all.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_indexes_lock(struct hearth_store *store,
                                             const struct hearth_str *tenants, size_t n,
                                             struct hearth_cancel *cancel,
                                             const struct hearth_label_index **ret_indexes,
                                             struct hearth_err *err);
void hearth_store_index_unlock(struct hearth_store *store, const struct hearth_label_index *index);

/* One value column of one stored profile, or of a block: the sum of several. */
struct hearth_read_row {
    int32_t service_id, series_id, writer_id; /* series_id < 0: all series of shape -series_id */
    uint16_t column;                          /* column of the hit */
    int64_t ts_ns;                            /* a block has the time of its beginning */
    bool is_column0;
    struct hearth_str ids, val, val0; /* val0: column 0, when val is a multiple of it */
    int source;                       /* enum hearth_source (store/read.h) */
    int64_t n_profiles;
    struct hearth_str members; /* the series in a whole-service block (model/block.h) */
    /* Fields of single profiles, if the plan requests them (store/read.h): */
    int64_t profile_no, duration_ns;
    struct hearth_str attrs; /* model/sample_attrs.h; p is NULL: no attributes */
};

/*
 * Visitor of rows. A status other than OK ends the read (store/read.h), which returns this status.
 * Texts are valid during the call.
 */
typedef enum hearth_status hearth_read_row_fn(void *context, const struct hearth_read_row *row,
                                              struct hearth_err *err);

struct hearth_read_total {
    int32_t service_id, series_id;
    uint16_t column; /* column of the hit */
    int64_t ts_ns, total;
    /* Defined if the plan requests identity; otherwise some sources leave these fields 0. */
    int32_t writer_id;
    int64_t profile_no, duration_ns;
};

typedef enum hearth_status
hearth_read_total_fn(void *context, const struct hearth_read_total *total, struct hearth_err *err);

/* Totals of profiles of one series and column, by ascending time. */
struct hearth_read_totals {
    int32_t service_id, series_id;
    uint16_t column;
    const int64_t *ts_ns, *totals; /* [n]; valid during the call */
    size_t n;                      /* not 0 */
};

typedef enum hearth_status hearth_read_totals_fn(void *context,
                                                 const struct hearth_read_totals *totals,
                                                 struct hearth_err *err);

/* What identifies a dictionary. */
struct hearth_dict_key {
    int32_t service_id, day, writer_id;
};

/*
 * Return a dictionary with at least min_stacks stacks and its name tree, from memory or from the
 * database. It does not change until it is released with hearth_store_read_dict_release. Memory is
 * shared by all tenants: callers have the key from a row that they may see. The arena of the scope
 * is not used. CORRUPT: the database has fewer stacks.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_read_dict(const struct hearth_scope *scope,
                                          struct hearth_dict_key key, uint32_t min_stacks,
                                          const struct hearth_dict **ret_dict,
                                          struct hearth_err *err);
void hearth_store_read_dict_release(struct hearth_store *store, const struct hearth_dict *dict);

#endif
