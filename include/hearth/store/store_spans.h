/*
 * store_spans.h -- spans of traces and thread snapshots of traced requests (sql/0008_spans.sql).
 *
 * One thread per server writes: it gathers queued items and commits them together; `done` is called
 * after COMMIT. Where tables are distributed, each node has one more thread, which stores the spans
 * of its services; an item is done when all of its nodes have stored it. Duplicates are stored
 * once. Services and instances of the spans are created, or their last_seen is raised.
 *
 * Units:     spans in nanoseconds, snapshots in milliseconds, since the epoch.
 * Ownership: an item is the caller's, who must not change it until `done`; answers live in
 *            scope->arena.
 * Threads:   safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, and the errors named at each function.
 */
#ifndef HEARTH_STORE_SPANS_H
#define HEARTH_STORE_SPANS_H

#include "hearth/model/snapshot_trees.h"
#include "hearth/model/span_group.h"
#include "hearth/store/store.h"

/* Properties of a group, stored in one number. */
enum hearth_span_group_flags {
    HEARTH_GROUP_RAW = 1,
    HEARTH_GROUP_ERRORS = 2,
    HEARTH_GROUP_CUT = 4,
};

struct hearth_task_snapshot {
    struct hearth_str task_id, segment_id;
    struct hearth_snapshot snapshot; /* its sequence number is >= 0 */
};

/* Snapshots of one segment, stored in one row. */
struct hearth_snapshot_run {
    struct hearth_str task_id, segment_id;
    int32_t first_sequence, last_sequence, n_snapshots;
    int64_t first_ms, last_ms;
    struct hearth_str snapshots; /* hearth_snapshots_encode, as hearth_unpack reads it */
};

/* Spans and snapshots to be stored. */
struct hearth_trace_item {
    struct hearth_str tenant;
    const struct hearth_span_group *groups;
    size_t n_groups;
    /* Drop groups of services without a trace task, now or within the last ten minutes. */
    bool only_profiled;
    const struct hearth_task_snapshot *snapshots; /* ignored if their task does not exist */
    size_t n_snapshots;
    int64_t max_snapshots;                /* of a segment: further ones are dropped; 0: no limit */
    int64_t max_instances, max_processes; /* of the tenant; 0: no limit */
    /* From the writer's thread, exactly once. Must not block. */
    void (*done)(struct hearth_trace_item *item, enum hearth_status status,
                 const struct hearth_err *err);
    /* Used by the store. */
    struct hearth_trace_item *next;
    int64_t queued_mono_ns;
    size_t n_bytes;
    unsigned n_parts;               /* that nodes of distributed tables have not stored yet */
    enum hearth_status part_status; /* the first failure of a part */
    struct hearth_err part_err;
};

/*
 * Queue an item. UNAVAILABLE: the queue (max-span-queue-bytes) is full or the store is closing;
 * done is not called.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_submit_traces(struct hearth_store *store,
                                              struct hearth_trace_item *item,
                                              struct hearth_err *err);

/* ---- spans ---- */

/* Where a group is stored. */
struct hearth_group_place {
    int32_t service_id;
    int64_t start_ns;
};

/* Filters, in order of precedence: trace_ids, segment_ids, places, then the remaining members. */
struct hearth_span_query {
    const struct hearth_str *trace_ids;
    size_t n_trace_ids;
    const struct hearth_str *segment_ids;
    size_t n_segment_ids;
    bool is_raw; /* the ids are bytes, otherwise texts */
    const struct hearth_group_place *places;
    size_t n_places;
    struct hearth_str service;
    struct hearth_str instance, endpoint; /* empty: any */
    int64_t from_ns, to_ns;               /* range of start times, both ends included */
    size_t limit;                         /* 0: no limit */
};

/* Groups, the latest first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_span_groups(const struct hearth_scope *scope,
                                            const struct hearth_span_query *query,
                                            struct hearth_span_group **ret, size_t *ret_n,
                                            struct hearth_err *err);

/*
 * True if any spans are stored, for any tenant: lets callers skip look-ups. Tenant and arena are
 * not used.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_has_span_groups(const struct hearth_scope *scope, bool *ret,
                                                struct hearth_err *err);

/* ---- snapshots ---- */

/* All snapshots of these segments, by segment and sequence number; runs may overlap. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_snapshot_runs(const struct hearth_scope *scope,
                                              const struct hearth_str *segment_ids, size_t n_ids,
                                              struct hearth_snapshot_run **ret, size_t *ret_n,
                                              struct hearth_err *err);

struct hearth_segment_snapshots {
    struct hearth_str task_id, segment_id;
    struct hearth_str instance; /* empty: the segment itself is not stored */
    int64_t n_snapshots, first_ms, last_ms;
};

/* Snapshots of these tasks, counted by segment; sorted by task and time of the first snapshot. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_segment_snapshots(const struct hearth_scope *scope,
                                                  const struct hearth_str *task_ids, size_t n_ids,
                                                  struct hearth_segment_snapshots **ret,
                                                  size_t *ret_n, struct hearth_err *err);

/* ---- imported tasks ---- */

/* Segments and snapshots of an imported trace task. */
struct hearth_imported_traces {
    struct hearth_str task_id;
    int32_t service_id; /* service of the task */
    const struct hearth_span_group *groups;
    size_t n_groups;
    const struct hearth_snapshot_run *runs; /* their task_id is ignored */
    size_t n_runs;
};

/*
 * Store them; the row of the task need not exist yet. They belong to the task, and do not count as
 * requests of a service. One transaction; stored rows are ignored. RESOURCE_EXHAUSTED: the disk is
 * too full.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_imported_put(const struct hearth_scope *scope,
                                             const struct hearth_imported_traces *traces,
                                             struct hearth_err *err);
/* The groups of such a task, the latest first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_imported_groups(const struct hearth_scope *scope,
                                                struct hearth_str task_id,
                                                struct hearth_span_group **ret, size_t *ret_n,
                                                struct hearth_err *err);

#endif
