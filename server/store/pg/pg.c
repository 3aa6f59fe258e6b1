/*
 * pg.c -- statements on one PostgreSQL connection: sending them, with or without preparing, and
 * what a transaction begins with (contract: pg.h).
 */
#include "pg/pg.h"

#include "hearth/base/clock.h"
#include "hearth/base/metrics.h"
#include "hearth/base/work_steps.h"

#include "pg/pg_result.h"
#include "pg/pg_wait.h"

#include <assert.h>
#include <stdio.h>

/* Enters tenants: $1 names, $2 services, $3 role (sql/0021_row_level_security.sql). */
#define ENTER_SQL "SELECT hearth_data.enter_tenants($1, $2, $3)"

/* For this transaction only: a pooler may give the session to another program. */
#define READ_ONLY "set_config('transaction_read_only', 'on', true)"

/* The statement that a transaction begins with; NULL: none. */
static const char *find_first_sql(const struct hearth_pg *pg)
{
    if (pg->wall == NULL) {
        return pg->read_only == NULL ? NULL : "SELECT " READ_ONLY;
    }

    return pg->read_only == NULL ? ENTER_SQL : ENTER_SQL ", " READ_ONLY;
}

/* ---- statements that are run again ---- */

/* Return what is known of a text; NULL: nothing. */
static struct hearth_pg_repeated *find_repeated(struct hearth_pg *pg, const char *sql)
{
    struct hearth_hash128 text = hearth_hash128(sql, strlen(sql), 0);
    for (size_t i = 0; i < HEARTH_PG_REPEATED; i++) {
        if (pg->repeated[i].last_run > 0 && hearth_hash128_eq(pg->repeated[i].text, text)) {
            return &pg->repeated[i];
        }
    }

    return NULL;
}

/* Whether it was prepared, or was not worth it; if it has one plan, not long ago. */
static bool is_settled(const struct hearth_pg_repeated *known)
{
    return known->prepared_mono_ns != 0 &&
           (!known->has_one_plan ||
            hearth_clock_mono_ns() - known->prepared_mono_ns < HEARTH_PG_PREPARED_NS);
}

static void name_repeated(uint32_t number, char name[24])
{
    (void)snprintf(name, 24, "hearth_%u", (unsigned)number);
}

/* Forget a statement, and let PostgreSQL forget it. The connection is idle, or lost. */
static void forget_repeated(struct hearth_pg *pg, struct hearth_pg_repeated *known)
{
    char name[24], sql[40];
    name_repeated(known->number, name);
    (void)snprintf(sql, sizeof sql, "DEALLOCATE %s", name);

    bool is_prepared = known->number != 0;
    *known = (struct hearth_pg_repeated){0};
    if (is_prepared && pg->conn != NULL && PQtransactionStatus(pg->conn) == PQTRANS_IDLE &&
        hearth_pg_exec(pg, sql, NULL, NULL, NULL, NULL, NULL) != HEARTH_OK) {
        hearth_pg_close(pg);
    }
}

/* Remember a text in the place of the one that was run longest ago. */
static void remember_repeated(struct hearth_pg *pg, const char *sql)
{
    struct hearth_pg_repeated *oldest = &pg->repeated[0];
    for (size_t i = 1; i < HEARTH_PG_REPEATED; i++) {
        oldest = pg->repeated[i].last_run < oldest->last_run ? &pg->repeated[i] : oldest;
    }

    forget_repeated(pg, oldest);
    *oldest = (struct hearth_pg_repeated){.text = hearth_hash128(sql, strlen(sql), 0),
                                          .last_run = ++pg->n_repeated,
                                          .last_mono_ns = hearth_clock_mono_ns()};
}

/* Whether preparing the statement pays: always, or if one_plan_if of its parameters says so. */
static bool is_worth_preparing(struct hearth_pg *pg, const struct hearth_pg_params *params)
{
    PGresult *result = NULL;
    if (params->one_plan_if == NULL) {
        return true;
    }
    if (hearth_pg_exec(pg, params->one_plan_if, NULL, NULL, &result, NULL, NULL) != HEARTH_OK) {
        return false;
    }

    bool is_worth_it = PQntuples(result) == 1 && PQgetlength(result, 0, 0) == 1 &&
                       PQgetvalue(result, 0, 0)[0] != 0;
    PQclear(result);

    return is_worth_it;
}

