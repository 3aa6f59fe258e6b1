/* test_tls_relay.c -- handshakes and relays, between real OpenSSL clients on loopback and the ends of
 * pairs that libraries would get. */
#include "hearth/base/clock.h"

#include "net/tls.h"
#include "net/tls_identity.h"
#include "net/tls_loop.h"
#include "tcp_pair.h"
#include "test_certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#define MANY_BYTES    ((size_t)4 << 20)
#define WRITTEN_BYTES ((size_t)100000)

static char g_cert[64], g_key[64];

struct link {
    struct hearth_tls *tls;
    SSL_CTX *ssl_context;
    SSL *ssl;      /* of the client */
    int client_fd; /* blocking */
    int lib_fd;    /* blocking, too */
    struct hearth_tls_side *side;
};

static struct hearth_tls *start_tls(int64_t timeout_ns, enum hearth_client_auth auth)
{
    struct hearth_tls_options options = {
        .cert_file = g_cert, .key_file = g_key, .client_ca_file = g_cert, .client_auth = auth};
    struct hearth_tls *tls;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_tls_start(&options, timeout_ns, timeout_ns, &tls, &err), HEARTH_OK);
    return tls;
}

/* The client's end of a connection that TLS has taken. */
static int connect_raw(struct hearth_tls *tls)
{
    int pair[2];
    struct hearth_origin origin = {.listener = 0};
    assert_true(tcp_pair(pair, &origin.address));
    assert_int_equal(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
    hearth_tls_take(tls, pair[0], &origin, false);
    return pair[1];
}

static struct hearth_tls_stream *wait_ready(struct hearth_tls *tls)
{
    struct pollfd ready = {.fd = hearth_tls_ready_fd(tls), .events = POLLIN};
    struct hearth_tls_stream *stream = NULL;
    for (int i = 0; stream == NULL && i < 100; i++) {
        assert_int_equal(poll(&ready, 1, 60000), 1);
        stream = hearth_tls_next(tls);
    }
    assert_non_null(stream);
    return stream;
}

/* Connects and takes the library's end; the stream is READY. */
static struct hearth_tls_stream *shake_link(struct link *link, enum hearth_client_auth auth)
{
    *link = (struct link){.tls = start_tls(60 * HEARTH_NS_PER_SEC, auth)};
    link->client_fd = connect_raw(link->tls);
    link->ssl_context = SSL_CTX_new(TLS_client_method());
    if (auth != HEARTH_CLIENT_AUTH_NONE) {
        assert_int_equal(SSL_CTX_use_certificate_chain_file(link->ssl_context, g_cert), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey_file(link->ssl_context, g_key, SSL_FILETYPE_PEM),
                         1);
    }
    link->ssl = SSL_new(link->ssl_context);
    assert_int_equal(SSL_set_fd(link->ssl, link->client_fd), 1);
    assert_int_equal(SSL_connect(link->ssl), 1);

    struct hearth_tls_stream *stream = wait_ready(link->tls);
    link->lib_fd = stream->lib_fd;
    link->side = hearth_tls_side_ref(stream->origin.tls);
    stream->lib_fd = -1;
    assert_int_equal(fcntl(link->lib_fd, F_SETFL, 0), 0);

    return stream;
}

static void open_link(struct link *link, enum hearth_client_auth auth)
{
    struct hearth_tls_stream *stream = shake_link(link, auth);
    hearth_tls_relay_on(link->tls, stream);
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        assert_int_equal(close(*fd), 0);
        *fd = -1;
    }
}

static void close_link(struct link *link)
{
    close_fd(&link->lib_fd);
    SSL_free(link->ssl);
    close_fd(&link->client_fd);
    hearth_tls_free(link->tls);
    SSL_CTX_free(link->ssl_context);
    assert_int_equal(atomic_load(&link->side->refs), 1);
    hearth_tls_side_unref(link->side);
}

static unsigned char byte_at(size_t i)
{
    return (unsigned char)((i * 2654435761u) >> 13);
}

/* ---- both directions ---- */

