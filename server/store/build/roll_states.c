/* roll_states.c -- rows of roll_state, as parameters of statements (contract: roll_states.h). */
#include "build/roll_states.h"

#include "pg/pg_rows.h"

#include <assert.h>
#include <stdio.h>

#define STATE(kind, member) HEARTH_COLUMN(kind, struct hearth_roll_state, member)
static const struct hearth_column state_columns[] = {
    STATE(I32, service_id), STATE(I64, watermark_ns), STATE(I64, built_to_ns),
    STATE(I64, compacted_to_ns)};
static const struct hearth_row_type state_rows =
    HEARTH_ROW_TYPE(state_columns, struct hearth_roll_state);

enum hearth_status hearth_roll_states_read(struct hearth_pg *pg, const char *condition,
                                           struct hearth_arena *arena,
                                           struct hearth_roll_state **ret, size_t *ret_n,
                                           enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    char sql[256];
    int length = snprintf(sql, sizeof sql,
                          "SELECT service_id, watermark, built_to, compacted_to FROM"
                          " hearth_data.roll_state WHERE %s",
                          condition);
    assert((size_t)length < sizeof sql);
    (void)length;

    const struct hearth_pg_query query = {.sql = sql, .type = &state_rows, .arena = arena};

    return hearth_pg_select(pg, &query, ret, ret_n, ret_fault, err);
}

void hearth_roll_states_param(struct hearth_pg_params *params, struct hearth_arena *arena,
                              const struct hearth_roll_state *states, size_t n)
{
    hearth_pg_params_init(params, arena);
    hearth_pg_param_rows(params, &state_rows, states, n);
}

enum hearth_status hearth_roll_states_choose(struct hearth_pg *pg, const char *sql,
                                             const struct hearth_roll_state *states, size_t n,
                                             struct hearth_arena *arena,
                                             struct hearth_roll_state **ret, size_t *ret_n,
                                             struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_roll_states_param(&params, arena, states, n);
    const struct hearth_pg_query query = {
        .sql = sql, .params = &params, .type = &state_rows, .arena = arena};

    return hearth_pg_select(pg, &query, ret, ret_n, NULL, err);
}

enum hearth_status hearth_roll_states_match(struct hearth_pg *pg, const char *sql, bool *ret,
                                            struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_roll_state *states = NULL;
    size_t n = 0;
    HEARTH_TRY(hearth_roll_states_read(pg, "true", &arena, &states, &n, NULL, err));

    struct hearth_pg_params params;
    hearth_roll_states_param(&params, &arena, states, n);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, sql, &params, NULL, &result, NULL, err));
    *ret = PQntuples(result) > 0;
    PQclear(result);

    return HEARTH_OK;
}
