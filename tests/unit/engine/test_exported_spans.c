/* test_exported_spans.c -- which traces of OpenTelemetry are kept. The rest needs a store: tests/integration/test_otlp_traces.py. */
#include "hearth/engine/exported_spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N 100000

static size_t count(double ratio, uint64_t hi_step, uint64_t lo_step)
{
    size_t n = 0;
    for (uint64_t i = 1; i <= N; i++) {
        n += hearth_trace_is_kept((struct hearth_trace_id){i * hi_step, i * lo_step}, ratio);
    }
    return n;
}

static void a_ratio_is_met_for_ids_of_any_form(void **state)
{
    (void)state;
    static const uint64_t steps[][2] = {
        {0, 1}, {1, 0}, {0, UINT64_C(1) << 32}, {0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f}};
    static const double ratios[] = {0.001, 0.1, 0.25, 0.5, 0.9};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(steps); i++) {
        for (size_t k = 0; k < HEARTH_ARRAY_LEN(ratios); k++) {
            double n = (double)count(ratios[k], steps[i][0], steps[i][1]), want = N * ratios[k];
            assert_true(n > want * 0.97 - 60 && n < want * 1.03 + 60);
        }
        assert_int_equal(count(1, steps[i][0], steps[i][1]), N);
        assert_int_equal(count(0, steps[i][0], steps[i][1]), 0);
    }
}

/* SDKs keep the ids whose last 56 or 63 bits are small, or large: of these half is half. */
static void the_ratio_holds_after_earlier_samplers(void **state)
{
    (void)state;
    size_t n = 0;
    for (uint64_t i = 1; i <= N; i++) {
        uint64_t small = i * 0x9e3779b97f4a7c15u >> 12;
        n += hearth_trace_is_kept((struct hearth_trace_id){i, small}, 0.5);
    }
    assert_in_range(n, N * 48 / 100, N * 52 / 100);
}

/* Servers of two versions behind one balancer keep the same traces: these never change. */
static void the_decision_depends_on_the_trace_id_only(void **state)
{
    (void)state;
    static const struct hearth_trace_id ids[] = {
        {0, 1}, {1, 0}, {0x0102030405060708, 0x090a0b0c0d0e0f10}, {UINT64_MAX, UINT64_MAX}};
    static const double kept_from[] = {0.8805, 0.2461, 0.8022, 0.7398};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(ids); i++) {
        assert_true(hearth_trace_is_kept(ids[i], kept_from[i] + 0.001));
        assert_false(hearth_trace_is_kept(ids[i], kept_from[i] - 0.001));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ratio_is_met_for_ids_of_any_form),
        cmocka_unit_test(the_ratio_holds_after_earlier_samplers),
        cmocka_unit_test(the_decision_depends_on_the_trace_id_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
