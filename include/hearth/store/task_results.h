/*
 * task_results.h -- results of profiling tasks: stack traces of runs, and uploaded files
 * (sql/0007_task_results.sql; model/task.h).
 *
 * Times are milliseconds since the epoch. The task of a result need not exist.
 *
 * Ownership: inputs are borrowed, answers live in scope->arena.
 * Threads:   safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, CORRUPT (stored bytes), and the errors named at each
 *            function. _put functions also: RESOURCE_EXHAUSTED while the disk is too full for
 *            profiles.
 */
#ifndef HEARTH_STORE_TASK_RESULTS_H
#define HEARTH_STORE_TASK_RESULTS_H

#include "hearth/model/task.h"
#include "hearth/model/task_chunk.h"
#include "hearth/store/store.h"

/* ---- stack traces ---- */

/* A stored part of a flush that is not an ordinary profile yet. */
struct hearth_task_part {
    int32_t part;
    struct hearth_hash128 hash; /* of chunk */
    struct hearth_task_chunk chunk;
    struct hearth_profile_id
        profile; /* set by the caller for hearth_store_task_parts_pushed; {0, 0}: a repeated push */
};

/* Stack traces of a task on a process, gathered since the flush before, until at_ms. */
struct hearth_task_flush {
    struct hearth_str task_id, process_id;
    struct hearth_str schedule_id;
    int64_t start_ms, at_ms;
    const struct hearth_task_chunk *chunk; /* not empty */
    /* Filled by _put: */
    int64_t schedule_no;
    int32_t service_id;
    struct hearth_str service, instance, process; /* names of the process; empty: not known */
    struct hearth_str task_service;               /* service of the task; empty: not known */
    int64_t previous_ms; /* time of the flush before; 0: this is the first */
    struct hearth_task_part *parts;
    size_t n_parts;
    uint64_t n_repeated; /* records that are stored already */
};

/*
 * Store flushes in one transaction: runs are created or extended, and the records that no stored
 * part of the same flush has become a new part. unknown_service_id: the service of runs whose
 * process and task are not known; 0: NOT_FOUND for these, and nothing is stored. is_pushed: the
 * parts will not become profiles.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_flushes_put(const struct hearth_scope *scope,
                                                 struct hearth_task_flush *flushes, size_t n,
                                                 int32_t unknown_service_id, bool is_pushed,
                                                 struct hearth_err *err);
/* Mark all parts of the flushes as profiles. arena: not used. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_parts_pushed(const struct hearth_scope *scope,
                                                  const struct hearth_task_flush *flushes, size_t n,
                                                  struct hearth_err *err);

/* Results that are not profiles yet. */
struct hearth_task_left {
    struct hearth_str tenant;
    struct hearth_str upload_id; /* empty: stack traces of the tenant */
};

/*
 * Results of all tenants, flushed or received within the range (both ends included), that are not
 * profiles: their server was lost, or its push failed. At most 20 files, chosen at random if there
 * are more. The tenant of the scope is ignored.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_left(const struct hearth_scope *scope,
                                          const struct hearth_task_range *range,
                                          struct hearth_task_left **ret, size_t *ret_n,
                                          struct hearth_err *err);
/*
 * Parts of the tenant that are not profiles, flushed within the range. At most `limit` (above 0),
 * chosen at random if there are more, each as a flush with one part and all members that _put would
 * have filled; chunk is the part's. The flush of a damaged part has none: n_parts 0, chunk NULL.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_flushes_left(const struct hearth_scope *scope,
                                                  const struct hearth_task_range *range,
                                                  size_t limit, struct hearth_task_flush **ret,
                                                  size_t *ret_n, struct hearth_err *err);

/* Selects runs of a task or, if task_id is empty, runs by their ids. */
struct hearth_task_schedule_filter {
    struct hearth_str task_id;
    const struct hearth_str *schedule_ids; /* [n_ids] */
    size_t n_ids;
};

