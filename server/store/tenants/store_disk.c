/* store_disk.c -- estimates bytes on disk of services (contract: hearth/store/store_disk.h). */
#include "hearth/store/store_disk.h"

#include "pg/pg_rows.h"
#include "pg/queries.h"
#include "pg/store_state.h"

#include <assert.h>

#define DISK(kind, member) HEARTH_COLUMN(kind, struct hearth_service_disk, member)
static const struct hearth_column disk_columns[] = {
    DISK(TEXT, service), DISK(I64, bytes),   DISK(I64, profiles), DISK(I64, segments),
    DISK(I64, rollups),  DISK(I64, symbols), DISK(I64, spans),    DISK(I64, originals),
    DISK(I64, other),    DISK(I64, read),
};
static const struct hearth_row_type disk_rows =
    HEARTH_ROW_TYPE(disk_columns, struct hearth_service_disk);

enum hearth_status hearth_store_disk_services(const struct hearth_scope *scope,
                                              struct hearth_service_disk **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    assert(scope->arena != NULL && ret != NULL && ret_n != NULL);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_i64(&params, scope->store->options.max_disk_sample_bytes);

    /* The shares of one tenant are known only beside the rows of all. The statement returns its. */
    const struct hearth_scope owner = hearth_scope_of_owner(scope);
    return hearth_store_select(&owner, hearth_sql_select_service_disk, &params, &disk_rows, ret,
                               ret_n, err);
}
