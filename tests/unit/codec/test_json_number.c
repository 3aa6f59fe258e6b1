/* test_json_number.c -- numbers and strings of JSON text as integers and UTF-8. */
#include "hearth/base/compiler.h"

#include "json_number.h"
#include "json_unescape.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void measures_numbers_by_the_grammar_of_json(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
    } cases[] = {
        {"0", 1},       {"-0", 2}, {"12,", 2}, {"1.5]", 3}, {"1e9", 3}, {"1E+9 ", 4},
        {"-1.5e-3", 7}, {"01", 0}, {"-", 0},   {".5", 0},   {"1.", 0},  {"1e", 0},
        {"1e+", 0},     {"+1", 0}, {"", 0},    {"NaN", 0},  {"0x1", 1}, {"0.0", 3},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        size_t n = json_number_measure(hearth_str_c(cases[i].text));
        if (n != cases[i].n) {
            fail_msg("%s has %zu bytes of a number, not %zu", cases[i].text, cases[i].n, n);
        }
    }
}

static void scales_numbers_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t factor, value;
        bool is_exact;
    } cases[] = {
        {"0", 1000000000, 0, true},
        {"0.01", 1000000000, 10000000, true},
        {"0.1", 1, 0, false},
        {"0.5", 1, 1, false},
        {"-0.5", 1, -1, false},
        {"1.4999", 1, 1, false},
        {"2.0", 1, 2, true},
        {"1e3", 1, 1000, true},
        {"1.25e-2", 10000, 125, true},
        {"0.0000000000000000000000000000001", 1, 0, false},
        {"1e-1000000000000", 1, 0, false},
        {"0e999999999999", 1, 0, true},
        {"163140.599286", 1000000000, 163140599286000, true},
        {"9223372036854775807", 1, INT64_MAX, true},
        {"-9223372036854775808", 1, INT64_MIN, true},
        {"9.2233720368547758070e18", 1, INT64_MAX, true},
        {"1000000000000000000.9", 1, 1000000000000000000, false},
        {"123456789012345678.90123", 10, 1234567890123456789, false},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        int64_t value = -7;
        bool is_exact = false;
        if (!json_number_scale(hearth_str_c(cases[i].text), cases[i].factor, &value, &is_exact) ||
            value != cases[i].value || is_exact != cases[i].is_exact) {
            fail_msg("%s times %" PRId64 " is %" PRId64 ", %s", cases[i].text, cases[i].factor,
                     value, is_exact ? "exact" : "rounded");
        }
    }
}

static void refuses_numbers_of_more_than_64_bits(void **state)
{
    (void)state;
    static const char *const cases[] = {"9223372036854775808", "-9223372036854775809", "1e19",
                                        "1e99999999999", "99999999999999999999999"};
    int64_t value;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        assert_false(json_number_scale(hearth_str_c(cases[i]), 1, &value, NULL));
    }
    assert_false(json_number_scale(HEARTH_STR("10000000000"), 1000000000, &value, NULL));
}

static void unescapes_strings(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"plain", "plain"},
        {"a\\nb\\t\\\"\\\\\\/", "a\nb\t\"\\/"},
        {"\\b\\f\\r", "\b\f\r"},
        {"\\u0041\\u00e9\\u20AC", "A\xC3\xA9\xE2\x82\xAC"},
        {"\\ud83d\\ude00", "\xF0\x9F\x98\x80"},
        {"\\ud83d", "\xEF\xBF\xBD"},
        {"\\ude00x", "\xEF\xBF\xBDx"},
        {"\\ud83d\\u0041", "\xEF\xBF\xBD"
                           "A"},
        {"\\u0000", "\xEF\xBF\xBD"},
        {"\\x", NULL},
        {"\\u12", NULL},
        {"\\u12G4", NULL},
        {"\\", NULL},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        char out[64];
        size_t n = json_unescape(hearth_str_c(cases[i][0]), out);
        if (cases[i][1] == NULL ? n != SIZE_MAX
                                : !hearth_str_eq_c(hearth_str_n(out, n), cases[i][1])) {
            fail_msg("%s is read wrongly", cases[i][0]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measures_numbers_by_the_grammar_of_json),
        cmocka_unit_test(scales_numbers_exactly),
        cmocka_unit_test(refuses_numbers_of_more_than_64_bits),
        cmocka_unit_test(unescapes_strings),
    };

    return cmocka_run_group_tests_name("json_number", tests, NULL, NULL);
}
