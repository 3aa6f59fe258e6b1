/* test_upload_values.c -- what a task's pprof adds to the file before it. */
#include "arena_fixture.h"
#include "small_profile.h"
#include "tasks/task_uploads_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Whether `before` was taken off. */
static bool subtract(struct small *s, struct small *before, const char *event)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    bool contains = false;
    assert_int_equal(
        hearth_upload_subtract(&s->p, &before->p, hearth_str_c(event), &g_arena, &contains, &err),
        HEARTH_OK);
    return contains;
}

static void assert_values(const struct small *s, const int64_t *expected, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(s->values[i], expected[i]);
    }
}

static const char *const g_block[] = {"contentions", "delay"};

static void an_earlier_profile_is_subtracted_sample_by_sample(void **state)
{
    (void)state;
    struct small before, after;
    small_init(&before, g_block, 2);
    small_add(&before, 'a', 16, 1, 100);
    small_add(&before, 'a', 32, 2, 200);
    small_add(&before, 'b', 0, 3, 300);
    small_add(&before, 'b', 0, 4, 400); /* the same sample twice is its sum */
    small_init(&after, g_block, 2);
    small_add(&after, 'c', 0, 5, 500);
    small_add(&after, 'b', 0, 8, 900);
    small_add(&after, 'a', 32, 2, 200);
    small_add(&after, 'a', 16, 4, 150);
    assert_true(subtract(&after, &before, "block"));
    assert_values(&after, (const int64_t[]){5, 500, 1, 200, 0, 0, 3, 50}, 8);
}

static void a_profile_of_another_process_is_left_as_it_is(void **state)
{
    (void)state;
    struct small before, after;
    const int64_t same[] = {5, 500};
    small_init(&before, g_block, 2);
    small_add(&before, 'a', 0, 1, 501); /* more delay */
    small_init(&after, g_block, 2);
    small_add(&after, 'a', 0, 5, 500);
    assert_false(subtract(&after, &before, "mutex"));
    small_init(&before, g_block, 2);
    small_add(&before, 'b', 0, 1, 1); /* which it does not have */
    assert_false(subtract(&after, &before, "mutex"));
    small_init(&before, g_block, 2);
    small_add(&before, 'a', 0, -1, 1);
    assert_false(subtract(&after, &before, "mutex"));
    small_init(&before, g_block, 2);
    small_add(&before, 'a', 0, 1, INT64_MAX);
    small_add(&before, 'a', 0, 1, INT64_MAX);
    assert_false(subtract(&after, &before, "mutex"));
    small_init(&before, (const char *const[]){"contentions", "time"}, 2);
    small_add(&before, 'a', 0, 1, 1);
    assert_false(subtract(&after, &before, "mutex"));
    assert_values(&after, same, 2);
}

static void only_cumulative_values_are_taken_off(void **state)
{
    (void)state;
    struct small before, after;
    const char *const types[] = {"alloc_space", "inuse_space"};
    small_init(&before, types, 2);
    small_add(&before, 'a', 0, 70, 30);
    small_init(&after, types, 2);
    small_add(&after, 'a', 0, 100, 20);
    assert_true(subtract(&after, &before, "heap"));
    assert_values(&after, (const int64_t[]){30, 20}, 2);
    assert_false(subtract(&after, &before, "goroutine"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_earlier_profile_is_subtracted_sample_by_sample),
        cmocka_unit_test(a_profile_of_another_process_is_left_as_it_is),
        cmocka_unit_test(only_cumulative_values_are_taken_off),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
