/* pg_wait.c -- what opening a connection and running statements share (contract: pg_wait.h). */
#include "pg/pg_wait.h"

#include "hearth/base/clock.h"

#define POLL_STEP_MS 50

void hearth_pg_flatten(const char *text, char out[320])
{
    size_t n = 0;

    for (const char *p = text == NULL ? "" : text; *p != '\0' && n < 319; p++) {
        bool space = *p == '\n' || *p == '\t' || *p == ' ' || *p == '\r';
        if (!space) {
            out[n++] = *p;
        } else if (n > 0 && out[n - 1] != ' ') {
            out[n++] = ' ';
        }
    }

    while (n > 0 && out[n - 1] == ' ') {
        n--;
    }

    out[n] = '\0';
}

int hearth_pg_limit_poll(int64_t until_mono_ns, int64_t now_ns)
{
    int64_t left_ms = (until_mono_ns - now_ns) / HEARTH_NS_PER_MS + 1;
    if (left_ms < 0) {
        return 0;
    }

    return left_ms < POLL_STEP_MS ? (int)left_ms : POLL_STEP_MS;
}

void hearth_pg_close(struct hearth_pg *pg)
{
    if (pg->conn != NULL) {
        PQfinish(pg->conn);
        pg->conn = NULL;
    }

    pg->ahead = NULL;
}

enum hearth_status hearth_pg_check_standby(struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                           struct hearth_err *err)
{
    if (!pg->lacks_standby) {
        return HEARTH_OK;
    }

    hearth_pg_close(pg);
    if (ret_fault != NULL) {
        *ret_fault = HEARTH_PG_FAULT_CONNECTION;
    }

    return HEARTH_FAIL(
        err, HEARTH_UNAVAILABLE,
        "the wait for the synchronous standby was cancelled; the change may be made");
}
