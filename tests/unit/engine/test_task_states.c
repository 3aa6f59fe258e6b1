/* test_task_states.c -- how a task stands, and the words for it, by facts alone. */
#include "arena_fixture.h"
#include "tasks/tasks_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define START  INT64_C(1763546400000)
#define MINUTE INT64_C(60000)

static struct hearth_task g_task;
static struct hearth_task_fact g_fact;
static struct hearth_task_target g_targets[4];

/* A task of a minute from START that nobody was told of. */
static void begin(enum hearth_task_kind kind)
{
    hearth_arena_reset(&g_arena);
    memset(g_targets, 0, sizeof g_targets);
    g_fact = (struct hearth_task_fact){.targets = g_targets};
    g_task = (struct hearth_task){
        .kind = kind,
        .origin = HEARTH_TASK_CREATED,
        .service = HEARTH_STR("shop"),
        .instance = HEARTH_STR("i-1"),
        .endpoint = HEARTH_STR("/pay"),
        .start_ms = START,
        .duration_ms = MINUTE,
        .min_duration_ms = 100,
    };
}

static struct hearth_task_target *told(const char *name)
{
    struct hearth_task_target *target = &g_targets[g_fact.n_targets++];
    target->target = hearth_str_c(name);
    target->instance = hearth_str_c(name);
    target->agent_id = HEARTH_STR("agent-1");
    target->delivered_ms = START + 1000;
    return target;
}

static void expect_at(int64_t now_ms, enum hearth_task_state state, const char *part)
{
    struct hearth_judgement judgement, targets[4];
    hearth_task_judge(&g_task, &g_fact, now_ms, &g_arena, &judgement, targets);
    if (judgement.state != state || strstr(judgement.reason.p, part) == NULL) {
        print_error("state %d, reason: %s\n", (int)judgement.state, judgement.reason.p);
    }
    assert_int_equal(judgement.state, state);
    assert_non_null(strstr(judgement.reason.p, part));
}

static void
a_task_that_nobody_was_told_of_says_what_is_missing_and_the_same_after_its_end(void **state)
{
    (void)state;
    const int64_t now = START + 1, after = START + MINUTE + 1;
    begin(HEARTH_TASK_ON_CPU);
    expect_at(START - 1, HEARTH_TASK_NOT_STARTED, "it starts at 2025-11-19T10:00:00.000Z");
    expect_at(now, HEARTH_TASK_WAITING_FOR_AGENT, "no agent of processes (eBPF) has ever asked");
    expect_at(after, HEARTH_TASK_NEVER_DELIVERED, "no agent of processes (eBPF) has ever asked");
    g_fact.last_asked_ms = START - MINUTE;
    expect_at(now, HEARTH_TASK_WAITING_FOR_AGENT, "since about 2025-11-19T09:59Z");
    g_fact.asked_after_ms = after;
    expect_at(after, HEARTH_TASK_NEVER_DELIVERED,
              "the first came at 2025-11-19T10:01:00.001Z, too late");
    g_fact.n_asked = 2;
    expect_at(now, HEARTH_TASK_NO_PROCESS_MATCHES,
              "2 agents ask, but none reports a process of service shop");
    expect_at(after, HEARTH_TASK_NEVER_DELIVERED, "none reports a process");
    g_fact.n_processes = 3;
    struct hearth_str labels[] = {HEARTH_STR("x"), HEARTH_STR("y")};
    g_task.labels = labels;
    g_task.n_labels = 2;
    expect_at(now, HEARTH_TASK_NO_PROCESS_MATCHES, "3 processes, but none has the label(s) x, y");
    g_fact.n_matching = 2;
    expect_at(now, HEARTH_TASK_UNSUPPORTED, "2 processes match, but their agents say");
    expect_at(after, HEARTH_TASK_NEVER_DELIVERED, "cannot be profiled");
    g_fact.n_profilable = 1;
    g_fact.last_asked_ms = START + 59999; /* noted once a minute */
    expect_at(now, HEARTH_TASK_WAITING_FOR_AGENT,
              "last asked at about 2025-11-19T10:00Z, and is told when it asks again");
    expect_at(after, HEARTH_TASK_NEVER_DELIVERED,
              "before a matching agent asked for it; one last asked at about 2025-11-19T10:00Z");
    g_fact.n_matching = 0;
    g_fact.reported_after_ms = after;
    expect_at(after, HEARTH_TASK_NEVER_DELIVERED,
              "no matching process was reported before the end");
    begin(HEARTH_TASK_NETWORK);
    g_fact.n_asked = g_fact.n_processes = 1;
    expect_at(now, HEARTH_TASK_NO_PROCESS_MATCHES, "none of instance i-1");
    begin(HEARTH_TASK_PPROF);
    expect_at(now, HEARTH_TASK_WAITING_FOR_AGENT,
              "no instance of the service has ever asked for pprof tasks");
    g_fact.n_asked = 1;
    g_fact.asked = HEARTH_STR("b, c");
    g_task.n_instances = 1;
    expect_at(now, HEARTH_TASK_NO_PROCESS_MATCHES, "instances that ask: b, c; none is one");
    g_task.cancelled_ms = START + 5;
    expect_at(now, HEARTH_TASK_CANCELLED, "before anybody was told");
}

