/* test_number_run.c -- runs of numbers: what is written is read back, and damage is reported. */
#include "profile/number_run.h"
#include "rounds.h"
#include "synth_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST       HEARTH_RUN_NUMBERS
#define MOST_BYTES (8 * MOST + 3 + HEARTH_RUN_SLACK)

/* The bytes of a run, on the heap and of exactly its size: a sanitizer sees a read after them. */
static uint8_t *write_run(const uint64_t *numbers, uint32_t n, size_t *ret_n_bytes)
{
    uint8_t bytes[MOST_BYTES];
    struct hearth_run_shape shape;
    assert_true(hearth_run_measure(numbers, n, &shape));
    assert_ptr_equal(hearth_run_write(bytes, numbers, n, shape.k), bytes + shape.n_bytes);
    assert_true(shape.n_bytes + HEARTH_RUN_SLACK <= sizeof bytes);
    uint8_t *copy = malloc(shape.n_bytes);
    *ret_n_bytes = shape.n_bytes;
    return memcpy(copy, bytes, shape.n_bytes);
}

static bool read_numbers(const uint8_t *bytes, size_t n_bytes, uint32_t n, uint64_t *numbers)
{
    struct hearth_run_reader reader = {bytes, bytes + n_bytes};
    return hearth_run_read_numbers(&reader, n, numbers) && reader.at == reader.end;
}

static bool read_places(const uint8_t *bytes, size_t n_bytes, uint32_t n, uint32_t *places)
{
    struct hearth_run_reader reader = {bytes, bytes + n_bytes};
    return hearth_run_read_places(&reader, n, places) && reader.at == reader.end;
}

static void has_the_documented_layout(void **state)
{
    (void)state;
    size_t n_bytes;
    const uint64_t numbers[] = {9, 4, 17, 2, 8};
    uint8_t *bytes = write_run(numbers, 5, &n_bytes);
    /* Remainders of 3 bits: 1 4 1 2 0; quotients 1 0 2 0 1: 01 1 001 1 01. */
    assert_int_equal(n_bytes, 5);
    assert_memory_equal(bytes, "\x03\x61\x04\x66\x01", 5);
    uint32_t places[MOST];
    assert_true(read_places(bytes, n_bytes, 5, places));
    assert_int_equal(places[0], 9);
    assert_int_equal(places[4], 9 + 4 + 17 + 2 + 8 + 4);
    free(bytes);
}

/* Most numbers have up to `bits` bits, some have any size. */
static void draw_numbers(uint64_t *rng, uint64_t *numbers, uint32_t n)
{
    uint32_t bits = synth_below(rng, 57), rare = synth_below(rng, 3);
    for (uint32_t i = 0; i < n; i++) {
        numbers[i] = bits == 0 ? 0 : synth_next(rng) >> (64 - bits);
        if (rare > 0 && synth_below(rng, 40) == 0) {
            numbers[i] = synth_next(rng) >> (8 + synth_below(rng, 56));
        }
    }
}

static void numbers_of_any_size_are_read_back(void **state)
{
    (void)state;
    uint64_t rng = 50;
    for (int round = 0; round < test_rounds(20000); round++) {
        uint64_t numbers[MOST], got[MOST], sum = 0;
        uint32_t n = 1 + synth_below(&rng, MOST), places[MOST];
        draw_numbers(&rng, numbers, n);
        size_t n_bytes;
        uint8_t *bytes = write_run(numbers, n, &n_bytes);
        assert_true(read_numbers(bytes, n_bytes, n, got));
        assert_memory_equal(got, numbers, n * sizeof got[0]);
        for (uint32_t i = 0; i < n; i++) {
            sum += numbers[i];
        }
        bool fits = sum + n - 1 <= UINT32_MAX;
        assert_int_equal(read_places(bytes, n_bytes, n, places), fits);
        for (uint32_t i = 0, place = 0; fits && i < n; i++) {
            place += (uint32_t)numbers[i];
            assert_int_equal(places[i], place + i);
        }
        free(bytes);
    }
}

static void a_number_of_more_than_56_bits_has_no_run(void **state)
{
    (void)state;
    const uint64_t numbers[] = {1, UINT64_C(1) << 56}, largest[] = {(UINT64_C(1) << 56) - 1};
    struct hearth_run_shape shape;
    assert_false(hearth_run_measure(numbers, 2, &shape));
    assert_true(hearth_run_measure(largest, 1, &shape));
}

static void a_run_that_is_cut_is_damaged(void **state)
{
    (void)state;
    uint64_t rng = 51;
    for (int round = 0; round < test_rounds(300); round++) {
        uint64_t numbers[MOST], got[MOST];
        uint32_t n = 1 + synth_below(&rng, MOST), places[MOST];
        draw_numbers(&rng, numbers, n);
        size_t n_bytes;
        uint8_t *bytes = write_run(numbers, n, &n_bytes);
        for (size_t cut = 0; cut < n_bytes; cut++) {
            uint8_t *copy = malloc(cut + 1);
            memcpy(copy + 1, bytes, cut);
            assert_false(read_numbers(copy + 1, cut, n, got));
            assert_false(read_places(copy + 1, cut, n, places));
            free(copy);
        }
        free(bytes);
    }
}

static void numbers_whose_sum_exceeds_63_bits_are_refused_as_damaged(void **state)
{
    (void)state;
    uint64_t numbers[MOST];
    uint32_t places[MOST];
    /* k 56 and a remainder of 0: the quotient 128 makes 2^63, 127 twice makes 2^63 and more. */
    uint8_t large[1 + 7 + 17] = {56}, twice[1 + 14 + 32] = {56};
    large[8 + 16] = 1;
    twice[15 + 15] = 0x80;
    twice[15 + 31] = 0x80;
    assert_false(read_numbers(large, sizeof large, 1, numbers));
    assert_false(read_places(large, sizeof large, 1, places));
    assert_false(read_numbers(twice, sizeof twice, 2, numbers));
    large[8 + 16] = 0;
    large[8 + 15] = 0x80;
    assert_true(read_numbers(large, sizeof large - 1, 1, numbers));
    assert_true(numbers[0] == UINT64_C(127) << 56);
    large[0] = 57;
    assert_false(read_numbers(large, sizeof large - 1, 1, numbers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_documented_layout),
        cmocka_unit_test(numbers_of_any_size_are_read_back),
        cmocka_unit_test(a_number_of_more_than_56_bits_has_no_run),
        cmocka_unit_test(a_run_that_is_cut_is_damaged),
        cmocka_unit_test(numbers_whose_sum_exceeds_63_bits_are_refused_as_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
