/* test_policy_rule.c -- the agents' rule, slot by slot. */
#include "hearth/base/mem.h"
#include "hearth/model/policy_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define START_MS INT64_C(1700000000000)

struct fixture {
    struct hearth_arena arena;
    struct hearth_monitor_line lines[8];
    size_t n_lines;
    struct hearth_policy_trigger *triggers;
    size_t n;
};

static struct fixture *new_fixture(void)
{
    struct fixture *fixture = hearth_mem_zalloc(sizeof *fixture);
    assert_non_null(fixture);
    hearth_arena_init(&fixture->arena, 0);
    return fixture;
}

static void free_fixture(struct fixture *fixture)
{
    hearth_arena_release(&fixture->arena);
    hearth_mem_free(fixture);
}

/* A value each 5 s, starting at second 0. */
static void add_line(struct fixture *fixture, const char *process, enum hearth_monitor monitor,
                     const char *uri, const double *values, size_t n)
{
    struct hearth_monitor_line *line = &fixture->lines[fixture->n_lines++];
    *line = (struct hearth_monitor_line){.instance = HEARTH_STR("pod-1"),
                                         .process = hearth_str_c(process),
                                         .monitor = monitor,
                                         .uri = hearth_str_c(uri),
                                         .n_values = n};
    line->values = hearth_arena_array(&fixture->arena, n, sizeof line->values[0]);
    assert_non_null(line->values);
    for (size_t i = 0; i < n; i++) {
        line->values[i] = (struct hearth_monitor_value){
            START_MS + (int64_t)i * HEARTH_POLICY_CHECK_MS, values[i]};
    }
}

/* Replays targets over the fixture's lines; the triggers are in the fixture afterwards. */
static void replay_targets(struct fixture *fixture, const struct hearth_policy_target *targets,
                           size_t n_targets, int64_t start_ms, int64_t end_ms)
{
    const struct hearth_policy_replay input = {targets,          n_targets, fixture->lines,
                                               fixture->n_lines, start_ms,  end_ms};
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(
        hearth_policy_replay(&input, &fixture->arena, &fixture->triggers, &fixture->n, &err),
        HEARTH_OK);
}

static void replay(struct fixture *fixture, enum hearth_policy_kind kind,
                   struct hearth_check_item *items, size_t n_items)
{
    struct hearth_policy_target target = {kind, items, n_items};
    replay_targets(fixture, &target, 1, START_MS, START_MS + 86400000);
}

static struct hearth_check_item cpu(int64_t threshold, int32_t period, int32_t count)
{
    return (struct hearth_check_item){.monitor = HEARTH_MONITOR_PROCESS_CPU,
                                      .threshold = threshold,
                                      .period_seconds = period,
                                      .count = count};
}

/* ---- windows ---- */

static void
test_a_policy_triggers_when_enough_seconds_of_the_window_reach_the_threshold(void **state)
{
    (void)state;
    struct fixture *fixture = new_fixture();
    const double values[] = {1, 50, 1, 50, 60, 1};
    add_line(fixture, "app", HEARTH_MONITOR_PROCESS_CPU, "", values, 6);
    struct hearth_check_item item = cpu(50, 10, 6);
    replay(fixture, HEARTH_POLICY_ON_CPU, &item, 1);
    /* At the fifth report: five seconds at 50, and the first at 60. */
    assert_int_equal(fixture->n, 1);
    assert_int_equal(fixture->triggers[0].at_ms, START_MS + 20000);
    assert_true(fixture->triggers[0].current == 50.0);
    assert_true(fixture->triggers[0].threshold == 50.0);
    item = cpu(50, 10, 7);
    replay(fixture, HEARTH_POLICY_ON_CPU, &item, 1);
    /* 60 is held for five seconds: one report later it is ten. */
    assert_int_equal(fixture->n, 1);
    assert_int_equal(fixture->triggers[0].at_ms, START_MS + 25000);
    item = cpu(61, 10, 1);
    replay(fixture, HEARTH_POLICY_ON_CPU, &item, 1);
    assert_int_equal(fixture->n, 0);
    free_fixture(fixture);
}

static void the_window_is_as_long_as_the_longest_period_of_the_monitor(void **state)
{
    (void)state;
    struct fixture *fixture = new_fixture();
    const double values[] = {50, 1, 1, 1, 50};
    add_line(fixture, "app", HEARTH_MONITOR_PROCESS_CPU, "", values, 5);
    struct hearth_check_item item = cpu(50, 10, 6), longer = cpu(100, 30, 30);
    struct hearth_policy_target targets[] = {{HEARTH_POLICY_ON_CPU, &item, 1},
                                             {HEARTH_POLICY_OFF_CPU, &longer, 1}};
    replay_targets(fixture, targets, 1, START_MS, START_MS + 60000);
    assert_int_equal(fixture->n, 0);
    replay_targets(fixture, targets, 2, START_MS, START_MS + 60000);
    assert_int_equal(fixture->n, 1);
    assert_int_equal(fixture->triggers[0].kind, HEARTH_POLICY_ON_CPU);
    free_fixture(fixture);
}

