/*
 * request_ids.h -- the names of a request: its request id, and its place in a trace.
 *
 * The request id of a client (x-request-id) is used if it has 1 to HEARTH_REQUEST_ID_MAX_BYTES
 * letters, digits and - _ . : / + =. Otherwise the server makes one of 32 hexadecimal digits. The
 * id is in the answer and in the log.
 *
 * Threads: safe for different objects.
 * Source:  W3C Trace Context, section 3.2 (traceparent).
 */
#ifndef HEARTH_FRONT_REQUEST_IDS_H
#define HEARTH_FRONT_REQUEST_IDS_H

#include "hearth/model/trace_ids.h"

#define HEARTH_REQUEST_ID_HEADER    "x-request-id"
#define HEARTH_REQUEST_ID_MAX_BYTES 64u

struct hearth_request_ids {
    char request_id[HEARTH_REQUEST_ID_MAX_BYTES + 1];
    struct hearth_trace_id trace; /* none: the request belongs to no trace */
    uint64_t parent_span;         /* the caller's span; 0: none */
    uint64_t span;                /* the span of the request; 0: it is not recorded */
    bool is_sampled;              /* the caller records the trace */
};

/* Makes a request id. The request belongs to no trace. */
void hearth_request_ids_init(struct hearth_request_ids *ids);
/* Uses the client's x-request-id; ignored if it is empty, too long or has other characters. */
void hearth_request_ids_take_id(struct hearth_request_ids *ids, struct hearth_str value);
/* Takes the trace from a traceparent; a malformed one is ignored, as the specification wants. */
void hearth_request_ids_take_traceparent(struct hearth_request_ids *ids, struct hearth_str value);
/*
 * Gives the request a span, and a trace if it has none. one_in: how many traces there are for each
 * that is recorded, if the request has no trace; at least 1. False, and no span, if the caller or
 * this sampling does not want the trace to be recorded.
 */
bool hearth_request_ids_begin_span(struct hearth_request_ids *ids, int64_t one_in);

#endif