static void *send_as_library(void *arg)
{
    struct link *link = arg;
    unsigned char bytes[5000];
    for (size_t at = 0; at < MANY_BYTES;) {
        size_t n =
            at % sizeof bytes + 1 < MANY_BYTES - at ? at % sizeof bytes + 1 : MANY_BYTES - at;
        for (size_t i = 0; i < n; i++) {
            bytes[i] = byte_at(at + i);
        }
        ssize_t sent = send(link->lib_fd, bytes, n, MSG_NOSIGNAL);
        assert_true(sent > 0);
        at += (size_t)sent;
    }
    (void)shutdown(link->lib_fd, SHUT_WR);
    return NULL;
}

static void *receive_as_library(void *arg)
{
    struct link *link = arg;
    unsigned char bytes[7001];
    size_t at = 0;
    for (ssize_t n; (n = recv(link->lib_fd, bytes, sizeof bytes, 0)) > 0;) {
        for (ssize_t i = 0; i < n; i++, at++) {
            assert_int_equal(bytes[i], byte_at(at));
        }
    }
    assert_int_equal(at, MANY_BYTES);
    return NULL;
}

static void send_as_client(struct link *link)
{
    unsigned char bytes[20000];
    for (size_t at = 0; at < MANY_BYTES;) {
        size_t n = sizeof bytes < MANY_BYTES - at ? sizeof bytes : MANY_BYTES - at;
        for (size_t i = 0; i < n; i++) {
            bytes[i] = byte_at(at + i);
        }
        assert_int_equal(SSL_write(link->ssl, bytes, (int)n), (int)n);
        at += n;
    }
    assert_int_equal(SSL_shutdown(link->ssl), 0);
}

static void receive_as_client(struct link *link)
{
    unsigned char bytes[9001];
    size_t at = 0;
    int n;
    while ((n = SSL_read(link->ssl, bytes, sizeof bytes)) > 0) {
        for (int i = 0; i < n; i++, at++) {
            assert_int_equal(bytes[i], byte_at(at));
        }
    }
    assert_int_equal(SSL_get_error(link->ssl, n), SSL_ERROR_ZERO_RETURN); /* not a cut stream */
    assert_int_equal(at, MANY_BYTES);
}

static void bytes_and_ends_pass_in_both_directions(void **state)
{
    (void)state;
    struct link link;
    pthread_t receiver, sender;
    open_link(&link, HEARTH_CLIENT_AUTH_NONE);

    /* The client ends its direction first; the other one stays open. */
    assert_int_equal(pthread_create(&receiver, NULL, receive_as_library, &link), 0);
    send_as_client(&link);
    (void)pthread_join(receiver, NULL);
    assert_int_equal(atomic_load(&link.side->bytes), MANY_BYTES);
    assert_true(atomic_load(&link.side->records) >= MANY_BYTES / 16384);

    assert_int_equal(pthread_create(&sender, NULL, send_as_library, &link), 0);
    receive_as_client(&link);
    (void)pthread_join(sender, NULL);
    close_link(&link);
}

static void a_library_that_does_not_read_stops_the_client(void **state)
{
    (void)state;
    struct link link;
    char bytes[16384] = {0};
    size_t n_sent = 0;
    open_link(&link, HEARTH_CLIENT_AUTH_NONE);

    struct timeval second = {.tv_sec = 1};
    assert_int_equal(setsockopt(link.client_fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second),
                     0);
    while (SSL_write(link.ssl, bytes, sizeof bytes) > 0) {
        n_sent += sizeof bytes;
        assert_true(n_sent < (size_t)64 << 20);
    }
    assert_true(atomic_load(&link.side->bytes) < (size_t)1 << 20);
    close_link(&link);
}

/* ---- ends ---- */

static void a_close_with_unread_bytes_loses_no_answer(void **state)
{
    (void)state;
    struct link link;
    char bytes[100000] = {0}, answer[16];
    open_link(&link, HEARTH_CLIENT_AUTH_NONE);
    assert_int_equal(SSL_write(link.ssl, bytes, sizeof bytes), (int)sizeof bytes);
    assert_int_equal(send(link.lib_fd, "answer", 6, 0), 6);
    close_fd(&link.lib_fd);
    assert_int_equal(SSL_read(link.ssl, answer, sizeof answer), 6);
    assert_memory_equal(answer, "answer", 6);
    assert_int_equal(SSL_read(link.ssl, answer, sizeof answer), 0);
    while (hearth_tls_count_draining(link.tls) != 1) { /* it lingers, as soon as it is counted */
    }
    close_link(&link);
}

