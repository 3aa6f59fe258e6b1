/* test_limits.c -- the defaults of the limits, and the names of what is discarded. */
#include "hand_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The defaults that docs and --help promise; generous where the reference's are tight. */
static void the_defaults_are_the_documented_ones(void **state)
{
    struct hearth_limits limits;
    const int64_t mib = 1024 * 1024, second = 1000000000;
    (void)state;
    memset(&limits, 0xff, sizeof limits);
    hearth_limits_init(&limits);
    assert_int_equal(limits.max_profile_bytes, 64 * mib);
    assert_int_equal(limits.max_request_bytes, 64 * mib);
    assert_int_equal(limits.max_samples, 1000000);
    assert_int_equal(limits.max_sample_types, 64);
    assert_int_equal(limits.max_sample_labels, 100);
    assert_int_equal(limits.max_stack_depth, 1000);
    assert_int_equal(limits.max_symbol_bytes, 65535);
    assert_int_equal(limits.max_label_names, 60);
    assert_int_equal(limits.max_label_name_bytes, 1024);
    assert_int_equal(limits.max_label_value_bytes, 2048);
    assert_int_equal(limits.max_label_sets, 2000);
    assert_int_equal(limits.ingest_rate_bytes, 0);
    assert_int_equal(limits.ingest_burst_bytes, 0);
    assert_int_equal(limits.reject_older_than_ns, 7 * 24 * 3600 * second);
    assert_int_equal(limits.reject_newer_than_ns, 600 * second);
    assert_int_equal(limits.max_query_range_ns, 0);
    assert_int_equal(limits.max_query_lookback_ns, 0);
    assert_int_equal(limits.default_flamegraph_nodes, 8192);
    assert_int_equal(limits.max_flamegraph_nodes, 1048576);
    assert_int_equal(limits.max_query_memory_bytes, 384 * mib);
    assert_int_equal(limits.max_points, 11000000);
}

static void names_of_discards_fit_a_header_and_a_metric_label(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HEARTH_N_DISCARDS; i++) {
        struct hearth_str name = hearth_str_c(hearth_discard_name((enum hearth_discard)i));
        assert_true(name.n > 0 && name.n < 32);
        for (size_t c = 0; c < name.n; c++) {
            assert_true((name.p[c] >= 'a' && name.p[c] <= 'z') || name.p[c] == '_');
        }
        for (unsigned k = 0; k < i; k++) {
            assert_false(hearth_str_eq_c(name, hearth_discard_name((enum hearth_discard)k)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_the_documented_ones),
        cmocka_unit_test(names_of_discards_fit_a_header_and_a_metric_label),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
