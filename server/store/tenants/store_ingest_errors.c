/*
 * store_ingest_errors.c -- adds, reads and expires refused uploads (contract:
 * hearth/store/store_ingest_errors.h).
 */
#include "hearth/store/store_ingest_errors.h"

#include "hearth/base/clock.h"

#include "pg/pg_slices.h"
#include "pg/store_state.h"
#include "session/statements.h"
#include "tenants/tenants_expire.h"

#include <assert.h>

#define SLICE_ROWS 5000
#define MAX_SLICES 20

#define ERROR(kind, member) HEARTH_COLUMN(kind, struct hearth_ingest_error, member)
/* The tenant comes last: rows that are read belong to the tenant of the scope. */
static const struct hearth_column error_columns[] = {
    ERROR(I64, key),      ERROR(TEXT, client),   ERROR(TEXT, route),  ERROR(TEXT, code),
    ERROR(TEXT, message), ERROR(I64, body_hash), ERROR(I64, n_bytes), ERROR(I64, n),
    ERROR(I64, first_ms), ERROR(I64, last_ms),   ERROR(TEXT, tenant),
};
static const struct hearth_row_type added_rows =
    HEARTH_ROW_TYPE(error_columns, struct hearth_ingest_error);
static const struct hearth_row_type read_rows = {error_columns, HEARTH_ARRAY_LEN(error_columns) - 1,
                                                 sizeof(struct hearth_ingest_error)};

/* ---- adding ---- */

struct error_batch {
    const struct hearth_ingest_error *errors;
    size_t n;
    int64_t max_rows; /* of a tenant; 0: no limit */
};

/* Deletes the oldest rows of tenants in the batch that have too many. */
static enum hearth_status trim_error_rows(const struct error_batch *batch,
                                          struct hearth_transaction *transaction,
                                          struct hearth_err *err)
{
    if (batch->max_rows <= 0) {
        return HEARTH_OK;
    }

    struct hearth_str *tenants = hearth_arena_array(transaction->arena, batch->n, sizeof *tenants);
    if (tenants == NULL) {
        return HEARTH_FAIL_ARENA(err, transaction->arena);
    }

    for (size_t i = 0; i < batch->n; i++) {
        tenants[i] = batch->errors[i].tenant;
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text_array(&params, tenants, batch->n);
    hearth_pg_param_i64(&params, batch->max_rows);

    return hearth_transaction_run(
        transaction,
        "DELETE FROM hearth_data.ingest_error e USING (SELECT tenant, error_key, row_number()"
        " OVER (PARTITION BY tenant ORDER BY last_at DESC, error_key) AS nth"
        " FROM hearth_data.ingest_error WHERE tenant = ANY ($1)) r"
        " WHERE r.nth > $2 AND e.tenant = r.tenant AND e.error_key = r.error_key",
        &params, NULL, err);
}

static enum hearth_status add_errors(void *context, struct hearth_transaction *transaction,
                                     struct hearth_err *err)
{
    const struct error_batch *batch = context;
    struct hearth_pg_params params;

    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_rows(&params, &added_rows, batch->errors, batch->n);

    /* Add them in the order of the key, so that servers do not wait for each other in a circle. */
    HEARTH_TRY(hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.ingest_error AS e (error_key, client, route, code, message,"
        " body_hash, n_bytes, n, first_at, last_at, tenant)"
        " SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::text[], $5::text[],"
        " $6::int8[], $7::int8[], $8::int8[], $9::int8[], $10::int8[], $11::text[])"
        " AS a (error_key, client, route, code, message, body_hash, n_bytes, n, first_at, last_at,"
        " tenant) ORDER BY tenant, error_key"
        " ON CONFLICT (tenant, error_key) DO UPDATE SET message = excluded.message,"
        " body_hash = excluded.body_hash, n_bytes = excluded.n_bytes, n = e.n + excluded.n,"
        " last_at = greatest(e.last_at, excluded.last_at)",
        &params, NULL, err));

    return trim_error_rows(batch, transaction, err);
}

enum hearth_status hearth_store_ingest_errors_add(const struct hearth_scope *scope,
                                                  const struct hearth_ingest_error *errors,
                                                  size_t n, struct hearth_err *err)
{
    assert(errors != NULL && n > 0);

    struct error_batch batch = {errors, n, hearth_store_live(scope->store)->max_ingest_errors};
    const struct hearth_scope own = hearth_scope_of_owner(scope); /* errors of several tenants */

    return hearth_store_in_transaction(&own, add_errors, &batch, err);
}

/* ---- reading ---- */

enum hearth_status hearth_store_ingest_errors(const struct hearth_scope *scope,
                                              const struct hearth_ingest_error_filter *filter,
                                              struct hearth_ingest_error **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    assert(scope->arena != NULL && filter != NULL);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_i64(&params, filter->from_ms);
    hearth_pg_param_text(&params, filter->client);
    hearth_pg_param_text(&params, filter->route);
    hearth_pg_param_i64(&params, filter->limit);

    return hearth_store_select(
        scope,
        "SELECT error_key, client, route, code, message, body_hash, n_bytes, n, first_at, last_at"
        " FROM hearth_data.ingest_error WHERE tenant = $1 AND last_at >= $2"
        " AND ($3 = '' OR client = $3) AND ($4 = '' OR route = $4)"
        " ORDER BY last_at DESC, error_key LIMIT $5",
        &params, &read_rows, ret, ret_n, err);
}

/* ---- expiring ---- */

enum hearth_status hearth_ingest_errors_expire(struct hearth_pg *pg, int64_t keep_ns,
                                               struct hearth_err *err)
{
    if (keep_ns <= 0) {
        return HEARTH_OK;
    }

    /* By the index on last_at. */
    return hearth_pg_delete_slices(
        pg,
        "DELETE FROM hearth_data.ingest_error WHERE ctid = ANY (ARRAY(SELECT ctid"
        " FROM hearth_data.ingest_error WHERE last_at < $1 ORDER BY last_at LIMIT $2"
        " FOR UPDATE SKIP LOCKED))",
        (hearth_clock_wall_ns() - keep_ns) / HEARTH_NS_PER_MS, SLICE_ROWS, MAX_SLICES, err);
}
