/* test_stack_keys.c -- keys of stacks tell different content apart, and are equal for equal content. */
#include "hearth/base/mem.h"
#include "hearth/model/dict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX_TEXT    700
#define MAX_DEPTH   200
#define N_LOCATIONS 7

static int compare_keys(const void *a, const void *b)
{
    const struct hearth_hash128 *x = a, *y = b;
    return x->lo != y->lo ? (x->lo > y->lo) - (x->lo < y->lo) : (x->hi > y->hi) - (x->hi < y->hi);
}

static void assert_all_differ(struct hearth_hash128 *keys, size_t n)
{
    qsort(keys, n, sizeof keys[0], compare_keys);
    for (size_t i = 1; i < n; i++) {
        assert_false(hearth_hash128_eq(keys[i - 1], keys[i]));
    }
}

/* The key of a stack of one function with this name. */
static struct hearth_hash128 make_key_of_name(struct hearth_str name)
{
    struct hearth_str strings[] = {HEARTH_STR(""), name, HEARTH_STR("file.c")};
    struct hearth_function function = {1, 1, 2, 7};
    struct hearth_line line = {0, 3};
    struct hearth_location location = {.mapping = HEARTH_NO_INDEX, .n_lines = 1};
    uint32_t first[] = {0, 1}, locs[] = {0};
    const struct hearth_profile profile = {
        .strings = strings,
        .functions = &function,
        .lines = &line,
        .locations = &location,
        .stack_first = first,
        .stack_locs = locs,
        .n_strings = 3,
        .n_functions = 1,
        .n_lines = 1,
        .n_locations = 1,
        .n_samples = 1,
    };
    struct hearth_arena arena;
    struct hearth_stack_keys keys;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_arena_init(&arena, 0);
    assert_int_equal(hearth_stack_keys_make(&profile, &arena, &keys, &err), HEARTH_OK);
    assert_false(keys.skip[0]);
    struct hearth_hash128 key = keys.stack[0];
    hearth_arena_release(&arena);

    return key;
}

/* In a block of its own, so that ASan finds a read beside it. */
static struct hearth_hash128 make_key_of_bytes(const char *bytes, size_t n)
{
    char *copy = malloc(n == 0 ? 1 : n);
    assert_non_null(copy);
    if (n > 0) {
        memcpy(copy, bytes, n);
    }
    struct hearth_hash128 key = make_key_of_name(hearth_str_n(copy, n));
    free(copy);
    return key;
}

static void texts_that_differ_in_any_byte_have_different_keys(void **state)
{
    (void)state;
    for (size_t n = 0; n <= MAX_TEXT; n += n < 140 ? 1 : 31) {
        struct hearth_hash128 keys[MAX_TEXT + 1];
        char text[MAX_TEXT];
        for (size_t i = 0; i < n; i++) {
            text[i] = (char)('a' + i % 23);
        }
        for (size_t i = 0; i <= n; i++) {
            char byte = text[i % MAX_TEXT];
            if (i < n) {
                text[i] = '~';
            }
            keys[i] = make_key_of_bytes(text, n);
            if (i < n) {
                text[i] = byte;
            }
        }
        assert_all_differ(keys, n + 1);
    }
}

static void texts_of_different_lengths_have_different_keys(void **state)
{
    (void)state;
    static const char text[MAX_TEXT] = {0};
    struct hearth_hash128 keys[2 * MAX_TEXT];
    size_t n_keys = 0;
    for (size_t n = 0; n < MAX_TEXT; n++) {
        keys[n_keys++] = make_key_of_bytes(text, n);
    }
    for (size_t n = 1; n < MAX_TEXT; n++) {
        char same[MAX_TEXT];
        memset(same, 'x', n);
        keys[n_keys++] = make_key_of_bytes(same, n);
    }
    assert_all_differ(keys, n_keys);
}