static void prepare_repeated(struct hearth_pg *pg, const char *sql,
                             const struct hearth_pg_params *params,
                             struct hearth_pg_repeated *known)
{
    char name[24];
    known->prepared_mono_ns = hearth_clock_mono_ns();
    known->has_one_plan = params->one_plan_if != NULL;
    if (!is_worth_preparing(pg, params) || pg->conn == NULL) {
        return;
    }

    uint32_t number = ++pg->n_prepared;
    name_repeated(number, name);
    enum hearth_status status = hearth_pg_pipeline_begin(pg, NULL, NULL);
    if (status == HEARTH_OK && PQsendPrepare(pg->conn, name, sql, params->n, params->types) != 1) {
        status = hearth_pg_fail_lost(pg, NULL, NULL);
    }
    status = status == HEARTH_OK ? hearth_pg_pipeline_end(pg, NULL, NULL) : status;

    /* The result of preparing it, then the end of the pipeline. */
    bool is_at_end = false;
    while (status == HEARTH_OK && !is_at_end) {
        PGresult *result = NULL;
        status = hearth_pg_pipeline_next(pg, &result, NULL, NULL);
        is_at_end = result == NULL;
        PQclear(result);
    }

    known->number = status == HEARTH_OK ? number : 0;
}

/*
 * After a run: remember the text, and prepare it after its second run. If that fails, the next runs
 * do without. Forget what has failed: after a change of its tables, it may never run again.
 */
static void learn_repeated(struct hearth_pg *pg, const char *sql,
                           const struct hearth_pg_params *params, bool is_ok)
{
    struct hearth_pg_repeated *known = find_repeated(pg, sql);
    if (!is_ok && known != NULL) {
        forget_repeated(pg, known);
    }

    if (!is_ok || !pg->is_direct || pg->wall != NULL || pg->read_only != NULL || pg->conn == NULL ||
        PQtransactionStatus(pg->conn) != PQTRANS_IDLE) {
        return;
    }

    bool is_small = pg->n_visited <= HEARTH_PG_PREPARED_ROWS;
    if (known != NULL && known->number != 0 && (!is_small || !is_settled(known))) {
        forget_repeated(pg, known);
        known = NULL;
    }

    if (known == NULL) {
        remember_repeated(pg, sql);
        return;
    }

    int64_t now_ns = hearth_clock_mono_ns();
    bool is_frequent =
        params->one_plan_if == NULL || now_ns - known->last_mono_ns < HEARTH_PG_RUN_AGAIN_NS;
    known->last_run = ++pg->n_repeated;
    known->last_mono_ns = now_ns;
    if (known->number == 0 && is_small && is_frequent && !is_settled(known)) {
        prepare_repeated(pg, sql, params, known);
    }
}

/* ---- sending ---- */

static bool send_statement(struct hearth_pg *pg, const char *sql,
                           const struct hearth_pg_params *params);

/*
 * Send a prepared statement, for which PostgreSQL uses one plan for all values. The setting would
 * reach all other statements of the session, so it is only made for this one.
 */
static bool send_one_plan(struct hearth_pg *pg, const char *name,
                          const struct hearth_pg_params *params)
{
    pg->is_one_plan = true;

    return PQenterPipelineMode(pg->conn) == 1 &&
           send_statement(pg, "SET plan_cache_mode = force_generic_plan", NULL) &&
           PQsendQueryPrepared(pg->conn, name, params->n, params->values, params->lengths,
                               params->formats, 1) == 1 &&
           send_statement(pg, "RESET plan_cache_mode", NULL) && PQpipelineSync(pg->conn) == 1;
}

