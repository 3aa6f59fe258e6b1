/* store_originals.c -- reads originals (contract: hearth/store/store_originals.h). */
#include "hearth/store/store_originals.h"

#include "pg/queries.h"
#include "pg/store_state.h"
#include "session/statements.h"

#include <assert.h>

bool hearth_store_original_fits(const struct hearth_store *store, size_t n_bytes)
{
    int64_t max = hearth_store_live(store)->max_originals_bytes;

    return max <= 0 || n_bytes <= (uint64_t)max;
}

#define ORIGINAL(kind, member) HEARTH_COLUMN(kind, struct hearth_original, member)
static const struct hearth_column original_columns[] = {
    ORIGINAL(I64, original_no),
    ORIGINAL(TEXT, name),
    ORIGINAL(I64, n_bytes),
    ORIGINAL(TEXT, client_tags),
};
static const struct hearth_row_type original_rows =
    HEARTH_ROW_TYPE(original_columns, struct hearth_original);

enum hearth_status hearth_store_originals(const struct hearth_scope *scope,
                                          struct hearth_profile_id id, struct hearth_original **ret,
                                          size_t *ret_n, struct hearth_err *err)
{
    struct hearth_pg_params params;

    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_i32(&params, id.writer_id);
    hearth_pg_param_i64(&params, id.profile_no);

    return hearth_store_select(scope, hearth_sql_select_originals, &params, &original_rows, ret,
                               ret_n, err);
}

struct original_slice {
    struct hearth_str bytes;
};

static const struct hearth_column slice_columns[] = {
    HEARTH_COLUMN(BYTES, struct original_slice, bytes),
};
static const struct hearth_row_type slice_rows =
    HEARTH_ROW_TYPE(slice_columns, struct original_slice);

enum hearth_status hearth_store_original_read(const struct hearth_scope *scope, int64_t original_no,
                                              int64_t offset, int32_t n, struct hearth_str *ret,
                                              struct hearth_err *err)
{
    static const char of_client[] =
        "SELECT CASE WHEN $2 <= n_bytes THEN substring(payload FROM $2 FOR $3) ELSE ''::bytea END"
        " FROM hearth_data.original WHERE original_no = $1";
    struct original_slice slice;
    struct hearth_pg_params params;
    bool found;

    /* bytea has less than 1 GiB; substring counts from 1. */
    assert(offset >= 0 && n > 0);
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_i64(&params, original_no);
    hearth_pg_param_i32(&params, offset < INT32_MAX ? (int32_t)offset + 1 : INT32_MAX);
    hearth_pg_param_i32(&params, n);
    const char *sql = original_no < 0 ? hearth_sql_select_task_original : of_client;
    HEARTH_TRY(hearth_store_select_one(scope, sql, &params, &slice_rows, &slice, &found, err));
    if (!found) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "the original was deleted meanwhile (%s)",
                           original_no < 0 ? "retain-tasks" : "retain-raw, max-originals-bytes");
    }

    *ret = slice.bytes;
    return HEARTH_OK;
}
