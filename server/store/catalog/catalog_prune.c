/*
 * catalog_prune.c -- delete series, and the label pairs, shapes and services that no other series
 * uses.
 *
 * Two phases, because a search for hours may take long, and new series of all servers wait for the
 * clock's lock. First, without the lock, the caller finds the series without an hour at some
 * version. Then, under the lock, only hours above that version are searched: if a series got an
 * hour meanwhile, the hour has a higher version, and it is visible, because its writer held the
 * lock before. A later writer finds the epoch raised and the series deleted, and creates it again
 * with another id (catalog_insert.c).
 */
#include "catalog/catalog_prune.h"

#include "catalog/services.h"

#include <assert.h>
#include <stdlib.h>

/* ---- sets of ids ---- */

struct part_ids {
    int32_t *v;
    size_t n;
};

static int compare_part_ids(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

static void sort_distinct_ids(struct part_ids *ids)
{
    size_t n = 0;
    if (ids->n > 1) {
        qsort(ids->v, ids->n, sizeof *ids->v, compare_part_ids);
    }

    for (size_t i = 0; i < ids->n; i++) {
        if (n == 0 || ids->v[n - 1] != ids->v[i]) {
            ids->v[n++] = ids->v[i];
        }
    }

    ids->n = n;
}

static enum hearth_status run_on_ids(struct hearth_prune *prune, const char *sql,
                                     const struct part_ids *ids, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, prune->arena);
    hearth_pg_param_i32_array(&params, ids->v, ids->n);
    return hearth_pg_exec(prune->pg, sql, &params, NULL, NULL, prune->ret_fault, err);
}

/* ---- parts ---- */

/* Gather the distinct services, shapes and pairs of deleted series: the columns of `gone`. */
static enum hearth_status gather_parts_of_series(struct hearth_prune *prune, const PGresult *gone,
                                                 struct part_ids parts[3], struct hearth_err *err)
{
    /* Services and shapes, and one array of pairs per series. */
    size_t n = (size_t)PQntuples(gone), n_pairs = 0;
    int32_t **pairs = hearth_arena_array(prune->arena, n, sizeof *pairs);
    size_t *lengths = hearth_arena_array(prune->arena, n, sizeof *lengths);

    for (size_t k = 0; k < 2; k++) {
        parts[k] = (struct part_ids){hearth_arena_array(prune->arena, n, sizeof *parts[k].v), n};
    }

    if (pairs == NULL || lengths == NULL || parts[0].v == NULL || parts[1].v == NULL) {
        return HEARTH_FAIL_ARENA(err, prune->arena);
    }

    for (size_t i = 0; i < n; i++) {
        parts[0].v[i] = hearth_pg_i32(gone, (int)i, 0);
        parts[1].v[i] = hearth_pg_i32(gone, (int)i, 1);
        HEARTH_TRY(hearth_pg_i32_array(gone, (int)i, 2, prune->arena, &pairs[i], &lengths[i], err));
        n_pairs += lengths[i];
    }

    /* All pairs in one array. */
    parts[2] = (struct part_ids){hearth_arena_array(prune->arena, n_pairs, sizeof *parts[2].v), 0};
    if (parts[2].v == NULL) {
        return HEARTH_FAIL_ARENA(err, prune->arena);
    }

    for (size_t i = 0; i < n; i++) {
        if (lengths[i] > 0) {
            memcpy(parts[2].v + parts[2].n, pairs[i], lengths[i] * sizeof *pairs[i]);
        }
        parts[2].n += lengths[i];
    }

    for (size_t k = 0; k < 3; k++) {
        sort_distinct_ids(&parts[k]);
    }

    return HEARTH_OK;
}

/*
 * Delete the parts of deleted series that no other series uses. The look-ups of remaining series
 * use the primary key of series for services, and the GIN index on pair_ids for pairs.
 */
static enum hearth_status prune_parts(struct hearth_prune *prune, const PGresult *gone,
                                      struct hearth_err *err)
{
    struct part_ids parts[3]; /* services, shapes, pairs */

