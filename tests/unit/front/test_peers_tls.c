/* test_peers_tls.c -- what the table of peers knows of TLS connections: one end of a socket pair,
 * with counters and a certificate that the relay provides. */
#include "hearth/base/clock.h"

#include "net/peers.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct hearth_peers *peers;
    struct hearth_certificate *certificate;
    struct hearth_tls_side *side;
    int pair[2]; /* [0] is the library's end */
};

static struct hearth_origin make_origin(struct hearth_tls_side *side, uint8_t listener)
{
    struct hearth_origin origin = {.listener = listener, .tls = side};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(4040)};
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memcpy(&origin.address, &in, sizeof in);
    return origin;
}

static void begin(struct fixture *f)
{
    assert_int_equal(hearth_peers_new(1024, &f->peers, NULL), HEARTH_OK);
    f->certificate = hearth_certificate_new(8);
    (void)memcpy(f->certificate->text, "CN=agent", 8);
    f->side = hearth_tls_side_new(f->certificate);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, f->pair), 0);
    struct hearth_origin origin = make_origin(f->side, 3);
    hearth_peers_add(f->peers, f->pair[0], &origin);
}

static void end(struct fixture *f)
{
    hearth_peers_free(f->peers);
    assert_int_equal(atomic_load(&f->side->refs), 1);
    hearth_tls_side_unref(f->side);
    assert_int_equal(atomic_load(&f->certificate->refs), 1);
    hearth_certificate_unref(f->certificate);
    (void)close(f->pair[0]);
    (void)close(f->pair[1]);
}

static void a_peer_knows_its_listener_and_that_it_uses_tls(void **state)
{
    (void)state;
    struct fixture f;
    struct hearth_peer peer;
    char text[HEARTH_PEER_TEXT_BYTES];
    begin(&f);
    hearth_peers_find(f.peers, f.pair[0], &peer);
    assert_int_equal(peer.listener, 3);
    assert_true(peer.is_tls);
    assert_true(hearth_peers_is_relayed(f.peers, f.pair[0]));
    assert_false(hearth_peers_is_relayed(f.peers, f.pair[1]));
    hearth_peer_text(&peer, text);
    assert_string_equal(text, "127.0.0.1:4040");
    end(&f);
}

static void a_certificate_is_that_of_the_connection_and_not_of_the_next_one(void **state)
{
    (void)state;
    struct fixture f;
    struct hearth_peer peer, next;
    begin(&f);
    hearth_peers_find(f.peers, f.pair[0], &peer);
    struct hearth_certificate *found = hearth_peers_certificate(f.peers, &peer);
    assert_string_equal(found->subject, "CN=agent");
    hearth_certificate_unref(found);

    /* The same number, a client without a certificate. */
    struct hearth_tls_side *other = hearth_tls_side_new(NULL);
    struct hearth_origin origin = make_origin(other, 1);
    hearth_peers_add(f.peers, f.pair[0], &origin);
    assert_null(hearth_peers_certificate(f.peers, &peer));
    hearth_peers_find(f.peers, f.pair[0], &next);
    assert_null(hearth_peers_certificate(f.peers, &next));

    /* Then a plain one, then none. */
    origin = make_origin(NULL, 0);
    hearth_peers_add(f.peers, f.pair[0], &origin);
    assert_null(hearth_peers_certificate(f.peers, &next));
    hearth_peers_find(f.peers, f.pair[0], &next);
    assert_false(next.is_tls);
    hearth_peers_remove(f.peers, f.pair[0]);
    assert_null(hearth_peers_certificate(f.peers, &next));
    assert_int_equal(atomic_load(&other->refs), 1);
    hearth_tls_side_unref(other);
    end(&f);
}

static void a_flood_of_decrypted_bytes_is_cut(void **state)
{
    (void)state;
    struct fixture f;
    char byte;
    begin(&f);
    hearth_peers_set_grpc(f.peers, f.pair[0]);
    atomic_store(&f.side->bytes, 1000);
    assert_int_equal(hearth_peers_guard(f.peers, 1000, 1000, 1 << 20), 0);
    atomic_store(&f.side->bytes, 1001);
    assert_int_equal(hearth_peers_guard(f.peers, 1000, 1000, 1 << 20), 1);
    assert_true(atomic_load(&f.side->is_cut));
    assert_int_equal(recv(f.pair[1], &byte, 1, MSG_DONTWAIT), 0); /* the relay sees the end */
    assert_int_equal(hearth_peers_count(f.peers), 0);
    end(&f);
}

static void a_slow_head_is_cut_and_a_waiting_one_is_not(void **state)
{
    (void)state;
    const struct hearth_pace pace = {.head_timeout_ns = 1, .min_body_rate = 1000};
    struct fixture f;
    begin(&f);
    atomic_store(&f.side->bytes, 4);
    assert_int_equal(send(f.pair[1], "GET ", 4, MSG_NOSIGNAL), 4);
    assert_int_equal(hearth_peers_cut_slow(f.peers, &pace), 0); /* the server has not read it */
    char bytes[4];
    assert_int_equal(recv(f.pair[0], bytes, 4, MSG_WAITALL), 4);
    (void)usleep(1000);
    assert_int_equal(hearth_peers_cut_slow(f.peers, &pace), 1);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_knows_its_listener_and_that_it_uses_tls),
        cmocka_unit_test(a_certificate_is_that_of_the_connection_and_not_of_the_next_one),
        cmocka_unit_test(a_flood_of_decrypted_bytes_is_cut),
        cmocka_unit_test(a_slow_head_is_cut_and_a_waiting_one_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
