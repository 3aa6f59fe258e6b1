/*
 * task.h -- profiling tasks, their logs, and their results: runs of stack traces and uploaded
 * files.
 *
 * Times are milliseconds since the epoch.
 *
 * Ownership: texts and arrays are borrowed. Threads: plain values.
 */
#ifndef HEARTH_MODEL_TASK_H
#define HEARTH_MODEL_TASK_H

#include "hearth/base/str.h"
#include "hearth/model/profile_id.h"

/* Numbers as in hearth.v1.TaskKind, TaskOrigin, TaskEvent. */
enum hearth_task_kind {
    HEARTH_TASK_ON_CPU = 1,
    HEARTH_TASK_OFF_CPU = 2,
    HEARTH_TASK_NETWORK = 3,
    HEARTH_TASK_TRACE = 4,
    HEARTH_TASK_ASYNC_PROFILER = 5,
    HEARTH_TASK_PPROF = 6,
};

enum hearth_task_origin {
    HEARTH_TASK_CREATED = 1,
    HEARTH_TASK_BY_POLICY = 2,
    HEARTH_TASK_IMPORTED = 3,
};

enum hearth_task_event {
    HEARTH_TASK_NOTIFIED = 1,
    HEARTH_TASK_FINISHED = 2,
    HEARTH_TASK_TOO_LARGE = 3,
    HEARTH_TASK_FAILED = 4,
};

/* Members that do not apply to the kind of task are empty. */
struct hearth_task {
    struct hearth_str task_id;
    enum hearth_task_kind kind;
    enum hearth_task_origin origin;
    int32_t service_id;
    struct hearth_str service, instance, process_id, process;
    struct hearth_str *labels, *instances, *events;
    size_t n_labels, n_instances, n_events;
    struct hearth_str endpoint, exec_args;
    int64_t start_ms, duration_ms, created_ms, updated_ms;
    int64_t cancelled_ms; /* 0: not cancelled */
    int64_t extended_ms;  /* 0: never kept alive */
    int32_t min_duration_ms, dump_period_ms, max_samples;
    /* JSON: the array NetworkSamplings of the agent's command; empty: no sampling. */
    struct hearth_str sampling;
    /* JSON: [{monitor, uri_regex, uri_path, threshold, current, message}]; empty: no causes. */
    struct hearth_str causes;
};

/*
 * Agents poll for async-profiler and pprof tasks every 20 s, for one at a time: each is handed out
 * at least this long.
 */
#define HEARTH_TASK_HANDED_OUT_MS INT64_C(300000)

/* A zeroed member does not restrict. */
struct hearth_task_filter {
    struct hearth_str service, instance, endpoint;
    uint32_t kinds; /* bits 1 << kind; 0: all */
    enum hearth_task_origin origin;
    int64_t start_from_ms, start_to_ms;
    /* The page: tasks after this one, in descending order of (start_ms, task_id). */
    int64_t before_start_ms; /* 0: from the first */
    struct hearth_str before_task_id;
    size_t limit; /* 0: no limit */
};

struct hearth_task_log {
    struct hearth_str task_id; /* answers only */
    struct hearth_str instance, process_id;
    enum hearth_task_event event;
    int64_t at_ms, last_at_ms;
    struct hearth_str message;
};

/* ---- results ---- */

#define HEARTH_TASK_SCHEDULE_PROFILES 1000

/* A run: a task on one process, from one start of the profiler to its end. */
struct hearth_task_schedule {
    int64_t schedule_no;
    int32_t service_id;
    struct hearth_str schedule_id, task_id, process_id;
    struct hearth_str process, instance; /* empty: not known */
    int64_t start_ms, end_ms;
    /*
     * The ordinary profiles made of the run, in their order, at most HEARTH_TASK_SCHEDULE_PROFILES.
     */
    struct hearth_profile_id *profiles;
    size_t n_profiles;
};

/* Both ends included. */
struct hearth_task_range {
    int64_t from_ms, to_ms;
};

/* A file that an agent or a user uploaded for a task. */
struct hearth_task_upload {
    struct hearth_str upload_id; /* when stored: computed, the given id is ignored */
    struct hearth_str task_id, instance, format;
    int32_t service_id;
    struct hearth_str service;
    int64_t received_ms, n_bytes;
    struct hearth_str content; /* empty in lists */
    bool is_pushed;            /* its profile is stored */
};

#endif
