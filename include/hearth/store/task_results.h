/*
 * task_results.h -- what profiling tasks brought: stack traces of runs, and whole files (sql/0007_task_results.sql).
 *
 * Times are milliseconds since the epoch. A task need not exist.
 *
 * Ownership: inputs are borrowed, answers live in the arena given. Threads: safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, CORRUPT (stored bytes), and what each function says; of _put also
 *            RESOURCE_EXHAUSTED while the disk is too full for profiles.
 */
#ifndef HEARTH_STORE_TASK_RESULTS_H
#define HEARTH_STORE_TASK_RESULTS_H

#include "hearth/model/task.h"
#include "hearth/model/task_chunk.h"
#include "hearth/store/store.h"

/* ---- stack traces ---- */

/* What is stored of a flush and is not an ordinary profile yet. */
struct hearth_task_part {
    int32_t part;
    struct hearth_hash128 hash; /* of chunk */
    struct hearth_task_chunk chunk;
    struct hearth_profile_id
        profile; /* the caller's, for hearth_store_task_parts_pushed; {0, 0}: a repetition */
};

/* Stack traces of a task on a process, gathered until at_ms. */
struct hearth_task_flush {
    struct hearth_str task_id, process_id;
    struct hearth_str schedule_id;
    int64_t start_ms, at_ms;
    const struct hearth_task_chunk *chunk; /* not empty */
    /* Filled by _put: */
    int64_t schedule_no;
    int32_t service_id;
    struct hearth_str service, instance, process; /* of the process; empty: not known */
    struct hearth_str task_service;               /* of the task, when it is known */
    int64_t previous_ms;                          /* of the flush before; 0: there is none */
    struct hearth_task_part *parts;
    size_t n_parts;
    uint64_t n_repeated; /* records that an earlier delivery brought */
};

/*
 * One transaction: runs are made or prolonged, what no earlier part of the same flush has is stored as a new
 * part. unknown_service_id: of runs whose process and task are not known; 0: NOT_FOUND for such, nothing is
 * stored. is_pushed: the parts are never to become profiles.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_flushes_put(const struct hearth_scope *scope,
                                                 struct hearth_task_flush *flushes, size_t n,
                                                 int32_t unknown_service_id, bool is_pushed,
                                                 struct hearth_err *err);
/* All parts of the flushes are profiles now. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_parts_pushed(const struct hearth_scope *scope,
                                                  const struct hearth_task_flush *flushes, size_t n,
                                                  struct hearth_err *err);

/* Something that a task brought and that is no profile yet. */
struct hearth_task_left {
    struct hearth_str tenant;
    struct hearth_str upload_id; /* empty: stack traces of the tenant, flushed in the time */
};

/* Of all tenants, that were flushed or received in [from, to]: of servers that were lost, or whose push failed. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_left(const struct hearth_scope *scope, int64_t from_ms,
                                          int64_t to_ms, struct hearth_task_left **ret,
                                          size_t *ret_n, struct hearth_err *err);
/*
 * Parts that are no profiles yet, flushed in [from, to]: of servers that were lost, or whose push failed. At most
 * `limit`, the oldest first, each as a flush with one part and all that _put would have filled; chunk is the part's.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_flushes_left(const struct hearth_scope *scope, int64_t from_ms,
                                                  int64_t to_ms, size_t limit,
                                                  struct hearth_task_flush **ret, size_t *ret_n,
                                                  struct hearth_err *err);

/* By start; of a task, or, with ids, those of them that there are. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_schedules(const struct hearth_scope *scope,
                                               struct hearth_str task_id, /* empty: by ids */
                                               const struct hearth_str *schedule_ids, size_t n_ids,
                                               struct hearth_task_schedule **ret, size_t *ret_n,
                                               struct hearth_err *err);

/* Who reads chunks. `begin` comes first, and once more when the read began anew: forget what came before. */
struct hearth_task_chunk_reader {
    void *context;
    enum hearth_status (*begin)(void *context, struct hearth_err *err);
    enum hearth_status (*chunk)(void *context, const struct hearth_task_schedule *schedule,
                                int64_t at_ms,
                                const struct hearth_task_chunk *chunk, /* valid during the call */
                                struct hearth_err *err);
};

/* Of the schedules, by run, flush and part; ranges do not overlap, none: everything. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_chunks(const struct hearth_scope *scope,
                                            const struct hearth_task_schedule *schedules,
                                            size_t n_schedules,
                                            const struct hearth_task_range *ranges, size_t n_ranges,
                                            const struct hearth_task_chunk_reader *reader,
                                            struct hearth_err *err);

/* ---- files ---- */

#define HEARTH_UPLOAD_ID_TEXT 32

struct hearth_go_segment {
    struct hearth_str segment_id;
    struct hearth_str upload_id, task_id; /* answers only */
    int32_t n_samples;
};

/*
 * Store a file, unless it is there: upload->upload_id and is_pushed say what is stored then. `segments`: those
 * that have samples in it.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_upload_put(const struct hearth_scope *scope,
                                                struct hearth_task_upload *upload,
                                                const struct hearth_go_segment *segments,
                                                size_t n_segments, struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_upload_pushed(const struct hearth_scope *scope,
                                                   struct hearth_str upload_id,
                                                   struct hearth_err *err);
/* Of a task, by time; without their content. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_uploads(const struct hearth_scope *scope,
                                             struct hearth_str task_id,
                                             struct hearth_task_upload **ret, size_t *ret_n,
                                             struct hearth_err *err);
/* With its content. NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_upload_get(const struct hearth_scope *scope,
                                                struct hearth_str upload_id,
                                                struct hearth_task_upload *ret,
                                                struct hearth_err *err);
/* Of a pprof file. */
struct hearth_upload_origin {
    struct hearth_str event; /* of its pprof task; empty: it is not of a pprof task that is known */
    struct hearth_str
        before_id; /* the latest earlier file of the event by the same process; empty: none is known */
    int64_t before_ms; /* when that was received */
};

/*
 * Where a stored file comes from. The same process: the instance has not asked for tasks with a lower cursor since, as
 * agents do after a restart.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_upload_origin(const struct hearth_scope *scope,
                                                   struct hearth_str upload_id,
                                                   struct hearth_upload_origin *ret,
                                                   struct hearth_err *err);
/*
 * In which uploads the segments have samples, or, with a task id and no segments, which segments the task's
 * uploads have. By upload time, then segment.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_go_segments(const struct hearth_scope *scope,
                                            struct hearth_str task_id,
                                            const struct hearth_str *segment_ids, size_t n_ids,
                                            struct hearth_go_segment **ret, size_t *ret_n,
                                            struct hearth_err *err);

#endif