static void a_process_that_got_the_task_is_judged_by_the_data_it_sent(void **state)
{
    (void)state;
    const int64_t end = START + 1000 + MINUTE, over = end + 30001;
    begin(HEARTH_TASK_ON_CPU);
    struct hearth_task_target *target = told("p");
    expect_at(end, HEARTH_TASK_TOLD, "not known yet whether the answer arrived");
    expect_at(over - 2, HEARTH_TASK_TOLD, "told at");
    expect_at(over, HEARTH_TASK_NOTHING_SAMPLED,
              "agent-1 was told at 2025-11-19T10:00:01.000Z and has not been heard of");
    target->confirmed_ms = START + 11000;
    expect_at(end, HEARTH_TASK_TOLD, "it ends at 2025-11-19T10:01:01.000Z");
    expect_at(over, HEARTH_TASK_NOTHING_SAMPLED, "the process was idle");
    g_task.kind = HEARTH_TASK_OFF_CPU;
    expect_at(over, HEARTH_TASK_NOTHING_SAMPLED, "switched off a CPU");
    target->n_records = 7;
    target->last_ms = START + 20000;
    expect_at(end, HEARTH_TASK_RUNNING, "7 stack traces so far");
    expect_at(over, HEARTH_TASK_DONE, "7 stack traces came");
    told("q");
    expect_at(end, HEARTH_TASK_RUNNING, "1 of 2 run");
    expect_at(over, HEARTH_TASK_DONE, "1 of 2 sent data");
    g_task.cancelled_ms = end;
    expect_at(end, HEARTH_TASK_CANCELLED, "2 had been told, 1 of them sent data");
}

static void one_result_is_counted_in_the_singular(void **state)
{
    (void)state;
    static const struct {
        enum hearth_task_kind kind;
        const char *one, *more;
    } cases[] = {
        {HEARTH_TASK_ON_CPU, "1 stack trace came", "2 stack traces came"},
        {HEARTH_TASK_OFF_CPU, "1 stack trace came", "2 stack traces came"},
        {HEARTH_TASK_NETWORK, "1 connection came", "2 connections came"},
        {HEARTH_TASK_TRACE, "1 snapshot came", "2 snapshots came"},
        {HEARTH_TASK_ASYNC_PROFILER, "1 file came", "2 files came"},
        {HEARTH_TASK_PPROF, "1 file came", "2 files came"},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        begin(cases[i].kind);
        struct hearth_task_target *target = told("t");
        target->finished_ms = START + MINUTE;
        target->n_records = 1;
        expect_at(START + MINUTE, HEARTH_TASK_DONE, cases[i].one);
        target->n_records = 2;
        expect_at(START + MINUTE, HEARTH_TASK_DONE, cases[i].more);
    }
}

static void a_trace_task_without_snapshots_describes_the_requests(void **state)
{
    (void)state;
    begin(HEARTH_TASK_TRACE);
    struct hearth_task_target *target = told("i");
    target->confirmed_ms = target->finished_ms = START + MINUTE;
    const int64_t now = START + MINUTE;
    expect_at(now, HEARTH_TASK_NOTHING_SAMPLED, "no traced request at all, so none of /pay");
    target->others = HEARTH_STR("/a, /b");
    expect_at(now, HEARTH_TASK_NOTHING_SAMPLED,
              "no request of /pay was traced; those seen were /a, /b");
    target->n_requests = 3;
    target->slowest_ms = 12;
    expect_at(now, HEARTH_TASK_NOTHING_SAMPLED,
              "shorter than the 100 ms of min_duration_ms; the slowest took 12 ms");
    target->slowest_ms = 120;
    expect_at(now, HEARTH_TASK_NOTHING_SAMPLED,
              "though there were 3 requests of /pay, the slowest of 120 ms");
    target->n_records = 2;
    expect_at(now, HEARTH_TASK_DONE, "2 snapshots came");
}

