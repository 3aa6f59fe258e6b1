/*
 * read.c -- rows, totals and costs of a plan.
 *
 * Where the tables are distributed, each node has a statement of its own, for its services. So
 * services of two nodes are not of one snapshot; each service is.
 *
 * The statement (read_sql.c) returns the generations of its own snapshot, normally before all other
 * rows. A service whose generation differs from the plan's ends the read. (A parallel plan may
 * return them later: the end of the read checks that all were returned.)
 */
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "nodes/layout.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "read/read_parts.h"
#include "read/read_run.h"
#include "session/session.h"
#include "session/wall.h"

#include <assert.h>

static hearth_pg_row_fn *const row_functions[] = {[READ_ROWS] = hearth_read_take_row,
                                                  [READ_TOTALS] = hearth_read_take_total,
                                                  [READ_COSTS] = hearth_read_take_cost};

static enum hearth_status run_read_on(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct read *read = context;
    assert(read->n_rows == read->n_rows_before);

    read->n_current = 0;
    read->has_shards = read->is_stale = false;
    enum hearth_status status =
        hearth_pg_stream(pg, read->statement.sql.p, &read->statement.params, read->scope->cancel,
                         row_functions[read->statement.kind], read, ret_fault, err);
    if (read->n_rows > read->n_rows_before) {
        *ret_fault = HEARTH_PG_FAULT_OTHER; /* a second run would visit rows twice */
    } else if (status != HEARTH_OK && *ret_fault == HEARTH_PG_FAULT_MISSING_TABLE) {
        read->is_stale = read->part != NULL; /* its old tables are gone, too */
    }

    return status == HEARTH_OK ? hearth_read_check_generations(read, err) : status;
}

/* Begin with another plan: the whole one, or that of a node; part: as in struct read. */
static void begin_plan(struct read *read, const struct hearth_read_plan *plan,
                       const struct hearth_node_part *part)
{
    read->now = plan;
    read->part = part;
    read->n_rows_before = read->n_rows;

    /* A service that had no row of roll_state has generation 0. */
    read->n_expected = 0;
    for (size_t i = 0; i < plan->state->n_services; i++) {
        read->n_expected += plan->state->services[i].generation != 0;
    }

    hearth_buf_release(&read->statement.sql);
}

/* Make the statement of a plan that names the data tables, and begin with it. */
static enum hearth_status make_statement(struct read *read, enum read_kind kind,
                                         const struct hearth_read_plan *plan,
                                         struct hearth_err *err)
{
    begin_plan(read, plan, NULL);

    bool is_distributed = hearth_layout_is_distributed(read->scope->store);
    if (kind != READ_TOTALS || is_distributed) {
        return hearth_read_statement_make(&read->statement, kind, plan, is_distributed, NULL, NULL,
                                          &read->arena, err);
    }

    int64_t *leaf_bytes = NULL;
    HEARTH_TRY(hearth_read_leaf_bytes(read->scope, plan, &read->arena, &leaf_bytes, err));

    /* A policy is tested for each row, which took twice as long in the plan of arrays. */
    const struct read_leaves leaves = {.bytes = leaf_bytes,
                                       .in_arrays = !hearth_wall_stands(read->scope)};

    return hearth_read_statement_make(&read->statement, kind, plan, false, NULL, &leaves,
                                      &read->arena, err);
}

/* Return the services of a state; NULL: no memory. */
static int32_t *list_state_services(struct read *read, const struct hearth_read_state *state)
{
    int32_t *services = hearth_arena_array(&read->arena, state->n_services, sizeof services[0]);
    for (size_t i = 0; services != NULL && i < state->n_services; i++) {
        services[i] = state->services[i].service_id;
    }

    return services;
}

/* Run the statement for the services that the plan has a state of. */
static enum hearth_status read_services(struct read *read, struct hearth_err *err)
{
    const struct hearth_read_state *state = read->now->state;
    int32_t *services = list_state_services(read, state);
    if (services == NULL) {
        return HEARTH_FAIL_ARENA(err, &read->arena);
    }

