/* test_task_checks.c -- what makes a request for a task valid: order, texts and units of the checks. */
#include "arena_fixture.h"
#include "tasks/tasks_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define NOW    INT64_C(1763546400000)
#define MINUTE INT64_C(60000)

static struct hearth_str g_labels[] = {HEARTH_STR("k8s"), HEARTH_STR("mesh")};
static struct hearth_task_scope g_scope;
static struct hearth_task_request g_request;
static struct hearth_task g_task;

static const char *check(void)
{
    static struct hearth_err err;
    err = (struct hearth_err)HEARTH_ERR_INIT;
    enum hearth_status status =
        hearth_task_check(&g_request, &g_scope, NOW, &g_arena, &g_task, &err);
    assert_true(status == HEARTH_OK || status == HEARTH_INVALID_ARGUMENT);
    return status == HEARTH_OK ? "" : err.msg;
}

static void expect_part(const char *part)
{
    const char *text = check();
    if (strstr(text, part) == NULL) {
        print_error("%s\n", text);
    }
    assert_non_null(strstr(text, part));
}

static void begin(enum hearth_task_kind kind)
{
    g_scope = (struct hearth_task_scope){
        .is_known = true, .labels = g_labels, .n_labels = 2, .n_of_instance = 1};
    g_request = (struct hearth_task_request){.kind = kind};
}

static void members_that_a_kind_of_task_does_not_use_are_refused(void **state)
{
    (void)state;
    const struct hearth_str names[] = {HEARTH_STR("mesh")};
    begin(HEARTH_TASK_ON_CPU);
    g_request.service = HEARTH_STR("shop");
    g_request.duration_ms = MINUTE;
    g_request.labels = names;
    g_request.n_labels = 1;
    const struct hearth_task_request good = g_request;
    assert_string_equal(check(), "");
    g_request.instance = HEARTH_STR("pod-1");
    assert_string_equal(check(), "instance: only network tasks have one");
    g_request = good;
    g_request.endpoint = HEARTH_STR("/pay");
    assert_string_equal(check(), "endpoint: only trace tasks have one");
    g_request = good;
    g_request.exec_args = HEARTH_STR("live");
    assert_string_equal(check(), "exec_args: only async-profiler tasks have them");
    g_request = good;
    g_request.instances = names;
    g_request.n_instances = 1;
    assert_string_equal(check(), "instances: only async-profiler, pprof and trace tasks have them");
    g_request = good;
    g_request.events = names;
    g_request.n_events = 1;
    assert_string_equal(check(), "events: only async-profiler and pprof tasks have them");
    g_request = good;
    g_request.min_duration_ms = 1;
    assert_string_equal(check(), "min_duration_ms: only trace tasks have one");
    g_request = good;
    g_request.dump_period_ms = 10;
    assert_string_equal(check(), "dump_period_ms: only trace and pprof tasks have one");
    g_request = good;
    g_request.max_samples = 5;
    assert_string_equal(check(), "max_samples: only trace tasks have one");
    g_request = good;
    g_request.kind = HEARTH_TASK_TRACE;
    g_request.endpoint = HEARTH_STR("/pay");
    g_request.dump_period_ms = 10;
    g_request.max_samples = 1;
    assert_string_equal(check(), "labels: only on-CPU and off-CPU tasks have them");
}

