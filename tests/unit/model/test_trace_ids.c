/* test_trace_ids.c -- texts and bytes of span and trace ids. */
#include "hearth/model/trace_ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define HEX_TRACE "4bf92f3577b34da6a3ce929d0e0e4736"

static uint64_t span(const char *text, enum hearth_id_spelling spelling)
{
    return hearth_span_id_of_text(hearth_str_c(text), spelling);
}

static void assert_trace(const char *text, enum hearth_id_spelling spelling, uint64_t hi,
                         uint64_t lo)
{
    struct hearth_trace_id id = hearth_trace_id_of_text(hearth_str_c(text), spelling);
    assert_int_equal(id.hi, hi);
    assert_int_equal(id.lo, lo);
}

static void sixteen_hexadecimal_digits_are_a_span_in_either_case(void **state)
{
    (void)state;
    assert_int_equal(span("00f067aa0ba902b7", HEARTH_ID_HEX), 0x00f067aa0ba902b7);
    assert_int_equal(span("00F067AA0BA902B7", HEARTH_ID_HEX), 0x00f067aa0ba902b7);
    assert_int_equal(span("1234567890123456", HEARTH_ID_HEX), 0x1234567890123456);
}

static void decimal_ids_are_unsigned_64_bits(void **state)
{
    (void)state;
    assert_int_equal(span("1234567890123456", HEARTH_ID_DECIMAL), 1234567890123456);
    assert_int_equal(span("18446744073709551615", HEARTH_ID_DECIMAL), UINT64_MAX);
    assert_int_equal(span("18446744073709551615", HEARTH_ID_HEX), UINT64_MAX);
    assert_int_equal(span("7", HEARTH_ID_HEX), 7);
}

static void other_texts_have_a_stable_hash_as_id(void **state)
{
    (void)state;
    uint64_t id = span("9bd1a2e1.71.17321", HEARTH_ID_HEX);
    assert_int_not_equal(id, 0);
    assert_int_equal(id, span("9bd1a2e1.71.17321", HEARTH_ID_DECIMAL));
    assert_int_not_equal(id, span("9bd1a2e1.71.17322", HEARTH_ID_HEX));
    assert_int_not_equal(span("18446744073709551616", HEARTH_ID_DECIMAL),
                         0); /* too large: a text */
    assert_trace("9bd1a2e1.71.17321", HEARTH_ID_HEX, 0, id);
}

static void an_empty_text_and_zero_mean_no_id(void **state)
{
    (void)state;
    uint64_t spans[HEARTH_SPAN_ID_MEANINGS];
    struct hearth_trace_id traces[HEARTH_TRACE_ID_MEANINGS];
    const char *none[] = {"", "0", "0000000000000000", "00000000000000000000000000000000"};
    for (size_t i = 0; i < 4; i++) {
        struct hearth_str text = hearth_str_c(none[i]);
        assert_int_equal(hearth_trace_id_meanings(text, traces), 0);
        if (text.n <= 16) {
            assert_int_equal(hearth_span_id_of_text(text, HEARTH_ID_HEX), 0);
            assert_int_equal(hearth_span_id_meanings(text, spans), 0);
        }
    }
}

static void trace_ids_are_decimal_or_up_to_32_hexadecimal_digits(void **state)
{
    (void)state;
    assert_trace(HEX_TRACE, HEARTH_ID_HEX, 0x4bf92f3577b34da6, 0xa3ce929d0e0e4736);
    assert_trace(HEX_TRACE, HEARTH_ID_DECIMAL, 0x4bf92f3577b34da6, 0xa3ce929d0e0e4736);
    assert_trace("a3ce929d0e0e4736", HEARTH_ID_HEX, 0, 0xa3ce929d0e0e4736);
    assert_trace("11803532876627986230", HEARTH_ID_DECIMAL, 0, UINT64_C(11803532876627986230));
    /* Hexadecimal with HEX, even if every digit is decimal. */
    assert_trace("10", HEARTH_ID_HEX, 0, 0x10);
    assert_trace("10", HEARTH_ID_DECIMAL, 0, 10);
    /* So is any text of 32 digits, with either spelling. */
    assert_trace("00000000000000001234567890123456", HEARTH_ID_DECIMAL, 0, 0x1234567890123456);
}

static void bytes_are_big_endian_and_of_the_right_length(void **state)
{
    (void)state;
    const char bytes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    assert_int_equal(hearth_span_id_of_bytes(hearth_str_n(bytes, 8)), 0x0001020304050607);
    assert_int_equal(hearth_span_id_of_bytes(hearth_str_n(bytes, 7)), 0);
    struct hearth_trace_id id = hearth_trace_id_of_bytes(hearth_str_n(bytes, 16));
    assert_int_equal(id.hi, 0x0001020304050607);
    assert_int_equal(id.lo, 0x08090a0b0c0d0e0f);
    id = hearth_trace_id_of_bytes(hearth_str_n(bytes, 8));
    assert_int_equal(id.hi, 0);
    assert_int_equal(id.lo, 0x0001020304050607);
    assert_true(hearth_trace_id_is_none(hearth_trace_id_of_bytes(hearth_str_n(bytes, 9))));
}

static void a_query_means_every_reading_of_its_text_once(void **state)
{
    (void)state;
    uint64_t spans[HEARTH_SPAN_ID_MEANINGS];
    assert_int_equal(hearth_span_id_meanings(HEARTH_STR("1234567890123456"), spans), 2);
    assert_int_equal(spans[0], 0x1234567890123456);
    assert_int_equal(spans[1], 1234567890123456);
    assert_int_equal(hearth_span_id_meanings(HEARTH_STR("00f067aa0ba902b7"), spans), 1);
    assert_int_equal(hearth_span_id_meanings(HEARTH_STR("checkout/7"), spans), 1);
    struct hearth_trace_id traces[HEARTH_TRACE_ID_MEANINGS];
    assert_int_equal(hearth_trace_id_meanings(HEARTH_STR(HEX_TRACE), traces), 2);
    assert_int_equal(traces[1].hi, 0);
    assert_int_equal(traces[1].lo, 0xa3ce929d0e0e4736);
    assert_int_equal(hearth_trace_id_meanings(HEARTH_STR("1234567890123456"), traces), 2);
    assert_int_equal(hearth_trace_id_meanings(HEARTH_STR("a.b.c"), traces), 1);
}

static void ids_are_printed_as_16_and_32_digits_and_parsed_again(void **state)
{
    (void)state;
    char text[HEARTH_SPAN_ID_TEXT + 1], trace[HEARTH_TRACE_ID_TEXT + 1];
    hearth_span_id_format(0xf067aa0ba902b7, text);
    assert_string_equal(text, "00f067aa0ba902b7");
    hearth_trace_id_format((struct hearth_trace_id){0x4bf92f3577b34da6, 0xa3ce929d0e0e4736}, trace);
    assert_string_equal(trace, HEX_TRACE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sixteen_hexadecimal_digits_are_a_span_in_either_case),
        cmocka_unit_test(decimal_ids_are_unsigned_64_bits),
        cmocka_unit_test(other_texts_have_a_stable_hash_as_id),
        cmocka_unit_test(an_empty_text_and_zero_mean_no_id),
        cmocka_unit_test(trace_ids_are_decimal_or_up_to_32_hexadecimal_digits),
        cmocka_unit_test(bytes_are_big_endian_and_of_the_right_length),
        cmocka_unit_test(a_query_means_every_reading_of_its_text_once),
        cmocka_unit_test(ids_are_printed_as_16_and_32_digits_and_parsed_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
