/*
 * test_associations.c -- associations are restored from few bytes each; damaged bytes are refused.
 */
#include "hearth/base/clock.h"
#include "hearth/model/span_index.h"

#include "arena_fixture.h"
#include "synth_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define DAY      20000
#define DAY_NS   (DAY * HEARTH_NS_PER_DAY)
#define CUT(key) ((key) >> 20 << 20)

static struct hearth_err g_err;

/* n associations of a day: 100 services with 50 series each; each profile has many spans. */
static struct hearth_association *draw(uint64_t *rng, size_t n)
{
    struct hearth_association *all = synth_array(&g_arena, n, sizeof *all);
    for (size_t i = 0; i < n; i++) {
        all[i] = (struct hearth_association){
            .key = hearth_span_key(synth_next(rng)),
            .of = (uint8_t)(1 + synth_below(rng, 15)),
            .service_id = (int32_t)(1 + synth_below(rng, 100)),
            .series_id = (int32_t)synth_below(rng, 50),
            .ts_ns = DAY_NS + (int64_t)(synth_next(rng) % (uint64_t)HEARTH_NS_PER_DAY),
        };
    }
    return all;
}

static size_t sort(struct hearth_association *all, size_t n)
{
    return hearth_associations_sort(all, synth_array(&g_arena, n, sizeof *all), n);
}

static void assert_same(const struct hearth_association *got, const struct hearth_association *want,
                        size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(got[i].key, want[i].key);
        assert_int_equal(got[i].of, want[i].of);
        assert_int_equal(got[i].service_id, want[i].service_id);
        assert_int_equal(got[i].series_id, want[i].series_id);
        assert_int_equal(got[i].ts_ns, want[i].ts_ns);
    }
}

static void keys_are_spread_evenly_for_any_ids(void **state)
{
    (void)state;
    size_t count[16] = {0};
    for (uint64_t id = 1; id <= 16000; id++) {
        count[hearth_span_bucket(hearth_span_key(id), 4)]++;
    }
    for (size_t i = 0; i < 16; i++) {
        assert_in_range(count[i], 850, 1150);
    }
    assert_int_equal(hearth_span_bucket(UINT64_MAX, 0), 0);
    assert_int_equal(hearth_span_bucket(UINT64_MAX, 24), 0xFFFFFF);
    struct hearth_trace_id trace = {7, 9};
    assert_int_equal(hearth_trace_id_key(trace), hearth_span_key(9));
    assert_int_equal(hearth_span_key(1), 0xB456BCFC34C2CB2C); /* stored, so it must never change */
}

static void fresh_associations_are_restored_completely(void **state)
{
    (void)state;
    uint64_t rng = 1;
    struct hearth_association *all = draw(&rng, 300), *got;
    struct hearth_buf out;
    size_t n;
    hearth_buf_init(&out, 0);
    hearth_associations_put_fresh(all, 0, 1, 1, &out);
    assert_int_equal(out.n, 0);
    for (size_t i = 0; i < 300; i++) { /* runs of 100; times before 1970, too */
        all[i].service_id = 5;
        all[i].series_id = i < 100 ? 0 : INT32_MAX;
        all[i].ts_ns = i < 200 ? INT64_MIN : 123;
    }
    hearth_associations_put_fresh(all, 100, 0, INT64_MIN, &out);
    hearth_associations_put_fresh(all + 100, 100, INT32_MAX, INT64_MIN, &out);
    hearth_associations_put_fresh(all + 200, 100, INT32_MAX, 123, &out);
    assert_in_range(out.n, 2700, 2760);
    assert_int_equal(
        hearth_associations_read_fresh(hearth_buf_view(&out), 5, &g_arena, &got, &n, &g_err),
        HEARTH_OK);
    assert_int_equal(n, 300);
    assert_same(got, all, n);
    hearth_buf_release(&out);
}

static void assert_packed_comes_back(size_t n, unsigned bits, size_t most_bytes)
{
    uint64_t rng = n;
    struct hearth_association *all = draw(&rng, n), *got;
    struct hearth_buf out;
    size_t n_bytes = 0, n_got = 0;
    unsigned key_bits = 0;
    hearth_buf_init(&out, 0);
    n = sort(all, n);
    for (size_t from = 0, to; from < n; from = to) {
        uint32_t bucket = hearth_span_bucket(all[from].key, bits);
        for (to = from + 1; to < n && hearth_span_bucket(all[to].key, bits) == bucket; to++) {
        }
        hearth_buf_reset(&out);
        hearth_associations_pack(all + from, to - from, DAY, bits, &out);
        n_bytes += out.n;
        assert_int_equal(
            hearth_associations_unpack(
                &(struct hearth_association_row){hearth_buf_view(&out), DAY, bits, bucket},
                &g_arena, &got, &n_got, &key_bits, &g_err),
            HEARTH_OK);
        assert_int_equal(n_got, to - from);
        assert_int_equal(key_bits, 44);
        for (size_t i = from; i < to; i++) {
            all[i].key = CUT(all[i].key);
        }
        assert_same(got, all + from, n_got);
    }
    assert_in_range(n_bytes, n, n * most_bytes);
    hearth_buf_release(&out);
}

