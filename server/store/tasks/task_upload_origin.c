/*
 * task_upload_origin.c -- finds what a pprof file counts, and since when (contract:
 * hearth/store/task_results.h).
 */
#include "hearth/store/task_results.h"

#include "pg/pg_rows.h"

#include <assert.h>

/*
 * The event of a pprof file's task, and the earlier file `b` of the same process. $1 tenant, $2
 * upload. `b` is the latest earlier file of a task of the same event by the same instance, if both
 * tasks were delivered to it. There is no `b` if the instance has polled since with a lower cursor
 * than it received with the task of `b`: then it has restarted. Imported tasks have no deliveries,
 * so their earlier files are not known. By the index on (tenant_id, upload_id), then by the indexes
 * task_upload (task_id) and task_delivery (target).
 */
static const char SQL_ORIGIN[] =
    "SELECT t.events[1], coalesce(b.upload_id, ''), coalesce(b.received_at, 0)"
    " FROM hearth_data.tenant n JOIN hearth_data.task_upload u ON u.tenant_id = n.tenant_id"
    " JOIN hearth_data.task t ON t.task_id = u.task_id AND t.service_id = u.service_id"
    " LEFT JOIN LATERAL"
    " (SELECT b.upload_id, b.received_at, bd.delivered_at, bd.cursor_at"
    "  FROM hearth_data.task bt JOIN hearth_data.task_upload b ON b.task_id = bt.task_id"
    "  JOIN hearth_data.task_delivery bd ON bd.task_id = b.task_id AND bd.target = b.instance"
    "  AND bd.agent_id = '' WHERE bt.service_id = u.service_id AND bt.kind = t.kind"
    "  AND bt.events = t.events AND b.service_id = u.service_id AND b.instance = u.instance"
    "  AND b.upload_no < u.upload_no"
    "  AND EXISTS (SELECT FROM hearth_data.task_delivery ud WHERE ud.task_id = u.task_id"
    "  AND ud.target = u.instance AND ud.agent_id = '') ORDER BY b.upload_no DESC LIMIT 1) b"
    " ON NOT EXISTS (SELECT FROM hearth_data.task_delivery x"
    "  JOIN hearth_data.task xt ON xt.task_id = x.task_id AND xt.service_id = u.service_id"
    "  AND xt.kind = t.kind WHERE x.target = u.instance AND x.agent_id = ''"
    "  AND (x.cursor_at > b.cursor_at OR x.delivered_at > b.delivered_at)"
    "  AND x.delivered_at <= u.received_at AND x.agent_cursor < b.cursor_at)"
    " WHERE n.name = $1 AND u.upload_id = $2 AND u.format = 'pprof' AND t.kind = 6";

#define ORIGIN(kind, member) HEARTH_COLUMN(kind, struct hearth_upload_origin, member)
static const struct hearth_column origin_columns[] = {
    ORIGIN(TEXT, event),
    ORIGIN(TEXT, before_id),
    ORIGIN(I64, before_ms),
};
static const struct hearth_row_type origin_rows =
    HEARTH_ROW_TYPE(origin_columns, struct hearth_upload_origin);

enum hearth_status hearth_store_task_upload_origin(const struct hearth_scope *scope,
                                                   struct hearth_str upload_id,
                                                   struct hearth_upload_origin *ret,
                                                   struct hearth_err *err)
{
    assert(scope->arena != NULL && ret != NULL);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_text(&params, upload_id);

    struct hearth_upload_origin origin = {HEARTH_STR(""), HEARTH_STR(""), 0};
    bool found;
    HEARTH_TRY(
        hearth_store_select_one(scope, SQL_ORIGIN, &params, &origin_rows, &origin, &found, err));
    *ret = origin;

    return HEARTH_OK;
}
