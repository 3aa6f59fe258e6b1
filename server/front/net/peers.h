/*
 * peers.h -- the table of open connections, by descriptor: the address of the client, the progress
 * of its requests, and guards against clients that flood or are slow.
 *
 * The libraries close the descriptors that were handed to them, and do not all report it (a gRPC
 * channel made from a descriptor never does). So an entry remembers the kernel's cookie of its
 * socket: if the descriptor has another cookie or none, the connection has gone. The count is
 * therefore an upper bound, which hearth_peers_sweep makes exact.
 *
 * A call may outlive the descriptor of its connection, and the kernel soon reuses the number. So a
 * struct hearth_peer is a copy of the address with a generation: events reported for it after its
 * connection has gone are ignored, or do no harm to the next connection.
 *
 * The descriptor of a TLS connection is one end of a socket pair, on which the kernel counts
 * nothing. Its entry has a struct hearth_tls_side, where the relay counts the decrypted bytes.
 *
 * Threads: the acceptor's thread changes the table, and calls all functions but those that are
 *          marked "any thread".
 */
#ifndef HEARTH_FRONT_PEERS_H
#define HEARTH_FRONT_PEERS_H

#include "hearth/base/status.h"

#include "net/certificate.h"
#include "rpc/address_text.h"

#include <sys/socket.h>

struct hearth_peers;

struct hearth_peer {
    int fd;              /* -1: unknown */
    uint32_t generation; /* of the entry when the peer was found */
    uint16_t port;       /* host byte order */
    bool is_ipv6, is_tls;
    uint8_t listener; /* index of the bound address: hearth_acceptor_listener */
    unsigned char ip[16];
};

/* Where a connection came from. */
struct hearth_origin {
    struct sockaddr_storage address;
    uint8_t listener;
    struct hearth_tls_side *tls; /* NULL: the client's own socket */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_peers_new(size_t max_fds, struct hearth_peers **ret_peers,
                                    struct hearth_err *err);
void hearth_peers_free(struct hearth_peers *peers);

/* Adds a connection before its descriptor is handed over. Ignored if fd is not below max_fds, so
 * max_fds must cover all descriptors. Adds a reference to origin->tls. */
void hearth_peers_add(struct hearth_peers *peers, int fd, const struct hearth_origin *origin);
/* The connection is handed to gRPC: hearth_peers_guard watches it. */
void hearth_peers_set_grpc(struct hearth_peers *peers, int fd);
/* Finds the client that is connected now; ret_peer->fd is -1 if there is none. Any thread. */
void hearth_peers_find(const struct hearth_peers *peers, int fd, struct hearth_peer *ret_peer);
/* The verified certificate of the client, with a reference for the caller; NULL if it sent none, or
 * if the connection of `peer` has gone. Any thread. */
struct hearth_certificate *hearth_peers_certificate(struct hearth_peers *peers,
                                                    const struct hearth_peer *peer);
/* True for the descriptor of a TLS connection that is open. Any thread. */
bool hearth_peers_is_relayed(const struct hearth_peers *peers, int fd);
/* A complete call or message was received. Any thread. */
void hearth_peers_progress(struct hearth_peers *peers, const struct hearth_peer *peer);
/* n more calls (fewer, if negative) expect a message, which may be large. Any thread. */
void hearth_peers_reading(struct hearth_peers *peers, const struct hearth_peer *peer, int n);
/* The bytes per second that a connection may receive without progress, for pings and their answers;
 * 0 by default. */
void hearth_peers_set_quiet_rate(struct hearth_peers *peers, uint64_t bytes_per_s);
/*
 * Cuts each gRPC connection that received more bytes without progress than `slack_bytes` plus
 * `message_bytes` for each expected message. If the others together exceed `total_bytes`, cuts the
 * worst one, too. Returns the number of cut connections. Takes about 0.5 us for each connection.
 */
size_t hearth_peers_guard(struct hearth_peers *peers, uint64_t slack_bytes, uint64_t message_bytes,
                          uint64_t total_bytes);

/*
 * The stage of an HTTP connection, as its library reports it.
 *
 *   HEAD --head read--> BODY --request complete--> WORK --answer sent--> IDLE --head read--> BODY
 *   ...
 */
enum hearth_peer_stage {
    HEARTH_PEER_HEAD, /* accepted; the first head has not come */
    HEARTH_PEER_BODY, /* the head was read, the body was not */
    HEARTH_PEER_WORK, /* the request is complete; its answer is not sent yet */
    HEARTH_PEER_IDLE, /* the answer was sent; another head may come */
};
/* Called by the owner of the descriptor, while it is open. Any thread. */
void hearth_peers_stage(struct hearth_peers *peers, int fd, enum hearth_peer_stage stage);
/* A complete message was received on a gRPC connection. Any thread. */
void hearth_peers_prove(struct hearth_peers *peers, const struct hearth_peer *peer);

struct hearth_pace {
    int64_t head_timeout_ns; /* 0: no connection is too slow */
    int64_t min_body_rate;   /* bytes per second; 0: no body is too slow */
};
/*
 * Cuts connections that are too slow. Too slow is
 *
 *   - a head, or the first frames of HTTP/2, not complete after head_timeout_ns;
 *   - a body that brought less than min_body_rate during head_timeout_ns;
 *   - HTTP/2 frames that come a few bytes at a time for head_timeout_ns.
 *
 * A connection without a request is not too slow, nor is one that waits for this server: its bytes
 * are not read yet, or its request is in work. Returns the number of cut connections. Takes about
 * 1 us for each connection.
 */
size_t hearth_peers_cut_slow(struct hearth_peers *peers, const struct hearth_pace *pace);
/*
 * Makes room for new connections: cuts the oldest eighth of the connections that never brought a
 * complete request and were slower than min_body_rate since they were accepted. If there are none,
 * cuts the oldest eighth of the HTTP connections that were idle for ten seconds. Returns the number
 * of cut connections. Takes about 1 us for each connection.
 */
size_t hearth_peers_make_room(struct hearth_peers *peers, const struct hearth_pace *pace);

/* The server stops: ends the server's side of all gRPC connections; written bytes are still sent.
 * To be called when the acceptor's thread has ended. */
void hearth_peers_end_grpc(struct hearth_peers *peers);
/* Removes a connection that the acceptor closes itself. */
void hearth_peers_remove(struct hearth_peers *peers, int fd);
/* Removes the entries of connections that have gone. Takes about 0.3 us for each connection. */
void hearth_peers_sweep(struct hearth_peers *peers);
/* The number of connections without those that were cut, whose descriptors may still be open. */
size_t hearth_peers_count(const struct hearth_peers *peers);
/* Address and port; "unknown" for an unknown peer. */
void hearth_peer_text(const struct hearth_peer *peer, char out[HEARTH_PEER_TEXT_BYTES]);

#endif
