/* test_block_sums.c -- sums of profiles and of blocks equal a naive sum. */
#include "hearth/base/mem.h"
#include "hearth/model/block.h"

#include "synth_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    MOST_IDS = 6000,
    MOST_TYPES = 4,
    MOST_SAMPLES = 400
};

/* The naive model: a table. */
struct naive {
    int64_t sums[MOST_TYPES][MOST_IDS];
    int64_t totals[MOST_TYPES];
    int64_t n_profiles;
};

static struct hearth_err g_err;

static struct hearth_columns encode(struct hearth_arena *arena, const uint32_t *ids,
                                    const int64_t *values, uint32_t n, uint32_t n_types)
{
    struct hearth_columns columns;
    assert_int_equal(hearth_columns_encode(ids, values, n, n_types, arena, &columns, &g_err),
                     HEARTH_OK);
    return columns;
}

static enum hearth_status add(struct hearth_block_sums *sums, const struct hearth_columns *c)
{
    return hearth_block_sums_add(sums, c->ids, c->vals, c->totals, 1, &g_err);
}

/*
 * Random samples. Column 1 is mostly period times column 0 (the same period, or sometimes another),
 * column 2 has its own values, column 3 is 0.
 */
static struct hearth_columns draw_profile(uint64_t *rng, uint32_t n_types, int64_t period,
                                          struct hearth_arena *arena, struct naive *naive)
{
    uint32_t ids[MOST_SAMPLES], n = 0, id = synth_below(rng, 50);
    int64_t values[MOST_SAMPLES * MOST_TYPES];
    uint32_t most = synth_below(rng, MOST_SAMPLES), spread = 1 + synth_below(rng, 40);
    for (; n < most && id < MOST_IDS; n++) {
        ids[n] = id;
        int64_t count = synth_below(rng, 4) > 0 ? 1 : synth_below(rng, 300);
        const int64_t by_type[MOST_TYPES] = {count, count * period, synth_below(rng, 100000), 0};
        for (uint32_t k = 0; k < n_types; k++) {
            values[n * n_types + k] = by_type[k];
            naive->sums[k][id] += by_type[k];
            naive->totals[k] += by_type[k];
        }
        id += 1 + synth_below(rng, spread);
    }
    naive->n_profiles++;
    return encode(arena, ids, values, n, n_types);
}

typedef enum hearth_status encode_sums_fn(const struct hearth_block_sums *sums,
                                          struct hearth_arena *arena, struct hearth_columns *ret,
                                          struct hearth_err *err);

static encode_sums_fn *const ENCODERS[] = {hearth_block_sums_encode, hearth_block_sums_encode_thin};

/* The encoded sums, decoded, equal the model. */
static void assert_sums_as(encode_sums_fn *encode_sums, const struct hearth_block_sums *sums,
                           const struct naive *naive, uint32_t n_types)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_columns c;
    assert_int_equal(encode_sums(sums, &arena, &c, &g_err), HEARTH_OK);
    assert_int_equal(sums->n_profiles, naive->n_profiles);
    assert_int_equal(c.n_types, n_types);
    uint32_t n = 0, bound = 0, want_bound = 0;
    for (uint32_t i = 0; i < MOST_IDS; i++) {
        bool any = false;
        for (uint32_t k = 0; k < n_types; k++) {
            any = any || naive->sums[k][i] != 0;
        }
        n += any;
        want_bound = any ? i + 1 : want_bound;
    }
    assert_int_equal(c.n, n);
    assert_true(hearth_columns_id_bound(c.ids, &bound));
    assert_int_equal(bound, want_bound);
    static int64_t acc[MOST_IDS];
    for (uint32_t k = 0; k < n_types; k++) {
        memset(acc, 0, sizeof acc);
        assert_int_equal(
            hearth_columns_merge(c.ids, c.vals[k], c.vals[0], k == 0, acc, MOST_IDS, &g_err),
            HEARTH_OK);
        assert_memory_equal(acc, naive->sums[k], sizeof acc);
        assert_int_equal(c.totals[k], naive->totals[k]);
    }
    hearth_arena_release(&arena);
}