static void errors_of_agents_are_quoted(void **state)
{
    (void)state;
    begin(HEARTH_TASK_ASYNC_PROFILER);
    struct hearth_task_target *target = told("i");
    target->failed_ms = START + 5;
    char text[300];
    memset(text, 'x', sizeof text);
    text[255] = (char)0xC3; /* a character that is cut */
    text[256] = (char)0xA9;
    target->message = hearth_str_n(text, sizeof text);
    expect_at(START + 6, HEARTH_TASK_BROKEN, "xxx");
    expect_at(START + 6, HEARTH_TASK_BROKEN, "x?");
    target->failed_ms = 0;
    target->too_large_ms = START + 5;
    target->message = HEARTH_STR("limit");
    expect_at(START + 6, HEARTH_TASK_BROKEN, "refused as too large: limit");
    told("j");
    expect_at(START + 6, HEARTH_TASK_TOLD, "1 of 2 were told");
    expect_at(START + 1000 + MINUTE + 90001, HEARTH_TASK_BROKEN, "1 of 2 failed");
}

static void a_task_of_instances_waits_until_it_is_no_longer_handed_out(void **state)
{
    (void)state;
    const int64_t until = START + 5 * MINUTE;
    begin(HEARTH_TASK_PPROF);
    expect_at(until, HEARTH_TASK_WAITING_FOR_AGENT, "no instance of the service has ever asked");
    g_fact.asked_after_ms = until + 7;
    expect_at(
        until + 7, HEARTH_TASK_NEVER_DELIVERED,
        "asked for pprof tasks before it stopped being handed out at 2025-11-19T10:05:00.000Z");
    g_fact.n_asked = g_fact.n_matching = 1;
    g_fact.last_asked_ms = START + MINUTE;
    expect_at(until, HEARTH_TASK_WAITING_FOR_AGENT, "is told when it asks again");
    expect_at(until + 1, HEARTH_TASK_NEVER_DELIVERED,
              "no matching agent asked for it before it stopped being handed out at "
              "2025-11-19T10:05:00.000Z");
    g_fact.n_told_instead = 3;
    expect_at(until, HEARTH_TASK_WAITING_FOR_AGENT, "is told when it asks again");
    expect_at(until + 1, HEARTH_TASK_NEVER_DELIVERED, "had 3 other pprof tasks to run");
    g_fact.n_before = 1;
    expect_at(until, HEARTH_TASK_WAITING_FOR_AGENT, "1 other pprof task comes first: ");

    /* Told at the last moment, it runs its whole duration, and has time to upload. */
    told("i-1")->delivered_ms = until;
    g_targets[0].confirmed_ms = until + 20000;
    expect_at(until + 2 * MINUTE, HEARTH_TASK_TOLD, "it ends at 2025-11-19T10:06:00.000Z");
    expect_at(until + 3 * MINUTE, HEARTH_TASK_NOTHING_SAMPLED, "uploaded no file");
    assert_int_equal(hearth_task_last_end(&g_task, &g_fact), until + MINUTE);
    g_task.duration_ms = 6 * MINUTE;
    assert_int_equal(hearth_task_handed_out_until(&g_task), START + 6 * MINUTE);
}

static void refused_data_is_not_reported_as_an_idle_process(void **state)
{
    (void)state;
    const int64_t over = START + 1000 + MINUTE + 30001;
    begin(HEARTH_TASK_ON_CPU);
    struct hearth_task_target *target = told("p");
    target->confirmed_ms = START + 11000;
    target->failed_ms = START + 12000;
    target->message = HEARTH_STR("the clock");
    expect_at(START + 13000, HEARTH_TASK_BROKEN, "the clock");
    expect_at(over, HEARTH_TASK_BROKEN, "the clock");
    assert_int_equal(hearth_task_last_end(&g_task, &g_fact), START + 1000 + MINUTE);
    target->n_records = 2;
    expect_at(START + 13000, HEARTH_TASK_RUNNING, "2 stack traces so far");
    expect_at(over, HEARTH_TASK_DONE, "; not all: the clock");
    /* That an agent has finished a trace task says nothing of its data; a file that came later does. */
    begin(HEARTH_TASK_TRACE);
    target = told("i");
    target->failed_ms = START + 12000;
    target->message = HEARTH_STR("the clock");
    target->finished_ms = START + 14000;
    expect_at(START + 15000, HEARTH_TASK_BROKEN, "the clock");
    g_task.kind = HEARTH_TASK_PPROF;
    target->n_records = 1;
    expect_at(START + 15000, HEARTH_TASK_DONE, "1 file came");
    target->failed_ms = START + 15000;
    expect_at(START + 15000, HEARTH_TASK_BROKEN, "the clock");
}

