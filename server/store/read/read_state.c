/*
 * read_state.c -- the state of services: how far they are built and compacted, which blocks are
 * absent (roll_state), and what is deleted (tombstones). Contract: hearth/store/read.h.
 */
#include "nodes/layout.h"
#include "pg/pg.h"
#include "read/absent_blocks.h"
#include "read/read_internal.h"
#include "session/session.h"

#include <assert.h>
#include <stdlib.h>

struct state_query {
    const struct hearth_scope *scope;
    const int32_t *service_ids; /* of all, or of one node */
    size_t n_services;
    struct hearth_read_state *ret;
    const struct hearth_node_part *part; /* whose shards the statement names; NULL: data tables */
    bool is_stale;                       /* not all of them are there */
    bool is_done;
    struct hearth_buf sql;
    struct hearth_pg_params params;
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

/* Take the state of a service from a row of roll_state. */
static enum hearth_status take_state(const struct state_query *query, const PGresult *result,
                                     int row, struct hearth_err *err)
{
    int32_t service_id = hearth_pg_i32(result, row, 0);
    struct hearth_service_state *state =
        bsearch(&service_id, query->ret->services, query->ret->n_services, sizeof *state,
                hearth_compare_i32);
    if (state == NULL) {
        return HEARTH_OK;
    }

    state->watermark_ns = hearth_pg_i64(result, row, 1);
    state->built_to_ns = hearth_pg_i64(result, row, 2);
    state->compacted_to_ns = hearth_pg_i64(result, row, 3);
    state->generation = hearth_pg_i64(result, row, 4);

    return hearth_absent_blocks_take(result, row, 6, query->scope->arena, state, err);
}

/* Add the states and tombstones of some services. */
static enum hearth_status take_states(struct state_query *query, const PGresult *result,
                                      struct hearth_err *err)
{
    struct hearth_read_state *ret = query->ret;
    struct hearth_arena *arena = query->scope->arena;
    size_t n_rows = (size_t)PQntuples(result);

    struct hearth_tombstone *all =
        hearth_arena_array(arena, ret->n_tombstones + n_rows, sizeof all[0]);
    if (all == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (ret->n_tombstones > 0) {
        memcpy(all, ret->tombstones, ret->n_tombstones * sizeof all[0]);
    }
    ret->tombstones = all;

    /* Rows of tombstones have an array of series; others are of roll_state. */
    for (int row = 0; row < (int)n_rows; row++) {
        if (hearth_pg_is_null(result, row, 0)) {
            continue; /* the number of shards */
        }

        HEARTH_TRY(hearth_pg_is_null(result, row, 5)
                       ? take_state(query, result, row, err)
                       : take_tombstone(result, row, arena, &all[ret->n_tombstones++], err));
    }

    return HEARTH_OK;
}

/* Whether the node had all shards of the part, by the one row without a service. */
static bool has_shards(const struct hearth_node_part *part, const PGresult *result)
{
    for (int row = 0; row < PQntuples(result); row++) {
        if (hearth_pg_is_null(result, row, 0)) {
            return (size_t)hearth_pg_i64(result, row, 1) == part->n_shards;
        }
    }

    return false;
}

/* ---- the statement ---- */

/* Append the states and tombstones of a shard; NULL: of the data tables. */
static void append_states(struct hearth_buf *sql, const struct hearth_shard *shard)
{
    hearth_buf_cstr(sql, "SELECT service_id, watermark, built_to, compacted_to, generation,"
                         " NULL::int4[], absent FROM ");
    hearth_shard_name(sql, HEARTH_SHARD_ROLL_STATE, shard);
    hearth_buf_cstr(sql,
                    " WHERE service_id = ANY ($1::int4[]) UNION ALL SELECT service_id, from_ts,"
                    " to_ts, 0::int8, 0::int8, series_ids, NULL FROM ");
    hearth_shard_name(sql, HEARTH_SHARD_TOMBSTONE, shard);
    hearth_buf_cstr(sql, " WHERE service_id = ANY ($1::int4[])");
}

/*
 * One statement, so that state and tombstones of a service have one snapshot; both by their primary
 * keys.
 */
static void append_statement(struct hearth_buf *sql, const struct hearth_node_part *part)
{
    hearth_buf_cstr(sql, "SELECT * FROM (");
    if (part == NULL) {
        append_states(sql, NULL);
    }

    for (size_t i = 0; part != NULL && i < part->n_shards; i++) {
        append_states(sql, &part->shards[i]);
        hearth_buf_cstr(sql, " UNION ALL ");
    }

    if (part != NULL) {
        hearth_buf_cstr(sql, "SELECT NULL::int4, count(*), 0::int8, 0::int8, 0::int8, NULL, NULL");
        hearth_node_part_count(sql, part);
    }

    hearth_buf_cstr(sql, ") u");
    hearth_buf_byte(sql, '\0');
}

static enum hearth_status read_states_on(void *context, struct hearth_pg *pg,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct state_query *query = context;

    PGresult *result = NULL;
    query->is_stale = false;
    enum hearth_status status = hearth_pg_exec(pg, query->sql.p, &query->params,
                                               query->scope->cancel, &result, ret_fault, err);
    if (query->part != NULL && status != HEARTH_OK) {
        query->is_stale = *ret_fault == HEARTH_PG_FAULT_MISSING_TABLE;
    } else if (query->part != NULL && !has_shards(query->part, result)) {
        query->is_stale = true;
        status = HEARTH_FAIL(err, HEARTH_ABORTED, "a shard has moved");
    } else if (status == HEARTH_OK) {
        status = take_states(query, result, err);
    }

    PQclear(result);

    return status;
}

/* Make the statement: for the shards of a part, or for the data tables (NULL). */
static enum hearth_status make_state_statement(struct state_query *query,
                                               const struct hearth_node_part *part,
                                               struct hearth_err *err)
{
    query->part = part;
    hearth_buf_reset(&query->sql);
    append_statement(&query->sql, part);
    if (hearth_buf_failed(&query->sql)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the text of a query");
    }

