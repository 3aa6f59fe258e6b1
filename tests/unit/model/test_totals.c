/* test_totals.c -- packed totals and sets of series are restored; damage is refused. */
#include "hearth/model/block.h"

#include "synth_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum {
    MOST = 400,
    MOST_TYPES = 3
};

static struct hearth_err g_err;

struct points {
    int64_t ts[MOST], values[MOST];
    size_t n;
};

static enum hearth_status collect(void *context, const int64_t *ts_ns, const int64_t *values,
                                  size_t n, struct hearth_err *err)
{
    (void)err;
    struct points *points = context;
    assert_true(n > 0 && n <= HEARTH_TOTALS_CHUNK);
    if (points->n + n > MOST) {
        return HEARTH_CANCELLED;
    }
    memcpy(points->ts + points->n, ts_ns, n * sizeof ts_ns[0]);
    memcpy(points->values + points->n, values, n * sizeof values[0]);
    points->n += n;
    return HEARTH_OK;
}

static void assert_round_trip(const int64_t *ts, const int64_t *values, size_t n, uint32_t n_types,
                              int64_t t0)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_totals packed;
    assert_int_equal(hearth_totals_encode(ts, values, n, n_types, t0, &arena, &packed, &g_err),
                     HEARTH_OK);
    for (uint32_t k = 0; k < n_types; k++) {
        struct points points = {.n = 0};
        assert_int_equal(
            hearth_totals_read(packed.ts, packed.vals[k], t0, collect, &points, &g_err), HEARTH_OK);
        assert_int_equal(points.n, n);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(points.ts[i], ts[i]);
            assert_int_equal(points.values[i], values[i * n_types + k]);
        }
    }
    hearth_arena_release(&arena);
}

static void random_times_and_values_are_restored(void **state)
{
    (void)state;
    uint64_t rng = 3;
    static int64_t ts[MOST], values[MOST * MOST_TYPES];
    for (int round = 0; round < 2000; round++) {
        size_t n = synth_below(&rng, round < 100 ? 3 : MOST);
        uint32_t n_types = 1 + synth_below(&rng, MOST_TYPES);
        int64_t t0 = (int64_t)(synth_next(&rng) >> 2) - (INT64_C(1) << 60);
        int64_t unit = synth_below(&rng, 2) == 0 ? 1 : 1000000, at = t0;
        uint32_t spread = 1u << synth_below(&rng, 31);
        for (size_t i = 0; i < n; i++) {
            at += unit * synth_below(&rng, spread);
            ts[i] = at;
            for (uint32_t k = 0; k < n_types; k++) {
                int64_t value = (int64_t)(synth_next(&rng) >> (30 + synth_below(&rng, 34)));
                values[i * n_types + k] = k == 2 ? 0 : value * (k == 1 ? 10000000 : 1);
            }
        }
        assert_round_trip(ts, values, n, n_types, t0);
    }
}

static void times_that_are_steady_for_a_while_are_restored(void **state)
{
    (void)state;
    uint64_t rng = 5;
    static int64_t ts[MOST], values[MOST];
    for (int round = 0; round < 2000; round++) {
        size_t n = 1 + synth_below(&rng, MOST);
        int64_t t0 = synth_below(&rng, 2) == 0 ? 0 : (int64_t)(synth_next(&rng) >> 2) * -1;
        int64_t at = t0 + synth_below(&rng, 1000), step = synth_below(&rng, 2000000);
        uint32_t steady = 1u << synth_below(&rng, 10); /* mean length of a steady stretch */
        for (size_t i = 0; i < n; i++) {
            ts[i] = at;
            values[i] = synth_below(&rng, 1000);
            step += synth_below(&rng, steady) == 0 ? synth_below(&rng, 2000) : 0;
            at += step;
        }
        assert_round_trip(ts, values, n, 1, t0);
    }
}

static void the_smallest_and_largest_numbers_are_restored(void **state)
{
    (void)state;
    const int64_t ts[] = {INT64_MIN, INT64_MIN, -1, -1}, values[] = {INT64_MAX, 0, INT64_MAX, 1};
    assert_round_trip(ts, values, 4, 1, 0 - (INT64_C(1) << 62));
    const int64_t late[] = {INT64_MAX}, most[] = {INT64_MAX};
    assert_round_trip(late, most, 1, 1, 0);
    assert_round_trip(late, most, 0, 1, 0);
}

