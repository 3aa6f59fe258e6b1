/*
 * snapshots_expire.c -- thread snapshots past their time, and segments of imported tasks, in slices. Each server may do it
 * at any time.
 */
#include "spans/snapshots_expire.h"

#include "hearth/base/clock.h"

#define SLICE_ROWS 2000
#define MAX_SLICES 50

/* $1: the time in ms, $2: rows. */
static const char *const g_slices[] = {
    "DELETE FROM hearth_data.task_snapshot r USING (SELECT o.service_id, o.task_id, o.segment_key,"
    " o.first_sequence, o.content FROM hearth_data.task_snapshot o WHERE o.received_at < $1 AND NOT"
    " EXISTS (SELECT FROM hearth_data.task t WHERE t.task_id = o.task_id AND greatest(t.start_at +"
    " t.duration, t.created_at) >= $1) ORDER BY o.received_at LIMIT $2 FOR UPDATE SKIP LOCKED) d "
    "WHERE"
    " r.service_id = d.service_id AND r.task_id = d.task_id AND r.segment_key = d.segment_key AND"
    " r.first_sequence = d.first_sequence AND r.content = d.content",
    "DELETE FROM hearth_data.task_segment r USING (SELECT o.service_id, o.task_id, o.segment_key,"
    " o.start_at FROM hearth_data.task_segment o WHERE o.received_at < $1 AND NOT EXISTS (SELECT"
    " FROM hearth_data.task t WHERE t.task_id = o.task_id AND greatest(t.start_at + t.duration,"
    " t.created_at) >= $1) ORDER BY o.received_at LIMIT $2 FOR UPDATE SKIP LOCKED) d WHERE"
    " r.service_id = d.service_id AND r.task_id = d.task_id AND r.segment_key = d.segment_key AND"
    " r.start_at = d.start_at",
};

static enum hearth_status expire_slice(struct hearth_pg *pg, const char *sql, int64_t before_ms,
                                       int64_t *ret_n, struct hearth_err *err)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_i64(&params, before_ms);
    hearth_pg_param_i64(&params, SLICE_ROWS);
    PGresult *result = NULL;
    enum hearth_status status = hearth_pg_exec(pg, sql, &params, NULL, &result, NULL, err);
    if (status == HEARTH_OK && !hearth_str_to_i64(hearth_str_c(PQcmdTuples(result)), ret_n)) {
        *ret_n = 0;
    }
    PQclear(result);
    hearth_arena_release(&arena);
    return status;
}

enum hearth_status hearth_snapshots_expire(struct hearth_pg *pg, int64_t retain_ns,
                                           struct hearth_err *err)
{
    if (retain_ns <= 0) {
        return HEARTH_OK;
    }
    int64_t before_ms = (hearth_clock_wall_ns() - retain_ns) / HEARTH_NS_PER_MS;
    for (size_t k = 0; k < HEARTH_ARRAY_LEN(g_slices); k++) {
        int64_t n = SLICE_ROWS;
        for (int i = 0; i < MAX_SLICES && n == SLICE_ROWS; i++) {
            HEARTH_TRY(expire_slice(pg, g_slices[k], before_ms, &n, err));
        }
    }
    return HEARTH_OK;
}