static void tasks_of_processes_are_checked_in_order(void **state)
{
    (void)state;
    begin((enum hearth_task_kind)0);
    assert_string_equal(check(), "the profiling target could not be null");
    begin(HEARTH_TASK_ON_CPU);
    const struct hearth_str labels[] = {HEARTH_STR("x"), HEARTH_STR(""), HEARTH_STR("mesh"),
                                        HEARTH_STR("x"), HEARTH_STR("a")};
    assert_string_equal(check(), "service could not be empty");
    g_request.service = HEARTH_STR("shop");
    g_request.labels = labels;
    g_request.n_labels = 5;
    assert_string_equal(check(), "The service doesn't have processes with label(s) a, x.");
    g_request.labels = &labels[1];
    g_request.n_labels = 2;
    g_request.duration_ms = MINUTE - 1;
    assert_string_equal(check(), "the fixed time duration must be greater than or equals 60s");
    g_request.duration_ms = MINUTE + 1;
    expect_part("duration_ms must be whole seconds (a multiple of 1000");
    g_request.duration_ms = INT64_MAX - 807;
    expect_part("duration_ms must be whole seconds");
    g_request.duration_ms = MINUTE;
    assert_string_equal(check(), "");
    assert_int_equal(g_task.n_labels, 1);
    assert_string_equal(g_task.labels[0].p, "mesh");
    assert_int_equal(g_task.start_ms, NOW);
    g_request.start_ms = NOW + INT64_C(367) * 86400000;
    expect_part("more than 366 days ahead");
    g_request.start_ms = NOW / 1000; /* in seconds */
    expect_part("1970-01-21T");
    expect_part("the task would have ended already");
    g_request.start_ms = NOW - MINUTE - 1;
    expect_part("the task would have ended already");
    g_request.start_ms = NOW - MINUTE;
    assert_string_equal(check(), "");
    g_request.start_ms = -1;
    assert_string_equal(check(), "");
    assert_int_equal(g_task.start_ms, NOW);
}

static void long_lists_of_labels_are_refused(void **state)
{
    (void)state;
    begin(HEARTH_TASK_OFF_CPU);
    struct hearth_str labels[20];
    static char texts[20][60];
    for (size_t i = 0; i < 20; i++) {
        memset(texts[i], 'a' + (int)i, sizeof texts[i]);
        labels[i] = hearth_str_n(texts[i], sizeof texts[i]);
    }
    g_request.service = HEARTH_STR("shop");
    g_request.duration_ms = MINUTE;
    g_request.labels = g_scope.labels = labels;
    g_request.n_labels = g_scope.n_labels = 20;
    assert_string_equal(check(),
                        "The labels length is bigger than 1000, please reduce the labels count");
    g_request.n_labels = 15; /* 15 x 63 + 1 bytes of JSON */
    assert_string_equal(check(), "");
}

static void trace_tasks_are_checked_in_order(void **state)
{
    (void)state;
    begin(HEARTH_TASK_TRACE);
    g_request.min_duration_ms = -1;
    assert_string_equal(check(), "service cannot be null");
    g_request.service = HEARTH_STR("shop");
    g_request.endpoint = HEARTH_STR(" \t ");
    assert_string_equal(check(), "endpoint name cannot be empty");
    g_request.endpoint = HEARTH_STR(" /pay ");
    assert_string_equal(check(), "monitor duration must greater than 1 minutes");
    g_request.duration_ms = 90000;
    expect_part("duration_ms must be whole minutes (a multiple of 60000");
    g_request.duration_ms = 16 * MINUTE;
    assert_string_equal(check(), "min duration threshold must greater than or equals zero");
    g_request.min_duration_ms = 0;
    assert_string_equal(check(), "max sampling count must greater than zero");
    g_request.max_samples = 10;
    assert_string_equal(check(),
                        "The duration of the monitoring task cannot be greater than 15 minutes");
    g_request.duration_ms = 15 * MINUTE;
    assert_string_equal(check(), "dump period must be greater than or equals 10 milliseconds");
    g_request.dump_period_ms = 10;
    assert_string_equal(check(), "max sampling count must less than 10");
    g_request.max_samples = 9;
    assert_string_equal(check(), "");
    assert_int_equal(g_task.endpoint.n, 4);
}