static void times_and_values_without_a_packed_form_are_refused(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_totals packed;
    const int64_t back[] = {10, 9}, wide[] = {INT64_MIN + 2, INT64_MAX}, lowest[] = {INT64_MIN};
    const int64_t values[] = {1, 1}, negative[] = {1, -1}, up[] = {1, 2};
    assert_int_equal(hearth_totals_encode(back, values, 2, 1, 0, &arena, &packed, &g_err),
                     HEARTH_OUT_OF_RANGE);
    assert_int_equal(hearth_totals_encode(wide, values, 2, 1, 0, &arena, &packed, &g_err),
                     HEARTH_OUT_OF_RANGE);
    assert_int_equal(hearth_totals_encode(lowest, values, 1, 1, 0, &arena, &packed, &g_err),
                     HEARTH_OUT_OF_RANGE);
    assert_int_equal(hearth_totals_encode(lowest, values, 1, 1, 1, &arena, &packed, &g_err),
                     HEARTH_OUT_OF_RANGE);
    assert_int_equal(hearth_totals_encode(up, negative, 2, 1, 0, &arena, &packed, &g_err),
                     HEARTH_OUT_OF_RANGE);
    hearth_arena_release(&arena);
}

static void has_the_documented_layout_and_is_small_at_a_steady_pace(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    const int64_t ts[] = {1000, 1030, 1060, 1100}, values[] = {20, 0, 60, 0, 40, 0, 20, 0};
    struct hearth_totals packed;
    assert_int_equal(hearth_totals_encode(ts, values, 4, 2, 990, &arena, &packed, &g_err),
                     HEARTH_OK);
    /* n 4, scale 10; 1, +3, +0, +1 as zigzag. */
    assert_int_equal(packed.ts.n, 6);
    assert_memory_equal(packed.ts.p, "\x04\x0a\x02\x06\x00\x02", 6);
    assert_int_equal(packed.vals[0].n, 5);
    assert_memory_equal(packed.vals[0].p, "\x14\x01\x03\x02\x01", 5);
    assert_int_equal(packed.vals[1].n, 1);
    assert_memory_equal(packed.vals[1].p, "\x00", 1);
    static int64_t steady[240], ones[240];
    for (int i = 0; i < 240; i++) {
        steady[i] = INT64_C(1700000000000000000) + i * INT64_C(15000000000);
        ones[i] = 660 + i % 7;
    }
    assert_int_equal(hearth_totals_encode(steady, ones, 240, 1, steady[0], &arena, &packed, &g_err),
                     HEARTH_OK);
    /* n 240, in runs, scale 15 s; 0; a change of 1, then 238 of 0. */
    assert_int_equal(packed.ts.n, 14);
    assert_memory_equal(packed.ts.p, "\xf0\x01\x00\x80\xac\xc7\xf0\x37\x00\x01\x02\xee\x01\x00",
                        14);
    assert_true(packed.vals[0].n < 490);
    hearth_arena_release(&arena);
}

