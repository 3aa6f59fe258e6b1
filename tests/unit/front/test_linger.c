/* test_linger.c -- connections that are answered early stay open until the client has read its answer. */
#include "hearth/base/clock.h"

#include "net/linger.h"
#include "tcp_pair.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct lingering_pair {
    struct hearth_lingers *lingers;
    int client;
};

/* A connection whose server end is closed by its owner, and lingers. */
static struct lingering_pair begin(void)
{
    struct lingering_pair pair;
    struct sockaddr_storage address;
    int ends[2];

    assert_int_equal(hearth_lingers_new(&pair.lingers, NULL), HEARTH_OK);
    assert_true(tcp_pair(ends, &address));
    assert_int_equal(send(ends[0], "answer", 6, MSG_NOSIGNAL), 6);
    hearth_lingers_add(pair.lingers, ends[0]);
    (void)close(ends[0]);
    pair.client = ends[1];
    return pair;
}

static void end(struct lingering_pair *pair)
{
    (void)close(pair->client);
    hearth_lingers_free(pair->lingers);
}

/* Waits until there is something to drop, and drops it. */
static void work_once(struct lingering_pair *pair)
{
    struct pollfd ready = {.fd = hearth_lingers_fd(pair->lingers), .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 60000), 1);
    hearth_lingers_work(pair->lingers, hearth_clock_mono_ns());
}

static void assert_open(const struct lingering_pair *pair)
{
    struct pollfd gone = {.fd = pair->client, .events = POLLIN};
    assert_int_equal(send(pair->client, "x", 1, MSG_NOSIGNAL), 1);
    assert_int_equal(poll(&gone, 1, 100), 0);
}

/* Nothing comes but the end, or the reset for bytes that nobody has read. */
static void assert_closed(const struct lingering_pair *pair)
{
    char byte;
    struct pollfd gone = {.fd = pair->client, .events = POLLIN};
    assert_int_equal(poll(&gone, 1, 60000), 1);
    assert_true(recv(pair->client, &byte, 1, 0) <= 0);
}

static void a_client_that_continues_to_send_reads_its_answer(void **state)
{
    (void)state;
    struct lingering_pair pair = begin();
    static char more[64 << 10];
    char answer[6];

    for (int i = 0; i < 4; i++) {
        assert_int_equal(send(pair.client, more, sizeof more, MSG_NOSIGNAL), (ssize_t)sizeof more);
        work_once(&pair);
    }
    assert_int_equal(recv(pair.client, answer, sizeof answer, MSG_WAITALL), (ssize_t)sizeof answer);
    assert_memory_equal(answer, "answer", 6);
    assert_open(&pair);

    end(&pair);
}

static void lingering_ends_when_the_client_has_sent_everything(void **state)
{
    (void)state;
    struct lingering_pair pair = begin();
    char bytes[8];

    assert_int_equal(shutdown(pair.client, SHUT_WR), 0);
    work_once(&pair);
    assert_int_equal(recv(pair.client, bytes, sizeof bytes, MSG_WAITALL), 6); /* then the end */

    end(&pair);
}

static void lingering_ends_after_its_time_limit(void **state)
{
    (void)state;
    struct lingering_pair pair = begin();
    char answer[6];
    assert_int_equal(recv(pair.client, answer, sizeof answer, MSG_WAITALL), (ssize_t)sizeof answer);

    hearth_lingers_work(pair.lingers, hearth_clock_mono_ns());
    assert_open(&pair);
    hearth_lingers_work(pair.lingers, hearth_clock_mono_ns() + 60 * HEARTH_NS_PER_SEC);
    assert_closed(&pair);

    end(&pair);
}

static void freeing_closes_lingering_connections(void **state)
{
    (void)state;
    struct lingering_pair pair = begin();
    char answer[6];
    assert_int_equal(recv(pair.client, answer, sizeof answer, MSG_WAITALL), (ssize_t)sizeof answer);

    hearth_lingers_free(pair.lingers);
    pair.lingers = NULL;
    assert_closed(&pair);

    end(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_continues_to_send_reads_its_answer),
        cmocka_unit_test(lingering_ends_when_the_client_has_sent_everything),
        cmocka_unit_test(lingering_ends_after_its_time_limit),
        cmocka_unit_test(freeing_closes_lingering_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
