/*
 * grpc_call.h -- one gRPC call, from the wish for one to its last tag.
 *
 *   NEW --matched--> READING --message--> WORKING --end--> SENDING --sent--> (freed)
 *     \--shutdown--> (freed)     \--refused: no method, no tenant-----^
 *
 * A call is freed when its two chains have ended: the one above, and the watch for the client's
 * close (cancellation). Streams send any number of messages while WORKING. Chats (streams both ways) are READING all
 * the time: a message in, its answer out, the next message. Calls that collect go from READING to WORKING and back with
 * each message. Meanwhile they read ahead (read_ahead.h); a read that is under way is a third chain.
 *
 * Tags are struct hearth_op; each comes back exactly once.
 */
#ifndef HEARTH_FRONT_GRPC_CALL_H
#define HEARTH_FRONT_GRPC_CALL_H

#include "hearth/base/compiler.h"

#include <grpc/grpc.h>

#include <pthread.h>
#include <stdatomic.h>

struct call;
struct hearth_front;
struct hearth_workers;

struct hearth_op {
    void (*done)(struct hearth_op *op, bool ok);
};

struct hearth_grpc {
    struct hearth_front *front;
    grpc_server *server;
    grpc_server_credentials *credentials;
    grpc_completion_queue *queue;
    struct hearth_workers *intake;
    unsigned n_threads;
    pthread_t threads[8];
    _Atomic bool is_stopping; /* new calls are refused */
    _Atomic bool is_shut;     /* no new call comes */
    _Atomic int64_t n_working;
    _Atomic int n_wanted; /* calls not asked for because memory was refused */
    struct hearth_op shutdown_op;
    pthread_mutex_t lock; /* guards has_stopped, open */
    pthread_cond_t wake;
    bool has_stopped;
    int64_t overdue_mono_ns; /* of the ticker: when it looked last */
    struct call *open; /* chats and what collects: they would go on as long as their clients like */
};

/* Ask for one more call. */
void hearth_call_request(struct hearth_grpc *grpc);
/* The server is stopping: end those whose clients may go on and on; a message in work is finished. */
void hearth_call_end_open(struct hearth_grpc *grpc);
/* Now and then: end those that wait for longer than their handlers allow. */
void hearth_call_end_overdue(struct hearth_grpc *grpc, int64_t now_mono_ns);

#endif
