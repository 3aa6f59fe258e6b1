/* test_timeexpr.c -- every form of a point in time and of a duration, and their limits. */
#include "hearth/base/clock.h"
#include "hearth/selector/timeexpr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NOW INT64_C(1700000000123456789)
#define SEC HEARTH_NS_PER_SEC

static void assert_time(const char *text, int64_t want)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t got = 0;
    if (hearth_time_parse(hearth_str_c(text), NOW, &got, &err) != HEARTH_OK) {
        fail_msg("%s: %s", text, err.msg);
    }
    if (got != want) {
        fail_msg("%s: %lld, not %lld", text, (long long)got, (long long)want);
    }
}

static void assert_no_time(const char *text, const char *want)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t got = 42;
    if (hearth_time_parse(hearth_str_c(text), NOW, &got, &err) != HEARTH_INVALID_ARGUMENT) {
        fail_msg("%s was accepted", text);
    }
    assert_string_equal(err.msg, want);
    assert_int_equal(got, 42);
}

static void now_may_be_shifted_by_a_duration(void **state)
{
    (void)state;
    assert_time("now", NOW);
    assert_time("  now\n", NOW);
    assert_time("now-1h30m", NOW - 5400 * SEC);
    assert_time("now+5m", NOW + 300 * SEC);
    assert_time("now-0s", NOW);
    assert_time("now-1y1M1w1d1h1m1s1ms1us1ns",
                NOW - (365 + 30 + 7 + 1) * HEARTH_NS_PER_DAY - 3661 * SEC - 1001001);
    assert_time("now-2\xc2\xb5s", NOW - 2000);
    assert_time("now-2\xce\xbcs", NOW - 2000);
    assert_time("now-2mon3min", NOW - 60 * HEARTH_NS_PER_DAY - 180 * SEC);
}

static void an_at_time_that_cannot_be_read_means_now(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
        bool understood;
    } cases[] = {
        {"", NOW, true},
        {" ", NOW, true},
        {"now", NOW, true},
        {"now-30s", NOW - 30 * SEC, true},
        {"now-5m", NOW - 300 * SEC, true},
        {"now-5min", NOW - 300 * SEC, true},
        {"now-2h", NOW - 7200 * SEC, true},
        {"now-7d", NOW - 7 * HEARTH_NS_PER_DAY, true},
        {"now-1w", NOW - 7 * HEARTH_NS_PER_DAY, true},
        {"now-1M", NOW - 30 * HEARTH_NS_PER_DAY, true},
        {"now-1mon", NOW - 30 * HEARTH_NS_PER_DAY, true},
        {"now-1y", NOW - 365 * HEARTH_NS_PER_DAY, true},
        {"20261120", INT64_C(1795132800) * SEC, true},
        {"0", 0, true},
        {"1700000000", INT64_C(1700000000) * SEC, true},
        {"1700000000123", INT64_C(1700000000123) * 1000000, true},
        {"1700000000123456", INT64_C(1700000000123456) * 1000, true},
        {"1700000000123456789", NOW, true},
        {"20269999", NOW, false},
        {"yesterday", NOW, false},
        {"now-5fortnights", NOW, false},
        {"99999999999999999999", NOW, false},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        bool understood = !cases[i].understood;
        int64_t got = hearth_attime_parse(hearth_str_c(cases[i].text), NOW, &understood);
        if (got != cases[i].ns || understood != cases[i].understood) {
            fail_msg("%s: %lld, understood %d", cases[i].text, (long long)got, understood);
        }
    }
}

static void calendar_times_may_be_any_prefix(void **state)
{
    (void)state;
    int64_t day = INT64_C(1795132800) * SEC; /* 2026-11-20 */
    assert_time("2026-11", day - 19 * HEARTH_NS_PER_DAY);
    assert_time("2026-11-20", day);
    assert_time("2026-11-20T08", day + 8 * HEARTH_NS_PER_HOUR);
    assert_time("2026-11-20T08:30", day + 510 * 60 * SEC);
    assert_time("2026-11-20T08:30:15", day + 30615 * SEC);
    assert_time("2026-11-20T08:30:15Z", day + 30615 * SEC);
    assert_time("2026-11-20t08:30:15z", day + 30615 * SEC);
    assert_time("2026-11-20 08:30:15", day + 30615 * SEC);
    assert_time("2026-11-20T08:30:15.5Z", day + 30615 * SEC + SEC / 2);
    assert_time("2026-11-20T08:30:15.123456789", day + 30615 * SEC + 123456789);
    assert_time("2026-11-20T08:30:15.1234567899+00:00", day + 30615 * SEC + 123456789);
    assert_time("2026-11-20T08:30:15+02:00", day + 30615 * SEC - 2 * HEARTH_NS_PER_HOUR);
    assert_time("2026-11-20T08:30-05:30", day + 510 * 60 * SEC + 330 * 60 * SEC);
    assert_time("2026-11-20T23:59:60Z", day + HEARTH_NS_PER_DAY);
    assert_time("2024-02-29", INT64_C(1709164800) * SEC);
    assert_time("2000-02-29", INT64_C(951782400) * SEC);
    assert_time("1970-01-01", 0);
    assert_time("1969-12-31T23:59:59.999999999Z", -1);
}

