/*
 * task_delivery.h -- hands tasks out to agents: first and repeated delivery, and notes of polls
 * (sql/0006_tasks.sql).
 *
 * Agents poll, each time with the highest time of the commands they received: their cursor. A task
 * that is handed out gets a time, cursor_ms, above every cursor that the agent can have then: it is
 * sent again while the agent's cursor is below it (the answer was lost), and never after. Reasons:
 * docs/decisions/0014-task-delivery.md.
 *
 * A poll that finds nothing is one statement that writes nothing; once a minute another statement
 * notes the poll.
 *
 * Ownership: inputs are borrowed, answers live in scope->arena.
 * Threads:   safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, INVALID_ARGUMENT (names longer than
 *            HEARTH_AGENT_NAME_BYTES, cursors beyond HEARTH_TASK_CURSOR_MAX).
 */
#ifndef HEARTH_STORE_TASK_DELIVERY_H
#define HEARTH_STORE_TASK_DELIVERY_H

#include "hearth/store/store_tasks.h"

/* Largest valid cursor; leaves room for a successor. */
#define HEARTH_TASK_CURSOR_MAX (INT64_MAX / 2)

/* A command for an agent. */
struct hearth_told_task {
    struct hearth_task task;
    int64_t cursor_ms;              /* time of the command */
    struct hearth_str *process_ids; /* of the agent's processes, sorted; empty for instances */
    size_t n_process_ids;
};

/*
 * A poll of an agent that reports processes, or of an instance. The scope and the poll name the
 * same tenant.
 */
struct hearth_task_poll {
    struct hearth_str tenant;
    int64_t cursor_ms; /* as sent by the agent; below 0 counts as 0 */
    int64_t now_ms;
    /* hearth_store_tell_agent: */
    struct hearth_str agent_id;
    int64_t seen_after_ms; /* only its processes reported at or after this time */
    /* hearth_store_tell_instance: */
    struct hearth_str service, instance;
    enum hearth_task_kind kind;
    int64_t ahead_ms; /* tasks are sent this long before their start */
    size_t limit;     /* 0: no limit */
};

/*
 * Commands for an agent that reports processes: tasks that have started and not ended, by cursor.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_tell_agent(const struct hearth_scope *scope,
                                           const struct hearth_task_poll *poll,
                                           struct hearth_told_task **ret, size_t *ret_n,
                                           struct hearth_err *err);
/*
 * Commands for an instance, by cursor, until hearth_task_handed_out_until. Without tasks that it
 * reported as finished, too large or failed; without an async-profiler task while it runs another,
 * and a pprof task while it runs one with a common event. Empty for an unknown service.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_tell_instance(const struct hearth_scope *scope,
                                              const struct hearth_task_poll *poll,
                                              struct hearth_told_task **ret, size_t *ret_n,
                                              struct hearth_err *err);

#endif