static void network_tasks_are_checked_in_order(void **state)
{
    (void)state;
    begin(HEARTH_TASK_NETWORK);
    assert_string_equal(check(), "instance could not be empty");
    g_request.instance = HEARTH_STR("i");
    g_request.service = HEARTH_STR("shop");
    g_scope.n_of_instance = 0;
    assert_string_equal(check(), "The instance doesn't have processes.");
    g_scope.n_of_instance = 1;
    assert_string_equal(check(), "");
    assert_int_equal(g_task.sampling.n, 0);
    assert_int_equal(g_task.duration_ms, 10 * MINUTE);
    struct hearth_sampling_rule rules[2] = {{.require_complete_request = true},
                                            {.require_complete_request = true}};
    g_request.rules = rules;
    g_request.n_rules = 2;
    assert_string_equal(check(), "already contains the default sampling config");
    rules[0].uri_regex = rules[1].uri_regex = HEARTH_STR("/a.*");
    assert_string_equal(check(), "already contains the \"/a.*\" sampling config");
    rules[1].uri_regex = HEARTH_STR("(");
    rules[1].has_min_duration = true;
    rules[1].min_duration_ms = -1;
    assert_string_equal(check(), "the min duration must bigger or equals zero");
    rules[1].min_duration_ms = 0;
    rules[1].require_complete_request = false;
    assert_string_equal(check(), "please collect at least one of request or response");
    rules[1].require_complete_response = true;
    rules[1].has_max_request = rules[1].has_max_response = true;
    assert_string_equal(check(), "the max request size must bigger than zero");
    rules[1].max_request_bytes = 1;
    assert_string_equal(check(), "the max response size must bigger than zero");
    rules[1].max_response_bytes = 2;
    expect_part("uri_regex");
    rules[1].uri_regex = HEARTH_STR("");
    rules[1].when_5xx = true;
    assert_string_equal(check(), "");
    assert_string_equal(
        g_task.sampling.p,
        "[{\"URIRegex\":\"/a.*\",\"When4xx\":false,\"When5xx\":false,\"Settings\":{"
        "\"RequireCompleteRequest\":true,\"RequireCompleteResponse\":false}},"
        "{\"MinDuration\":0,\"When4xx\":false,\"When5xx\":true,\"Settings\":{"
        "\"RequireCompleteRequest\":false,\"MaxRequestSize\":1,\"RequireCompleteResponse\":true,"
        "\"MaxResponseSize\":2}}]");
    g_request.duration_ms = MINUTE;
    expect_part("duration_ms: a network task lasts 10 minutes");
}

static void tasks_of_profilers_in_the_program_are_checked_in_order(void **state)
{
    (void)state;
    const struct hearth_str events[] = {HEARTH_STR("CPU"), HEARTH_STR("cpu"), HEARTH_STR("block"),
                                        HEARTH_STR("heap")};
    const struct hearth_str instance = HEARTH_STR("i");
    begin(HEARTH_TASK_ASYNC_PROFILER);
    assert_string_equal(check(), "service cannot be null");
    g_request.service = HEARTH_STR("shop");
    assert_string_equal(check(), "duration cannot be negative");
    g_request.duration_ms = 1500;
    expect_part("whole seconds");
    g_request.duration_ms = 1000;
    assert_string_equal(check(), "events cannot be empty");
    g_request.events = events;
    g_request.n_events = 3;
    assert_string_equal(check(), "serviceInstanceIds cannot be empty");
    g_request.instances = &instance;
    g_request.n_instances = 1;
    expect_part("\"block\" is not one of cpu, wall");
    g_request.n_events = 2;
    assert_string_equal(check(), "");
    assert_int_equal(g_task.n_events, 1);
    g_request.kind = HEARTH_TASK_PPROF;
    g_request.duration_ms = 0;
    g_request.n_events = 1;
    assert_string_equal(check(), "duration cannot be negative");
    g_request.duration_ms = 16 * MINUTE;
    assert_string_equal(check(), "duration cannot be greater than 15 minutes");
    g_request.duration_ms = MINUTE + 1000;
    expect_part("whole minutes");
    g_request.duration_ms = MINUTE;
    assert_string_equal(check(), "");
    g_request.events = &events[2];
    expect_part("dumpPeriod is missing: tasks of block and mutex need the rate of their event");
    g_request.dump_period_ms = -1;
    assert_string_equal(check(), "dumpPeriod cannot be negative");
    g_request.dump_period_ms = 1;
    assert_string_equal(check(), "");
    g_request.n_events = 2;
    expect_part("a pprof task takes one, not 2");
    g_request.events = &events[3];
    g_request.n_events = 1;
    g_request.duration_ms = 0;
    assert_string_equal(check(), "");
    assert_int_equal(g_task.duration_ms, MINUTE);
    g_request.n_events = 0;
    assert_string_equal(check(), "events cannot be empty");
}

