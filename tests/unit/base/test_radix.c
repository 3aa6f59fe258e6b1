/* test_radix.c -- radix sorts of entries of several layouts. */
#include "hearth/base/radix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    MOST = 3000
};

/* An entry with its key in the middle and bytes that are unused. */
struct long_entry {
    uint8_t first;
    uint64_t key;
    uint32_t place;
    uint8_t last[5];
};

struct short_entry {
    uint32_t place, key;
};

static const struct hearth_radix_entry g_long = HEARTH_RADIX_ENTRY(struct long_entry, key);
static const struct hearth_radix_entry g_short = HEARTH_RADIX_ENTRY(struct short_entry, key);

static uint64_t g_random = 1;

/* splitmix64 */
static uint64_t next_random(void)
{
    uint64_t z = g_random += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}

static int compare_long(const void *a, const void *b)
{
    const struct long_entry *x = a, *y = b;
    int order = (x->key > y->key) - (x->key < y->key);
    return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

static void sorts_random_keys_and_keeps_the_order_of_equal_ones(void **state)
{
    (void)state;
    static struct long_entry v[MOST], spare[MOST], expected[MOST];
    static const uint64_t masks[] = {0, 1, 0xff00, 0x00ff00ff00ff00ffull, UINT64_MAX};
    for (size_t round = 0; round < 100; round++) {
        size_t n = round < 5 ? round : next_random() % (MOST + 1);
        uint64_t mask = masks[round % HEARTH_ARRAY_LEN(masks)];
        uint64_t common = next_random() & ~mask;
        for (size_t i = 0; i < n; i++) {
            uint64_t key = (next_random() & mask) | common;
            v[i] = (struct long_entry){(uint8_t)i, key, (uint32_t)i, {(uint8_t)(i >> 8)}};
            expected[i] = v[i];
        }
        const struct long_entry *sorted =
            hearth_radix_sort(v, spare, n, g_long, hearth_radix_differ(v, n, g_long));
        qsort(expected, n, sizeof expected[0], compare_long);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(sorted[i].key, expected[i].key);
            assert_int_equal(sorted[i].place, expected[i].place);
            assert_int_equal(sorted[i].first, expected[i].first);
            assert_int_equal(sorted[i].last[0], expected[i].last[0]);
        }
    }
}

static void sorts_keys_of_32_bits(void **state)
{
    (void)state;
    static struct short_entry v[MOST], spare[MOST];
    for (uint32_t i = 0; i < MOST; i++) {
        v[i] = (struct short_entry){i, (uint32_t)next_random()};
    }
    v[7].key = UINT32_MAX;
    v[8].key = 0;
    const struct short_entry *sorted = hearth_radix_sort(v, spare, MOST, g_short, UINT32_MAX);
    assert_int_equal(sorted[0].key, 0);
    assert_int_equal(sorted[0].place, 8);
    assert_int_equal(sorted[MOST - 1].key, UINT32_MAX);
    for (size_t i = 1; i < MOST; i++) {
        assert_true(sorted[i - 1].key <= sorted[i].key);
    }
}

static void copies_nothing_if_all_keys_are_equal(void **state)
{
    (void)state;
    struct short_entry v[] = {{0, 5}, {1, 5}, {2, 5}}, spare[3] = {{9, 9}};
    assert_int_equal(hearth_radix_differ(v, 3, g_short), 0);
    assert_ptr_equal(hearth_radix_sort(v, spare, 3, g_short, 0), v);
    assert_int_equal(spare[0].key, 9);
}

static void finds_the_bits_in_which_keys_differ(void **state)
{
    (void)state;
    const struct short_entry v[] = {{0, 0x81}, {1, 0x81}, {2, 0x91}, {3, 0x80000081}};
    assert_int_equal(hearth_radix_differ(v, 0, g_short), 0);
    assert_int_equal(hearth_radix_differ(v, 1, g_short), 0);
    assert_int_equal(hearth_radix_differ(v, 4, g_short), 0x80000010);
}

static void a_pass_sorts_by_one_digit_of_any_width(void **state)
{
    (void)state;
    static struct long_entry v[MOST], sorted[MOST];
    for (uint32_t i = 0; i < MOST; i++) {
        v[i] = (struct long_entry){.key = next_random(), .place = i};
    }
    for (unsigned bits = 1; bits <= HEARTH_RADIX_MAX_BITS; bits++) {
        unsigned shift = 64 - bits - bits % 3;
        hearth_radix_pass(v, sorted, MOST, g_long, shift, bits);
        for (size_t i = 1; i < MOST; i++) {
            uint64_t before = sorted[i - 1].key >> shift & ((1u << bits) - 1);
            uint64_t digit = sorted[i].key >> shift & ((1u << bits) - 1);
            assert_true(before < digit ||
                        (before == digit && sorted[i - 1].place < sorted[i].place));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorts_random_keys_and_keeps_the_order_of_equal_ones),
        cmocka_unit_test(sorts_keys_of_32_bits),
        cmocka_unit_test(copies_nothing_if_all_keys_are_equal),
        cmocka_unit_test(finds_the_bits_in_which_keys_differ),
        cmocka_unit_test(a_pass_sorts_by_one_digit_of_any_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
