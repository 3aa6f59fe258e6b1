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

#include "hearth/model/agent.h"
#include "hearth/model/task.h"
#include "hearth/store/store.h"

/* Of a message that an agent reports; what is longer is cut. */
#define HEARTH_TASK_MESSAGE_BYTES 4096

/*
 * Until when it is handed out to agents that do not have it: its end; async-profiler and pprof tasks at least
 * HEARTH_TASK_HANDED_OUT_MS from their start.
 */
int64_t hearth_task_handed_out_until(const struct hearth_task *task);

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
