/*
 * acceptor.h -- the listening sockets and the thread that owns them.
 *
 * Each new connection is looked at without taking bytes: "PRI " goes to gRPC, anything else to
 * HTTP. A connection that sends a shorter beginning of "PRI " is waited for, one that sends nothing
 * is closed after first_bytes_timeout.
 *
 * At the limit, room is made for a new connection by cutting slow ones that never brought a request, else idle ones. If
 * there are none, it is closed at once, unless it asks for /healthz or /ready, for which some more are let in. Out of descriptors, a spare one is
 * given up for the same. Nothing ends the listener but hearth_acceptor_stop.
 *
 * Threads: start, stop from one thread. Takers are called on the acceptor's thread and own the
 * descriptor from then on.
 */
#ifndef HEARTH_FRONT_ACCEPTOR_H
#define HEARTH_FRONT_ACCEPTOR_H

#include "hearth/base/status.h"

#include "net/peers.h"

struct hearth_acceptor;

/* Takes a connected, non-blocking socket with TCP_NODELAY. */
typedef void hearth_acceptor_take_fn(void *context, int fd, const struct sockaddr *address,
                                     socklen_t address_bytes);

struct hearth_acceptor_options {
    const char *const *listen; /* NULL-terminated; borrowed during the start */
    size_t max_connections;
    int64_t first_bytes_timeout_ns;
    struct hearth_pace pace;
    uint64_t max_message_bytes; /* of gRPC */
    uint64_t max_unread_bytes;  /* of all gRPC connections together; see hearth_peers_guard */
    uint64_t quiet_bytes_per_s; /* of each; see hearth_peers_set_quiet_rate */
    hearth_acceptor_take_fn *take_grpc, *take_http;
    void *grpc_context, *http_context;
};

/* Bind and listen; no connection is accepted before hearth_acceptor_run. INVALID_ARGUMENT for an
 * address; UNAVAILABLE when it cannot be bound. */
HEARTH_MUST_CHECK
enum hearth_status hearth_acceptor_open(const struct hearth_acceptor_options *options,
                                        struct hearth_acceptor **ret_acceptor,
                                        struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_acceptor_run(struct hearth_acceptor *acceptor, struct hearth_err *err);
/* Stop accepting, close the listeners and what was not yet handed over. The peers stay readable
 * until the free. */
void hearth_acceptor_stop(struct hearth_acceptor *acceptor);
void hearth_acceptor_free(struct hearth_acceptor *acceptor); /* NULL-safe */

const char *hearth_acceptor_address(const struct hearth_acceptor *acceptor, size_t i);
struct hearth_peers *hearth_acceptor_peers(const struct hearth_acceptor *acceptor);
/* This connection is answered before its request has come whole: see linger.h. From any thread. */
void hearth_acceptor_linger(struct hearth_acceptor *acceptor, int fd);

#endif
