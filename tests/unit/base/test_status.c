/* test_status.c -- codes of statuses, and error messages. */
#include "hearth/base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void every_status_maps_to_known_codes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HEARTH_N_STATUSES; i++) {
        enum hearth_status status = (enum hearth_status)i;
        assert_in_range(hearth_status_grpc(status), 0, 16);
        assert_in_range(hearth_status_http(status), 200, 599);
        assert_true(strlen(hearth_status_name(status)) > 1);
        assert_int_equal(hearth_status_http(status) == 200, status == HEARTH_OK);
    }

    assert_string_equal(hearth_status_name(HEARTH_CANCELLED), "canceled");
    assert_int_equal(hearth_status_grpc(HEARTH_UNAVAILABLE), 14);
    assert_int_equal(hearth_status_http(HEARTH_TOO_LARGE), 413);
}

static void numbers_outside_the_table_are_unknown(void **state)
{
    (void)state;
    enum hearth_status beyond = HEARTH_N_STATUSES;
    assert_string_equal(hearth_status_name(beyond), "unknown");
    assert_int_equal(hearth_status_grpc(beyond), 2);
    assert_int_equal(hearth_status_http(beyond), 500);
}

static void grpc_codes_map_back(void **state)
{
    (void)state;
    assert_int_equal(hearth_status_from_grpc(0), HEARTH_OK);
    assert_int_equal(hearth_status_from_grpc(8), HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(hearth_status_from_grpc(16), HEARTH_UNAUTHENTICATED);
    assert_int_equal(hearth_status_from_grpc(2), HEARTH_INTERNAL);
    assert_int_equal(hearth_status_from_grpc(-1), HEARTH_INTERNAL);
    assert_int_equal(hearth_status_from_grpc(999), HEARTH_INTERNAL);
}

static void fail_fills_the_error_and_is_its_status(void **state)
{
    (void)state;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(HEARTH_FAIL(&err, HEARTH_NOT_FOUND, "no service \"%s\"", "a"),
                     HEARTH_NOT_FOUND);
    assert_int_equal(err.status, HEARTH_NOT_FOUND);
    assert_string_equal(err.msg, "no service \"a\"");
    assert_true(err.line > 0);
    assert_non_null(strstr(err.file, "test_status.c"));
    assert_int_equal(HEARTH_FAIL(NULL, HEARTH_INTERNAL, "nobody listens"), HEARTH_INTERNAL);
}

static void messages_never_contain_control_bytes_or_invalid_utf8(void **state)
{
    (void)state;
    struct hearth_err err = HEARTH_ERR_INIT;
    (void)HEARTH_FAIL(&err, HEARTH_INVALID_ARGUMENT, "a\nb\x7f\x01 caf\xc3\xa9");
    assert_string_equal(err.msg, "a?b?? caf\xc3\xa9");
    (void)HEARTH_FAIL(&err, HEARTH_INVALID_ARGUMENT, "x\xff\xfey");
    assert_string_equal(err.msg, "x??y");
}

static void a_truncated_message_ends_after_a_whole_character(void **state)
{
    (void)state;
    char text[2 * sizeof(struct hearth_err)];
    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'a', shift);
        size_t n = shift;
        for (; n + 3 < sizeof text; n += 3) {
            memcpy(text + n, "\xe2\x82\xac", 3);
        }

        text[n] = '\0';
        struct hearth_err err = HEARTH_ERR_INIT;
        (void)HEARTH_FAIL(&err, HEARTH_INVALID_ARGUMENT, "%s", text);
        size_t kept = strlen(err.msg);
        assert_true(kept > sizeof err.msg - 4);
        assert_true(hearth_str_utf8_valid(hearth_str_n(err.msg, kept)));
        assert_memory_equal(err.msg, text, kept);
    }
}

static void the_prefix_stands_in_front(void **state)
{
    (void)state;
    struct hearth_err err = HEARTH_ERR_INIT;
    (void)HEARTH_FAIL(&err, HEARTH_CORRUPT, "bad chunk");
    hearth_err_prefix(&err, "dictionary %d", 7);
    assert_string_equal(err.msg, "dictionary 7: bad chunk");
    assert_int_equal(err.status, HEARTH_CORRUPT);
    hearth_err_prefix(NULL, "nobody listens");
}

static void a_long_prefix_cuts_the_message_not_memory(void **state)
{
    (void)state;
    char prefix[sizeof((struct hearth_err *)0)->msg + 10];
    for (size_t n = sizeof((struct hearth_err *)0)->msg - 5; n < sizeof prefix - 1; n++) {
        memset(prefix, 'p', n);
        prefix[n] = '\0';
        struct hearth_err err = HEARTH_ERR_INIT;
        (void)HEARTH_FAIL(&err, HEARTH_CORRUPT, "message");
        hearth_err_prefix(&err, "%s", prefix);
        size_t kept = strlen(err.msg);
        assert_true(kept >= sizeof err.msg - 5 && kept < sizeof err.msg);
        assert_memory_equal(err.msg, prefix, n < kept ? n : kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_maps_to_known_codes),
        cmocka_unit_test(numbers_outside_the_table_are_unknown),
        cmocka_unit_test(grpc_codes_map_back),
        cmocka_unit_test(fail_fills_the_error_and_is_its_status),
        cmocka_unit_test(messages_never_contain_control_bytes_or_invalid_utf8),
        cmocka_unit_test(a_truncated_message_ends_after_a_whole_character),
        cmocka_unit_test(the_prefix_stands_in_front),
        cmocka_unit_test(a_long_prefix_cuts_the_message_not_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
