/* test_str.c -- comparisons, UTF-8 and whole-string numbers. */
#include "hearth/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void orders_by_bytes_then_length(void **state)
{
    (void)state;
    assert_true(hearth_str_cmp(HEARTH_STR("a"), HEARTH_STR("b")) < 0);
    assert_true(hearth_str_cmp(HEARTH_STR("ab"), HEARTH_STR("a")) > 0);
    assert_true(hearth_str_cmp(HEARTH_STR("a"), HEARTH_STR("ab")) < 0);
    assert_int_equal(hearth_str_cmp(HEARTH_STR("ab"), HEARTH_STR("ab")), 0);
    assert_true(hearth_str_cmp(HEARTH_STR("\x7f"), HEARTH_STR("\x80")) < 0);
    assert_int_equal(hearth_str_cmp(hearth_str_n(NULL, 0), HEARTH_STR("")), 0);
    assert_true(hearth_str_cmp(hearth_str_n(NULL, 0), HEARTH_STR("a")) < 0);
}

static void compares_whole_and_in_part(void **state)
{
    (void)state;
    assert_true(hearth_str_eq(hearth_str_n(NULL, 0), HEARTH_STR("")));
    assert_true(hearth_str_eq(HEARTH_STR("a\0b"), hearth_str_n("a\0b", 3)));
    assert_false(hearth_str_eq(HEARTH_STR("a\0b"), HEARTH_STR("a\0c")));
    assert_true(hearth_str_eq_c(HEARTH_STR("x"), "x"));
    assert_false(hearth_str_eq_c(HEARTH_STR("x"), "xy"));
    assert_true(hearth_str_eq_nocase(HEARTH_STR("Content-TYPE"), HEARTH_STR("content-type")));
    assert_false(hearth_str_eq_nocase(HEARTH_STR("a"), HEARTH_STR("ab")));
    assert_false(hearth_str_eq_nocase(HEARTH_STR("@"), HEARTH_STR("`")));
    assert_true(hearth_str_starts(HEARTH_STR("abc"), HEARTH_STR("ab")));
    assert_true(hearth_str_starts(HEARTH_STR("abc"), HEARTH_STR("")));
    assert_false(hearth_str_starts(HEARTH_STR("a"), HEARTH_STR("ab")));
    assert_true(hearth_str_ends(HEARTH_STR("abc"), HEARTH_STR("bc")));
    assert_false(hearth_str_ends(HEARTH_STR("c"), HEARTH_STR("bc")));
}

static void compares_whole_secrets(void **state)
{
    (void)state;
    struct hearth_str secret = HEARTH_STR("s3cret");
    assert_true(hearth_str_eq_secret(HEARTH_STR("s3cret"), secret));
    static const char *const wrong[] = {"",       "s",       "s3cre",       "s3creT",
                                        "X3cret", "s3cret ", "s3crets3cret"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(wrong); i++) {
        assert_false(hearth_str_eq_secret(hearth_str_c(wrong[i]), secret));
    }

    assert_false(hearth_str_eq_secret(HEARTH_STR("s3cret\0"), secret));
    assert_false(hearth_str_eq_secret(HEARTH_STR("x"), HEARTH_STR("")));
    assert_true(hearth_str_eq_secret(HEARTH_STR(""), HEARTH_STR("")));
}

static void finds_and_trims_text(void **state)
{
    (void)state;
    assert_int_equal(hearth_str_find(HEARTH_STR("a,b,c"), ',', 0), 1);
    assert_int_equal(hearth_str_find(HEARTH_STR("a,b,c"), ',', 2), 3);
    assert_int_equal(hearth_str_find(HEARTH_STR("a,b,c"), ',', 4), 5);
    assert_int_equal(hearth_str_find(HEARTH_STR("abc"), ',', 99), 3);
    assert_int_equal(hearth_str_find(hearth_str_n(NULL, 0), ',', 0), 0);
    assert_true(hearth_str_eq_c(hearth_str_trim(HEARTH_STR(" \t\r\n a b\v\f ")), "a b"));
    assert_int_equal(hearth_str_trim(HEARTH_STR(" \t ")).n, 0);
}

static void accepts_well_formed_utf8(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "plain ascii, longer than eight bytes",
                                       "\x7f",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xef\xbf\xbf",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf",
                                       "12345678\xe2\x82\xac"
                                       "12345678"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(good); i++) {
        assert_true(hearth_str_utf8_valid(hearth_str_c(good[i])));
    }

    assert_true(hearth_str_utf8_valid(hearth_str_n(NULL, 0)));
}

static void refuses_malformed_utf8(void **state)
{
    (void)state;
    static const char *const bad[] = {"\x80",
                                      "\xbf",
                                      "\xc0\xaf",
                                      "\xc1\xbf",
                                      "\xc3",
                                      "\xc3(",
                                      "\xe0\x80\x80",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xed\xbf\xbf",
                                      "\xe2\x82",
                                      "\xf0\x80\x80\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xf0\x90\x80",
                                      "\xff",
                                      "1234567\xff",
                                      "12345678\xfe"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        assert_false(hearth_str_utf8_valid(hearth_str_c(bad[i])));
    }
}

static void refuses_a_nul_at_every_place(void **state)
{
    (void)state;
    for (size_t at = 0; at < 24; at++) {
        char text[24];
        memset(text, 'a', sizeof text);
        text[at] = '\0';
        assert_false(hearth_str_utf8_valid(hearth_str_n(text, sizeof text)));
    }
}