/* Send a statement that may be prepared. */
static bool send_repeated(struct hearth_pg *pg, const char *sql,
                          const struct hearth_pg_params *params)
{
    const struct hearth_pg_repeated *known = find_repeated(pg, sql);
    char name[24];

    if (known == NULL || known->number == 0 || !is_settled(known) || find_first_sql(pg) != NULL) {
        return PQsendQueryParams(pg->conn, sql, params->n, params->types, params->values,
                                 params->lengths, params->formats, 1) == 1;
    }

    name_repeated(known->number, name);
    if (params->one_plan_if != NULL) {
        return send_one_plan(pg, name, params);
    }

    return PQsendQueryPrepared(pg->conn, name, params->n, params->values, params->lengths,
                               params->formats, 1) == 1;
}

static bool send_statement(struct hearth_pg *pg, const char *sql,
                           const struct hearth_pg_params *params)
{
    assert(sql != NULL);
    assert(params == NULL || params->n <= (int)HEARTH_ARRAY_LEN(params->values));

    if (params != NULL && params->is_repeated) {
        return send_repeated(pg, sql, params);
    }

    return params == NULL
               ? PQsendQueryParams(pg->conn, sql, 0, NULL, NULL, NULL, NULL, 1) == 1
               : PQsendQueryParams(pg->conn, sql, params->n, params->types, params->values,
                                   params->lengths, params->formats, 1) == 1;
}

/* Skip the result of a statement of a pipeline, which must not fail. */
static enum hearth_status skip_result(struct hearth_pg *pg,
                                      const struct hearth_pg_patience *patience,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    PGresult *result = NULL;

    HEARTH_TRY(hearth_pg_next_result(pg, patience, &result, ret_fault, err));
    if (result == NULL) {
        return hearth_pg_fail_lost(pg, ret_fault, err);
    }

    if (hearth_pg_is_failure(result)) {
        return hearth_pg_fail_result(pg, patience, result, ret_fault, err);
    }

    PQclear(result);
    HEARTH_TRY(hearth_pg_next_result(pg, patience, &result, ret_fault, err));
    if (result == NULL) { /* the end of the statement */
        return HEARTH_OK;
    }

    PQclear(result);

    return hearth_pg_fail_lost(pg, ret_fault, err);
}

/* Send two statements as one pipeline, which is one transaction unless `first` is BEGIN. */
static bool send_pipeline(struct hearth_pg *pg, const char *first,
                          const struct hearth_pg_params *first_params, const char *second,
                          const struct hearth_pg_params *second_params)
{
    return PQenterPipelineMode(pg->conn) == 1 && send_statement(pg, first, first_params) &&
           send_statement(pg, second, second_params) && PQpipelineSync(pg->conn) == 1;
}

/* Send the statement, unless it is on its way; outside a transaction, after what it begins with. */
static enum hearth_status send_params(struct hearth_pg *pg, const char *sql,
                                      const struct hearth_pg_params *params,
                                      const struct hearth_pg_patience *patience,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_check_open(pg, ret_fault, err));
    if (pg->ahead != NULL) {
        assert(pg->ahead == sql);
        pg->ahead = NULL;
        return HEARTH_OK;
    }

    pg->is_one_plan = false;

    const struct hearth_pg_params *failed =
        params != NULL && params->failed ? params
                                         : (pg->wall != NULL && pg->wall->failed ? pg->wall : NULL);
    if (failed != NULL) {
        hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_OTHER);
        return HEARTH_FAIL_ARENA(err, failed->arena);
    }

    const char *first = find_first_sql(pg);
    if (first == NULL || PQtransactionStatus(pg->conn) != PQTRANS_IDLE) {
        return send_statement(pg, sql, params) ? HEARTH_OK
                                               : hearth_pg_fail_lost(pg, ret_fault, err);
    }

    if (!send_pipeline(pg, first, pg->wall, sql, params)) {
        return hearth_pg_fail_lost(pg, ret_fault, err);
    }

    return skip_result(pg, patience, ret_fault, err);
}

/*
 * Discard what follows the result of the statement. After a pipeline, its end is awaited: it is the
 * commit, which may still fail.
 */
