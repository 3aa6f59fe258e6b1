/*
 * retention_sweep.c -- removes series that have ended: series that have no hour left, because their
 * leaves of series_hour were dropped (catalog_prune.c handles the race with a series that is
 * written again).
 *
 * Most series have an hour within the last days, which is cheap to find out; all leaves are
 * searched only for the others.
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"

#include "build/builder.h"
#include "build/retention.h"
#include "catalog/catalog_prune.h"
#include "pg/pg.h"
#include "pg/store_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define SLICE_NS     HEARTH_NS_PER_SEC
#define RECENT_HOURS 72

/* The first service after `after`; 0: no service is left. */
static enum hearth_status find_next_service(struct hearth_builder *builder, int32_t after,
                                            int32_t *ret_service_id, struct hearth_err *err)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql,
                   "SELECT min(service_id) FROM hearth_data.service WHERE service_id > %" PRId32,
                   after);

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, NULL, NULL, &result, NULL, err));
    *ret_service_id = hearth_pg_is_null(result, 0, 0) ? 0 : hearth_pg_i32(result, 0, 0);
    PQclear(result);

    return HEARTH_OK;
}

/*
 * Finds the series without an hour from `hour` on, among series_ids or, if it is NULL, all series
 * of the service. *ret_n: in, the number of series_ids; out, the number found. The result is in the
 * arena.
 */
static enum hearth_status find_without_hours(struct hearth_prune *prune, int32_t service_id,
                                             int32_t hour, const int32_t *series_ids, int32_t **ret,
                                             size_t *ret_n, struct hearth_err *err)
{
    char sql[512];
    (void)snprintf(
        sql, sizeof sql,
        "SELECT coalesce(array_agg(series_id), '{}') FROM hearth_data.series s WHERE"
        " service_id = %" PRId32 "%s AND NOT EXISTS (SELECT FROM hearth_data.series_hour h"
        " WHERE h.service_id = %" PRId32 " AND h.series_id = s.series_id AND h.hour >= %" PRId32
        ")",
        service_id, series_ids != NULL ? " AND series_id = ANY ($1)" : "", service_id, hour);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, prune->arena);
    if (series_ids != NULL) {
        hearth_pg_param_i32_array(&params, series_ids, *ret_n);
    }

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(prune->pg, sql, &params, NULL, &result, NULL, err));
    enum hearth_status status = hearth_pg_i32_array(result, 0, 0, prune->arena, ret, ret_n, err);
    PQclear(result);

    return status;
}

/*
 * Deletes the roll_state of a service that is gone and has no deletion left, in a transaction of
 * its own: in the order of locks, roll_state precedes the clock. A service that is gone does not
 * return under its id.
 */
static enum hearth_status forget_state(struct hearth_builder *builder, int32_t service_id,
                                       struct hearth_err *err)
{
    char sql[256];
    PGresult *result = NULL;
    (void)snprintf(sql, sizeof sql, "SELECT FROM hearth_data.service WHERE service_id = %" PRId32,
                   service_id);
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, NULL, NULL, &result, NULL, err));
    bool is_gone = PQntuples(result) == 0;
    PQclear(result);
    if (!is_gone) {
        return HEARTH_OK;
    }

    (void)snprintf(
        sql, sizeof sql,
        "DELETE FROM hearth_data.roll_state WHERE service_id = %" PRId32
        " AND NOT EXISTS (SELECT 1 FROM hearth_data.tombstone WHERE service_id = %" PRId32 ")",
        service_id, service_id);
    HEARTH_TRY(hearth_builder_begin(builder, err));
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, NULL, NULL, NULL, NULL, err));

    return hearth_builder_commit(builder, err);
}

/*
 * Removes the series that still have no hour, and the roll_state of a service that is gone then and
 * has no deletion left.
 */
static enum hearth_status remove_series(struct hearth_builder *builder, struct hearth_prune *prune,
                                        int32_t service_id, const int32_t *series_ids, size_t n,
                                        struct hearth_err *err)
{
    assert(n > 0 && series_ids != NULL);

    /* hearth_prune_series takes the service of each series. */
    int32_t *service_ids = hearth_arena_array(prune->arena, n, sizeof *service_ids);
    if (service_ids == NULL) {
        return HEARTH_FAIL_ARENA(err, prune->arena);
    }

    for (size_t i = 0; i < n; i++) {
        service_ids[i] = service_id;
    }

    /* Remove the series that still have no hour. */
    size_t n_gone = 0;
    HEARTH_TRY(hearth_builder_begin(builder, err));
    HEARTH_TRY(hearth_prune_lock(prune, err));
    HEARTH_TRY(hearth_prune_series(prune, service_ids, series_ids, n, &n_gone, err));
    if (n_gone == 0) {
        hearth_builder_rollback(builder); /* so that the epoch does not change */
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_builder_commit(builder, err));
    HEARTH_LOG(HEARTH_LOG_INFO, "builder", "removed series that have no profiles left", "service",
               hearth_log_i64(service_id), "series", hearth_log_i64((int64_t)n_gone), NULL);

    return forget_state(builder, service_id, err);
}

/* Removes the ended series of a service. */
static enum hearth_status sweep_service(struct hearth_builder *builder, int32_t service_id,
                                        struct hearth_err *err)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_prune prune = {.pg = &builder->pg, .arena = &arena};
    int32_t *series_ids = NULL;
    size_t n = 0;

    int32_t recent = hearth_hour_of(hearth_clock_wall_ns()) - RECENT_HOURS;

    /* Search the last days first, then all days for the series that were not found there. */
    enum hearth_status status = hearth_prune_version(&prune, err);
    if (status == HEARTH_OK) {
        status = find_without_hours(&prune, service_id, recent, NULL, &series_ids, &n, err);
    }

    if (status == HEARTH_OK && n > 0) {
        status =
            find_without_hours(&prune, service_id, INT32_MIN, series_ids, &series_ids, &n, err);
    }

    /* Remove the series that have no hour at all. */
    if (status == HEARTH_OK && n > 0) {
        status = remove_series(builder, &prune, service_id, series_ids, n, err);
    }

    hearth_arena_release(&arena);

    return status;
}

enum hearth_status hearth_sweep(struct hearth_builder *builder, bool *ret_done,
                                struct hearth_err *err)
{
    struct hearth_retention_progress *at = &builder->store->retention;
    int64_t end_ns = hearth_clock_mono_ns() + SLICE_NS;
    *ret_done = false;

    while (hearth_clock_mono_ns() < end_ns) {
        int32_t service_id = 0;
        HEARTH_TRY(find_next_service(builder, at->sweep_service, &service_id, err));
        at->sweep_service = service_id;
        if (service_id == 0) {
            *ret_done = true;
            return HEARTH_OK;
        }

        HEARTH_TRY(sweep_service(builder, service_id, err));
    }

    return HEARTH_OK;
}