    hearth_pg_params_init(&query->params, query->scope->arena);
    query->params.is_repeated = part != NULL || !hearth_layout_is_distributed(query->scope->store);
    hearth_pg_param_i32_array(&query->params, query->service_ids, query->n_services);

    return HEARTH_OK;
}

/* Read the states from the data tables. */
static enum hearth_status read_states(struct state_query *query, struct hearth_err *err)
{
    HEARTH_TRY(make_state_statement(query, NULL, err));

    const struct hearth_store_reader reader = {query->scope, query->service_ids, query->n_services,
                                               read_states_on, query};

    return hearth_store_read_with_pg(&reader, err);
}

/* Prepare the read of a part on its node, if it has shards. */
static enum hearth_status prepare_states(const struct state_query *all,
                                         const struct hearth_node_part *part,
                                         struct state_query *query, struct hearth_node_turn *turn,
                                         struct hearth_err *err)
{
    *query = *all;
    query->service_ids = part->services;
    query->n_services = part->n_services;
    hearth_buf_init(&query->sql, 0);
    *turn = (struct hearth_node_turn){
        .part = part,
        .reader = {query->scope, part->services, part->n_services, read_states_on, query}};
    if (part->n_shards == 0) {
        return HEARTH_OK;
    }

    HEARTH_TRY(make_state_statement(query, part, err));
    turn->statement = (struct hearth_node_statement){query->sql.p, &query->params, false};

    return HEARTH_OK;
}

static enum hearth_status read_states_of_shards(struct state_query *query,
                                                struct hearth_node_turn *turn,
                                                struct hearth_err *err)
{
    turn->statement.sql = NULL;

    return hearth_node_part_read(turn, &query->is_stale, &query->is_done, err);
}

/* Let all nodes work at the same time, then read what none of them has read. */
static enum hearth_status read_states_of_nodes(struct state_query *queries,
                                               struct hearth_node_turn *turns, size_t n,
                                               struct hearth_err *err)
{
    enum hearth_status status = HEARTH_OK;
    struct hearth_node_turn *turn;

    hearth_node_turns_begin(turns, n);
    while (status == HEARTH_OK && (turn = hearth_node_turns_next(turns, n)) != NULL) {
        status = read_states_of_shards(&queries[turn - turns], turn, err);
    }
    hearth_node_turns_end(turns, n);

    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        if (!queries[i].is_done && turns[i].statement.sql != NULL) {
            status = read_states_of_shards(&queries[i], &turns[i], err);
        }
        if (status == HEARTH_OK && !queries[i].is_done) {
            status = read_states(&queries[i], err);
        }
    }

    return status;
}

/* Read node by node where the tables are distributed, otherwise all services together. */
static enum hearth_status read_state_parts(struct state_query *all, struct hearth_err *err)
{
    struct hearth_node_part *parts = NULL;
    size_t n = 0, n_prepared = 0;

    HEARTH_TRY(hearth_node_parts(all->scope->store, all->service_ids, all->n_services,
                                 all->scope->arena, &parts, &n, err));
    if (n == 0) {
        return read_states(all, err);
    }

    struct state_query *queries = hearth_arena_calloc(all->scope->arena, n, sizeof queries[0]);
    struct hearth_node_turn *turns = hearth_arena_calloc(all->scope->arena, n, sizeof turns[0]);
    if (queries == NULL || turns == NULL) {
        return HEARTH_FAIL_ARENA(err, all->scope->arena);
    }

    enum hearth_status status = HEARTH_OK;
    while (n_prepared < n && status == HEARTH_OK) {
        status =
            prepare_states(all, &parts[n_prepared], &queries[n_prepared], &turns[n_prepared], err);
        n_prepared++;
    }
    status = status == HEARTH_OK ? read_states_of_nodes(queries, turns, n, err) : status;
    for (size_t i = 0; i < n_prepared; i++) {
        hearth_buf_release(&queries[i].sql);
    }

    return status;
}

/* Make the states of services without a row. */
static enum hearth_status make_states(const struct state_query *query, struct hearth_err *err)
{
    struct hearth_read_state *ret = query->ret;

    ret->services =
        hearth_arena_array(query->scope->arena, query->n_services, sizeof ret->services[0]);
    if (ret->services == NULL) {
        return HEARTH_FAIL_ARENA(err, query->scope->arena);
    }

    ret->n_services = query->n_services;
    for (size_t i = 0; i < query->n_services; i++) {
        ret->services[i] = (struct hearth_service_state){.service_id = query->service_ids[i],
                                                         .watermark_ns = INT64_MIN,
                                                         .built_to_ns = INT64_MIN,
                                                         .compacted_to_ns = INT64_MIN};
    }

    return HEARTH_OK;
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

    struct state_query query = {
        .scope = scope, .service_ids = service_ids, .n_services = n_services, .ret = ret};
    HEARTH_TRY(make_states(&query, err));
    hearth_buf_init(&query.sql, 0);
    enum hearth_status status = read_state_parts(&query, err);
    hearth_buf_release(&query.sql);
    if (ret->n_tombstones > 0) {
        qsort(ret->tombstones, ret->n_tombstones, sizeof ret->tombstones[0], hearth_compare_i32);
    }

    return status;
}
