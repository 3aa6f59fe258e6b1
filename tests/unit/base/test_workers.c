/* test_workers.c -- the pool runs all accepted jobs, and refuses a job instead of blocking. */
#include "hearth/base/mem.h"
#include "hearth/base/workers.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct counted {
    struct hearth_job job;
    unsigned ordinal;
};

static _Atomic unsigned g_ran, g_out_of_order, g_signals_open;
static sem_t g_gate, g_started;

static void count(struct hearth_job *job)
{
    struct counted *counted = HEARTH_CONTAINER_OF(job, struct counted, job);
    unsigned before = atomic_fetch_add(&g_ran, 1);
    if (before != counted->ordinal) {
        atomic_fetch_add(&g_out_of_order, 1);
    }
}

static void wait_at_gate(struct hearth_job *job)
{
    (void)job;
    (void)sem_post(&g_started);
    (void)sem_wait(&g_gate);
}

static int reset(void **state)
{
    (void)state;
    g_ran = 0;
    g_out_of_order = 0;
    (void)sem_init(&g_gate, 0, 0);
    (void)sem_init(&g_started, 0, 0);

    return 0;
}

static void stop_runs_everything_queued_in_order(void **state)
{
    (void)state;
    struct hearth_workers *workers;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_workers_start("one", 1, 1000, &workers, &err), HEARTH_OK);
    struct hearth_job gate = {.run = wait_at_gate};
    assert_true(hearth_workers_submit(workers, &gate));
    static struct counted jobs[1000];
    (void)sem_wait(&g_started);
    for (unsigned i = 0; i < 1000; i++) {
        jobs[i] = (struct counted){.job = {.run = count}, .ordinal = i};
        assert_true(hearth_workers_submit(workers, &jobs[i].job));
    }

    assert_int_equal(hearth_workers_queued(workers), 1000);
    (void)sem_post(&g_gate);
    hearth_workers_stop(workers);
    assert_int_equal(g_ran, 1000);
    assert_int_equal(g_out_of_order, 0);
}

static void a_full_queue_refuses(void **state)
{
    (void)state;
    struct hearth_workers *workers;
    assert_int_equal(hearth_workers_start("full", 1, 2, &workers, NULL), HEARTH_OK);
    struct hearth_job gate = {.run = wait_at_gate};
    struct counted jobs[3];
    assert_true(hearth_workers_submit(workers, &gate));
    (void)sem_wait(&g_started);
    for (unsigned i = 0; i < 3; i++) {
        jobs[i] = (struct counted){.job = {.run = count}, .ordinal = i};
        assert_int_equal(hearth_workers_submit(workers, &jobs[i].job), i < 2);
    }

    (void)sem_post(&g_gate);
    hearth_workers_stop(workers);
    assert_int_equal(g_ran, 2);
}

static void threads_run_at_the_same_time(void **state)
{
    (void)state;
    struct hearth_workers *workers;
    assert_int_equal(hearth_workers_start("four", 4, 4, &workers, NULL), HEARTH_OK);
    struct hearth_job gates[4];
    for (unsigned i = 0; i < 4; i++) {
        gates[i] = (struct hearth_job){.run = wait_at_gate};
        assert_true(hearth_workers_submit(workers, &gates[i]));
    }

    for (unsigned i = 0; i < 4; i++) { /* ends only when four jobs run at once */
        (void)sem_wait(&g_started);
    }

    for (unsigned i = 0; i < 4; i++) {
        (void)sem_post(&g_gate);
    }

    hearth_workers_stop(workers);
}

struct resubmitting {
    struct hearth_job job;
    struct hearth_workers *workers;
    struct counted next;
};

static void submit_next(struct hearth_job *job)
{
    struct resubmitting *self = HEARTH_CONTAINER_OF(job, struct resubmitting, job);
    self->next = (struct counted){.job = {.run = count}};
    if (hearth_workers_submit(self->workers, &self->next.job)) {
        (void)sem_post(&g_started);
    }
}