static void assert_sums(const struct hearth_block_sums *sums, const struct naive *naive,
                        uint32_t n_types)
{
    assert_sums_as(ENCODERS[0], sums, naive, n_types);
    assert_sums_as(ENCODERS[1], sums, naive, n_types);
}

static void sums_of_random_profiles_are_those_of_a_table(void **state)
{
    (void)state;
    uint64_t rng = 11;
    static struct naive naive;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    for (int round = 0; round < 300; round++) {
        uint32_t n_types = 1 + synth_below(&rng, MOST_TYPES);
        struct hearth_block_sums sums;
        assert_int_equal(hearth_block_sums_init(&sums, n_types, 0, &g_err), HEARTH_OK);
        for (int again = 0; again < 3; again++) { /* later times after a reset */
            memset(&naive, 0, sizeof naive);
            uint32_t n_profiles = synth_below(&rng, 12);
            for (uint32_t p = 0; p < n_profiles; p++) {
                int64_t period = synth_below(&rng, 8) == 0 ? 7 : 10000000;
                struct hearth_columns c = draw_profile(&rng, n_types, period, &arena, &naive);
                assert_int_equal(add(&sums, &c), HEARTH_OK);
            }
            assert_sums(&sums, &naive, n_types);
            if (synth_below(&rng, 2) == 0) {
                hearth_block_sums_list(&sums);
                assert_true(sums.is_listed);
                assert_sums(&sums, &naive, n_types);
            }
            hearth_block_sums_reset(&sums);
            hearth_arena_reset(&arena);
        }
        hearth_block_sums_release(&sums);
    }
    hearth_arena_release(&arena);
}

static void sums_of_sums_and_of_blocks_are_sums_of_their_profiles(void **state)
{
    (void)state;
    uint64_t rng = 12;
    static struct naive naive;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    for (int round = 0; round < 200; round++) {
        uint32_t n_types = 1 + synth_below(&rng, MOST_TYPES);
        struct hearth_block_sums by_sums, by_blocks, part;
        assert_int_equal(hearth_block_sums_init(&by_sums, n_types, 0, &g_err), HEARTH_OK);
        assert_int_equal(hearth_block_sums_init(&by_blocks, n_types, 0, &g_err), HEARTH_OK);
        assert_int_equal(hearth_block_sums_init(&part, n_types, 0, &g_err), HEARTH_OK);
        memset(&naive, 0, sizeof naive);
        uint32_t n_parts = synth_below(&rng, 5);
        for (uint32_t b = 0; b < n_parts; b++) {
            uint32_t n_profiles = synth_below(&rng, 4);
            int64_t period = 1 + synth_below(&rng, 2);
            for (uint32_t p = 0; p < n_profiles; p++) {
                struct hearth_columns c = draw_profile(&rng, n_types, period, &arena, &naive);
                assert_int_equal(add(&part, &c), HEARTH_OK);
                if (synth_below(&rng, 3) == 0) {
                    hearth_block_sums_list(&part); /* the list is invalid after the next add */
                }
            }
            struct hearth_columns block;
            assert_int_equal(hearth_block_sums_add_sums(&by_sums, &part, &g_err), HEARTH_OK);
            assert_int_equal(ENCODERS[b % 2](&part, &arena, &block, &g_err), HEARTH_OK);
            assert_int_equal(hearth_block_sums_add(&by_blocks, block.ids, block.vals, block.totals,
                                                   part.n_profiles, &g_err),
                             HEARTH_OK);
            hearth_block_sums_reset(&part);
        }
        assert_sums(&by_sums, &naive, n_types);
        assert_sums(&by_blocks, &naive, n_types);
        hearth_block_sums_release(&by_sums);
        hearth_block_sums_release(&by_blocks);
        hearth_block_sums_release(&part);
        hearth_arena_reset(&arena);
    }
    hearth_arena_release(&arena);
}

/* One stack trace with one value in each of two columns. */
static struct hearth_columns single(struct hearth_arena *arena, uint32_t id, int64_t first,
                                    int64_t second)
{
    const int64_t values[] = {first, second};
    return encode(arena, &id, values, 1, 2);
}

