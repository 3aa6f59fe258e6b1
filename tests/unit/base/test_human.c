/* test_human.c -- values, bars and texts for people. */
#include "hearth/base/human.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void values_have_three_digits_in_the_largest_fitting_unit(void **state)
{
    static const struct {
        double value;
        const char *unit, *want;
    } cases[] = {
        {0, "nanoseconds", "0 ns"},        {999, "nanoseconds", "999 ns"},
        {999.6, "nanoseconds", "1.00 µs"}, {1234567890, "nanoseconds", "1.23 s"},
        {90e9, "nanoseconds", "1.50 min"}, {36e11, "nanoseconds", "1 h"},
        {1536, "bytes", "1.50 KiB"},       {-1536, "bytes", "-1.50 KiB"},
        {1234, "count", "1.23k"},          {100, "anything", "100"},
    };

    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        char text[48];
        hearth_human_value(cases[i].value, hearth_str_c(cases[i].unit), text);
        assert_string_equal(text, cases[i].want);
    }
}

static void a_value_fills_as_many_columns_of_printf_in_any_unit(void **state)
{
    char text[48];

    (void)state;
    (void)snprintf(text, sizeof text, "%*s", hearth_human_width("1.20 ms", 10), "1.20 ms");
    assert_string_equal(text, "   1.20 ms");
    (void)snprintf(text, sizeof text, "%*s", hearth_human_width("1.20 µs", 10), "1.20 µs");
    assert_string_equal(text, "   1.20 µs");
}

static void the_values_of_a_column_have_one_unit(void **state)
{
    static const struct {
        double max, value;
        const char *unit, *want;
    } cases[] = {
        {64.8e9, 64.8e9, "nanoseconds", "64.80 s"},
        {64.8e9, 4e6, "nanoseconds", "<0.01 s"},
        {64.8e9, -14.6e9, "nanoseconds", "-14.60 s"},
        {164e9, 1e9, "nanoseconds", "1.0 s"},
        {600e9, 90e9, "nanoseconds", "1.50 min"},
        {9, 9, "nanoseconds", "9 ns"},
        {999, 20, "nanoseconds", "20 ns"},
        {1000, 20, "nanoseconds", "0.02 µs"},
        {5 << 20, 1 << 20, "bytes", "1.00 MiB"},
        {5 << 20, 1, "bytes", "<0.01 MiB"},
        {1e9, 1234567, "count", "1234567"},
        {0, 0, "bytes", "0 B"},
    };

    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_human_scale scale;
        char text[48];
        hearth_human_scale(cases[i].max, hearth_str_c(cases[i].unit), &scale);
        hearth_human_scaled(cases[i].value, &scale, text);
        assert_string_equal(text, cases[i].want);
    }
}

static void assert_text(struct hearth_buf *out, const char *want)
{
    hearth_buf_byte(out, '\0');
    assert_false(hearth_buf_failed(out));
    assert_string_equal(out->p, want);
    hearth_buf_release(out);
    hearth_buf_init(out, 0);
}

static void a_bar_is_exact_to_an_eighth_and_fits_its_width(void **state)
{
    struct hearth_buf out;

    (void)state;
    hearth_buf_init(&out, 0);
    hearth_human_bar(0.5, 3, &out);
    assert_text(&out, "█▌");
    hearth_human_bar(7, 2, &out);
    assert_text(&out, "██");
    hearth_human_bar(-1, 2, &out);
    assert_text(&out, "");
    hearth_human_bar((double)NAN, 2, &out);
    assert_text(&out, "");
    hearth_buf_release(&out);
}

static void a_text_is_truncated_and_padded_by_characters_without_control_characters(void **state)
{
    struct hearth_buf out;

    (void)state;
    hearth_buf_init(&out, 0);
    hearth_human_fit(HEARTH_STR("größe"), 7, true, &out);
    assert_text(&out, "größe  ");
    hearth_human_fit(HEARTH_STR("größe"), 4, false, &out);
    assert_text(&out, "grö…");
    hearth_human_fit(HEARTH_STR("a\033[1m\xc2\x9b\x7f"), 9, false, &out);
    assert_text(&out, "a\\u001b[…");
    hearth_human_fit(HEARTH_STR("a\033[1m"), 10, true, &out);
    assert_text(&out, "a\\u001b[1m");
    hearth_human_fit(HEARTH_STR("abc\033"), 9, true, &out);
    assert_text(&out, "abc\\u001b");
    hearth_human_fit(HEARTH_STR("abc\033"), 8, true, &out);
    assert_text(&out, "abc…    ");
    hearth_buf_release(&out);
}

static void hostile_characters_and_bytes_are_escaped(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"größe 漢字 🔥", "größe 漢字 🔥"},
        {"a\nb\tc\x7f", "a\\u000ab\\u0009c\\u007f"},
        {"\xc2\x9b", "\\u009b"},
        {"evil\xe2\x80\xaegpj.exe", "evil\\u202egpj.exe"},
        {"zero\xe2\x80\x8bwidth\xef\xbb\xbf", "zero\\u200bwidth\\ufeff"},
        {"\xf3\xa0\x81\x81", "\\U000e0041"},
        {"\xff\xc3(\xe2\x80", "\\xff\\xc3(\\xe2\\x80"},
    };
    struct hearth_buf out;

    (void)state;
    hearth_buf_init(&out, 0);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        hearth_human_escape(hearth_str_c(cases[i].text), &out);
        assert_text(&out, cases[i].want);
    }
    hearth_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_three_digits_in_the_largest_fitting_unit),
        cmocka_unit_test(a_value_fills_as_many_columns_of_printf_in_any_unit),
        cmocka_unit_test(the_values_of_a_column_have_one_unit),
        cmocka_unit_test(a_bar_is_exact_to_an_eighth_and_fits_its_width),
        cmocka_unit_test(a_text_is_truncated_and_padded_by_characters_without_control_characters),
        cmocka_unit_test(hostile_characters_and_bytes_are_escaped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