static enum hearth_status end_statement(struct hearth_pg *pg,
                                        const struct hearth_pg_patience *patience,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    if (pg->conn == NULL || PQpipelineStatus(pg->conn) == PQ_PIPELINE_OFF) {
        hearth_pg_drain_results(pg, patience);
        return hearth_pg_check_standby(pg, ret_fault, err);
    }

    /* The end of the statement, then that of the pipeline or the failure of the commit. */
    PGresult *result = NULL;
    for (int i = 0; i < 3; i++) {
        HEARTH_TRY(hearth_pg_next_result(pg, patience, &result, ret_fault, err));
        if (result != NULL) {
            break;
        }
    }

    if (result != NULL && hearth_pg_is_failure(result)) {
        return hearth_pg_fail_result(pg, patience, result, ret_fault, err);
    }

    bool at_end = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
    PQclear(result);

    return at_end && PQexitPipelineMode(pg->conn) == 1 ? hearth_pg_check_standby(pg, ret_fault, err)
                                                       : hearth_pg_fail_lost(pg, ret_fault, err);
}

/* ---- statements ---- */

static enum hearth_status exec_statement(struct hearth_pg *pg, const char *sql,
                                         const struct hearth_pg_params *params,
                                         struct hearth_cancel *cancel, PGresult **ret_result,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    assert(params == NULL || params->one_plan_if == NULL);

    hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_NONE);
    struct hearth_pg_patience patience = hearth_pg_choose_patience(pg, cancel);
    HEARTH_TRY(send_params(pg, sql, params, &patience, ret_fault, err));
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_next_result(pg, &patience, &result, ret_fault, err));
    if (result == NULL) {
        return hearth_pg_fail_lost(pg, ret_fault, err);
    }

    if (hearth_pg_is_failure(result)) {
        return hearth_pg_fail_result(pg, &patience, result, ret_fault, err);
    }

    enum hearth_status status = end_statement(pg, &patience, ret_fault, err);
    if (status != HEARTH_OK) {
        PQclear(result);
        return status;
    }

    if (ret_result != NULL) {
        *ret_result = result;
    } else {
        PQclear(result);
    }

    return HEARTH_OK;
}

static enum hearth_status stream_statement(struct hearth_pg *pg, const char *sql,
                                           const struct hearth_pg_params *params,
                                           struct hearth_cancel *cancel, hearth_pg_row_fn *visit,
                                           void *context, enum hearth_pg_fault *ret_fault,
                                           struct hearth_err *err)
{
    assert(visit != NULL);

    /* Send the statement. */
    hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_NONE);
    struct hearth_pg_patience patience = hearth_pg_choose_patience(pg, cancel);
    bool was_sent = pg->ahead != NULL;
    HEARTH_TRY(send_params(pg, sql, params, &patience, ret_fault, err));
    if (pg->is_one_plan) {
        HEARTH_TRY(skip_result(pg, &patience, ret_fault, err));
    }
    if ((!was_sent || pg->is_one_plan) && PQsetSingleRowMode(pg->conn) != 1) {
        return hearth_pg_fail_lost(pg, ret_fault, err);
    }

    /* Visit the rows. */
    pg->n_visited = 0;
    for (;;) {
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_next_result(pg, &patience, &result, ret_fault, err));
        if (result == NULL) {
            if (pg->is_one_plan) {
                HEARTH_TRY(skip_result(pg, &patience, ret_fault, err));
            }
            return end_statement(pg, &patience, ret_fault, err);
        }

        if (hearth_pg_is_failure(result)) {
            return hearth_pg_fail_result(pg, &patience, result, ret_fault, err);
        }

        enum hearth_status status = HEARTH_OK;
        if (PQresultStatus(result) == PGRES_SINGLE_TUPLE) {
            /* Buffered rows need no await_socket(): check for cancellation every 256 rows. */
            if ((++pg->n_visited & 0xff) == 0) {
                status = hearth_cancel_check(patience.cancel, err);
            }

            if (status == HEARTH_OK) {
                status = visit(context, result, err);
            }

            if (status != HEARTH_OK) {
                hearth_pg_give_up_statement(pg, ret_fault);
            }
        }

        PQclear(result);
        HEARTH_TRY(status);
    }
}