static void unix_times_have_units_by_their_number_of_digits(void **state)
{
    (void)state;
    assert_time("1700000000", INT64_C(1700000000) * SEC);
    assert_time("1700000000123", INT64_C(1700000000123) * 1000000);
    assert_time("1700000000123456", INT64_C(1700000000123456) * 1000);
    assert_time("1700000000123456789", NOW);
    assert_time("20261120", INT64_C(1795132800) * SEC);
    assert_time("0", 0);
    assert_time("2026", 2026 * SEC);
    assert_time("1700000000.25", INT64_C(1700000000) * SEC + SEC / 4);
    assert_time("1700000000.123456789", NOW);
    assert_time("0.0000000019", 1);
}

static void the_years_1677_to_2262_are_the_limit(void **state)
{
    (void)state;
    assert_time("9223372036854775807", INT64_MAX);
    assert_time("2262-04-11T23:47:16.854775807Z", INT64_MAX);
    assert_time("1677-09-21T00:12:43.145224192Z", INT64_MIN);
    assert_time("9223372036.854775807", INT64_MAX);
    assert_no_time(
        "2262-04-11T23:47:16.854775808Z",
        "bad time \"2262-04-11T23:47:16.854775808Z\", it is not in the years 1677 to 2262");
    assert_no_time(
        "1677-09-21T00:12:43.145224191Z",
        "bad time \"1677-09-21T00:12:43.145224191Z\", it is not in the years 1677 to 2262");
    assert_no_time("9223372036854775808",
                   "bad time \"9223372036854775808\", it is not in the years 1677 to 2262");
    assert_no_time("9223372037", "bad time \"9223372037\", it is not in the years 1677 to 2262");
    assert_no_time("9223372036.854775808",
                   "bad time \"9223372036.854775808\", it is not in the years 1677 to 2262");
    assert_no_time("99999999999999999999999",
                   "bad time \"99999999999999999999999\", it is not in the years 1677 to 2262");
    assert_no_time("9999-12-31", "bad time \"9999-12-31\", it is not in the years 1677 to 2262");
    assert_no_time("now+290y", "bad time \"now+290y\", it is not in the years 1677 to 2262");
    assert_no_time("now+300y", "bad time \"now+300y\", a duration is at most 292 years");
}

static void other_texts_are_refused_as_times_with_the_reason(void **state)
{
    (void)state;
    static const char forms[] =
        "expected now, now-1h30m, a date like 2026-11-20T08:00:00Z or a Unix time";
    static const char *const shapeless[] = {"",       "yesterday", "-5", "+1",  "1h",
                                            "T08:00", "nowish",    ".5", "\xff"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(shapeless); i++) {
        struct hearth_err err = HEARTH_ERR_INIT;
        int64_t ns;
        assert_int_equal(hearth_time_parse(hearth_str_c(shapeless[i]), NOW, &ns, &err),
                         HEARTH_INVALID_ARGUMENT);
        if (strcmp(shapeless[i], "nowish") != 0) {
            assert_non_null(strstr(err.msg, forms));
        }
    }
    assert_no_time("now1h", "bad time \"now1h\", expected + or - and a duration after now");
    assert_no_time(
        "now-",
        "bad time \"now-\", expected numbers with units like 1h30m (ns us ms s m h d w M y)");
    assert_no_time(
        "now-5",
        "bad time \"now-5\", expected numbers with units like 1h30m (ns us ms s m h d w M y)");
    assert_no_time(
        "now-1h-",
        "bad time \"now-1h-\", expected numbers with units like 1h30m (ns us ms s m h d w M y)");
    assert_no_time("2026-11-20Z", "bad time \"2026-11-20Z\", unexpected text after the time");
    assert_no_time("2026-11-20T08:30:15.",
                   "bad time \"2026-11-20T08:30:15.\", unexpected text after the time");
    assert_no_time("170000000x", "bad time \"170000000x\", unexpected text after the time");
    assert_no_time("2026-13-01", "bad time \"2026-13-01\", the month is not in 01 to 12");
    assert_no_time("20260001", "bad time \"20260001\", the month is not in 01 to 12");
    assert_no_time("2026-02-29", "bad time \"2026-02-29\", the month has no such day");
    assert_no_time("1900-02-29", "bad time \"1900-02-29\", the month has no such day");
    assert_no_time("2026-04-31", "bad time \"2026-04-31\", the month has no such day");
    assert_no_time("2026-01-00", "bad time \"2026-01-00\", the month has no such day");
    assert_no_time("2026-01-01T24",
                   "bad time \"2026-01-01T24\", the time of day is not in 00:00:00 to 23:59:60");
    assert_no_time("2026-01-01T00:60",
                   "bad time \"2026-01-01T00:60\", the time of day is not in 00:00:00 to 23:59:60");
    assert_no_time(
        "2026-01-01T00:00:61",
        "bad time \"2026-01-01T00:00:61\", the time of day is not in 00:00:00 to 23:59:60");
    assert_no_time("2026-01-01T00:00+24:00",
                   "bad time \"2026-01-01T00:00+24:00\", the zone is not in -23:59 to +23:59");
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t ns;
    assert_int_equal(hearth_time_parse(hearth_str_n("now\0", 4), NOW, &ns, &err),
                     HEARTH_INVALID_ARGUMENT);
    char text[200];
    memset(text, '1', sizeof text);
    assert_int_equal(hearth_time_parse(hearth_str_n(text, sizeof text), NOW, &ns, &err),
                     HEARTH_INVALID_ARGUMENT);
}

