/* test_connect.c -- headers, bodies and errors of unary Connect calls. */
#include "hearth/pb/types/v1/types.pb-c.h"

#include "rpc/connect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void parses_timeouts_of_up_to_ten_digits(void **state)
{
    int64_t ms = -1;
    (void)state;
    assert_true(hearth_connect_parse_timeout(HEARTH_STR("0"), &ms));
    assert_int_equal(ms, 0);
    assert_true(hearth_connect_parse_timeout(HEARTH_STR("9999999999"), &ms));
    assert_true(ms == 9999999999);
    assert_false(hearth_connect_parse_timeout(HEARTH_STR(""), &ms));
    assert_false(hearth_connect_parse_timeout(HEARTH_STR("10000000000"), &ms));
    assert_false(hearth_connect_parse_timeout(HEARTH_STR("-1"), &ms));
    assert_false(hearth_connect_parse_timeout(HEARTH_STR("+1"), &ms));
    assert_false(hearth_connect_parse_timeout(HEARTH_STR("1s"), &ms));
    assert_false(hearth_connect_parse_timeout(HEARTH_STR("1.5"), &ms));
}

static void a_head_needs_no_other_field(void **state)
{
    struct hearth_connect_head head = {.content_type = HEARTH_STR("application/json")};
    struct hearth_connect_call call;
    struct hearth_err err = HEARTH_ERR_INIT;
    (void)state;
    assert_int_equal(hearth_connect_parse_head(&head, &call, &err), HEARTH_OK);
    assert_int_equal(call.compression, HEARTH_COMPRESSION_NONE);
    assert_true(call.timeout_ms == HEARTH_CONNECT_NO_TIMEOUT);
    head.protocol_version = HEARTH_STR("1");
    head.timeout_ms = HEARTH_STR("250");
    head.content_encoding = HEARTH_STR("gzip");
    assert_int_equal(hearth_connect_parse_head(&head, &call, &err), HEARTH_OK);
    assert_int_equal(call.timeout_ms, 250);
    assert_int_equal(call.compression, HEARTH_COMPRESSION_GZIP);
}

static void a_head_with_another_version_or_a_bad_timeout_is_refused(void **state)
{
    struct hearth_connect_head head = {.content_type = HEARTH_STR("application/proto"),
                                       .protocol_version = HEARTH_STR("2")};
    struct hearth_connect_call call;
    struct hearth_err err = HEARTH_ERR_INIT;
    (void)state;
    assert_int_equal(hearth_connect_parse_head(&head, &call, &err), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(err.msg, "connect-protocol-version must be \"1\": got \"2\"");
    head.protocol_version = HEARTH_STR("1");
    head.timeout_ms = HEARTH_STR("soon");
    assert_int_equal(hearth_connect_parse_head(&head, &call, &err), HEARTH_INVALID_ARGUMENT);
    head.timeout_ms = HEARTH_STR("");
    head.content_encoding = HEARTH_STR("zstd");
    assert_int_equal(hearth_connect_parse_head(&head, &call, &err), HEARTH_UNIMPLEMENTED);
}

static enum hearth_status decode(enum hearth_rpc_codec codec, enum hearth_compression compression,
                                 struct hearth_str body, size_t max_bytes, char name[16])
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 1u << 20);
    struct hearth_inflater *inflater = hearth_inflater_new();
    assert_non_null(inflater);
    struct ProtobufCMessage *message = NULL;
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_rpc_body sent = {body, codec, compression, max_bytes, inflater};
    enum hearth_status status =
        hearth_body_decode(&types__v1__location__descriptor, &sent, &arena, &message, &err);
    if (status == HEARTH_OK) {
        const Types__V1__Location *location = (const Types__V1__Location *)message;
        assert_true(strlen(location->name) < 16);
        memcpy(name, location->name, strlen(location->name) + 1);
    }
    hearth_inflater_free(inflater);
    hearth_arena_release(&arena);
    return status;
}

