/* test_read_ahead.c -- messages read ahead: their order, number, and bytes of the budget. */
#include "grpc/read_ahead.h"

#include <grpc/grpc.h>
#include <grpc/slice.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define KB   ((size_t)1 << 10)
#define MANY ((size_t)1 << 30)

static struct hearth_budget make_budget(size_t limit_bytes)
{
    struct hearth_budget budget;
    hearth_budget_init(&budget, "max-push-memory-bytes", limit_bytes);
    return budget;
}

static grpc_byte_buffer *message_of(size_t n_bytes)
{
    grpc_slice slice = grpc_slice_malloc(n_bytes);
    memset(GRPC_SLICE_START_PTR(slice), 'x', n_bytes);
    grpc_byte_buffer *body = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    return body;
}

static void put(struct hearth_ahead *ahead, struct hearth_budget *budget, size_t n_bytes)
{
    hearth_ahead_put(ahead, budget, message_of(n_bytes));
}

/* Frees the message and gives its held bytes back. Returns its length. */
static size_t take(struct hearth_ahead *ahead, struct hearth_budget *budget, size_t *ret_held)
{
    struct hearth_ahead_message message = hearth_ahead_take(ahead);
    size_t n_bytes = grpc_byte_buffer_length(message.body);
    grpc_byte_buffer_destroy(message.body);
    hearth_budget_give(budget, message.held);
    *ret_held = message.held;
    return n_bytes;
}

static void messages_are_taken_in_their_order(void **state)
{
    (void)state;
    struct hearth_budget budget = make_budget(MANY);
    struct hearth_ahead ahead = {0};
    size_t n_in = 0, n_out = 0, held;
    for (size_t round = 0; round < 100; round++) {
        for (size_t i = 0; i < 40; i++) {
            assert_true(hearth_ahead_has_room(&ahead));
            put(&ahead, &budget, n_in++ % 1000);
        }
        for (size_t i = 0; i < 40; i++) {
            assert_int_equal(take(&ahead, &budget, &held), n_out++ % 1000);
        }
    }
    assert_int_equal(ahead.n, 0);
    assert_int_equal(budget.used_bytes, 0);
}

static void the_number_of_messages_is_limited(void **state)
{
    (void)state;
    struct hearth_budget budget = make_budget(MANY);
    struct hearth_ahead ahead = {0};
    for (size_t i = 0; i < HEARTH_AHEAD_MAX_MESSAGES; i++) {
        assert_true(hearth_ahead_has_room(&ahead));
        put(&ahead, &budget, 0);
    }
    assert_false(hearth_ahead_has_room(&ahead));
    size_t held;
    (void)take(&ahead, &budget, &held);
    assert_true(hearth_ahead_has_room(&ahead));
    hearth_ahead_clear(&ahead, &budget);
}

static void a_large_message_in_work_leaves_no_room(void **state)
{
    (void)state;
    struct hearth_budget budget = make_budget(MANY);
    struct hearth_ahead ahead = {0};
    size_t held;
    put(&ahead, &budget, HEARTH_AHEAD_MAX_BYTES - 1);
    assert_true(hearth_ahead_has_room(&ahead));
    put(&ahead, &budget, 1);
    assert_false(hearth_ahead_has_room(&ahead));
    (void)take(&ahead, &budget, &held); /* still in work */
    assert_false(hearth_ahead_has_room(&ahead));
    hearth_ahead_done(&ahead);
    assert_true(hearth_ahead_has_room(&ahead));
    hearth_ahead_clear(&ahead, &budget);
    assert_int_equal(ahead.n_bytes, 0);
}

static void all_bytes_are_taken_from_the_budget_and_given_back(void **state)
{
    (void)state;
    struct hearth_budget budget = make_budget(MANY);
    struct hearth_ahead ahead = {0};
    size_t held;
    put(&ahead, &budget, 10 * KB);
    put(&ahead, &budget, 20 * KB);
    put(&ahead, &budget, 7);
    assert_int_equal(budget.used_bytes, 30 * KB + 7);
    assert_int_equal(take(&ahead, &budget, &held), 10 * KB);
    assert_int_equal(held, 10 * KB);
    assert_int_equal(budget.used_bytes, 20 * KB + 7);
    hearth_ahead_clear(&ahead, &budget);
    assert_int_equal(budget.used_bytes, 0);
}

static void a_message_the_budget_refuses_is_kept_and_stops_the_reading(void **state)
{
    (void)state;
    struct hearth_budget budget = make_budget(100 * KB);
    struct hearth_ahead ahead = {0};
    size_t held;
    put(&ahead, &budget, 10 * KB);
    put(&ahead, &budget, 99 * KB);
    assert_int_equal(budget.used_bytes, 10 * KB);
    assert_false(hearth_ahead_has_room(&ahead));
    (void)take(&ahead, &budget, &held);
    assert_false(hearth_ahead_has_room(&ahead));
    assert_int_equal(take(&ahead, &budget, &held), 99 * KB);
    assert_int_equal(held, 0);
    assert_true(hearth_ahead_has_room(&ahead));
    assert_int_equal(budget.used_bytes, 0);
}

static void half_of_the_budget_is_for_messages_in_work(void **state)
{
    (void)state;
    struct hearth_budget budget = make_budget(100 * KB);
    struct hearth_ahead ahead = {0};
    size_t held;
    put(&ahead, &budget, 50 * KB);
    assert_true(hearth_ahead_has_room(&ahead));
    put(&ahead, &budget, 1);
    assert_false(hearth_ahead_has_room(&ahead));
    (void)take(&ahead, &budget, &held);
    (void)take(&ahead, &budget, &held);
    assert_int_equal(held, 1);
    assert_true(hearth_ahead_has_room(&ahead));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_taken_in_their_order),
        cmocka_unit_test(the_number_of_messages_is_limited),
        cmocka_unit_test(a_large_message_in_work_leaves_no_room),
        cmocka_unit_test(all_bytes_are_taken_from_the_budget_and_given_back),
        cmocka_unit_test(a_message_the_budget_refuses_is_kept_and_stops_the_reading),
        cmocka_unit_test(half_of_the_budget_is_for_messages_in_work),
    };
    grpc_init();
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    grpc_shutdown();
    return n_failed;
}