static void parses_whole_integers_only(void **state)
{
    (void)state;
    int64_t i;
    uint64_t u;
    assert_true(hearth_str_to_i64(HEARTH_STR("-9223372036854775808"), &i) && i == INT64_MIN);
    assert_true(hearth_str_to_i64(HEARTH_STR("9223372036854775807"), &i) && i == INT64_MAX);
    assert_true(hearth_str_to_i64(HEARTH_STR("-0"), &i) && i == 0);
    assert_true(hearth_str_to_u64(HEARTH_STR("18446744073709551615"), &u) && u == UINT64_MAX);
    assert_true(hearth_str_to_u64(HEARTH_STR("007"), &u) && u == 7);
    i = 42;
    static const char *const bad[] = {"",
                                      "-",
                                      "--1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "0x1",
                                      "9223372036854775808",
                                      "-9223372036854775809"};
    for (size_t k = 0; k < HEARTH_ARRAY_LEN(bad); k++) {
        assert_false(hearth_str_to_i64(hearth_str_c(bad[k]), &i));
    }

    assert_int_equal(i, 42);
    assert_false(hearth_str_to_u64(HEARTH_STR("18446744073709551616"), &u));
    assert_false(hearth_str_to_u64(HEARTH_STR("-1"), &u));
}

static void parses_finite_decimals_only(void **state)
{
    (void)state;
    double d;
    assert_true(hearth_str_to_double(HEARTH_STR("1.5"), &d) && d == 1.5);
    assert_true(hearth_str_to_double(HEARTH_STR("-2e3"), &d) && d == -2000);
    assert_true(hearth_str_to_double(HEARTH_STR("1.7976931348623157e308"), &d));
    assert_true(hearth_str_to_double(HEARTH_STR("5e-324"), &d) && d > 0);
    d = 42;
    static const char *const bad[] = {"",     " 1",    "1 ",     "1e",  "inf",   "nan", "Infinity",
                                      "0x10", "1e999", "-1e999", "1,5", "1.5.1", "."};
    for (size_t k = 0; k < HEARTH_ARRAY_LEN(bad); k++) {
        assert_false(hearth_str_to_double(hearth_str_c(bad[k]), &d));
    }

    assert_false(hearth_str_to_double(HEARTH_STR("1\0"), &d));
    char longest[64];
    memset(longest, '1', sizeof longest);
    assert_true(hearth_str_to_double(hearth_str_n(longest, 63), &d));
    assert_false(hearth_str_to_double(hearth_str_n(longest, 64), &d));
}

static void parses_hexadecimal_numbers_of_up_to_64_bits(void **state)
{
    (void)state;
    uint64_t u;
    assert_true(hearth_str_hex_to_u64(HEARTH_STR("DeadBeef"), &u) && u == 0xdeadbeef);
    assert_true(hearth_str_hex_to_u64(HEARTH_STR("ffffffffffffffff"), &u) && u == UINT64_MAX);
    assert_false(hearth_str_hex_to_u64(HEARTH_STR(""), &u));
    assert_false(hearth_str_hex_to_u64(HEARTH_STR("0x1"), &u));
    assert_false(hearth_str_hex_to_u64(HEARTH_STR("g"), &u));
    assert_false(hearth_str_hex_to_u64(HEARTH_STR("00000000000000001"), &u));
}

static void repairs_invalid_text(void **state)
{
    (void)state;
    static const struct {
        struct hearth_str text;
        const char *mended;
    } all[] = {
        {HEARTH_STR(""), ""},
        {HEARTH_STR("\0"), "?"},
        {HEARTH_STR("a\0b\xff"), "a?b?"},
        {HEARTH_STR("\xc3"), "?"},
        {HEARTH_STR("\xc3\xa4\xa4z"), "\xc3\xa4?z"},
        {HEARTH_STR("\xe2\x82"), "??"},
        {HEARTH_STR("\xe2\x82z\xe2\x82\xac"), "??z\xe2\x82\xac"},
        {HEARTH_STR("\xed\xa0\x80"), "???"},
        {HEARTH_STR("\xf0\x9f\x98\x80\xf0\x9f\x98"), "\xf0\x9f\x98\x80???"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(all); i++) {
        char text[16] = {0};
        memcpy(text, all[i].text.p, all[i].text.n);
        hearth_str_utf8_mend(text, all[i].text.n);
        assert_string_equal(text, all[i].mended);
    }
}

static void writes_characters_as_utf8(void **state)
{
    (void)state;
    static const struct {
        uint32_t character;
        const char *text;
    } all[] = {{'a', "a"},
               {0x7F, "\x7F"},
               {0x80, "\xC2\x80"},
               {0x7FF, "\xDF\xBF"},
               {0x800, "\xE0\xA0\x80"},
               {0xFFFF, "\xEF\xBF\xBF"},
               {0x10000, "\xF0\x90\x80\x80"},
               {0x10FFFF, "\xF4\x8F\xBF\xBF"}};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(all); i++) {
        char text[4];
        size_t n = hearth_str_utf8_put(text, all[i].character);
        assert_true(hearth_str_eq_c(hearth_str_n(text, n), all[i].text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_by_bytes_then_length),
        cmocka_unit_test(compares_whole_and_in_part),
        cmocka_unit_test(compares_whole_secrets),
        cmocka_unit_test(finds_and_trims_text),
        cmocka_unit_test(accepts_well_formed_utf8),
        cmocka_unit_test(refuses_malformed_utf8),
        cmocka_unit_test(writes_characters_as_utf8),
        cmocka_unit_test(repairs_invalid_text),
        cmocka_unit_test(refuses_a_nul_at_every_place),
        cmocka_unit_test(parses_whole_integers_only),
        cmocka_unit_test(parses_finite_decimals_only),
        cmocka_unit_test(parses_hexadecimal_numbers_of_up_to_64_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
