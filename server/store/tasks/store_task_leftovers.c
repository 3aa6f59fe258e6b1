/*
 * store_task_leftovers.c -- what tasks brought that was stored and never became profiles (contract: hearth/store/task_results.h).
 *
 * Their server was lost in between, or its push failed; and agents do not send again what was not acknowledged. A part
 * has the key of its profile in its own row, so whoever finds it makes the same push.
 */
#include "hearth/store/task_results.h"

#include "pg/pg.h"
#include "pg/session.h"
#include "tasks/task_chunks.h"

struct question {
    struct hearth_str tenant;
    int64_t from_ms, to_ms;
    size_t limit;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    struct hearth_inflater *inflater;
    struct hearth_task_flush *flushes;
    struct hearth_task_left *left;
    size_t n;
};

/* $1 tenant, $2 from, $3 to, $4 limit. Names as when a flush is put: UPSERT_RUN of task_stacks.c. */
static const char SQL[] =
    "SELECT c.service_id, c.schedule_no, c.at, c.part, c.payload, d.schedule_id, d.task_id,"
    " d.process_id, d.start_at, p.service, p.instance, p.process, (SELECT s.name FROM"
    " hearth_data.task k JOIN hearth_data.service s USING (service_id) WHERE k.task_id = d.task_id"
    " AND s.tenant_id = d.tenant_id), (SELECT coalesce(max(o.at), 0) FROM"
    " hearth_data.task_stack_chunk o WHERE o.service_id = c.service_id AND"
    " o.schedule_no = c.schedule_no AND o.at < c.at)"
    " FROM hearth_data.task_stack_chunk c JOIN hearth_data.task_schedule d USING (schedule_no)"
    " JOIN hearth_data.tenant t ON t.tenant_id = d.tenant_id AND t.name = $1"
    " LEFT JOIN LATERAL (SELECT s.name AS service, i.name AS instance, p.name AS process FROM"
    " hearth_data.process p JOIN hearth_data.service s USING (service_id) JOIN"
    " hearth_data.instance i USING (instance_id) WHERE p.process_id = d.process_id AND"
    " s.tenant_id = d.tenant_id LIMIT 1) p ON true"
    " WHERE NOT c.is_pushed AND c.at BETWEEN $2 AND $3 ORDER BY c.at LIMIT $4";

static enum hearth_status take_flush(struct question *q, const PGresult *rows, int row,
                                     struct hearth_err *err)
{
    struct hearth_arena *arena = q->arena;
    struct hearth_task_flush *flush = &q->flushes[q->n];
    struct hearth_task_part *part = hearth_arena_calloc(arena, 1, sizeof *part);
    *flush = (struct hearth_task_flush){
        .service_id = hearth_pg_i32(rows, row, 0),
        .schedule_no = hearth_pg_i64(rows, row, 1),
        .at_ms = hearth_pg_i64(rows, row, 2),
        .schedule_id = hearth_arena_str(arena, hearth_pg_str(rows, row, 5)),
        .task_id = hearth_arena_str(arena, hearth_pg_str(rows, row, 6)),
        .process_id = hearth_arena_str(arena, hearth_pg_str(rows, row, 7)),
        .start_ms = hearth_pg_i64(rows, row, 8),
        .service = hearth_arena_str(arena, hearth_pg_str(rows, row, 9)),
        .instance = hearth_arena_str(arena, hearth_pg_str(rows, row, 10)),
        .process = hearth_arena_str(arena, hearth_pg_str(rows, row, 11)),
        .task_service = hearth_arena_str(arena, hearth_pg_str(rows, row, 12)),
        .previous_ms = hearth_pg_i64(rows, row, 13),
        .parts = part,
        .n_parts = 1,
    };
    if (arena->refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    part->part = hearth_pg_i32(rows, row, 3);
    HEARTH_TRY(hearth_task_chunk_unpack(q->inflater, hearth_pg_str(rows, row, 4), arena,
                                        &part->chunk, err));
    part->hash = hearth_task_chunk_hash(&part->chunk);
    flush->chunk = &part->chunk;
    q->n++;
    return HEARTH_OK;
}

static enum hearth_status read_flushes(void *context, struct hearth_pg *pg,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *q = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, q->arena);
    hearth_pg_param_text(&params, q->tenant);
    hearth_pg_param_i64(&params, q->from_ms);
    hearth_pg_param_i64(&params, q->to_ms);
    hearth_pg_param_i64(&params, (int64_t)q->limit);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, SQL, &params, q->cancel, &rows, ret_fault, err));
    int n_rows = PQntuples(rows);
    q->n = 0;
    q->flushes = hearth_arena_array(q->arena, (size_t)n_rows, sizeof *q->flushes);
    enum hearth_status status = q->flushes == NULL ? HEARTH_FAIL_ARENA(err, q->arena) : HEARTH_OK;
    for (int row = 0; row < n_rows && status == HEARTH_OK; row++) {
        status = take_flush(q, rows, row, err);
    }
    PQclear(rows);
    return status;
}

