/* test_budget.c -- limits, parts, and arenas and buffers with a budget. */
#include "hearth/base/arena.h"
#include "hearth/base/budget.h"
#include "hearth/base/buf.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t used(struct hearth_budget *budget)
{
    return atomic_load(&budget->used_bytes);
}

static void a_refused_take_changes_nothing(void **state)
{
    (void)state;
    struct hearth_budget all;
    hearth_budget_init(&all, "all-bytes", 100);
    assert_true(hearth_budget_take(&all, 60));
    assert_false(hearth_budget_take(&all, 41));
    assert_int_equal(used(&all), 60);
    assert_false(hearth_budget_take(&all, SIZE_MAX));
    assert_true(hearth_budget_take(&all, 40));
    hearth_budget_give(&all, 100);
    assert_int_equal(used(&all), 0);
    assert_true(hearth_budget_take(NULL, SIZE_MAX));
    struct hearth_budget endless;
    hearth_budget_init(&endless, "none", 0);
    assert_true(hearth_budget_take(&endless, SIZE_MAX / 2));
}

static void a_part_charges_its_parent_beyond_the_free_bytes(void **state)
{
    (void)state;
    struct hearth_budget all, a, b;
    hearth_budget_init(&all, "all-bytes", 100);
    hearth_budget_init_part(&a, "one-bytes", 90, 10, &all);
    hearth_budget_init_part(&b, "one-bytes", 90, 10, &all);
    assert_true(hearth_budget_take(&a, 10));
    assert_int_equal(used(&all), 0);
    assert_true(hearth_budget_take(&a, 70));
    assert_int_equal(used(&all), 70);

    struct hearth_err err = HEARTH_ERR_INIT;
    assert_false(hearth_budget_take(&a, 11));
    assert_int_equal(HEARTH_FAIL_BUDGET(&err, &a), HEARTH_NO_MEMORY);
    assert_non_null(strstr(err.msg, "one-bytes (90)"));
    assert_false(hearth_budget_take(&b, 41));
    assert_int_equal(HEARTH_FAIL_BUDGET(&err, &b), HEARTH_NO_MEMORY);
    assert_non_null(strstr(err.msg, "all-bytes (100)"));
    assert_int_equal(used(&b), 0);
    assert_true(hearth_budget_take(&b, 10)); /* its free bytes are always available */

    hearth_budget_give(&a, 75);
    assert_int_equal(used(&all), 0);
    hearth_budget_settle(&a);
    assert_int_equal(used(&all), 5);
    hearth_budget_close(&a);
    hearth_budget_close(&b);
    assert_int_equal(used(&all), 0);
}

static void an_arena_charges_its_chunks_and_gives_them_back(void **state)
{
    (void)state;
    struct hearth_budget all;
    struct hearth_arena arena;
    hearth_budget_init(&all, "all-bytes", 100000);
    hearth_arena_init(&arena, 0);
    arena.budget = &all;
    for (int i = 0; i < 20; i++) {
        assert_non_null(hearth_arena_alloc(&arena, 1000));
    }

    assert_true(used(&all) >= 20000);
    assert_null(hearth_arena_alloc(&arena, 100000));
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(HEARTH_FAIL_ARENA(&err, &arena), HEARTH_NO_MEMORY);
    assert_non_null(strstr(err.msg, "all-bytes"));
    assert_non_null(hearth_arena_alloc(&arena, 16)); /* it is still usable */
    hearth_arena_reset(&arena);
    assert_true(used(&all) > 0 && used(&all) < 20000);

    struct hearth_arena scratch;
    hearth_arena_init_like(&scratch, &arena);
    assert_non_null(hearth_arena_alloc(&scratch, 50000));
    assert_true(used(&all) > 50000);
    hearth_arena_release(&scratch);
    hearth_arena_release(&arena);
    assert_int_equal(used(&all), 0);
    assert_ptr_equal(arena.budget, &all);
}

static void the_limit_of_the_arena_itself_is_named_in_the_error(void **state)
{
    (void)state;
    struct hearth_budget all;
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_budget_init(&all, "all-bytes", 1000);
    hearth_arena_init(&arena, 2000);
    arena.budget = &all;
    assert_null(hearth_arena_alloc(&arena, 1500));
    assert_null(hearth_arena_alloc(&arena, 2500));
    assert_int_equal(HEARTH_FAIL_ARENA(&err, &arena), HEARTH_NO_MEMORY);
    assert_non_null(strstr(err.msg, "limit of 2000 bytes"));
    hearth_arena_release(&arena);
}

static void a_buffer_charges_its_growth_and_taken_bytes_stay_charged(void **state)
{
    (void)state;
    struct hearth_budget all, part;
    struct hearth_buf buf;
    size_t n;
    hearth_budget_init(&all, "all-bytes", 1000);
    hearth_budget_init_part(&part, "one-bytes", 0, 0, &all);
    hearth_buf_init(&buf, 0);
    buf.budget = &part;
    assert_non_null(hearth_buf_reserve(&buf, 600));
    assert_int_equal(used(&all), 600);
    assert_null(hearth_buf_reserve(&buf, 2000));
    assert_true(hearth_buf_failed(&buf));
    hearth_buf_release(&buf);
    assert_int_equal(used(&all), 0);
    hearth_buf_cstr(&buf, "answer");
    char *text = hearth_buf_take(&buf, &n);
    assert_int_equal(n, 6);
    assert_true(used(&all) >= 6);
    hearth_budget_close(&part);
    assert_int_equal(used(&all), 0);
    free(text);
}