static void decodes_both_codecs_plain_and_gzipped(void **state)
{
    char name[16];
    struct hearth_buf gz;
    (void)state;
    assert_int_equal(decode(HEARTH_RPC_PROTO, HEARTH_COMPRESSION_NONE,
                            HEARTH_STR("\x0a\x03"
                                       "abc"),
                            100, name),
                     HEARTH_OK);
    assert_string_equal(name, "abc");
    assert_int_equal(decode(HEARTH_RPC_JSON, HEARTH_COMPRESSION_NONE,
                            HEARTH_STR("{\"name\":\"abc\"}"), 100, name),
                     HEARTH_OK);
    assert_string_equal(name, "abc");
    hearth_buf_init(&gz, 0);
    assert_int_equal(hearth_gzip(HEARTH_STR("\x0a\x03"
                                            "abc"),
                                 1, &gz, NULL),
                     HEARTH_OK);
    assert_int_equal(
        decode(HEARTH_RPC_PROTO, HEARTH_COMPRESSION_GZIP, hearth_buf_view(&gz), 100, name),
        HEARTH_OK);
    assert_string_equal(name, "abc");
    hearth_buf_release(&gz);
}

static void expect_wire(enum hearth_rpc_codec codec, enum hearth_compression compression,
                        struct hearth_str body, enum hearth_status expected)
{
    struct hearth_arena arena;
    struct hearth_buf wire;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_inflater *inflater = hearth_inflater_new();
    const struct hearth_rpc_body sent = {body, codec, compression, 100, inflater};

    assert_non_null(inflater);
    hearth_arena_init(&arena, 1u << 20);
    hearth_buf_init(&wire, 0);
    assert_int_equal(hearth_body_wire(&types__v1__location__descriptor, &sent, &arena, &wire, &err),
                     expected);
    if (expected == HEARTH_OK) {
        assert_true(hearth_str_eq_c(hearth_buf_view(&wire), "\x0a\x03"
                                                            "abc"));
    }
    hearth_buf_release(&wire);
    hearth_arena_release(&arena);
    hearth_inflater_free(inflater);
}

static void every_body_has_the_same_wire_form(void **state)
{
    struct hearth_str proto = HEARTH_STR("\x0a\x03"
                                         "abc");
    struct hearth_buf gz;
    (void)state;
    hearth_buf_init(&gz, 0);
    assert_int_equal(hearth_gzip(proto, 1, &gz, NULL), HEARTH_OK);
    expect_wire(HEARTH_RPC_PROTO, HEARTH_COMPRESSION_NONE, proto, HEARTH_OK);
    expect_wire(HEARTH_RPC_PROTO, HEARTH_COMPRESSION_GZIP, hearth_buf_view(&gz), HEARTH_OK);
    expect_wire(HEARTH_RPC_JSON, HEARTH_COMPRESSION_NONE, HEARTH_STR("{\"name\":\"abc\"}"),
                HEARTH_OK);
    expect_wire(HEARTH_RPC_JSON, HEARTH_COMPRESSION_NONE, HEARTH_STR("[]"),
                HEARTH_INVALID_ARGUMENT);
    gz.n -= 4;
    expect_wire(HEARTH_RPC_PROTO, HEARTH_COMPRESSION_GZIP, hearth_buf_view(&gz),
                HEARTH_INVALID_ARGUMENT);
    gz.n = 0;
    for (int i = 0; i < 101; i++) {
        hearth_buf_byte(&gz, 'x');
    }
    expect_wire(HEARTH_RPC_PROTO, HEARTH_COMPRESSION_NONE, hearth_buf_view(&gz), HEARTH_TOO_LARGE);
    hearth_buf_release(&gz);
}

static void zero_bytes_are_an_empty_message_in_proto_but_not_in_json(void **state)
{
    char name[16] = "x";
    (void)state;
    assert_int_equal(decode(HEARTH_RPC_PROTO, HEARTH_COMPRESSION_NONE, HEARTH_STR(""), 100, name),
                     HEARTH_OK);
    assert_string_equal(name, "");
    assert_int_equal(decode(HEARTH_RPC_PROTO, HEARTH_COMPRESSION_GZIP, HEARTH_STR(""), 100, name),
                     HEARTH_OK);
    assert_int_equal(decode(HEARTH_RPC_JSON, HEARTH_COMPRESSION_NONE, HEARTH_STR(""), 100, name),
                     HEARTH_INVALID_ARGUMENT);
    assert_int_equal(decode(HEARTH_RPC_JSON, HEARTH_COMPRESSION_NONE, HEARTH_STR("{}"), 100, name),
                     HEARTH_OK);
}

