/*
 * trace_call.h -- streams of spans and thread snapshots, between their request and the engine.
 *
 * The engine accepts each message at once and commits it later, together with others. The stream is
 * answered when all its messages are committed. A failure ends the stream at its next message. If
 * the client breaks off, the messages it sent are still committed.
 *
 * Threads: a call is used by the thread that handles a message and by the thread of the engine's
 * writer.
 */
#ifndef HEARTH_FRONT_TRACE_CALL_H
#define HEARTH_FRONT_TRACE_CALL_H

#include "hearth/engine/traces.h"

#include "rpc/front_internal.h"

struct hearth_trace_call;

/*
 * The call of a request, made for its first message and kept as its session. NULL without memory.
 * A unary request uses it for its only message.
 */
struct hearth_trace_call *hearth_trace_call_of(struct hearth_rpc *rpc);
/* The first failure of earlier messages, or OK. */
HEARTH_MUST_CHECK enum hearth_status hearth_trace_call_check(struct hearth_trace_call *call,
                                                             struct hearth_err *err);
/*
 * To be called before data is handed to the engine. The call then waits until the engine calls
 * hearth_trace_call_done, with the call as context, or until hearth_trace_call_forget takes it back
 * because the engine did not accept the data.
 */
void hearth_trace_call_expect(struct hearth_trace_call *call);
void hearth_trace_call_forget(struct hearth_trace_call *call);
hearth_traces_done_fn hearth_trace_call_done;
/* Ends the request when everything is committed. Neither struct may be used after this. */
void hearth_trace_call_end(struct hearth_rpc *rpc, struct hearth_trace_call *call);

#endif
