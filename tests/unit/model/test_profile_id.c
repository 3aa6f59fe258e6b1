/* test_profile_id.c -- the public ids of profiles. */
#include "hearth/base/clock.h"
#include "hearth/model/profile_id.h"

#include "synth_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_comes_back(int32_t writer_id, int64_t profile_no)
{
    struct hearth_profile_id id = {writer_id, profile_no}, got;
    char text[HEARTH_PROFILE_ID_TEXT + 1];
    hearth_profile_id_format(id, text);
    assert_int_equal(strlen(text), HEARTH_PROFILE_ID_TEXT);
    assert_int_equal(text[14], '8');
    assert_non_null(strchr("89ab", text[19]));
    for (size_t i = 0; i < HEARTH_PROFILE_ID_TEXT; i++) {
        assert_true((text[i] == '-') == (i == 8 || i == 13 || i == 18 || i == 23));
    }
    assert_true(hearth_profile_id_parse(hearth_str_c(text), &got));
    assert_int_equal(got.writer_id, writer_id);
    assert_int_equal(got.profile_no, profile_no);
}

static void every_id_is_restored_and_is_a_uuid_of_version_8(void **state)
{
    (void)state;
    assert_comes_back(0, 0);
    assert_comes_back(1, 1);
    assert_comes_back(INT32_MAX, INT64_MAX);
    assert_comes_back(INT32_MIN, INT64_MIN);
    for (int bit = 0; bit < 64; bit++) {
        assert_comes_back(1 << (bit % 31), (int64_t)(UINT64_C(1) << bit));
    }
    uint64_t random = 20;
    for (int i = 0; i < 20000; i++) {
        uint64_t writer = synth_next(&random), no = synth_next(&random);
        assert_comes_back((int32_t)(uint32_t)writer, (int64_t)no);
    }
}

static void the_bits_are_where_the_header_says(void **state)
{
    (void)state;
    char text[HEARTH_PROFILE_ID_TEXT + 1];
    hearth_profile_id_format((struct hearth_profile_id){0x12345678, 0x0abc123456789def}, text);
    /* 0abc; 123 after the version; 10, 456789def and 26 zero bits */
    assert_string_equal(text, "12345678-0abc-8123-9159-e277bc000000");
    hearth_profile_id_format((struct hearth_profile_id){1, 1}, text);
    assert_string_equal(text, "00000001-0000-8000-8000-000004000000");
}

static void capital_digits_mean_the_same_id(void **state)
{
    (void)state;
    struct hearth_profile_id got;
    assert_true(
        hearth_profile_id_parse(hearth_str_c("12345678-0ABC-8123-9159-E277BC000000"), &got));
    assert_int_equal(got.writer_id, 0x12345678);
    assert_int_equal(got.profile_no, 0x0abc123456789def);
}

static void foreign_uuids_identify_no_profile(void **state)
{
    (void)state;
    static const char *const foreign[] = {
        "7c9e6679-7425-40de-944b-e07fc1f90ae7", /* version 4 */
        "00000001-0000-7000-8000-000004000000", /* version 7 */
        "00000001-0000-8000-c000-000004000000", /* another variant */
        "00000001-0000-8000-0000-000004000000",
        "00000001-0000-8000-8000-000004000001", /* non-zero padding */
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "00000000-0000-0000-0000-000000000000",
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(foreign); i++) {
        struct hearth_profile_id got = {7, 7};
        assert_true(hearth_profile_id_parse(hearth_str_c(foreign[i]), &got));
        assert_int_equal(got.writer_id, 0);
        assert_int_equal(got.profile_no, 0);
    }
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "x",
        "00000001000080008000000004000000",
        "00000001-0000-8000-8000-00000400000",
        "00000001-0000-8000-8000-0000040000000",
        "0000000-10000-8000-8000-000004000000",
        "00000001-0000-8000-8000_000004000000",
        "00000001-0000-8000-8000-00000400000g",
        "-0000001-0000-8000-8000-000004000000",
        " 0000001-0000-8000-8000-000004000000",
        "{0000001-0000-8000-8000-00000400000}",
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        struct hearth_profile_id got;
        assert_false(hearth_profile_id_parse(hearth_str_c(bad[i]), &got));
    }
    struct hearth_profile_id got;
    assert_false(hearth_profile_id_parse((struct hearth_str){0}, &got));
    assert_false(hearth_profile_id_parse(hearth_str_n("00000001-0000-8000-8000-0000\0"
                                                      "4000000",
                                                      36),
                                         &got));
}

#define NS_PER_MIN (INT64_C(60) * HEARTH_NS_PER_SEC)

static void a_number_contains_the_minute_and_the_service(void **state)
{
    (void)state;
    const int64_t ts_ns = INT64_C(1795000000123456789);
    int64_t no = hearth_profile_no_make(4096 + 77, ts_ns, 12345);
    struct hearth_profile_place place;
    assert_true(no > 0);
    assert_true(hearth_profile_no_place(no, &place));
    assert_true(place.from_ns <= ts_ns && ts_ns < place.to_ns);
    assert_int_equal(place.to_ns - place.from_ns, NS_PER_MIN);
    assert_int_equal(place.service_bits, 77);
    assert_int_equal(no - hearth_profile_no_base(ts_ns), INT64_C(77) << 25 | 12345);
    assert_int_equal(hearth_profile_no_base(place.from_ns), hearth_profile_no_base(ts_ns));
    assert_true(hearth_profile_no_base(place.to_ns) > hearth_profile_no_base(ts_ns));
}

static void the_largest_parts_of_a_number_do_not_touch_each_other(void **state)
{
    (void)state;
    const int64_t last_min = (INT64_C(1) << 26) - 1;
    struct hearth_profile_place place;
    int64_t no = hearth_profile_no_make(INT32_MAX, last_min * NS_PER_MIN, INT64_MAX);
    assert_int_equal(no, INT64_MAX);
    assert_true(hearth_profile_no_place(no, &place));
    assert_int_equal(place.from_ns, last_min * NS_PER_MIN);
    assert_int_equal(place.service_bits, 4095);
    /* The count begins again; service and minute stay. */
    assert_int_equal(hearth_profile_no_make(3, NS_PER_MIN, (INT64_C(1) << 25) + 5),
                     hearth_profile_no_make(3, NS_PER_MIN, 5));
}

static void numbers_without_a_minute_have_no_place(void **state)
{
    (void)state;
    static const int64_t nowhere[] = {0, 1, 4711, (INT64_C(1) << 37) - 1, -1, INT64_MIN};
    struct hearth_profile_place place;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(nowhere); i++) {
        assert_false(hearth_profile_no_place(nowhere[i], &place));
    }
    static const int64_t times[] = {
        INT64_MIN, -1, 0, NS_PER_MIN - 1, (INT64_C(1) << 26) * NS_PER_MIN, INT64_MAX};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(times); i++) {
        assert_false(hearth_profile_no_place(hearth_profile_no_make(1, times[i], 1), &place));
        assert_int_equal(hearth_profile_no_base(times[i]), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_id_is_restored_and_is_a_uuid_of_version_8),
        cmocka_unit_test(the_bits_are_where_the_header_says),
        cmocka_unit_test(capital_digits_mean_the_same_id),
        cmocka_unit_test(foreign_uuids_identify_no_profile),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(a_number_contains_the_minute_and_the_service),
        cmocka_unit_test(the_largest_parts_of_a_number_do_not_touch_each_other),
        cmocka_unit_test(numbers_without_a_minute_have_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
