/* test_datadog_event.c -- tags, times and labels of an upload. */
#include "hearth/base/mem.h"
#include "hearth/format/datadog_event.h"

#include "arena_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct hearth_datadog_event g_event;
static struct hearth_err g_err;

static enum hearth_status read_json(const char *json)
{
    return hearth_datadog_event_read(hearth_str_c(json), &g_arena, &g_event, &g_err);
}

static void assert_label(const char *name, const char *value)
{
    for (size_t i = 0; i < g_event.n_labels; i++) {
        if (hearth_str_eq_c(g_event.labels[i].name, name)) {
            assert_true(hearth_str_eq_c(g_event.labels[i].value, value));
            return;
        }
    }

    fail_msg("no label %s", name);
}

/* Tags as dd-trace-js 5.132 sends them, with one of DD_TAGS. */
static void tags_of_the_service_become_labels(void **state)
{
    (void)state;
    assert_int_equal(
        read_json("{\"attachments\":[\"wall.pprof\"],\"start\":\"2026-11-25T20:46:18.026Z\","
                  "\"end\":\"2026-11-25T20:46:23.857Z\",\"family\":\"node\",\"version\":\"4\","
                  "\"tags_profiler\":\"language:javascript,runtime:nodejs,runtime_arch:x64,"
                  "runtime_os:linux,runtime_version:v20.20.2,process_id:16732,format:pprof,"
                  "profiler_version:5.132.0,service:shop,env:prod,version:1.2.3,host:web-1,"
                  "runtime-id:529f344a-516c,_dd.rc.client_id:e1a11925,snapshot:periodic,"
                  "git.commit.sha:abc,git.repository_url:https://example.org/shop,"
                  "team:billing,profile_seq:0\",\"endpoint_counts\":{\"GET\":12},"
                  "\"custom_attributes\":[\"order kind\"]}"),
        HEARTH_OK);
    assert_int_equal(g_event.n_labels, 8);
    assert_label("service_name", "shop");
    assert_label("env", "prod");
    assert_label("version", "1.2.3");
    assert_label("host", "web-1");
    assert_label("language", "node");
    assert_label("team", "billing");
    assert_label("service_git_ref", "abc");
    assert_label("service_repository", "https://example.org/shop");
    assert_int_equal(g_event.n_dropped_tags, 0);

    /* Tags that are no label. */
    assert_int_equal(g_event.n_facts, 11);
    assert_true(hearth_str_eq_c(g_event.facts[9].name, "snapshot"));
    assert_true(hearth_str_eq_c(g_event.facts[8].name, "runtime-id"));
    assert_true(hearth_str_eq_c(g_event.facts[8].value, "529f344a-516c"));
    assert_true(hearth_str_eq_c(g_event.start, "2026-11-25T20:46:18.026Z"));
    assert_true(hearth_str_eq_c(g_event.end, "2026-11-25T20:46:23.857Z"));
    assert_true(hearth_str_eq_c(g_event.family, "node"));
    assert_int_equal(g_event.n_custom_keys, 1);
    assert_true(hearth_str_eq_c(g_event.custom_keys[0], "order kind"));
}

static void odd_tags_are_read_or_counted(void **state)
{
    (void)state;
    assert_int_equal(read_json("{\"tags_profiler\":\",url:http://a:80/, plain,:x,empty:,"
                               "service:one,service:two,a.b-c/d:v, 9th:n ,__own:x,\\u00e9:y,,\"}"),
                     HEARTH_OK);
    assert_label("url", "http://a:80/");
    assert_label("service_name", "one");
    assert_label("a_b_c_d", "v");
    assert_label("_9th", "n");
    assert_int_equal(g_event.n_labels, 4);
    /* plain, :x, empty:, service:two, __own, and a letter of two bytes: "__" */
    assert_int_equal(g_event.n_dropped_tags, 6);
}

