/*
 * tasks_expire.h -- removing agents, tasks and what tasks brought that are past their time (private to the store).
 *
 * Threads: safe; the connection belongs to the caller.
 */
#ifndef HEARTH_STORE_TASKS_EXPIRE_H
#define HEARTH_STORE_TASKS_EXPIRE_H

#include "pg/pg.h"

/* ---- agents_expire.c ---- */

/* Instances and processes that nobody reported for that long go; 0: none do. */
HEARTH_MUST_CHECK enum hearth_status hearth_agents_expire(struct hearth_pg *pg, int64_t retain_ns,
                                                          struct hearth_err *err);

/* ---- task_results_expire.c ---- */

/* Stack traces and files of tasks that are over for that long, or gone; 0: none go. */
HEARTH_MUST_CHECK enum hearth_status
hearth_task_results_expire(struct hearth_pg *pg, int64_t retain_ns, struct hearth_err *err);

/* ---- tasks_expire.c ---- */

/* Tasks that ended before that; 0: none. */
HEARTH_MUST_CHECK enum hearth_status hearth_tasks_expire(struct hearth_pg *pg, int64_t retain_ns,
                                                         struct hearth_err *err);

#endif