#define N_THREADS 4

static void *run_taker(void *arg)
{
    struct hearth_budget *all = arg;
    struct hearth_budget part;

    intptr_t n_refused = 0;
    for (size_t i = 0; i < 20000; i++) {
        hearth_budget_init_part(&part, "one-bytes", 0, 3, all);
        for (size_t k = 1; k < 8; k++) {
            n_refused += !hearth_budget_take(&part, k);
        }
        hearth_budget_give(&part, used(&part) / 2);
        hearth_budget_close(&part);
        if (used(all) > 60) {
            return (void *)(intptr_t)-1;
        }
    }

    return (void *)n_refused;
}

static void threads_together_never_exceed_the_limit(void **state)
{
    (void)state;
    struct hearth_budget all;
    pthread_t threads[N_THREADS];
    hearth_budget_init(&all, "all-bytes", 60);
    for (int i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_taker, &all), 0);
    }

    for (int i = 0; i < N_THREADS; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_true((intptr_t)result >= 0);
    }

    assert_int_equal(used(&all), 0);
}

/*
 * The size distinguishes a request that can never fit from one for which others left too little
 * room.
 */
static void reports_the_size_of_a_refusal_once(void **state)
{
    (void)state;
    struct hearth_budget budget;
    hearth_budget_init(&budget, "option", 10000);
    (void)hearth_budget_refused_bytes();
    assert_true(hearth_budget_take(&budget, 4000));
    hearth_budget_refused_beside(5);
    assert_int_equal(hearth_budget_refused_bytes(), 0);
    assert_false(hearth_budget_take(&budget, 7000));
    hearth_budget_refused_beside(50);
    assert_int_equal(hearth_budget_refused_bytes(), 7050);
    assert_int_equal(hearth_budget_refused_bytes(), 0);
    hearth_budget_give(&budget, 4000);

    struct hearth_arena arena;
    hearth_arena_init(&arena, 9000);
    arena.budget = &budget;
    assert_non_null(hearth_arena_alloc(&arena, 6000));
    assert_int_equal(hearth_arena_held_bytes(&arena), atomic_load(&budget.used_bytes));
    assert_null(hearth_arena_alloc(&arena, 4000));
    assert_true(arena.over_limit && hearth_budget_refused_bytes() == 0);
    arena.limit_bytes = 0;
    assert_null(hearth_arena_alloc(&arena, 5000));
    assert_true(!arena.over_limit && hearth_budget_refused_bytes() >= 5000);
    hearth_arena_release(&arena);
}

static void a_share_is_charged_to_the_whole_and_named_in_the_error(void **state)
{
    (void)state;
    struct hearth_budget whole, share, part;
    hearth_budget_init(&whole, "whole", 1000);
    hearth_budget_init_share(&share, "share", 600, &whole);
    hearth_budget_init_part(&part, "part", 900, 100, &share);

    /* The free bytes are charged to neither, until the part settles. */
    assert_true(hearth_budget_take(&part, 500));
    assert_int_equal(share.used_bytes, 400);
    assert_int_equal(whole.used_bytes, 400);
    assert_false(hearth_budget_take(&part, 300));
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(HEARTH_FAIL_BUDGET(&err, &part), HEARTH_NO_MEMORY);
    assert_non_null(
        strstr(err.msg, "all running requests of the tenant together need more than share (600)"));
    hearth_budget_settle(&part);
    assert_int_equal(share.used_bytes, 500);
    assert_int_equal(whole.used_bytes, 500);

    /* Others fill the whole: the share has room, but the whole refuses. */
    assert_true(hearth_budget_take(&whole, 450));
    assert_false(hearth_budget_take(&part, 60));
    assert_int_equal(share.used_bytes, 500);
    assert_int_equal(HEARTH_FAIL_BUDGET(&err, &part), HEARTH_NO_MEMORY);
    assert_non_null(strstr(err.msg, "all running requests together need more than whole (1000)"));
    hearth_budget_close(&part);
    assert_int_equal(share.used_bytes, 0);
    assert_int_equal(whole.used_bytes, 450);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_take_changes_nothing),
        cmocka_unit_test(a_part_charges_its_parent_beyond_the_free_bytes),
        cmocka_unit_test(an_arena_charges_its_chunks_and_gives_them_back),
        cmocka_unit_test(reports_the_size_of_a_refusal_once),
        cmocka_unit_test(the_limit_of_the_arena_itself_is_named_in_the_error),
        cmocka_unit_test(a_buffer_charges_its_growth_and_taken_bytes_stay_charged),
        cmocka_unit_test(a_share_is_charged_to_the_whole_and_named_in_the_error),
        cmocka_unit_test(threads_together_never_exceed_the_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
