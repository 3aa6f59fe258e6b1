/*
 * task_upload_origin.c -- finds what a pprof file counts, and since when (contract:
 * hearth/store/task_results.h).
 */
#include "hearth/store/task_results.h"

#include "pg/queries.h"
#include "session/statements.h"

#include <assert.h>

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
    HEARTH_TRY(hearth_store_select_one(scope, hearth_sql_select_task_upload_origin, &params,
                                       &origin_rows, &origin, &found, err));
    *ret = origin;

    return HEARTH_OK;
}
