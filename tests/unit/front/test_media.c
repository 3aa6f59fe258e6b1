/* test_media.c -- Accept, Content-Type, Content-Encoding, Accept-Encoding. */
#include "rpc/media.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bool accept(const char *header, struct hearth_accept *ret)
{
    return hearth_accept_parse(hearth_str_c(header), ret);
}

static void finds_the_utf8_capability_in_any_element(void **state)
{
    static const struct {
        const char *header;
        bool utf8, json;
    } cases[] = {
        {"", false, false},
        {"*/*", false, false},
        {"*/*;allow-utf8-labelnames=true", true, false},
        {"*/*; allow-utf8-labelnames=true", true, false},
        {"application/json; allow-utf8-labelnames=true", true, true},
        {"text/plain, */* ; Allow-UTF8-LabelNames = \"true\" ", true, false},
        {"*/*;allow-utf8-labelnames=false", false, false},
        {"*/*;allow-utf8-labelnames=1", false, false},
        {"text/html, image/gif, *; q=.2, */*; q=.2", false, false},
        {"text/html;q=0.9 , Application/JSON", false, true},
        {"text/plain;", false, false},
        {"text/plain;x=\"a,b;c=d\";allow-utf8-labelnames=true", true, false},
        {"text/plain;x=\"a\\\"b\"", false, false},
    };
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_accept got;
        assert_true(accept(cases[i].header, &got));
        assert_int_equal(got.utf8_label_names, cases[i].utf8);
        assert_int_equal(got.json, cases[i].json);
    }
}

static void refuses_a_malformed_accept(void **state)
{
    static const char *const headers[] = {
        ",",         "a/b,",  ",a/b",      "a/b,,c/d", "/",          "a/",
        "a/b;=x",    "a/b;x", "a/b;x=",    "a/b;x=\"", "a/b;x=\"\\", "a/b x=y",
        "a/b;x=y z", "a b",   "a/b/c;x=y", ";x=y",     "\"a\"",      "a/b;x=\"y\"z",
    };
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(headers); i++) {
        struct hearth_accept got = {.json = true};
        assert_false(accept(headers[i], &got));
        assert_true(got.json); /* untouched */
    }
}

static void expect_media(const char *header, enum hearth_rpc_protocol protocol,
                         enum hearth_rpc_codec codec)
{
    const struct hearth_rpc_media *media = hearth_rpc_media_find(hearth_str_c(header));
    assert_non_null(media);
    assert_int_equal(media->protocol, protocol);
    assert_int_equal(media->codec, codec);
}

static void knows_the_content_types_of_both_protocols(void **state)
{
    static const char *const unknown[] = {
        "application/json; charset=latin1",
        "application/json, text/html",
        "application/jsonx",
        "application/grpc+json",
        "application/connect+proto",
        "application/grpc-web-text+json",
        "",
        "text",
    };
    (void)state;
    expect_media("application/proto", HEARTH_RPC_CONNECT, HEARTH_RPC_PROTO);
    expect_media("application/json", HEARTH_RPC_CONNECT, HEARTH_RPC_JSON);
    expect_media("Application/JSON; Charset=UTF-8", HEARTH_RPC_CONNECT, HEARTH_RPC_JSON);
    expect_media("application/json;charset=\"utf-8\"", HEARTH_RPC_CONNECT, HEARTH_RPC_JSON);
    expect_media("application/grpc", HEARTH_RPC_GRPC, HEARTH_RPC_PROTO);
    expect_media("application/grpc+proto", HEARTH_RPC_GRPC, HEARTH_RPC_PROTO);
    expect_media("application/grpc-web", HEARTH_RPC_GRPC_WEB, HEARTH_RPC_PROTO);
    expect_media("application/grpc-web+json", HEARTH_RPC_GRPC_WEB, HEARTH_RPC_JSON);
    expect_media("application/grpc-web-text", HEARTH_RPC_GRPC_WEB_TEXT, HEARTH_RPC_PROTO);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(unknown); i++) {
        assert_null(hearth_rpc_media_find(hearth_str_c(unknown[i])));
    }
    assert_null(hearth_rpc_media_find(hearth_str_n(NULL, 0))); /* an absent header */
}