static void packed_associations_are_restored_with_the_known_bits_of_their_keys(void **state)
{
    (void)state;
    assert_packed_comes_back(1, 0, 32);
    assert_packed_comes_back(200, 0, 18);
    assert_packed_comes_back(5000, 6, 17);
    assert_packed_comes_back(1000, 24, 24);
    assert_packed_comes_back(100000, 10, 16);
}

/*
 * Also before the epoch, where the end of a day is nearer to it; keys with all bits and with none.
 */
static void both_ends_of_a_day_are_restored(void **state)
{
    (void)state;
    const int32_t days[] = {-106750, -1, 0, DAY, 106750};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(days); i++) {
        int64_t day_ns = days[i] * HEARTH_NS_PER_DAY;
        struct hearth_association ends[] = {
            {.key = 0, .of = HEARTH_OF_SPAN, .service_id = 1, .ts_ns = day_ns},
            {.key = UINT64_MAX,
             .of = HEARTH_OF_SPAN,
             .service_id = INT32_MAX,
             .series_id = INT32_MAX,
             .ts_ns = day_ns + HEARTH_NS_PER_DAY - 1}};
        for (unsigned bits = 0; bits <= HEARTH_SPAN_BUCKET_BITS; bits += HEARTH_SPAN_BUCKET_BITS) {
            for (size_t k = 0; k < 2; k++) {
                struct hearth_association *got;
                struct hearth_buf out;
                size_t n = 0;
                unsigned key_bits;
                hearth_buf_init(&out, 0);
                hearth_associations_pack(&ends[k], 1, days[i], bits, &out);
                assert_int_equal(
                    hearth_associations_unpack(
                        &(struct hearth_association_row){hearth_buf_view(&out), days[i], bits,
                                                         hearth_span_bucket(ends[k].key, bits)},
                        &g_arena, &got, &n, &key_bits, &g_err),
                    HEARTH_OK);
                struct hearth_association known = ends[k];
                known.key = CUT(known.key);
                assert_int_equal(n, 1);
                assert_same(got, &known, 1);
                hearth_buf_release(&out);
            }
        }
    }
}

static void round_times_take_fewer_bytes(void **state)
{
    (void)state;
    uint64_t rng = 3;
    struct hearth_association *all = draw(&rng, 200);
    struct hearth_buf exact, round;
    hearth_buf_init(&exact, 0);
    hearth_buf_init(&round, 0);
    size_t n = sort(all, 200);
    hearth_associations_pack(all, n, DAY, 0, &exact);
    for (size_t i = 0; i < n; i++) {
        all[i].ts_ns -= all[i].ts_ns % HEARTH_NS_PER_SEC;
    }
    hearth_associations_pack(all, n, DAY, 0, &round);
    assert_true(round.n + 3 * n < exact.n);
    hearth_buf_release(&exact);
    hearth_buf_release(&round);
}

static void duplicates_are_merged_with_the_kinds_of_both(void **state)
{
    (void)state;
    uint64_t rng = 9;
    for (size_t n = 2; n <= 40000; n *= 20) {
        struct hearth_association *all = draw(&rng, 2 * n);
        for (size_t i = 0; i < n;
             i++) { /* few keys, so that many differ only by the other members */
            all[i].key = hearth_span_key(synth_below(&rng, 50));
            all[i].of = HEARTH_OF_SPAN;
            all[n + i] = all[i];
            all[n + i].of = HEARTH_OF_TRACE;
        }
        size_t n_left = sort(all, 2 * n);
        assert_in_range(n_left, 1, n);
        for (size_t i = 0; i < n_left; i++) {
            assert_int_equal(all[i].of, HEARTH_OF_SPAN | HEARTH_OF_TRACE);
            if (i > 0) {
                bool in_order = all[i - 1].key != all[i].key ? all[i - 1].key < all[i].key
                                : all[i - 1].service_id != all[i].service_id
                                    ? all[i - 1].service_id < all[i].service_id
                                : all[i - 1].series_id != all[i].series_id
                                    ? all[i - 1].series_id < all[i].series_id
                                    : all[i - 1].ts_ns < all[i].ts_ns;
                assert_true(in_order);
            }
        }
    }
}

