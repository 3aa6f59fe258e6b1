/*
 * acceptor.h -- the listening sockets and the thread that owns them.
 *
 * The thread peeks at the first bytes of each new connection: a connection that begins with "PRI "
 * goes to gRPC, any other to HTTP. If less than four bytes of "PRI " have come, it waits for more.
 * A connection that has not shown what it is within first_bytes_timeout is closed.
 *
 * Connections of https listeners go through TLS first (tls.h): the acceptor gives away the client's
 * socket and gets one end of a socket pair, which it treats like an accepted connection.
 *
 * When max_connections is reached, slow connections that never brought a request are cut to make
 * room for a new one; if there are none, idle ones. If there are no idle ones either, the new
 * connection is closed at once, except for a health check (GET or HEAD of /healthz or /ready): a
 * few of those are let in above the limit. When the process runs out of descriptors, new
 * connections are accepted with the help of a spare descriptor and closed. Only
 * hearth_acceptor_stop ends the listening.
 *
 * Threads: open, run, stop and free from one thread; the other functions from any. Takers are
 *          called on the acceptor's thread and own the descriptor from then on.
 */
#ifndef HEARTH_FRONT_ACCEPTOR_H
#define HEARTH_FRONT_ACCEPTOR_H

#include "hearth/base/status.h"

#include "net/listen.h"
#include "net/peers.h"
#include "net/tls.h"

struct hearth_acceptor;

/* Takes a connected, non-blocking socket with TCP_NODELAY. */
typedef void hearth_acceptor_take_fn(void *context, int fd, const struct sockaddr *address,
                                     socklen_t address_bytes);

struct hearth_acceptor_options {
    const char *const *listen; /* NULL-terminated; borrowed during the start */
    /* Sockets that are bound already; their descriptors are taken by hearth_acceptor_open. NULL:
     * `listen` is bound. */
    struct hearth_listeners *bound;
    size_t max_connections;
    int64_t first_bytes_timeout_ns;
    const struct hearth_tls_options *tls; /* borrowed during the start */
    struct hearth_pace pace;
    uint64_t max_message_bytes; /* of a gRPC message */
    uint64_t max_unread_bytes;  /* of all gRPC connections together: hearth_peers_guard */
    uint64_t quiet_bytes_per_s; /* of each gRPC connection: hearth_peers_set_quiet_rate */
    hearth_acceptor_take_fn *take_grpc, *take_http;
    void *grpc_context, *http_context;
};

/*
 * Binds the sockets and listens; no connection is accepted before hearth_acceptor_run.
 *
 * Returns  OK; INVALID_ARGUMENT for a malformed or missing address; UNAVAILABLE if an address
 *          cannot be bound or descriptors are missing; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_acceptor_open(const struct hearth_acceptor_options *options,
                                        struct hearth_acceptor **ret_acceptor,
                                        struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_acceptor_run(struct hearth_acceptor *acceptor, struct hearth_err *err);
/* Stops accepting; closes the listeners and the connections that were not handed over yet. The
 * peers stay valid until hearth_acceptor_free. */
void hearth_acceptor_stop(struct hearth_acceptor *acceptor);
void hearth_acceptor_free(struct hearth_acceptor *acceptor); /* NULL-safe */

/* The i-th bound address; NULL after the last one. Immutable but for its descriptor. */
const struct hearth_listener *hearth_acceptor_listener(const struct hearth_acceptor *acceptor,
                                                       size_t i);
/* When the thread began its last turn, by the monotonic clock; it turns each second. */
int64_t hearth_acceptor_turned_ns(const struct hearth_acceptor *acceptor);
/* NULL if no listener uses TLS. */
struct hearth_tls *hearth_acceptor_tls(const struct hearth_acceptor *acceptor);
struct hearth_peers *hearth_acceptor_peers(const struct hearth_acceptor *acceptor);
/* The connection is answered before its request is complete: see linger.h. */
void hearth_acceptor_linger(struct hearth_acceptor *acceptor, int fd);

#endif
