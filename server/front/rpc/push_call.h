/*
 * push_call.h -- a push in work, by whatever protocol: who ends its request, and what it owns.
 *
 * The engine may finish a push long after the server has given up waiting for it (its deadline has
 * passed, its client has left, or the server stops, while the database does not answer). So a push owns
 * its memory, and whoever comes first, the engine or who gives up, ends the request. The other one only
 * cleans up.
 *
 * Threads: made and run by one thread; `answer` comes from any.
 */
#ifndef HEARTH_FRONT_PUSH_CALL_H
#define HEARTH_FRONT_PUSH_CALL_H

#include "rpc/front_internal.h"

struct hearth_push_call {
    struct hearth_push_request request; /* series and what they borrow live in arena */
    struct hearth_rpc *rpc;             /* not touched once ended by somebody else */
    struct hearth_arena arena;          /* released when the engine has read the push */
    struct hearth_buf body;             /* the same */
    /* What was dropped before the engine saw the push: said with what it drops itself. */
    uint64_t dropped[HEARTH_N_DISCARDS];
    /* How the protocol says a failure, before the request ends; may be NULL. */
    void (*explain)(struct hearth_push_call *call, enum hearth_status status);
    const char *format; /* static; for `explain` */
    struct hearth_ingest *ingest;
    struct hearth_job give_up_job;
    enum hearth_status why; /* it was given up */
    _Atomic bool settled;
    _Atomic unsigned
        refs; /* the thread that reads the push, the engine until it is done, give_up_job */
};

/* A push of the request's tenant; arena and body are empty, with the request's limit and budget. NULL:
 * no memory. */
struct hearth_push_call *hearth_push_call_new(struct hearth_rpc *rpc);
/* Ends the request, at once or later; neither may be used after this. */
void hearth_push_call_run(struct hearth_push_call *call);
/* Ends the request without the engine: `err` of the request says why, or OK. */
void hearth_push_call_end(struct hearth_push_call *call, enum hearth_status status);

#endif
