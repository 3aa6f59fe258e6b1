/*
 * pg.c -- statements, scripts and COPY on one PostgreSQL connection, and the meaning of errors.
 *
 * The socket is non-blocking. Statements wait in await_socket() below, which checks cancellation
 * and deadline at least every 50 ms. A statement that is given up is cancelled in PostgreSQL, and
 * its connection is closed: a cancel request that arrives late would otherwise hit the next
 * statement.
 */
#include "pg/pg.h"

#include "hearth/base/clock.h"
#include "hearth/base/metrics.h"

#include "pg/pg_wait.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#define COPY_CHUNK_BYTES (64 * 1024)

static const char COPY_HEADER[19] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";

/* ---- errors ---- */

/* Prefixes of SQLSTATEs; the first match counts. */
static const struct {
    const char *prefix;
    enum hearth_pg_fault fault;
} FAULTS[] = {
    {"08", HEARTH_PG_FAULT_CONNECTION},       {"57P", HEARTH_PG_FAULT_CONNECTION},
    {"25006", HEARTH_PG_FAULT_CONNECTION}, /* read-only: the server is no longer the primary */
    {"25P03", HEARTH_PG_FAULT_CONNECTION},    {"40", HEARTH_PG_FAULT_RETRY},
    {"53100", HEARTH_PG_FAULT_DISK_FULL},     {"53", HEARTH_PG_FAULT_RETRY},
    {"55P03", HEARTH_PG_FAULT_RETRY},         {"55006", HEARTH_PG_FAULT_RETRY},
    {"23505", HEARTH_PG_FAULT_UNIQUE},        {"57014", HEARTH_PG_FAULT_CANCELLED},
    {"42P01", HEARTH_PG_FAULT_MISSING_TABLE}, {"23514", HEARTH_PG_FAULT_MISSING_TABLE},
};

enum hearth_pg_fault hearth_pg_classify(const char *sqlstate)
{
    assert(sqlstate != NULL);

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(FAULTS); i++) {
        if (strncmp(sqlstate, FAULTS[i].prefix, strlen(FAULTS[i].prefix)) == 0) {
            return FAULTS[i].fault;
        }
    }

    return HEARTH_PG_FAULT_OTHER;
}

static void set_fault(enum hearth_pg_fault *ret_fault, enum hearth_pg_fault fault)
{
    if (ret_fault != NULL) {
        *ret_fault = fault;
    }
}

/* Close a connection that is lost, and report libpq's reason. */
static enum hearth_status fail_lost(struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                    struct hearth_err *err)
{
    char text[320];

    hearth_pg_flatten(PQerrorMessage(pg->conn), text);
    hearth_metric_add_label(HEARTH_M_PG_ERRORS, HEARTH_STR("connection"), 1);
    hearth_pg_close(pg);
    set_fault(ret_fault, HEARTH_PG_FAULT_CONNECTION);

    return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "lost the connection to the database: %s",
                       text[0] == '\0' ? "no reason given" : text);
}

/* ---- waiting ---- */

/* The limits of one statement. */
struct patience {
    struct hearth_cancel *cancel;
    int64_t deadline_ns; /* by pg->timeout_ms, if the request has no deadline; INT64_MAX: none */
};

static struct patience choose_patience(const struct hearth_pg *pg, struct hearth_cancel *cancel)
{
    struct patience patience = {cancel != NULL ? cancel : pg->cancel, INT64_MAX};
    bool own = patience.cancel != NULL && patience.cancel->deadline_mono_ns != INT64_MAX;
    if (!own && pg->timeout_ms > 0) {
        patience.deadline_ns = hearth_clock_mono_ns() + pg->timeout_ms * HEARTH_NS_PER_MS;
    }

    return patience;
}

/* Cancel the running statement in PostgreSQL and close the connection. */
static void give_up_statement(struct hearth_pg *pg, enum hearth_pg_fault *ret_fault)
{
    PGcancel *cancel = pg->conn == NULL ? NULL : PQgetCancel(pg->conn);
    if (cancel != NULL) {
        char text[256];
        (void)PQcancel(cancel, text, sizeof text);
        PQfreeCancel(cancel);
    }

    hearth_pg_close(pg);
    set_fault(ret_fault, HEARTH_PG_FAULT_CANCELLED);
}

/*
 * Wait until the socket has input or, `for_output`, until all output is sent. Unsent output is sent
 * in both cases.
 */