static void values_before_the_range_fill_the_first_window(void **state)
{
    (void)state;
    struct fixture *fixture = new_fixture();
    const double values[] = {50, 50, 50};
    add_line(fixture, "app", HEARTH_MONITOR_PROCESS_CPU, "", values, 3);
    struct hearth_check_item item = cpu(50, 10, 10);
    struct hearth_policy_target target = {HEARTH_POLICY_ON_CPU, &item, 1};
    replay_targets(fixture, &target, 1, START_MS + 10000, START_MS + 10000);
    assert_int_equal(fixture->n, 1);
    replay_targets(fixture, &target, 1, START_MS, START_MS + 9999);
    assert_int_equal(fixture->n, 0);
    free_fixture(fixture);
}

static void a_value_is_not_held_over_a_gap(void **state)
{
    (void)state;
    struct fixture *fixture = new_fixture();
    const double values[] = {50, 1};
    add_line(fixture, "app", HEARTH_MONITOR_PROCESS_CPU, "", values, 2);
    fixture->lines[0].values[1].at_ms = START_MS + 30000;
    struct hearth_check_item item = cpu(50, 60, 11);
    replay(fixture, HEARTH_POLICY_ON_CPU, &item, 1);
    assert_int_equal(fixture->n, 0);
    item.count = 10;
    replay(fixture, HEARTH_POLICY_ON_CPU, &item, 1);
    assert_int_equal(fixture->n, 1);
    free_fixture(fixture);
}

/* ---- HTTP ---- */

static void http_values_of_one_report_fill_consecutive_seconds(void **state)
{
    (void)state;
    struct fixture *fixture = new_fixture();
    const double values[] = {0, 60, 70, 80};
    add_line(fixture, "app", HEARTH_MONITOR_HTTP_ERROR_RATE, HEARTH_URI_GLOBAL, values, 4);
    for (size_t i = 1; i < 4; i++) {
        fixture->lines[0].values[i].at_ms = START_MS + 5000; /* the newest first */
    }
    struct hearth_check_item item = {.monitor = HEARTH_MONITOR_HTTP_ERROR_RATE,
                                     .threshold = 50,
                                     .period_seconds = 3,
                                     .count = 3};
    replay(fixture, HEARTH_POLICY_NETWORK, &item, 1);
    assert_int_equal(fixture->n, 1);
    assert_true(fixture->triggers[0].current == 80.0); /* the oldest of the window */
    assert_int_equal(fixture->triggers[0].uri.n, 0);
    item.period_seconds = 2;
    item.count = 2;
    replay(fixture, HEARTH_POLICY_NETWORK, &item, 1);
    assert_true(fixture->triggers[0].current == 70.0);
    free_fixture(fixture);
}

static void an_item_checks_only_its_own_uris(void **state)
{
    (void)state;
    struct fixture *fixture = new_fixture();
    const double values[] = {60};
    struct hearth_str paths[] = {HEARTH_STR("/a"), HEARTH_STR("/b")};
    add_line(fixture, "app", HEARTH_MONITOR_HTTP_ERROR_RATE, "/b", values, 1);
    struct hearth_check_item item = {.monitor = HEARTH_MONITOR_HTTP_ERROR_RATE,
                                     .threshold = 50,
                                     .period_seconds = 1,
                                     .count = 1};
    replay(fixture, HEARTH_POLICY_ON_CPU, &item, 1);
    assert_int_equal(fixture->n, 0);
    item.uri_regex = HEARTH_STR("/b.*");
    replay(fixture, HEARTH_POLICY_ON_CPU, &item, 1);
    assert_int_equal(fixture->n, 0);
    item.uri_regex = HEARTH_STR("");
    item.uri_paths = paths;
    item.n_uri_paths = 2;
    replay(fixture, HEARTH_POLICY_ON_CPU, &item, 1);
    assert_int_equal(fixture->n, 1);
    assert_string_equal(fixture->triggers[0].uri.p, "/b");
    assert_false(fixture->triggers[0].uri_is_regex);
    free_fixture(fixture);
}

/* ---- silence ---- */

