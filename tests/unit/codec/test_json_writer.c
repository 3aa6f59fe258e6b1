/* test_json_writer.c -- commas, escapes, and numbers that are read back unchanged. */
#include "hearth/codec/json_writer.h"

#include "json_text.h"
#include "rounds.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct hearth_buf g_out;
static struct hearth_json g_json;

static int start(void **state)
{
    (void)state;
    hearth_buf_init(&g_out, 0);
    hearth_json_init(&g_json, &g_out);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    hearth_buf_release(&g_out);
    return 0;
}

/* The text so far; empties the buffer. */
static const char *written(void)
{
    hearth_buf_byte(&g_out, '\0');
    assert_false(hearth_buf_failed(&g_out));
    g_out.n = 0;
    return g_out.p;
}

static void nests_with_commas_where_they_belong(void **state)
{
    (void)state;
    hearth_json_object(&g_json);
    hearth_json_key_c(&g_json, "a");
    hearth_json_array(&g_json);
    hearth_json_i64(&g_json, -1);
    hearth_json_null(&g_json);
    hearth_json_object(&g_json);
    hearth_json_object_end(&g_json);
    hearth_json_array(&g_json);
    hearth_json_array_end(&g_json);
    hearth_json_bool(&g_json, true);
    hearth_json_array_end(&g_json);
    hearth_json_key(&g_json, HEARTH_STR("b\""));
    hearth_json_bool(&g_json, false);
    hearth_json_key_c(&g_json, "c");
    hearth_json_object(&g_json);
    hearth_json_key_c(&g_json, "d");
    hearth_json_string_c(&g_json, "x");
    hearth_json_object_end(&g_json);
    hearth_json_object_end(&g_json);
    assert_string_equal(written(),
                        "{\"a\":[-1,null,{},[],true],\"b\\\"\":false,\"c\":{\"d\":\"x\"}}");
}

static void reaches_the_promised_depth(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HEARTH_JSON_MAX_DEPTH; i++) {
        hearth_json_array(&g_json);
    }

    for (unsigned i = 0; i < HEARTH_JSON_MAX_DEPTH; i++) {
        hearth_json_array_end(&g_json);
    }

    assert_int_equal(g_out.n, 2 * HEARTH_JSON_MAX_DEPTH);
}

static void writes_64_bit_integers_both_ways(void **state)
{
    (void)state;
    hearth_json_array(&g_json);
    hearth_json_i64(&g_json, INT64_MIN);
    hearth_json_i64_string(&g_json, INT64_MIN);
    hearth_json_i64_string(&g_json, INT64_MAX);
    hearth_json_array_end(&g_json);
    assert_string_equal(written(),
                        "[-9223372036854775808,\"-9223372036854775808\",\"9223372036854775807\"]");
}

static const char *text_of(struct hearth_str value)
{
    hearth_json_string(&g_json, value);
    return written();
}

static void escapes_text(void **state)
{
    (void)state;
    assert_string_equal(text_of(HEARTH_STR("")), "\"\"");
    assert_string_equal(text_of(hearth_str_n(NULL, 0)), "\"\"");
    assert_string_equal(text_of(HEARTH_STR("a\"b\\c/<&")), "\"a\\\"b\\\\c/<&\"");
    assert_string_equal(text_of(HEARTH_STR("\b\f\n\r\t\1\x1f\x7f")),
                        "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
    assert_string_equal(text_of(HEARTH_STR("a\0b")), "\"a\\u0000b\"");
    assert_string_equal(text_of(HEARTH_STR("\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa")),
                        "\"\\u2028\\u2029\xe2\x80\xaa\"");
}

static void replaces_broken_utf8(void **state)
{
    (void)state;
    assert_string_equal(text_of(HEARTH_STR("caf\xc3\xa9 \xf0\x9f\x98\x80")),
                        "\"caf\xc3\xa9 \xf0\x9f\x98\x80\"");
    assert_string_equal(text_of(HEARTH_STR("\xff"
                                           "a\xc3")),
                        "\"\xef\xbf\xbd"
                        "a\xef\xbf\xbd\"");
    assert_string_equal(text_of(HEARTH_STR("\xed\xa0\x80")),
                        "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static const char *double_text(double value)
{
    hearth_json_double(&g_json, value);
    return written();
}

static void writes_the_shortest_double(void **state)
{
    (void)state;
    assert_string_equal(double_text(0), "0");
    assert_string_equal(double_text(-0.0), "-0.0");
    assert_string_equal(double_text(3), "3");
    assert_string_equal(double_text(-999999999999999), "-999999999999999");
    assert_string_equal(double_text(0.1), "0.1");
    assert_string_equal(double_text(0.1 + 0.2), "0.30000000000000004");
    assert_string_equal(double_text(1e15), "1e+15");
    assert_string_equal(double_text(1e300), "1e+300");
    assert_string_equal(double_text((double)NAN), "\"NaN\"");
    assert_string_equal(double_text((double)INFINITY), "\"Infinity\"");
    assert_string_equal(double_text(-(double)INFINITY), "\"-Infinity\"");
}

static void doubles_are_read_back_unchanged(void **state)
{
    (void)state;
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < test_rounds(100000); i++) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value)) {
            assert_true(strtod(double_text(value), NULL) == value);
        }
    }

    static const double edges[] = {DBL_MAX, -DBL_MAX, DBL_MIN, 4.9406564584124654e-324,
                                   0x1p53,  0x1p63};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(edges); i++) {
        assert_true(strtod(double_text(edges[i]), NULL) == edges[i]);
    }
}

/* Between the bounds of put_small_float, at them, and beyond them. */
static void writes_floats_as_the_c_library_does_with_the_fewest_digits(void **state)
{
    (void)state;
    const uint32_t below = 0x38d1b500u, above = 0x3f800100u; /* 1e-4 and 1 */
    uint32_t step = (above - below) / (uint32_t)test_rounds(50000);
    for (uint32_t bits = below; bits < above; bits += step) {
        float value;
        memcpy(&value, &bits, sizeof value);
        value = bits % 3 == 0 ? -value : value;

        char expected[32];
        for (int digits = 6; digits <= 9; digits++) {
            (void)snprintf(expected, sizeof expected, "%.*g", digits, (double)value);
            if ((float)strtod(expected, NULL) == value) {
                break;
            }
        }
        hearth_json_text_float(&g_out, value);
        assert_string_equal(written(), expected);
    }
}

static void the_error_of_the_buffer_sticks(void **state)
{
    (void)state;
    struct hearth_buf small;
    hearth_buf_init(&small, 3);
    hearth_json_init(&g_json, &small);
    hearth_json_array(&g_json);
    hearth_json_string_c(&g_json, "too long");
    hearth_json_i64(&g_json, 1);
    hearth_json_array_end(&g_json);
    assert_true(hearth_buf_failed(&small));
    hearth_buf_release(&small);
}

#define JSON_TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        JSON_TEST(nests_with_commas_where_they_belong),
        JSON_TEST(reaches_the_promised_depth),
        JSON_TEST(writes_64_bit_integers_both_ways),
        JSON_TEST(escapes_text),
        JSON_TEST(replaces_broken_utf8),
        JSON_TEST(writes_the_shortest_double),
        JSON_TEST(doubles_are_read_back_unchanged),
        JSON_TEST(writes_floats_as_the_c_library_does_with_the_fewest_digits),
        JSON_TEST(the_error_of_the_buffer_sticks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