static enum hearth_status await_socket(struct hearth_pg *pg, const struct patience *patience,
                                       bool for_output, enum hearth_pg_fault *ret_fault,
                                       struct hearth_err *err)
{
    assert(pg->conn != NULL);

    for (;;) {
        int unsent = PQflush(pg->conn);
        if (unsent < 0 || PQsocket(pg->conn) < 0) {
            return fail_lost(pg, ret_fault, err);
        }

        if (for_output && unsent == 0) {
            return HEARTH_OK;
        }

        enum hearth_status status = hearth_cancel_check(patience->cancel, err);
        int64_t now_ns = hearth_clock_mono_ns();
        if (status == HEARTH_OK && now_ns >= patience->deadline_ns) {
            status = HEARTH_FAIL(err, HEARTH_DEADLINE_EXCEEDED,
                                 "the database did not answer within %lld ms",
                                 (long long)pg->timeout_ms);
        }

        if (status != HEARTH_OK) {
            give_up_statement(pg, ret_fault);
            return status;
        }

        /* Wait one step, or until the earlier of the two deadlines. */
        short events = (short)(POLLIN | (unsent != 0 ? POLLOUT : 0));
        int64_t until_ns = patience->deadline_ns;
        if (patience->cancel != NULL && patience->cancel->deadline_mono_ns < until_ns) {
            until_ns = patience->cancel->deadline_mono_ns;
        }

        struct pollfd p = {.fd = PQsocket(pg->conn), .events = events};
        int n = poll(&p, 1, hearth_pg_limit_poll(until_ns, now_ns));
        if (n < 0 && errno != EINTR) {
            return fail_lost(pg, ret_fault, err);
        }

        if (n > 0 && (p.revents & ~POLLOUT) != 0) {
            if (PQconsumeInput(pg->conn) == 0) {
                return fail_lost(pg, ret_fault, err);
            }

            if (!for_output) {
                return HEARTH_OK;
            }
        }
    }
}

/* Return the next result; *ret_result is NULL after the last result of the message. */
static enum hearth_status next_result(struct hearth_pg *pg, const struct patience *patience,
                                      PGresult **ret_result, enum hearth_pg_fault *ret_fault,
                                      struct hearth_err *err)
{
    while (PQisBusy(pg->conn)) {
        HEARTH_TRY(await_socket(pg, patience, false, ret_fault, err));
    }

    *ret_result = PQgetResult(pg->conn);

    return HEARTH_OK;
}

static enum hearth_status check_open(const struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                     struct hearth_err *err)
{
    if (pg->conn == NULL) {
        set_fault(ret_fault, HEARTH_PG_FAULT_CONNECTION);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "not connected to the database");
    }

    return HEARTH_OK;
}

/* Fetch and discard the remaining results of the message. */
static void drain_results(struct hearth_pg *pg, const struct patience *patience)
{
    PGresult *result = NULL;
    while (pg->conn != NULL && next_result(pg, patience, &result, NULL, NULL) == HEARTH_OK &&
           result != NULL) {
        ExecStatusType state = PQresultStatus(result);
        PQclear(result);
        if (state == PGRES_COPY_IN || state == PGRES_COPY_OUT || state == PGRES_COPY_BOTH) {
            hearth_pg_close(pg); /* this function cannot supply the rows of a COPY */
        }
    }
}

/* Make an error of a failed result and clear it; discard the remaining results of the message. */
static enum hearth_status fail_result(struct hearth_pg *pg, const struct patience *patience,
                                      PGresult *result, enum hearth_pg_fault *ret_fault,
                                      struct hearth_err *err)
{
    char text[320], code[6];
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (sqlstate == NULL) { /* made by libpq: the socket died */
        PQclear(result);
        return fail_lost(pg, ret_fault, err);
    }

