/*
 * test_pb_json_types.c -- every type both ways: scalars, maps, times, nesting, and our API's
 * messages.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/codec/pb.h"
#include "hearth/pb/google/v1/profile.pb-c.h"
#include "hearth/pb/push/v1/push.pb-c.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"
#include "hearth/pb/types/v1/types.pb-c.h"

#include "json_checks.h"
#include "rounds.h"

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
#define POINT    &types__v1__point__descriptor

static const char *const g_bombs[] = {
    "[", "{\"a\":", "[{\"child\":", "{\"child\":", "{\"children\":[", "{\"byNumber\":{\"1\":"};

static void nesting_bombs_are_refused_before_they_are_parsed(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_bombs); i++) {
        struct hearth_buf json;
        hearth_buf_init(&json, 0);
        for (unsigned k = 0; k < 200000; k++) {
            hearth_buf_cstr(&json, g_bombs[i]);
        }
        hearth_buf_byte(&json, '\0');
        refuses(ALL, json.p, "nested deeper than 128 levels");
        hearth_buf_release(&json);
    }

    refuses(ALL, "{\"oneString\":\"[[[\\\"[[[\",\"x\":]}",
            "invalid JSON at line 1"); /* not counted */
}

/* Wire form and JSON count a map entry as a message: both accept the same nesting. */
static void messages_nest_as_deep_as_on_the_wire(void **state)
{
    (void)state;
    static const struct {
        const char *open, *close;
        unsigned levels;
    } forms[] = {
        {"{\"child\":", "}", 1}, {"{\"children\":[", "]}", 1}, {"{\"byNumber\":{\"1\":", "}}", 2}};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(forms); i++) {
        for (unsigned n = 1; n <= HEARTH_PB_MAX_DEPTH; n++) {
            struct hearth_buf json, wire;

            hearth_buf_init(&json, 0);
            hearth_buf_init(&wire, 0);
            for (unsigned k = 0; k < n; k++) {
                hearth_buf_cstr(&json, forms[i].open);
            }

            hearth_buf_cstr(&json, "{\"oneInt32\":1}");
            for (unsigned k = 0; k < n; k++) {
                hearth_buf_cstr(&json, forms[i].close);
            }

            hearth_buf_byte(&json, '\0');
            if (n * forms[i].levels + 1 > HEARTH_PB_MAX_DEPTH) {
                refuses(ALL, json.p, "nested deeper than");
            } else {
                ProtobufCMessage *message = read_json(ALL, json.p), *again;
                assert_non_null(message);
                hearth_pb_pack(message, &wire);
                assert_int_equal(
                    hearth_pb_unpack(ALL, hearth_buf_view(&wire), &g_arena, &again, &g_err),
                    HEARTH_OK);
                assert_string_equal(write_json(again), json.p);
            }

            hearth_buf_release(&wire);
            hearth_buf_release(&json);
        }
    }
}

static void writing_stops_at_the_depth_limit(void **state)
{
    (void)state;
    static struct all_types chain[HEARTH_PB_MAX_DEPTH + 1];
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(chain); i++) {
        protobuf_c_message_init(ALL, &chain[i]);
        chain[i].child = i + 1 < HEARTH_ARRAY_LEN(chain) ? &chain[i + 1] : NULL;
    }

    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_pb_to_json(&chain[1].base, &out);
    assert_false(hearth_buf_failed(&out));
    hearth_pb_to_json(&chain[0].base, &out);
    assert_true(hearth_buf_failed(&out));
    hearth_buf_release(&out);
}

