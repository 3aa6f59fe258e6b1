/* test_peers_pace.c -- connections that are cut because they are slow, and those that may wait. */
#include "hearth/base/clock.h"

#include "net/peers.h"
#include "tcp_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TIMEOUT_NS (20 * HEARTH_NS_PER_MS)

/* The monotonic clock of this program (the linker's --wrap): time passes when a test says so. */
static int64_t g_now_ns = 1000 * HEARTH_NS_PER_SEC;

int64_t __wrap_hearth_clock_mono_ns(void);

int64_t __wrap_hearth_clock_mono_ns(void)
{
    return g_now_ns;
}

static void let_pass(int64_t ns)
{
    g_now_ns += ns;
}

static const struct hearth_pace g_pace = {.head_timeout_ns = TIMEOUT_NS, .min_body_rate = 1000};

static struct hearth_peers *make_peers(void)
{
    struct hearth_peers *peers;
    assert_int_equal(hearth_peers_new(1024, &peers, NULL), HEARTH_OK);
    return peers;
}

static void join(struct hearth_peers *peers, int pair[2])
{
    struct sockaddr_storage address;
    assert_true(tcp_pair(pair, &address));
    hearth_peers_add(peers, pair[0], &(struct hearth_origin){.address = address});
}

static void part(int pair[2])
{
    (void)close(pair[0]);
    (void)close(pair[1]);
}

/* Sends one segment, which the server's end reads. */
static void pass(const int pair[2], size_t n)
{
    char bytes[4096] = {0};
    assert_in_range(n, 1, sizeof bytes);
    assert_int_equal(send(pair[1], bytes, n, MSG_NOSIGNAL), (ssize_t)n);
    assert_int_equal(recv(pair[0], bytes, n, MSG_WAITALL), (ssize_t)n);
}

static size_t cut_slow(struct hearth_peers *peers)
{
    return hearth_peers_cut_slow(peers, &g_pace);
}

/* The number of connections cut within some timeouts. */
static size_t cut_in_time(struct hearth_peers *peers)
{
    size_t n = 0;
    for (int i = 0; i < 6 && n == 0; i++) {
        n = cut_slow(peers);
        let_pass(TIMEOUT_NS / 2);
    }
    return n;
}

static void a_head_that_does_not_end_is_cut(void **state)
{
    (void)state;
    struct hearth_peers *peers = make_peers();
    int pair[2];
    join(peers, pair);
    pass(pair, 1);
    assert_int_equal(hearth_peers_count(peers), 1);
    assert_int_equal(cut_in_time(peers), 1);
    assert_int_equal(hearth_peers_count(peers), 0); /* though the library has not closed it */
    assert_int_equal(cut_in_time(peers), 0);        /* once */
    char byte;
    assert_int_equal(recv(pair[1], &byte, 1, 0), -1);
    part(pair);
    hearth_peers_free(peers);
}

static void an_idle_connection_is_left_alone_until_a_head_begins(void **state)
{
    (void)state;
    struct hearth_peers *peers = make_peers();
    int pair[2];
    join(peers, pair);
    pass(pair, 100);
    hearth_peers_stage(peers, pair[0], HEARTH_PEER_BODY);
    hearth_peers_stage(peers, pair[0], HEARTH_PEER_WORK);
    assert_int_equal(cut_in_time(peers), 0);
    hearth_peers_stage(peers, pair[0], HEARTH_PEER_IDLE);
    assert_int_equal(cut_in_time(peers), 0);
    pass(pair, 1);
    assert_int_equal(cut_slow(peers), 0); /* it has its time from here */
    assert_int_equal(cut_in_time(peers), 1);
    part(pair);
    hearth_peers_free(peers);
}

static void a_body_below_its_rate_is_cut(void **state)
{
    (void)state;
    struct hearth_peers *peers = make_peers();
    int slow[2], fast[2];
    join(peers, slow);
    join(peers, fast);
    hearth_peers_stage(peers, slow[0], HEARTH_PEER_BODY);
    hearth_peers_stage(peers, fast[0], HEARTH_PEER_BODY);
    assert_int_equal(cut_slow(peers), 0);
    size_t n_cut = 0;
    for (int i = 0; i < 12; i++) {
        pass(fast, 4096);
        if (n_cut == 0) {
            pass(slow, 1);
        }
        let_pass(TIMEOUT_NS / 2);
        n_cut += cut_slow(peers);
    }
    assert_int_equal(n_cut, 1);
    pass(fast, 1);
    part(slow);
    part(fast);
    hearth_peers_free(peers);
}

