/*
 * unary.h -- the common form of a handler: one decoded request, one answer.
 *
 * A unary handler is a line UNARY(...) in methods.def and a function that HEARTH_UNARY begins:
 *
 *     HEARTH_UNARY(hearth_svc_get_process, Hearth__V1__GetProcessRequest,
 *                  Hearth__V1__GetProcessResponse)
 *     {
 *         struct hearth_call call = hearth_rpc_call(rpc);
 *         ...
 *         HEARTH_TRY(hearth_agents_process(&call, ..., &process, &rpc->err));
 *         out->process = hearth_rpc_map(rpc, &process_map, &process);
 *         return HEARTH_OK;
 *     }
 *
 *   - `in` is the decoded request; `out` is the answer, initialised, in the request's arena.
 *   - The returned status ends the request; errors are written to rpc->err. The handler itself may
 *     not end it.
 *   - After OK, an arena that has refused memory fails the request, so that a handler need not
 *     check its allocations for messages. It checks memory that it reads or writes itself.
 *   - A handler that encodes its answer sets rpc->is_packed; `out` is then ignored.
 *
 * Threads: the pool's thread that runs the request.
 */
#ifndef HEARTH_FRONT_UNARY_H
#define HEARTH_FRONT_UNARY_H

#include "rpc/messages.h"
#include "rpc/rpc.h"

#include <protobuf-c/protobuf-c.h>

#include <assert.h>

/* Begins the definition of a unary handler with the types of its messages; its body follows. */
#define HEARTH_UNARY(handler, Request, Response)                                          \
    static enum hearth_status handler##_typed(struct hearth_rpc *rpc, const Request *in,  \
                                              Response *out);                             \
    enum hearth_status handler(struct hearth_rpc *rpc, const struct ProtobufCMessage *in, \
                               struct ProtobufCMessage *out)                              \
    {                                                                                     \
        assert(in->descriptor->sizeof_message == sizeof(Request));                        \
        assert(out->descriptor->sizeof_message == sizeof(Response));                      \
        return handler##_typed(rpc, (const Request *)in, (Response *)out);                \
    }                                                                                     \
    static enum hearth_status handler##_typed(struct hearth_rpc *rpc HEARTH_UNUSED,       \
                                              const Request *in HEARTH_UNUSED,            \
                                              Response *out HEARTH_UNUSED)

/* Runs the unary handler of the request's method and ends the request. */
void hearth_rpc_run_unary(struct hearth_rpc *rpc);

#endif
