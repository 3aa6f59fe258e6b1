/*
 * tasks_expire.c -- deletes old tasks, in slices, with their deliveries and logs. Results of tasks
 * expire separately (task_results_expire.c). Every server may run it at any time.
 */
#include "tasks/tasks_expire.h"

#include "hearth/base/clock.h"

#include "pg/pg_slices.h"

#define SLICE_ROWS 500
#define MAX_SLICES 50

/*
 * Tasks that ended before $1 (an imported task is as old as its import). By the index on start_at.
 */
static const char SQL[] =
    "DELETE FROM hearth_data.task r USING (SELECT task_id FROM hearth_data.task WHERE start_at < $1"
    " AND greatest(start_at + duration, created_at) < $1 ORDER BY start_at LIMIT $2"
    " FOR UPDATE SKIP LOCKED) d WHERE r.task_id = d.task_id";

enum hearth_status hearth_tasks_expire(struct hearth_pg *pg, int64_t retain_ns,
                                       struct hearth_err *err)
{
    if (retain_ns <= 0) {
        return HEARTH_OK;
    }

    int64_t before_ms = (hearth_clock_wall_ns() - retain_ns) / HEARTH_NS_PER_MS;

    return hearth_pg_delete_slices(pg, SQL, before_ms, SLICE_ROWS, MAX_SLICES, err);
}