static void a_reset_connection_is_an_end_for_the_library(void **state)
{
    (void)state;
    struct link link;
    char byte;
    open_link(&link, HEARTH_CLIENT_AUTH_NONE);
    struct linger at_once = {.l_onoff = 1};
    assert_int_equal(setsockopt(link.client_fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once),
                     0);
    close_fd(&link.client_fd);
    assert_int_equal(recv(link.lib_fd, &byte, 1, 0), 0);
    struct pollfd hung = {.fd = link.lib_fd};
    assert_int_equal(poll(&hung, 1, 60000), 1);
    assert_true((hung.revents & POLLHUP) != 0);
    close_link(&link);
}

static void a_cut_connection_is_reset(void **state)
{
    (void)state;
    struct link link;
    char byte;
    open_link(&link, HEARTH_CLIENT_AUTH_NONE);
    assert_int_equal(SSL_write(link.ssl, "x", 1), 1);
    atomic_store(&link.side->is_cut, true);
    (void)shutdown(link.lib_fd, SHUT_RDWR);
    ssize_t n;
    while ((n = recv(link.client_fd, &byte, 1, 0)) > 0) { /* tickets */
    }
    assert_int_equal(n, -1);
    assert_int_equal(errno, ECONNRESET);
    close_link(&link);
}

static void records_without_data_end_the_connection(void **state)
{
    (void)state;
    struct link link;
    char byte;
    open_link(&link, HEARTH_CLIENT_AUTH_NONE);
    int n = 0;
    while (SSL_key_update(link.ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 &&
           SSL_do_handshake(link.ssl) == 1) {
        n++;
        assert_true(n < 100000);
    }
    assert_true(n > 1000); /* 256 KiB of them, and what the kernel buffers */
    assert_int_equal(recv(link.lib_fd, &byte, 1, 0), 0);
    close_link(&link);
}

/* The library writes so much and closes its end. */
static void write_and_close(struct link *link)
{
    char bytes[WRITTEN_BYTES] = {1};
    assert_int_equal(send(link->lib_fd, bytes, sizeof bytes, 0), (ssize_t)sizeof bytes);
    close_fd(&link->lib_fd);
}

static size_t count_received(struct link *link)
{
    char bytes[WRITTEN_BYTES];
    size_t n = 0;
    for (int got; (got = SSL_read(link->ssl, bytes, sizeof bytes)) > 0;) {
        n += (size_t)got;
    }
    return n;
}

static void the_stop_sends_what_libraries_wrote(void **state)
{
    (void)state;
    struct link link;
    open_link(&link, HEARTH_CLIENT_AUTH_NONE);
    write_and_close(&link);
    hearth_tls_free(link.tls);
    link.tls = NULL;
    assert_int_equal(count_received(&link), WRITTEN_BYTES);
    close_link(&link);
}

static void the_stop_sends_for_a_stream_that_was_given_just_before(void **state)
{
    (void)state;
    struct link link;
    struct hearth_tls_stream *stream = shake_link(&link, HEARTH_CLIENT_AUTH_NONE);
    write_and_close(&link);

    /* The stop nearly always precedes the first step of the loop's thread. */
    struct hearth_tls_loop_options options = {.name = "relay"};
    struct hearth_tls_loop *loop;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_tls_loop_start(&options, &loop, &err), HEARTH_OK);
    stream->state = HEARTH_TLS_RELAYING;
    stream->client.can_read = stream->client.can_write = true;
    hearth_tls_loop_give(loop, stream);
    hearth_tls_loop_stop(loop, true);

    assert_int_equal(count_received(&link), WRITTEN_BYTES);
    hearth_tls_loop_free(loop);
    close_link(&link);
}

/* ---- handshakes ---- */

