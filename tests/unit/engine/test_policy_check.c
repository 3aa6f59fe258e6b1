/* test_policy_check.c -- what is wrong with policies, in which words; and how they are written down. */
#include "hearth/engine/policies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct hearth_check_item item_of(enum hearth_monitor monitor, int64_t threshold)
{
    return (struct hearth_check_item){
        .monitor = monitor, .threshold = threshold, .period_seconds = 10, .count = 3};
}

static struct hearth_policy policy_of(struct hearth_policy_target *targets, size_t n)
{
    return (struct hearth_policy){
        .service = HEARTH_STR("sqrt"), .targets = targets, .n_targets = n};
}

static void assert_policy(const struct hearth_policy *policy, const char *want)
{
    struct hearth_limits limits;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_limits_init(&limits);
    enum hearth_status status = hearth_policy_check(policy, &limits, &err);
    assert_string_equal(status == HEARTH_OK ? "" : err.msg, want);
    assert_true(status == HEARTH_OK || status == HEARTH_INVALID_ARGUMENT);
}

static void assert_item(struct hearth_check_item item, const char *want)
{
    struct hearth_policy_target target = {HEARTH_POLICY_ON_CPU, &item, 1};
    struct hearth_policy policy = policy_of(&target, 1);
    char whole[512];
    (void)snprintf(whole, sizeof whole, "check %s in ON_CPU error: %s",
                   hearth_monitor_name(item.monitor), want);
    assert_policy(&policy, want[0] == 0 ? "" : whole);
}

static void numbers_are_checked_in_their_order(void **state)
{
    (void)state;
    struct hearth_check_item item = item_of(HEARTH_MONITOR_PROCESS_CPU, 0);
    item.period_seconds = 0;
    item.count = 0;
    assert_item(item, "period must be bigger than zero");
    item.period_seconds = 2;
    assert_item(item, "count must be bigger than zero");
    item.count = 3;
    assert_item(item, "count must be equal to or smaller than period");
    item.count = 2;
    assert_item(item, "the process CPU percent should be in (0-100]");
    item.threshold = 100;
    assert_item(item, "");
    item.period_seconds = 3601;
    assert_item(item, "a period of 3601 s is longer than the 3600 s that max-policy-period allows");
}

static void each_monitor_has_its_thresholds(void **state)
{
    (void)state;
    assert_item(item_of(HEARTH_MONITOR_PROCESS_CPU, 101),
                "the process CPU percent should be in (0-100]");
    assert_item(item_of(HEARTH_MONITOR_PROCESS_THREAD_COUNT, 0),
                "the process thread count must be bigger than zero");
    assert_item(item_of(HEARTH_MONITOR_PROCESS_THREAD_COUNT, 100000), "");
    assert_item(item_of(HEARTH_MONITOR_SYSTEM_LOAD, -1),
                "the system load must be bigger than zero");
    assert_item(item_of(HEARTH_MONITOR_HTTP_ERROR_RATE, 0),
                "the HTTP error rate should be in (0-100]");
    assert_item(item_of(HEARTH_MONITOR_HTTP_ERROR_RATE, 101),
                "the HTTP error rate should be in (0-100]");
    assert_item(item_of(HEARTH_MONITOR_HTTP_AVG_RESPONSE_TIME, 0),
                "the HTTP average response time must be bigger than zero");
    assert_item(item_of(HEARTH_MONITOR_PROCESS_THREAD_COUNT, INT64_C(2147483648)),
                "parsing threshold error");
    assert_item(item_of((enum hearth_monitor)9, 1), "the monitor type cannot be recognized");
}

static void uris_are_of_http_monitors_and_of_one_kind(void **state)
{
    (void)state;
    struct hearth_str paths[] = {HEARTH_STR("/a"), HEARTH_STR("/a")};
    struct hearth_check_item item = item_of(HEARTH_MONITOR_SYSTEM_LOAD, 3);
    item.uri_paths = paths;
    item.n_uri_paths = 1;
    assert_item(item, "URIs are of HTTP monitors: HTTP_ERROR_RATE, HTTP_AVG_RESPONSE_TIME");
    item.monitor = HEARTH_MONITOR_HTTP_ERROR_RATE;
    assert_item(item, "");
    item.uri_regex = HEARTH_STR("/a.*");
    assert_item(item, "URI paths and a URI regex cannot be given together");
    item.uri_regex = HEARTH_STR("");
    item.n_uri_paths = 2;
    assert_item(item, "URI \"/a\" is given twice");
    paths[1] = HEARTH_STR("");
    assert_item(item, "URI 2 must have 1 to 1024 bytes of UTF-8");
    item.n_uri_paths = 101;
    assert_item(item, "101 URIs are more than the 100 that max-policy-uris allows");
    item.n_uri_paths = 0;
    item.uri_regex = HEARTH_STR("/a/[0-9]+");
    assert_item(item, "");
}

