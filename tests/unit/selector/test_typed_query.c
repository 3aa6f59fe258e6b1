/* test_typed_query.c -- profile type and selector in one text. */
#include "hearth/selector/typed_query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CPU  "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define HEAP "memory:inuse_space:bytes:space:bytes"

static void assert_text(struct hearth_str got, const char *want)
{
    struct hearth_str expected = hearth_str_c(want);
    assert_int_equal(got.n, expected.n);
    if (got.n > 0) {
        assert_memory_equal(got.p, expected.p, got.n);
    }
}

static void assert_parts(const char *text, const char *type, const char *selector)
{
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_typed_query query;
    hearth_arena_init(&arena, 0);
    assert_int_equal(hearth_typed_query_parse(hearth_str_c(text), &arena, &query, &err), HEARTH_OK);
    assert_text(query.profile_type, type);
    assert_text(query.selector, selector);
    hearth_arena_release(&arena);
}

static void assert_refused(const char *text, const char *part)
{
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_typed_query query;
    hearth_arena_init(&arena, 0);
    assert_int_equal(hearth_typed_query_parse(hearth_str_c(text), &arena, &query, &err),
                     HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(err.msg, part));
    hearth_arena_release(&arena);
}

static void the_metric_name_is_the_type(void **state)
{
    (void)state;
    assert_parts(CPU "{service_name=\"api\", pod=~\"a.*b|c\"}", CPU,
                 "{service_name=\"api\", pod=~\"a.*b|c\"}");
    assert_parts(CPU, CPU, "{}");
    assert_parts(CPU "{}", CPU, "{}");
    assert_parts(" " CPU " { } ", CPU, "{}");
    assert_parts(CPU ":delta{a!=\"b\"}", CPU ":delta", "{a!=\"b\"}");
    assert_parts("memory:samples:bytes::{}", "memory:samples:bytes::", "{}");
}

static void a_matcher_may_name_the_type_too(void **state)
{
    (void)state;
    assert_parts("{__profile_type__=\"" CPU "\", a=\"b\"}", CPU, "{a=\"b\"}");
    assert_parts("{__name__=\"" CPU "\"}", CPU, "{}");
    assert_parts("{\"" CPU "\", a=\"b\"}", CPU, "{a=\"b\"}");
    assert_parts(CPU "{__profile_type__=\"" CPU "\"}", CPU, "{}");
}

static void matchers_on_other_values_stay(void **state)
{
    (void)state;
    assert_parts("process_cpu{a=\"b\"}", "", "{__name__=\"process_cpu\", a=\"b\"}");
    assert_parts("{}", "", "{}");
    assert_parts("{__profile_type__=~\"" CPU "\"}", "", "{__profile_type__=~\"" CPU "\"}");
    assert_parts("{__profile_type__!=\"" CPU "\"}", "", "{__profile_type__!=\"" CPU "\"}");
}

static void two_types_and_bad_texts_are_refused(void **state)
{
    (void)state;
    assert_refused(CPU "{__profile_type__=\"" HEAP "\"}", "two profile types");
    assert_refused("", "selector is empty");
    assert_refused(CPU "{a=", "offset");
    assert_refused(CPU "{a=~\"(\"}", "offset");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_metric_name_is_the_type),
        cmocka_unit_test(a_matcher_may_name_the_type_too),
        cmocka_unit_test(matchers_on_other_values_stay),
        cmocka_unit_test(two_types_and_bad_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
