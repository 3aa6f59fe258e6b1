/*
 * task_delivery.h -- handing tasks out: who is told what, when it is said again, and who asked (sql/0006_tasks.sql).
 *
 * Agents ask again and again, each time with the highest time that they were told: their cursor. What was handed out
 * has a time of its own, cursor_ms, above every cursor that the agent can have then: it is said again while the
 * agent's cursor is below it (the answer was lost), and never after. Why so: docs/decisions/0014-task-delivery.md.
 *
 * A poll that finds nothing new is one statement that writes nothing, but once a minute, that the agent asked.
 *
 * Ownership: inputs are borrowed, answers live in the arena given. Threads: safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, INVALID_ARGUMENT (names longer than HEARTH_AGENT_NAME_BYTES, cursors
 *            beyond HEARTH_TASK_CURSOR_MAX).
 */
#ifndef HEARTH_STORE_TASK_DELIVERY_H
#define HEARTH_STORE_TASK_DELIVERY_H

#include "hearth/store/store_tasks.h"

/* Higher is none of ours: one could not be above it any more. */
#define HEARTH_TASK_CURSOR_MAX (INT64_MAX / 2)

/* A task to be told. */
struct hearth_told_task {
    struct hearth_task task;
    int64_t cursor_ms;              /* of the command */
    struct hearth_str *process_ids; /* of the agent's processes, sorted; none for instances */
    size_t n_process_ids;
};

struct hearth_task_poll {
    struct hearth_str tenant;
    int64_t cursor_ms; /* that the agent said; below 0 counts as 0 */
    int64_t now_ms;
    /* An agent of processes. */
    struct hearth_str agent_id;
    int64_t seen_after_ms; /* of its processes those that it reported at this time or later */
    /* An instance, of one kind of task. */
    struct hearth_str service, instance;
    enum hearth_task_kind kind;
    int64_t ahead_ms; /* tasks that start so much later are told already */
    size_t limit;     /* 0: none */
};

/* What an agent of processes shall run now: tasks that have started and not ended, by cursor. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_tell_agent(const struct hearth_scope *scope,
                                           const struct hearth_task_poll *poll,
                                           struct hearth_told_task **ret, size_t *ret_n,
                                           struct hearth_err *err);
/*
 * What an instance shall run, by cursor, until hearth_task_handed_out_until. Not what it has reported as finished or
 * failed; nor an async-profiler task while it runs another, or a pprof task while it runs one of the same event. An
 * unknown service has none.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_tell_instance(const struct hearth_scope *scope,
                                              const struct hearth_task_poll *poll,
                                              struct hearth_told_task **ret, size_t *ret_n,
                                              struct hearth_err *err);

#endif