static void maps_are_objects(void **state)
{
    (void)state;
    const char *json =
        "{\"byName\":{\"a\":\"1\",\"\":\"0\"},\"byNumber\":{\"-7\":{\"oneInt32\":1},\"8\":{}},"
        "\"byFlag\":{\"true\":\"yes\",\"false\":\"\"}}";
    becomes(ALL, json, json);
    becomes(ALL, "{\"by_name\":{},\"byFlag\":null}", "{}");
    refuses(ALL, "{\"byNumber\":{\"x\":{}}}", "byNumber.x: expected an integer");
    refuses(ALL, "{\"byNumber\":{\"3000000000\":{}}}", "expected a 32-bit integer");
    refuses(ALL, "{\"byFlag\":{\"1\":\"\"}}", "expected \"true\" or \"false\"");
    refuses(ALL, "{\"byName\":{\"a\":null}}", "byName.a: expected an integer");
    refuses(ALL, "{\"byName\":[]}", "byName: expected an object");

    /* Each key has one text, so that an object has no equal keys. */
    refuses(ALL, "{\"byNumber\":{\"1\":{},\"01\":{}}}", "byNumber.01: expected an integer");
    refuses(ALL, "{\"byNumber\":{\"-0\":{},\"0\":{}}}", "byNumber.-0: expected an integer");
}

static void a_map_entry_without_value_is_empty(void **state)
{
    (void)state;
    ProtobufCMessage *message;

    /* by_number (41) with the key 5 only; twice the same key in by_name (40) */
    struct hearth_str wire = HEARTH_STR("\xca\2\2\x08\5\xc2\2\5\x0a\1a\x10\1\xc2\2\5\x0a\1a\x10\2");
    assert_int_equal(hearth_pb_unpack(ALL, wire, &g_arena, &message, &g_err), HEARTH_OK);
    assert_string_equal(write_json(message), "{\"byName\":{\"a\":\"2\"},\"byNumber\":{\"5\":{}}}");
}

static void times_are_rfc_3339(void **state)
{
    (void)state;
    static const char *const same[] = {
        "1970-01-01T00:00:00Z",        "2026-11-20T10:36:30.500Z",
        "2000-02-29T23:59:59.000001Z", "1969-12-31T23:59:59.999999999Z",
        "0001-01-01T00:00:00Z",        "9999-12-31T23:59:59.999999999Z",
        "1900-03-01T00:00:00Z"};
    char json[100];
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(same); i++) {
        (void)snprintf(json, sizeof json, "{\"at\":\"%s\"}", same[i]);
        becomes(ALL, json, json);
    }

    becomes(ALL, "{\"at\":\"2026-11-20T12:06:30.5+01:30\"}",
            "{\"at\":\"2026-11-20T10:36:30.500Z\"}");
    becomes(ALL, "{\"at\":\"2026-12-31T23:00:00-02:00\"}", "{\"at\":\"2027-01-01T01:00:00Z\"}");
    struct all_types *message = read_json(ALL, "{\"at\":\"2026-11-20T10:36:30.25Z\"}");
    assert_int_equal(message->at->seconds, 1795170990);
    assert_int_equal(message->at->nanos, 250000000);
    static const char *const bad[] = {"",
                                      "2026-11-20",
                                      "2026-11-20T10:36:30",
                                      "2026-11-20 10:36:30Z",
                                      "2026-02-29T00:00:00Z",
                                      "2026-13-01T00:00:00Z",
                                      "2026-00-01T00:00:00Z",
                                      "2026-01-01T24:00:00Z",
                                      "2026-01-01T00:60:00Z",
                                      "2026-01-01T00:00:60Z",
                                      "2026-01-01T00:00:00.Z",
                                      "2026-01-01T00:00:00.1234567890Z",
                                      "2026-01-01T00:00:00+1:00",
                                      "2026-01-01T00:00:00Zx",
                                      "0001-01-01T00:00:00+00:01",
                                      "2026-1-01T00:00:00Z",
                                      "20261-01-01T00:00:00Z"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        (void)snprintf(json, sizeof json, "{\"at\":\"%s\"}", bad[i]);
        refuses(ALL, json, "at: expected an RFC 3339 time");
    }
}

static void every_day_of_four_centuries_round_trips(void **state)
{
    (void)state;
    struct time_message time;
    protobuf_c_message_init(&Timestamp_descriptor, &time);
    struct all_types message;
    protobuf_c_message_init(ALL, &message);
    message.at = &time;
    for (int64_t day = -200 * 365; day < 200 * 366; day += 13) {
        time.seconds = day * 86400 + 5;
        char want[32], json[64];
        hearth_clock_format(time.seconds * HEARTH_NS_PER_SEC, want);
        (void)snprintf(json, sizeof json, "{\"at\":\"%.19sZ\"}", want);
        assert_string_equal(write_json(&message), json);
        struct all_types *back = read_json(ALL, json);
        assert_int_equal(back->at->seconds, time.seconds);
        hearth_arena_reset(&g_arena);
    }
}

