/* test_policy_file.c -- policies in files: both formats, and what is wrong, with its line. */
#include "policy_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

struct fixture {
    struct hearth_arena arena;
    struct hearth_policy_target *targets;
    size_t n;
    struct hearth_err err;
};

static enum hearth_status read_text(struct fixture *fixture, const char *text)
{
    *fixture = (struct fixture){.err = HEARTH_ERR_INIT};
    hearth_arena_init(&fixture->arena, 0);
    return policy_file_read(hearth_str_c(text), &fixture->arena, &fixture->targets, &fixture->n,
                            &fixture->err);
}

static void assert_refused(const char *text, const char *want)
{
    struct fixture fixture;
    assert_int_equal(read_text(&fixture, text), HEARTH_INVALID_ARGUMENT);
    if (strstr(fixture.err.msg, want) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", want, fixture.err.msg);
    }
    hearth_arena_release(&fixture.arena);
}

static void assert_both_items(const struct fixture *fixture)
{
    assert_int_equal(fixture->n, 1);
    assert_int_equal(fixture->targets[0].kind, HEARTH_POLICY_NETWORK);
    assert_int_equal(fixture->targets[0].n_items, 2);
    const struct hearth_check_item *items = fixture->targets[0].items;
    assert_int_equal(items[0].monitor, HEARTH_MONITOR_SYSTEM_LOAD);
    assert_int_equal(items[0].threshold, 3);
    assert_int_equal(items[0].period_seconds, 10);
    assert_int_equal(items[0].count, 2);
    assert_int_equal(items[0].n_uri_paths, 0);
    assert_int_equal(items[0].uri_regex.n, 0);
    assert_int_equal(items[1].n_uri_paths, 2);
    assert_string_equal(items[1].uri_paths[1].p, "/b");
}

static void the_yaml_of_skywalking_is_read(void **state)
{
    (void)state;
    struct fixture fixture;
    assert_int_equal(read_text(&fixture, "policy:\n"
                                         "  - type: NETWORK\n"
                                         "    checkers:\n"
                                         "      - {type: SYSTEM_LOAD, threshold: 3, period: 10,\n"
                                         "         count: 2, uriList: null, uriRegex: }\n"
                                         "      - type: HTTP_ERROR_RATE\n"
                                         "        threshold: \"5\"\n"
                                         "        period: 1\n"
                                         "        count: 1\n"
                                         "        uriList: [/a, /b]\n"),
                     HEARTH_OK);
    assert_both_items(&fixture);
    hearth_arena_release(&fixture.arena);
}

static void the_json_of_answers_is_read(void **state)
{
    (void)state;
    struct fixture fixture;
    static const char targets[] =
        "\"targets\":[{\"kind\":\"TASK_KIND_NETWORK\",\"checkItems\":[{\"monitor\":"
        "\"MONITOR_KIND_SYSTEM_LOAD\",\"threshold\":\"3\",\"periodSeconds\":10,\"count\":2},"
        "{\"monitor\":\"MONITOR_KIND_HTTP_ERROR_RATE\",\"threshold\":\"5\",\"periodSeconds\":1,"
        "\"count\":1,\"uriPaths\":[\"/a\",\"/b\"]}]}]";
    char text[1024];
    (void)snprintf(text, sizeof text, "{%s}", targets);
    assert_int_equal(read_text(&fixture, text), HEARTH_OK);
    assert_both_items(&fixture);
    hearth_arena_release(&fixture.arena);
    (void)snprintf(text, sizeof text, "{\"policy\":{\"service\":\"s\",\"version\":\"4\",%s}}",
                   targets);
    assert_int_equal(read_text(&fixture, text), HEARTH_OK);
    assert_both_items(&fixture);
    hearth_arena_release(&fixture.arena);
}

static void a_policy_may_be_empty(void **state)
{
    (void)state;
    struct fixture fixture;
    assert_int_equal(read_text(&fixture, "policy: []\n"), HEARTH_OK);
    assert_int_equal(fixture.n, 0);
    hearth_arena_release(&fixture.arena);
    assert_int_equal(read_text(&fixture, "policy:\n"), HEARTH_OK);
    assert_int_equal(fixture.n, 0);
    hearth_arena_release(&fixture.arena);
}

static void mistakes_are_named_with_their_lines(void **state)
{
    (void)state;
    assert_refused("", "the file is empty");
    assert_refused("policy: [", "line ");
    assert_refused("- a\n", "line 1: expected a mapping");
    assert_refused("policy:\n  - type: TRACE\n", "line 2: unknown target \"TRACE\"");
    assert_refused("policy:\n  - checkers: []\n", "line 2: a target has no type");
    assert_refused("policy:\n  - type: ON_CPU\n    checker: []\n",
                   "line 3: \"checker\" is unknown here");
    assert_refused("policy: [{type: ON_CPU, checkers: [{type: CPU}]}]", "unknown monitor \"CPU\"");
    assert_refused("policy: [{type: ON_CPU, checkers: [{count: 3}]}]", "a checker has no type");
    assert_refused("policy: [{type: ON_CPU, checkers: [{type: PROCESS_CPU, threshold: 1.5}]}]",
                   "\"1.5\" is not a whole number");
    assert_refused("policy: [{type: ON_CPU, checkers: [{type: PROCESS_CPU, count: 3000000000}]}]",
                   "is not a whole number up to 2147483647");
    assert_refused("policy: &a [*a]\n", "expected a mapping");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_yaml_of_skywalking_is_read),
        cmocka_unit_test(the_json_of_answers_is_read),
        cmocka_unit_test(a_policy_may_be_empty),
        cmocka_unit_test(mistakes_are_named_with_their_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