    const struct hearth_store_reader reader = {read->scope, services, state->n_services,
                                               run_read_on, read};

    return hearth_store_read_with_pg(&reader, err);
}

/* The read of the services of one node. */
struct part_read {
    struct hearth_node_turn *turn;
    struct hearth_read_plan plan; /* for the tables of the shards */
    struct read_statement statement;
    bool is_done;
};

/* Make the statement for the tables of the shards; without one, the data tables are read. */
static enum hearth_status prepare_part(struct read *read, enum read_kind kind,
                                       const struct hearth_node_part *part, struct part_read *ret,
                                       struct hearth_err *err)
{
    *ret->turn = (struct hearth_node_turn){
        .part = part, .reader = {read->scope, part->services, part->n_services, run_read_on, read}};
    if (part->n_shards == 0) {
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_read_part_plan(read->plan, part, &read->arena, &ret->plan, err));
    enum hearth_status status = hearth_read_statement_make(&ret->statement, kind, &ret->plan, false,
                                                           part, NULL, &read->arena, NULL);
    if (status != HEARTH_OK) { /* the shorter statement fails, too, if it was not for branches */
        hearth_buf_release(&ret->statement.sql);
        return HEARTH_OK;
    }

    ret->turn->statement =
        (struct hearth_node_statement){ret->statement.sql.p, &ret->statement.params, true};

    return HEARTH_OK;
}

/*
 * Read the tables of the shards of a node. is_done false afterwards: no row was visited, and the
 * names of the data tables may do, because a shard has moved.
 */
static enum hearth_status read_shards(struct read *read, struct part_read *part,
                                      struct hearth_err *err)
{
    begin_plan(read, &part->plan, part->turn->part);
    read->statement = part->statement;
    hearth_buf_init(&part->statement.sql, 0); /* it belongs to `read` now */
    part->turn->statement.sql = NULL;
    HEARTH_TRY(hearth_node_part_read(part->turn, &read->is_stale, &part->is_done, err));

    return read->is_stale && read->n_rows > read->n_rows_before ? hearth_read_fail_moved(read, err)
                                                                : HEARTH_OK;
}

/* Read what no node has read at the same time as others. */
static enum hearth_status read_rest(struct read *read, enum read_kind kind, struct part_read *part,
                                    struct hearth_err *err)
{
    if (!part->is_done && part->turn->statement.sql != NULL) {
        HEARTH_TRY(read_shards(read, part, err));
    }
    if (part->is_done) {
        return HEARTH_OK;
    }

    struct hearth_node_part whole = *part->turn->part;
    struct hearth_read_plan plan;
    whole.n_shards = 0;
    whole.shard_of = NULL;
    HEARTH_TRY(hearth_read_part_plan(read->plan, &whole, &read->arena, &plan, err));
    HEARTH_TRY(make_statement(read, kind, &plan, err));

    return read_services(read, err);
}

/* Let all nodes work at the same time, then read from them one after the other. */
static enum hearth_status read_all_parts(struct read *read, enum read_kind kind,
                                         const struct hearth_node_part *parts, size_t n,
                                         struct hearth_err *err)
{
    struct part_read *reads = hearth_arena_calloc(&read->arena, n, sizeof reads[0]);
    struct hearth_node_turn *turns = hearth_arena_calloc(&read->arena, n, sizeof turns[0]);
    if (reads == NULL || turns == NULL) {
        return HEARTH_FAIL_ARENA(err, &read->arena);
    }

    enum hearth_status status = HEARTH_OK;
    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        reads[i].turn = &turns[i];
        status = prepare_part(read, kind, &parts[i], &reads[i], err);
    }

    if (status == HEARTH_OK) {
        hearth_node_turns_begin(turns, n);
        struct hearth_node_turn *turn;
        while (status == HEARTH_OK && (turn = hearth_node_turns_next(turns, n)) != NULL) {
            status = read_shards(read, &reads[turn - turns], err);
        }
        hearth_node_turns_end(turns, n);
    }

    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        status = read_rest(read, kind, &reads[i], err);
    }

    for (size_t i = 0; i < n; i++) {
        hearth_buf_release(&reads[i].statement.sql);
    }

    return status;
}

