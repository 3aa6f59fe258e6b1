/*
 * grpc_call.h -- one gRPC call, from the request for a new call to its last tag.
 *
 *   NEW --matched--> READING --message--> WORKING --end--> SENDING --sent--> (freed)
 *     \--shutdown--> (freed)     \--refused: no method, no tenant-----^
 *
 * A call is freed when its chains of operations have ended: the one above, and the watch for the
 * client's close (cancellation).
 *
 *   - Server streams send any number of messages while WORKING.
 *   - Chats (HEARTH_METHOD_CHAT) stay READING: a message in, its answer out, the next message.
 *   - Collecting calls (HEARTH_METHOD_COLLECT) go from READING to WORKING and back with each
 *     message. Meanwhile they read ahead (read_ahead.h); a read that is under way is a third chain.
 *
 * The tag of each operation is a struct hearth_op. The completion queue returns each tag once.
 */
#ifndef HEARTH_FRONT_GRPC_CALL_H
#define HEARTH_FRONT_GRPC_CALL_H

#include "hearth/base/compiler.h"
#include "hearth/base/sync.h"

#include "grpc/client_waits.h"

#include <grpc/grpc.h>

#include <stdatomic.h>

struct call;
struct hearth_front;
struct hearth_workers;

/* The tag of an operation. `done` is called on a thread of the completion queue. */
struct hearth_op {
    void (*done)(struct hearth_op *op, bool ok);
};

struct hearth_grpc {
    struct hearth_front *front;
    grpc_server *server;
    grpc_server_credentials *credentials;
    grpc_completion_queue *queue;
    struct hearth_workers *intake; /* hands connections to the core: see hearth_grpc_take */
    unsigned n_threads;            /* threads of the completion queue */
    pthread_t threads[8];
    _Atomic bool is_stopping;  /* new calls are refused */
    _Atomic bool is_shut;      /* the core was shut down: no call comes or begins its work */
    _Atomic int64_t n_working; /* calls in work, or whose answer is not sent yet */
    _Atomic int n_wanted;      /* new calls that were not requested for want of memory */
    struct hearth_op shutdown_op;
    struct hearth_mutex lock; /* guards has_stopped, open, waits, members of calls (grpc_call.c) */
    pthread_cond_t wake;      /* has_stopped was set */
    bool has_stopped;         /* all calls have ended after the shutdown */
    int64_t overdue_mono_ns;  /* the ticker's: when it last ended overdue calls */
    struct call *open; /* chats and collecting calls, which last as long as their clients want */
    struct hearth_client_waits waits; /* of calls: for their only message, or to take the answer */
};

/* Requests one more new call from the core; without memory, hearth_grpc_tick repeats it. */
void hearth_call_request(struct hearth_grpc *grpc);
/* The server is stopping: ends open calls. A collecting call with a message in work finishes it. */
void hearth_call_end_open(struct hearth_grpc *grpc);
/* Ends collecting calls that wait for their next message longer than their handlers allow. */
void hearth_call_end_overdue(struct hearth_grpc *grpc, int64_t now_mono_ns);

#endif