static void damaged_totals_are_refused(void **state)
{
    (void)state;
    static const struct {
        struct hearth_str ts, val;
    } bad[] = {
        {{"", 0}, {"\x01", 1}},
        {{"\x00", 1}, {"\x01", 1}},
        {{"\x01\x00\x02", 3}, {"\x01\x05", 2}},         /* scale of times 0 */
        {{"\x02\x01\x02", 3}, {"\x01\x05\x05", 3}},     /* fewer times than declared */
        {{"\x01\x01\x02", 3}, {"\x01", 1}},             /* fewer values */
        {{"\x01\x01\x02\x00", 4}, {"\x01\x05", 2}},     /* more times */
        {{"\x01\x01\x02", 3}, {"\x01\x05\x05", 3}},     /* more values */
        {{"\x01\x01\x02", 3}, {"\x00\x05", 2}},         /* more values than none */
        {{"\x02\x01\x02\x01", 4}, {"\x01\x05\x05", 3}}, /* descending times */
        {{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01", 11}, {"\x00", 1}}, /* 2^64 - 1 of them */
        /* A time, and a value, beyond 64 bits. */
        {{"\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x04", 11}, {"\x01\x05", 2}},
        {{"\x01\x01\x02", 3}, {"\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x02", 10}},
        /* A third time beyond 64 bits, at a steady distance of 2^62. */
        {{"\x03\x01\x00\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x00", 14}, {"\x00", 1}},
        {{"\x04\x01\x00\x02\x00", 5}, {"\x00", 1}}, /* steady, but one time too few */
        /* In runs: none; of length 0; longer than the times; beyond 64 bits; too many times. */
        {{"\x02\x00\x01\x02", 4}, {"\x00", 1}},
        {{"\x02\x00\x01\x02\x00\x02", 6}, {"\x00", 1}},
        {{"\x02\x00\x01\x02\x02\x02", 6}, {"\x00", 1}},
        {{"\x05\x00\x01\x00\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x03\x00", 17}, {"\x00", 1}},
        {{"\x81\x80\x40\x00\x01\x00\x80\x80\x40\x00", 10}, {"\x00", 1}},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        struct points points = {.n = 0};
        assert_int_equal(hearth_totals_read(bad[i].ts, bad[i].val, 0, collect, &points, &g_err),
                         HEARTH_CORRUPT);
    }
}

static enum hearth_status refuse(void *context, const int64_t *ts_ns, const int64_t *values,
                                 size_t n, struct hearth_err *err)
{
    (void)ts_ns, (void)values, (void)n;
    ++*(int *)context;
    return HEARTH_FAIL(err, HEARTH_CANCELLED, "enough");
}

static void the_visitor_can_end_the_reading(void **state)
{
    static int64_t ts[2 * HEARTH_TOTALS_CHUNK], values[2 * HEARTH_TOTALS_CHUNK];
    struct hearth_arena arena;
    struct hearth_totals packed;
    int n = 0;
    (void)state;
    hearth_arena_init(&arena, 0);
    assert_int_equal(
        hearth_totals_encode(ts, values, HEARTH_ARRAY_LEN(ts), 1, 0, &arena, &packed, &g_err),
        HEARTH_OK);
    assert_int_equal(hearth_totals_read(packed.ts, packed.vals[0], 0, refuse, &n, &g_err),
                     HEARTH_CANCELLED);
    assert_int_equal(n, 1);
    hearth_arena_release(&arena);
}

/* ---- packed totals of several series ---- */

static void totals_of_several_series_are_restored(void **state)
{
    (void)state;
    static const int32_t ids[] = {3, 4, 1000, INT32_MAX};
    const int64_t ts[] = {7, 9, 12, 900}, values[] = {1, 0, 50, 3, 7, 7, INT64_MAX, 2};
    struct hearth_arena arena;
    struct hearth_buf ts_bytes, vals[2];
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&ts_bytes, 0);
    hearth_buf_init(&vals[0], 0);
    hearth_buf_init(&vals[1], 0);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(ids); i++) { /* i + 1 profiles each */
        struct hearth_totals packed;
        assert_int_equal(hearth_totals_encode(ts, values, i + 1, 2, 5, &arena, &packed, &g_err),
                         HEARTH_OK);
        hearth_totals_group_add(i == 0 ? 0 : ids[i - 1], ids[i], &packed, 2, &ts_bytes, vals);
    }
    for (size_t k = 0; k < 2; k++) {
        struct hearth_totals_group group = {.ts = hearth_buf_view(&ts_bytes),
                                            .val = hearth_buf_view(&vals[k])};
        bool has;
        size_t n = 0;
        while (hearth_totals_group_next(&group, &has, &g_err) == HEARTH_OK && has) {
            struct points points = {.n = 0};
            assert_int_equal(group.series_id, ids[n++]);
            assert_int_equal(
                hearth_totals_read(group.series_ts, group.series_val, 5, collect, &points, &g_err),
                HEARTH_OK);
            assert_int_equal(points.n, n);
            assert_memory_equal(points.ts, ts, n * sizeof ts[0]);
            assert_int_equal(points.values[n - 1], values[2 * (n - 1) + k]);
        }
        assert_int_equal(n, HEARTH_ARRAY_LEN(ids));
    }
    hearth_buf_release(&ts_bytes);
    hearth_buf_release(&vals[0]);
    hearth_buf_release(&vals[1]);
    hearth_arena_release(&arena);
}

static void the_value_of_one_profile_is_packed_like_many(void **state)
{
    (void)state;
    static const int64_t values[] = {0, 1, 660, INT64_C(6600000000), INT64_MAX};
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(values); i++) {
        struct hearth_totals packed;
        const int64_t ts = 900;
        char one[HEARTH_TOTALS_ONE_BYTES];
        assert_int_equal(hearth_totals_encode(&ts, &values[i], 1, 1, 5, &arena, &packed, &g_err),
                         HEARTH_OK);
        size_t n = hearth_totals_pack_one(values[i], one);
        assert_int_equal(n, packed.vals[0].n);
        assert_memory_equal(one, packed.vals[0].p, n);
    }
    hearth_arena_release(&arena);
}

