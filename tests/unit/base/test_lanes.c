/* test_lanes.c -- which job runs next, who loses a place in a full queue, and what lanes cost. */
#include "hearth/base/lanes.h"
#include "hearth/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define MS INT64_C(1000000)

static struct hearth_lanes g_lanes;
static struct hearth_job g_jobs[4096];
static size_t g_n_jobs;
static struct hearth_job *g_dropped;

static void never_runs(struct hearth_job *job)
{
    (void)job;
    fail();
}

static int open_lanes(void **state)
{
    (void)state;
    g_n_jobs = 0;
    g_dropped = NULL;
    return hearth_lanes_init(&g_lanes, 8) ? 0 : -1;
}

static int close_lanes(void **state)
{
    (void)state;
    struct hearth_lane_run run;
    while (hearth_lanes_take(&g_lanes, &run)) {
        hearth_lanes_end(&g_lanes, &run, 0);
    }
    hearth_lanes_release(&g_lanes);
    return 0;
}

static struct hearth_job *add(const char *tenant, size_t max_running, size_t max_queued,
                              enum hearth_queued wanted)
{
    struct hearth_job *job = &g_jobs[g_n_jobs++];
    *job = (struct hearth_job){.run = never_runs, .drop = never_runs};
    const struct hearth_lane_key key = {hearth_str_c(tenant), max_running, max_queued};
    assert_int_equal(hearth_lanes_add(&g_lanes, job, &key, &g_dropped), wanted);
    return job;
}

static struct hearth_lane_run take(const struct hearth_job *wanted)
{
    struct hearth_lane_run run;
    assert_true(hearth_lanes_take(&g_lanes, &run));
    assert_ptr_equal(run.job, wanted);
    return run;
}

static void run(const struct hearth_job *wanted, int64_t cost_ns)
{
    struct hearth_lane_run run = take(wanted);
    hearth_lanes_end(&g_lanes, &run, cost_ns);
}

static void one_tenant_is_served_in_order(void **state)
{
    (void)state;
    struct hearth_job *a = add("a", 0, 0, HEARTH_QUEUED), *b = add("a", 0, 0, HEARTH_QUEUED),
                      *c = add("a", 0, 0, HEARTH_QUEUED);
    run(a, 5 * MS);
    run(b, 1 * MS);
    run(c, 9 * MS);
    struct hearth_lane_run none;
    assert_false(hearth_lanes_take(&g_lanes, &none));
}

static void a_newcomer_is_served_before_the_rest_of_a_long_queue(void **state)
{
    (void)state;
    struct hearth_job *flood[6];
    for (size_t i = 0; i < 6; i++) {
        flood[i] = add("flood", 0, 0, HEARTH_QUEUED);
    }
    run(flood[0], 100 * MS);
    struct hearth_job *quiet = add("quiet", 0, 0, HEARTH_QUEUED);
    run(quiet, 1 * MS);
    run(flood[1], 100 * MS);
}

static void long_jobs_get_fewer_starts(void **state)
{
    (void)state;
    /* Jobs of "slow" take four times as long: of 20 starts, it gets 4. */
    unsigned n_slow = 0;
    struct hearth_job *slow = add("slow", 0, 0, HEARTH_QUEUED);
    (void)add("fast", 0, 0, HEARTH_QUEUED);

    for (unsigned i = 0; i < 20; i++) {
        struct hearth_lane_run next;
        assert_true(hearth_lanes_take(&g_lanes, &next));
        bool is_slow = next.job == slow;
        n_slow += is_slow;
        struct hearth_job *again = add(is_slow ? "slow" : "fast", 0, 0, HEARTH_QUEUED);
        slow = is_slow ? again : slow;
        hearth_lanes_end(&g_lanes, &next, is_slow ? 40 * MS : 10 * MS);
    }

    assert_int_equal(n_slow, 4);
}

static void a_tenant_gains_no_priority_by_a_pause(void **state)
{
    (void)state;
    run(add("rare", 0, 0, HEARTH_QUEUED), 1 * MS);
    for (unsigned i = 0; i < 50; i++) { /* "busy" works for five seconds alone */
        run(add("busy", 0, 0, HEARTH_QUEUED), 100 * MS);
    }

    /* Then they take turns, although "rare" has used almost nothing. */
    struct hearth_job *rare[2], *busy[2];
    for (size_t i = 0; i < 2; i++) {
        busy[i] = add("busy", 0, 0, HEARTH_QUEUED);
        rare[i] = add("rare", 0, 0, HEARTH_QUEUED);
    }
    run(rare[0], 200 * MS);
    run(busy[0], 100 * MS);
    run(busy[1], 100 * MS);
    run(rare[1], 100 * MS);
}

static void jobs_that_run_count_before_they_end(void **state)
{
    (void)state;
    run(add("long", 0, 0, HEARTH_QUEUED), 1000 * MS);
    run(add("other", 0, 0, HEARTH_QUEUED), 1000 * MS);

    struct hearth_job *first = add("long", 0, 0, HEARTH_QUEUED);
    (void)add("long", 0, 0, HEARTH_QUEUED);
    struct hearth_lane_run running = take(first);
    struct hearth_job *other = add("other", 0, 0, HEARTH_QUEUED);
    struct hearth_lane_run second = take(other);
    hearth_lanes_end(&g_lanes, &running, 1000 * MS);
    hearth_lanes_end(&g_lanes, &second, 1000 * MS);
}