/* "cpu,alloc": the events of an async-profiler task as agents are given them. */
static const char *events_of(const char *const *names, size_t n)
{
    static struct hearth_str events[8];
    static char text[128];
    static const struct hearth_str instance = {"i", 1};
    for (size_t i = 0; i < n; i++) {
        events[i] = hearth_str_c(names[i]);
    }
    begin(HEARTH_TASK_ASYNC_PROFILER);
    g_request.service = HEARTH_STR("shop");
    g_request.duration_ms = MINUTE;
    g_request.instances = &instance;
    g_request.n_instances = 1;
    g_request.events = events;
    g_request.n_events = n;
    assert_string_equal(check(), "");
    text[0] = '\0';
    for (size_t i = 0; i < g_task.n_events; i++) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? "," : "",
                       g_task.events[i].p);
    }
    return text;
}

#define EVENTS(...)                               \
    events_of((const char *const[]){__VA_ARGS__}, \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void
events_of_async_profiler_keep_their_order_behind_the_one_that_samples_execution(void **state)
{
    (void)state;
    assert_string_equal(EVENTS("cpu", "lock", "alloc"), "cpu,lock,alloc");
    assert_string_equal(EVENTS("alloc", "cpu", "lock"), "cpu,alloc,lock");
    assert_string_equal(EVENTS("lock", "alloc"), "lock,alloc");
    assert_string_equal(EVENTS("lock", "alloc", "ITIMER"), "itimer,lock,alloc");
    assert_string_equal(EVENTS("lock", "wall"), "wall,lock");
    assert_string_equal(EVENTS("wall", "", "cpu", "wall", "CPU"), "cpu,wall");
    const struct hearth_str two[] = {HEARTH_STR("ctimer"), HEARTH_STR("alloc"), HEARTH_STR("cpu")};
    g_request.events = two;
    g_request.n_events = 3;
    expect_part("one of cpu, ctimer and itimer at a time, not ctimer and cpu");
}

static void texts_have_bounds(void **state)
{
    (void)state;
    static char text[HEARTH_AGENT_NAME_BYTES + 1];
    memset(text, 'x', sizeof text);
    begin(HEARTH_TASK_TRACE);
    g_request.service = hearth_str_n(text, sizeof text);
    expect_part("service has 1025 bytes; it may have 1024");
    begin(HEARTH_TASK_PPROF);
    const struct hearth_str instance = hearth_str_n(text, sizeof text);
    g_request.instances = &instance;
    g_request.n_instances = 1;
    expect_part("a text of the request has 1025 bytes");
    g_request.n_instances = 1001;
    expect_part("has 1001 texts; it may have 1000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_that_a_kind_of_task_does_not_use_are_refused),
        cmocka_unit_test(tasks_of_processes_are_checked_in_order),
        cmocka_unit_test(long_lists_of_labels_are_refused),
        cmocka_unit_test(trace_tasks_are_checked_in_order),
        cmocka_unit_test(network_tasks_are_checked_in_order),
        cmocka_unit_test(tasks_of_profilers_in_the_program_are_checked_in_order),
        cmocka_unit_test(
            events_of_async_profiler_keep_their_order_behind_the_one_that_samples_execution),
        cmocka_unit_test(texts_have_bounds),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
