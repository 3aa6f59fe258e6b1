/*
 * tls_handshake.c -- a handshake, step by step; then the socket pair and the client's identity.
 *
 * A client that sends HTTP without TLS is told so.
 */
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"

#include "net/tls_context.h"
#include "net/tls_identity.h"
#include "net/tls_stream.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <unistd.h>

/* An error of Connect, whose clients do not show a plain text. */
static const char g_plain_answer[] =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
    "Content-Length: 88\r\nConnection: close\r\n\r\n"
    "{\"code\":\"failed_precondition\","
    "\"message\":\"This port speaks TLS; use https:// and retry\"}\n";

/* Looks at the first byte. WAIT: it has not come; MORE: it is a handshake. */
static enum hearth_tls_turn sniff_client(struct hearth_tls_stream *stream)
{
    unsigned char first;
    ssize_t n = recv(stream->client.fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        stream->client.can_read = errno == EINTR;
        return stream->client.can_read ? HEARTH_TLS_MORE : HEARTH_TLS_WAIT;
    }

    if (n <= 0) {
        stream->failure = "closed";
        return HEARTH_TLS_END;
    }

    /* A method of HTTP is answered; the bytes are read first, since unread ones cause a reset. */
    if (first >= 'A' && first <= 'Z') {
        char dropped[4096];
        stream->failure = "plain";
        (void)recv(stream->client.fd, dropped, sizeof dropped, MSG_DONTWAIT);
        (void)send(stream->client.fd, g_plain_answer, sizeof g_plain_answer - 1,
                   MSG_DONTWAIT | MSG_NOSIGNAL);
        return HEARTH_TLS_END;
    }

    if (first != HEARTH_TLS_FIRST_BYTE) {
        stream->failure = "protocol";
        return HEARTH_TLS_END;
    }

    stream->is_sniffed = true;

    return HEARTH_TLS_MORE;
}

/* The label value of OpenSSL's last error. */
static const char *name_failure(const struct hearth_tls_stream *stream, int ssl_error)
{
    unsigned long error = ERR_peek_last_error();
    int reason = ERR_GET_REASON(error);

    if (stream->is_exhausted || reason == SSL_R_EXCESSIVE_MESSAGE_SIZE) {
        return "size";
    }
    if (stream->client_ended || stream->client.hung_up || ssl_error == SSL_ERROR_SYSCALL ||
        ssl_error == SSL_ERROR_ZERO_RETURN) {
        return "closed";
    }
    if (ERR_GET_LIB(error) != ERR_LIB_SSL) {
        return "other";
    }
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED ||
        reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
        return "certificate";
    }

    return reason >= SSL_AD_REASON_OFFSET ? "alert" : "protocol";
}

/* The certificate that the client proved to have; *ret_ok is false if there is no memory. */
static struct hearth_certificate *read_identity(SSL *ssl, bool *ret_ok)
{
    const X509 *x509 = SSL_get0_peer_certificate(ssl);
    struct hearth_certificate *certificate = NULL;

    *ret_ok = true;
    if (x509 != NULL && SSL_get_verify_result(ssl) == X509_V_OK) {
        certificate = hearth_tls_identity(x509);
        *ret_ok = certificate != NULL;
    }

    return certificate;
}

static enum hearth_tls_turn finish_handshake(struct hearth_tls_stream *stream)
{
    bool ok;
    int pair[2];
    struct hearth_certificate *certificate = read_identity(stream->ssl, &ok);

    stream->failure = "other";
    assert(stream->origin.tls == NULL);
    stream->origin.tls = ok ? hearth_tls_side_new(certificate) : NULL;
    hearth_certificate_unref(certificate);
    if (stream->origin.tls == NULL ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
        return HEARTH_TLS_END;
    }

    stream->failure = NULL;
    stream->pair.fd = pair[0];
    stream->lib_fd = pair[1];
    stream->state = HEARTH_TLS_READY;
    hearth_metric_add_label(HEARTH_M_TLS_HANDSHAKES, hearth_str_c(SSL_get_version(stream->ssl)), 1);

    return HEARTH_TLS_DONE;
}

enum hearth_tls_turn hearth_tls_shake(struct hearth_tls_stream *stream)
{
    assert(stream->state == HEARTH_TLS_SHAKING);
    enum hearth_tls_turn turn = stream->is_sniffed ? HEARTH_TLS_MORE : sniff_client(stream);
    if (turn != HEARTH_TLS_MORE || !stream->is_sniffed) {
        return turn;
    }

    /* A step of the handshake. */
    ERR_clear_error();
    int rc = SSL_do_handshake(stream->ssl);
    if (rc == 1) {
        return finish_handshake(stream);
    }

    int error = SSL_get_error(stream->ssl, rc);
    bool wants_more = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
    if (wants_more && !stream->is_exhausted && !stream->client.hung_up) {
        return HEARTH_TLS_WAIT;
    }

    stream->failure = name_failure(stream, error);
    HEARTH_LOG(HEARTH_LOG_DEBUG, "tls", "handshake failed", "reason", stream->failure, "detail",
               hearth_tls_reason(), NULL);
    ERR_clear_error();

    return HEARTH_TLS_END;
}
