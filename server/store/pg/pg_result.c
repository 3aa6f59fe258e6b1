/*
 * pg_result.c -- waiting for PostgreSQL's results, and the meaning of its errors (contract:
 * pg_result.h).
 *
 * The socket is non-blocking. await_socket() checks cancellation and deadline at least every 50 ms.
 * A statement that is given up is cancelled in PostgreSQL, and its connection is closed: a cancel
 * request that arrives late would otherwise hit the next statement.
 */
#include "pg/pg_result.h"

#include "hearth/base/clock.h"
#include "hearth/base/metrics.h"

#include "pg/pg_cancel.h"
#include "pg/pg_wait.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>

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

enum hearth_status hearth_pg_fail_lost(struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                       struct hearth_err *err)
{
    char text[320];

    hearth_pg_flatten(PQerrorMessage(pg->conn), text);
    hearth_metric_add_label(HEARTH_M_PG_ERRORS, HEARTH_STR("connection"), 1);
    hearth_pg_close(pg);
    hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_CONNECTION);

    return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "lost the connection to the database: %s",
                       text[0] == '\0' ? "no reason given" : text);
}

/* ---- waiting ---- */

struct hearth_pg_patience hearth_pg_choose_patience(const struct hearth_pg *pg,
                                                    struct hearth_cancel *cancel)
{
    struct hearth_pg_patience patience = {cancel != NULL ? cancel : pg->cancel, INT64_MAX};
    bool own = patience.cancel != NULL && patience.cancel->deadline_mono_ns != INT64_MAX;
    if (!own && pg->timeout_ms > 0) {
        int64_t began_ns = pg->ahead != NULL ? pg->ahead_mono_ns : hearth_clock_mono_ns();
        patience.deadline_ns = began_ns + pg->timeout_ms * HEARTH_NS_PER_MS;
    }

    return patience;
}

void hearth_pg_give_up_statement(struct hearth_pg *pg, enum hearth_pg_fault *ret_fault)
{
    if (pg->conn != NULL) {
        hearth_pg_cancel_statements(&pg->conn, 1);
    }

    hearth_pg_close(pg);
    hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_CANCELLED);
}

/* A server that is silent itself cannot be asked to cancel, either: that would wait for it. */
static enum hearth_status give_up_pointless(struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                            struct hearth_err *err)
{
    if (pg->address != NULL) {
        hearth_pg_close(pg);
        hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_CANCELLED);
    } else {
        hearth_pg_give_up_statement(pg, ret_fault);
    }

    return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "a node fell silent during a statement");
}

/*
 * Wait until the socket has input or, `for_output`, until all output is sent. Unsent output is sent
 * in both cases.
 */
static enum hearth_status await_socket(struct hearth_pg *pg,
                                       const struct hearth_pg_patience *patience, bool for_output,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    assert(pg->conn != NULL);

    for (;;) {
        int unsent = PQflush(pg->conn);
        if (unsent < 0 || PQsocket(pg->conn) < 0) {
            return hearth_pg_fail_lost(pg, ret_fault, err);
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
            hearth_pg_give_up_statement(pg, ret_fault);
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
            return hearth_pg_fail_lost(pg, ret_fault, err);
        }

        if (n == 0 && pg->doubt != NULL && pg->doubt->is_pointless(pg->doubt->context)) {
            return give_up_pointless(pg, ret_fault, err);
        }

        if (n > 0 && (p.revents & ~POLLOUT) != 0) {
            if (PQconsumeInput(pg->conn) == 0) {
                return hearth_pg_fail_lost(pg, ret_fault, err);
            }

            if (!for_output) {
                return HEARTH_OK;
            }
        }
    }
}

enum hearth_status hearth_pg_await_output(struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                          struct hearth_err *err)
{
    struct hearth_pg_patience patience = hearth_pg_choose_patience(pg, NULL);

    return await_socket(pg, &patience, true, ret_fault, err);
}

/* ---- results ---- */

enum hearth_status hearth_pg_next_result(struct hearth_pg *pg,
                                         const struct hearth_pg_patience *patience,
                                         PGresult **ret_result, enum hearth_pg_fault *ret_fault,
                                         struct hearth_err *err)
{
    while (PQisBusy(pg->conn)) {
        HEARTH_TRY(await_socket(pg, patience, false, ret_fault, err));
    }

    *ret_result = PQgetResult(pg->conn);

    return HEARTH_OK;
}

