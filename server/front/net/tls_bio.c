/*
 * tls_bio.c -- how OpenSSL reads and writes the client's socket.
 *
 * OpenSSL handles records without data (renewed keys, alerts) within one call, as long as there are
 * more of them. So the BIO gives it no more than may_read bytes in a turn: a client cannot keep a
 * thread by sending only those.
 */
#include "net/tls_stream.h"

#include <errno.h>
#include <openssl/bio.h>
#include <pthread.h>

static BIO_METHOD *g_method; /* never freed: one for the process */
static pthread_once_t g_once = PTHREAD_ONCE_INIT;

static int read_client(BIO *bio, char *out, int n)
{
    struct hearth_tls_stream *stream = BIO_get_data(bio);
    size_t want = n < 0 ? 0 : (size_t)n < stream->may_read ? (size_t)n : stream->may_read;

    BIO_clear_retry_flags(bio);
    if (want == 0 || !stream->client.can_read) {
        stream->is_exhausted = want == 0;
        BIO_set_retry_read(bio);
        return -1;
    }

    ssize_t got = recv(stream->client.fd, out, want, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        stream->client.can_read = errno == EINTR;
        BIO_set_retry_read(bio);
    } else if (got <= 0) {
        stream->client_ended = true;
        stream->client.hung_up |= got < 0; /* reported once: epoll does not tell it again */
    } else {
        stream->may_read -= (size_t)got;
        stream->barren += (size_t)got;
    }

    return (int)got;
}

static int write_client(BIO *bio, const char *bytes, int n)
{
    struct hearth_tls_stream *stream = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    ssize_t sent = send(stream->client.fd, bytes, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
        stream->client.can_write = errno == EINTR;
        BIO_set_retry_write(bio);
    }

    return (int)sent;
}

static long control_client(BIO *bio, int command, long number, void *pointer)
{
    const struct hearth_tls_stream *stream = BIO_get_data(bio);

    (void)number, (void)pointer;
    switch (command) {
    case BIO_CTRL_FLUSH:
        return 1;
    case BIO_CTRL_EOF:
        return stream->client_ended;
    default:
        return 0;
    }
}

static void make_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "client");
    if (method != NULL && BIO_meth_set_read(method, read_client) == 1 &&
        BIO_meth_set_write(method, write_client) == 1 &&
        BIO_meth_set_ctrl(method, control_client) == 1) {
        g_method = method;
    }
}

bool hearth_tls_bio_attach(struct hearth_tls_stream *stream)
{
    (void)pthread_once(&g_once, make_method);
    BIO *bio = g_method == NULL ? NULL : BIO_new(g_method);
    if (bio == NULL) {
        return false;
    }

    BIO_set_data(bio, stream);
    BIO_set_init(bio, 1);
    SSL_set_bio(stream->ssl, bio, bio);

    return true;
}
