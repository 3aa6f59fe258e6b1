/*
 * peers.h -- the open connections by descriptor: who is at the other end, and how many there are.
 *
 * The libraries close the descriptors that were handed to them and do not all say so (a gRPC
 * channel made from a descriptor never does). So an entry remembers the kernel's cookie of its
 * socket: when the descriptor has another cookie, or none, the connection has gone. The count is
 * therefore an upper bound that hearth_peers_sweep makes exact.
 *
 * What belongs to a connection may outlive its descriptor (calls whose client was killed), and the number is soon given to
 * another one. So a struct hearth_peer is a copy that stays true, and what it counts after that counts nowhere.
 *
 * Threads: the acceptor's thread changes the table; finding peers, and what is done with a found one, is for anyone.
 */
#ifndef HEARTH_FRONT_PEERS_H
#define HEARTH_FRONT_PEERS_H

#include "hearth/base/status.h"

#include "rpc/address_text.h"

#include <sys/socket.h>

struct hearth_peers;

struct hearth_peer {
    int fd; /* -1: unknown */
    uint32_t generation;
    uint16_t port; /* host byte order */
    bool is_ipv6;
    unsigned char ip[16];
};

HEARTH_MUST_CHECK
enum hearth_status hearth_peers_new(size_t max_fds, struct hearth_peers **ret_peers,
                                    struct hearth_err *err);
void hearth_peers_free(struct hearth_peers *peers);

/* Before the descriptor is handed over. Descriptors beyond max_fds are counted but not swept, so
 * max_fds must cover all. */
void hearth_peers_add(struct hearth_peers *peers, int fd, const struct sockaddr_storage *address);
/* It goes to gRPC: guard it. */
void hearth_peers_set_grpc(struct hearth_peers *peers, int fd);
/* Who is connected there now. */
void hearth_peers_find(const struct hearth_peers *peers, int fd, struct hearth_peer *ret_peer);
/* A call, or a message, came whole out of the connection. */
void hearth_peers_progress(struct hearth_peers *peers, const struct hearth_peer *peer);
/* n more (or fewer) calls wait for their message, so that much may come in before the next
 * progress. */
void hearth_peers_reading(struct hearth_peers *peers, const struct hearth_peer *peer, int n);
/* A quiet connection may receive so much for ever: the pings of both sides and their answers. 0 at first. */
void hearth_peers_set_quiet_rate(struct hearth_peers *peers, uint64_t bytes_per_s);
/*
 * Cut the gRPC connections that received more without progress than `slack_bytes` plus
 * `message_bytes` for each message that is waited for, and the worst one while all together exceed
 * `total_bytes`. Returns how many. About 0.5 us each.
 */
size_t hearth_peers_guard(struct hearth_peers *peers, uint64_t slack_bytes, uint64_t message_bytes,
                          uint64_t total_bytes);

/* Where an HTTP connection is, as its library tells. One that was accepted waits for a head. */
enum hearth_peer_stage {
    HEARTH_PEER_HEAD,
    HEARTH_PEER_BODY, /* the head was read */
    HEARTH_PEER_WORK, /* the whole request was; until its answer is sent */
    HEARTH_PEER_IDLE, /* the answer was sent: a new head may come, or not */
};
/* By whoever owns the descriptor, while it is open. */
void hearth_peers_stage(struct hearth_peers *peers, int fd, enum hearth_peer_stage stage);
/* A message came whole out of a gRPC connection. */
void hearth_peers_prove(struct hearth_peers *peers, const struct hearth_peer *peer);

struct hearth_pace {
    int64_t head_timeout_ns; /* 0: no limit of anything here */
    int64_t min_body_rate;   /* bytes per second; 0: no limit of bodies */
};
/*
 * Cut the connections that are too slow: a head, or the first frames of HTTP/2, that is not whole after head_timeout_ns; a
 * body that brought less than min_body_rate for as long; HTTP/2 frames that come a few bytes a time for as long. Those
 * without a request are left alone, and so is everything that waits for this server: what has come and was not read
 * yet, and requests in work. Returns how many. About 1 us each.
 */
size_t hearth_peers_cut_slow(struct hearth_peers *peers, const struct hearth_pace *pace);
/*
 * Make room for others: cut the oldest eighth of the connections that never brought a whole request and are slower than
 * min_body_rate since they were accepted; when there are none, of the HTTP connections that have been without
 * a request for ten seconds. Returns how many. About 1 us for each connection.
 */
size_t hearth_peers_make_room(struct hearth_peers *peers, const struct hearth_pace *pace);

/* The server stops: end our side of the gRPC connections behind what was written to them. */
void hearth_peers_end_grpc(struct hearth_peers *peers);
/* The connection was closed by the acceptor itself. */
void hearth_peers_remove(struct hearth_peers *peers, int fd);
/* Drop the entries whose connection has gone. About 0.3 us each. */
void hearth_peers_sweep(struct hearth_peers *peers);
/* Those that were cut do not count, though their descriptors may be open for another moment. */
size_t hearth_peers_count(const struct hearth_peers *peers);
/* Address and port; "unknown" for an unknown peer. */
void hearth_peer_text(const struct hearth_peer *peer, char out[HEARTH_PEER_TEXT_BYTES]);

#endif
