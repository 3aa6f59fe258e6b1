/*
 * peers_internal.h -- the table of peers.h, for the files that implement it.
 *
 * Threads: the acceptor's thread; atomic members are for any.
 */
#ifndef HEARTH_FRONT_PEERS_INTERNAL_H
#define HEARTH_FRONT_PEERS_INTERNAL_H

#include "hearth/base/sync.h"

#include "net/peers.h"

#include <stdatomic.h>

struct peer {
    uint64_t cookie; /* of the socket, by the kernel */
    /* 1 + index into fds; 0: no connection. All zero for unused descriptors, so that the pages of
     * the table that are never used take no memory. */
    uint32_t listed;
    bool is_grpc;
    /* The generation is odd while the address is written, and even afterwards. A reader that sees
     * the same even generation before and after has a consistent address. */
    _Atomic uint64_t reading;    /* generation << 32 | number of calls that expect a message */
    _Atomic uint64_t address[3]; /* the bytes of struct address */
    struct hearth_tls_side *tls; /* changed under tls_lock; NULL: a TCP connection */

    /* hearth_peers_guard: bytes received since the last progress */
    _Atomic uint32_t n_progress; /* counted relaxed: one round of the guard late does no harm */
    uint32_t seen_progress;      /* n_progress in the last round */
    uint64_t base_bytes;         /* received in total when progress was last seen */
    int64_t base_mono_ns;        /* when that was */
    uint64_t since_bytes;        /* received since then, without the allowance for pings */

    /* peers_pace.c: slow connections */
    _Atomic uint32_t stage; /* enum hearth_peer_stage; HTTP only */
    _Atomic bool is_proven; /* a complete request or message was received */
    bool is_cut;            /* by the server; the library has not closed its descriptor yet */
    int64_t added_mono_ns;
    int64_t room_since; /* used within hearth_peers_make_room */
    struct pace {
        uint32_t seen_progress;   /* n_progress in the last round */
        uint32_t segments;        /* received in total when the current period began */
        uint64_t bytes;           /* the same */
        int64_t mono_ns;          /* when the current period began */
        int64_t progress_mono_ns; /* when progress was last seen */
    } pace;
};

struct hearth_peers {
    size_t max_fds; /* size of by_fd, fds and times */
    size_t n;       /* connections, those that were cut included */
    size_t n_cut;   /* connections that were cut and not removed yet */
    uint64_t quiet_bytes_per_s;
    struct hearth_mutex tls_lock; /* see struct peer; the acceptor's thread reads without it */
    uint32_t *fds;                /* the descriptors of the n connections, in no order */
    int64_t *times;               /* used within hearth_peers_make_room */
    struct peer by_fd[];
};

/* What a client has sent so far. */
struct hearth_traffic {
    uint64_t bytes;
    uint32_t segments; /* with data; for TLS: records */
};
/* The counters of the kernel, or of the relay; false if the connection has gone. */
HEARTH_MUST_CHECK bool hearth_peers_measure(const struct hearth_peers *peers, int fd,
                                            struct hearth_traffic *ret_traffic);
/*
 * Resets the connection of an entry. The descriptor stays open: the library that owns it closes it.
 * Returns false if the connection had gone already.
 */
bool hearth_peers_cut(struct hearth_peers *peers, int fd);

#endif