static void durations_are_seconds(void **state)
{
    (void)state;
    becomes(ALL, "{\"took\":\"1.5s\"}", "{\"took\":\"1.500s\"}");
    becomes(ALL, "{\"took\":\"-0.000000001s\"}", "{\"took\":\"-0.000000001s\"}");
    becomes(ALL, "{\"took\":\"0s\"}", "{\"took\":\"0s\"}");
    becomes(ALL, "{\"took\":\"-315576000000s\"}", "{\"took\":\"-315576000000s\"}");
    static const char *const bad[] = {
        "", "s", "1", "-s", "1.s", "--1s", "+1s", "1.0000000001s", "315576000001s", "1s "};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        char json[100];
        (void)snprintf(json, sizeof json, "{\"took\":\"%s\"}", bad[i]);
        refuses(ALL, json, "took: expected a duration");
    }

    refuses(ALL, "{\"took\":1}", "took: expected a duration");
}

static void times_outside_the_textual_range_fail(void **state)
{
    (void)state;
    struct time_message time;
    struct all_types message;
    protobuf_c_message_init(ALL, &message);
    protobuf_c_message_init(&Timestamp_descriptor, &time);
    static const struct {
        int64_t seconds;
        int32_t nanos;
    } at[] = {{INT64_C(253402300800), 0}, {INT64_MIN, 0}, {0, -1}, {0, 1000000000}};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(at); i++) {
        time.seconds = at[i].seconds;
        time.nanos = at[i].nanos;
        message.at = &time;
        struct hearth_buf out;
        hearth_buf_init(&out, 0);
        hearth_pb_to_json(&message.base, &out);
        assert_true(hearth_buf_failed(&out));
        hearth_buf_release(&out);
    }

    protobuf_c_message_init(&Duration_descriptor, &time);
    time.seconds = 1;
    time.nanos = -1;
    message.at = NULL;
    message.took = &time;
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_pb_to_json(&message.base, &out);
    assert_true(hearth_buf_failed(&out));
    hearth_buf_release(&out);
}

/* Message -> JSON -> message -> wire is the wire form of the first. */
static void survives(const ProtobufCMessageDescriptor *type, const char *json)
{
    struct hearth_buf wire, again;

    hearth_buf_init(&wire, 0);
    hearth_buf_init(&again, 0);
    ProtobufCMessage *first = read_json(type, json), *second, *third;
    if (first == NULL) {
        fail_msg("%s: %s", json, g_err.msg);
    }

    hearth_pb_pack(first, &wire);
    assert_true(wire.n > 0);
    assert_int_equal(hearth_pb_unpack(type, hearth_buf_view(&wire), &g_arena, &second, &g_err),
                     HEARTH_OK);
    assert_string_equal(write_json(second), json);
    third = read_json(type, write_json(second));
    hearth_pb_pack(third, &again);
    assert_true(hearth_str_eq(hearth_buf_view(&wire), hearth_buf_view(&again)));
    hearth_buf_release(&again);
    hearth_buf_release(&wire);
}

static void every_scalar_survives_both_forms(void **state)
{
    (void)state;
    survives(ALL,
             "{\"oneInt32\":-1,\"oneSint32\":-2,\"oneSfixed32\":-3,\"oneInt64\":\"-4\","
             "\"oneSint64\":\"-5\","
             "\"oneSfixed64\":\"-6\",\"oneUint32\":7,\"oneFixed32\":4294967295,\"oneUint64\":\"9\","
             "\"oneFixed64\":\"18446744073709551615\",\"oneFloat\":0.1,\"oneDouble\":0.1,"
             "\"oneBool\":true,"
             "\"oneString\":\"x\",\"oneBytes\":\"AAE=\",\"child\":{\"oneFloat\":3.4028235e+38}}");
    survives(
        ALL,
        "{\"manyInt32\":[0,-1],\"manySint32\":[-2147483648],\"manySfixed32\":[1,2,3],"
        "\"manyInt64\":[\"-9223372036854775808\",\"0\"],\"manySint64\":[\"1\"],\"manySfixed64\":["
        "\"-1\"],"
        "\"manyUint32\":[4294967295],\"manyFixed32\":[0],\"manyUint64\":[\"18446744073709551615\"],"
        "\"manyFixed64\":[\"1\",\"2\"],\"manyFloat\":[1.5,\"NaN\",-0.0],\"manyDouble\":[1e-300,\"-"
        "Infinity\"],"
        "\"manyBool\":[true,false],\"manyString\":[\"\",\"b\"],\"manyBytes\":[\"\",\"/w==\"],"
        "\"children\":[{},{\"oneInt32\":1}]}");
}

