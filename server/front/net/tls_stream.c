/* tls_stream.c -- the life of a stream's parts. */
#include "net/tls_stream.h"

#include "hearth/base/mem.h"

#include <unistd.h>

struct hearth_tls_stream *hearth_tls_stream_new(SSL *ssl, int fd,
                                                const struct hearth_origin *origin)
{
    struct hearth_tls_stream *stream = hearth_mem_zalloc(sizeof *stream);

    if (stream == NULL || ssl == NULL) {
        hearth_mem_free(stream);
        SSL_free(ssl);
        (void)close(fd);
        return NULL;
    }

    *stream = (struct hearth_tls_stream){
        .ssl = ssl,
        .client = {.stream = stream, .fd = fd, .can_read = true, .can_write = true},
        .pair = {.stream = stream, .fd = -1, .can_read = true, .can_write = true},
        .lib_fd = -1,
        .origin = *origin,
        .may_read = HEARTH_TLS_HANDSHAKE_BYTES,
    };
    if (!hearth_tls_bio_attach(stream)) {
        hearth_tls_stream_free(stream);
        return NULL;
    }

    return stream;
}

void hearth_tls_stream_drop_ssl(struct hearth_tls_stream *stream)
{
    SSL_free(stream->ssl);
    stream->ssl = NULL;
}

static void close_end(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

void hearth_tls_stream_free(struct hearth_tls_stream *stream)
{
    struct hearth_tls_side *side = stream->origin.tls;

    /* Closing with this setting resets the connection. */
    if (side != NULL && atomic_load_explicit(&side->is_cut, memory_order_acquire)) {
        struct linger at_once = {.l_onoff = 1, .l_linger = 0};
        (void)setsockopt(stream->client.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }

    close_end(stream->client.fd);
    close_end(stream->pair.fd);
    close_end(stream->lib_fd);
    SSL_free(stream->ssl);
    hearth_tls_side_unref(side);
    hearth_mem_free(stream->up.p);
    hearth_mem_free(stream->down.p);
    hearth_mem_free(stream);
}
