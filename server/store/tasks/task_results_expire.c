/*
 * task_results_expire.c -- deletes results of tasks after `retain-tasks`: runs with their stack
 * traces, files with their pieces, in slices of a transaction each. Results of a task that ended
 * later stay (an imported task is as old as its import).
 */
#include "hearth/base/clock.h"

#include "pg/pg.h"
#include "tasks/tasks_expire.h"

#define MAX_SLICES 100

/* The task of row `s` ended at or after $1. */
#define TASK_STAYS                                                           \
    "EXISTS (SELECT FROM hearth_data.task k WHERE k.task_id = s.task_id AND" \
    " greatest(k.start_at + k.duration, k.created_at) >= $1)"

/*
 * Delete a slice of runs, or of files, with all their rows, and return the number of deleted runs
 * or files. $1: results before this time, in milliseconds. By the indexes on end_at, received_at.
 */
static const char *const result_slices[] = {
    "WITH d AS (DELETE FROM hearth_data.task_schedule WHERE schedule_no = ANY (ARRAY("
    "  SELECT s.schedule_no FROM hearth_data.task_schedule s WHERE s.end_at < $1"
    "  AND NOT " TASK_STAYS " ORDER BY s.end_at LIMIT 200)) RETURNING service_id, schedule_no),"
    " c AS (DELETE FROM hearth_data.task_stack_chunk c USING d"
    "  WHERE c.service_id = d.service_id AND c.schedule_no = d.schedule_no)"
    " SELECT count(*) FROM d",
    "WITH d AS (DELETE FROM hearth_data.task_upload WHERE upload_no = ANY (ARRAY("
    "  SELECT s.upload_no FROM hearth_data.task_upload s WHERE s.received_at < $1"
    "  AND NOT " TASK_STAYS " ORDER BY s.received_at LIMIT 20)) RETURNING service_id, upload_no),"
    " p AS (DELETE FROM hearth_data.task_upload_piece p USING d"
    "  WHERE p.service_id = d.service_id AND p.upload_no = d.upload_no),"
    " g AS (DELETE FROM hearth_data.task_go_segment g USING d"
    "  WHERE g.service_id = d.service_id AND g.upload_no = d.upload_no)"
    " SELECT count(*) FROM d",
};

/* Runs one of result_slices. */
static enum hearth_status delete_result_slice(struct hearth_pg *pg, const char *sql,
                                              int64_t before_ms, int64_t *ret_n,
                                              struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_i64(&params, before_ms);

    /* Delete, and read the number. */
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, sql, &params, NULL, &rows, NULL, err));
    *ret_n = hearth_pg_i64(rows, 0, 0);
    PQclear(rows);

    return HEARTH_OK;
}

enum hearth_status hearth_task_results_expire(struct hearth_pg *pg, int64_t retain_ns,
                                              struct hearth_err *err)
{
    if (retain_ns <= 0) {
        return HEARTH_OK;
    }

    int64_t before_ms = (hearth_clock_wall_ns() - retain_ns) / HEARTH_NS_PER_MS;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(result_slices); i++) {
        int64_t n = 1;
        for (int slice = 0; slice < MAX_SLICES && n > 0; slice++) {
            HEARTH_TRY(delete_result_slice(pg, result_slices[i], before_ms, &n, err));
        }
    }

    return HEARTH_OK;
}
