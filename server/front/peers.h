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
enum hearth_status
hearth_peers_new(size_t max_fds, struct hearth_peers **ret_peers, struct hearth_err *err);
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
size_t hearth_peers_guard(struct hearth_peers *peers,
                          uint64_t slack_bytes,
                          uint64_t message_bytes,
                          uint64_t total_bytes);
/* The connection was closed by the acceptor itself. */
void hearth_peers_remove(struct hearth_peers *peers, int fd);
/* Drop the entries whose connection has gone. About 0.3 us each. */
void hearth_peers_sweep(struct hearth_peers *peers);
size_t hearth_peers_count(const struct hearth_peers *peers);
/* "127.0.0.1:50123", "[::1]:50123", or "unknown". */
#define HEARTH_PEER_TEXT_BYTES 64
void hearth_peer_text(const struct hearth_peer *peer, char out[HEARTH_PEER_TEXT_BYTES]);
/* The same of an address. */
void hearth_address_text(const struct sockaddr *address, char out[HEARTH_PEER_TEXT_BYTES]);

#endif
