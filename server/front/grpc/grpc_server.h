/*
 * grpc_server.h -- the gRPC side: one server on the C core, one completion queue, connections
 * handed in by descriptor.
 *
 * Threads: start and stop from one thread; take from any.
 * Source:  gRPC C core 1.51.
 */
#ifndef HEARTH_FRONT_GRPC_SERVER_H
#define HEARTH_FRONT_GRPC_SERVER_H

#include "hearth/base/status.h"

#include "net/peers.h"

struct hearth_front;
struct hearth_grpc;

HEARTH_MUST_CHECK
enum hearth_status hearth_grpc_start(struct hearth_front *front, struct hearth_grpc **ret_grpc,
                                     struct hearth_err *err);
/* A hearth_acceptor_take_fn; the context is the struct hearth_grpc. */
void hearth_grpc_take(void *context, int fd, const struct sockaddr *address,
                      socklen_t address_bytes);
/* Called by the ticker: repeats requests for new calls that failed for want of memory, and ends
 * overdue streams. */
void hearth_grpc_tick(struct hearth_grpc *grpc);
/* From now on, new calls are UNAVAILABLE. Streams that wait for their clients end; calls in work
 * continue. */
void hearth_grpc_begin_stop(struct hearth_grpc *grpc);
/* The number of calls that are in work or whose answer is not sent yet. */
size_t hearth_grpc_working(const struct hearth_grpc *grpc);
/* Ends the connections of `peers`, if not NULL, then shuts the core down. After
 * hearth_grpc_begin_stop. */
void hearth_grpc_shut(struct hearth_grpc *grpc, struct hearth_peers *peers);
/* Cancels all calls of the core. */
void hearth_grpc_cancel_calls(struct hearth_grpc *grpc);
/* Shuts down, waits until all calls have ended, and frees. NULL-safe. */
void hearth_grpc_free(struct hearth_grpc *grpc);

#endif
