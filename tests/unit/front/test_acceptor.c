/* test_acceptor.c -- handing over connections, their limits, and the table of peers. Uses real
 * sockets on loopback. */
#include "hearth/base/clock.h"

#include "net/acceptor.h"
#include "net/listen.h"
#include "tcp_pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* A timeout that no test reaches. */
#define LONG_NS (300 * HEARTH_NS_PER_SEC)

struct taken {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int n;
    int fds[256];
};

static void take(void *context, int fd, const struct sockaddr *address, socklen_t address_bytes)
{
    struct taken *taken = context;
    (void)address;
    (void)address_bytes;
    (void)pthread_mutex_lock(&taken->lock);
    taken->fds[taken->n++] = fd;
    (void)pthread_cond_broadcast(&taken->wake);
    (void)pthread_mutex_unlock(&taken->lock);
}

static int wait_taken(struct taken *taken, int n)
{
    (void)pthread_mutex_lock(&taken->lock);
    while (taken->n < n) {
        (void)pthread_cond_wait(&taken->wake, &taken->lock);
    }
    int fd = taken->fds[n - 1];
    (void)pthread_mutex_unlock(&taken->lock);
    return fd;
}

static struct taken g_grpc = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, {0}};
static struct taken g_http = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, {0}};

static struct hearth_acceptor *start(size_t max_connections, int64_t timeout_ns)
{
    static const char *const listen[] = {"127.0.0.1:0", NULL};
    struct hearth_acceptor_options options = {
        .listen = listen,
        .max_connections = max_connections,
        .first_bytes_timeout_ns = timeout_ns,
        .max_message_bytes = 1u << 20,
        .max_unread_bytes = 64u << 20,
        .take_grpc = take,
        .grpc_context = &g_grpc,
        .take_http = take,
        .http_context = &g_http,
    };
    struct hearth_acceptor *acceptor;
    struct hearth_err err = HEARTH_ERR_INIT;
    g_grpc.n = g_http.n = 0;
    assert_int_equal(hearth_acceptor_open(&options, &acceptor, &err), HEARTH_OK);
    assert_int_equal(hearth_acceptor_run(acceptor, &err), HEARTH_OK);
    return acceptor;
}

static int dial(const struct hearth_acceptor *acceptor)
{
    unsigned port;
    assert_int_equal(sscanf(hearth_acceptor_listener(acceptor, 0)->text, "127.0.0.1:%u", &port), 1);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* True if the peer closes the connection. */
static bool is_closed(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    char byte;
    return poll(&poll_fd, 1, 60000) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
}

static void the_preface_decides_after_four_bytes(void **state)
{
    (void)state;
    struct hearth_acceptor *acceptor = start(100, LONG_NS);
    int grpc = dial(acceptor), http = dial(acceptor), post = dial(acceptor);
    say(grpc, "PRI * HTTP/2.0\r\n");
    int server = wait_taken(&g_grpc, 1);
    char first[4];
    assert_int_equal(recv(server, first, 4, MSG_DONTWAIT), 4); /* nothing was consumed */
    assert_memory_equal(first, "PRI ", 4);
    (void)close(server);
    say(http, "G");
    (void)close(wait_taken(&g_http, 1));
    say(post, "PO");
    (void)close(wait_taken(&g_http, 2));
    assert_int_equal(g_grpc.n, 1);
    (void)close(grpc);
    (void)close(http);
    (void)close(post);
    hearth_acceptor_free(acceptor);
}

static void a_shorter_matching_beginning_waits_for_more(void **state)
{
    (void)state;
    struct hearth_acceptor *acceptor = start(100, LONG_NS);
    int grpc = dial(acceptor), http = dial(acceptor);
    static const char *const bytes[] = {"P", "R", "I", " "};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(g_grpc.n, 0);
        say(grpc, bytes[i]);
    }
    (void)close(wait_taken(&g_grpc, 1));
    say(http, "PR");
    say(http, "OPFIND / HTTP/1.1\r\n");
    (void)close(wait_taken(&g_http, 1));
    (void)close(grpc);
    (void)close(http);
    hearth_acceptor_free(acceptor);
}

