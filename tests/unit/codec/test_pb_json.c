/* test_pb_json.c -- the rules of proto3 JSON for clients: spellings, numbers, errors, limits. */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/codec/pb.h"
#include "hearth/pb/google/v1/profile.pb-c.h"
#include "hearth/pb/opentelemetry/proto/trace/v1/trace.pb-c.h"
#include "hearth/pb/push/v1/push.pb-c.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"
#include "hearth/pb/types/v1/types.pb-c.h"

#include "json_checks.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define REQUEST  &querier__v1__select_merge_stacktraces_request__descriptor
#define RESPONSE &querier__v1__select_merge_stacktraces_response__descriptor
#define SERIES   &querier__v1__select_series_request__descriptor
#define SPAN     &opentelemetry__proto__trace__v1__span__descriptor
#define POINT    &types__v1__point__descriptor

static void both_spellings_name_a_field(void **state)
{
    (void)state;
    const char *want =
        "{\"profileTypeID\":\"cpu\",\"labelSelector\":\"{}\",\"start\":\"1\",\"maxNodes\":\"16\"}";
    becomes(
        REQUEST,
        "{\"profileTypeID\":\"cpu\",\"labelSelector\":\"{}\",\"start\":\"1\",\"maxNodes\":\"16\"}",
        want);
    becomes(REQUEST,
            "{\"profile_typeID\":\"cpu\",\"label_selector\":\"{}\",\"start\":1,\"max_nodes\":16}",
            want);
    becomes(&querier__v1__series_response__descriptor,
            "{\"labels_set\":[{\"labels\":[{\"name\":\"a\"}]}]}",
            "{\"labelsSet\":[{\"labels\":[{\"name\":\"a\"}]}]}");
    becomes(&types__v1__profile_type__descriptor, "{\"ID\":\"x\"}", "{\"ID\":\"x\"}");
    becomes(REQUEST, "{\"profileTypeId\":\"not a name of it\",\"LabelSelector\":\"x\"}", "{}");
}

static void one_field_is_given_once(void **state)
{
    (void)state;
    refuses(REQUEST, "{\"start\":1,\"start\":2}", "duplicate object key");
    refuses(REQUEST, "{\"max_nodes\":1,\"maxNodes\":1}",
            "invalid JSON: maxNodes: expected one spelling of the field only");
    refuses(ALL, "{\"text\":\"a\",\"number\":1}", "number: expected one member of the oneof only");
    becomes(ALL, "{\"text\":\"a\",\"number\":null}", "{\"text\":\"a\"}");
}

static void unknown_fields_and_enum_names_are_ignored(void **state)
{
    (void)state;
    becomes(REQUEST,
            "{\"nope\":{\"a\":[1,null]},\"format\":\"PROFILE_FORMAT_FUNCTIONS\",\"end\":\"2\"}",
            "{\"end\":\"2\"}");
    becomes(SERIES, "{\"aggregation\":\"MEDIAN\"}", "{}");
    Querier__V1__SelectSeriesRequest *request = read_json(SERIES, "{\"aggregation\":\"MEDIAN\"}");
    assert_int_equal(request->aggregation_presence_case, 0);
}

static void enums_are_read_by_name_or_number(void **state)
{
    (void)state;
    becomes(REQUEST, "{\"format\":\"PROFILE_FORMAT_TREE\"}",
            "{\"format\":\"PROFILE_FORMAT_TREE\"}");
    becomes(REQUEST, "{\"format\":4}", "{\"format\":\"PROFILE_FORMAT_PPROF\"}");
    becomes(REQUEST, "{\"format\":77}", "{\"format\":77}");
    becomes(REQUEST, "{\"format\":0}", "{}");
    refuses(REQUEST, "{\"format\":true}", "format: expected the name or number of an enum");
    refuses(REQUEST, "{\"format\":4294967296}", "format: expected the name or number of an enum");
}

static void a_chosen_member_is_written_even_at_its_default(void **state)
{
    (void)state;
    becomes(REQUEST, "{\"maxNodes\":\"0\"}", "{\"maxNodes\":\"0\"}");
    becomes(SERIES, "{\"aggregation\":\"TIME_SERIES_AGGREGATION_TYPE_SUM\"}",
            "{\"aggregation\":\"TIME_SERIES_AGGREGATION_TYPE_SUM\"}");
    becomes(ALL, "{\"text\":\"\"}", "{\"text\":\"\"}");
}

