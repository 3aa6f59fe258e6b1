/*
 * test_network_metrics.c -- packed flushes are restored, and summed into metrics by the published
 * rules.
 */
#include "hearth/model/network_metrics.h"

#include "arena_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct hearth_err g_err;

static unsigned meter(const char *name)
{
    unsigned found = hearth_network_meter_find(hearth_str_c(name), false);
    assert_true(found < HEARTH_NETWORK_METERS);
    return found;
}

static void add(struct hearth_network_sums *sums, const char *name, const char *code, double value)
{
    assert_int_equal(hearth_network_add_value(sums, meter(name), hearth_str_c(code), value, &g_err),
                     HEARTH_OK);
}

static void add_bucket(struct hearth_network_sums *sums, const char *name, double lower,
                       int64_t count)
{
    assert_int_equal(hearth_network_add_bucket(
                         sums, meter(name), (struct hearth_network_bucket){lower, count}, &g_err),
                     HEARTH_OK);
}

/* Encode a flush and add it to `to`. */
static void flush(const struct hearth_network_sums *from, struct hearth_network_sums *to)
{
    struct hearth_buf bytes;
    hearth_buf_init(&bytes, 0);
    hearth_network_encode(from, &bytes);
    assert_int_equal(hearth_network_merge(to, hearth_buf_view(&bytes), &g_err), HEARTH_OK);
    hearth_buf_release(&bytes);
}

static const struct hearth_network_cell *cell(const struct hearth_network_sums *sums,
                                              const char *name)
{
    return &sums->cells[meter(name)];
}

static void every_meter_and_metric_has_its_own_name(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HEARTH_NETWORK_METERS; i++) {
        const struct hearth_network_meter *at = &hearth_network_meters[i];
        assert_non_null(at->name);
        assert_non_null(at->unit);
        assert_int_equal(hearth_network_meter_find(hearth_str_c(at->name), false), i);
        assert_int_equal(hearth_network_meter_find(hearth_str_c(at->metric), true), i);
    }
    assert_int_equal(
        hearth_network_meter_find(HEARTH_STR("client_write_rtt_counts_counter"), false),
        HEARTH_NETWORK_METERS);
}

static void counters_add_up_and_means_count_each_flush_once(void **state)
{
    (void)state;
    struct hearth_network_sums one, minute;
    hearth_network_sums_init(&minute, &g_arena);
    const double times[] = {100, 300, 0.5};
    for (int i = 0; i < 3; i++) {
        hearth_network_sums_init(&one, &g_arena);
        add(&one, "client_write_counts_counter", "", 3);
        add(&one, "client_write_counts_counter", "", i);
        if (i < 2) {
            add(&one, "server_close_exe_time_counter", "", times[i]);
        }
        flush(&one, &minute);
    }
    unsigned writes = meter("client_write_counts_counter");
    unsigned closes = meter("server_close_exe_time_counter");
    assert_true(hearth_network_value(writes, &minute.cells[writes]) == 12);
    assert_true(hearth_network_value(closes, &minute.cells[closes]) == 200);
    assert_int_equal(cell(&minute, "http1_request_counter")->n, 0);
}

static void codes_are_summed_one_by_one_and_sorted(void **state)
{
    (void)state;
    struct hearth_network_sums one, minute;
    hearth_network_sums_init(&minute, &g_arena);
    hearth_network_sums_init(&one, &g_arena);
    add(&one, "http1_response_status_counter", "500", 1);
    add(&one, "http1_response_status_counter", "200", 2);
    add(&one, "http1_response_status_counter", "404", 0.25);
    add(&one, "http1_response_status_counter", "200", 5);
    flush(&one, &minute);
    flush(&one, &minute);
    const struct hearth_network_cell *codes = cell(&minute, "http1_response_status_counter");
    assert_int_equal(codes->n_items, 3);
    assert_true(hearth_str_eq_c(codes->codes[0].code, "200") && codes->codes[0].sum == 14);
    assert_true(hearth_str_eq_c(codes->codes[1].code, "404") && codes->codes[1].sum == 0.5);
    assert_true(hearth_str_eq_c(codes->codes[2].code, "500") && codes->codes[2].sum == 2);
}

