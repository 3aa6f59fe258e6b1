/*
 * tasks_expire.c -- tasks past their time, in slices, with who was told and what agents said. What they brought goes by
 * its own rules. Each server may do it at any time.
 */
#include "tasks/tasks_expire.h"

#include "hearth/base/clock.h"

#define SLICE_ROWS 500
#define MAX_SLICES 50

/* $1: ended before, in ms (an imported one is as old as its import); $2: rows. */
static const char SQL[] =
    "DELETE FROM hearth_data.task r USING (SELECT task_id FROM hearth_data.task WHERE start_at < $1"
    " AND greatest(start_at + duration, created_at) < $1 ORDER BY start_at LIMIT $2"
    " FOR UPDATE SKIP LOCKED) d"
    " WHERE r.task_id = d.task_id";

static enum hearth_status expire_slice(struct hearth_pg *pg, int64_t before_ms, int64_t *ret_n,
                                       struct hearth_err *err)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_i64(&params, before_ms);
    hearth_pg_param_i64(&params, SLICE_ROWS);
    PGresult *result = NULL;
    enum hearth_status status = hearth_pg_exec(pg, SQL, &params, NULL, &result, NULL, err);
    if (status == HEARTH_OK && !hearth_str_to_i64(hearth_str_c(PQcmdTuples(result)), ret_n)) {
        *ret_n = 0;
    }
    PQclear(result);
    hearth_arena_release(&arena);
    return status;
}

enum hearth_status hearth_tasks_expire(struct hearth_pg *pg, int64_t retain_ns,
                                       struct hearth_err *err)
{
    if (retain_ns <= 0) {
        return HEARTH_OK;
    }
    int64_t before_ms = (hearth_clock_wall_ns() - retain_ns) / HEARTH_NS_PER_MS;
    int64_t n = SLICE_ROWS;
    for (int i = 0; i < MAX_SLICES && n == SLICE_ROWS; i++) {
        HEARTH_TRY(expire_slice(pg, before_ms, &n, err));
    }
    return HEARTH_OK;
}
