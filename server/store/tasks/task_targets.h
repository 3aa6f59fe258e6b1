/*
 * task_targets.h -- the processes and instances that a task was handed out to, and their data
 * (private to task_facts.c).
 *
 * Threads: confined to one thread.
 */
#ifndef HEARTH_STORE_TASK_TARGETS_H
#define HEARTH_STORE_TASK_TARGETS_H

#include "hearth/store/task_facts.h"

#include "pg/pg_rows.h"

/* A read of the facts of n tasks. */
struct hearth_fact_read {
    const struct hearth_task *tasks;
    size_t n;
    struct hearth_pg_params params; /* $1 tenant, $2 ids of the tasks, $3 now */
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    struct hearth_task_fact *facts; /* [n] */
};

/* The index of a task; n if there is no such task. */
size_t hearth_fact_find_task(const struct hearth_fact_read *read, struct hearth_str task_id);
/* A statement returned a task that is not one of $2: a mistake of ours. */
enum hearth_status hearth_fact_fail_unknown_task(struct hearth_err *err);

/* Reads the targets of all tasks into their facts, in the arena. */
HEARTH_MUST_CHECK
enum hearth_status hearth_fact_read_targets(struct hearth_fact_read *read, struct hearth_pg *pg,
                                            enum hearth_pg_fault *ret_fault,
                                            struct hearth_err *err);
/*
 * If the task was delivered to one instance, moves results without an instance to that instance:
 * spans arrive later than snapshots, and files of Go agents name no instance.
 */
void hearth_fact_assign_unnamed_results(struct hearth_task_fact *fact);

#endif