/*
 * By hand: 4 counts; p50: round(2) = 2, p75: 3, p90: round(3.6) = 4, p95 and p99: round(3.8),
 * round(3.96) = 4.
 */
static void percentiles_are_lower_bounds_by_the_rule(void **state)
{
    (void)state;
    static const char name[] = "client_write_rtt_histogram";
    struct hearth_network_sums one, minute;
    hearth_network_sums_init(&minute, &g_arena);
    hearth_network_sums_init(&one, &g_arena);
    add_bucket(&one, name, 500, 1);
    add_bucket(&one, name, 10, 1);
    add_bucket(&one, name, 0, 0);
    flush(&one, &minute);
    hearth_network_sums_init(&one, &g_arena);
    add_bucket(&one, name, 10, 1);
    add_bucket(&one, name, 50, 1);
    flush(&one, &minute);
    const struct hearth_network_cell *times = cell(&minute, name);
    assert_int_equal(times->n_items, 4);
    assert_true(hearth_network_percentile(times, 50) == 10);
    assert_true(hearth_network_percentile(times, 75) == 50);
    assert_true(hearth_network_percentile(times, 90) == 500);
    assert_true(hearth_network_percentile(times, 99) == 500);
}

static void percentiles_without_counts_or_lower_bound_are_zero(void **state)
{
    (void)state;
    static const char name[] = "http1_server_duration_histogram";
    struct hearth_network_sums one;
    hearth_network_sums_init(&one, &g_arena);
    assert_true(hearth_network_percentile(cell(&one, name), 99) == 0);
    add_bucket(&one, name, 5, 0);
    assert_true(hearth_network_percentile(cell(&one, name), 50) == 0);
    add_bucket(&one, name, -(double)INFINITY, 3);
    add_bucket(&one, name, 7, INT64_MAX);
    assert_true(hearth_network_percentile(cell(&one, name), 0) == 0);
    assert_true(hearth_network_percentile(cell(&one, name), 99) == 7);
    struct hearth_network_sums again;
    hearth_network_sums_init(&again, &g_arena);
    flush(&one, &again);
    assert_true(isinf(cell(&again, name)->buckets[0].lower));
}

static void negative_values_and_those_that_are_no_numbers_are_refused(void **state)
{
    (void)state;
    struct hearth_network_sums sums;
    hearth_network_sums_init(&sums, &g_arena);
    const double bad[] = {-1, (double)NAN, (double)INFINITY};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        assert_int_equal(hearth_network_add_value(&sums, 0, HEARTH_STR(""), bad[i], &g_err),
                         HEARTH_INVALID_ARGUMENT);
    }
    unsigned codes = meter("http1_response_status_counter");
    assert_int_equal(hearth_network_add_value(&sums, codes, HEARTH_STR(""), 1, &g_err),
                     HEARTH_INVALID_ARGUMENT);
    unsigned histogram = meter("client_write_rtt_histogram");
    assert_int_equal(
        hearth_network_add_bucket(&sums, histogram, (struct hearth_network_bucket){0, -1}, &g_err),
        HEARTH_INVALID_ARGUMENT);
    for (int i = 0; i < HEARTH_NETWORK_MAX_BUCKETS; i++) {
        add_bucket(&sums, "client_write_rtt_histogram", i, 1);
    }
    assert_int_equal(hearth_network_add_bucket(&sums, histogram,
                                               (struct hearth_network_bucket){(double)INT32_MAX, 1},
                                               &g_err),
                     HEARTH_OUT_OF_RANGE);
}

static void an_accepted_flush_never_makes_the_sum_infinite(void **state)
{
    (void)state;
    struct hearth_network_sums one, minute;
    hearth_network_sums_init(&one, &g_arena);
    hearth_network_sums_init(&minute, &g_arena);
    unsigned writes = meter("client_write_counts_counter");
    assert_int_equal(hearth_network_add_value(&one, writes, HEARTH_STR(""), 1e308, &g_err),
                     HEARTH_INVALID_ARGUMENT);
    add(&one, "client_write_counts_counter", "", 1e100);
    add(&one, "client_write_counts_counter", "", 1e100);
    flush(&one, &minute);
    flush(&one, &minute);
    assert_true(isfinite(minute.cells[writes].sum) && minute.cells[writes].sum > 1e100);
}

