/* store_disk.c -- estimates bytes on disk of services (contract: hearth/store/store_disk.h). */
#include "hearth/store/store_disk.h"

#include "pg/pg_rows.h"
#include "pg/queries.h"
#include "pg/store_state.h"
#include "session/disk.h"
#include "session/session.h"
#include "tenants/disk_shares.h"

#include <assert.h>

#define DISK(kind, member) HEARTH_COLUMN(kind, struct hearth_service_disk, member)
static const struct hearth_column disk_columns[] = {
    DISK(TEXT, service), DISK(I64, bytes),   DISK(I64, profiles), DISK(I64, segments),
    DISK(I64, rollups),  DISK(I64, symbols), DISK(I64, spans),    DISK(I64, originals),
    DISK(I64, other),    DISK(I64, read),
};
static const struct hearth_row_type disk_rows =
    HEARTH_ROW_TYPE(disk_columns, struct hearth_service_disk);

/* The bytes of a service and tier in the tables of data; numbers as text. */
struct data_share {
    int32_t service_id;
    struct hearth_str tier, bytes, read;
};

#define SHARE(kind, member) HEARTH_COLUMN(kind, struct data_share, member)
static const struct hearth_column share_columns[] = {
    SHARE(I32, service_id),
    SHARE(TEXT, tier),
    SHARE(TEXT, bytes),
    SHARE(TEXT, read),
};
static const struct hearth_row_type share_rows = HEARTH_ROW_TYPE(share_columns, struct data_share);

enum hearth_status hearth_disk_shares_read(const struct hearth_store *store, struct hearth_pg *pg,
                                           struct hearth_str tenant, struct hearth_cancel *cancel,
                                           struct hearth_arena *arena,
                                           struct hearth_pg_params *params,
                                           enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct data_share *shares = NULL;
    size_t n = 0;
    hearth_pg_params_init(params, arena);
    hearth_pg_param_i64(params, store->options.max_disk_sample_bytes);
    HEARTH_TRY(hearth_disk_add_nodes(store, pg, arena, params, ret_fault, err));
    const struct hearth_pg_query query = {hearth_sql_select_data_disk, params, &share_rows, cancel,
                                          arena};
    HEARTH_TRY(hearth_pg_select(pg, &query, &shares, &n, ret_fault, err));

    hearth_pg_params_init(params, arena);
    hearth_pg_param_text(params, tenant);
    hearth_pg_param_i64(params, store->options.max_disk_sample_bytes);
    hearth_pg_param_rows(params, &share_rows, shares, n);

    return HEARTH_OK;
}

/* A read of the services of a scope's tenant. */
struct disk_read {
    const struct hearth_scope *scope;
    struct hearth_service_disk **ret;
    size_t *ret_n;
};

static enum hearth_status read_disk(void *context, struct hearth_pg *pg,
                                    enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const struct disk_read *read = context;
    const struct hearth_scope *scope = read->scope;
    struct hearth_pg_params params;
    HEARTH_TRY(hearth_disk_shares_read(scope->store, pg, scope->tenant, scope->cancel, scope->arena,
                                       &params, ret_fault, err));
    const struct hearth_pg_query query = {hearth_sql_select_service_disk, &params, &disk_rows,
                                          scope->cancel, scope->arena};

    return hearth_pg_select(pg, &query, read->ret, read->ret_n, ret_fault, err);
}

enum hearth_status hearth_store_disk_services(const struct hearth_scope *scope,
                                              struct hearth_service_disk **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    assert(scope->arena != NULL && ret != NULL && ret_n != NULL);
    HEARTH_TRY(hearth_store_check_open(scope->store, err));

    /* The shares of one tenant are known only beside the rows of all. The statement returns its. */
    const struct hearth_scope owner = hearth_scope_of_owner(scope);
    struct disk_read read = {&owner, ret, ret_n};

    return hearth_store_with_pg(&owner, read_disk, &read, err);
}