    (void)snprintf(code, sizeof code, "%s", sqlstate);
    hearth_pg_flatten(PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY), text);
    PQclear(result);
    hearth_metric_add_label(HEARTH_M_PG_ERRORS, hearth_str_n(code, strnlen(code, 2)), 1);

    /* Classify the error; a FATAL error has closed the connection. */
    enum hearth_pg_fault fault = hearth_pg_classify(code);
    drain_results(pg, patience);
    if (pg->conn == NULL || PQstatus(pg->conn) != CONNECTION_OK) {
        fault = HEARTH_PG_FAULT_CONNECTION;
    }

    set_fault(ret_fault, fault);
    switch (fault) {
    case HEARTH_PG_FAULT_CONNECTION:
        hearth_pg_close(pg);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "the database closed the connection: %s (%s)",
                           text, code);
    case HEARTH_PG_FAULT_RETRY:
    case HEARTH_PG_FAULT_CANCELLED:
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "the database gave up a statement: %s (%s)",
                           text, code);
    case HEARTH_PG_FAULT_DISK_FULL:
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED, "the database's disk is full: %s (%s)",
                           text, code);
    case HEARTH_PG_FAULT_NONE:
    case HEARTH_PG_FAULT_UNIQUE:
    case HEARTH_PG_FAULT_MISSING_TABLE:
    case HEARTH_PG_FAULT_OTHER:
        break;
    }

    return HEARTH_FAIL(err, HEARTH_INTERNAL, "the database refused a statement: %s (%s)", text,
                       code);
}

static enum hearth_status send_params(struct hearth_pg *pg, const char *sql,
                                      const struct hearth_pg_params *params,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    assert(sql != NULL);
    assert(params == NULL || params->n <= (int)HEARTH_ARRAY_LEN(params->values));

    HEARTH_TRY(check_open(pg, ret_fault, err));
    if (params != NULL && params->failed) {
        set_fault(ret_fault, HEARTH_PG_FAULT_OTHER);
        return HEARTH_FAIL_ARENA(err, params->arena);
    }

    int sent = params == NULL
                   ? PQsendQueryParams(pg->conn, sql, 0, NULL, NULL, NULL, NULL, 1)
                   : PQsendQueryParams(pg->conn, sql, params->n, params->types, params->values,
                                       params->lengths, params->formats, 1);

    return sent == 1 ? HEARTH_OK : fail_lost(pg, ret_fault, err);
}

static bool is_failure(const PGresult *result)
{
    ExecStatusType state = PQresultStatus(result);
    return state == PGRES_FATAL_ERROR || state == PGRES_BAD_RESPONSE ||
           state == PGRES_NONFATAL_ERROR;
}

/* ---- statements ---- */

