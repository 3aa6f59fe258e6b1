/* test_buckets.c -- a step of so many milliseconds is that long, though it is asked for in seconds. */
#include "select/planned.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_step_of_whole_milliseconds_is_not_cut_to_less(void **state)
{
    (void)state;
    for (int64_t ms = 1; ms < 2000000; ms++) {
        assert_int_equal(hearth_step_ms((double)ms / 1000), ms);
    }
    const int64_t longest = INT64_MAX / HEARTH_NS_PER_MS;
    for (int64_t ms = longest - 1000; ms < longest; ms++) {
        assert_int_equal(hearth_step_ms((double)ms / 1000), ms);
    }
    assert_int_equal(hearth_step_ms(1e12), longest);
}

static void parts_of_a_millisecond_are_cut_off(void **state)
{
    (void)state;
    assert_int_equal(hearth_step_ms(0.0015), 1);
    assert_int_equal(hearth_step_ms(1.0009999), 1000);
    assert_int_equal(hearth_step_ms(15.001999), 15001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_of_whole_milliseconds_is_not_cut_to_less),
        cmocka_unit_test(parts_of_a_millisecond_are_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