static void a_connection_without_a_handshake_is_closed(void **state)
{
    (void)state;
    struct hearth_tls *tls = start_tls(HEARTH_NS_PER_MS, HEARTH_CLIENT_AUTH_NONE);
    int silent = connect_raw(tls), slow = connect_raw(tls);
    char byte;
    assert_int_equal(send(slow, "\x16\x03", 2, MSG_NOSIGNAL), 2);
    assert_true(recv(silent, &byte, 1, 0) <= 0);
    assert_true(recv(slow, &byte, 1, 0) <= 0);
    (void)close(silent);
    (void)close(slow);
    hearth_tls_free(tls);
}

static void later_handshakes_displace_the_oldest(void **state)
{
    (void)state;
    enum {
        N = 1100
    };
    static int fds[N];
    char byte;
    struct hearth_tls *tls = start_tls(600 * HEARTH_NS_PER_SEC, HEARTH_CLIENT_AUTH_NONE);
    for (size_t i = 0; i < N; i++) {
        fds[i] = connect_raw(tls);
    }
    assert_true(recv(fds[0], &byte, 1, 0) <= 0);
    assert_int_equal(recv(fds[N - 1], &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    for (size_t i = 0; i < N; i++) {
        (void)close(fds[i]);
    }
    hearth_tls_free(tls);
}

static void a_verified_certificate_gives_subject_and_names(void **state)
{
    (void)state;
    struct link link;
    open_link(&link, HEARTH_CLIENT_AUTH_REQUIRE);
    const struct hearth_certificate *certificate = link.side->certificate;
    assert_non_null(certificate);
    assert_true(certificate->is_complete);
    assert_string_equal(certificate->subject, "CN=localhost,O=Shop\\, \xc3\xa4");
    assert_int_equal(certificate->n_names, 3);
    assert_int_equal(certificate->names[0].kind, HEARTH_NAME_DNS);
    assert_string_equal(certificate->names[0].text, "localhost");
    assert_string_equal(certificate->names[1].text, "spiffe://shop/agent");
    assert_int_equal(certificate->names[2].kind, HEARTH_NAME_EMAIL);
    close_link(&link);
}

static void too_many_names_give_no_identity(void **state)
{
    (void)state;
    char names[4096] = "DNS:a0";
    for (int i = 1; i <= HEARTH_CERTIFICATE_MAX_NAMES; i++) {
        size_t n = strlen(names);
        (void)snprintf(names + n, sizeof names - n, ",DNS:a%d", i);
    }
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x509 = make_certificate(key, names);
    struct hearth_certificate *certificate = hearth_tls_identity(x509);
    assert_false(certificate->is_complete);
    assert_string_equal(certificate->subject, "");
    assert_int_equal(certificate->n_names, 0);
    hearth_certificate_unref(certificate);
    X509_free(x509);
    EVP_PKEY_free(key);
}

static int make_files(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)snprintf(g_cert, sizeof g_cert, "/tmp/hearth-test-cert-%d.pem", (int)getpid());
    (void)snprintf(g_key, sizeof g_key, "/tmp/hearth-test-key-%d.pem", (int)getpid());
    const char *names = "DNS:localhost,URI:spiffe://shop/agent,email:a@shop.example,IP:127.0.0.1";
    return write_certificate(g_cert, g_key, names) ? 0 : -1;
}

static int remove_files(void **state)
{
    (void)state;
    (void)unlink(g_cert);
    (void)unlink(g_key);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_and_ends_pass_in_both_directions),
        cmocka_unit_test(a_library_that_does_not_read_stops_the_client),
        cmocka_unit_test(a_close_with_unread_bytes_loses_no_answer),
        cmocka_unit_test(a_reset_connection_is_an_end_for_the_library),
        cmocka_unit_test(a_cut_connection_is_reset),
        cmocka_unit_test(records_without_data_end_the_connection),
        cmocka_unit_test(the_stop_sends_what_libraries_wrote),
        cmocka_unit_test(the_stop_sends_for_a_stream_that_was_given_just_before),
        cmocka_unit_test(a_connection_without_a_handshake_is_closed),
        cmocka_unit_test(later_handshakes_displace_the_oldest),
        cmocka_unit_test(a_verified_certificate_gives_subject_and_names),
        cmocka_unit_test(too_many_names_give_no_identity),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
