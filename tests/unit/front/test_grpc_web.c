/* test_grpc_web.c -- headers, frames and trailers of gRPC-Web. */
#include "http/grpc_web.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void timeouts_are_digits_and_a_unit(void **state)
{
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {
        {"0n", 0},
        {"1n", 1},
        {"7u", 7000},
        {"250m", 250000000},
        {"99999999S", 99999999000000000},
        {"2M", 120000000000},
        {"1H", 3600000000000},
        {"99999999H", INT64_MAX},
    };
    static const char *const bad[] = {"",     "1",          "S",  "-1S", "+1S",
                                      "1.5S", "100000000S", "1s", "1 S"};
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(good); i++) {
        int64_t ns = -1;
        assert_true(hearth_grpc_parse_timeout(hearth_str_c(good[i].text), &ns));
        assert_true(ns == good[i].ns);
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        int64_t ns = -1;
        assert_false(hearth_grpc_parse_timeout(hearth_str_c(bad[i]), &ns));
        assert_true(ns == -1);
    }
}

static void encodings_are_known_by_name(void **state)
{
    enum hearth_compression got;
    struct hearth_err err = HEARTH_ERR_INIT;
    (void)state;
    assert_int_equal(hearth_grpc_parse_encoding(HEARTH_STR(""), &got, &err), HEARTH_OK);
    assert_int_equal(got, HEARTH_COMPRESSION_NONE);
    assert_int_equal(hearth_grpc_parse_encoding(HEARTH_STR("gzip"), &got, &err), HEARTH_OK);
    assert_int_equal(got, HEARTH_COMPRESSION_GZIP);
    assert_int_equal(hearth_grpc_parse_encoding(HEARTH_STR("deflate"), &got, &err), HEARTH_OK);
    assert_int_equal(got, HEARTH_COMPRESSION_ZLIB);
    assert_int_equal(hearth_grpc_parse_encoding(HEARTH_STR("snappy"), &got, &err),
                     HEARTH_UNIMPLEMENTED);
    assert_non_null(strstr(err.msg, "gzip, deflate, identity"));
    assert_true(hearth_grpc_accepts_gzip(HEARTH_STR("identity,deflate,gzip")));
    assert_true(hearth_grpc_accepts_gzip(HEARTH_STR(" gzip , x")));
    assert_false(hearth_grpc_accepts_gzip(HEARTH_STR("")));
    assert_false(hearth_grpc_accepts_gzip(HEARTH_STR("xgzip,gzip2")));
}

static enum hearth_status read_body(const char *bytes, size_t n, enum hearth_compression encoding,
                                    struct hearth_str *message,
                                    enum hearth_compression *compression)
{
    return hearth_grpc_web_read(hearth_str_n(bytes, n), encoding, message, compression, NULL);
}

#define READ(text, encoding) read_body(text, sizeof(text) - 1, encoding, &message, &compression)

static void a_body_is_one_message_and_perhaps_trailers(void **state)
{
    struct hearth_str message;
    enum hearth_compression compression;
    (void)state;
    assert_int_equal(READ("\0\0\0\0\3abc", HEARTH_COMPRESSION_GZIP), HEARTH_OK);
    assert_true(hearth_str_eq_c(message, "abc"));
    assert_int_equal(compression, HEARTH_COMPRESSION_NONE);
    assert_int_equal(READ("\0\0\0\0\0", HEARTH_COMPRESSION_NONE), HEARTH_OK);
    assert_int_equal(message.n, 0);
    assert_int_equal(READ("\1\0\0\0\1z", HEARTH_COMPRESSION_GZIP), HEARTH_OK);
    assert_int_equal(compression, HEARTH_COMPRESSION_GZIP);
    assert_int_equal(READ("\0\0\0\0\1a\x80\0\0\0\1t", HEARTH_COMPRESSION_NONE), HEARTH_OK);
    assert_true(hearth_str_eq_c(message, "a"));
}

static void other_bodies_are_refused(void **state)
{
    struct hearth_str message;
    enum hearth_compression compression;
    (void)state;
    assert_int_equal(READ("", HEARTH_COMPRESSION_NONE), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(READ("\0\0\0\0", HEARTH_COMPRESSION_NONE), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(READ("\0\0\0\0\2a", HEARTH_COMPRESSION_NONE), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(READ("\0\xff\xff\xff\xff"
                          "a",
                          HEARTH_COMPRESSION_NONE),
                     HEARTH_INVALID_ARGUMENT);
    assert_int_equal(READ("\1\0\0\0\1z", HEARTH_COMPRESSION_NONE), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(READ("\2\0\0\0\1z", HEARTH_COMPRESSION_NONE), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(READ("\x80\0\0\0\1t", HEARTH_COMPRESSION_NONE), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(READ("\0\0\0\0\1a\0", HEARTH_COMPRESSION_NONE), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(READ("\0\0\0\0\1a\0\0\0\0\1b", HEARTH_COMPRESSION_NONE), HEARTH_UNIMPLEMENTED);
}

static void trailers_are_a_frame_of_lines(void **state)
{
    static const char *const notes[] = {"one", "two"};
    struct hearth_buf out;
    (void)state;
    hearth_buf_init(&out, 0);
    hearth_grpc_web_trailers(HEARTH_OK, "", notes, 2, &out);
    const char *expected = "grpc-status: 0\r\nhearth-note: one\r\nhearth-note: two\r\n";
    assert_int_equal(out.n, 5 + strlen(expected));
    assert_memory_equal(out.p, "\x80\0\0\0", 4);
    assert_int_equal(out.p[4], strlen(expected));
    assert_memory_equal(out.p + 5, expected, strlen(expected));
    hearth_buf_reset(&out);
    hearth_grpc_web_trailers(HEARTH_UNAVAILABLE, "50% \xc3\xa9\r\nx", NULL, 0, &out);
    expected =
        "grpc-status: 14\r\ngrpc-message: 50%25 %C3%A9%0D%0Ax\r\ngrpc-retry-pushback-ms: 1000\r\n";
    assert_int_equal(out.n, 5 + strlen(expected));
    assert_memory_equal(out.p + 5, expected, strlen(expected));
    hearth_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timeouts_are_digits_and_a_unit),
        cmocka_unit_test(encodings_are_known_by_name),
        cmocka_unit_test(a_body_is_one_message_and_perhaps_trailers),
        cmocka_unit_test(other_bodies_are_refused),
        cmocka_unit_test(trailers_are_a_frame_of_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