static void connections_with_few_or_no_bytes_time_out(void **state)
{
    (void)state;
    struct hearth_acceptor *acceptor = start(100, 50 * HEARTH_NS_PER_MS);
    int silent = dial(acceptor), half = dial(acceptor);
    say(half, "PRI");
    assert_true(is_closed(silent));
    assert_true(is_closed(half));
    assert_int_equal(g_grpc.n + g_http.n, 0);
    (void)close(silent);
    (void)close(half);
    hearth_acceptor_free(acceptor);
}

static void connections_over_the_limit_are_closed_until_there_is_room(void **state)
{
    (void)state;
    struct hearth_acceptor *acceptor = start(2, LONG_NS);
    int first = dial(acceptor), second = dial(acceptor);
    say(first, "G");
    say(second, "G");
    int server1 = wait_taken(&g_http, 1), server2 = wait_taken(&g_http, 2);
    struct hearth_peers *peers = hearth_acceptor_peers(acceptor);
    hearth_peers_stage(peers, server1, HEARTH_PEER_WORK);
    hearth_peers_stage(peers, server2, HEARTH_PEER_WORK);
    int third = dial(acceptor);
    assert_true(is_closed(third));
    (void)close(server1); /* as a library would: without a word */
    (void)close(third);
    int64_t until = hearth_clock_mono_ns() + 60 * HEARTH_NS_PER_SEC;
    bool taken = false;
    while (!taken && hearth_clock_mono_ns() < until) { /* the sweep while full is limited in rate */
        int again = dial(acceptor);
        struct pollfd poll_fd = {.fd = again, .events = POLLIN | POLLRDHUP};
        taken = poll(&poll_fd, 1, 20) == 0;
        (void)close(again);
    }
    assert_true(taken);
    (void)close(server2);
    (void)close(first);
    (void)close(second);
    hearth_acceptor_free(acceptor);
}

static void only_health_checks_are_accepted_over_the_limit(void **state)
{
    (void)state;
    struct hearth_acceptor *acceptor = start(1, LONG_NS);
    int busy = dial(acceptor);
    say(busy, "G");
    int server = wait_taken(&g_http, 1);
    hearth_peers_stage(hearth_acceptor_peers(acceptor), server, HEARTH_PEER_WORK);
    int other = dial(acceptor), grpc = dial(acceptor), health = dial(acceptor);
    say(other, "GET /metrics HTTP/1.1\r\n");
    say(grpc, "PRI * HTTP/2.0\r\n");
    say(health, "GET /hea");
    assert_true(is_closed(other));
    assert_true(is_closed(grpc));
    assert_int_equal(g_http.n, 1);
    say(health, "lthz HTTP/1.1\r\n");
    (void)close(wait_taken(&g_http, 2));
    assert_int_equal(g_grpc.n, 0);
    (void)close(server);
    (void)close(busy);
    (void)close(other);
    (void)close(grpc);
    (void)close(health);
    hearth_acceptor_free(acceptor);
}

static void at_the_limit_connections_without_a_request_make_room(void **state)
{
    (void)state;
    struct hearth_acceptor *acceptor = start(2, LONG_NS);
    int good = dial(acceptor), silent = dial(acceptor);
    say(good, "G");
    int server1 = wait_taken(&g_http, 1);
    hearth_peers_stage(hearth_acceptor_peers(acceptor), server1, HEARTH_PEER_WORK);
    say(silent, "G");
    int server2 = wait_taken(&g_http, 2);
    int third = -1;
    int64_t until = hearth_clock_mono_ns() + 60 * HEARTH_NS_PER_SEC;
    while (g_http.n < 3 && hearth_clock_mono_ns() < until) { /* making room is limited in rate */
        third = third >= 0 ? (void)close(third), dial(acceptor) : dial(acceptor);
        say(third, "G");
        (void)usleep(20000);
    }
    (void)close(wait_taken(&g_http, 3));
    assert_true(is_closed(silent));
    say(good, "E"); /* this one lives */
    char bytes[2];
    assert_int_equal(recv(server1, bytes, 2, MSG_WAITALL), 2);
    (void)close(server1);
    (void)close(server2);
    (void)close(good);
    (void)close(silent);
    (void)close(third);
    hearth_acceptor_free(acceptor);
}