static void assert_duration(const char *text, int64_t want)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t got = 0;
    if (hearth_duration_parse(hearth_str_c(text), &got, &err) != HEARTH_OK) {
        fail_msg("%s: %s", text, err.msg);
    }
    assert_int_equal(got, want);
}

static void durations_may_have_every_unit(void **state)
{
    (void)state;
    assert_duration("7ns", 7);
    assert_duration("7us", 7000);
    assert_duration("15ms", 15000000);
    assert_duration("90s", 90 * SEC);
    assert_duration("5m", 300 * SEC);
    assert_duration("1h30m", 5400 * SEC);
    assert_duration("7d", 7 * HEARTH_NS_PER_DAY);
    assert_duration("2w", 14 * HEARTH_NS_PER_DAY);
    assert_duration("1M", 30 * HEARTH_NS_PER_DAY);
    assert_duration("1y1d", 366 * HEARTH_NS_PER_DAY);
    assert_duration("9223372036854775807ns", INT64_MAX);
}

static void other_texts_are_refused_as_durations_with_the_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "bad duration \"\", expected numbers with units like 1h30m (ns us ms s m h d w M y)"},
        {"5",
         "bad duration \"5\", expected numbers with units like 1h30m (ns us ms s m h d w M y)"},
        {"-5s",
         "bad duration \"-5s\", expected numbers with units like 1h30m (ns us ms s m h d w M y)"},
        {"1.5h",
         "bad duration \"1.5h\", expected numbers with units like 1h30m (ns us ms s m h d w M y)"},
        {"1h 30m", "bad duration \"1h 30m\", expected numbers with units like 1h30m (ns us ms s m "
                   "h d w M y)"},
        {"30m1h", "bad duration \"30m1h\", units go from large to small, each once"},
        {"1m1M", "bad duration \"1m1M\", units go from large to small, each once"},
        {"1h1h", "bad duration \"1h1h\", units go from large to small, each once"},
        {"0s", "bad duration \"0s\", it must be above zero"},
        {"293y", "bad duration \"293y\", a duration is at most 292 years"},
        {"99999999999999999999s",
         "bad duration \"99999999999999999999s\", a duration is at most 292 years"},
        {"292y200d", "bad duration \"292y200d\", a duration is at most 292 years"},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_err err = HEARTH_ERR_INIT;
        int64_t ns = 42;
        assert_int_equal(hearth_duration_parse(hearth_str_c(cases[i].text), &ns, &err),
                         HEARTH_INVALID_ARGUMENT);
        assert_string_equal(err.msg, cases[i].want);
        assert_int_equal(ns, 42);
    }
    char text[97];
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t ns;
    memset(text, '1', sizeof text);
    assert_int_equal(hearth_duration_parse(hearth_str_n(text, sizeof text), &ns, &err),
                     HEARTH_INVALID_ARGUMENT);
    assert_string_equal(err.msg, "a duration is longer than 95 bytes");
}

static void durations_are_formatted_in_few_units_and_parsed_again(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *want;
    } cases[] = {
        {0, "0s"},
        {1, "1ns"},
        {1500, "1us500ns"},
        {90 * SEC, "1m30s"},
        {5400 * SEC, "1h30m"},
        {7 * HEARTH_NS_PER_DAY, "7d"},
        {-60 * SEC, "-1m"},
        {INT64_MAX, "106751d23h47m16s854ms775us807ns"},
        {INT64_MIN, "-106751d23h47m16s854ms775us808ns"},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        char out[48];
        hearth_duration_format(cases[i].ns, out);
        assert_string_equal(out, cases[i].want);
        if (cases[i].ns > 0) {
            assert_duration(out, cases[i].ns);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(now_may_be_shifted_by_a_duration),
        cmocka_unit_test(an_at_time_that_cannot_be_read_means_now),
        cmocka_unit_test(calendar_times_may_be_any_prefix),
        cmocka_unit_test(unix_times_have_units_by_their_number_of_digits),
        cmocka_unit_test(the_years_1677_to_2262_are_the_limit),
        cmocka_unit_test(other_texts_are_refused_as_times_with_the_reason),
        cmocka_unit_test(durations_may_have_every_unit),
        cmocka_unit_test(other_texts_are_refused_as_durations_with_the_reason),
        cmocka_unit_test(durations_are_formatted_in_few_units_and_parsed_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
