/*
 * test_noise.c -- tables of Student's t, examples that are computed by hand, and random data with a
 * known answer.
 */
#include "hearth/model/noise.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define N_RANDOM_PARTS 12u
#define N_RANDOM_ITEMS 200u

static void assert_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance)) {
        fail_msg("%.10g is not %.10g", got, want);
    }
}

static void tails_of_student_are_those_of_the_tables(void **state)
{
    (void)state;

    /* The first has a closed form: 1 - 2 atan(t) / pi. */
    assert_near(hearth_student_p(1, 1), 0.5, 1e-12);
    assert_near(hearth_student_p(0, 7), 1, 1e-12);
    assert_near(hearth_student_p(-2.776445, 4), 0.05, 1e-6);
    assert_near(hearth_student_p(4.140, 7), 0.004347, 1e-5);
    assert_near(hearth_student_p(12, 200), 1.8e-25, 1e-25);
    assert_near(hearth_student_t95(1), 12.7062, 1e-4);
    assert_near(hearth_student_t95(2), 4.30265, 1e-4);
    assert_near(hearth_student_t95(10), 2.22814, 1e-4);
    assert_near(hearth_student_t95(200), 1.97190, 1e-4);
}

struct example {
    enum hearth_noise_kind kind;
    size_t n_parts, n_items;
    const int64_t *weights[2], *values[2];
};

/* Judges an example by one division. Returns whether the division was used. */
static bool judge(const struct example *example, struct hearth_change *changes)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    int64_t sums[2][N_RANDOM_ITEMS] = {{0}}, weights[2] = {0, 0};
    bool used;

    hearth_arena_init(&arena, 0);
    for (size_t s = 0; s < 2; s++) {
        for (size_t part = 0; part < example->n_parts; part++) {
            weights[s] += example->weights[s][part];
            for (size_t i = 0; i < example->n_items; i++) {
                sums[s][i] += example->values[s][part * example->n_items + i];
            }
        }
    }

    const int64_t *const values[2] = {sums[0], sums[1]};
    const struct hearth_noise_side sides[2] = {{example->weights[0], example->values[0]},
                                               {example->weights[1], example->values[1]}};
    struct hearth_noise noise;
    assert_int_equal(
        hearth_noise_init(&noise, example->kind, example->n_items, values, weights, &arena, &err),
        HEARTH_OK);
    assert_int_equal(hearth_noise_divide(&noise, example->n_parts, sides, &used, &err), HEARTH_OK);
    assert_int_equal(hearth_noise_finish(&noise, changes, &err), HEARTH_OK);
    hearth_arena_release(&arena);

    return used;
}

static void the_error_of_a_rate_is_that_of_its_parts(void **state)
{
    (void)state;

    /* Left: 1 2 3 4 in four parts of its own; right: 5 6 7 8 in four others. */
    const int64_t left_weights[8] = {1, 1, 1, 1, 0, 0, 0, 0};
    const int64_t right_weights[8] = {0, 0, 0, 0, 1, 1, 1, 1};
    const int64_t left[8] = {1, 2, 3, 4, 0, 0, 0, 0}, right[8] = {0, 0, 0, 0, 5, 6, 7, 8};
    struct hearth_change change;

    assert_true(judge(&(struct example){.kind = HEARTH_NOISE_RATES,
                                        .n_parts = 8,
                                        .n_items = 1,
                                        .weights = {left_weights, right_weights},
                                        .values = {left, right}},
                      &change));

    /* The variance of each mean is 5/3/4: Welch's t is 4/sqrt(5/6) with 6 degrees of freedom. */
    assert_near(change.change, 4, 1e-12);
    assert_near(change.p, hearth_student_p(4 / sqrt(5. / 6), 6), 1e-12);
    assert_near(change.high - change.change, 2.446912 * sqrt(5. / 6), 1e-5);
    assert_near(change.q, change.p, 1e-15);
}

static void parts_of_both_sides_are_compared_with_themselves(void **state)
{
    (void)state;

    /* The load differs much from part to part, but in each part both sides have the same load. */
    const int64_t weights[4] = {1, 1, 1, 1}, left[4] = {10, 200, 50, 900},
                  right[4] = {12, 203, 52, 901};
    struct hearth_change change;

    assert_true(judge(&(struct example){.kind = HEARTH_NOISE_RATES,
                                        .n_parts = 4,
                                        .n_items = 1,
                                        .weights = {weights, weights},
                                        .values = {left, right}},
                      &change));

    /* The differences are 2 3 2 1: their mean is 2, the error of the mean sqrt(2/3/4). */
    assert_near(change.p, hearth_student_p(2 / sqrt(1. / 6), 3), 1e-12);
}