static void beyond_their_number_codes_and_bounds_of_several_flushes_are_left_out(void **state)
{
    (void)state;
    struct hearth_network_sums one, minute;
    hearth_network_sums_init(&minute, &g_arena);
    for (int first = 0; first <= HEARTH_NETWORK_MAX_BUCKETS; first += 200) {
        hearth_network_sums_init(&one, &g_arena);
        for (int i = first; i < first + 200; i++) {
            char code[16];
            (void)snprintf(code, sizeof code, "%04d", i);
            add(&one, "http1_response_status_counter", code, 1);
            add_bucket(&one, "client_write_rtt_histogram", i, 1);
        }
        flush(&one, &minute);
    }
    assert_int_equal(cell(&minute, "http1_response_status_counter")->n_items,
                     HEARTH_NETWORK_MAX_CODES);
    assert_int_equal(cell(&minute, "client_write_rtt_histogram")->n_items,
                     HEARTH_NETWORK_MAX_BUCKETS);
}

static void a_bucket_keeps_its_count_when_a_sum_does_not_fit(void **state)
{
    (void)state;
    static const char name[] = "http1_server_duration_histogram";
    struct hearth_network_sums one, minute;
    hearth_network_sums_init(&one, &g_arena);
    hearth_network_sums_init(&minute, &g_arena);
    add_bucket(&one, name, 7, INT64_MAX);
    assert_int_equal(
        hearth_network_add_bucket(&one, meter(name), (struct hearth_network_bucket){7, 1}, &g_err),
        HEARTH_OUT_OF_RANGE);
    flush(&one, &minute);
    flush(&one, &minute);
    assert_int_equal(cell(&minute, name)->buckets[0].count, INT64_MAX);
    assert_true(hearth_network_percentile(cell(&minute, name), 50) == 7);
}

static void damaged_bytes_are_corrupt(void **state)
{
    (void)state;
    struct hearth_network_sums one, again;
    struct hearth_buf bytes;
    hearth_network_sums_init(&one, &g_arena);
    add(&one, "client_write_counts_counter", "", 1);
    add(&one, "client_write_exe_time_counter", "", 0.1);
    add(&one, "http1_response_status_counter", "200", 3);
    add_bucket(&one, "client_write_rtt_histogram", 1, 1);
    hearth_buf_init(&bytes, 0);
    hearth_network_encode(&one, &bytes);
    struct hearth_str all = hearth_buf_view(&bytes);
    for (size_t n = 0; n < all.n; n++) {
        hearth_network_sums_init(&again, &g_arena);
        assert_int_equal(hearth_network_merge(&again, hearth_str_n(all.p, n), &g_err),
                         HEARTH_CORRUPT);
    }
    hearth_buf_byte(&bytes, 0);
    hearth_network_sums_init(&again, &g_arena);
    assert_int_equal(hearth_network_merge(&again, hearth_buf_view(&bytes), &g_err), HEARTH_CORRUPT);
    hearth_buf_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_meter_and_metric_has_its_own_name, make_arena,
                                        free_arena),
        cmocka_unit_test_setup_teardown(counters_add_up_and_means_count_each_flush_once, make_arena,
                                        free_arena),
        cmocka_unit_test_setup_teardown(codes_are_summed_one_by_one_and_sorted, make_arena,
                                        free_arena),
        cmocka_unit_test_setup_teardown(percentiles_are_lower_bounds_by_the_rule, make_arena,
                                        free_arena),
        cmocka_unit_test_setup_teardown(percentiles_without_counts_or_lower_bound_are_zero,
                                        make_arena, free_arena),
        cmocka_unit_test_setup_teardown(negative_values_and_those_that_are_no_numbers_are_refused,
                                        make_arena, free_arena),
        cmocka_unit_test_setup_teardown(an_accepted_flush_never_makes_the_sum_infinite, make_arena,
                                        free_arena),
        cmocka_unit_test_setup_teardown(
            beyond_their_number_codes_and_bounds_of_several_flushes_are_left_out, make_arena,
            free_arena),
        cmocka_unit_test_setup_teardown(a_bucket_keeps_its_count_when_a_sum_does_not_fit,
                                        make_arena, free_arena),
        cmocka_unit_test_setup_teardown(damaged_bytes_are_corrupt, make_arena, free_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