static void the_messages_of_the_api_survive_both_forms(void **state)
{
    (void)state;
    survives(RESPONSE, "{\"flamegraph\":{\"names\":[\"total\",\"main\"],\"levels\":[{\"values\":["
                       "\"0\",\"10\",\"0\",\"0\"]},"
                       "{\"values\":[\"0\",\"10\",\"5\",\"1\"]}],\"total\":\"10\",\"maxSelf\":"
                       "\"5\"},\"tree\":\"AAE=\","
                       "\"dot\":\"digraph\",\"pprof\":{\"profile\":{\"timeNanos\":\"1\"}}}");
    survives(
        &querier__v1__select_series_response__descriptor,
        "{\"series\":[{\"labels\":[{\"name\":\"a\",\"value\":\"b\"}],\"points\":[{\"value\":1.5,"
        "\"timestamp\":\"1000\",\"annotations\":[{\"key\":\"k\",\"value\":\"v\"}],\"exemplars\":[{"
        "\"timestamp\":\"1\",\"profileId\":\"p\",\"spanId\":\"s\",\"value\":\"3\",\"labels\":[{}],"
        "\"traceId\":\"t\"}]}]}]}");
    survives(
        REQUEST,
        "{\"profileTypeID\":\"p\",\"labelSelector\":\"{}\",\"start\":\"1\",\"end\":\"2\","
        "\"maxNodes\":\"0\","
        "\"format\":\"PROFILE_FORMAT_DOT\",\"stackTraceSelector\":{\"callSite\":[{\"name\":"
        "\"main\"}],"
        "\"goPgo\":{\"keepLocations\":3,\"aggregateCallees\":true}},\"profileIdSelector\":[\"i\"],"
        "\"async\":{\"requestId\":\"r\",\"type\":\"ASYNC_QUERY_TYPE_FORCE\"},\"traceIdSelector\":["
        "\"t\"],"
        "\"spanSelector\":[\"s\"]}");
    survives(
        SERIES,
        "{\"groupBy\":[\"a\"],\"step\":0.25,\"aggregation\":\"TIME_SERIES_AGGREGATION_TYPE_SUM\","
        "\"limit\":\"0\",\"exemplarType\":\"EXEMPLAR_TYPE_SPAN\"}");
    survives(
        &google__v1__profile__descriptor,
        "{\"sampleType\":[{\"type\":\"1\",\"unit\":\"2\"}],\"sample\":[{\"locationId\":[\"1\","
        "\"18446744073709551615\"],\"value\":[\"-1\"],\"label\":[{\"key\":\"3\",\"num\":\"-4\"}]}],"
        "\"mapping\":[{\"id\":\"1\",\"memoryLimit\":\"2\",\"hasFunctions\":true,"
        "\"hasInlineFrames\":true}],"
        "\"location\":[{\"id\":\"1\",\"line\":[{\"functionId\":\"1\",\"line\":\"7\"}],\"isFolded\":"
        "true}],"
        "\"function\":[{\"id\":\"1\",\"name\":\"5\"}],\"stringTable\":[\"\",\"cpu\"],"
        "\"dropFrames\":\"1\","
        "\"periodType\":{},\"comment\":[\"1\",\"2\"],\"defaultSampleType\":\"1\"}");
    survives(&push__v1__push_request__descriptor,
             "{\"series\":[{\"labels\":[{\"name\":\"__name__\",\"value\":\"cpu\"}],\"samples\":[{"
             "\"rawProfile\":"
             "\"H4sI\",\"ID\":\"1\"}]}]}");
}