static void ids_of_samples_are_collected_once(void **state)
{
    (void)state;
    struct hearth_attr_sample samples[] = {
        {.attrs = {.span_id = 1, .local_root_span_id = 1, .trace_id_hi = 5, .trace_id_lo = 7}},
        {.attrs = {.span_id = 2, .local_root_span_id = 1, .trace_id_lo = 7}},
        {.attrs = {.span_id = 1}},
        {.attrs = {.thread_id = 9}},
        {.attrs = {.trace_id_hi = 3}}, /* its key */
    };
    struct hearth_association *got;
    size_t n;
    assert_int_equal(
        hearth_associations_of_samples(samples, 5, &g_arena, &g_arena, &got, &n, &g_err),
        HEARTH_OK);
    assert_int_equal(n, 4);
    n = sort(got, n);
    for (size_t i = 0; i < n; i++) {
        int of = got[i].key == hearth_span_key(1)   ? HEARTH_OF_SPAN | HEARTH_OF_LOCAL_ROOT
                 : got[i].key == hearth_span_key(2) ? HEARTH_OF_SPAN
                                                    : HEARTH_OF_TRACE;
        assert_int_equal(got[i].of, of);
    }
    assert_int_equal(
        hearth_associations_of_samples(samples + 3, 1, &g_arena, &g_arena, &got, &n, &g_err),
        HEARTH_OK);
    assert_int_equal(n, 0);
    assert_int_equal(
        hearth_associations_of_samples(samples + 4, 1, &g_arena, &g_arena, &got, &n, &g_err),
        HEARTH_OK);
    assert_int_equal(n, 1);
    assert_int_equal(got[0].key, hearth_span_key(3));
    struct hearth_arena none;
    hearth_arena_init(&none, 4);
    assert_int_equal(hearth_associations_of_samples(samples, 5, &none, &g_arena, &got, &n, &g_err),
                     HEARTH_NO_MEMORY);
    assert_int_equal(hearth_associations_of_samples(samples, 5, &g_arena, &none, &got, &n, &g_err),
                     HEARTH_NO_MEMORY);
    hearth_arena_release(&none);
}

static void truncated_bytes_are_corrupt(void **state)
{
    (void)state;
    uint64_t rng = 11;
    struct hearth_association *all = draw(&rng, 3), *got;
    struct hearth_buf fresh, packed;
    size_t n;
    unsigned key_bits;
    hearth_buf_init(&fresh, 0);
    hearth_buf_init(&packed, 0);
    n = sort(all, 3);
    hearth_associations_put_fresh(all, n, 1, DAY_NS, &fresh);
    hearth_associations_pack(all, n, DAY, 0, &packed);
    for (size_t i = 1; i < fresh.n; i++) {
        assert_int_equal(
            hearth_associations_read_fresh(hearth_str_n(fresh.p, i), 1, &g_arena, &got, &n, &g_err),
            HEARTH_CORRUPT);
    }
    for (size_t i = 0; i < packed.n; i++) {
        assert_int_equal(hearth_associations_unpack(
                             &(struct hearth_association_row){hearth_str_n(packed.p, i), DAY, 0, 0},
                             &g_arena, &got, &n, &key_bits, &g_err),
                         HEARTH_CORRUPT);
    }
    assert_int_equal(hearth_associations_unpack(
                         &(struct hearth_association_row){hearth_buf_view(&packed), DAY, 2, 4},
                         &g_arena, &got, &n, &key_bits, &g_err),
                     HEARTH_CORRUPT); /* no such bucket */
    hearth_buf_byte(&packed, 0);
    assert_int_equal(hearth_associations_unpack(
                         &(struct hearth_association_row){hearth_buf_view(&packed), DAY, 0, 0},
                         &g_arena, &got, &n, &key_bits, &g_err),
                     HEARTH_CORRUPT);
    hearth_buf_release(&fresh);
    hearth_buf_release(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_spread_evenly_for_any_ids),
        cmocka_unit_test(fresh_associations_are_restored_completely),
        cmocka_unit_test(packed_associations_are_restored_with_the_known_bits_of_their_keys),
        cmocka_unit_test(both_ends_of_a_day_are_restored),
        cmocka_unit_test(round_times_take_fewer_bytes),
        cmocka_unit_test(duplicates_are_merged_with_the_kinds_of_both),
        cmocka_unit_test(ids_of_samples_are_collected_once),
        cmocka_unit_test(truncated_bytes_are_corrupt),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
