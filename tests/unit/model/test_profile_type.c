/* test_profile_type.c -- profile type ids and gauges. */
#include "hearth/model/profile_type.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void parses_five_parts(void **state)
{
    (void)state;
    struct hearth_profile_type type;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_profile_type_parse(HEARTH_STR("process_cpu:cpu:nanoseconds:wall:count"),
                                               &type, &err),
                     HEARTH_OK);
    assert_true(hearth_str_eq_c(type.name, "process_cpu"));
    assert_true(hearth_str_eq_c(type.sample_type, "cpu"));
    assert_true(hearth_str_eq_c(type.sample_unit, "nanoseconds"));
    assert_true(hearth_str_eq_c(type.period_type, "wall"));
    assert_true(hearth_str_eq_c(type.period_unit, "count"));
}

static void ignores_a_sixth_part_and_keeps_empty_ones(void **state)
{
    (void)state;
    struct hearth_profile_type type;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_profile_type_parse(HEARTH_STR("a:b:c:d:e:delta"), &type, &err),
                     HEARTH_OK);
    assert_true(hearth_str_eq_c(type.period_unit, "e"));
    assert_int_equal(
        hearth_profile_type_parse(HEARTH_STR("process_cpu:samples:count::"), &type, &err),
        HEARTH_OK);
    assert_int_equal(type.period_type.n, 0);
    assert_int_equal(type.period_unit.n, 0);
    assert_int_equal(hearth_profile_type_parse(HEARTH_STR("::::"), &type, &err), HEARTH_OK);
    assert_int_equal(type.name.n, 0);
    assert_int_equal(hearth_profile_type_parse(HEARTH_STR(":::::"), &type, &err), HEARTH_OK);
}

static void refuses_any_other_number_of_parts(void **state)
{
    (void)state;
    const char *bad[] = {"", "a", "a:b:c:d", "a:b:c:d:e:f:g", "::::::", "a:b:c:d:e:f:"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        struct hearth_profile_type type = {.name = HEARTH_STR("untouched")};
        struct hearth_err err = HEARTH_ERR_INIT;
        assert_int_equal(hearth_profile_type_parse(hearth_str_c(bad[i]), &type, &err),
                         HEARTH_INVALID_ARGUMENT);
        assert_non_null(
            strstr(err.msg, "<name>:<sample-type>:<sample-unit>:<period-type>:<period-unit>"));
        assert_true(hearth_str_eq_c(type.name, "untouched"));
    }
    struct hearth_profile_type type;
    assert_int_equal(hearth_profile_type_parse((struct hearth_str){NULL, 0}, &type, NULL),
                     HEARTH_INVALID_ARGUMENT);
}

static void assert_format(struct hearth_profile_type type, const char *want)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_profile_type_format(&type, &out);
    assert_int_equal(out.n, strlen(want));
    assert_memory_equal(out.p, want, out.n);
    hearth_buf_release(&out);
}

static void formats_durations_that_it_parses(void **state)
{
    (void)state;
    const char *ids[] = {"process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                         "process_cpu:samples:count::milliseconds",
                         "::::", "m\xc3\xa4:heap-live-size:b ytes:x:y"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(ids); i++) {
        struct hearth_profile_type type;
        assert_int_equal(hearth_profile_type_parse(hearth_str_c(ids[i]), &type, NULL), HEARTH_OK);
        assert_format(type, ids[i]);
    }
}

static void replaces_colons_and_control_bytes(void **state)
{
    (void)state;
    assert_format((struct hearth_profile_type){.name = HEARTH_STR("a:b"),
                                               .sample_type = HEARTH_STR("cycles:u"),
                                               .sample_unit = HEARTH_STR("x\ny\x7f"),
                                               .period_type = hearth_str_n("\0", 1)},
                  "a_b:cycles_u:x_y_:_:");
}

static bool is_gauge(const char *sample_type)
{
    struct hearth_profile_type type = {.name = HEARTH_STR("memory"),
                                       .sample_type = hearth_str_c(sample_type)};
    return hearth_profile_type_is_gauge(&type);
}

static void distinguishes_gauges_from_sums(void **state)
{
    (void)state;
    const char *gauges[] = {"inuse_space", "inuse_objects", "inuse-space",    "goroutine",
                            "goroutines",  "mem-inuse",     "heap-live-size", "heap_live_samples",
                            "live",        "heap-space",    "goroutineleak",  "threadcreate",
                            "objects",     "space"};
    const char *sums[] = {
        "cpu",         "samples", "alloc_space", "alloc-objects", "contentions", "delay", "inuse2",
        "goroutine_x", "",        "deliver",     "lives"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(gauges); i++) {
        assert_true(is_gauge(gauges[i]));
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(sums); i++) {
        assert_false(is_gauge(sums[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_five_parts),
        cmocka_unit_test(ignores_a_sixth_part_and_keeps_empty_ones),
        cmocka_unit_test(refuses_any_other_number_of_parts),
        cmocka_unit_test(formats_durations_that_it_parses),
        cmocka_unit_test(replaces_colons_and_control_bytes),
        cmocka_unit_test(distinguishes_gauges_from_sums),
    };
    return cmocka_run_group_tests_name("profile_type", tests, NULL, NULL);
}
