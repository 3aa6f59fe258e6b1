/*
 * push_call.h -- a push by any protocol, between its request and the engine.
 *
 * The engine may finish a push long after the server has given up waiting for it: the deadline has
 * passed, the client has left, or the server stops, while the database does not answer. So a push
 * owns its memory. Two parties may end the request: the engine when it is done, and the job that
 * gives up. The first one does it; the other one only cleans up.
 *
 * Threads: made and run by one thread; the engine reports from any thread.
 */
#ifndef HEARTH_FRONT_PUSH_CALL_H
#define HEARTH_FRONT_PUSH_CALL_H

#include "rpc/front_internal.h"

struct hearth_push_call {
    struct hearth_push_request request; /* its series and their texts live in arena */
    struct hearth_rpc *rpc;             /* not used after the other party has ended the request */
    struct hearth_arena arena;          /* released when the engine needs the push no more */
    struct hearth_buf body;             /* the same */
    struct hearth_buf sent; /* the same; the body as sent, if it is kept and `body` is inflated */
    uint64_t
        dropped[HEARTH_N_DISCARDS]; /* discards before the engine; reported with the engine's */
    /* Rewrites a failure in the terms of the protocol, before the request ends; may be NULL. */
    void (*explain)(struct hearth_push_call *call, enum hearth_status status);
    const char *format; /* static; for `explain` */
    /*
     * Decides the status of the request from that of the push, and may set the answer, before the
     * request ends; may be NULL. `session` is its own, in the arena of the rpc.
     */
    enum hearth_status (*conclude)(struct hearth_push_call *call, enum hearth_status status);
    void *session;
    struct hearth_ingest *ingest;
    struct hearth_job give_up_job;
    enum hearth_status why;    /* why it was given up */
    _Atomic bool is_rpc_ended; /* one of the two parties has ended the request, or is about to */
    /* Held by the thread that runs the push, by the engine until it is done, and by give_up_job. */
    _Atomic unsigned refs;
};

/* Arena and body are empty and have the limit and the budget of the request. NULL without memory.
 * */
struct hearth_push_call *hearth_push_call_new(struct hearth_rpc *rpc);
/* Pushes call->request for the request's tenant and ends the request, at once or later. Neither
 * struct may be used after this. */
void hearth_push_call_run(struct hearth_push_call *call);
/* Ends the request without the engine. If status is not OK, `err` of the request has the message.
 * */
void hearth_push_call_end(struct hearth_push_call *call, enum hearth_status status);

#endif