static void weights_of_nearly_64_bits_are_those_of_small_ones(void **state)
{
    (void)state;

    const int64_t scale = INT64_C(1000000000000000000);
    const int64_t weights[4] = {6, 1, 1, 1}, left[4] = {10, 4, 2, 1}, right[4] = {12, 1, 5, 2};
    int64_t large[4];
    struct hearth_change changes[2];
    for (size_t i = 0; i < 4; i++) {
        large[i] = weights[i] * scale;
    }

    const int64_t *const of[2] = {weights, large};
    for (size_t i = 0; i < 2; i++) {
        assert_true(judge(&(struct example){.kind = HEARTH_NOISE_RATES,
                                            .n_parts = 4,
                                            .n_items = 1,
                                            .weights = {of[i], of[i]},
                                            .values = {left, right}},
                          &changes[i]));
    }
    assert_near(changes[1].p, changes[0].p, 1e-9);
    assert_near(changes[1].high * (double)scale, changes[0].high, 1e-9);
}

static void few_parts_are_no_evidence(void **state)
{
    (void)state;

    const int64_t left_weights[7] = {1, 1, 1, 1, 0, 0, 0}, right_weights[7] = {0, 0, 0, 0, 1, 1, 1};
    const int64_t left[7] = {1, 1, 1, 2, 0, 0, 0}, right[7] = {0, 0, 0, 0, 100, 100, 101};
    struct hearth_change change;

    assert_false(judge(&(struct example){.kind = HEARTH_NOISE_RATES,
                                         .n_parts = 7,
                                         .n_items = 1,
                                         .weights = {left_weights, right_weights},
                                         .values = {left, right}},
                       &change));
    assert_near(change.q, 1, 0);
}

static void parts_that_agree_by_chance_are_no_evidence(void **state)
{
    (void)state;

    /*
     * 100 samples in each part. Most items vary by the square root of their value. The last item
     * has one sample in each part of the left and none in the right: no variation, but no evidence.
     */
    const int64_t weights[4] = {100, 100, 100, 100};
    const int64_t left[4 * 4] = {25, 49, 25, 1, 30, 45, 24, 1, 21, 53, 25, 1, 24, 55, 20, 1};
    const int64_t right[4 * 4] = {29, 46, 25, 0, 24, 55, 21, 0, 27, 44, 29, 0, 20, 51, 29, 0};
    struct hearth_change changes[4];

    assert_true(judge(&(struct example){.kind = HEARTH_NOISE_SHARES,
                                        .n_parts = 4,
                                        .n_items = 4,
                                        .weights = {weights, weights},
                                        .values = {left, right}},
                      changes));
    assert_near(changes[3].change, -0.01, 1e-12);
    assert_true(changes[3].p > 0.001);
    assert_true(changes[3].q > HEARTH_NOISE_Q);
}

static void the_weaker_of_two_divisions_counts(void **state)
{
    (void)state;

    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_noise noise;
    struct hearth_change change;
    const int64_t left = 400, right = 480, *const values[2] = {&left, &right};
    const int64_t weights[2] = {1000, 1000}, parts[4] = {250, 250, 250, 250};
    const int64_t calm[2][4] = {{99, 101, 100, 100}, {119, 121, 120, 120}};
    const int64_t wild[2][4] = {{20, 180, 10, 190}, {220, 20, 200, 40}};
    bool used;

    hearth_arena_init(&arena, 0);
    for (int order = 0; order < 2; order++) {
        assert_int_equal(
            hearth_noise_init(&noise, HEARTH_NOISE_SHARES, 1, values, weights, &arena, &err),
            HEARTH_OK);
        for (int i = 0; i < 2; i++) {
            const int64_t(*of)[4] = i == order ? calm : wild;
            const struct hearth_noise_side sides[2] = {{parts, of[0]}, {parts, of[1]}};
            assert_int_equal(hearth_noise_divide(&noise, 4, sides, &used, &err), HEARTH_OK);
        }
        assert_int_equal(hearth_noise_finish(&noise, &change, &err), HEARTH_OK);
        assert_true(change.p > 0.3);
        assert_true(change.low < -0.2 && change.high > 0.2);
    }
    hearth_arena_release(&arena);
}

static void q_values_are_those_of_benjamini_and_hochberg(void **state)
{
    (void)state;

    /* Six items with p 0.01, 0.02, 0.03, 0.04, 0.05 and 1: times 6, over the rank. */
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    const double p[6] = {0.05, 0.01, 1, 0.03, 0.02, 0.04};
    const int64_t zeros[6] = {0}, *const values[2] = {zeros, zeros}, weights[2] = {1, 1};
    struct hearth_noise noise;
    struct hearth_change changes[6];

    hearth_arena_init(&arena, 0);
    assert_int_equal(
        hearth_noise_init(&noise, HEARTH_NOISE_RATES, 6, values, weights, &arena, &err), HEARTH_OK);
    memcpy(noise.p, p, sizeof p);
    noise.n_divisions = 1;
    assert_int_equal(hearth_noise_finish(&noise, changes, &err), HEARTH_OK);
    assert_near(changes[2].q, 1, 1e-12);
    for (size_t i = 0; i < 6; i++) {
        if (i != 2) {
            assert_near(changes[i].q, 0.06, 1e-12);
        }
    }
    hearth_arena_release(&arena);
}