static void a_process_does_not_trigger_again_for_twenty_minutes(void **state)
{
    (void)state;
    struct fixture *fixture = new_fixture();
    double values[300];
    for (size_t i = 0; i < 300; i++) {
        values[i] = 99;
    }
    add_line(fixture, "app", HEARTH_MONITOR_PROCESS_CPU, "", values, 300);
    struct hearth_check_item item = cpu(50, 5, 1);
    replay(fixture, HEARTH_POLICY_ON_CPU, &item, 1);
    assert_int_equal(fixture->n, 2);
    assert_int_equal(fixture->triggers[0].at_ms, START_MS);
    /* More than 20 minutes must have passed. */
    assert_int_equal(fixture->triggers[1].at_ms, START_MS + 1205000);
    free_fixture(fixture);
}

static void processes_trigger_individually_and_networks_per_instance(void **state)
{
    (void)state;
    struct fixture *fixture = new_fixture();
    const double values[] = {99};
    add_line(fixture, "app", HEARTH_MONITOR_PROCESS_CPU, "", values, 1);
    add_line(fixture, "proxy", HEARTH_MONITOR_PROCESS_CPU, "", values, 1);
    fixture->lines[0].process_rank = 2;
    fixture->lines[1].process_rank = 1;
    struct hearth_check_item item = cpu(50, 5, 1);
    replay(fixture, HEARTH_POLICY_OFF_CPU, &item, 1);
    assert_int_equal(fixture->n, 2);
    replay(fixture, HEARTH_POLICY_NETWORK, &item, 1);
    assert_int_equal(fixture->n, 1);
    assert_string_equal(fixture->triggers[0].process.p, "proxy");
    free_fixture(fixture);
}

/* ---- messages and names ---- */

static void assert_message(enum hearth_monitor monitor, const char *uri, double current,
                           double threshold, const char *want)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_cause_message(monitor, hearth_str_c(uri), current, threshold, &out);
    hearth_buf_byte(&out, 0);
    assert_false(hearth_buf_failed(&out));
    assert_string_equal(out.p, want);
    hearth_buf_release(&out);
}

static void causes_have_units_and_are_truncated_not_rounded(void **state)
{
    (void)state;
    assert_message(HEARTH_MONITOR_PROCESS_CPU, "", 97.529, 10,
                   "PROCESS_CPU: current 97.52% >= threshold 10.00%");
    assert_message(HEARTH_MONITOR_PROCESS_CPU, "", 0.29, 0.01,
                   "PROCESS_CPU: current 0.29% >= threshold 0.01%");
    assert_message(HEARTH_MONITOR_PROCESS_THREAD_COUNT, "", 7.9, 5,
                   "PROCESS_THREAD_COUNT: current 7 >= threshold 5");
    assert_message(HEARTH_MONITOR_SYSTEM_LOAD, "", 3.99, 2,
                   "SYSTEM_LOAD: current 3 >= threshold 2");
    assert_message(HEARTH_MONITOR_HTTP_ERROR_RATE, "/a", 12.345, 5,
                   "HTTP_ERROR_RATE: current 12.34% >= threshold 5.00% on /a");
    assert_message(HEARTH_MONITOR_HTTP_AVG_RESPONSE_TIME, "", 812.345, 500,
                   "HTTP_AVG_RESPONSE_TIME: current 812.34ms >= threshold 500.00ms");
}

static void every_name_is_found(void **state)
{
    (void)state;
    for (enum hearth_monitor i = 1; i < HEARTH_MONITOR_END; i++) {
        enum hearth_monitor found = 0;
        assert_true(hearth_monitor_find(hearth_str_c(hearth_monitor_name(i)), &found));
        assert_int_equal(found, i);
    }
    enum hearth_policy_kind kind;
    assert_true(hearth_policy_kind_find(HEARTH_STR("NETWORK"), &kind));
    assert_int_equal(kind, HEARTH_POLICY_NETWORK);
    assert_false(hearth_policy_kind_find(HEARTH_STR("TRACE"), &kind));
    assert_false(hearth_policy_kind_find(HEARTH_STR("?"), &kind));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_a_policy_triggers_when_enough_seconds_of_the_window_reach_the_threshold),
        cmocka_unit_test(the_window_is_as_long_as_the_longest_period_of_the_monitor),
        cmocka_unit_test(values_before_the_range_fill_the_first_window),
        cmocka_unit_test(a_value_is_not_held_over_a_gap),
        cmocka_unit_test(http_values_of_one_report_fill_consecutive_seconds),
        cmocka_unit_test(an_item_checks_only_its_own_uris),
        cmocka_unit_test(a_process_does_not_trigger_again_for_twenty_minutes),
        cmocka_unit_test(processes_trigger_individually_and_networks_per_instance),
        cmocka_unit_test(causes_have_units_and_are_truncated_not_rounded),
        cmocka_unit_test(every_name_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