static void integers_are_read_from_numbers_or_strings(void **state)
{
    (void)state;
    becomes(REQUEST, "{\"start\":\"-5\",\"end\":2e3}", "{\"start\":\"-5\",\"end\":\"2000\"}");
    becomes(REQUEST, "{\"start\":\"1e3\",\"end\":5.0}", "{\"start\":\"1000\",\"end\":\"5\"}");
    becomes(REQUEST, "{\"start\":-9223372036854775808,\"end\":\"9223372036854775807\"}",
            "{\"start\":\"-9223372036854775808\",\"end\":\"9223372036854775807\"}");
    becomes(ALL, "{\"oneUint64\":\"18446744073709551615\"}",
            "{\"oneUint64\":\"18446744073709551615\"}");
    refuses(ALL, "{\"oneUint64\":18446744073709551615}", "too big integer");
    static const char *const bad[] = {
        "\"abc\"", "\"\"",   "1.5", "\"1.5\"", "\" 1\"",
        "true",    "{}",     "[]",  "1e19",    "\"9223372036854775808\"",
        "\"0x1\"", "\"NaN\""};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        char json[64];
        (void)snprintf(json, sizeof json, "{\"start\":%s}", bad[i]);
        refuses(REQUEST, json, "invalid JSON: start: expected ");
    }
}

static void ranges_are_those_of_the_type(void **state)
{
    (void)state;
    becomes(ALL, "{\"oneInt32\":-2147483648,\"oneSint32\":2147483647,\"oneUint32\":4294967295}",
            "{\"oneInt32\":-2147483648,\"oneSint32\":2147483647,\"oneUint32\":4294967295}");
    refuses(ALL, "{\"oneInt32\":2147483648}", "oneInt32: expected a 32-bit integer");
    refuses(ALL, "{\"oneSfixed32\":\"-2147483649\"}", "expected a 32-bit integer");
    refuses(ALL, "{\"oneUint32\":-1}", "expected an unsigned 32-bit integer");
    refuses(ALL, "{\"oneFixed32\":4294967296}", "expected an unsigned 32-bit integer");
    refuses(ALL, "{\"oneFixed64\":-1}", "expected an unsigned 64-bit integer");
    refuses(ALL, "{\"oneFloat\":1e39}", "expected a number in the range of a float");
    becomes(ALL, "{\"oneFloat\":\"Infinity\",\"oneDouble\":1e39}",
            "{\"oneFloat\":\"Infinity\",\"oneDouble\":1e+39}");
    refuses(ALL, "{\"oneBool\":\"true\"}", "expected true or false");
    refuses(ALL, "{\"oneBool\":1}", "expected true or false");
    refuses(ALL, "{\"oneString\":1}", "expected a string");
    refuses(ALL, "{\"oneBytes\":\"*\"}", "expected bytes in base64");
    refuses(ALL, "{\"oneBytes\":7}", "expected bytes in base64");
}

static void doubles_are_numbers(void **state)
{
    (void)state;
    becomes(POINT, "{\"value\":0.1,\"timestamp\":5}", "{\"value\":0.1,\"timestamp\":\"5\"}");
    becomes(POINT, "{\"value\":\"2.5\"}", "{\"value\":2.5}");
    becomes(POINT, "{\"value\":\"NaN\"}", "{\"value\":\"NaN\"}");
    becomes(POINT, "{\"value\":\"-Infinity\"}", "{\"value\":\"-Infinity\"}");
    becomes(POINT, "{\"value\":0}", "{}");
    refuses(POINT, "{\"value\":\"x\"}", "value: expected a number");
    refuses(POINT, "{\"value\":\"inf\"}", "value: expected a number");
    refuses(POINT, "{\"value\":1e999}", "overflow");
}

static void bytes_are_base64_of_either_alphabet(void **state)
{
    (void)state;
    becomes(RESPONSE, "{\"tree\":\"-_8\"}", "{\"tree\":\"+/8=\"}");
    becomes(RESPONSE, "{\"tree\":\"\"}", "{}");
}

