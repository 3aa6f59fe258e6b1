/*
 * erase_rows.c -- what the stages of a deletion share: series, statements, the count of rows
 * (contract: erase_work.h).
 */
#include "build/erase_work.h"

#include <inttypes.h>
#include <stdio.h>

bool hearth_erase_has_series(const struct hearth_erase_work *work, int32_t series_id)
{
    size_t low = 0, high = work->n_series;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (work->series_ids[mid] < series_id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low < work->n_series && work->series_ids[low] == series_id;
}

enum hearth_status hearth_erase_exec(struct hearth_erase_work *work, const char *sql,
                                     PGresult **ret_result, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &work->arena);
    hearth_pg_param_i32_array(&params, work->series_ids, work->n_series);

    return hearth_pg_exec(&work->builder->pg, sql, &params, NULL, ret_result, NULL, err);
}

enum hearth_status hearth_erase_count_rows(struct hearth_erase_work *work, int64_t n_rows,
                                           struct hearth_err *err)
{
    char sql[160];
    if (n_rows == 0) {
        return HEARTH_OK;
    }

    (void)snprintf(sql, sizeof sql,
                   "UPDATE hearth_data.erasure SET n_rows = n_rows + %" PRId64
                   " WHERE erasure_id = %" PRId64,
                   n_rows, work->erasure_id);

    return hearth_pg_exec(&work->builder->pg, sql, NULL, NULL, NULL, NULL, err);
}
