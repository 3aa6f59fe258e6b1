/*
 * read_state.c -- the state of services: how far they are built and compacted, which blocks are
 * absent (roll_state), and what is deleted (tombstones). Contract: hearth/store/read.h.
 */
#include "pg/pg.h"
#include "pg/session.h"
#include "read/absent_blocks.h"
#include "read/read_internal.h"

#include <assert.h>
#include <stdlib.h>

struct state_query {
    const struct hearth_scope *scope;
    const int32_t *service_ids;
    size_t n_services;
    struct hearth_read_state *ret;
};

static enum hearth_status take_tombstone(const PGresult *result, int row,
                                         struct hearth_arena *arena, struct hearth_tombstone *ret,
                                         struct hearth_err *err)
{
    *ret = (struct hearth_tombstone){.service_id = hearth_pg_i32(result, row, 0),
                                     .from_ns = hearth_pg_i64(result, row, 1),
                                     .to_ns = hearth_pg_i64(result, row, 2)};
    HEARTH_TRY(hearth_pg_i32_array(result, row, 5, arena, &ret->series_ids, &ret->n_series, err));

    /* The array is searched later. */
    for (size_t i = 1; i < ret->n_series; i++) {
        if (ret->series_ids[i - 1] >= ret->series_ids[i]) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT,
                               "a tombstone of service %d has its series out of order",
                               (int)ret->service_id);
        }
    }

    return HEARTH_OK;
}

static enum hearth_status take_states(const struct state_query *query, const PGresult *result,
                                      struct hearth_err *err)
{
    struct hearth_read_state *ret = query->ret;
    struct hearth_arena *arena = query->scope->arena;
    int n_rows = PQntuples(result);

    ret->services = hearth_arena_array(arena, query->n_services, sizeof ret->services[0]);
    ret->tombstones = hearth_arena_array(arena, (size_t)n_rows, sizeof ret->tombstones[0]);
    if (ret->services == NULL || ret->tombstones == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Services without a row. */
    ret->n_services = query->n_services;
    ret->n_tombstones = 0;
    for (size_t i = 0; i < query->n_services; i++) {
        ret->services[i] = (struct hearth_service_state){.service_id = query->service_ids[i],
                                                         .watermark_ns = INT64_MIN,
                                                         .built_to_ns = INT64_MIN,
                                                         .compacted_to_ns = INT64_MIN};
    }

    /* Rows of tombstones have an array of series; others are of roll_state. */
    for (int row = 0; row < n_rows; row++) {
        if (!hearth_pg_is_null(result, row, 5)) {
            HEARTH_TRY(
                take_tombstone(result, row, arena, &ret->tombstones[ret->n_tombstones++], err));
            continue;
        }

        int32_t service_id = hearth_pg_i32(result, row, 0);
        struct hearth_service_state *state = bsearch(&service_id, ret->services, ret->n_services,
                                                     sizeof ret->services[0], hearth_compare_i32);
        if (state != NULL) {
            state->watermark_ns = hearth_pg_i64(result, row, 1);
            state->built_to_ns = hearth_pg_i64(result, row, 2);
            state->compacted_to_ns = hearth_pg_i64(result, row, 3);
            state->generation = hearth_pg_i64(result, row, 4);
            HEARTH_TRY(hearth_absent_blocks_take(result, row, 6, arena, state, err));
        }
    }

    if (ret->n_tombstones > 0) {
        qsort(ret->tombstones, ret->n_tombstones, sizeof ret->tombstones[0], hearth_compare_i32);
    }

    return HEARTH_OK;
}

/* One statement, so that state and tombstones have one snapshot; both by their primary keys. */
static enum hearth_status read_states_on(void *context, struct hearth_pg *pg,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const struct state_query *query = context;
    struct hearth_pg_params params;

    hearth_pg_params_init(&params, query->scope->arena);
    hearth_pg_param_i32_array(&params, query->service_ids, query->n_services);

    PGresult *result = NULL;
    enum hearth_status status = hearth_pg_exec(
        pg,
        "SELECT * FROM (SELECT service_id, watermark, built_to, compacted_to, generation,"
        " NULL::int4[], absent FROM hearth_data.roll_state WHERE service_id = ANY ($1::int4[])"
        " UNION ALL SELECT service_id, from_ts, to_ts, 0::int8, 0::int8, series_ids, NULL"
        " FROM hearth_data.tombstone WHERE service_id = ANY ($1::int4[])) u",
        &params, query->scope->cancel, &result, ret_fault, err);
    if (status == HEARTH_OK) {
        status = take_states(query, result, err);
    }

    PQclear(result);

    return status;
}

enum hearth_status hearth_store_read_state(const struct hearth_scope *scope,
                                           const int32_t *service_ids, size_t n_services,
                                           struct hearth_read_state *ret, struct hearth_err *err)
{
    assert(scope->arena != NULL);
    assert(service_ids != NULL || n_services == 0);
    for (size_t i = 1; i < n_services; i++) {
        assert(service_ids[i - 1] < service_ids[i]);
    }

    *ret = (struct hearth_read_state){0};
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    if (n_services == 0) {
        return HEARTH_OK;
    }

    struct state_query query = {scope, service_ids, n_services, ret};

    const struct hearth_store_reader reader = {scope, service_ids, n_services, read_states_on,
                                               &query};

    return hearth_store_read_with_pg(&reader, err);
}
