/*
 * tls_stream.h -- one TLS connection: the client's socket, OpenSSL's state, and the relay's end of
 * the socket pair whose other end a library serves.
 *
 *   SHAKING --handshake complete--> READY --the acceptor took lib_fd--> RELAYING
 *      RELAYING --the library closed its end--> DRAINING --the rest is sent--> LINGERING
 *   SHAKING --handshake failed--> LINGERING
 *
 * Every state ends by hearth_tls_stream_free. A stream belongs to one thread at a time: that of a
 * loop (SHAKING, RELAYING and later) or the acceptor's (READY); it moves through locked queues.
 */
#ifndef HEARTH_FRONT_TLS_STREAM_H
#define HEARTH_FRONT_TLS_STREAM_H

#include "net/peers.h"

#include <openssl/ssl.h>

/* Begins a TLS connection: a record of type handshake. */
#define HEARTH_TLS_FIRST_BYTE 0x16
/* A handshake that reads more than this is refused. It may read some of the next request, too. */
#define HEARTH_TLS_HANDSHAKE_BYTES ((size_t)96 << 10)
/* The largest TLS record: so much is moved at a time. */
#define HEARTH_TLS_BLOCK_BYTES ((size_t)16 << 10)
/* After so many bytes of one connection another one has its turn. */
#define HEARTH_TLS_ROUND_BYTES ((size_t)128 << 10)

enum hearth_tls_state {
    HEARTH_TLS_SHAKING,
    HEARTH_TLS_READY,
    HEARTH_TLS_RELAYING,
    HEARTH_TLS_DRAINING,  /* the client is sent what the library wrote */
    HEARTH_TLS_LINGERING, /* the client was told the end; its bytes are dropped until it closes */
};

/* What to do with a stream after its turn. */
enum hearth_tls_turn {
    HEARTH_TLS_WAIT, /* until a descriptor has an event */
    HEARTH_TLS_MORE, /* another turn, after the other streams */
    HEARTH_TLS_DONE, /* the handshake is complete */
    HEARTH_TLS_END,  /* free the stream */
};

/* Bytes that one side has not taken yet; less than HEARTH_TLS_BLOCK_BYTES. */
struct hearth_tls_rest {
    char *p; /* NULL: no bytes */
    size_t at, n;
};

/* A descriptor in a loop's epoll set, edge-triggered: the flags say what is worth a try. */
struct hearth_tls_end {
    struct hearth_tls_stream *stream;
    int fd; /* -1: not made yet */
    bool can_read, can_write;
    bool hung_up; /* the client: a reset; the pair: the library closed its end */
};

struct hearth_tls_stream {
    struct hearth_tls_stream *prev, *next; /* all streams of a loop, oldest first */
    struct hearth_tls_stream *next_queued; /* in the one queue or list that the stream waits in */
    bool is_queued;                        /* for another turn */
    enum hearth_tls_state state;
    SSL *ssl;
    struct hearth_tls_end client, pair;
    int lib_fd;      /* the library's end; -1 before it is made and after it was taken */
    bool is_extra;   /* above max_connections: may only be a health check */
    bool is_sniffed; /* the first byte was seen */
    struct hearth_origin origin; /* `tls` is a reference */
    const char *failure;         /* label value of a failed handshake */

    /* The client's bytes: the BIO of `ssl` (tls_bio.c). */
    size_t may_read;   /* how many more in this turn */
    bool is_exhausted; /* a read was refused because of may_read */
    bool client_ended; /* the client sends no more data */
    size_t barren;     /* received since the last data */

    /* Directions: up is from the client to the library. */
    struct hearth_tls_rest up, down;
    bool up_ended;         /* the library was told that the client sends no more */
    bool lib_ended;        /* the library sends no more */
    bool down_ended;       /* the client was told so */
    int64_t until_mono_ns; /* SHAKING, DRAINING, LINGERING: the latest end */
};

/* Takes fd. Adds a BIO to ssl and takes it. NULL, with both closed, if there is no memory. */
struct hearth_tls_stream *hearth_tls_stream_new(SSL *ssl, int fd,
                                                const struct hearth_origin *origin);
/* Closes all descriptors that the stream still has. If the server cut it, the client sees a
 * reset. */
void hearth_tls_stream_free(struct hearth_tls_stream *stream);

/* Frees what is not needed to linger. */
void hearth_tls_stream_drop_ssl(struct hearth_tls_stream *stream);

/* tls_bio.c: connects ssl with stream->client. False if there is no memory. */
HEARTH_MUST_CHECK bool hearth_tls_bio_attach(struct hearth_tls_stream *stream);
/* tls_handshake.c: a turn of a stream that is SHAKING. DONE: `pair`, `lib_fd` and origin.tls are
 * set. END: `failure` is set. */
enum hearth_tls_turn hearth_tls_shake(struct hearth_tls_stream *stream);
/* relay.c: a turn of a stream in a later state. The scratch has HEARTH_TLS_BLOCK_BYTES. */
enum hearth_tls_turn hearth_tls_relay(struct hearth_tls_stream *stream, char *scratch,
                                      int64_t now_mono_ns);

#endif
