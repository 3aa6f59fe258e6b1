/*
 * originals_expire.c -- deletes old originals, in slices (contract: originals/originals_expire.h).
 * Every server may run it at any time.
 *
 * Both statements read all rows, but without their payloads, which PostgreSQL stores elsewhere.
 */
#include "originals/originals_expire.h"

#include "hearth/base/clock.h"

#include <assert.h>

/* Few at a time: each may have megabytes. */
#define SLICE_ROWS INT64_C(200)
#define MAX_SLICES 50

/* $1 now, $2 retain-raw of the server, in nanoseconds; $3 rows at most. */
static const char EXPIRED[] =
    "DELETE FROM hearth_data.original r USING (SELECT o.original_no FROM hearth_data.original o"
    " LEFT JOIN (SELECT v.service_id, coalesce(s.value, $2) AS keep FROM hearth_data.service v"
    " LEFT JOIN hearth_data.tenant_setting s ON s.tenant_id = v.tenant_id AND s.name ="
    " 'retain-raw') k ON k.service_id = o.service_id"
    " WHERE k.service_id IS NULL OR (k.keep > 0 AND o.ts < $1 - k.keep)"
    " ORDER BY o.original_no LIMIT $3 FOR UPDATE OF o SKIP LOCKED) d"
    " WHERE r.original_no = d.original_no";

/* $1 bytes of a tenant, $2 rows at most; newer: bytes of an original and all newer ones. */
static const char BEYOND_BUDGET[] =
    "DELETE FROM hearth_data.original r USING (SELECT b.original_no FROM hearth_data.original b"
    " WHERE b.original_no IN (SELECT q.original_no FROM (SELECT o.original_no, sum(o.n_bytes)"
    " OVER (PARTITION BY v.tenant_id ORDER BY o.original_no DESC) AS newer"
    " FROM hearth_data.original o JOIN hearth_data.service v ON v.service_id = o.service_id) q"
    " WHERE q.newer > $1 ORDER BY q.original_no LIMIT $2)"
    " ORDER BY b.original_no FOR UPDATE SKIP LOCKED) d WHERE r.original_no = d.original_no";

/* Runs the DELETE with numbers as parameters until it deletes less than a slice. */
static enum hearth_status delete_originals(struct hearth_pg *pg, const char *sql,
                                           const int64_t *numbers, size_t n_numbers,
                                           struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    struct hearth_pg_params params;
    int64_t n = SLICE_ROWS;

    hearth_arena_init(&arena, 0);
    hearth_pg_params_init(&params, &arena);
    for (size_t i = 0; i < n_numbers; i++) {
        hearth_pg_param_i64(&params, numbers[i]);
    }

    for (int i = 0; i < MAX_SLICES && n == SLICE_ROWS; i++) {
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_exec(pg, sql, &params, NULL, &result, NULL, err));
        bool is_number = hearth_str_to_i64(hearth_str_c(PQcmdTuples(result)), &n);
        assert(is_number); /* the tag of a DELETE has the number of rows */
        n = is_number ? n : 0;
        PQclear(result);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_originals_expire(struct hearth_pg *pg, int64_t retain_ns,
                                           int64_t max_bytes, struct hearth_err *err)
{
    const int64_t expired[] = {hearth_clock_wall_ns(), retain_ns, SLICE_ROWS};
    const int64_t beyond[] = {max_bytes, SLICE_ROWS};

    HEARTH_TRY(delete_originals(pg, EXPIRED, expired, HEARTH_ARRAY_LEN(expired), err));

    return max_bytes <= 0
               ? HEARTH_OK
               : delete_originals(pg, BEYOND_BUDGET, beyond, HEARTH_ARRAY_LEN(beyond), err);
}