static void an_unknown_encoding_names_the_known_ones(void **state)
{
    enum hearth_compression got;
    struct hearth_err err = HEARTH_ERR_INIT;
    (void)state;
    assert_int_equal(hearth_content_encoding_parse(HEARTH_STR(""), &got, &err), HEARTH_OK);
    assert_int_equal(got, HEARTH_COMPRESSION_NONE);
    assert_int_equal(hearth_content_encoding_parse(HEARTH_STR("identity"), &got, &err), HEARTH_OK);
    assert_int_equal(got, HEARTH_COMPRESSION_NONE);
    assert_int_equal(hearth_content_encoding_parse(HEARTH_STR(" GZip"), &got, &err), HEARTH_OK);
    assert_int_equal(got, HEARTH_COMPRESSION_GZIP);
    assert_int_equal(hearth_content_encoding_parse(HEARTH_STR("br"), &got, &err),
                     HEARTH_UNIMPLEMENTED);
    assert_string_equal(err.msg,
                        "unknown compression \"br\": supported encodings are gzip, identity");
    assert_int_equal(hearth_content_encoding_parse(HEARTH_STR("gzip, gzip"), &got, &err),
                     HEARTH_UNIMPLEMENTED);
}

static void gzip_is_offered_unless_its_weight_is_zero(void **state)
{
    static const struct {
        const char *header;
        bool gzip;
    } cases[] = {
        {"", false},
        {"gzip", true},
        {"gzip, deflate, br", true},
        {"br", false},
        {"GZIP;q=0.5", true},
        {"gzip;q=0", false},
        {"*", true},
        {"*;q=0", false},
        {"*, gzip;q=0.0", false},
        {"gzip;;q=0", false},
        {"identity;q=1, *", true},
        {"gz ip", false},
    };
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        assert_int_equal(
            hearth_accept_encoding_has(hearth_str_c(cases[i].header), HEARTH_STR("gzip")),
            cases[i].gzip);
    }
}

static void otlp_has_two_types_and_four_encodings(void **state)
{
    static const struct {
        const char *header;
        int codec; /* -1: none */
    } types[] = {
        {"application/x-protobuf", HEARTH_RPC_PROTO},
        {"Application/X-Protobuf; charset=UTF-8", HEARTH_RPC_PROTO},
        {"application/json", HEARTH_RPC_JSON},
        {"application/json;charset=utf-8", HEARTH_RPC_JSON},
        {"application/json;charset=latin1", -1},
        {"application/proto", -1},
        {"application/x-protobuf, application/json", -1},
        {"text/plain", -1},
        {"", -1},
    };
    static const struct {
        const char *header;
        int compression;
    } encodings[] = {
        {"", HEARTH_COMPRESSION_NONE},
        {"identity", HEARTH_COMPRESSION_NONE},
        {" GZIP ", HEARTH_COMPRESSION_GZIP},
        {"deflate", HEARTH_COMPRESSION_ZLIB},
        {"zstd", HEARTH_COMPRESSION_ZSTD},
        {"snappy", -1},
        {"gzip, zstd", -1},
    };
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(types); i++) {
        enum hearth_rpc_codec codec;
        bool found = hearth_otlp_media_find(hearth_str_c(types[i].header), &codec);
        assert_int_equal(found ? (int)codec : -1, types[i].codec);
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(encodings); i++) {
        enum hearth_compression compression;
        bool found = hearth_otlp_encoding_find(hearth_str_c(encodings[i].header), &compression);
        assert_int_equal(found ? (int)compression : -1, encodings[i].compression);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_utf8_capability_in_any_element),
        cmocka_unit_test(refuses_a_malformed_accept),
        cmocka_unit_test(knows_the_content_types_of_both_protocols),
        cmocka_unit_test(an_unknown_encoding_names_the_known_ones),
        cmocka_unit_test(gzip_is_offered_unless_its_weight_is_zero),
        cmocka_unit_test(otlp_has_two_types_and_four_encodings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
