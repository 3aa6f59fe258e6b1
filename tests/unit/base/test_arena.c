/* test_arena.c -- alignment, limits and reset of arenas; the allocator of mem.h. */
#include "hearth/base/arena.h"
#include "hearth/base/budget.h"
#include "hearth/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void blocks_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    enum {
        N = 2000
    };

    unsigned char *blocks[N];
    for (size_t i = 0; i < N; i++) {
        blocks[i] = hearth_arena_alloc(&arena, i % 97 + (i % 50 == 0 ? 5000 : 0));
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        memset(blocks[i], (int)(i % 251), i % 97);
    }

    for (size_t i = 0; i < N; i++) {
        for (size_t k = 0; k < i % 97; k++) {
            assert_int_equal(blocks[i][k], i % 251);
        }
    }

    hearth_arena_release(&arena);
    assert_int_equal(arena.used_bytes, 0);
}

static void empty_blocks_have_an_address(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    void *a = hearth_arena_alloc(&arena, 0), *b = hearth_arena_alloc(&arena, 0);
    assert_non_null(a);
    assert_ptr_not_equal(a, b);
    hearth_arena_release(&arena);
}

static void refuses_beyond_the_limit_and_stays_usable(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 10000);
    assert_non_null(hearth_arena_alloc(&arena, 9000));
    assert_false(arena.refused);
    assert_null(hearth_arena_alloc(&arena, 2000));
    assert_true(arena.refused);
    assert_non_null(hearth_arena_alloc(&arena, 500));
    size_t n = 0;
    while (hearth_arena_alloc(&arena, 16) != NULL) {
        n++;
    }

    assert_true(n > 0 && arena.used_bytes <= 10000);
    hearth_arena_reset(&arena);
    assert_false(arena.refused);
    assert_non_null(hearth_arena_alloc(&arena, 9000));
    hearth_arena_release(&arena);
}

static void refuses_sizes_that_overflow(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    assert_null(hearth_arena_alloc(&arena, SIZE_MAX));
    assert_null(hearth_arena_alloc(&arena, SIZE_MAX - 20));
    assert_null(hearth_arena_array(&arena, SIZE_MAX / 4, 8));
    assert_null(hearth_arena_calloc(&arena, SIZE_MAX / 4, 8));
    assert_null(hearth_arena_strndup(&arena, "x", SIZE_MAX));
    assert_true(arena.refused);
    hearth_arena_release(&arena);
}

static void zeroes_zalloc_and_calloc(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    memset(hearth_arena_alloc(&arena, 3000), 0xff, 3000);
    hearth_arena_reset(&arena);
    unsigned char *a = hearth_arena_zalloc(&arena, 500), *b = hearth_arena_calloc(&arena, 10, 50);
    for (size_t i = 0; i < 500; i++) {
        assert_int_equal(a[i] | b[i], 0);
    }

    hearth_arena_release(&arena);
}

static void copies_text(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 200);
    assert_string_equal(hearth_arena_strndup(&arena, "abcdef", 3), "abc");
    assert_string_equal(hearth_arena_strndup(&arena, NULL, 0), "");
    struct hearth_str copy = hearth_arena_str(&arena, HEARTH_STR("a\0b"));
    assert_true(hearth_str_eq(copy, HEARTH_STR("a\0b")));
    assert_int_equal(copy.p[3], 0);
    assert_string_equal(hearth_arena_printf(&arena, "%d%%", 42), "42%");
    char large[300] = {0};
    assert_null(hearth_arena_str(&arena, hearth_str_n(large, sizeof large)).p);
    assert_null(hearth_arena_printf(&arena, "%300d", 1));
    hearth_arena_release(&arena);
}

static void reset_reuses_memory(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 1000; i++) {
            assert_non_null(hearth_arena_alloc(&arena, 100));
        }
        hearth_arena_reset(&arena);
        assert_int_equal(arena.used_bytes, 0);
    }

    hearth_mem_fail_after(1); /* the kept chunk needs no new memory */
    void *p = hearth_arena_alloc(&arena, 1000);
    hearth_mem_fail_after(0);
    assert_non_null(p);
    hearth_arena_release(&arena);
}

static void a_refusal_of_the_system_is_reported(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    hearth_mem_fail_after(1);
    void *small = hearth_arena_alloc(&arena, 10), *large = hearth_arena_alloc(&arena, 1 << 20);
    hearth_mem_fail_after(0);
    assert_null(small);
    assert_null(large);
    assert_true(arena.refused);
    assert_non_null(hearth_arena_alloc(&arena, 10));
    hearth_arena_release(&arena);
}