enum hearth_status hearth_store_task_flushes_left(const struct hearth_scope *scope, int64_t from_ms,
                                                  int64_t to_ms, size_t limit,
                                                  struct hearth_task_flush **ret, size_t *ret_n,
                                                  struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question q = {.tenant = scope->tenant,
                         .from_ms = from_ms,
                         .to_ms = to_ms,
                         .limit = limit,
                         .cancel = scope->cancel,
                         .arena = scope->arena,
                         .inflater = hearth_inflater_new()};
    if (q.inflater == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to read stack traces");
    }
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, read_flushes, &q, err);
    hearth_inflater_free(q.inflater);
    HEARTH_TRY(status);
    *ret = q.flushes;
    *ret_n = q.n;
    return HEARTH_OK;
}

/* ---- whose there is ---- */

static enum hearth_status read_left(void *context, struct hearth_pg *pg,
                                    enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *q = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, q->arena);
    hearth_pg_param_i64(&params, q->from_ms);
    hearth_pg_param_i64(&params, q->to_ms);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "(SELECT DISTINCT t.name, '' FROM hearth_data.task_stack_chunk c JOIN"
        " hearth_data.task_schedule d USING (schedule_no) JOIN hearth_data.tenant t USING"
        " (tenant_id) WHERE NOT c.is_pushed AND c.at BETWEEN $1 AND $2) UNION ALL (SELECT t.name,"
        " u.upload_id FROM hearth_data.task_upload u JOIN hearth_data.tenant t USING (tenant_id)"
        " WHERE NOT u.is_pushed AND u.received_at BETWEEN $1 AND $2 ORDER BY u.received_at"
        " LIMIT 20)",
        &params, q->cancel, &rows, ret_fault, err));
    q->n = (size_t)PQntuples(rows);
    q->left = hearth_arena_array(q->arena, q->n, sizeof *q->left);
    for (size_t i = 0; i < q->n && q->left != NULL; i++) {
        q->left[i] = (struct hearth_task_left){
            .tenant = hearth_arena_str(q->arena, hearth_pg_str(rows, (int)i, 0)),
            .upload_id = hearth_arena_str(q->arena, hearth_pg_str(rows, (int)i, 1)),
        };
    }
    PQclear(rows);
    return q->arena->refused ? HEARTH_FAIL_ARENA(err, q->arena) : HEARTH_OK;
}

enum hearth_status hearth_store_task_left(const struct hearth_scope *scope, int64_t from_ms,
                                          int64_t to_ms, struct hearth_task_left **ret,
                                          size_t *ret_n, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question q = {
        .from_ms = from_ms, .to_ms = to_ms, .cancel = scope->cancel, .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_left, &q, err));
    *ret = q.left;
    *ret_n = q.n;
    return HEARTH_OK;
}
