/* task_upload_origin.c -- what a pprof file of a task counts, and since when (contract: hearth/store/task_results.h). */
#include "hearth/store/task_results.h"

#include "pg/pg.h"
#include "pg/session.h"

struct question {
    struct hearth_str tenant, upload_id;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    struct hearth_upload_origin *origin;
};

/*
 * $1 tenant, $2 upload. `b`: the latest file before of a task of the same event by the same instance. An instance that was
 * told of a task with a lower cursor than the one that it got with the task of b (bd) has restarted since. Nobody was
 * told here of imported tasks: what came before their files is not known.
 */
static const char origin_sql[] =
    "SELECT t.events[1], coalesce(b.upload_id, ''), coalesce(b.received_at, 0)"
    " FROM hearth_data.tenant n JOIN hearth_data.task_upload u ON u.tenant_id = n.tenant_id"
    " JOIN hearth_data.task t ON t.task_id = u.task_id AND t.service_id = u.service_id"
    " LEFT JOIN LATERAL (SELECT b.upload_id, b.received_at, bd.delivered_at, bd.cursor_at FROM"
    " hearth_data.task bt JOIN hearth_data.task_upload b ON b.task_id = bt.task_id"
    " JOIN hearth_data.task_delivery bd ON bd.task_id = b.task_id AND bd.target = b.instance"
    " AND bd.agent_id = '' WHERE bt.service_id = u.service_id AND bt.kind = t.kind AND bt.events ="
    " t.events AND b.service_id = u.service_id AND b.instance = u.instance AND b.upload_no <"
    " u.upload_no AND EXISTS (SELECT FROM hearth_data.task_delivery ud WHERE ud.task_id = u.task_id"
    " AND ud.target = u.instance AND ud.agent_id = '') ORDER BY b.upload_no DESC LIMIT 1) b ON NOT "
    "EXISTS (SELECT FROM"
    " hearth_data.task_delivery x JOIN hearth_data.task xt ON xt.task_id = x.task_id AND"
    " xt.service_id = u.service_id AND xt.kind = t.kind WHERE x.target = u.instance AND"
    " x.agent_id = '' AND (x.cursor_at > b.cursor_at OR x.delivered_at > b.delivered_at)"
    " AND x.delivered_at <= u.received_at AND x.agent_cursor < b.cursor_at)"
    " WHERE n.name = $1 AND u.upload_id = $2 AND u.format = 'pprof' AND t.kind = 6";

static enum hearth_status read_origin(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *q = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, q->arena);
    hearth_pg_param_text(&params, q->tenant);
    hearth_pg_param_text(&params, q->upload_id);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, origin_sql, &params, q->cancel, &rows, ret_fault, err));
    *q->origin = (struct hearth_upload_origin){HEARTH_STR(""), HEARTH_STR(""), 0};
    if (PQntuples(rows) > 0) {
        *q->origin = (struct hearth_upload_origin){
            .event = hearth_arena_str(q->arena, hearth_pg_str(rows, 0, 0)),
            .before_id = hearth_arena_str(q->arena, hearth_pg_str(rows, 0, 1)),
            .before_ms = hearth_pg_i64(rows, 0, 2),
        };
    }
    PQclear(rows);
    return q->arena->refused ? HEARTH_FAIL_ARENA(err, q->arena) : HEARTH_OK;
}

enum hearth_status hearth_store_task_upload_origin(const struct hearth_scope *scope,
                                                   struct hearth_str upload_id,
                                                   struct hearth_upload_origin *ret,
                                                   struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question q = {.tenant = scope->tenant,
                         .upload_id = upload_id,
                         .cancel = scope->cancel,
                         .arena = scope->arena,
                         .origin = ret};
    return hearth_store_with_pg(scope->store, scope->cancel, read_origin, &q, err);
}