static void text_of(const struct hearth_peers *peers, int fd, char out[HEARTH_PEER_TEXT_BYTES])
{
    struct hearth_peer peer;
    hearth_peers_find(peers, fd, &peer);
    hearth_peer_text(&peer, out);
}

static void finds_peers_by_descriptor(void **state)
{
    (void)state;
    struct hearth_peers *peers;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_peers_new(1024, &peers, &err), HEARTH_OK);
    struct sockaddr_storage address = {0};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(4040)};
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memcpy(&address, &in, sizeof in);
    int a = socket(AF_INET, SOCK_STREAM, 0), b = socket(AF_INET, SOCK_STREAM, 0);
    hearth_peers_add(peers, a, &(struct hearth_origin){.address = address});
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    in6.sin6_addr = in6addr_loopback;
    memcpy(&address, &in6, sizeof in6);
    hearth_peers_add(peers, b, &(struct hearth_origin){.address = address});
    char text[HEARTH_PEER_TEXT_BYTES];
    text_of(peers, a, text);
    assert_string_equal(text, "127.0.0.1:4040");
    text_of(peers, b, text);
    assert_string_equal(text, "[::1]:9");
    text_of(peers, -1, text);
    assert_string_equal(text, "unknown");
    text_of(peers, 4096, text);
    assert_string_equal(text, "unknown");
    assert_int_equal(hearth_peers_count(peers), 2);
    hearth_peers_sweep(peers);
    assert_int_equal(hearth_peers_count(peers), 2);
    (void)close(a);
    hearth_peers_sweep(peers);
    assert_int_equal(hearth_peers_count(peers), 1);
    /* The number is used again, by another socket and by a file: both times the old one is gone. */
    (void)close(b);
    int again = socket(AF_INET, SOCK_STREAM, 0), other = dup(0);
    hearth_peers_sweep(peers);
    assert_int_equal(hearth_peers_count(peers), 0);
    (void)close(again);
    (void)close(other);
    hearth_peers_free(peers);
}

/* [0] is the server's end, in the table as a gRPC connection. */
static void connect_pair(struct hearth_peers *peers, int pair[2])
{
    struct sockaddr_storage address;
    assert_true(tcp_pair(pair, &address));
    hearth_peers_add(peers, pair[0], &(struct hearth_origin){.address = address});
    hearth_peers_set_grpc(peers, pair[0]);
}

static void pass_bytes(const int pair[2], size_t n_bytes)
{
    char bytes[4096] = {0};
    for (size_t n = 0; n < n_bytes; n += sizeof bytes) {
        assert_int_equal(send(pair[1], bytes, sizeof bytes, MSG_NOSIGNAL), (ssize_t)sizeof bytes);
        assert_int_equal(recv(pair[0], bytes, sizeof bytes, MSG_WAITALL), (ssize_t)sizeof bytes);
    }
}