static void bytes_the_server_has_not_read_are_not_the_clients_fault(void **state)
{
    (void)state;
    struct hearth_peers *peers = make_peers();
    int pair[2];
    join(peers, pair);
    hearth_peers_stage(peers, pair[0], HEARTH_PEER_BODY);
    assert_int_equal(send(pair[1], "x", 1, MSG_NOSIGNAL), 1);
    assert_int_equal(cut_in_time(peers), 0);
    char byte;
    assert_int_equal(recv(pair[0], &byte, 1, MSG_WAITALL), 1);
    assert_int_equal(cut_in_time(peers), 1);
    part(pair);
    hearth_peers_free(peers);
}

static void http2_without_its_first_frames_is_cut(void **state)
{
    (void)state;
    struct hearth_peers *peers = make_peers();
    int half[2], whole[2];
    join(peers, half);
    join(peers, whole);
    hearth_peers_set_grpc(peers, half[0]);
    hearth_peers_set_grpc(peers, whole[0]);
    pass(half, 24 + 9);
    pass(whole, 24 + 9 + 9);
    assert_int_equal(cut_in_time(peers), 1);
    assert_int_equal(cut_in_time(peers), 0); /* the other one may say nothing for ever */
    pass(whole, 1);
    part(half);
    part(whole);
    hearth_peers_free(peers);
}

static void frames_sent_byte_by_byte_are_cut_and_pings_are_not(void **state)
{
    (void)state;
    struct hearth_peers *peers = make_peers();
    int slow[2], pings[2];
    join(peers, slow);
    join(peers, pings);
    hearth_peers_set_grpc(peers, slow[0]);
    hearth_peers_set_grpc(peers, pings[0]);
    pass(slow, 2000);
    pass(pings, 100);
    size_t n_cut = 0;
    for (int i = 0; i < 24; i++) {
        if (n_cut == 0) {
            pass(slow, 1);
        }
        pass(pings, i % 2 == 0 ? 9 : 8); /* its head, then the rest */
        let_pass(TIMEOUT_NS / 4);
        n_cut += cut_slow(peers);
    }
    assert_int_equal(n_cut, 1);
    pass(pings, 17);
    part(slow);
    part(pings);
    hearth_peers_free(peers);
}

static void nothing_is_cut_without_a_limit(void **state)
{
    (void)state;
    struct hearth_peers *peers = make_peers();
    const struct hearth_pace none = {0}, heads = {.head_timeout_ns = TIMEOUT_NS};
    int head[2], body[2];
    join(peers, head);
    join(peers, body);
    pass(head, 1);
    hearth_peers_stage(peers, body[0], HEARTH_PEER_BODY);
    let_pass(2 * TIMEOUT_NS);
    assert_int_equal(hearth_peers_cut_slow(peers, &none), 0);
    assert_int_equal(hearth_peers_cut_slow(peers, &heads), 1);
    let_pass(2 * TIMEOUT_NS);
    assert_int_equal(hearth_peers_cut_slow(peers, &heads), 0);
    part(head);
    part(body);
    hearth_peers_free(peers);
}

static void the_oldest_connections_without_a_request_make_room(void **state)
{
    (void)state;
    struct hearth_peers *peers = make_peers();
    int good[2], old[2], young[2];
    join(peers, good);
    hearth_peers_stage(peers, good[0], HEARTH_PEER_WORK);
    join(peers, old);
    let_pass(TIMEOUT_NS);
    join(peers, young);
    assert_int_equal(hearth_peers_make_room(peers, &g_pace), 1);
    char byte;
    assert_int_equal(recv(old[1], &byte, 1, 0), -1);
    pass(young, 1);
    pass(good, 1);
    let_pass(TIMEOUT_NS);
    assert_int_equal(hearth_peers_make_room(peers, &g_pace), 1); /* then the other one */
    assert_int_equal(recv(young[1], &byte, 1, 0), -1);
    assert_int_equal(hearth_peers_make_room(peers, &g_pace), 0);
    pass(good, 1);
    part(good);
    part(old);
    part(young);
    hearth_peers_free(peers);
}

static void a_fast_first_body_is_not_cut_to_make_room(void **state)
{
    (void)state;
    struct hearth_peers *peers = make_peers();
    int pair[2];
    join(peers, pair);
    pass(pair, 4096);
    let_pass(TIMEOUT_NS);
    assert_int_equal(hearth_peers_make_room(peers, &g_pace), 0);
    part(pair);
    hearth_peers_free(peers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_that_does_not_end_is_cut),
        cmocka_unit_test(an_idle_connection_is_left_alone_until_a_head_begins),
        cmocka_unit_test(a_body_below_its_rate_is_cut),
        cmocka_unit_test(bytes_the_server_has_not_read_are_not_the_clients_fault),
        cmocka_unit_test(http2_without_its_first_frames_is_cut),
        cmocka_unit_test(frames_sent_byte_by_byte_are_cut_and_pings_are_not),
        cmocka_unit_test(nothing_is_cut_without_a_limit),
        cmocka_unit_test(the_oldest_connections_without_a_request_make_room),
        cmocka_unit_test(a_fast_first_body_is_not_cut_to_make_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
