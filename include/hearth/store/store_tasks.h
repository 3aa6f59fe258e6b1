/*
 * store_tasks.h -- profiling tasks, whom they were handed out to, and their logs (sql/0006_tasks.sql).
 *
 * Validation, states and what agents are told is the engine's (engine/tasks.h). Times are milliseconds since
 * the epoch.
 *
 * Ownership: inputs are borrowed, answers live in the arena given. Threads: safe, also between servers: what
 * must hold together (overlap and insert; who is told what) is one transaction under a lock of the service.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, and what each function says.
 */
#ifndef HEARTH_STORE_TASKS_H
#define HEARTH_STORE_TASKS_H

#include "hearth/store/store_agents.h"

/* Of a message that an agent reports; what is longer is cut. */
#define HEARTH_TASK_MESSAGE_BYTES 4096

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

struct hearth_task {
    struct hearth_str task_id;
    enum hearth_task_kind kind;
    enum hearth_task_origin origin;
    int32_t service_id;
    struct hearth_str service, instance, process_id,
        process; /* those that do not apply are empty */
    struct hearth_str *labels, *instances, *events;
    size_t n_labels, n_instances, n_events;
    struct hearth_str endpoint, exec_args;
    int64_t start_ms, duration_ms, created_ms, updated_ms;
    int64_t cancelled_ms; /* 0: it was not */
    int64_t extended_ms;  /* 0: never kept alive */
    int32_t min_duration_ms, dump_period_ms, max_samples;
    struct hearth_str sampling; /* JSON: the array NetworkSamplings of the command; empty: none */
    struct hearth_str
        causes; /* JSON: [{monitor, uri_regex, uri_path, threshold, current, message}]; empty: none */
};

/* Agents ask for async-profiler and pprof tasks every 20 s, for one at a time: so long each is handed out at least. */
#define HEARTH_TASK_HANDED_OUT_MS INT64_C(300000)

/*
 * Until when it is handed out to agents that do not have it: its end; async-profiler and pprof tasks at least
 * HEARTH_TASK_HANDED_OUT_MS from their start.
 */
int64_t hearth_task_handed_out_until(const struct hearth_task *task);

struct hearth_task_log {
    struct hearth_str task_id; /* of those that are read */
    struct hearth_str instance, process_id;
    enum hearth_task_event event;
    int64_t at_ms, last_at_ms;
    struct hearth_str message;
};

/*
 * Store a new task; service_id is set. The first of these that applies:
 *   RESOURCE_EXHAUSTED  the tenant has max_tasks (0: no limit) that have not ended and were not cancelled
 *   ALREADY_EXISTS      a task has the id
 *   ALREADY_EXISTS      with `overlap_message`, unless it is NULL: a task of the same service and kind that somebody
 *                       created and that was not cancelled meets [start, start + duration]. On-CPU and off-CPU: and
 *                       may select a process in common (one has no labels, or they share one, or a process has all
 *                       of both); touching does not count there. pprof: of the same event.
 * No two created tasks of a service have the same created_ms: it is raised where they would, and updated_ms with it.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_put(const struct hearth_scope *scope, struct hearth_task *task,
                                         int64_t max_tasks, const char *overlap_message,
                                         struct hearth_err *err);
/* NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_get(const struct hearth_scope *scope,
                                         struct hearth_str task_id, struct hearth_task *ret,
                                         struct hearth_err *err);

/*
 * No delivery begins after it returns. The first time counts. NOT_FOUND. Imported tasks and those of
 * policies too: only their state shows it.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_cancel(const struct hearth_scope *scope,
                                            struct hearth_str task_id, int64_t now_ms,
                                            struct hearth_err *err);
/*
 * more_ms longer, if it ends within_ms from now or sooner, has not ended and was not cancelled; then it is handed out
 * again. Of calls at the same time one does it. *ret_extended: this one did.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_extend(const struct hearth_scope *scope,
                                            struct hearth_str task_id, int64_t now_ms,
                                            int64_t within_ms, int64_t more_ms, bool *ret_extended,
                                            struct hearth_err *err);

/* What is not said does not restrict. */
struct hearth_task_filter {
    struct hearth_str service, instance, endpoint;
    uint32_t kinds; /* bits 1 << kind; 0: all */
    enum hearth_task_origin origin;
    int64_t start_from_ms, start_to_ms;
    /* The page: those before this one, (start_ms, task_id) descending. */
    int64_t before_start_ms; /* 0: from the top */
    struct hearth_str before_task_id;
    size_t limit; /* 0: none */
};

/* The latest start first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_tasks(const struct hearth_scope *scope,
                                      const struct hearth_task_filter *filter,
                                      struct hearth_task **ret, size_t *ret_n,
                                      struct hearth_err *err);

/*
 * An event of a task: the first of its kind and target stays, later ones move its last time and replace its message. A
 * task that does not exist is ignored (*ret_known, may be NULL): agents report on what was removed.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_log_add(const struct hearth_scope *scope,
                                             struct hearth_str task_id,
                                             const struct hearth_task_log *entry, bool *ret_known,
                                             struct hearth_err *err);
/* Something that an agent sent for tasks was refused. */
struct hearth_task_refusal {
    struct hearth_str task_id, process_id; /* stack traces: of this task and process */
    struct hearth_str service, instance;   /* else: spans of this instance */
    int64_t at_ms;
    struct hearth_str message;
};

/*
 * FAILED in the log of the task, if the process was told of it; or of the trace tasks that the instance was told of and
 * that run. Nothing where there is no such task.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_log_refusal(const struct hearth_scope *scope,
                                                 const struct hearth_task_refusal *refusal,
                                                 struct hearth_err *err);
/*
 * Of these tasks, by task, the earliest first; with NOTIFIED for each process or instance that it was handed out for.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_logs(const struct hearth_scope *scope,
                                          const struct hearth_str *task_ids, size_t n_task_ids,
                                          struct hearth_task_log **ret, size_t *ret_n,
                                          struct hearth_err *err);

#endif
