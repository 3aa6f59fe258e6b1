/* test_otlp_values.c -- attributes of OpenTelemetry as texts. */
#include "hearth/codec/pb.h"

#include "spans/otlp_values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct hearth_arena g_arena;

static Opentelemetry__Proto__Common__V1__KeyValueList *read_list(const char *json)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    ProtobufCMessage *message = NULL;
    assert_int_equal(
        hearth_pb_from_json(&opentelemetry__proto__common__v1__key_value_list__descriptor,
                            hearth_str_c(json), &g_arena, &message, &err),
        HEARTH_OK);
    return (Opentelemetry__Proto__Common__V1__KeyValueList *)message;
}

static void values_become_texts(void **state)
{
    static const struct {
        const char *value, *text;
    } cases[] = {
        {"{\"stringValue\":\"a \\\"b\\\" \\u00e9\"}", "a \"b\" \xc3\xa9"},
        {"{\"stringValue\":\"\"}", ""},
        {"{\"boolValue\":true}", "true"},
        {"{\"boolValue\":false}", "false"},
        {"{\"intValue\":\"-9223372036854775808\"}", "-9223372036854775808"},
        {"{\"intValue\":0}", "0"},
        {"{\"doubleValue\":1.5}", "1.5"},
        {"{\"doubleValue\":\"NaN\"}", "NaN"},
        {"{\"doubleValue\":\"-Infinity\"}", "-Infinity"},
        {"{\"bytesValue\":\"AP8=\"}", "AP8="},
        {"{\"arrayValue\":{}}", "[]"},
        {"{\"arrayValue\":{\"values\":[{\"stringValue\":\"a\\\"\"},{},{\"intValue\":1}]}}",
         "[\"a\\\"\",null,1]"},
        {"{\"kvlistValue\":{\"values\":[{\"key\":\"k\",\"value\":{\"boolValue\":true}},{\"key\":"
         "\"n\"}]}}",
         "{\"k\":true,\"n\":null}"},
        {"{}", ""},
        {"{\"stringValueStrindex\":3}", ""},
    };
    (void)state;
    hearth_arena_init(&g_arena, 1u << 20);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        const char *json = hearth_arena_printf(
            &g_arena, "{\"values\":[{\"key\":\"x\",\"value\":%s}]}", cases[i].value);
        Opentelemetry__Proto__Common__V1__KeyValueList *list = read_list(json);
        struct hearth_str text = hearth_otlp_text(list->values[0]->value, &g_arena);
        if (!hearth_str_eq_c(text, cases[i].text)) {
            fail_msg("%s is \"" HEARTH_STR_FMT "\"", cases[i].value, HEARTH_STR_ARG(text));
        }
    }
    hearth_arena_release(&g_arena);
}

static void the_first_attribute_with_a_value_counts(void **state)
{
    (void)state;
    hearth_arena_init(&g_arena, 1u << 20);
    Opentelemetry__Proto__Common__V1__KeyValueList *list = read_list(
        "{\"values\":[{\"key\":\"a\"},{\"key\":\"a\",\"value\":{\"stringValue\":\"\"}},"
        "{\"key\":\"a\",\"value\":{\"intValue\":5}},{\"key\":\"a\",\"value\":"
        "{\"stringValue\":\"late\"}},{\"key\":\"ab\",\"value\":{\"stringValue\":\"x\"}}]}");
    static const char *const cases[][2] = {{"a", "5"}, {"ab", "x"}, {"b", ""}, {"", ""}};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_str text = hearth_otlp_attribute(list->values, list->n_values,
                                                       hearth_str_c(cases[i][0]), &g_arena);
        assert_true(hearth_str_eq_c(text, cases[i][1]));
    }
    hearth_arena_release(&g_arena);
}

static void a_full_arena_is_remembered(void **state)
{
    (void)state;
    hearth_arena_init(&g_arena, 1u << 20);
    Opentelemetry__Proto__Common__V1__KeyValueList *list = read_list(
        "{\"values\":[{\"key\":\"a\",\"value\":{\"arrayValue\":{\"values\":[{\"stringValue\":"
        "\"0123456789012345678901234567890123456789\"}]}}}]}");
    struct hearth_arena small;
    hearth_arena_init(&small, 16);
    assert_int_equal(hearth_otlp_text(list->values[0]->value, &small).n, 0);
    assert_true(small.refused);
    hearth_arena_release(&small);
    hearth_arena_release(&g_arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_become_texts),
        cmocka_unit_test(the_first_attribute_with_a_value_counts),
        cmocka_unit_test(a_full_arena_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
