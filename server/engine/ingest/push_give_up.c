/* push_give_up.c -- the error for a client whose push is withdrawn. */
#include "ingest/ingest_internal.h"

#include <assert.h>

const char *hearth_give_up_cause(enum hearth_status why)
{
    return why == HEARTH_DEADLINE_EXCEEDED
               ? "the deadline (the request's own, or request-timeout) passed"
           : why == HEARTH_CANCELLED ? "the client left"
                                     : "the server stopped";
}

enum hearth_status hearth_ingest_give_up(struct hearth_ingest *ingest,
                                         struct hearth_push_request *request,
                                         enum hearth_status why, struct hearth_err *err)
{
    assert(ingest != NULL && request != NULL);

    const char *cause = hearth_give_up_cause(why);
    enum hearth_status status = why == HEARTH_CANCELLED ? HEARTH_CANCELLED : HEARTH_UNAVAILABLE;

    /* Each profile that is withdrawn ends with this. */
    struct hearth_err withdrawn = HEARTH_ERR_INIT;
    status = HEARTH_FAIL(&withdrawn, status,
                         "%s before the database stored the profile; it will not be stored: retry",
                         cause);

    if (!hearth_push_withdraw(ingest, request, status, &withdrawn)) {
        return HEARTH_FAIL(
            err, status,
            "%s before the database stored the push; nothing of it will be stored: retry", cause);
    }
    return HEARTH_FAIL(
        err, status,
        "%s before the database confirmed the push; it may still be stored, so that a "
        "retry doubles samples that have no ID",
        cause);
}