static void a_constant_multiple_is_not_summed_until_the_factor_changes(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_block_sums sums;
    assert_int_equal(hearth_block_sums_init(&sums, 2, 0, &g_err), HEARTH_OK);
    struct hearth_columns a = single(&arena, 5, 3, 30), b = single(&arena, 9, 1, 10);
    struct hearth_columns other = single(&arena, 5, 2, 8);
    assert_int_equal(add(&sums, &a), HEARTH_OK);
    assert_int_equal(add(&sums, &b), HEARTH_OK);
    assert_null(sums.acc[1]);
    assert_int_equal(sums.factors[1], 10);
    assert_int_equal(add(&sums, &other), HEARTH_OK);
    assert_int_equal(sums.acc[0][5], 5);
    assert_int_equal(sums.acc[1][5], 38);
    assert_int_equal(sums.acc[1][9], 10);
    hearth_block_sums_release(&sums);
    hearth_arena_release(&arena);
}

static void a_sum_beyond_64_bits_is_refused_in_every_column_and_step(void **state)
{
    (void)state;
    const int64_t most = INT64_MAX / 10;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_block_sums sums, more;
    struct hearth_columns scaled = single(&arena, 5, most, most * 10);
    struct hearth_columns own = single(&arena, 5, 2, 8), small = single(&arena, 5, 1, 10);
    int64_t honest[2] = {scaled.totals[0], scaled.totals[1]}, no_totals[2] = {0, 0};
    assert_int_equal(hearth_block_sums_init(&sums, 2, 0, &g_err), HEARTH_OK);
    assert_int_equal(hearth_block_sums_init(&more, 2, 0, &g_err), HEARTH_OK);

    assert_int_equal(add(&sums, &scaled), HEARTH_OK);
    assert_int_equal(add(&sums, &scaled), HEARTH_OUT_OF_RANGE); /* overflow of the totals */

    hearth_block_sums_reset(&sums); /* overflow of a product, found by encoding */
    scaled.totals = no_totals;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(add(&sums, &scaled), HEARTH_OK);
    }
    struct hearth_columns c;
    assert_int_equal(hearth_block_sums_encode(&sums, &arena, &c, &g_err), HEARTH_OUT_OF_RANGE);
    assert_int_equal(add(&sums, &own), HEARTH_OUT_OF_RANGE); /* or by making sums of it */

    hearth_block_sums_reset(&sums); /* overflow of sums */
    scaled.totals = honest;
    assert_int_equal(add(&sums, &own), HEARTH_OK);
    assert_int_equal(add(&more, &scaled), HEARTH_OK);
    more.totals[1] = 0;
    assert_int_equal(hearth_block_sums_add_sums(&sums, &more, &g_err), HEARTH_OUT_OF_RANGE);

    hearth_block_sums_reset(&sums); /* afterwards the sums are usable again */
    assert_int_equal(add(&sums, &small), HEARTH_OK);
    assert_int_equal(hearth_block_sums_encode(&sums, &arena, &c, &g_err), HEARTH_OK);
    assert_int_equal(c.totals[1], 10);
    hearth_block_sums_release(&sums);
    hearth_block_sums_release(&more);
    hearth_arena_release(&arena);
}

static void damaged_columns_are_refused(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_columns c = single(&arena, 5, 3, 30);
    struct hearth_block_sums sums;
    assert_int_equal(hearth_block_sums_init(&sums, 2, 0, &g_err), HEARTH_OK);
    static const struct hearth_str bad_factors[] = {
        {"", 0},
        {"\x01", 1},
        {"\x01\x0a\x00", 3},
        {"\x02\x0a", 2},
        {"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* 2^64 - 1 */
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad_factors); i++) {
        struct hearth_str vals[2] = {c.vals[0], bad_factors[i]};
        assert_int_equal(hearth_block_sums_add(&sums, c.ids, vals, c.totals, 1, &g_err),
                         HEARTH_CORRUPT);
        hearth_block_sums_reset(&sums);
    }
    struct hearth_str cut[2] = {{"\x00", 1}, c.vals[1]};
    assert_int_equal(hearth_block_sums_add(&sums, c.ids, cut, c.totals, 1, &g_err), HEARTH_CORRUPT);
    hearth_block_sums_reset(&sums);
    int64_t negative[2] = {3, -30};
    assert_int_equal(hearth_block_sums_add(&sums, c.ids, c.vals, negative, 1, &g_err),
                     HEARTH_CORRUPT);
    hearth_block_sums_reset(&sums);
    assert_int_equal(
        hearth_block_sums_add(&sums, hearth_str_n("\x00", 1), c.vals, c.totals, 1, &g_err),
        HEARTH_CORRUPT);
    hearth_block_sums_release(&sums);
    hearth_arena_release(&arena);
}