enum hearth_status hearth_pg_check_open(const struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                        struct hearth_err *err)
{
    hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_NONE);
    if (pg->conn == NULL) {
        hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_CONNECTION);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "not connected to the database");
    }

    return HEARTH_OK;
}

/* Fetch and discard the remaining results of a pipeline, and leave the pipeline mode. */
static void drain_pipeline(struct hearth_pg *pg, const struct hearth_pg_patience *patience)
{
    int n_ends = 0; /* of statements without a result in between: there are at most three */

    while (pg->conn != NULL) {
        PGresult *result = NULL;
        if (hearth_pg_next_result(pg, patience, &result, NULL, NULL) != HEARTH_OK) {
            return;
        }

        ExecStatusType state = PQresultStatus(result);
        n_ends = result == NULL ? n_ends + 1 : 0;
        PQclear(result);
        if (state == PGRES_PIPELINE_SYNC || n_ends > 3) {
            break;
        }
    }

    if (pg->conn != NULL && PQexitPipelineMode(pg->conn) != 1) {
        hearth_pg_close(pg); /* results are left, or the socket died */
    }
}

void hearth_pg_drain_results(struct hearth_pg *pg, const struct hearth_pg_patience *patience)
{
    if (pg->conn != NULL && PQpipelineStatus(pg->conn) != PQ_PIPELINE_OFF) {
        drain_pipeline(pg, patience);
        return;
    }

    PGresult *result = NULL;
    while (pg->conn != NULL &&
           hearth_pg_next_result(pg, patience, &result, NULL, NULL) == HEARTH_OK &&
           result != NULL) {
        ExecStatusType state = PQresultStatus(result);
        PQclear(result);
        if (state == PGRES_COPY_IN || state == PGRES_COPY_OUT || state == PGRES_COPY_BOTH) {
            hearth_pg_close(pg); /* this function cannot supply the rows of a COPY */
        }
    }
}

/*
 * Citus has lost a node in the midst of a command, and says so with codes of other errors. The
 * transaction is aborted, and may be repeated. Its texts are not translated.
 */
static bool is_lost_node(const PGresult *result, const char *code)
{
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *context = PQresultErrorField(result, PG_DIAG_CONTEXT);

    return (strcmp(code, "58030") == 0 && message != NULL &&
            strncmp(message, "failed to COPY to shard ", 24) == 0) ||
           (strcmp(code, "XX000") == 0 && context != NULL &&
            strstr(context, "while executing command on ") != NULL);
}

enum hearth_status hearth_pg_fail_result(struct hearth_pg *pg,
                                         const struct hearth_pg_patience *patience,
                                         PGresult *result, enum hearth_pg_fault *ret_fault,
                                         struct hearth_err *err)
{
    char text[320], code[6];
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (sqlstate == NULL) { /* made by libpq: the socket died */
        PQclear(result);
        return hearth_pg_fail_lost(pg, ret_fault, err);
    }

    (void)snprintf(code, sizeof code, "%s", sqlstate);
    hearth_pg_flatten(PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY), text);
    bool is_passing = is_lost_node(result, code);
    PQclear(result);
    hearth_metric_add_label(HEARTH_M_PG_ERRORS, hearth_str_n(code, strnlen(code, 2)), 1);

    if (pg->read_only != NULL && strcmp(code, "25006") == 0) {
        hearth_pg_drain_results(pg, patience);
        hearth_pg_set_fault(ret_fault, HEARTH_PG_FAULT_OTHER);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%s", pg->read_only);
    }

    /* Classify the error; a FATAL error has closed the connection. */
    enum hearth_pg_fault fault = is_passing ? HEARTH_PG_FAULT_RETRY : hearth_pg_classify(code);
    hearth_pg_drain_results(pg, patience);
    bool is_open = pg->conn != NULL && PQstatus(pg->conn) == CONNECTION_OK;
    fault = is_open ? fault : HEARTH_PG_FAULT_CONNECTION;

    hearth_pg_set_fault(ret_fault, fault);
    switch (fault) {
    case HEARTH_PG_FAULT_CONNECTION:
        pg->is_node_lost = is_open;
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

bool hearth_pg_is_failure(const PGresult *result)
{
    ExecStatusType state = PQresultStatus(result);
    return state == PGRES_FATAL_ERROR || state == PGRES_BAD_RESPONSE ||
           state == PGRES_NONFATAL_ERROR || state == PGRES_PIPELINE_ABORTED;
}