static void samples_alone_are_judged_as_poisson(void **state)
{
    (void)state;

    /* 500 of 1,000 samples of 10 ms against 600 of 1,000. */
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_noise noise;
    struct hearth_change change;
    const int64_t left = 500 * 10, right = 600 * 10, *const values[2] = {&left, &right};
    const int64_t weights[2] = {10000, 10000};

    hearth_arena_init(&arena, 0);
    assert_int_equal(
        hearth_noise_init(&noise, HEARTH_NOISE_SHARES, 1, values, weights, &arena, &err),
        HEARTH_OK);
    hearth_noise_assume(&noise, 10);
    assert_int_equal(hearth_noise_finish(&noise, &change, &err), HEARTH_OK);
    double deviation = sqrt(0.55 * 0.45 * 2 / 1000);
    assert_near(change.high, 0.1 + 1.959964 * deviation, 1e-9);
    assert_near(change.p, erfc(0.1 / deviation / sqrt(2)), 1e-12);
    hearth_arena_release(&arena);
}

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* Samples of items that are the more frequent the smaller their number, in parts of both sides. */
static void fill_random(uint64_t *seed, uint64_t n_more, int64_t weights[2][N_RANDOM_PARTS],
                        int64_t values[2][N_RANDOM_PARTS * N_RANDOM_ITEMS])
{
    memset(weights, 0, 2 * sizeof weights[0]);
    memset(values, 0, 2 * sizeof values[0]);
    for (size_t k = 0; k < 20000; k++) {
        uint64_t side = draw(seed) % 2, part = draw(seed) % N_RANDOM_PARTS;
        uint64_t item =
            draw(seed) % N_RANDOM_ITEMS * (draw(seed) % N_RANDOM_ITEMS) / N_RANDOM_ITEMS;
        int64_t value = item == 0 && side == 1 && draw(seed) % 100 < n_more ? 2 : 1;
        weights[side][part] += value;
        values[side][part * N_RANDOM_ITEMS + item] += value;
    }
}

/* The number of 100 random divisions in which an item, or item 0, is beyond noise. */
static unsigned count_alarms(uint64_t n_more, bool first_item)
{
    static int64_t weights[2][N_RANDOM_PARTS], values[2][N_RANDOM_PARTS * N_RANDOM_ITEMS];
    struct hearth_change changes[N_RANDOM_ITEMS];
    uint64_t seed = 7;
    unsigned n_alarms = 0;

    for (size_t run = 0; run < 100; run++) {
        fill_random(&seed, n_more, weights, values);
        assert_true(judge(&(struct example){.kind = HEARTH_NOISE_SHARES,
                                            .n_parts = N_RANDOM_PARTS,
                                            .n_items = N_RANDOM_ITEMS,
                                            .weights = {weights[0], weights[1]},
                                            .values = {values[0], values[1]}},
                          changes));
        bool alarm = false;
        for (size_t i = 0; i < (first_item ? 1 : N_RANDOM_ITEMS); i++) {
            alarm = alarm || changes[i].q <= HEARTH_NOISE_Q;
        }
        n_alarms += alarm;
    }

    return n_alarms;
}

static void equal_sides_rarely_alarm(void **state)
{
    (void)state;
    assert_in_range(count_alarms(0, false), 0, 5);
}

static void a_planted_change_is_found(void **state)
{
    (void)state;
    assert_in_range(count_alarms(100, true), 95, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tails_of_student_are_those_of_the_tables),
        cmocka_unit_test(the_error_of_a_rate_is_that_of_its_parts),
        cmocka_unit_test(parts_of_both_sides_are_compared_with_themselves),
        cmocka_unit_test(weights_of_nearly_64_bits_are_those_of_small_ones),
        cmocka_unit_test(few_parts_are_no_evidence),
        cmocka_unit_test(parts_that_agree_by_chance_are_no_evidence),
        cmocka_unit_test(the_weaker_of_two_divisions_counts),
        cmocka_unit_test(q_values_are_those_of_benjamini_and_hochberg),
        cmocka_unit_test(samples_alone_are_judged_as_poisson),
        cmocka_unit_test(equal_sides_rarely_alarm),
        cmocka_unit_test(a_planted_change_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
