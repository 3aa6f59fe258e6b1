/*
 * store.h -- Hearth's tables in PostgreSQL: the catalogue, committed ingest, reads.
 *
 * The only user of libpq. A store opens at once and connects, migrates and loads in the background:
 * until hearth_store_ready() everything answers UNAVAILABLE with the reason. It survives losing its
 * database.
 *
 * Ingest: resolve series (catalogue, memory first) -> get the dictionary of (service, day) ->
 * resolve stacks to dense ids -> submit the encoded rows. Committers (services are spread over them
 * by id) gather what is queued and write it in one transaction; `done` is called after COMMIT.
 * Acknowledged means committed; a commit whose answer was lost is settled by sending the batch
 * again under the same key.
 *
 * Reads: one SQL statement per question, one snapshot, rows streamed to a callback.
 *
 * Ownership: see each function. Tenants are names here; every answer is of one tenant.
 * Threads:   safe: locks internally, unless said otherwise.
 * Errors:    UNAVAILABLE (not connected, queue full: the message says what to do), INTERNAL with the SQLSTATE otherwise;
 *            CANCELLED and DEADLINE_EXCEEDED from the request's hearth_cancel.
 */
#ifndef HEARTH_STORE_STORE_H
#define HEARTH_STORE_STORE_H

#include "hearth/base/cancel.h"
#include "hearth/model/columns.h"
#include "hearth/model/dict.h"
#include "hearth/model/labels.h"
#include "hearth/model/span_index.h"
#include "hearth/selector/label_index.h"
#include "hearth/store/scope.h"

struct hearth_store;

struct hearth_store_options {
    const char *url;              /* libpq URL or key=value text; borrowed during _open */
    unsigned n_committers;        /* connections that write; 2 */
    unsigned max_readers;         /* connections that read at once; 8 */
    int64_t linger_ns;            /* how long a committer waits for company; 3 ms */
    size_t max_batch_rows;        /* 1000 */
    size_t max_queue_rows;        /* refuse above; 20,000 */
    size_t max_queue_bytes;       /* refuse above; 64 MiB */
    size_t label_index_bytes;     /* memory of the label indexes of all tenants; 160 MiB */
    size_t max_series;            /* of one tenant; 0: no limit; 500,000 */
    size_t ingest_dict_bytes;     /* memory of dictionaries that ingest holds; 256 MiB */
    size_t read_dict_bytes;       /* memory of dictionaries that queries hold; 128 MiB */
    int64_t statement_timeout_ms; /* of reads without a deadline of their own; 60,000 */
    const char *read_url;         /* a replica for reads; NULL: none; borrowed during _open */
    int64_t read_wait_ns;         /* how long a read waits for the replica; 500 ms */
    bool builder;                 /* take part in roll-ups, compaction and retention; true */
    int64_t builder_interval_ns;  /* between rounds; 10 s */
    int64_t rollup_grace_ns;      /* a bucket is closed this long after its end; 60 s */
    bool compaction;              /* true */
    int64_t compact_after_ns;     /* an hour is compacted this long after its end; 6 h */
    int64_t retain_raw_ns;        /* profiles (rows and segments); 0: for ever; 7 d */
    int64_t rule_window_ns; /* profiles that come later than this do not count in rules; 8 d */
    int64_t retain_10m_ns, retain_1h_ns, retain_1d_ns; /* blocks; 7 d, 31 d, 366 d */
    int64_t retain_agents_ns;  /* instances and processes that nobody reports; 0: for ever; 7 d */
    int64_t retain_tasks_ns;   /* what tasks brought, after their end; 0: for ever; 7 d */
    int64_t retain_spans_ns;   /* spans of traces; 0: for ever; 3 d */
    int64_t retain_network_ns; /* metrics and sampled requests of network tasks; 0: for ever; 7 d */
    int64_t retain_captured_ns; /* bodies and system calls of sampled requests; 0: for ever; 24 h */
    size_t max_span_queue_bytes; /* refuse spans and snapshots above; 32 MiB */
    int64_t retain_monitors_ns;  /* metrics that policies are about; 7 d */
    int64_t max_disk_bytes;      /* of all our tables: refuse profiles above; 0: no limit */
    int64_t min_free_disk_bytes; /* below data_dir: refuse profiles when less is left; 1 GiB */
    const char
        *data_dir; /* of the embedded PostgreSQL; NULL: somewhere else; borrowed during _open */
};

void hearth_store_options_init(struct hearth_store_options *options); /* the defaults above */

HEARTH_MUST_CHECK
enum hearth_status hearth_store_open(const struct hearth_store_options *options,
                                     struct hearth_store **ret_store, struct hearth_err *err);
/*
 * Stop taking submissions, commit what is queued until the deadline, fail the rest with
 * UNAVAILABLE, close all connections, free. NULL-safe.
 */
void hearth_store_close(struct hearth_store *store, int64_t deadline_mono_ns);

/*
 * False with one line why ("waiting for the database: connection refused"). True with a line: it works, but not as it
 * should (the disk is full, clocks differ). True and nothing is wrong: an empty line.
 */
bool hearth_store_ready(struct hearth_store *store, char reason[256]);
/*
 * How far the database's clock is ahead of this machine's, as of the last look (twice a minute); negative: behind.
 * 0 while they differ by less than 10 s.
 */
int64_t hearth_store_clock_ahead_ns(struct hearth_store *store);

/* ---- ingest ---- */

