/* test_sum_cache.c -- sums of blocks in memory: found again, bounded, shared by threads. */
#include "hearth/base/mem.h"

#include "select/sum_cache.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ROW_BYTES 1000

static struct hearth_hash128 key_of(uint64_t number)
{
    return (struct hearth_hash128){hearth_hash_mix(number, 1), number};
}

/* Keeps one row whose bytes are all `number`. */
static void add(struct hearth_sum_cache *cache, uint64_t number)
{
    char bytes[ROW_BYTES];
    memset(bytes, (int)number, sizeof bytes);
    const struct hearth_read_row row = {.service_id = (int32_t)number,
                                        .ids = hearth_str_n(bytes, sizeof bytes / 2),
                                        .val = hearth_str_n(bytes, sizeof bytes / 2)};
    hearth_sum_cache_add(cache, key_of(number), &row, 1);
}

/* That an entry is the one that add() made. */
static bool is_whole(const struct hearth_cached_sums *sums, uint64_t number)
{
    const struct hearth_str *ids = &sums->rows[0].ids, *val = &sums->rows[0].val;
    return sums->n_rows == 1 && sums->rows[0].service_id == (int32_t)number &&
           ids->n == ROW_BYTES / 2 && val->n == ROW_BYTES / 2 && ids->p[0] == (char)number &&
           val->p[val->n - 1] == (char)number;
}

static bool has(struct hearth_sum_cache *cache, uint64_t number)
{
    const struct hearth_cached_sums *sums = hearth_sum_cache_find(cache, key_of(number));
    if (sums == NULL) {
        return false;
    }

    assert_true(is_whole(sums, number));
    hearth_sum_cache_release(cache, sums);
    return true;
}

static void added_entries_are_found_until_others_need_their_memory(void **state)
{
    (void)state;
    struct hearth_sum_cache *cache = hearth_sum_cache_new((size_t)20 * ROW_BYTES);

    for (uint64_t number = 1; number <= 8; number++) {
        add(cache, number);
    }
    for (uint64_t number = 1; number <= 8; number++) {
        assert_true(has(cache, number));
    }

    /* Entry 1 is used again and again, so the others make way. */
    for (uint64_t number = 9; number <= 60; number++) {
        assert_true(has(cache, 1));
        add(cache, number);
    }
    assert_true(has(cache, 1));
    assert_true(has(cache, 60));
    assert_false(has(cache, 2));

    hearth_sum_cache_free(cache);
}

static void bytes_are_kept_like_rows_and_bounded_with_them(void **state)
{
    (void)state;
    struct hearth_sum_cache *cache = hearth_sum_cache_new((size_t)20 * ROW_BYTES);
    char bytes[20 * ROW_BYTES / 8];

    /* An entry may have an eighth of the memory, its head included. */
    memset(bytes, 'b', sizeof bytes);
    assert_int_equal(hearth_sum_cache_largest(cache), sizeof bytes);
    hearth_sum_cache_add_bytes(cache, key_of(1), hearth_str_n(bytes, sizeof bytes));
    assert_null(hearth_sum_cache_find_bytes(cache, key_of(1)));

    hearth_sum_cache_add_bytes(cache, key_of(1), hearth_str_n(bytes, ROW_BYTES));
    assert_null(hearth_sum_cache_find_bytes(cache, key_of(2)));
    const struct hearth_cached_sums *held = hearth_sum_cache_find_bytes(cache, key_of(1));
    assert_non_null(held);
    assert_int_equal(held->n_rows, 0);
    assert_int_equal((uintptr_t)held->bytes.p % 8, 0);

    /* Rows make it leave its place, and its user still has it. */
    for (uint64_t number = 3; number <= 60; number++) {
        add(cache, number);
    }
    assert_null(hearth_sum_cache_find_bytes(cache, key_of(1)));
    assert_int_equal(held->bytes.n, ROW_BYTES);
    assert_memory_equal(held->bytes.p, bytes, ROW_BYTES);
    hearth_sum_cache_release(cache, held);

    hearth_sum_cache_free(cache);
}

static void an_entry_in_use_outlives_its_place_in_the_cache(void **state)
{
    (void)state;
    struct hearth_sum_cache *cache = hearth_sum_cache_new((size_t)20 * ROW_BYTES);

    add(cache, 1);
    const struct hearth_cached_sums *held = hearth_sum_cache_find(cache, key_of(1));
    for (uint64_t number = 2; number <= 60; number++) {
        add(cache, number);
    }
    assert_false(has(cache, 1));
    assert_true(is_whole(held, 1));
    hearth_sum_cache_release(cache, held);

    hearth_sum_cache_free(cache);
}

static void sums_that_are_large_beside_the_limit_are_not_kept(void **state)
{
    (void)state;
    struct hearth_sum_cache *cache = hearth_sum_cache_new((size_t)4 * ROW_BYTES);

    add(cache, 1);
    assert_false(has(cache, 1));
    assert_true(hearth_sum_cache_is_on(cache));
    hearth_sum_cache_free(cache);

    cache = hearth_sum_cache_new(0);
    assert_false(hearth_sum_cache_is_on(cache));
    hearth_sum_cache_free(cache);
}

static void the_second_of_two_equal_entries_is_dropped(void **state)
{
    (void)state;
    struct hearth_sum_cache *cache = hearth_sum_cache_new((size_t)20 * ROW_BYTES);

    add(cache, 1);
    add(cache, 1);
    assert_true(has(cache, 1));
    hearth_sum_cache_free(cache);
}

static void refused_memory_means_that_nothing_is_kept(void **state)
{
    (void)state;
    struct hearth_sum_cache *cache = hearth_sum_cache_new((size_t)20 * ROW_BYTES);

    hearth_mem_fail_after(1);
    add(cache, 1);
    hearth_mem_fail_after(0);
    assert_false(has(cache, 1));
    hearth_sum_cache_free(cache);
}

static void *use_cache(void *context)
{
    struct hearth_sum_cache *cache = context;
    uint64_t n_wrong = 0;

    for (uint64_t i = 0; i < 4000; i++) {
        uint64_t number = 1 + i * i % 23;
        const struct hearth_cached_sums *sums = hearth_sum_cache_find(cache, key_of(number));
        if (sums == NULL) {
            add(cache, number);
        } else {
            n_wrong += !is_whole(sums, number);
            hearth_sum_cache_release(cache, sums);
        }
    }

    return (void *)(uintptr_t)n_wrong;
}

static void threads_find_whole_entries_while_others_are_evicted(void **state)
{
    (void)state;
    struct hearth_sum_cache *cache = hearth_sum_cache_new((size_t)12 * ROW_BYTES);
    pthread_t threads[4];

    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, use_cache, cache), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        void *n_wrong;
        assert_int_equal(pthread_join(threads[i], &n_wrong), 0);
        assert_null(n_wrong);
    }

    hearth_sum_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(added_entries_are_found_until_others_need_their_memory),
        cmocka_unit_test(bytes_are_kept_like_rows_and_bounded_with_them),
        cmocka_unit_test(an_entry_in_use_outlives_its_place_in_the_cache),
        cmocka_unit_test(sums_that_are_large_beside_the_limit_are_not_kept),
        cmocka_unit_test(the_second_of_two_equal_entries_is_dropped),
        cmocka_unit_test(refused_memory_means_that_nothing_is_kept),
        cmocka_unit_test(threads_find_whole_entries_while_others_are_evicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