static void damaged_totals_of_several_series_are_refused(void **state)
{
    (void)state;
    static const struct {
        struct hearth_str ts, val;
    } bad[] = {
        {{"\x01\x01\x05", 3}, {"", 0}},                         /* no values */
        {{"", 0}, {"\x01\x05", 2}},                             /* no series */
        {{"\x00\x01\x05", 3}, {"\x01\x05", 2}},                 /* the id before */
        {{"\x01\x02\x05", 3}, {"\x01\x05", 2}},                 /* too few times */
        {{"\x01\x01\x05", 3}, {"\x02\x05", 2}},                 /* too few values */
        {{"\x01", 1}, {"\x01\x05", 2}},                         /* no length */
        {{"\x80\x80\x80\x80\x08\x01\x05", 7}, {"\x01\x05", 2}}, /* id 2^31 */
        {{"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x05", 12}, {"\x01\x05", 2}},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        struct hearth_totals_group group = {.ts = bad[i].ts, .val = bad[i].val};
        bool has;
        assert_int_equal(hearth_totals_group_next(&group, &has, &g_err), HEARTH_CORRUPT);
    }
}

/* ---- sets of series ---- */

static void sets_of_series_are_restored_and_compared_with_other_sets(void **state)
{
    (void)state;
    uint64_t rng = 9;
    struct hearth_arena arena;
    struct hearth_buf bytes;
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&bytes, 0);
    for (int round = 0; round < 2000; round++) {
        int32_t all[200], members[200], id = 0;
        size_t n_all = synth_below(&rng, 200), n = 0;
        for (size_t i = 0; i < n_all; i++) {
            id += 1 + (int32_t)synth_below(&rng, 1u << synth_below(&rng, 23));
            all[i] = id;
            if (synth_below(&rng, 3) > 0) {
                members[n++] = id;
            }
        }
        hearth_buf_reset(&bytes);
        hearth_members_encode(members, n, &bytes);
        int32_t *got = NULL;
        size_t n_got = 0;
        assert_int_equal(
            hearth_members_decode(hearth_buf_view(&bytes), &arena, &got, &n_got, &g_err),
            HEARTH_OK);
        assert_int_equal(n_got, n);
        assert_true(n == 0 || memcmp(got, members, n * sizeof *got) == 0);
        assert_true(hearth_members_within(hearth_buf_view(&bytes), all, n_all));
        if (n > 0) { /* one member that is missing there */
            size_t missing = synth_below(&rng, (uint32_t)n);
            int32_t fewer[200];
            size_t n_fewer = 0;
            for (size_t i = 0; i < n_all; i++) {
                if (all[i] != members[missing]) {
                    fewer[n_fewer++] = all[i];
                }
            }
            assert_false(hearth_members_within(hearth_buf_view(&bytes), fewer, n_fewer));
        }
        hearth_arena_reset(&arena);
    }
    hearth_buf_release(&bytes);
    hearth_arena_release(&arena);
}

static void damaged_sets_of_series_are_refused(void **state)
{
    (void)state;
    static const struct hearth_str bad[] = {
        {"\x00", 1},
        {"\x05\x00", 2},
        {"\x80", 1},
        {"\x05\x80", 2},
        {"\xff\xff\xff\xff\x08", 5},     /* 2^31 + .. */
        {"\xff\xff\xff\xff\x07\x01", 6}, /* the highest id, and one more */
        {"\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},
    };
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        int32_t *got = NULL, all[] = {5, INT32_MAX};
        size_t n_got = 0;
        assert_int_equal(hearth_members_decode(bad[i], &arena, &got, &n_got, &g_err),
                         HEARTH_CORRUPT);
        assert_false(hearth_members_within(bad[i], all, 2));
    }
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_times_and_values_are_restored),
        cmocka_unit_test(times_that_are_steady_for_a_while_are_restored),
        cmocka_unit_test(the_smallest_and_largest_numbers_are_restored),
        cmocka_unit_test(times_and_values_without_a_packed_form_are_refused),
        cmocka_unit_test(has_the_documented_layout_and_is_small_at_a_steady_pace),
        cmocka_unit_test(damaged_totals_are_refused),
        cmocka_unit_test(the_visitor_can_end_the_reading),
        cmocka_unit_test(totals_of_several_series_are_restored),
        cmocka_unit_test(the_value_of_one_profile_is_packed_like_many),
        cmocka_unit_test(damaged_totals_of_several_series_are_refused),
        cmocka_unit_test(sets_of_series_are_restored_and_compared_with_other_sets),
        cmocka_unit_test(damaged_sets_of_series_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
