/*
 * relay.c -- moves bytes between OpenSSL and the socket pair.
 *
 * A side that takes no more bytes stops the reading of the other one, so at most one block waits in
 * each direction, beside the buffers of the kernel. The block is allocated only while it waits.
 *
 * The end of one direction is passed on and leaves the other one open, as TCP does.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"

#include "net/tls_stream.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>

/* So long a client may take no bytes after the library has closed its end. */
#define DRAIN_NS (20 * HEARTH_NS_PER_SEC)
/* So long a client may take to close after it was told the end. */
#define LINGER_NS (3 * HEARTH_NS_PER_SEC)
/* Records without data; a client renews its keys after 2^24 records. */
#define MAX_BARREN_BYTES ((size_t)256 << 10)

enum moved {
    MOVED,   /* bytes were moved, or the direction ended: there may be more to do */
    BLOCKED, /* until a descriptor has an event */
    TURN,    /* the turn is over; there is more to do */
    BROKEN,  /* the connection is to be closed */
};

static bool keep_rest(struct hearth_tls_rest *rest, const char *p, size_t n)
{
    assert(rest->p == NULL && n <= HEARTH_TLS_BLOCK_BYTES);
    if (n == 0) {
        return true;
    }

    *rest = (struct hearth_tls_rest){.p = hearth_mem_alloc(n), .n = n};
    if (rest->p == NULL) {
        return false;
    }

    memcpy(rest->p, p, n);

    return true;
}

static void drop_rest(struct hearth_tls_rest *rest)
{
    hearth_mem_free(rest->p);
    *rest = (struct hearth_tls_rest){0};
}

/* ---- up: from the client to the library ---- */

/* Sends bytes to the library; returns the number of sent ones, or -1 if it has closed its end. */
static ssize_t send_up(struct hearth_tls_stream *stream, const char *p, size_t n)
{
    if (!stream->pair.can_write) {
        return 0;
    }

    ssize_t sent = send(stream->pair.fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
        sent = 0;
    }
    stream->pair.can_write = sent < 0 || (size_t)sent == n;

    return sent;
}

/* The library has closed its end, or shut it for reading: the client's bytes are of no use. */
static enum moved end_up(struct hearth_tls_stream *stream)
{
    drop_rest(&stream->up);
    if (!stream->up_ended) {
        stream->up_ended = true;
        (void)shutdown(stream->pair.fd, SHUT_WR);
    }
    return BLOCKED;
}

static enum moved flush_up(struct hearth_tls_stream *stream)
{
    struct hearth_tls_rest *rest = &stream->up;
    ssize_t sent = send_up(stream, rest->p + rest->at, rest->n - rest->at);

    if (sent < 0) {
        return end_up(stream);
    }

    rest->at += (size_t)sent;
    if (rest->at < rest->n) {
        return BLOCKED;
    }

    drop_rest(rest);

    return MOVED;
}

/* Why SSL_read or SSL_write did not move anything. */
static enum moved explain_blocked(struct hearth_tls_stream *stream, int rc)
{
    switch (SSL_get_error(stream->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        if (stream->barren > MAX_BARREN_BYTES) {
            return BROKEN;
        }
        return stream->is_exhausted ? TURN : BLOCKED;
    case SSL_ERROR_WANT_WRITE:
        return BLOCKED;
    case SSL_ERROR_ZERO_RETURN: /* the client said that it sends no more */
        stream->client_ended = true;
        return end_up(stream);
    default: /* the client closed without saying so: requests know their own length */
        ERR_clear_error();
        return stream->client_ended && !stream->client.hung_up ? end_up(stream) : BROKEN;
    }
}

static enum moved move_up(struct hearth_tls_stream *stream, char *scratch)
{
    if (stream->up.p != NULL) {
        return flush_up(stream);
    }

    if (stream->up_ended || !(stream->client.can_read || SSL_has_pending(stream->ssl))) {
        return BLOCKED;
    }

    ERR_clear_error();
    int n = SSL_read(stream->ssl, scratch, (int)HEARTH_TLS_BLOCK_BYTES);
    if (n <= 0) {
        return explain_blocked(stream, n);
    }

    /* The counters first: they must not lag behind what the library has read. */
    struct hearth_tls_side *side = stream->origin.tls;
    stream->barren = 0;
    (void)atomic_fetch_add_explicit(&side->bytes, (uint64_t)n, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&side->records, 1, memory_order_relaxed);
    ssize_t sent = send_up(stream, scratch, (size_t)n);
    if (sent < 0) {
        return end_up(stream);
    }

    return keep_rest(&stream->up, scratch + sent, (size_t)(n - sent)) ? MOVED : BROKEN;
}

/* ---- down: from the library to the client ---- */

/* Encrypts bytes; returns the number of those taken, or -1. */
static ssize_t send_down(struct hearth_tls_stream *stream, const char *p, size_t n)
{
    if (!stream->client.can_write) {
        return 0;
    }

    ERR_clear_error();
    int sent = SSL_write(stream->ssl, p, (int)n);
    if (sent > 0) {
        return sent;
    }

    int error = SSL_get_error(stream->ssl, sent);
    if (error != SSL_ERROR_WANT_WRITE && error != SSL_ERROR_WANT_READ) {
        ERR_clear_error();
        return -1;
    }

    return 0;
}

static enum moved flush_down(struct hearth_tls_stream *stream)
{
    struct hearth_tls_rest *rest = &stream->down;
    ssize_t sent = send_down(stream, rest->p + rest->at, rest->n - rest->at);