static void a_large_flame_graph_is_written_without_a_tree(void **state)
{
    (void)state;
    enum {
        N_NODES = 100000,
        N_LEVELS = 100
    };

    static int64_t values[N_NODES * 4];
    static Querier__V1__Level levels[N_LEVELS];
    static Querier__V1__Level *level_ptrs[N_LEVELS];
    static char names[N_NODES / 10][32];
    static char *name_ptrs[N_NODES / 10];
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(values); i++) {
        values[i] = (int64_t)(i * 2654435761u % 1000000007u);
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        (void)snprintf(names[i], sizeof names[i], "runtime.function_%zu", i);
        name_ptrs[i] = names[i];
    }

    for (size_t i = 0; i < N_LEVELS; i++) {
        querier__v1__level__init(&levels[i]);
        levels[i].n_values = HEARTH_ARRAY_LEN(values) / N_LEVELS;
        levels[i].values = values + i * levels[i].n_values;
        level_ptrs[i] = &levels[i];
    }

    Querier__V1__FlameGraph graph = QUERIER__V1__FLAME_GRAPH__INIT;
    graph.n_names = HEARTH_ARRAY_LEN(names);
    graph.names = name_ptrs;
    graph.n_levels = N_LEVELS;
    graph.levels = level_ptrs;
    struct hearth_buf out, wire, again;
    hearth_buf_init(&out, 0);
    hearth_buf_init(&wire, 0);
    hearth_buf_init(&again, 0);
    int64_t before_ns = hearth_clock_thread_cpu_ns();
    hearth_pb_to_json(&graph.base, &out);
    int64_t took_ns = hearth_clock_thread_cpu_ns() - before_ns;
    assert_false(hearth_buf_failed(&out));
    print_message("100,000 nodes: %zu bytes of JSON in %.2f ms\n", out.n, (double)took_ns / 1e6);
    ProtobufCMessage *back = NULL;
    assert_int_equal(hearth_pb_from_json(&querier__v1__flame_graph__descriptor,
                                         hearth_buf_view(&out), &g_arena, &back, &g_err),
                     HEARTH_OK);
    hearth_pb_pack(&graph.base, &wire);
    hearth_pb_pack(back, &again);
    assert_true(hearth_str_eq(hearth_buf_view(&wire), hearth_buf_view(&again)));
    hearth_buf_release(&again);
    hearth_buf_release(&wire);
    hearth_buf_release(&out);
}

static void floats_are_read_back_unchanged(void **state)
{
    (void)state;
    uint32_t bits = 2463534242u;
    struct all_types message;
    protobuf_c_message_init(ALL, &message);
    for (int i = 0; i < test_rounds(20000); i++) {
        bits ^= bits << 13;
        bits ^= bits >> 17;
        bits ^= bits << 5;
        memcpy(&message.one_float, &bits, sizeof bits);
        if (isfinite(message.one_float)) {
            struct all_types *back = read_json(ALL, write_json(&message));
            assert_true(back->one_float == message.one_float);
        }
        hearth_arena_reset(&g_arena);
    }

    message.one_float = FLT_MAX;
    assert_true(((struct all_types *)read_json(ALL, write_json(&message)))->one_float == FLT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        JSON_TEST(nesting_bombs_are_refused_before_they_are_parsed),
        JSON_TEST(messages_nest_as_deep_as_on_the_wire),
        JSON_TEST(writing_stops_at_the_depth_limit),
        JSON_TEST(maps_are_objects),
        JSON_TEST(a_map_entry_without_value_is_empty),
        JSON_TEST(times_are_rfc_3339),
        JSON_TEST(every_day_of_four_centuries_round_trips),
        JSON_TEST(durations_are_seconds),
        JSON_TEST(times_outside_the_textual_range_fail),
        JSON_TEST(every_scalar_survives_both_forms),
        JSON_TEST(the_messages_of_the_api_survive_both_forms),
        JSON_TEST(a_large_flame_graph_is_written_without_a_tree),
        JSON_TEST(floats_are_read_back_unchanged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