enum hearth_status hearth_pg_exec(struct hearth_pg *pg, const char *sql,
                                  const struct hearth_pg_params *params,
                                  struct hearth_cancel *cancel, PGresult **ret_result,
                                  enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    set_fault(ret_fault, HEARTH_PG_FAULT_NONE);
    struct patience patience = choose_patience(pg, cancel);
    HEARTH_TRY(send_params(pg, sql, params, ret_fault, err));
    PGresult *result = NULL;
    HEARTH_TRY(next_result(pg, &patience, &result, ret_fault, err));
    if (result == NULL) {
        return fail_lost(pg, ret_fault, err);
    }

    if (is_failure(result)) {
        return fail_result(pg, &patience, result, ret_fault, err);
    }

    drain_results(pg, &patience);
    if (ret_result != NULL) {
        *ret_result = result;
    } else {
        PQclear(result);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_pg_stream(struct hearth_pg *pg, const char *sql,
                                    const struct hearth_pg_params *params,
                                    struct hearth_cancel *cancel, hearth_pg_row_fn *visit,
                                    void *context, enum hearth_pg_fault *ret_fault,
                                    struct hearth_err *err)
{
    assert(visit != NULL);

    /* Send the statement. */
    set_fault(ret_fault, HEARTH_PG_FAULT_NONE);
    struct patience patience = choose_patience(pg, cancel);
    HEARTH_TRY(send_params(pg, sql, params, ret_fault, err));
    if (PQsetSingleRowMode(pg->conn) != 1) {
        return fail_lost(pg, ret_fault, err);
    }

    /* Visit the rows. */
    unsigned n_rows = 0;
    for (;;) {
        PGresult *result = NULL;
        HEARTH_TRY(next_result(pg, &patience, &result, ret_fault, err));
        if (result == NULL) {
            return HEARTH_OK;
        }

        if (is_failure(result)) {
            return fail_result(pg, &patience, result, ret_fault, err);
        }

        enum hearth_status status = HEARTH_OK;
        if (PQresultStatus(result) == PGRES_SINGLE_TUPLE) {
            /* Buffered rows need no await_socket(): check for cancellation every 256 rows. */
            if ((++n_rows & 0xff) == 0) {
                status = hearth_cancel_check(patience.cancel, err);
            }

            if (status == HEARTH_OK) {
                status = visit(context, result, err);
            }

            if (status != HEARTH_OK) {
                give_up_statement(pg, ret_fault);
            }
        }

        PQclear(result);
        HEARTH_TRY(status);
    }
}

/* ---- scripts: several statements in one message ---- */

enum hearth_status hearth_pg_script_send(struct hearth_pg *pg, const char *sql,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    assert(sql != NULL);

    set_fault(ret_fault, HEARTH_PG_FAULT_NONE);
    HEARTH_TRY(check_open(pg, ret_fault, err));

    return PQsendQuery(pg->conn, sql) == 1 ? HEARTH_OK : fail_lost(pg, ret_fault, err);
}

enum hearth_status hearth_pg_script_next(struct hearth_pg *pg, PGresult **ret_result,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    set_fault(ret_fault, HEARTH_PG_FAULT_NONE);
    HEARTH_TRY(check_open(pg, ret_fault, err));
    struct patience patience = choose_patience(pg, NULL);
    PGresult *result = NULL;
    HEARTH_TRY(next_result(pg, &patience, &result, ret_fault, err));
    if (result != NULL && is_failure(result)) {
        return fail_result(pg, &patience, result, ret_fault, err);
    }

    *ret_result = result;

    return HEARTH_OK;
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

/* ---- COPY ---- */

/* End the COPY on an open connection; reason: NULL, or why it fails. */
static enum hearth_status end_copy(struct hearth_pg *pg, const char *reason,
                                   enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct patience patience = choose_patience(pg, NULL);
    int ended;

    while ((ended = PQputCopyEnd(pg->conn, reason)) == 0) {
        HEARTH_TRY(await_socket(pg, &patience, true, ret_fault, err));
    }

    return ended == 1 ? HEARTH_OK : fail_lost(pg, ret_fault, err);
}

enum hearth_status hearth_pg_copy_put(struct hearth_pg *pg, struct hearth_str bytes,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    set_fault(ret_fault, HEARTH_PG_FAULT_NONE);
    HEARTH_TRY(check_open(pg, ret_fault, err));

    struct patience patience = choose_patience(pg, NULL);
    for (size_t at = 0; at < bytes.n;) {
        size_t n = bytes.n - at < COPY_CHUNK_BYTES ? bytes.n - at : COPY_CHUNK_BYTES;
        int taken = PQputCopyData(pg->conn, bytes.p + at, (int)n);
        if (taken < 0) {
            return fail_lost(pg, ret_fault, err);
        }

        at += taken == 1 ? n : 0;
        if (taken == 0 || at < bytes.n) { /* keeps libpq's buffer small */
            HEARTH_TRY(await_socket(pg, &patience, true, ret_fault, err));
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_pg_copy_start(struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                        struct hearth_err *err)
{
    return hearth_pg_copy_put(pg, hearth_str_n(COPY_HEADER, sizeof COPY_HEADER), ret_fault, err);
}

enum hearth_status hearth_pg_copy_finish(struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                         struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_copy_put(pg, hearth_str_n("\377\377", 2), ret_fault, err));
    return end_copy(pg, NULL, ret_fault, err);
}

enum hearth_status hearth_pg_copy_refuse(struct hearth_pg *pg, const char *reason,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    assert(reason != NULL);

    set_fault(ret_fault, HEARTH_PG_FAULT_NONE);
    HEARTH_TRY(check_open(pg, ret_fault, err));

    return end_copy(pg, reason, ret_fault, err);
}

enum hearth_status hearth_pg_copy(struct hearth_pg *pg, const char *copy_sql,
                                  struct hearth_str rows, enum hearth_pg_fault *ret_fault,
                                  struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_script_send(pg, copy_sql, ret_fault, err));

    for (;;) {
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_script_next(pg, &result, ret_fault, err));
        if (result == NULL) {
            return HEARTH_OK;
        }

        bool wanted = PQresultStatus(result) == PGRES_COPY_IN;
        PQclear(result);
        if (wanted) {
            HEARTH_TRY(hearth_pg_copy_start(pg, ret_fault, err));
            HEARTH_TRY(hearth_pg_copy_put(pg, rows, ret_fault, err));
            HEARTH_TRY(hearth_pg_copy_finish(pg, ret_fault, err));
        }
    }
}
