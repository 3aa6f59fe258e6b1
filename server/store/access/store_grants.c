/* store_grants.c -- grants (contract: hearth/store/store_access.h). */
#include "hearth/store/store_access.h"

#include "access/access_write.h"

#include <assert.h>

struct grant_id_row {
    int32_t id;
};

static const struct hearth_column grant_id_columns[] = {
    HEARTH_COLUMN(I32, struct grant_id_row, id),
};
static const struct hearth_row_type grant_id_rows =
    HEARTH_ROW_TYPE(grant_id_columns, struct grant_id_row);

struct grant_add {
    const struct hearth_stored_grant *stored;
    struct grant_id_row row; /* the result */
};

static enum hearth_status insert_grant(void *context, struct hearth_transaction *transaction,
                                       bool *ret_changed, struct hearth_err *err)
{
    struct grant_add *add = context;
    const struct hearth_grant *grant = &add->stored->grant;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, grant->subject);
    hearth_pg_param_text(&params, grant->tenant);
    hearth_pg_param_i32(&params, (int32_t)grant->role);
    hearth_pg_param_text(&params, grant->selector);
    hearth_pg_param_text(&params, add->stored->created_by);
    hearth_pg_param_i64(&params, add->stored->created_ms);

    /* Find an equal one. */
    bool found;
    HEARTH_TRY(hearth_transaction_select_one(
        transaction, transaction->arena,
        "SELECT grant_id FROM hearth_data.access_grant WHERE subject = $1 AND tenant = $2"
        " AND role = $3 AND selector = $4 ORDER BY grant_id LIMIT 1",
        &params, &grant_id_rows, &add->row, &found, err));
    if (found) {
        return HEARTH_OK;
    }

    *ret_changed = true;

    return hearth_transaction_select_one(
        transaction, transaction->arena,
        "INSERT INTO hearth_data.access_grant (subject, tenant, role, selector, created_by,"
        " created_at) VALUES ($1, $2, $3, $4, $5, $6) RETURNING grant_id",
        &params, &grant_id_rows, &add->row, &found, err);
}

enum hearth_status hearth_store_grant_add(const struct hearth_scope *scope,
                                          const struct hearth_stored_grant *grant, int32_t *ret_id,
                                          struct hearth_err *err)
{
    assert(grant != NULL && (unsigned)grant->grant.role < HEARTH_N_ROLES && ret_id != NULL);

    struct grant_add add = {.stored = grant};
    HEARTH_TRY(hearth_access_write(scope, insert_grant, &add, err));
    *ret_id = add.row.id;

    return HEARTH_OK;
}

struct grant_delete {
    int32_t id;
    bool was_found; /* by this or an earlier attempt */
};

static enum hearth_status delete_grant(void *context, struct hearth_transaction *transaction,
                                       bool *ret_changed, struct hearth_err *err)
{
    struct grant_delete *delete = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_i32(&params, delete->id);

    size_t n;
    HEARTH_TRY(hearth_transaction_run(
        transaction, "DELETE FROM hearth_data.access_grant WHERE grant_id = $1 RETURNING 1",
        &params, &n, err));
    delete->was_found = delete->was_found || n > 0;
    *ret_changed = n > 0;

    return delete->was_found
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_NOT_FOUND, "there is no grant %d", (int)delete->id);
}

enum hearth_status hearth_store_grant_delete(const struct hearth_scope *scope, int32_t id,
                                             struct hearth_err *err)
{
    struct grant_delete delete = {.id = id};

    return hearth_access_write(scope, delete_grant, &delete, err);
}
