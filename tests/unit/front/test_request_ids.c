/* test_request_ids.c -- ids of clients, and traceparent. */
#include "rpc/request_ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"

static bool uses_id(const char *sent)
{
    struct hearth_request_ids ids;

    hearth_request_ids_init(&ids);
    hearth_request_ids_take_id(&ids, hearth_str_c(sent));

    return strcmp(ids.request_id, sent) == 0;
}

static void every_request_has_its_own_id(void **state)
{
    (void)state;
    struct hearth_request_ids a, b;

    hearth_request_ids_init(&a);
    hearth_request_ids_init(&b);
    assert_int_equal(strlen(a.request_id), 32);
    assert_string_not_equal(a.request_id, b.request_id);
}

static void a_sane_id_of_the_client_is_used(void **state)
{
    (void)state;
    assert_true(uses_id("checkout-42"));
    assert_true(uses_id("9f8b7c6d-1234-4abc-8def-0123456789ab"));
    assert_true(uses_id("1234567890123456789012345678901234567890123456789012345678901234"));
    assert_false(uses_id("12345678901234567890123456789012345678901234567890123456789012345"));
    assert_false(uses_id(""));
    assert_false(uses_id("two words"));
    assert_false(uses_id("a\nb"));
    assert_false(uses_id("\"quoted\""));
    assert_false(uses_id("\xc3\xa9"));
}

static bool reads_trace(const char *traceparent)
{
    struct hearth_request_ids ids;

    hearth_request_ids_init(&ids);
    hearth_request_ids_take_traceparent(&ids, hearth_str_c(traceparent));
    if (hearth_trace_id_is_none(ids.trace)) {
        assert_int_equal(ids.parent_span, 0);
        assert_false(ids.is_sampled);
        return false;
    }

    char trace[HEARTH_TRACE_ID_TEXT + 1];
    hearth_trace_id_format(ids.trace, trace);
    assert_string_equal(trace, TRACE);
    assert_true(ids.parent_span == 0xb7ad6b7169203331);

    return true;
}

static void a_traceparent_is_read_strictly(void **state)
{
    (void)state;
    assert_true(reads_trace("00-" TRACE "-" PARENT "-01"));
    assert_true(reads_trace("00-" TRACE "-" PARENT "-00"));
    assert_true(reads_trace("cc-" TRACE "-" PARENT "-01-more"));
    assert_true(reads_trace("cc-" TRACE "-" PARENT "-01"));
    assert_false(reads_trace("00-" TRACE "-" PARENT "-01-more"));
    assert_false(reads_trace("cc-" TRACE "-" PARENT "-01more"));
    assert_false(reads_trace("ff-" TRACE "-" PARENT "-01"));
    assert_false(reads_trace("00-" TRACE "-" PARENT "-0"));
    assert_false(reads_trace("00-" TRACE "-" PARENT "-0g"));
    assert_false(reads_trace("00_" TRACE "-" PARENT "-01"));
    assert_false(reads_trace("00-0AF7651916CD43DD8448EB211C80319C-" PARENT "-01"));
    assert_false(reads_trace("00-00000000000000000000000000000000-" PARENT "-01"));
    assert_false(reads_trace("00-" TRACE "-0000000000000000-01"));
    assert_false(reads_trace(""));
}

static void the_caller_decides_whether_its_trace_is_recorded(void **state)
{
    (void)state;
    struct hearth_request_ids ids;

    hearth_request_ids_init(&ids);
    hearth_request_ids_take_traceparent(&ids, HEARTH_STR("00-" TRACE "-" PARENT "-00"));
    assert_false(hearth_request_ids_begin_span(&ids, 1));
    assert_int_equal(ids.span, 0);

    hearth_request_ids_take_traceparent(&ids, HEARTH_STR("00-" TRACE "-" PARENT "-01"));
    assert_true(hearth_request_ids_begin_span(&ids, INT64_MAX));
    assert_true(ids.span != 0 && ids.span != ids.parent_span);
}

static void one_new_trace_in_ten_is_recorded(void **state)
{
    (void)state;
    const int n = 20000, one_in = 10;
    int n_recorded = 0;

    for (int i = 0; i < n; i++) {
        struct hearth_request_ids ids;
        hearth_request_ids_init(&ids);
        bool is_recorded = hearth_request_ids_begin_span(&ids, one_in);
        assert_int_equal(is_recorded, !hearth_trace_id_is_none(ids.trace));
        n_recorded += is_recorded;
    }

    assert_in_range(n_recorded, n / one_in * 8 / 10, n / one_in * 12 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_has_its_own_id),
        cmocka_unit_test(a_sane_id_of_the_client_is_used),
        cmocka_unit_test(a_traceparent_is_read_strictly),
        cmocka_unit_test(the_caller_decides_whether_its_trace_is_recorded),
        cmocka_unit_test(one_new_trace_in_ten_is_recorded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
