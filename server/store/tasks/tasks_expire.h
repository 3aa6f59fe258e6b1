/*
 * tasks_expire.h -- deletes old agents, tasks, and results of tasks (private to the store).
 *
 * retain_ns 0 (or less) deletes nothing.
 *
 * Threads: safe; the connection belongs to the caller.
 */
#ifndef HEARTH_STORE_TASKS_EXPIRE_H
#define HEARTH_STORE_TASKS_EXPIRE_H

#include "pg/pg.h"

/* ---- agents_expire.c ---- */

/* Instances and processes that were not reported for retain_ns. */
HEARTH_MUST_CHECK enum hearth_status hearth_agents_expire(struct hearth_pg *pg, int64_t retain_ns,
                                                          struct hearth_err *err);

/* ---- task_results_expire.c ---- */

/* Stack traces and files as old, unless their task exists and ended (or was imported) later. */
HEARTH_MUST_CHECK enum hearth_status
hearth_task_results_expire(struct hearth_pg *pg, int64_t retain_ns, struct hearth_err *err);

/* ---- tasks_expire.c ---- */

/* Tasks that ended, or were imported, longer ago. */
HEARTH_MUST_CHECK enum hearth_status hearth_tasks_expire(struct hearth_pg *pg, int64_t retain_ns,
                                                         struct hearth_err *err);

#endif