static void rejects_a_gzip_bomb_at_the_cap(void **state)
{
    struct hearth_buf zeros, gz;
    char name[16];
    (void)state;
    hearth_buf_init(&zeros, 0);
    hearth_buf_init(&gz, 0);
    char *p = hearth_buf_reserve(&zeros, 1u << 20);
    assert_non_null(p);
    memset(p, 0, 1u << 20);
    zeros.n = 1u << 20;
    assert_int_equal(hearth_gzip(hearth_buf_view(&zeros), 9, &gz, NULL), HEARTH_OK);
    assert_true(gz.n < 4096);
    assert_int_equal(
        decode(HEARTH_RPC_PROTO, HEARTH_COMPRESSION_GZIP, hearth_buf_view(&gz), 65536, name),
        HEARTH_TOO_LARGE);
    assert_int_equal(
        decode(HEARTH_RPC_PROTO, HEARTH_COMPRESSION_NONE, hearth_buf_view(&zeros), 65536, name),
        HEARTH_TOO_LARGE);
    hearth_buf_release(&zeros);
    hearth_buf_release(&gz);
}

static void a_damaged_body_is_invalid_argument(void **state)
{
    char name[16];
    (void)state;
    assert_int_equal(
        decode(HEARTH_RPC_PROTO, HEARTH_COMPRESSION_NONE, HEARTH_STR("\x0a\xff"), 100, name),
        HEARTH_INVALID_ARGUMENT);
    assert_int_equal(
        decode(HEARTH_RPC_PROTO, HEARTH_COMPRESSION_GZIP, HEARTH_STR("\x1f\x8bxx"), 100, name),
        HEARTH_INVALID_ARGUMENT);
    assert_int_equal(
        decode(HEARTH_RPC_PROTO, HEARTH_COMPRESSION_ZLIB, HEARTH_STR("plain"), 100, name),
        HEARTH_INVALID_ARGUMENT);
    assert_int_equal(
        decode(HEARTH_RPC_JSON, HEARTH_COMPRESSION_NONE, HEARTH_STR("{\"name\":1}"), 100, name),
        HEARTH_INVALID_ARGUMENT);
}

static void errors_are_json_with_code_and_message(void **state)
{
    struct hearth_buf out;
    (void)state;
    hearth_buf_init(&out, 0);
    hearth_connect_write_error("invalid_argument", "label \"x\" is\nbad", 0, &out);
    hearth_buf_byte(&out, '\0');
    assert_string_equal(out.p,
                        "{\"code\":\"invalid_argument\",\"message\":\"label \\\"x\\\" is\\nbad\"}");
    hearth_buf_release(&out);
}

static void an_error_of_a_selector_has_its_offset_as_a_detail(void **state)
{
    struct hearth_buf out;
    (void)state;
    hearth_buf_init(&out, 0);
    hearth_connect_write_error("invalid_argument", "bad", 301, &out);
    hearth_buf_byte(&out, '\0');
    /* 08 ac 02: field 1 is 300. */
    assert_string_equal(out.p, "{\"code\":\"invalid_argument\",\"message\":\"bad\",\"details\":[{"
                               "\"type\":\"hearth.v1.SelectorError\",\"value\":\"CKwC\","
                               "\"debug\":{\"offset\":300}}]}");
    hearth_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_timeouts_of_up_to_ten_digits),
        cmocka_unit_test(a_head_needs_no_other_field),
        cmocka_unit_test(a_head_with_another_version_or_a_bad_timeout_is_refused),
        cmocka_unit_test(decodes_both_codecs_plain_and_gzipped),
        cmocka_unit_test(every_body_has_the_same_wire_form),
        cmocka_unit_test(zero_bytes_are_an_empty_message_in_proto_but_not_in_json),
        cmocka_unit_test(rejects_a_gzip_bomb_at_the_cap),
        cmocka_unit_test(a_damaged_body_is_invalid_argument),
        cmocka_unit_test(errors_are_json_with_code_and_message),
        cmocka_unit_test(an_error_of_a_selector_has_its_offset_as_a_detail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