static void the_application_names_values_that_the_tags_lack(void **state)
{
    (void)state;
    assert_int_equal(read_json("{\"tags_profiler\":\"env:prod\",\"info\":{\"application\":"
                               "{\"service\":\"shop\",\"env\":\"test\",\"version\":\"7\"}}}"),
                     HEARTH_OK);
    assert_label("service_name", "shop");
    assert_label("env", "prod");
    assert_label("version", "7");
    assert_int_equal(read_json("{}"), HEARTH_OK);
    assert_int_equal(g_event.n_labels, 0);
    assert_int_equal(g_event.start.n, 0);
}

static void refuses_bodies_that_are_not_events(void **state)
{
    (void)state;
    assert_int_equal(read_json("{\"tags_profiler\":"), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(g_err.msg, "invalid JSON at line 1"));
    assert_int_equal(read_json("{\"tags_profiler\":[\"a:b\"]}"), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(g_err.msg, "the member \"tags_profiler\" is not a string");

    struct hearth_buf json;
    hearth_buf_init(&json, 0);
    hearth_buf_cstr(&json, "{\"tags_profiler\":\"");
    for (unsigned i = 0; i <= HEARTH_DATADOG_MAX_TAGS; i++) {
        hearth_buf_cstr(&json, "a:b,");
    }
    hearth_buf_cstr(&json, "\"}");
    hearth_buf_append(&json, "", 1);
    assert_int_equal(read_json(json.p), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(g_err.msg, "the upload has 1002 tags; the limit is 1000");

    hearth_buf_reset(&json);
    hearth_buf_cstr(&json, "{\"custom_attributes\":[");
    for (unsigned i = 0; i <= HEARTH_DATADOG_MAX_CUSTOM_KEYS; i++) {
        hearth_buf_printf(&json, "%s\"k%u\"", i == 0 ? "" : ",", i);
    }
    hearth_buf_cstr(&json, "]}");
    hearth_buf_append(&json, "", 1);
    assert_int_equal(read_json(json.p), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(g_err.msg, "the upload has 101 custom_attributes; the limit is 100");
    hearth_buf_release(&json);
}

static void fields_of_a_form_set_the_same_values(void **state)
{
    (void)state;
    static const struct hearth_multipart form = {
        .fields = {{{"version", 7}, {"3", 1}},
                   {{"family", 6}, {"java", 4}},
                   {{"tags[]", 6}, {"service:shop", 12}},
                   {{"tags[]", 6}, {"env:prod,process_id:7", 21}},
                   {{"recording-start", 15}, {" 2026-11-25T20:46:18Z\r\n", 23}},
                   {{"end", 3}, {"2026-11-25T20:46:19Z", 20}}},
        .n_fields = 6,
    };
    assert_int_equal(hearth_datadog_event_read_form(&form, &g_arena, &g_event, &g_err), HEARTH_OK);
    assert_int_equal(g_event.n_labels, 3);
    assert_label("service_name", "shop");
    assert_label("env", "prod");
    assert_label("language", "java");
    assert_true(hearth_str_eq_c(g_event.start, "2026-11-25T20:46:18Z"));
    assert_true(hearth_str_eq_c(g_event.end, "2026-11-25T20:46:19Z"));

    static const struct hearth_multipart bad = {.fields = {{{"tags[]", 6}, {"a:\xff", 3}}},
                                                .n_fields = 1};
    assert_int_equal(hearth_datadog_event_read_form(&bad, &g_arena, &g_event, &g_err),
                     HEARTH_INVALID_ARGUMENT);
    assert_string_equal(g_err.msg, "field 0 of the form is not UTF-8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_of_the_service_become_labels),
        cmocka_unit_test(odd_tags_are_read_or_counted),
        cmocka_unit_test(the_application_names_values_that_the_tags_lack),
        cmocka_unit_test(refuses_bodies_that_are_not_events),
        cmocka_unit_test(fields_of_a_form_set_the_same_values),
    };

    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