/*
 * What makes a series: the profile types in column order and its own labels (sorted; without
 * derived ones).
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
 * Ids for n series of one tenant that have a profile at ts_ns, creating what is new (one
 * transaction, shared with whoever waits at the same time). Known series in a known hour cost a
 * hash look-up. Blocks while the catalogue is written.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_resolve_series(struct hearth_store *store, struct hearth_str tenant,
                                               const struct hearth_series_key *keys, size_t n,
                                               int64_t ts_ns, struct hearth_series_ref *ret_refs,
                                               struct hearth_err *err);

/* The dictionary that ingest appends to for (service, day of ts). Held until released. */
struct hearth_ingest_dict;

HEARTH_MUST_CHECK
enum hearth_status hearth_store_dict_acquire(struct hearth_store *store, int32_t service_id,
                                             int64_t ts_ns, struct hearth_ingest_dict **ret_dict,
                                             struct hearth_err *err);
void hearth_store_dict_release(struct hearth_store *store, struct hearth_ingest_dict *dict);
/* hearth_dict_writer_resolve under the dictionary's lock. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_dict_resolve(struct hearth_ingest_dict *dict,
                                             const struct hearth_profile *profile,
                                             const struct hearth_stack_keys *keys,
                                             uint32_t *ret_ids, struct hearth_err *err);

struct hearth_push_row {
    int32_t series_id;
    int64_t duration_ns, period;
    struct hearth_columns columns;
    struct hearth_str attrs; /* empty: none */
    /* The distinct ids in attrs (hearth_associations_of_samples), found as soon as the row is. */
    const struct hearth_association *associations;
    size_t n_associations;
};

/*
 * One pushed profile: its rows (one per label set) commit together or not at all. The caller fills
 * the first part and keeps everything alive until `done`; the item holds a reference to its
 * dictionary until then (the store releases it).
 */
struct hearth_push_item {
    int32_t service_id;
    int64_t ts_ns;
    struct hearth_ingest_dict *dict;
    struct hearth_push_row *rows;
    size_t n_rows;
    bool has_id; /* repeated pushes with the same id_hash within an hour store nothing */
    struct hearth_hash128 id_hash;
    /*
     * From a committer thread, or from hearth_store_withdraw; exactly once. repeated: acknowledged
     * without a second row. Must not block.
     */
    void (*done)(struct hearth_push_item *item, enum hearth_status status,
                 const struct hearth_err *err);
    bool repeated;
    int64_t profile_no; /* by the store when submitted: with writer_id the profile's identity */
    int32_t writer_id;
    /* The store's own; zero before the submission. */
    struct hearth_push_item *prev, *next;
    int64_t queued_mono_ns;
    size_t n_bytes;
    int stage; /* enum hearth_item_stage of the commit queue */
    bool is_withdrawn;
};

/*
 * UNAVAILABLE when the queue is full or the store is closing (done is not called then; the
 * dictionary stays the caller's).
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_submit(struct hearth_store *store, struct hearth_push_item *item,
                                       struct hearth_err *err);

/*
 * Nobody waits for the item any more: do not store it, unless a transaction with it may be under way.
 * Returns whether it is or may be stored. An item that still waits in the queue ends here: its `done`
 * is called with `status` and `err`. One that a committer holds ends there, soon. One that was not
 * submitted yet is refused when it is. The caller keeps the item alive during the call; any thread,
 * any number of times, also after `done`.
 */
bool hearth_store_withdraw(struct hearth_store *store, struct hearth_push_item *item,
                           enum hearth_status status, const struct hearth_err *err);

/* ---- reads ---- */

/*
 * The tenant's label index, brought up to date with the database (what any server acknowledged
 * before this call is in it), under a read lock until hearth_store_index_unlock. A tenant without
 * data gives an empty index.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_index_lock(struct hearth_store *store, struct hearth_str tenant,
                                           struct hearth_cancel *cancel,
                                           const struct hearth_label_index **ret_index,
                                           struct hearth_err *err);
void hearth_store_index_unlock(struct hearth_store *store, const struct hearth_label_index *index);

/* One value column of one stored profile, or of a block: the sum of several. */
struct hearth_read_row {
    int32_t service_id, series_id, writer_id; /* series_id < 0: all series of shape -series_id */
    uint16_t column;                          /* of the hit it belongs to */
    int64_t ts_ns;                            /* of a block: its beginning */
    bool is_column0;
    struct hearth_str ids, val, val0; /* val0: column 0, when val is a multiple of it */
    int source;                       /* enum hearth_source (store/read.h) */
    int64_t n_profiles;
    struct hearth_str members; /* of a whole-service block: whose profiles (model/block.h) */
    /* If the plan asks for them (store/read.h), of single profiles: */
    int64_t profile_no, duration_ns;
    struct hearth_str attrs; /* model/sample_attrs.h; p is NULL: none */
};

/* A status other than OK ends the read (store/read.h) with it. Texts are valid during the call. */
typedef enum hearth_status hearth_read_row_fn(void *context, const struct hearth_read_row *row,
                                              struct hearth_err *err);

struct hearth_read_total {
    int32_t service_id, series_id;
    uint16_t column; /* of the hit it belongs to */
    int64_t ts_ns, total;
    int32_t writer_id; /* if the plan asks for identity, as above */
    int64_t profile_no, duration_ns;
};

typedef enum hearth_status
hearth_read_total_fn(void *context, const struct hearth_read_total *total, struct hearth_err *err);

/*
 * The dictionary of (service, day, writer), with at least min_stacks stacks and its name tree, from
 * memory or loaded. Read locked (nobody appends) until released. CORRUPT when the database holds
 * fewer.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_read_dict(struct hearth_store *store, int32_t service_id,
                                          int32_t day, int32_t writer_id, uint32_t min_stacks,
                                          struct hearth_cancel *cancel,
                                          const struct hearth_dict **ret_dict,
                                          struct hearth_err *err);
void hearth_store_read_dict_release(struct hearth_store *store, const struct hearth_dict *dict);

#endif
