/*
 * pg_slices.c -- runs one DELETE repeatedly, so that no transaction is long (contract:
 * pg_slices.h).
 */
#include "pg/pg_slices.h"

#include <assert.h>

enum hearth_status hearth_pg_delete_slices(struct hearth_pg *pg, const char *sql, int64_t before_ms,
                                           int64_t slice_rows, int max_slices,
                                           struct hearth_err *err)
{
    assert(slice_rows > 0 && max_slices > 0);

    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_i64(&params, before_ms);
    hearth_pg_param_i64(&params, slice_rows);

    /* Delete, until a slice is not full. */
    int64_t n = slice_rows;
    for (int i = 0; i < max_slices && n == slice_rows; i++) {
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_exec(pg, sql, &params, NULL, &result, NULL, err));

        bool is_number = hearth_str_to_i64(hearth_str_c(PQcmdTuples(result)), &n);
        assert(is_number); /* `sql` is a DELETE, whose tag has the number of rows */
        n = is_number ? n : 0;
        PQclear(result);
    }

    return HEARTH_OK;
}
