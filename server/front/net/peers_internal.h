/* peers_internal.h -- the table of peers.h, as its files share it. The acceptor's thread, but for what is atomic. */
#ifndef HEARTH_FRONT_PEERS_INTERNAL_H
#define HEARTH_FRONT_PEERS_INTERNAL_H

#include "net/peers.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdatomic.h>

struct peer {
    uint64_t cookie;
    uint32_t
        listed; /* 1 + index into fds; 0: no connection (so that untouched pages stay untouched) */
    bool is_grpc;
    /* Of these two, a reader sees either both as they were for one connection, or that the generation has changed: it
     * is odd while they are written. */
    _Atomic uint64_t reading;    /* generation << 32 | calls that wait for their message */
    _Atomic uint64_t address[3]; /* the bytes of struct address */
    _Atomic uint32_t n_progress; /* relaxed: a tick late does no harm */
    uint32_t seen_progress;
    uint64_t base_bytes; /* received when progress was last seen */
    int64_t base_mono_ns;
    uint64_t since_bytes;

    /* See peers_pace.c. */
    _Atomic uint32_t stage; /* enum hearth_peer_stage, of HTTP */
    _Atomic bool is_proven; /* a request or message came whole out of it */
    bool is_cut;            /* by us; its descriptor is not closed yet */
    int64_t added_mono_ns;
    int64_t room_since; /* scratch of hearth_peers_make_room */
    struct pace {
        uint32_t seen_progress;
        uint32_t segments; /* received when it was measured last, as are the bytes */
        uint64_t bytes;
        int64_t mono_ns;          /* of that */
        int64_t progress_mono_ns; /* when progress was last seen */
    } pace;
};

struct hearth_peers {
    size_t max_fds, n;
    size_t n_cut; /* of the n */
    uint64_t quiet_bytes_per_s;
    uint32_t *fds;  /* n used */
    int64_t *times; /* scratch of hearth_peers_make_room */
    struct peer by_fd[];
};

/* 0 when the descriptor is no socket any more. */
uint64_t hearth_peers_cookie(int fd);
/* What the kernel has counted; false when the descriptor is no TCP connection. */
HEARTH_MUST_CHECK bool hearth_peers_measure(int fd, struct tcp_info *ret_info);
/* The library owns the descriptor: it is not closed here, only the connection behind it is ended. False when it was gone
 * already. */
bool hearth_peers_cut(struct hearth_peers *peers, int fd);
void hearth_peers_pace_begin(struct peer *peer);

#endif