static void the_allocator_checks_products_and_survives_refusals(void **state)
{
    (void)state;
    assert_null(hearth_mem_calloc(SIZE_MAX / 2, 4));
    assert_null(hearth_mem_reallocarray(NULL, SIZE_MAX / 2, 4));
    assert_null(hearth_mem_strndup("x", SIZE_MAX));
    char *text HEARTH_CLEANUP(hearth_mem_freep) = hearth_mem_strndup("abc", 2);
    assert_string_equal(text, "ab");
    uint32_t *numbers = NULL;
    size_t cap = 0;
    assert_true(hearth_mem_grow(&numbers, &cap, 5, sizeof numbers[0]));
    assert_true(cap >= 5);
    numbers[4] = 7;
    size_t cap_before = cap;
    assert_false(hearth_mem_grow(&numbers, &cap, SIZE_MAX, sizeof numbers[0]));
    hearth_mem_fail_after(2);
    void *first = hearth_mem_alloc(1);
    bool grown = hearth_mem_grow(&numbers, &cap, cap + 1, sizeof numbers[0]);
    hearth_mem_fail_after(0);
    assert_non_null(first);
    assert_false(grown);
    assert_int_equal(cap, cap_before);
    assert_int_equal(numbers[4], 7);
    hearth_mem_free(first);
    hearth_mem_free(numbers);
}

static void a_grown_array_keeps_its_elements_and_a_refusal_changes_nothing(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 4096);
    uint32_t *numbers = NULL;
    size_t cap = 0;

    for (uint32_t i = 0; i < 300; i++) {
        assert_true(hearth_arena_grow(&arena, &numbers, &cap, i + 1, sizeof numbers[0]));
        assert_true(cap > i);
        numbers[i] = i;
    }

    uint32_t *before = numbers;
    size_t cap_before = cap;
    assert_false(hearth_arena_grow(&arena, &numbers, &cap, 4096, sizeof numbers[0]));
    assert_ptr_equal(numbers, before);
    assert_int_equal(cap, cap_before);
    for (uint32_t i = 0; i < 300; i++) {
        assert_int_equal(numbers[i], i);
    }

    hearth_arena_release(&arena);
}

/* 1 MiB of numbers: the outgrown small copies are at most 64 KiB in sum. */
static void a_regrown_array_leaves_no_large_copies_behind(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_budget budget;
    hearth_budget_init(&budget, "test", 0);
    hearth_arena_init(&arena, 0);
    arena.budget = &budget;
    uint32_t *numbers = NULL;
    size_t cap = 0;

    for (uint32_t i = 0; i < 1u << 18; i++) {
        assert_true(hearth_arena_regrow(&arena, &numbers, &cap, i + 1, sizeof numbers[0]));
        assert_true(cap > i);
        numbers[i] = i;
        if (i % 1000 == 0) {
            assert_non_null(hearth_arena_alloc(&arena, 10)); /* other blocks stay where they are */
        }
    }
    for (uint32_t i = 0; i < 1u << 18; i++) {
        assert_int_equal(numbers[i], i);
    }

    size_t used = arena.used_bytes;
    assert_true(used < cap * sizeof numbers[0] + 65536 + 300 * 32);
    assert_int_equal(budget.used_bytes, hearth_arena_held_bytes(&arena));

    /* Beyond the limit nothing changes. */
    uint32_t *before = numbers;
    arena.limit_bytes = used + 1000;
    assert_false(hearth_arena_regrow(&arena, &numbers, &cap, cap + 1, sizeof numbers[0]));
    assert_true(arena.over_limit);
    assert_ptr_equal(numbers, before);
    assert_int_equal(arena.used_bytes, used);

    arena.limit_bytes = 0;
    hearth_mem_fail_after(1);
    bool grown = hearth_arena_regrow(&arena, &numbers, &cap, cap + 1, sizeof numbers[0]);
    hearth_mem_fail_after(0);
    assert_false(grown);
    assert_int_equal(budget.used_bytes, hearth_arena_held_bytes(&arena));

    hearth_arena_release(&arena);
    assert_int_equal(budget.used_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_aligned_and_do_not_overlap),
        cmocka_unit_test(empty_blocks_have_an_address),
        cmocka_unit_test(refuses_beyond_the_limit_and_stays_usable),
        cmocka_unit_test(refuses_sizes_that_overflow),
        cmocka_unit_test(zeroes_zalloc_and_calloc),
        cmocka_unit_test(copies_text),
        cmocka_unit_test(reset_reuses_memory),
        cmocka_unit_test(a_grown_array_keeps_its_elements_and_a_refusal_changes_nothing),
        cmocka_unit_test(a_regrown_array_leaves_no_large_copies_behind),
        cmocka_unit_test(a_refusal_of_the_system_is_reported),
        cmocka_unit_test(the_allocator_checks_products_and_survives_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
