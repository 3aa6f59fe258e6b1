/* test_client_waits.c -- calls that wait for their clients: which are overdue, and when. */
#include "hearth/base/clock.h"

#include "grpc/client_waits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The list does not look into calls: any address stands for one. */
static char g_calls[8];

static grpc_call *call_of(size_t i)
{
    return (grpc_call *)(void *)&g_calls[i];
}

static void overdue_calls_are_taken_once_and_the_oldest_first(void **state)
{
    (void)state;
    struct hearth_client_waits waits = {0};
    struct hearth_client_wait of[5] = {0};
    grpc_call *out[5];
    const int64_t until[] = {30, 10, 50, 20, 30};

    for (size_t i = 0; i < 5; i++) {
        hearth_client_waits_add(&waits, &of[i], call_of(i), until[i]);
    }
    assert_int_equal(hearth_client_waits_take_overdue(&waits, 9, out, 5), 0);
    assert_int_equal(hearth_client_waits_take_overdue(&waits, 30, out, 2), 2);
    assert_ptr_equal(out[0], call_of(0));
    assert_ptr_equal(out[1], call_of(1));
    assert_int_equal(hearth_client_waits_take_overdue(&waits, 30, out, 5), 2);
    assert_ptr_equal(out[0], call_of(3));
    assert_ptr_equal(out[1], call_of(4));
    assert_int_equal(hearth_client_waits_take_overdue(&waits, 49, out, 5), 0);
    assert_int_equal(hearth_client_waits_take_overdue(&waits, 50, out, 5), 1);
    assert_null(waits.oldest);
    assert_null(waits.newest);
}

static void a_call_that_waits_no_longer_is_not_overdue(void **state)
{
    (void)state;
    struct hearth_client_waits waits = {0};
    struct hearth_client_wait of[4] = {0};
    grpc_call *out[4];

    for (size_t i = 0; i < 4; i++) {
        hearth_client_waits_add(&waits, &of[i], call_of(i), 10);
    }
    hearth_client_waits_remove(&waits, &of[1]); /* between others, the first, the last, again */
    hearth_client_waits_remove(&waits, &of[0]);
    hearth_client_waits_remove(&waits, &of[3]);
    hearth_client_waits_remove(&waits, &of[3]);
    assert_int_equal(hearth_client_waits_take_overdue(&waits, 10, out, 4), 1);
    assert_ptr_equal(out[0], call_of(2));
    hearth_client_waits_remove(&waits, &of[2]); /* was taken */

    hearth_client_waits_add(&waits, &of[2], call_of(2), 20); /* for something else */
    assert_int_equal(hearth_client_waits_take_overdue(&waits, 19, out, 4), 0);
    assert_int_equal(hearth_client_waits_take_overdue(&waits, 20, out, 4), 1);
}

static void an_answer_has_the_time_of_a_head_and_of_its_bytes(void **state)
{
    (void)state;
    const int64_t s = HEARTH_NS_PER_SEC;

    assert_int_equal(hearth_client_answer_limit(s, 0, 20 * s, 256), 22 * s);
    assert_int_equal(hearth_client_answer_limit(s, 2560, 20 * s, 256), 32 * s);
    assert_true(hearth_client_answer_limit(s, SIZE_MAX / 2, 20 * s, 1) == INT64_MAX);
    assert_true(hearth_client_answer_limit(s, 10, 0, 256) == INT64_MAX);
    assert_true(hearth_client_answer_limit(s, 10, 20 * s, 0) == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overdue_calls_are_taken_once_and_the_oldest_first),
        cmocka_unit_test(a_call_that_waits_no_longer_is_not_overdue),
        cmocka_unit_test(an_answer_has_the_time_of_a_head_and_of_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
