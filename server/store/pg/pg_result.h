/*
 * pg_result.h -- results of what was sent on a connection: waiting for them, and the errors that
 * they may be (private to the room).
 *
 * In all functions ret_fault may be NULL.
 *
 * Threads: a connection belongs to one thread at a time.
 */
#ifndef HEARTH_STORE_PG_RESULT_H
#define HEARTH_STORE_PG_RESULT_H

#include "pg/pg.h"

/* The limits of one statement. */
struct hearth_pg_patience {
    struct hearth_cancel *cancel;
    int64_t deadline_ns; /* by pg->timeout_ms, if the request has no deadline; INT64_MAX: none */
};

/* Return the limits of a statement; cancel: NULL for that of the connection. */
struct hearth_pg_patience hearth_pg_choose_patience(const struct hearth_pg *pg,
                                                    struct hearth_cancel *cancel);

static inline void hearth_pg_set_fault(enum hearth_pg_fault *ret_fault, enum hearth_pg_fault fault)
{
    if (ret_fault != NULL) {
        *ret_fault = fault;
    }
}

/* UNAVAILABLE if the connection is closed. Otherwise *ret_fault is NONE. */
HEARTH_MUST_CHECK enum hearth_status hearth_pg_check_open(const struct hearth_pg *pg,
                                                          enum hearth_pg_fault *ret_fault,
                                                          struct hearth_err *err);

/* Close a connection that is lost. Returns UNAVAILABLE, with libpq's reason. */
enum hearth_status hearth_pg_fail_lost(struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                       struct hearth_err *err);

/* Wait until all output is sent, with the connection's cancellation and time limit. */
HEARTH_MUST_CHECK enum hearth_status hearth_pg_await_output(struct hearth_pg *pg,
                                                            enum hearth_pg_fault *ret_fault,
                                                            struct hearth_err *err);

/* Return the next result; *ret_result is NULL after the last result of the message. */
HEARTH_MUST_CHECK enum hearth_status
hearth_pg_next_result(struct hearth_pg *pg, const struct hearth_pg_patience *patience,
                      PGresult **ret_result, enum hearth_pg_fault *ret_fault,
                      struct hearth_err *err);

bool hearth_pg_is_failure(const PGresult *result);

/* Make an error of a failed result and clear it; discard the remaining results of the message. */
enum hearth_status hearth_pg_fail_result(struct hearth_pg *pg,
                                         const struct hearth_pg_patience *patience,
                                         PGresult *result, enum hearth_pg_fault *ret_fault,
                                         struct hearth_err *err);

/* Fetch and discard the remaining results of the message, or of the pipeline, which ends. */
void hearth_pg_drain_results(struct hearth_pg *pg, const struct hearth_pg_patience *patience);

/* Cancel the running statement in PostgreSQL and close the connection. */
void hearth_pg_give_up_statement(struct hearth_pg *pg, enum hearth_pg_fault *ret_fault);

#endif