/* Runs that pass the filter, sorted by start. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_schedules(const struct hearth_scope *scope,
                                               const struct hearth_task_schedule_filter *filter,
                                               struct hearth_task_schedule **ret, size_t *ret_n,
                                               struct hearth_err *err);

/* Callbacks. `begin` is called first, and again if the read restarts: discard earlier chunks. */
struct hearth_task_chunk_reader {
    void *context;
    enum hearth_status (*begin)(void *context, struct hearth_err *err);
    enum hearth_status (*chunk)(void *context, const struct hearth_task_schedule *schedule,
                                int64_t at_ms,
                                const struct hearth_task_chunk *chunk, /* valid during the call */
                                struct hearth_err *err);
};

/* Which chunks to visit. */
struct hearth_task_chunk_filter {
    const struct hearth_task_schedule *schedules;
    size_t n_schedules;
    const struct hearth_task_range *ranges; /* they do not overlap */
    size_t n_ranges;                        /* 0: all times */
};

/* Visit chunks by run, flush and part. The tenant of the scope is ignored. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_chunks(const struct hearth_scope *scope,
                                            const struct hearth_task_chunk_filter *filter,
                                            const struct hearth_task_chunk_reader *reader,
                                            struct hearth_err *err);

/* ---- files ---- */

/* A segment of a trace with samples in an uploaded pprof file. */
struct hearth_go_segment {
    struct hearth_str segment_id;
    struct hearth_str upload_id, task_id; /* answers only */
    int32_t n_samples;
};

/*
 * Store a file, unless it is stored already. upload->upload_id and n_bytes are set, and is_pushed
 * to the stored value if it is stored already. `segments` have samples in it.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_upload_put(const struct hearth_scope *scope,
                                                struct hearth_task_upload *upload,
                                                const struct hearth_go_segment *segments,
                                                size_t n_segments, struct hearth_err *err);
/*
 * Mark a file: its profiles are stored. The file becomes an original of `profile`; {0, 0}: of none.
 * arena: not used.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_upload_pushed(const struct hearth_scope *scope,
                                                   struct hearth_str upload_id,
                                                   struct hearth_profile_id profile,
                                                   struct hearth_err *err);
/* Files of a task, by time, without their content. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_uploads(const struct hearth_scope *scope,
                                             struct hearth_str task_id,
                                             struct hearth_task_upload **ret, size_t *ret_n,
                                             struct hearth_err *err);
/* A file with its content. NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_upload_get(const struct hearth_scope *scope,
                                                struct hearth_str upload_id,
                                                struct hearth_task_upload *ret,
                                                struct hearth_err *err);
/* Where a pprof file comes from. */
struct hearth_upload_origin {
    struct hearth_str
        event; /* event of its pprof task; empty: its task is not a known pprof task */
    struct hearth_str
        before_id; /* the latest earlier file of the event by the same process; empty: not known */
    int64_t before_ms; /* when the earlier file was received */
};

/*
 * The origin of a stored file. Two files are of the same process if the instance has not polled
 * with a lower cursor in between, as agents do after a restart.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_upload_origin(const struct hearth_scope *scope,
                                                   struct hearth_str upload_id,
                                                   struct hearth_upload_origin *ret,
                                                   struct hearth_err *err);
/* Selects segments of a task's uploads, and by their ids. */
struct hearth_go_segment_filter {
    struct hearth_str task_id;            /* empty: all tasks */
    const struct hearth_str *segment_ids; /* [n_ids] */
    size_t n_ids;                         /* 0: all segments */
};

/*
 * Segments with samples in uploads, sorted by upload time, then segment. A filter without any
 * restriction finds nothing.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_go_segments(const struct hearth_scope *scope,
                                            const struct hearth_go_segment_filter *filter,
                                            struct hearth_go_segment **ret, size_t *ret_n,
                                            struct hearth_err *err);

#endif