static void texts_of_opentelemetry_are_mended(void **state)
{
    (void)state;
    static const char *const all[][2] = {
        {"a\\u0000b", "a?b"},       {"\\ud800", "?"},
        {"\\uDC00\\uD800", "??"},   {"\\ud83d\\ude00\\ud83d", "\xf0\x9f\x98\x80?"},
        {"\\\\u0000", "\\\\u0000"}, {"a\xff\\u0000", "a??"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(all); i++) {
        becomes(SPAN, hearth_arena_printf(&g_arena, "{\"name\":\"%s\"}", all[i][0]),
                hearth_arena_printf(&g_arena, "{\"name\":\"%s\"}", all[i][1]));
    }

    refuses(SPAN, "{\"name\":\"\\u00", "invalid JSON");
    refuses(SERIES, "{\"labelSelector\":\"\\u0000\"}", "invalid JSON");
}

static void ids_of_opentelemetry_are_hexadecimal_or_base64(void **state)
{
    (void)state;
    static const char *const traces[] = {
        "000102030405060708090a0b0c0d0eff",
        "000102030405060708090A0B0C0D0EFF",
        "AAECAwQFBgcICQoLDA0O/w==",
        "AAECAwQFBgcICQoLDA0O_w",
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(traces); i++) {
        const char *json = hearth_arena_printf(&g_arena, "{\"traceId\":\"%s\"}", traces[i]);
        becomes(SPAN, json, "{\"traceId\":\"000102030405060708090a0b0c0d0eff\"}");
    }

    becomes(SPAN,
            "{\"span_id\":\"0102030405060708\",\"parentSpanId\":\"AQIDBAUGBwg=\",\"links\":"
            "[{\"spanId\":\"ffffffffffffffff\"}]}",
            "{\"spanId\":\"0102030405060708\",\"parentSpanId\":\"0102030405060708\",\"links\":"
            "[{\"spanId\":\"ffffffffffffffff\"}]}");
    becomes(SPAN, "{\"spanId\":\"\",\"traceId\":\"abc\"}", "{\"traceId\":\"69b7\"}");
    Opentelemetry__Proto__Trace__V1__Span *span = read_json(SPAN, "{\"spanId\":\"00ff\"}");
    assert_int_equal(span->span_id.len, 2);
    assert_memory_equal(span->span_id.data, "\0\xff", 2);
    refuses(SPAN, "{\"links\":[{\"traceId\":\"%\"}]}",
            "links[0].traceId: expected an id in hexadecimal digits");
    refuses(SPAN, "{\"spanId\":7}", "spanId: expected an id in hexadecimal digits");
    becomes(SPAN, "{\"attributes\":[{\"value\":{\"bytesValue\":\"00ff\"}}]}",
            /* base64, as for other bytes */
            "{\"attributes\":[{\"value\":{\"bytesValue\":\"00ff\"}}]}");
}

static void null_means_absent_except_in_lists(void **state)
{
    (void)state;
    becomes(REQUEST,
            "{\"start\":null,\"stackTraceSelector\":null,\"spanSelector\":null,\"maxNodes\":null}",
            "{}");
    refuses(REQUEST, "{\"spanSelector\":[\"a\",null]}", "spanSelector[1]: expected a string");
    becomes(REQUEST, "{\"spanSelector\":[]}", "{}");
}

static void errors_name_the_path(void **state)
{
    (void)state;
    refuses(&querier__v1__select_series_response__descriptor,
            "{\"series\":[{},{\"points\":[{\"value\":1},{\"exemplars\":[{\"value\":[]}]}]}]}",
            "invalid JSON: series[1].points[1].exemplars[0].value: expected an integer");
    refuses(RESPONSE, "{\"flamegraph\":[]}", "flamegraph: expected an object");
    refuses(RESPONSE, "{\"flamegraph\":{\"names\":{}}}", "flamegraph.names: expected an array");
    refuses(ALL, "{\"byNumber\":{\"7\":{\"at\":1}}}", "byNumber.7.at: expected an RFC 3339 time");
}

static void errors_of_syntax_name_line_and_column(void **state)
{
    (void)state;
    refuses(REQUEST, "{\n  \"start\": 1,\n}", "invalid JSON at line 3, column 1");
    refuses(REQUEST, "", "the JSON body is empty");
    refuses(REQUEST, "[]", "an object is expected");
    refuses(REQUEST, "7", "invalid JSON at line 1");
    refuses(REQUEST, "{} {}", "end of file expected");
    refuses(REQUEST, "{\"labelSelector\":\"\xff\"}", "unable to decode byte 0xff");
    refuses(REQUEST, "{\"labelSelector\":\"a\\u0000b\"}", "invalid JSON at line 1");
    refuses(REQUEST, "{\"labelSelector\":\"\\ud800\"}", "invalid JSON at line 1");
    refuses(REQUEST, "{'start':1}", "invalid JSON at line 1");
}

static void strings_keep_every_character(void **state)
{
    (void)state;
    becomes(&types__v1__label_pair__descriptor,
            "{\"name\":\"\\ud83d\\ude00\\n\\\"\\/\",\"value\":\"caf\xc3\xa9 \\u2028\"}",
            "{\"name\":\"\xf0\x9f\x98\x80\\n\\\"/\",\"value\":\"caf\xc3\xa9 \\u2028\"}");
}

static void an_empty_message_is_braces(void **state)
{
    (void)state;
    becomes(RESPONSE, "{}", "{}");
    becomes(RESPONSE, " {\"flamegraph\": {} } ", "{\"flamegraph\":{}}");
}

static void memory_limits_hold_for_text_and_message(void **state)
{
    (void)state;
    struct hearth_buf json;
    hearth_buf_init(&json, 0);
    hearth_buf_cstr(&json, "{\"x\":[[]");
    for (unsigned i = 0; i < 100000; i++) { /* 300 KB of text, 13 MB as a tree */
        hearth_buf_cstr(&json, ",[]");
    }

    hearth_buf_cstr(&json, "]}");
    struct hearth_arena small;
    hearth_arena_init(&small, 4 << 20);
    ProtobufCMessage *message = NULL;
    assert_int_equal(hearth_pb_from_json(REQUEST, hearth_buf_view(&json), &small, &message, &g_err),
                     HEARTH_NO_MEMORY);
    hearth_arena_release(&small);
    hearth_arena_init(&small, 64 << 20);
    assert_int_equal(hearth_pb_from_json(REQUEST, hearth_buf_view(&json), &small, &message, &g_err),
                     HEARTH_OK);
    assert_true(small.used_bytes < 10000); /* ignored fields use no memory of the arena */
    hearth_arena_release(&small);
    hearth_buf_release(&json);
}

static void reports_refused_memory_at_every_step(void **state)
{
    (void)state;
    const char *json =
        "{\"byName\":{\"a\":\"1\"},\"manyString\":[\"x\"],\"oneBytes\":\"AAAA\",\"child\":{},"
        "\"manyInt64\":[1]}";
    size_t n_refused = 0;
    for (uint64_t nth = 1;; nth++) {
        struct hearth_arena arena;

        hearth_arena_init(&arena, 0);
        ProtobufCMessage *message = NULL;
        hearth_mem_fail_after(nth);
        enum hearth_status status =
            hearth_pb_from_json(ALL, hearth_str_c(json), &arena, &message, &g_err);
        hearth_mem_fail_after(0);
        hearth_arena_release(&arena);
        if (status == HEARTH_OK) {
            break;
        }

        assert_int_equal(status, HEARTH_NO_MEMORY);
        n_refused++;
    }

    assert_true(n_refused > 10);
    for (size_t limit = 16; limit < 4000; limit += 16) {
        struct hearth_arena arena;
        hearth_arena_init(&arena, limit);
        ProtobufCMessage *message = NULL;
        enum hearth_status status =
            hearth_pb_from_json(ALL, hearth_str_c(json), &arena, &message, &g_err);
        assert_int_equal(status, message == NULL ? HEARTH_NO_MEMORY : HEARTH_OK);
        hearth_arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        JSON_TEST(both_spellings_name_a_field),
        JSON_TEST(one_field_is_given_once),
        JSON_TEST(unknown_fields_and_enum_names_are_ignored),
        JSON_TEST(enums_are_read_by_name_or_number),
        JSON_TEST(a_chosen_member_is_written_even_at_its_default),
        JSON_TEST(integers_are_read_from_numbers_or_strings),
        JSON_TEST(ranges_are_those_of_the_type),
        JSON_TEST(doubles_are_numbers),
        JSON_TEST(bytes_are_base64_of_either_alphabet),
        JSON_TEST(ids_of_opentelemetry_are_hexadecimal_or_base64),
        JSON_TEST(texts_of_opentelemetry_are_mended),
        JSON_TEST(null_means_absent_except_in_lists),
        JSON_TEST(errors_name_the_path),
        JSON_TEST(errors_of_syntax_name_line_and_column),
        JSON_TEST(strings_keep_every_character),
        JSON_TEST(an_empty_message_is_braces),
        JSON_TEST(memory_limits_hold_for_text_and_message),
        JSON_TEST(reports_refused_memory_at_every_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
