/*
 * task_rows.h -- rows of tasks, shared by the files that read or hand out tasks (private to the
 * store).
 */
#ifndef HEARTH_STORE_TASK_ROWS_H
#define HEARTH_STORE_TASK_ROWS_H

#include "hearth/store/store_tasks.h"

#include "session/statements.h"

/* Columns of task `t` and its service `s`, in the order of HEARTH_TASK_COLUMN_TABLE. */
#define HEARTH_TASK_COLUMNS                                                                    \
    "t.task_id, t.kind::int4, t.origin::int4, t.service_id, s.name, coalesce(t.instance, '')," \
    " coalesce(t.process_id, ''), coalesce(t.process, ''), t.labels, t.instances, t.events,"   \
    " t.endpoint, t.exec_args, t.start_at, t.duration, t.created_at, t.updated_at,"            \
    " coalesce(t.cancelled_at, 0), coalesce(t.extended_at, 0), t.min_duration, t.dump_period," \
    " t.max_samples, coalesce(t.sampling::text, ''), coalesce(t.causes::text, '')"

/*
 * The same as members of `type`; `at`: nothing for a struct hearth_task, otherwise its member with
 * a dot.
 */
#define HEARTH_TASK_COLUMN_TABLE(type, at)                                                         \
    HEARTH_COLUMN(TEXT, type, at task_id), HEARTH_COLUMN(I32, type, at kind),                      \
        HEARTH_COLUMN(I32, type, at origin), HEARTH_COLUMN(I32, type, at service_id),              \
        HEARTH_COLUMN(TEXT, type, at service), HEARTH_COLUMN(TEXT, type, at instance),             \
        HEARTH_COLUMN(TEXT, type, at process_id), HEARTH_COLUMN(TEXT, type, at process),           \
        HEARTH_COLUMN_LIST(TEXTS, type, at labels, at n_labels),                                   \
        HEARTH_COLUMN_LIST(TEXTS, type, at instances, at n_instances),                             \
        HEARTH_COLUMN_LIST(TEXTS, type, at events, at n_events),                                   \
        HEARTH_COLUMN(TEXT, type, at endpoint), HEARTH_COLUMN(TEXT, type, at exec_args),           \
        HEARTH_COLUMN(I64, type, at start_ms), HEARTH_COLUMN(I64, type, at duration_ms),           \
        HEARTH_COLUMN(I64, type, at created_ms), HEARTH_COLUMN(I64, type, at updated_ms),          \
        HEARTH_COLUMN(I64, type, at cancelled_ms), HEARTH_COLUMN(I64, type, at extended_ms),       \
        HEARTH_COLUMN(I32, type, at min_duration_ms), HEARTH_COLUMN(I32, type, at dump_period_ms), \
        HEARTH_COLUMN(I32, type, at max_samples), HEARTH_COLUMN(TEXT, type, at sampling),          \
        HEARTH_COLUMN(TEXT, type, at causes)

/* $1 is the tenant in all statements. */
#define HEARTH_TASK_TABLES                                                         \
    "hearth_data.task t JOIN hearth_data.service s ON s.service_id = t.service_id" \
    " JOIN hearth_data.tenant n ON n.tenant_id = s.tenant_id AND n.name = $1"

/* hearth_task_handed_out_until of task `t`; the kinds 5 and above are async-profiler and pprof. */
#define HEARTH_TASK_HANDED_OUT_UNTIL(t)                                                         \
    "(" t ".start_at + CASE WHEN " t ".kind >= 5 THEN greatest(" t ".duration, 300000) ELSE " t \
    ".duration END)"
/* The longest delay, in milliseconds, between handing a task out and the instance beginning it. */
#define HEARTH_TASK_BEGINS_AFTER "10000"

/* Add the fingerprint by which a service is found. */
void hearth_task_param_service(struct hearth_pg_params *params, struct hearth_str service);

#endif
