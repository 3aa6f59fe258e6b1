/* task_rows.h -- what tasks.c and those who hand tasks out share (private to the store). */
#ifndef HEARTH_STORE_TASK_ROWS_H
#define HEARTH_STORE_TASK_ROWS_H

#include "hearth/store/store_tasks.h"

/* Of task `t` and its service `s`: what hearth_task_take reads from column `first` on. */
#define HEARTH_TASK_COLUMNS                                                                    \
    "t.task_id, t.kind::int4, t.origin::int4, t.service_id, s.name, coalesce(t.instance, '')," \
    " coalesce(t.process_id, ''), coalesce(t.process, ''), t.labels, t.instances, t.events,"   \
    " t.endpoint, t.exec_args, t.start_at, t.duration, t.created_at, t.updated_at,"            \
    " coalesce(t.cancelled_at, 0), coalesce(t.extended_at, 0), t.min_duration, t.dump_period," \
    " t.max_samples, coalesce(t.sampling::text, ''), coalesce(t.causes::text, '')"
#define HEARTH_N_TASK_COLUMNS 24

/* The tenant is $1 of all statements. */
#define HEARTH_TASK_TABLES                                                         \
    "hearth_data.task t JOIN hearth_data.service s ON s.service_id = t.service_id" \
    " JOIN hearth_data.tenant n ON n.tenant_id = s.tenant_id AND n.name = $1"

/* hearth_task_handed_out_until of a task; async-profiler and pprof are the kinds from 5 on. */
#define HEARTH_TASK_HANDED_OUT_UNTIL(t)                                                         \
    "(" t ".start_at + CASE WHEN " t ".kind >= 5 THEN greatest(" t ".duration, 300000) ELSE " t \
    ".duration END)"
/* An instance begins a task so long after it was told at the latest: its answer was on the way. */
#define HEARTH_TASK_BEGINS_AFTER "10000"

/* In arena. */
HEARTH_MUST_CHECK enum hearth_status hearth_task_take(const PGresult *rows, int row, int first,
                                                      struct hearth_arena *arena,
                                                      struct hearth_task *ret,
                                                      struct hearth_err *err);

/* How a service is found by its name. */
void hearth_task_param_service(struct hearth_pg_params *params, struct hearth_str service);

#endif