static void memory_stays_within_its_limit(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_block_sums sums;
    struct hearth_columns low = single(&arena, 1499, 3, 30), high = single(&arena, 1600, 3, 30);
    struct hearth_columns own = single(&arena, 3, 2, 8), far = single(&arena, 4000000000u, 1, 1);
    assert_int_equal(hearth_block_sums_init(&sums, 2, 1500 * 8, &g_err), HEARTH_OK);
    assert_int_equal(add(&sums, &low), HEARTH_OK);
    assert_true(sums.n_bytes <= sums.limit_bytes);
    hearth_block_sums_list(&sums);
    assert_false(sums.is_listed); /* no room for a list: not an error */
    assert_true(sums.n_bytes <= sums.limit_bytes);
    assert_int_equal(add(&sums, &high), HEARTH_RESOURCE_EXHAUSTED);
    hearth_block_sums_reset(&sums);
    assert_int_equal(add(&sums, &far), HEARTH_RESOURCE_EXHAUSTED);
    hearth_block_sums_reset(&sums);
    assert_int_equal(add(&sums, &low), HEARTH_OK);
    assert_int_equal(add(&sums, &own), HEARTH_RESOURCE_EXHAUSTED); /* no room for column 1 */
    hearth_block_sums_release(&sums);

    assert_int_equal(hearth_block_sums_init(&sums, 2, 0, &g_err), HEARTH_OK);
    hearth_mem_fail_after(1);
    enum hearth_status refused = add(&sums, &low);
    hearth_mem_fail_after(0);
    assert_int_equal(refused, HEARTH_NO_MEMORY);
    hearth_block_sums_release(&sums);
    hearth_mem_fail_after(2);
    refused = hearth_block_sums_init(&sums, 2, 0, &g_err);
    hearth_mem_fail_after(0);
    assert_int_equal(refused, HEARTH_NO_MEMORY);
    hearth_block_sums_release(&sums);
    hearth_arena_release(&arena);
}

static void sums_of_nothing_are_an_empty_block(void **state)
{
    (void)state;
    static struct naive naive;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_block_sums sums, other;
    assert_int_equal(hearth_block_sums_init(&sums, 3, 0, &g_err), HEARTH_OK);
    assert_int_equal(hearth_block_sums_init(&other, 3, 0, &g_err), HEARTH_OK);
    memset(&naive, 0, sizeof naive);
    assert_sums(&sums, &naive, 3);
    assert_int_equal(hearth_block_sums_add_sums(&sums, &other, &g_err), HEARTH_OK);
    struct hearth_columns empty = encode(&arena, NULL, NULL, 0, 3);
    assert_int_equal(add(&sums, &empty), HEARTH_OK);
    naive.n_profiles = 1;
    assert_sums(&sums, &naive, 3);
    hearth_block_sums_release(&sums);
    hearth_block_sums_release(&other);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_random_profiles_are_those_of_a_table),
        cmocka_unit_test(sums_of_sums_and_of_blocks_are_sums_of_their_profiles),
        cmocka_unit_test(a_constant_multiple_is_not_summed_until_the_factor_changes),
        cmocka_unit_test(a_sum_beyond_64_bits_is_refused_in_every_column_and_step),
        cmocka_unit_test(damaged_columns_are_refused),
        cmocka_unit_test(memory_stays_within_its_limit),
        cmocka_unit_test(sums_of_nothing_are_an_empty_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