static void note_statement(int64_t began_ns)
{
    hearth_work_step_add("postgres", began_ns);
    hearth_metric_observe_ns(HEARTH_M_PG_STATEMENTS, hearth_str_n(NULL, 0),
                             hearth_clock_mono_ns() - began_ns);
}

enum hearth_status hearth_pg_exec(struct hearth_pg *pg, const char *sql,
                                  const struct hearth_pg_params *params,
                                  struct hearth_cancel *cancel, PGresult **ret_result,
                                  enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    int64_t began_ns = hearth_clock_mono_ns();
    enum hearth_status status = exec_statement(pg, sql, params, cancel, ret_result, ret_fault, err);

    pg->n_visited = 0;
    note_statement(began_ns);
    if (params != NULL && params->is_repeated) {
        learn_repeated(pg, sql, params, status == HEARTH_OK);
    }

    return status;
}

enum hearth_status hearth_pg_stream(struct hearth_pg *pg, const char *sql,
                                    const struct hearth_pg_params *params,
                                    struct hearth_cancel *cancel, hearth_pg_row_fn *visit,
                                    void *context, enum hearth_pg_fault *ret_fault,
                                    struct hearth_err *err)
{
    int64_t began_ns = hearth_clock_mono_ns();
    enum hearth_status status =
        stream_statement(pg, sql, params, cancel, visit, context, ret_fault, err);

    note_statement(began_ns);
    if (params != NULL && params->is_repeated) {
        learn_repeated(pg, sql, params, status == HEARTH_OK);
    }

    return status;
}

/* ---- statements on several connections ---- */

enum hearth_status hearth_pg_send_ahead(struct hearth_pg *pg, const char *sql,
                                        const struct hearth_pg_params *params, bool is_streamed,
                                        struct hearth_err *err)
{
    assert(pg->ahead == NULL);

    if (find_first_sql(pg) != NULL) {
        return HEARTH_OK;
    }

    struct hearth_pg_patience none = {NULL, INT64_MAX};
    HEARTH_TRY(send_params(pg, sql, params, &none, NULL, err));
    if (is_streamed && !pg->is_one_plan && PQsetSingleRowMode(pg->conn) != 1) {
        return hearth_pg_fail_lost(pg, NULL, err);
    }

    pg->ahead = sql;
    pg->ahead_mono_ns = hearth_clock_mono_ns();

    return HEARTH_OK;
}

/* ---- transactions ---- */

const struct hearth_pg_params *hearth_pg_leave_wall(struct hearth_pg *pg)
{
    assert(pg->conn == NULL || PQtransactionStatus(pg->conn) != PQTRANS_INTRANS);

    const struct hearth_pg_params *wall = pg->wall;
    pg->wall = NULL;

    return wall;
}

enum hearth_status hearth_pg_begin(struct hearth_pg *pg, const char *begin,
                                   enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const char *first = find_first_sql(pg);
    if (first == NULL) {
        return hearth_pg_script(pg, begin, ret_fault, err);
    }

    hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_NONE);
    struct hearth_pg_patience patience = hearth_pg_choose_patience(pg, NULL);
    HEARTH_TRY(hearth_pg_check_open(pg, ret_fault, err));
    if (pg->wall != NULL && pg->wall->failed) {
        hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_OTHER);
        return HEARTH_FAIL_ARENA(err, pg->wall->arena);
    }

    /* Both results are skipped. */
    if (!send_pipeline(pg, begin, NULL, first, pg->wall)) {
        return hearth_pg_fail_lost(pg, ret_fault, err);
    }

    HEARTH_TRY(skip_result(pg, &patience, ret_fault, err));
    HEARTH_TRY(skip_result(pg, &patience, ret_fault, err));

    return end_statement(pg, &patience, ret_fault, err);
}
