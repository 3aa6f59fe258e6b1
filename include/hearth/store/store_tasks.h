/*
 * store_tasks.h -- profiling tasks and their logs (sql/0006_tasks.sql; model/task.h).
 *
 * The engine validates tasks, derives their states and decides what agents are told
 * (engine/tasks.h). Times are milliseconds since the epoch.
 *
 * Ownership: inputs are borrowed, answers live in scope->arena.
 * Threads:   safe, also between servers: the check of overlaps and the insertion are one
 *            transaction under the lock of the tenant.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, and the errors named at each function.
 */
#ifndef HEARTH_STORE_TASKS_H
#define HEARTH_STORE_TASKS_H

#include "hearth/model/agent.h"
#include "hearth/model/task.h"
#include "hearth/store/store.h"

/* Limit of a reported message; longer ones are truncated. */
#define HEARTH_TASK_MESSAGE_BYTES 4096

/*
 * Until when a task is handed out to agents that do not have it: its end; for async-profiler and
 * pprof tasks at least HEARTH_TASK_HANDED_OUT_MS after its start. Pure.
 */
int64_t hearth_task_handed_out_until(const struct hearth_task *task);

/*
 * Store a new task; its service_id is set by the caller. Errors, the first that applies:
 *   RESOURCE_EXHAUSTED  the tenant has max_tasks (0: no limit) that have not ended and were not
 *                       cancelled
 *   ALREADY_EXISTS      a task has the id
 *   ALREADY_EXISTS      with `overlap_message`, unless it is NULL: another task of the same service
 *                       and kind, of origin CREATED and not cancelled, overlaps [start, start +
 *                       duration]. On-CPU and off-CPU: and may select a common process (one has no
 *                       labels, or they share a label, or a process has all labels of both);
 *                       touching ranges do not overlap there. pprof: and has a common event.
 * Created tasks of a service have distinct created_ms: it is raised if necessary, and updated_ms
 * with it. arena: may be NULL.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_put(const struct hearth_scope *scope, struct hearth_task *task,
                                         int64_t max_tasks, const char *overlap_message,
                                         struct hearth_err *err);
/* A task by its id. NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_get(const struct hearth_scope *scope,
                                         struct hearth_str task_id, struct hearth_task *ret,
                                         struct hearth_err *err);

/*
 * Cancel a task: no delivery begins after the call returns. The first call sets the time. Imported
 * tasks, and tasks of policies, can be cancelled too, but only their state changes. NOT_FOUND.
 * arena: not used.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_cancel(const struct hearth_scope *scope,
                                            struct hearth_str task_id, int64_t now_ms,
                                            struct hearth_err *err);
struct hearth_task_extension {
    int64_t now_ms;
    int64_t within_ms; /* the task must end within this time from now */
    int64_t more_ms;   /* added to its duration; above 0 */
};

/*
 * Extend a task if it ends soon, has not ended and was not cancelled; it is handed out again. Of
 * concurrent calls one extends it. arena: not used.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_extend(const struct hearth_scope *scope,
                                            struct hearth_str task_id,
                                            const struct hearth_task_extension *extension,
                                            struct hearth_err *err);

/* Tasks that pass the filter, the latest start first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_tasks(const struct hearth_scope *scope,
                                      const struct hearth_task_filter *filter,
                                      struct hearth_task **ret, size_t *ret_n,
                                      struct hearth_err *err);

/*
 * Add an event to the log of a task: the first of its kind and target is kept, later ones raise its
 * last time and replace its message. Events of tasks that do not exist are ignored (*ret_known is
 * false; may be NULL): agents report on deleted tasks. INVALID_ARGUMENT: a name is longer than
 * HEARTH_AGENT_NAME_BYTES. arena: not used.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_log_add(const struct hearth_scope *scope,
                                             struct hearth_str task_id,
                                             const struct hearth_task_log *entry, bool *ret_known,
                                             struct hearth_err *err);
/* Refused data of an agent. */
struct hearth_task_refusal {
    struct hearth_str task_id, process_id; /* of stack traces */
    struct hearth_str service, instance;   /* of spans; used if task_id is empty */
    int64_t at_ms;
    struct hearth_str message;
};

/*
 * Add FAILED to the log of the task, if it was handed out for the process; or to the logs of
 * running trace tasks that were handed out to the instance. Ignored if there is no such task.
 * arena: not used.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_log_refusal(const struct hearth_scope *scope,
                                                 const struct hearth_task_refusal *refusal,
                                                 struct hearth_err *err);
/*
 * Logs of these tasks, by task, the earliest event first; with NOTIFIED for each process or
 * instance that a task was handed out for.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_task_logs(const struct hearth_scope *scope,
                                          const struct hearth_str *task_ids, size_t n_task_ids,
                                          struct hearth_task_log **ret, size_t *ret_n,
                                          struct hearth_err *err);

#endif