/* Read node by node where the tables are distributed, otherwise all services together. */
static enum hearth_status read_parts(struct read *read, enum read_kind kind, struct hearth_err *err)
{
    struct hearth_node_part *parts = NULL;
    size_t n_parts = 0;

    if (read->scope->store->nodes != NULL) {
        int32_t *services = list_state_services(read, read->plan->state);
        if (services == NULL) {
            return HEARTH_FAIL_ARENA(err, &read->arena);
        }
        HEARTH_TRY(hearth_node_parts(read->scope->store, services, read->plan->state->n_services,
                                     &read->arena, &parts, &n_parts, err));
    }

    if (n_parts == 0) {
        HEARTH_TRY(make_statement(read, kind, read->plan, err));
        return read_services(read, err);
    }

    return read_all_parts(read, kind, parts, n_parts, err);
}

static enum hearth_status run_read(struct read *read, enum read_kind kind, struct hearth_err *err)
{
    assert(read->plan->state != NULL);
    assert((read->visit_row != NULL) == (kind == READ_ROWS));
    assert((read->visit_total != NULL) == (kind == READ_TOTALS));

    HEARTH_TRY(hearth_store_check_open(read->scope->store, err));
    if (read->plan->n_legs == 0) {
        return HEARTH_OK;
    }

    hearth_arena_init(&read->arena, 0);
    hearth_arena_init(&read->rows, HEARTH_READ_UNPACKED_BYTES);
    hearth_buf_init(&read->ids, 0);
    hearth_buf_init(&read->val, 0);
    hearth_buf_init(&read->val0, 0);
    read->arena.budget = read->rows.budget = read->plan->budget;
    read->ids.budget = read->val.budget = read->val0.budget = read->plan->budget;

    enum hearth_status status = read_parts(read, kind, err);

    if (kind != READ_COSTS) {
        hearth_metric_add(HEARTH_M_QUERY_ROWS, read->n_rows);
        hearth_metric_add(HEARTH_M_QUERY_BYTES, read->n_bytes);
    }

    /* Release. */
    hearth_buf_release(&read->statement.sql);
    hearth_inflater_free(read->inflater);
    hearth_buf_release(&read->ids);
    hearth_buf_release(&read->val);
    hearth_buf_release(&read->val0);
    hearth_arena_release(&read->rows);
    hearth_arena_release(&read->arena);

    return status;
}

enum hearth_status hearth_store_read(const struct hearth_scope *scope,
                                     const struct hearth_read_plan *plan, hearth_read_row_fn *visit,
                                     void *context, struct hearth_err *err)
{
    struct read read = {.scope = scope, .plan = plan, .visit_row = visit, .context = context};
    return run_read(&read, READ_ROWS, err);
}

enum hearth_status hearth_store_read_totals(const struct hearth_scope *scope,
                                            const struct hearth_read_plan *plan,
                                            hearth_read_total_fn *visit, void *context,
                                            struct hearth_err *err)
{
    const struct hearth_total_visitor visitor = {.total = visit, .context = context};
    return hearth_store_visit_totals(scope, plan, &visitor, err);
}

enum hearth_status hearth_store_visit_totals(const struct hearth_scope *scope,
                                             const struct hearth_read_plan *plan,
                                             const struct hearth_total_visitor *visitor,
                                             struct hearth_err *err)
{
    struct read read = {.scope = scope,
                        .plan = plan,
                        .visit_total = visitor->total,
                        .visit_totals = visitor->totals,
                        .context = visitor->context};
    return run_read(&read, READ_TOTALS, err);
}

enum hearth_status hearth_store_read_cost(const struct hearth_scope *scope,
                                          const struct hearth_read_plan *plan,
                                          struct hearth_leg_cost *costs, struct hearth_err *err)
{
    memset(costs, 0, plan->n_legs * sizeof costs[0]);

    struct read read = {.scope = scope, .plan = plan, .costs = costs};
    return run_read(&read, READ_COSTS, err);
}
