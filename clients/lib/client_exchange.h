/*
 * client_exchange.h -- the client's state, and one attempt of a call over the gRPC C core.
 *
 * Threads: safe; an exchange belongs to one thread.
 */
#ifndef HEARTH_CLIENT_EXCHANGE_H
#define HEARTH_CLIENT_EXCHANGE_H

#include "hearth/base/arena.h"
#include "hearth/client.h"

#include "client_headers.h"

#include <grpc/grpc.h>

#include <stdatomic.h>

struct hearth_client {
    grpc_channel *channel;
    char *target;
    struct client_metadata metadata; /* of each call */
    /* As given; their texts are borrowed by hearth_client_new only. */
    struct hearth_client_options options;
    atomic_bool was_reached; /* there has been a connection */
};

/* Called with each message of the server, which is in the arena. False cancels the call. */
typedef bool hearth_exchange_fn(void *context, struct hearth_str message);

struct hearth_exchange {
    /* Set by the caller, who may use the exchange for several attempts. */
    const char *path; /* "/querier.v1.QuerierService/Series" */
    struct hearth_str request;
    gpr_timespec deadline; /* of all attempts, timeout_ms after their start */
    int64_t timeout_ms;
    struct hearth_arena *arena; /* for messages */
    hearth_exchange_fn *message;
    void *context;
    bool is_stream;       /* options.waiting is not called */
    gpr_timespec started; /* all attempts */
    int64_t waited_ms;    /* of the next call of options.waiting; 0: none was due yet */

    /* The answer of the latest attempt. Valid until hearth_exchange_release. */
    grpc_metadata_array initial, trailing;
    grpc_status_code code;
    grpc_slice details;
    bool was_cut;     /* there was a connection, and it ended before the server answered */
    bool was_refused; /* the arena refused a message */

    grpc_completion_queue *queue;
    grpc_call *call;
    grpc_byte_buffer *received; /* within an attempt */
};

gpr_timespec hearth_exchange_deadline(int64_t timeout_ms);
/* Blocks until the call has ended, by its deadline at the latest. Release after each attempt. */
void hearth_exchange_run(struct hearth_client *client, struct hearth_exchange *x);
void hearth_exchange_release(struct hearth_exchange *x);

/* The status of the attempt, with the server's message or what was tried. */
HEARTH_MUST_CHECK
enum hearth_status hearth_exchange_outcome(const struct hearth_client *client,
                                           const struct hearth_exchange *x, struct hearth_err *err);
/* Whether the server has said anything: otherwise the core has made the status. */
static inline bool hearth_exchange_is_answered(const struct hearth_exchange *x)
{
    return x->initial.count > 0 || x->trailing.count > 0;
}

#endif
