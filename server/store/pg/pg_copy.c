/*
 * pg_copy.c -- COPY on one PostgreSQL connection (contract: pg.h).
 *
 * The time limit of a statement holds for each wait for the socket.
 */
#include "pg/pg.h"
#include "pg/pg_result.h"

#include <assert.h>

#define COPY_CHUNK_BYTES (64 * 1024)

static const char COPY_HEADER[19] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";

/* End the COPY on an open connection; reason: NULL, or why it fails. */
static enum hearth_status end_copy(struct hearth_pg *pg, const char *reason,
                                   enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    int ended;

    while ((ended = PQputCopyEnd(pg->conn, reason)) == 0) {
        HEARTH_TRY(hearth_pg_await_output(pg, ret_fault, err));
    }

    return ended == 1 ? HEARTH_OK : hearth_pg_fail_lost(pg, ret_fault, err);
}

enum hearth_status hearth_pg_copy_put(struct hearth_pg *pg, struct hearth_str bytes,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_check_open(pg, ret_fault, err));

    for (size_t at = 0; at < bytes.n;) {
        size_t n = bytes.n - at < COPY_CHUNK_BYTES ? bytes.n - at : COPY_CHUNK_BYTES;
        int taken = PQputCopyData(pg->conn, bytes.p + at, (int)n);
        if (taken < 0) {
            return hearth_pg_fail_lost(pg, ret_fault, err);
        }

        at += taken == 1 ? n : 0;
        if (taken == 0 || at < bytes.n) { /* keeps libpq's buffer small */
            HEARTH_TRY(hearth_pg_await_output(pg, ret_fault, err));
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

    HEARTH_TRY(hearth_pg_check_open(pg, ret_fault, err));

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
