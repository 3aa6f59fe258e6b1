/*
 * trace_call.h -- streams of spans and snapshots between their request and the engine: who ends them, when.
 *
 * Each message is taken at once and committed later, together with others; the stream is answered when all of it was. A
 * failure ends the stream with the next message. A client that breaks off leaves what it sent to be committed.
 *
 * Threads: a call is used by the thread that handles a message, and by the writer's.
 */
#ifndef HEARTH_FRONT_TRACE_CALL_H
#define HEARTH_FRONT_TRACE_CALL_H

#include "hearth/engine/traces.h"

#include "rpc/front_internal.h"

struct hearth_trace_call;

/* The session of a collecting request, made at its first message; of a single one: hearth_trace_call_end goes with it.
 * NULL without memory. */
struct hearth_trace_call *hearth_trace_call_of(struct hearth_rpc *rpc);
/* What went wrong with earlier messages. */
HEARTH_MUST_CHECK enum hearth_status hearth_trace_call_check(struct hearth_trace_call *call,
                                                             struct hearth_err *err);
/* Before something is taken: it will be waited for, unless _forget follows. The context of hearth_trace_call_done. */
void hearth_trace_call_expect(struct hearth_trace_call *call);
void hearth_trace_call_forget(struct hearth_trace_call *call);
hearth_traces_done_fn hearth_trace_call_done;
/* End the request, when everything was committed. */
void hearth_trace_call_end(struct hearth_rpc *rpc, struct hearth_trace_call *call);

#endif