static void an_expression_that_agents_cannot_compile_is_refused(void **state)
{
    (void)state;
    struct hearth_check_item item = item_of(HEARTH_MONITOR_HTTP_ERROR_RATE, 3);
    struct hearth_policy_target target = {HEARTH_POLICY_NETWORK, &item, 1};
    struct hearth_policy policy = policy_of(&target, 1);
    struct hearth_limits limits;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_limits_init(&limits);
    item.uri_regex = HEARTH_STR("(?=x)"); /* not of RE2 */
    assert_int_equal(hearth_policy_check(&policy, &limits, &err), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(err.msg, "check HTTP_ERROR_RATE in NETWORK error: the URI regex"));
}

static void repeated_targets_and_monitors_are_refused(void **state)
{
    (void)state;
    struct hearth_check_item items[] = {item_of(HEARTH_MONITOR_SYSTEM_LOAD, 3),
                                        item_of(HEARTH_MONITOR_SYSTEM_LOAD, 4)};
    struct hearth_policy_target targets[] = {{HEARTH_POLICY_OFF_CPU, items, 2},
                                             {HEARTH_POLICY_OFF_CPU, items, 1}};
    struct hearth_policy policy = policy_of(targets, 2);
    assert_policy(&policy, "contains multiple same target type: OFF_CPU");
    policy.n_targets = 1;
    assert_policy(&policy, "contains multiple same monitor type SYSTEM_LOAD in OFF_CPU");
    targets[0].kind = (enum hearth_policy_kind)4;
    assert_policy(&policy, "target 1: a policy starts ON_CPU, OFF_CPU or NETWORK");
    policy.n_targets = 0;
    assert_policy(&policy, "");
    policy.service = HEARTH_STR("");
    assert_policy(&policy, "the service id cannot be empty");
}

/* ---- writing ---- */

static void finish(struct hearth_policy *policy, struct hearth_arena *arena)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_policy_finish(policy, arena, &err), HEARTH_OK);
    assert_int_equal(policy->uuid.n, 64);
}

static void the_order_of_fields_does_not_make_another_policy(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_check_item a[] = {item_of(HEARTH_MONITOR_PROCESS_CPU, 10),
                                    item_of(HEARTH_MONITOR_SYSTEM_LOAD, 3)};
    struct hearth_check_item b[] = {a[1], a[0]};
    struct hearth_policy_target x[] = {{HEARTH_POLICY_ON_CPU, a, 2}, {HEARTH_POLICY_NETWORK, a, 1}};
    struct hearth_policy_target y[] = {x[1], {HEARTH_POLICY_ON_CPU, b, 2}};
    struct hearth_policy one = policy_of(x, 2), two = policy_of(y, 2);
    finish(&one, &arena);
    finish(&two, &arena);
    assert_true(hearth_str_eq(one.uuid, two.uuid));
    assert_true(hearth_str_eq(one.json, two.json));
    two.is_observing = true;
    finish(&two, &arena);
    assert_false(hearth_str_eq(one.uuid, two.uuid));
    assert_true(hearth_str_eq(one.json, two.json));
    a[0].threshold = 11;
    finish(&one, &arena);
    assert_false(hearth_str_eq(one.json, two.json));
    hearth_arena_release(&arena);
}

static void agents_get_the_shape_that_they_read(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_str paths[] = {HEARTH_STR("/a")};
    struct hearth_check_item items[] = {item_of(HEARTH_MONITOR_PROCESS_CPU, 10),
                                        item_of(HEARTH_MONITOR_HTTP_ERROR_RATE, 5)};
    items[1].uri_paths = paths;
    items[1].n_uri_paths = 1;
    struct hearth_policy_target target = {HEARTH_POLICY_ON_CPU, items, 2};
    struct hearth_policy policy = policy_of(&target, 1);
    policy.uuid = HEARTH_STR("u1");
    struct hearth_policy empty = {.service = HEARTH_STR("e"), .uuid = HEARTH_STR("u2")};
    const struct hearth_policy_entry entries[] = {
        {policy.service, &policy}, {empty.service, &empty}, {HEARTH_STR("x"), NULL}};
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_policy_write_entries(entries, 3, &out);
    hearth_buf_byte(&out, 0);
    assert_string_equal(
        out.p, "[{\"ServiceName\":\"sqrt\",\"UUID\":\"u1\",\"Profiling\":{\"ON_CPU\":{"
               "\"PROCESS_CPU\":{\"Threshold\":\"10\",\"Period\":10,\"Count\":3},"
               "\"HTTP_ERROR_RATE\":{\"Threshold\":\"5\",\"Period\":10,\"Count\":3,"
               "\"URIList\":[\"/a\"]}}}},{\"ServiceName\":\"e\",\"UUID\":\"u2\",\"Profiling\":{}},"
               "{\"ServiceName\":\"x\",\"UUID\":\"\"}]");
    hearth_buf_release(&out);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_checked_in_their_order),
        cmocka_unit_test(each_monitor_has_its_thresholds),
        cmocka_unit_test(uris_are_of_http_monitors_and_of_one_kind),
        cmocka_unit_test(an_expression_that_agents_cannot_compile_is_refused),
        cmocka_unit_test(repeated_targets_and_monitors_are_refused),
        cmocka_unit_test(the_order_of_fields_does_not_make_another_policy),
        cmocka_unit_test(agents_get_the_shape_that_they_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
