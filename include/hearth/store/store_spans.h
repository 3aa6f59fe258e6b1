/*
 * store_spans.h -- spans of traces and thread snapshots of traced requests (sql/0008_spans.sql).
 *
 * Written by one thread, which gathers what is queued and commits it together; `done` is called after COMMIT. What comes
 * twice is stored once. Services and instances that spans come from are made or refreshed on the way.
 *
 * Units:     spans in nanoseconds, snapshots in milliseconds, since the epoch.
 * Ownership: an item is the caller's and stays untouched until `done`; answers live in the arena given.
 * Threads:   safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, and what each function says.
 */
#ifndef HEARTH_STORE_SPANS_H
#define HEARTH_STORE_SPANS_H

#include "hearth/model/snapshot_trees.h"
#include "hearth/model/span_group.h"
#include "hearth/store/store.h"

/* What the database says of a group in one number. */
enum hearth_span_group_flags {
    HEARTH_GROUP_RAW = 1,
    HEARTH_GROUP_ERRORS = 2,
    HEARTH_GROUP_CUT = 4,
};

struct hearth_task_snapshot {
    struct hearth_str task_id, segment_id;
    struct hearth_snapshot snapshot; /* its number at least 0 */
};

/* Snapshots of one segment as they are stored. */
struct hearth_snapshot_run {
    struct hearth_str task_id, segment_id;
    int32_t first_sequence, last_sequence, n_snapshots;
    int64_t first_ms, last_ms;
    struct hearth_str snapshots; /* hearth_snapshots_encode, as hearth_unpack reads it */
};

struct hearth_trace_item {
    struct hearth_str tenant;
    const struct hearth_span_group *groups;
    size_t n_groups;
    /* Groups of services without a trace task, now or within the last ten minutes, are not kept. */
    bool only_profiled;
    const struct hearth_task_snapshot *snapshots; /* of tasks that do not exist: ignored */
    size_t n_snapshots;
    int64_t max_snapshots; /* of a segment: when it has as many, no more are stored; 0: no limit */
    int64_t max_instances, max_processes; /* of the tenant; 0: no limit */
    /* From the writer's thread, exactly once. Must not block. */
    void (*done)(struct hearth_trace_item *item, enum hearth_status status,
                 const struct hearth_err *err);
    /* The store's own. */
    struct hearth_trace_item *next;
    int64_t queued_mono_ns;
    size_t n_bytes;
};

/* UNAVAILABLE when the queue (max-span-queue-bytes) is full or the store is closing: done is not called then. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_submit_traces(struct hearth_store *store,
                                              struct hearth_trace_item *item,
                                              struct hearth_err *err);

/* ---- spans ---- */

struct hearth_group_place {
    int32_t service_id;
    int64_t start_ns;
};

/* Of these traces, else of these segments, else at these places, else of what the rest says. */
struct hearth_span_query {
    const struct hearth_str *trace_ids;
    size_t n_trace_ids;
    const struct hearth_str *segment_ids;
    size_t n_segment_ids;
    bool is_raw; /* the ids are bytes */
    const struct hearth_group_place *places;
    size_t n_places;
    struct hearth_str service;
    struct hearth_str instance, endpoint; /* empty: any */
    int64_t from_ns, to_ns;               /* that begin in it, both ends included */
    size_t limit;                         /* 0: none */
};

/* The latest first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_span_groups(const struct hearth_scope *scope,
                                            const struct hearth_span_query *query,
                                            struct hearth_span_group **ret, size_t *ret_n,
                                            struct hearth_err *err);

/* Whether any tenant has any: where nobody stores spans, nobody need look for them. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_has_span_groups(const struct hearth_scope *scope, bool *ret,
                                                struct hearth_err *err);

/* ---- snapshots ---- */

/* All stored of these segments, by segment and number; runs may overlap. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_snapshot_runs(const struct hearth_scope *scope,
                                              const struct hearth_str *segment_ids, size_t n_ids,
                                              struct hearth_snapshot_run **ret, size_t *ret_n,
                                              struct hearth_err *err);

struct hearth_segment_snapshots {
    struct hearth_str task_id, segment_id;
    struct hearth_str instance; /* empty: the segment itself has not come */
    int64_t n_snapshots, first_ms, last_ms;
};

/* What these tasks have of each segment, by task and time of the first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_segment_snapshots(const struct hearth_scope *scope,
                                                  const struct hearth_str *task_ids, size_t n_ids,
                                                  struct hearth_segment_snapshots **ret,
                                                  size_t *ret_n, struct hearth_err *err);

/* ---- imported tasks ---- */

/*
 * Groups and snapshots of an imported trace task, which need not have a row yet: kept with it, and not as requests of a
 * service. One transaction, repeatable.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_imported_put(const struct hearth_scope *scope,
                                             struct hearth_str task_id,
                                             int32_t service_id, /* of the task */
                                             const struct hearth_span_group *groups,
                                             size_t n_groups,
                                             const struct hearth_snapshot_run *runs, size_t n_runs,
                                             struct hearth_err *err);
/* The groups of such a task, the latest first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_imported_groups(const struct hearth_scope *scope,
                                                struct hearth_str task_id,
                                                struct hearth_span_group **ret, size_t *ret_n,
                                                struct hearth_err *err);

#endif
