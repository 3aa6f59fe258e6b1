/* pg_script.c -- several statements in one message: scripts and pipelines (contract: pg.h). */
#include "pg/pg.h"
#include "pg/pg_result.h"
#include "pg/pg_wait.h"

#include <assert.h>

/* ---- scripts ---- */

enum hearth_status hearth_pg_script_send(struct hearth_pg *pg, const char *sql,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    assert(sql != NULL);

    hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_NONE);
    HEARTH_TRY(hearth_pg_check_open(pg, ret_fault, err));
    bool is_idle = PQtransactionStatus(pg->conn) == PQTRANS_IDLE;
    if (pg->read_only != NULL && is_idle) {
        hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_OTHER);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%s", pg->read_only);
    }
    if (pg->wall != NULL && is_idle) {
        hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_OTHER);
        return HEARTH_FAIL(err, HEARTH_INTERNAL,
                           "a script outside a transaction would run without its tenants");
    }

    return PQsendQuery(pg->conn, sql) == 1 ? HEARTH_OK : hearth_pg_fail_lost(pg, ret_fault, err);
}

enum hearth_status hearth_pg_script_next(struct hearth_pg *pg, PGresult **ret_result,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_NONE);
    HEARTH_TRY(hearth_pg_check_open(pg, ret_fault, err));
    struct hearth_pg_patience patience = hearth_pg_choose_patience(pg, NULL);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_next_result(pg, &patience, &result, ret_fault, err));
    if (result != NULL && hearth_pg_is_failure(result)) {
        return hearth_pg_fail_result(pg, &patience, result, ret_fault, err);
    }

    *ret_result = result;

    return result != NULL ? HEARTH_OK : hearth_pg_check_standby(pg, ret_fault, err);
}

enum hearth_status hearth_pg_script(struct hearth_pg *pg, const char *sql,
                                    enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_script_send(pg, sql, ret_fault, err));

    for (;;) {
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_script_next(pg, &result, ret_fault, err));
        if (result == NULL) {
            return HEARTH_OK;
        }

        PQclear(result);
    }
}

void hearth_pg_rollback(struct hearth_pg *pg)
{
    if (pg->conn != NULL && PQtransactionStatus(pg->conn) != PQTRANS_IDLE &&
        hearth_pg_script(pg, "ROLLBACK", NULL, NULL) != HEARTH_OK) {
        hearth_pg_close(pg);
    }
}

/* ---- pipelines of prepared statements ---- */

enum hearth_status hearth_pg_pipeline_begin(struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                            struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_check_open(pg, ret_fault, err));
    assert(pg->is_direct && pg->wall == NULL && PQtransactionStatus(pg->conn) == PQTRANS_IDLE);

    if (pg->read_only != NULL) {
        hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_OTHER);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%s", pg->read_only);
    }

    return PQenterPipelineMode(pg->conn) == 1 ? HEARTH_OK : hearth_pg_fail_lost(pg, ret_fault, err);
}

enum hearth_status hearth_pg_pipeline_prepare(struct hearth_pg *pg, const char *name,
                                              const char *sql, enum hearth_pg_fault *ret_fault,
                                              struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_check_open(pg, ret_fault, err));

    return PQsendPrepare(pg->conn, name, sql, 0, NULL) == 1
               ? HEARTH_OK
               : hearth_pg_fail_lost(pg, ret_fault, err);
}

enum hearth_status hearth_pg_pipeline_run(struct hearth_pg *pg, const char *name, int n,
                                          const char *const *values, const int *lengths,
                                          enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    int formats[HEARTH_PG_MAX_FIELDS];
    assert(n <= HEARTH_PG_MAX_FIELDS);

    HEARTH_TRY(hearth_pg_check_open(pg, ret_fault, err));
    for (int i = 0; i < n; i++) {
        formats[i] = 1;
    }

    return PQsendQueryPrepared(pg->conn, name, n, values, lengths, formats, 1) == 1
               ? HEARTH_OK
               : hearth_pg_fail_lost(pg, ret_fault, err);
}

enum hearth_status hearth_pg_pipeline_end(struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                          struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_check_open(pg, ret_fault, err));

    return PQpipelineSync(pg->conn) == 1 ? HEARTH_OK : hearth_pg_fail_lost(pg, ret_fault, err);
}

enum hearth_status hearth_pg_pipeline_next(struct hearth_pg *pg, PGresult **ret_result,
                                           enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_pg_patience patience = hearth_pg_choose_patience(pg, NULL);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_check_open(pg, ret_fault, err));

    /* A statement has one result, and an end. */
    for (int i = 0; i < 2 && result == NULL; i++) {
        HEARTH_TRY(hearth_pg_next_result(pg, &patience, &result, ret_fault, err));
    }

    *ret_result = result;
    if (result == NULL) {
        return hearth_pg_fail_lost(pg, ret_fault, err);
    }
    if (hearth_pg_is_failure(result)) {
        return hearth_pg_fail_result(pg, &patience, result, ret_fault, err);
    }
    if (PQresultStatus(result) != PGRES_PIPELINE_SYNC) {
        return HEARTH_OK;
    }

    PQclear(result);
    *ret_result = NULL;

    return PQexitPipelineMode(pg->conn) == 1 ? hearth_pg_check_standby(pg, ret_fault, err)
                                             : hearth_pg_fail_lost(pg, ret_fault, err);
}