/* A profile of locations without lines, at addresses of their own, and stacks of the given depths. */
static void make_keys_of_stacks(const uint32_t *first, const uint32_t *locs, uint32_t n_stacks,
                                struct hearth_arena *arena, struct hearth_stack_keys *ret)
{
    struct hearth_str strings[] = {HEARTH_STR("")};
    struct hearth_location locations[N_LOCATIONS];
    for (uint32_t i = 0; i < N_LOCATIONS; i++) {
        locations[i] = (struct hearth_location){.mapping = HEARTH_NO_INDEX, .address = i + 1};
    }
    uint32_t *first_copy = hearth_arena_array(arena, n_stacks + 1, sizeof first_copy[0]);
    uint32_t *locs_copy = hearth_arena_array(arena, first[n_stacks], sizeof locs_copy[0]);
    assert_true(first_copy != NULL && locs_copy != NULL);
    memcpy(first_copy, first, (n_stacks + 1) * sizeof first[0]);
    memcpy(locs_copy, locs, first[n_stacks] * sizeof locs[0]);
    const struct hearth_profile profile = {
        .strings = strings,
        .locations = locations,
        .stack_first = first_copy,
        .stack_locs = locs_copy,
        .n_strings = 1,
        .n_locations = N_LOCATIONS,
        .n_samples = n_stacks,
    };
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_stack_keys_make(&profile, arena, ret, &err), HEARTH_OK);
}

static void depth_and_every_place_count(void **state)
{
    (void)state;
    uint32_t *first = calloc(2 * MAX_DEPTH + 1, sizeof first[0]);
    uint32_t *locs = calloc((size_t)2 * MAX_DEPTH * MAX_DEPTH, sizeof locs[0]);
    struct hearth_stack_keys keys;
    struct hearth_arena arena;
    uint32_t n = 0, n_locs = 0;

    assert_true(first != NULL && locs != NULL);
    hearth_arena_init(&arena, 0);

    /* All depths of one location; one depth with another location at each place. */
    for (uint32_t depth = 0; depth < MAX_DEPTH; depth++) {
        n_locs += depth;
        first[++n] = n_locs;
    }
    for (uint32_t place = 0; place < MAX_DEPTH - 1; place++) {
        locs[n_locs + place] = 1;
        n_locs += MAX_DEPTH - 1;
        first[++n] = n_locs;
    }
    make_keys_of_stacks(first, locs, n, &arena, &keys);
    assert_all_differ(keys.stack, n);

    hearth_arena_release(&arena);
    free(first);
    free(locs);
}

static void a_dangling_location_at_any_place_leaves_out_its_stack_only(void **state)
{
    (void)state;
    for (uint32_t depth = 1; depth < 40; depth++) {
        for (uint32_t place = 0; place < depth; place++) {
            uint32_t first[] = {0, depth, 2 * depth, 3 * depth}, locs[120] = {0};
            struct hearth_stack_keys keys;
            struct hearth_arena arena;
            hearth_arena_init(&arena, 0);
            locs[depth + place] = HEARTH_NO_INDEX;
            make_keys_of_stacks(first, locs, 3, &arena, &keys);
            assert_true(keys.skip[1] && !keys.skip[0] && !keys.skip[2]);
            assert_true(hearth_hash128_eq(keys.stack[0], keys.stack[2]));
            hearth_arena_release(&arena);
        }
    }
}

static void empty_stacks_need_no_array_of_locations(void **state)
{
    (void)state;
    struct hearth_str strings[] = {HEARTH_STR("")};
    uint32_t first[] = {0, 0, 0};
    const struct hearth_profile profile = {
        .strings = strings, .stack_first = first, .n_strings = 1, .n_samples = 2};
    struct hearth_stack_keys keys;
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_arena_init(&arena, 0);
    assert_int_equal(hearth_stack_keys_make(&profile, &arena, &keys, &err), HEARTH_OK);
    assert_true(!keys.skip[0] && hearth_hash128_eq(keys.stack[0], keys.stack[1]));
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_that_differ_in_any_byte_have_different_keys),
        cmocka_unit_test(texts_of_different_lengths_have_different_keys),
        cmocka_unit_test(depth_and_every_place_count),
        cmocka_unit_test(a_dangling_location_at_any_place_leaves_out_its_stack_only),
        cmocka_unit_test(empty_stacks_need_no_array_of_locations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