    if (sent < 0) {
        return BROKEN;
    }

    rest->at += (size_t)sent;
    if (rest->at == rest->n) {
        drop_rest(rest);
        return MOVED;
    }

    return sent > 0 ? MOVED : BLOCKED;
}

static bool is_cut(const struct hearth_tls_stream *stream)
{
    return atomic_load_explicit(&stream->origin.tls->is_cut, memory_order_acquire);
}

/* Tells the client that no more bytes follow. */
static enum moved end_down(struct hearth_tls_stream *stream)
{
    if (is_cut(stream)) { /* since this turn began: the client must see a reset, not an end */
        return BROKEN;
    }
    if (stream->down_ended || !stream->client.can_write) {
        return BLOCKED;
    }

    ERR_clear_error();
    int rc = SSL_shutdown(stream->ssl);
    if (rc < 0 && SSL_get_error(stream->ssl, rc) == SSL_ERROR_WANT_WRITE) {
        return BLOCKED;
    }

    ERR_clear_error();
    stream->down_ended = true;
    (void)shutdown(stream->client.fd, SHUT_WR);

    return BLOCKED;
}

static enum moved move_down(struct hearth_tls_stream *stream, char *scratch)
{
    if (stream->down.p != NULL) {
        return flush_down(stream);
    }
    if (stream->lib_ended) {
        return end_down(stream);
    }
    if (!stream->pair.can_read) {
        return BLOCKED;
    }

    ssize_t n = recv(stream->pair.fd, scratch, HEARTH_TLS_BLOCK_BYTES, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        stream->pair.can_read = errno == EINTR;
        return errno == EINTR ? MOVED : BLOCKED;
    }
    if (n <= 0) { /* or the library closed its end with unread bytes in it */
        stream->lib_ended = true;
        return MOVED;
    }

    ssize_t sent = send_down(stream, scratch, (size_t)n);
    if (sent < 0) {
        return BROKEN;
    }

    return keep_rest(&stream->down, scratch + sent, (size_t)(n - sent)) ? MOVED : BROKEN;
}

/* ---- the end ---- */

/* Drops what the client still sends, undeciphered, so that it can read the end of the answer. */
static enum hearth_tls_turn linger(struct hearth_tls_stream *stream, char *scratch)
{
    for (size_t n_dropped = 0; n_dropped < HEARTH_TLS_ROUND_BYTES;) {
        ssize_t n = recv(stream->client.fd, scratch, HEARTH_TLS_BLOCK_BYTES, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return HEARTH_TLS_WAIT;
        }
        if (n <= 0) {
            return HEARTH_TLS_END;
        }
        n_dropped += (size_t)n;
    }

    return HEARTH_TLS_MORE;
}

/* The state after a turn in which nothing broke. A client that takes bytes has more time. */
static void advance(struct hearth_tls_stream *stream, bool has_moved_down, int64_t now_mono_ns)
{
    if (stream->pair.hung_up && (stream->state == HEARTH_TLS_RELAYING || has_moved_down)) {
        stream->state = HEARTH_TLS_DRAINING;
        stream->until_mono_ns = now_mono_ns + DRAIN_NS;
    }

    if (stream->state == HEARTH_TLS_DRAINING && stream->down_ended) {
        stream->state = HEARTH_TLS_LINGERING;
        stream->until_mono_ns = now_mono_ns + LINGER_NS;
        hearth_tls_stream_drop_ssl(stream);
    }
}

enum hearth_tls_turn hearth_tls_relay(struct hearth_tls_stream *stream, char *scratch,
                                      int64_t now_mono_ns)
{
    enum moved up = MOVED, down = MOVED;

    assert(stream->state >= HEARTH_TLS_RELAYING);
    if (stream->state == HEARTH_TLS_LINGERING) {
        return linger(stream, scratch);
    }
    if (stream->client.hung_up || is_cut(stream)) {
        return HEARTH_TLS_END;
    }

    /* Both directions in turn, until neither moves or the turn is over. */
    stream->may_read = HEARTH_TLS_ROUND_BYTES;
    stream->is_exhausted = false;
    size_t n_down = 0;
    while (up == MOVED || down == MOVED) {
        up = up == MOVED ? move_up(stream, scratch) : up;
        down = down == MOVED ? move_down(stream, scratch) : down;
        n_down += down == MOVED ? HEARTH_TLS_BLOCK_BYTES : 0;
        down = down == MOVED && n_down > HEARTH_TLS_ROUND_BYTES ? TURN : down;
    }

    if (up == BROKEN || down == BROKEN || (stream->client_ended && stream->down_ended)) {
        return HEARTH_TLS_END;
    }

    advance(stream, n_down > 0, now_mono_ns);
    if (stream->state == HEARTH_TLS_LINGERING) {
        return linger(stream, scratch);
    }

    return up == TURN || down == TURN ? HEARTH_TLS_MORE : HEARTH_TLS_WAIT;
}