static void a_job_may_submit_another(void **state)
{
    (void)state;
    struct resubmitting self = {.job = {.run = submit_next}};
    assert_int_equal(hearth_workers_start("again", 1, 1, &self.workers, NULL), HEARTH_OK);
    assert_true(hearth_workers_submit(self.workers, &self.job));
    (void)sem_wait(&g_started);
    hearth_workers_stop(self.workers);
    assert_int_equal(g_ran, 1);
}

static void look_at_signals(struct hearth_job *job)
{
    (void)job;
    sigset_t blocked;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    g_signals_open = !sigismember(&blocked, SIGTERM) || !sigismember(&blocked, SIGINT);
}

static void signals_are_left_to_the_main_thread(void **state)
{
    (void)state;
    struct hearth_workers *workers;
    g_signals_open = 9;
    assert_int_equal(hearth_workers_start("signals", 1, 1, &workers, NULL), HEARTH_OK);
    struct hearth_job job = {.run = look_at_signals};
    assert_true(hearth_workers_submit(workers, &job));
    hearth_workers_stop(workers);
    assert_int_equal(g_signals_open, 0);
    sigset_t blocked;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    assert_false(sigismember(&blocked, SIGTERM));
}

static void refuses_no_threads_and_no_memory(void **state)
{
    (void)state;
    struct hearth_workers *workers = NULL;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_workers_start("none", 0, 1, &workers, &err), HEARTH_INVALID_ARGUMENT);
    hearth_mem_fail_after(1);
    enum hearth_status status = hearth_workers_start("poor", 1, 1, &workers, &err);
    hearth_mem_fail_after(0);
    assert_int_equal(status, HEARTH_NO_MEMORY);
    assert_string_equal(err.msg, "cannot allocate worker pool \"poor\"");
    assert_null(workers);
    hearth_workers_stop(NULL);
}

#define POOL_TEST(f) cmocka_unit_test_setup(f, reset)

struct named {
    struct hearth_job job;
    pthread_t thread;
};

static void note_thread(struct hearth_job *job)
{
    HEARTH_CONTAINER_OF(job, struct named, job)->thread = pthread_self();
    (void)sem_post(&g_started);
}

static void wait_until_idle(struct hearth_workers *workers)
{
    while (hearth_workers_running(workers) > 0) {
        (void)sched_yield();
    }
}

static void the_thread_that_became_idle_last_runs_the_next_job(void **state)
{
    (void)state;
    struct hearth_workers *workers;
    struct hearth_job gates[4];
    struct named jobs[20];
    assert_int_equal(hearth_workers_start("warm", 4, 4, &workers, NULL), HEARTH_OK);

    /* Until all threads are there. */
    for (unsigned i = 0; i < 4; i++) {
        gates[i] = (struct hearth_job){.run = wait_at_gate};
        assert_true(hearth_workers_submit(workers, &gates[i]));
    }
    for (unsigned i = 0; i < 4; i++) {
        (void)sem_wait(&g_started);
    }
    for (unsigned i = 0; i < 4; i++) {
        (void)sem_post(&g_gate);
    }
    wait_until_idle(workers);

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(jobs); i++) {
        jobs[i] = (struct named){.job = {.run = note_thread}};
        assert_true(hearth_workers_submit(workers, &jobs[i].job));
        (void)sem_wait(&g_started);
        wait_until_idle(workers);
    }

    for (size_t i = 1; i < HEARTH_ARRAY_LEN(jobs); i++) {
        assert_true(pthread_equal(jobs[i].thread, jobs[i - 1].thread));
    }
    hearth_workers_stop(workers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        POOL_TEST(stop_runs_everything_queued_in_order),
        POOL_TEST(a_full_queue_refuses),
        POOL_TEST(threads_run_at_the_same_time),
        POOL_TEST(a_job_may_submit_another),
        POOL_TEST(signals_are_left_to_the_main_thread),
        POOL_TEST(refuses_no_threads_and_no_memory),
        POOL_TEST(the_thread_that_became_idle_last_runs_the_next_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