static void a_run_that_was_profiled_only_in_part_reports_the_covered_time(void **state)
{
    (void)state;
    const int64_t over = START + 1000 + 2 * MINUTE + 30001;
    begin(HEARTH_TASK_OFF_CPU);
    g_task.duration_ms = 2 * MINUTE;
    struct hearth_task_target *target = told("p");
    target->n_records = 5;
    target->covered_ms = 20000;
    expect_at(over, HEARTH_TASK_DONE, "; they cover 20 s of the 2 min of the task");
    expect_at(over, HEARTH_TASK_DONE, "nothing to sample in the rest");
    static const struct {
        int64_t covered_ms, now_ms;
    } silent[] = {
        {20000, START + MINUTE},    /* it goes on */
        {2 * MINUTE - 14999, over}, /* flushes are 5 s apart */
        {3 * MINUTE, over},         /* two agents ran it */
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(silent); i++) {
        struct hearth_judgement judgement;
        target->covered_ms = silent[i].covered_ms;
        hearth_task_judge(&g_task, &g_fact, silent[i].now_ms, &g_arena, &judgement, NULL);
        assert_null(strstr(judgement.reason.p, "cover"));
    }
    /* A tenth of an hour is 6 minutes. */
    g_task.duration_ms = 60 * MINUTE;
    target->covered_ms = 55 * MINUTE;
    expect_at(START + 70 * MINUTE, HEARTH_TASK_DONE, "came");
}

static void cancelling_finds_the_end_of_the_last_run(void **state)
{
    (void)state;
    begin(HEARTH_TASK_ON_CPU);
    assert_int_equal(hearth_task_last_end(&g_task, &g_fact), 0);
    told("p");
    told("q")->delivered_ms = START + 40000;
    assert_int_equal(hearth_task_last_end(&g_task, &g_fact), START + 40000 + MINUTE);
    g_targets[1].finished_ms = START + 41000;
    assert_int_equal(hearth_task_last_end(&g_task, &g_fact), START + 1000 + MINUTE);
    g_task.kind = HEARTH_TASK_NETWORK;
    assert_int_equal(hearth_task_last_end(&g_task, &g_fact), START + MINUTE);
}

static void an_imported_task_never_runs(void **state)
{
    (void)state;
    begin(HEARTH_TASK_ON_CPU);
    g_task.origin = HEARTH_TASK_IMPORTED;
    expect_at(START + 1, HEARTH_TASK_NOTHING_SAMPLED, "imported without results");
    told("p")->n_records = 3;
    expect_at(START + 1, HEARTH_TASK_DONE, "came, the last at");
    begin(HEARTH_TASK_NETWORK);
    g_task.origin = HEARTH_TASK_IMPORTED;
    expect_at(START + 1, HEARTH_TASK_NOTHING_SAMPLED, "is not in exported tasks");
}

static void distant_times_are_clamped_to_the_last_representable_one(void **state)
{
    (void)state;
    hearth_arena_reset(&g_arena);
    const char *last = hearth_task_time(INT64_MAX / HEARTH_NS_PER_MS, &g_arena);
    assert_string_equal(hearth_task_time(INT64_MAX, &g_arena), last);
    assert_memory_equal(last, "2262", 4);
    assert_memory_equal(hearth_task_time(INT64_MIN, &g_arena), "1970", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_task_that_nobody_was_told_of_says_what_is_missing_and_the_same_after_its_end),
        cmocka_unit_test(a_process_that_got_the_task_is_judged_by_the_data_it_sent),
        cmocka_unit_test(one_result_is_counted_in_the_singular),
        cmocka_unit_test(a_trace_task_without_snapshots_describes_the_requests),
        cmocka_unit_test(distant_times_are_clamped_to_the_last_representable_one),
        cmocka_unit_test(errors_of_agents_are_quoted),
        cmocka_unit_test(a_task_of_instances_waits_until_it_is_no_longer_handed_out),
        cmocka_unit_test(refused_data_is_not_reported_as_an_idle_process),
        cmocka_unit_test(a_run_that_was_profiled_only_in_part_reports_the_covered_time),
        cmocka_unit_test(cancelling_finds_the_end_of_the_last_run),
        cmocka_unit_test(an_imported_task_never_runs),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