static void a_tenant_runs_as_many_as_it_may(void **state)
{
    (void)state;
    struct hearth_job *a = add("a", 1, 0, HEARTH_QUEUED), *b = add("a", 1, 0, HEARTH_QUEUED);
    struct hearth_lane_run running = take(a), none;
    assert_false(hearth_lanes_take(&g_lanes, &none));

    struct hearth_job *other = add("b", 1, 0, HEARTH_QUEUED);
    run(other, MS);
    struct hearth_lane_counts counts = hearth_lanes_count(&g_lanes, hearth_str_c("a"));
    assert_int_equal(counts.n_queued, 1);
    assert_int_equal(counts.n_running, 1);
    hearth_lanes_end(&g_lanes, &running, MS);
    run(b, MS);
    counts = hearth_lanes_count(&g_lanes, hearth_str_c("never seen"));
    assert_int_equal(counts.n_queued + counts.n_running, 0);
}

static void a_tenant_queues_as_many_as_it_may(void **state)
{
    (void)state;
    (void)add("a", 0, 2, HEARTH_QUEUED);
    (void)add("a", 0, 2, HEARTH_QUEUED);
    (void)add("a", 0, 2, HEARTH_QUEUE_LANE_FULL);
    (void)add("b", 0, 2, HEARTH_QUEUED);
}

static void the_longest_queue_drops_a_job_for_a_new_one(void **state)
{
    (void)state;
    struct hearth_job *flood[6], *newest = NULL;
    for (size_t i = 0; i < 6; i++) {
        flood[i] = newest = add("flood", 0, 0, HEARTH_QUEUED);
    }
    (void)add("b", 0, 0, HEARTH_QUEUED);
    (void)add("b", 0, 0, HEARTH_QUEUED);

    /* Full: the flood itself is refused, a quiet tenant is not. */
    (void)add("flood", 0, 0, HEARTH_QUEUE_FULL);
    assert_null(g_dropped);
    (void)add("quiet", 0, 0, HEARTH_QUEUED);
    assert_ptr_equal(g_dropped, newest);
    (void)add("", 0, 0, HEARTH_QUEUED);
    assert_ptr_equal(g_dropped, flood[4]);
    assert_int_equal(g_lanes.n_queued, 8);
    assert_int_equal(g_lanes.longest, 4);
}

static void a_job_without_a_drop_function_is_never_dropped(void **state)
{
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        add("flood", 0, 0, HEARTH_QUEUED)->drop = NULL;
    }
    (void)add("quiet", 0, 0, HEARTH_QUEUE_FULL);
}

static void lanes_end_with_their_jobs(void **state)
{
    (void)state;
    char name[16];
    for (unsigned i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof name, "t%u", i);
        run(add(name, 0, 0, HEARTH_QUEUED), MS);
    }
    assert_int_equal(g_lanes.n_lanes, HEARTH_LANES_IDLE);
    assert_int_equal(g_lanes.n_heap, 0);
}

static void many_lanes_are_served_in_turn(void **state)
{
    (void)state;
    struct hearth_lanes lanes;
    char name[16];
    assert_true(hearth_lanes_init(&lanes, 2000));
    for (unsigned i = 0; i < 2000; i++) {
        g_jobs[i] = (struct hearth_job){.run = never_runs};
        (void)snprintf(name, sizeof name, "t%u", i % 1000);
        assert_int_equal(hearth_lanes_add(&lanes, &g_jobs[i],
                                          &(struct hearth_lane_key){hearth_str_c(name), 0, 0},
                                          &g_dropped),
                         HEARTH_QUEUED);
    }

    for (unsigned i = 0; i < 2000; i++) {
        struct hearth_lane_run next;
        assert_true(hearth_lanes_take(&lanes, &next));
        assert_true((next.job - g_jobs) / 1000 == i / 1000);
        hearth_lanes_end(&lanes, &next, MS);
    }

    assert_int_equal(lanes.longest, 0);
    hearth_lanes_release(&lanes);
}

static void refused_memory_refuses_the_job(void **state)
{
    (void)state;
    struct hearth_lanes lanes;
    for (int n = 1; n <= 3; n++) {
        hearth_mem_fail_after(n);
        assert_false(hearth_lanes_init(&lanes, 8));
        hearth_mem_fail_after(0);
    }

    hearth_mem_fail_after(1);
    (void)add("new", 0, 0, HEARTH_QUEUE_FULL);
    hearth_mem_fail_after(0);
    (void)add("new", 0, 0, HEARTH_QUEUED);
}

#define LANES_TEST(f) cmocka_unit_test_setup_teardown(f, open_lanes, close_lanes)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LANES_TEST(one_tenant_is_served_in_order),
        LANES_TEST(a_newcomer_is_served_before_the_rest_of_a_long_queue),
        LANES_TEST(long_jobs_get_fewer_starts),
        LANES_TEST(a_tenant_gains_no_priority_by_a_pause),
        LANES_TEST(jobs_that_run_count_before_they_end),
        LANES_TEST(a_tenant_runs_as_many_as_it_may),
        LANES_TEST(a_tenant_queues_as_many_as_it_may),
        LANES_TEST(the_longest_queue_drops_a_job_for_a_new_one),
        LANES_TEST(a_job_without_a_drop_function_is_never_dropped),
        LANES_TEST(lanes_end_with_their_jobs),
        LANES_TEST(many_lanes_are_served_in_turn),
        LANES_TEST(refused_memory_refuses_the_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