static void a_connection_that_receives_without_progress_is_cut(void **state)
{
    (void)state;
    const uint64_t slack = 64 * 1024, message = 1024 * 1024, total = UINT64_MAX;
    struct hearth_peers *peers;
    assert_int_equal(hearth_peers_new(1024, &peers, NULL), HEARTH_OK);
    int pair[2];
    connect_pair(peers, pair);
    struct hearth_peer peer;
    hearth_peers_find(peers, pair[0], &peer);
    pass_bytes(pair, 60 * 1024);
    assert_int_equal(hearth_peers_guard(peers, slack, message, total), 0);
    hearth_peers_progress(peers, &peer); /* a call: what came before it is forgotten */
    assert_int_equal(hearth_peers_guard(peers, slack, message, total), 0);
    hearth_peers_reading(peers, &peer, 1); /* a message may come now */
    pass_bytes(pair, 1000 * 1024);
    assert_int_equal(hearth_peers_guard(peers, slack, message, total), 0);
    hearth_peers_reading(peers, &peer, -1);
    assert_int_equal(hearth_peers_guard(peers, slack, message, total), 1);
    char byte;
    assert_int_equal(recv(pair[1], &byte, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
    assert_int_equal(hearth_peers_guard(peers, slack, message, total), 0); /* once */
    (void)close(pair[0]);
    (void)close(pair[1]);
    hearth_peers_free(peers);
}

static void a_call_that_outlives_its_connection_does_not_count_for_the_next_one(void **state)
{
    (void)state;
    const uint64_t slack = 1024, message = 8192;
    struct hearth_peers *peers;
    assert_int_equal(hearth_peers_new(1024, &peers, NULL), HEARTH_OK);
    int pair[2], fd;
    struct hearth_peer old, next;
    connect_pair(peers, pair);
    fd = pair[0];
    hearth_peers_find(peers, fd, &old);
    for (int i = 0; i < 5; i++) {
        hearth_peers_reading(peers, &old, 1);
    }
    (void)close(pair[0]);
    (void)close(pair[1]);
    connect_pair(peers, pair);
    assert_int_equal(pair[0], fd); /* the lowest that is free */
    hearth_peers_find(peers, pair[0], &next);
    pass_bytes(pair, 8192);
    hearth_peers_reading(peers, &next, 1);
    for (int i = 0; i < 5; i++) { /* the reads of the old one end only now */
        hearth_peers_reading(peers, &old, -1);
    }
    assert_int_equal(hearth_peers_guard(peers, slack, message, UINT64_MAX), 0);
    hearth_peers_reading(peers, &old, 5);
    hearth_peers_reading(peers, &next, -1);
    assert_int_equal(hearth_peers_guard(peers, slack, message, UINT64_MAX), 1);
    (void)close(pair[0]);
    (void)close(pair[1]);
    hearth_peers_free(peers);
}

static void pings_on_a_quiet_connection_are_not_a_flood(void **state)
{
    (void)state;
    const uint64_t slack = 1024;
    struct hearth_peers *peers;
    assert_int_equal(hearth_peers_new(1024, &peers, NULL), HEARTH_OK);
    hearth_peers_set_quiet_rate(peers, UINT64_C(100) << 20);
    int quiet[2], loud[2];
    struct hearth_peer peer;
    connect_pair(peers, quiet);
    connect_pair(peers, loud);
    (void)usleep(20000);
    pass_bytes(quiet, 1 << 20); /* in 20 ms it may have had two */
    assert_int_equal(hearth_peers_guard(peers, slack, 0, UINT64_MAX), 0);
    hearth_peers_set_quiet_rate(peers, 4);
    assert_int_equal(hearth_peers_guard(peers, slack, 0, UINT64_MAX), 1);
    pass_bytes(loud, 8192); /* progress starts the time anew, too */
    hearth_peers_find(peers, loud[0], &peer);
    hearth_peers_progress(peers, &peer);
    assert_int_equal(hearth_peers_guard(peers, slack, 0, UINT64_MAX), 0);
    pass_bytes(loud, 8192);
    assert_int_equal(hearth_peers_guard(peers, slack, 0, UINT64_MAX), 1);
    for (size_t i = 0; i < 2; i++) {
        (void)close(quiet[i]);
        (void)close(loud[i]);
    }
    hearth_peers_free(peers);
}

static void above_the_total_the_worst_connection_is_cut(void **state)
{
    (void)state;
    struct hearth_peers *peers;
    assert_int_equal(hearth_peers_new(1024, &peers, NULL), HEARTH_OK);
    int small[2], large[2];
    connect_pair(peers, small);
    connect_pair(peers, large);
    pass_bytes(small, 40 * 1024);
    pass_bytes(large, 80 * 1024);
    assert_int_equal(hearth_peers_guard(peers, UINT32_MAX, 0, 120 * 1024), 0);
    assert_int_equal(hearth_peers_guard(peers, UINT32_MAX, 0, 100 * 1024), 1);
    char byte;
    assert_int_equal(recv(large[1], &byte, 1, 0), -1);
    pass_bytes(small, 4096); /* this one lives */
    assert_int_equal(hearth_peers_guard(peers, UINT32_MAX, 0, 100 * 1024), 0);
    for (size_t i = 0; i < 2; i++) {
        (void)close(small[i]);
        (void)close(large[i]);
    }
    hearth_peers_free(peers);
}

static void an_address_in_use_is_reported(void **state)
{
    (void)state;
    struct hearth_acceptor *acceptor = start(2, HEARTH_NS_PER_SEC);
    struct hearth_listeners listeners = {0};
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(
        hearth_listeners_add(&listeners, hearth_acceptor_listener(acceptor, 0)->text, &err),
        HEARTH_UNAVAILABLE);
    assert_non_null(strstr(err.msg, strerror(EADDRINUSE)));
    assert_int_equal(listeners.n, 0);
    assert_int_equal(hearth_listeners_add(&listeners, "nonsense", &err), HEARTH_INVALID_ARGUMENT);
    hearth_acceptor_free(acceptor);
}

static void addresses_beyond_the_most_are_refused_with_their_number(void **state)
{
    (void)state;
    struct hearth_listeners listeners = {0};
    struct hearth_err err = HEARTH_ERR_INIT;

    for (size_t i = 0; i < HEARTH_MAX_LISTENERS; i++) {
        assert_int_equal(hearth_listeners_add(&listeners, "127.0.0.1:0", &err), HEARTH_OK);
    }
    assert_int_equal(hearth_listeners_add(&listeners, "127.0.0.1:0", &err),
                     HEARTH_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(err.msg, "16 addresses"));
    assert_int_equal(listeners.n, HEARTH_MAX_LISTENERS);
    hearth_listeners_close(&listeners);
}

static void a_passed_socket_is_used_for_its_address(void **state)
{
    (void)state;
    struct hearth_acceptor *acceptor = start(2, HEARTH_NS_PER_SEC);
    const struct hearth_listener *open = hearth_acceptor_listener(acceptor, 0);
    struct hearth_listeners listeners = {0};
    struct hearth_err err = HEARTH_ERR_INIT;
    int fd = dup(open->fd);

    /* The address is in use, so it can only be the passed one. */
    assert_int_equal(hearth_listeners_pass(&listeners, fd, &err), HEARTH_OK);
    assert_int_equal(hearth_listeners_check_passed(&listeners, &err), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(err.msg, open->text));
    assert_int_equal(hearth_listeners_add(&listeners, open->text, &err), HEARTH_OK);
    assert_int_equal(listeners.all[0].fd, fd);
    assert_int_equal(hearth_listeners_check_passed(&listeners, &err), HEARTH_OK);

    /* What does not listen is refused. */
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(hearth_listeners_pass(&listeners, pair[0], &err), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(hearth_listeners_pass(&listeners, -1, &err), HEARTH_INVALID_ARGUMENT);

    (void)close(pair[0]);
    (void)close(pair[1]);
    hearth_listeners_close(&listeners);
    hearth_acceptor_free(acceptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_preface_decides_after_four_bytes),
        cmocka_unit_test(a_shorter_matching_beginning_waits_for_more),
        cmocka_unit_test(connections_with_few_or_no_bytes_time_out),
        cmocka_unit_test(connections_over_the_limit_are_closed_until_there_is_room),
        cmocka_unit_test(only_health_checks_are_accepted_over_the_limit),
        cmocka_unit_test(at_the_limit_connections_without_a_request_make_room),
        cmocka_unit_test(finds_peers_by_descriptor),
        cmocka_unit_test(a_connection_that_receives_without_progress_is_cut),
        cmocka_unit_test(a_call_that_outlives_its_connection_does_not_count_for_the_next_one),
        cmocka_unit_test(pings_on_a_quiet_connection_are_not_a_flood),
        cmocka_unit_test(above_the_total_the_worst_connection_is_cut),
        cmocka_unit_test(an_address_in_use_is_reported),
        cmocka_unit_test(addresses_beyond_the_most_are_refused_with_their_number),
        cmocka_unit_test(a_passed_socket_is_used_for_its_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