    HEARTH_TRY(gather_parts_of_series(prune, gone, parts, err));
    HEARTH_TRY(run_on_ids(prune, HEARTH_SQL_LOCK_SERVICES, &parts[0], err));
    HEARTH_TRY(hearth_services_without_spans(prune->pg, parts[0].v, parts[0].n, prune->arena,
                                             &parts[0].v, &parts[0].n, prune->ret_fault, err));
    HEARTH_TRY(
        run_on_ids(prune,
                   "DELETE FROM hearth_data.service e WHERE e.service_id = ANY ($1) AND NOT EXISTS"
                   " (SELECT FROM hearth_data.series s WHERE s.service_id = e.service_id) AND "
                   "NOT " HEARTH_SERVICE_IS_NEEDED,
                   &parts[0], err));
    HEARTH_TRY(
        run_on_ids(prune,
                   "DELETE FROM hearth_data.shape e WHERE e.shape_id = ANY ($1) AND NOT EXISTS"
                   " (SELECT FROM hearth_data.series s WHERE s.shape_id = e.shape_id)",
                   &parts[1], err));

    return run_on_ids(
        prune,
        "DELETE FROM hearth_data.label_pair e WHERE e.pair_id = ANY ($1) AND NOT EXISTS"
        " (SELECT FROM hearth_data.series s WHERE s.pair_ids @> ARRAY[e.pair_id])",
        &parts[2], err);
}

/* ---- the two phases ---- */

enum hearth_status hearth_prune_version(struct hearth_prune *prune, struct hearth_err *err)
{
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(prune->pg, "SELECT version FROM hearth_data.catalog_clock", NULL,
                              NULL, &result, prune->ret_fault, err));
    prune->version = PQntuples(result) == 1 ? hearth_pg_i64(result, 0, 0) : -1;
    PQclear(result);

    return prune->version >= 0
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_CORRUPT, "the catalogue's clock has no row");
}

enum hearth_status hearth_prune_lock(struct hearth_prune *prune, struct hearth_err *err)
{
    return hearth_pg_script(prune->pg,
                            "SET LOCAL idle_in_transaction_session_timeout = 10000;"
                            "SET LOCAL lock_timeout = 15000;"
                            "UPDATE hearth_data.catalog_clock SET version = version + 1,"
                            " epoch = epoch + 1",
                            prune->ret_fault, err);
}

enum hearth_status hearth_prune_series(struct hearth_prune *prune, const int32_t *service_ids,
                                       const int32_t *series_ids, size_t n, size_t *ret_n_gone,
                                       struct hearth_err *err)
{
    assert(ret_n_gone != NULL && (n == 0 || (service_ids != NULL && series_ids != NULL)));

    *ret_n_gone = 0;
    if (n == 0) {
        return HEARTH_OK;
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, prune->arena);
    hearth_pg_param_i32_array(&params, service_ids, n);
    hearth_pg_param_i32_array(&params, series_ids, n);
    hearth_pg_param_i64(&params, prune->version);
    PGresult *gone = NULL;
    HEARTH_TRY(hearth_pg_exec(
        prune->pg,
        "DELETE FROM hearth_data.series s USING unnest($1::int4[], $2::int4[]) u (s, i)"
        " WHERE s.service_id = u.s AND s.series_id = u.i AND s.version <= $3 AND NOT EXISTS"
        " (SELECT FROM hearth_data.series_hour h WHERE h.version > $3 AND h.service_id = u.s AND"
        " h.series_id = u.i) RETURNING s.service_id, s.shape_id, s.pair_ids",
        &params, NULL, &gone, prune->ret_fault, err));
    *ret_n_gone = (size_t)PQntuples(gone);
    enum hearth_status status = *ret_n_gone > 0 ? prune_parts(prune, gone, err) : HEARTH_OK;
    PQclear(gone);

    return status;
}
