/*
 * tls_loop.h -- a thread that gives streams their turns: handshakes or relays.
 *
 * Threads: start, stop and free from one thread; hearth_tls_loop_give from any.
 */
#ifndef HEARTH_FRONT_TLS_LOOP_H
#define HEARTH_FRONT_TLS_LOOP_H

#include "hearth/base/sync.h"

#include "net/tls_stream.h"

#include <stdatomic.h>

/* Streams that wait, first come, first served. Linked by next_queued. */
struct hearth_tls_queue {
    struct hearth_tls_stream *first, *last;
};

void hearth_tls_queue_add(struct hearth_tls_queue *queue, struct hearth_tls_stream *stream);
/* NULL if it is empty. */
struct hearth_tls_stream *hearth_tls_queue_take(struct hearth_tls_queue *queue);

/* What happens to streams; called on the loop's thread. */
typedef void hearth_tls_ready_fn(void *context, struct hearth_tls_stream *stream);
typedef void hearth_tls_failed_fn(void *context, struct hearth_tls_stream *stream);

struct hearth_tls_loop_options {
    const char *name;               /* of the thread */
    size_t max_shaking;             /* beyond it the oldest handshake is ended */
    int64_t first_bytes_timeout_ns; /* of a handshake */
    int64_t shake_timeout_ns;       /* from the first byte to the end of the handshake */
    hearth_tls_ready_fn *ready;     /* takes a stream whose handshake is complete */
    hearth_tls_failed_fn *failed;   /* a handshake has failed; borrows the stream */
    void *context;
};

struct hearth_tls_loop {
    struct hearth_tls_loop_options options;
    pthread_t thread;
    bool runs;
    int epoll_fd, wake_fd;
    _Atomic size_t n_streams;  /* that were given and have not left */
    _Atomic size_t n_draining; /* of those: the library has closed its end */
    _Atomic int stop;          /* enum tls_stop */
    struct hearth_mutex lock;  /* guards inbox */
    struct hearth_tls_queue inbox;

    /* The rest belongs to the thread. */
    struct hearth_tls_stream *oldest, *newest;
    struct hearth_tls_queue turns;
    int64_t swept_ns;
    char scratch[HEARTH_TLS_BLOCK_BYTES];
};

HEARTH_MUST_CHECK
enum hearth_status hearth_tls_loop_start(const struct hearth_tls_loop_options *options,
                                         struct hearth_tls_loop **ret_loop, struct hearth_err *err);
/* Takes a stream that is SHAKING or RELAYING. After the stop, frees it. */
void hearth_tls_loop_give(struct hearth_tls_loop *loop, struct hearth_tls_stream *stream);
/* Ends the thread and frees its streams. With `drains`, clients are first sent what their libraries
 * wrote, for two seconds at most. */
void hearth_tls_loop_stop(struct hearth_tls_loop *loop, bool drains);
void hearth_tls_loop_free(struct hearth_tls_loop *loop); /* NULL-safe; stops */

#endif
