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
    assert_int_equal(limits.max_lookup_ids, 1000);
    assert_int_equal(limits.max_lookup_profiles, 10000);
    assert_int_equal(limits.max_lookup_spans, 10000);
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

static void every_limit_states_whether_tenants_may_set_it(void **state)
{
    /* Of bodies nobody knows the tenant before they are read; one worker runs the rules of all. */
#define OF_SERVER(field)                                                                           \
    (offsetof(struct hearth_limits, field) == offsetof(struct hearth_limits, max_request_bytes) || \
     offsetof(struct hearth_limits, field) == offsetof(struct hearth_limits, max_rule_series))
    static const struct {
        const char *field;
        size_t offset;
        bool of_server;
    } all[] = {
#define X(type, field, def) {#field, offsetof(struct hearth_limits, field), OF_SERVER(field)},
#include "hearth/engine/limits.def"
#undef X
    };
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(all); i++) {
        size_t n = 0;
        for (size_t k = 0; k < hearth_n_tenant_limits; k++) {
            n += hearth_tenant_limits[k].offset == all[i].offset;
        }
        if (n != (all[i].of_server ? 0 : 1)) {
            print_error("%s is %zu times in tenant_limits.def\n", all[i].field, n);
        }
        assert_int_equal(n, all[i].of_server ? 0 : 1);
    }
}

static void limits_are_read_and_written_as_options_are(void **state)
{
    static const struct {
        const char *name, *text;
        int64_t value;
        const char *shown;
    } cases[] = {
        {"max-samples", "16000", 16000, "16000"},
        {"max-profile-bytes", "64m", 64 << 20, "64m"},
        {"max-profile-bytes", "4096", 4096, "4k"},
        {"max-profile-bytes", "4097", 4097, "4097"},
        {"max-profile-bytes", "0", 0, "0"},
        {"ingest-rate-bytes", "2G", INT64_C(2) << 30, "2g"},
        {"max-query-range", "90m", INT64_C(5400) * 1000000000, "1h30m"},
        {"max-query-range", "0", 0, "0"},
        {"flamegraph-nodes-on-pprof", "true", 1, "true"},
        {"flamegraph-nodes-on-pprof", "false", 0, "false"},
    };
    static const char *const wrong[][2] = {
        {"max-samples", "-1"},
        {"max-samples", "many"},
        {"max-samples", ""},
        {"max-samples", "1k"},
        {"max-query-range", "5"},
        {"max-query-range", "-1h"},
        {"max-profile-bytes", "9223372036854775807k"},
        {"flamegraph-nodes-on-pprof", "1"},
    };
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t value;
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        const struct hearth_limit *limit = hearth_limit_find(hearth_str_c(cases[i].name));
        struct hearth_buf shown;
        hearth_buf_init(&shown, 0);
        assert_non_null(limit);
        assert_int_equal(hearth_limit_parse(limit, hearth_str_c(cases[i].text), &value, &err),
                         HEARTH_OK);
        assert_int_equal(value, cases[i].value);
        hearth_limit_format(limit, value, &shown);
        assert_true(hearth_str_eq_c(hearth_buf_view(&shown), cases[i].shown));
        hearth_buf_release(&shown);
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(wrong); i++) {
        const struct hearth_limit *limit = hearth_limit_find(hearth_str_c(wrong[i][0]));
        assert_int_equal(hearth_limit_parse(limit, hearth_str_c(wrong[i][1]), &value, &err),
                         HEARTH_INVALID_ARGUMENT);
        assert_non_null(strstr(err.msg, wrong[i][0]));
    }
    assert_null(hearth_limit_find(HEARTH_STR("max-request-bytes")));
    assert_null(hearth_limit_find(HEARTH_STR("retain-raw")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_the_documented_ones),
        cmocka_unit_test(every_limit_states_whether_tenants_may_set_it),
        cmocka_unit_test(limits_are_read_and_written_as_options_are),
        cmocka_unit_test(names_of_discards_fit_a_header_and_a_metric_label),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
