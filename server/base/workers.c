/*
 * workers.c -- a fixed pool of threads over one bounded queue (lanes.h).
 *
 * A new job wakes the thread that became idle last, whose stack and heap are most likely still in
 * the caches. It is signalled after the lock is released, otherwise it would wait for the lock at
 * once.
 */
#include "hearth/base/workers.h"

#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/signals.h"
#include "hearth/base/sync.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

struct worker {
    struct hearth_workers *pool;
    pthread_t thread;
    pthread_cond_t wake;
    struct worker *next_idle;
    bool is_idle; /* it is in pool->idle */
};

struct hearth_workers {
    struct hearth_mutex lock; /* guards all members below, and those of workers */
    struct hearth_lanes lanes;
    struct worker *idle; /* waiting threads, the last one first */
    bool stopping;
    _Atomic unsigned n_signalling; /* threads that use `wake` of a worker without the lock */
    unsigned n_threads;
    struct worker threads[];
};

/* Wait for a signal. The caller holds the lock. */
static void wait_idle(struct worker *worker)
{
    struct hearth_workers *workers = worker->pool;

    worker->is_idle = true;
    worker->next_idle = workers->idle;
    workers->idle = worker;
    while (worker->is_idle && !workers->stopping) {
        hearth_mutex_wait(&workers->lock, &worker->wake);
    }
}

/* The thread to be signalled, which is not idle any more; NULL: all are busy. */
static struct worker *take_idle(struct hearth_workers *workers)
{
    struct worker *worker = workers->idle;
    hearth_mutex_assert_held(&workers->lock);

    if (worker != NULL) {
        workers->idle = worker->next_idle;
        worker->is_idle = false;
        (void)atomic_fetch_add(&workers->n_signalling, 1);
    }

    return worker;
}

static void *run_worker(void *arg)
{
    struct worker *worker = arg;
    struct hearth_workers *workers = worker->pool;

    hearth_mutex_lock(&workers->lock);
    for (;;) {
        struct hearth_lane_run run;
        bool has_job;
        while (!(has_job = hearth_lanes_take(&workers->lanes, &run)) && !workers->stopping) {
            wait_idle(worker);
        }

        /* Jobs that may not start yet are left to the threads that run others of their tenant. */
        if (!has_job) {
            break;
        }

        /* Run it without the lock. It may be freed then. */
        hearth_mutex_unlock(&workers->lock);
        int64_t began_ns = hearth_clock_mono_ns();
        run.job->run(run.job);
        int64_t took_ns = hearth_clock_mono_ns() - began_ns;
        hearth_mutex_lock(&workers->lock);
        hearth_lanes_end(&workers->lanes, &run, took_ns);
    }

    hearth_mutex_unlock(&workers->lock);

    return NULL;
}

enum hearth_status hearth_workers_start(const char *name, unsigned n_threads, size_t max_queued,
                                        struct hearth_workers **ret_workers, struct hearth_err *err)
{
    if (n_threads == 0) { /* queued jobs would never run, not even at stop */
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "worker pool \"%s\" has no threads", name);
    }

    struct hearth_workers *workers =
        hearth_mem_zalloc(sizeof *workers + n_threads * sizeof workers->threads[0]);
    if (workers == NULL || !hearth_lanes_init(&workers->lanes, max_queued)) {
        hearth_mem_free(workers);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate worker pool \"%s\"", name);
    }

    hearth_mutex_init(&workers->lock, HEARTH_RANK_WORKERS, "workers.lock");

    /* New threads inherit the signal mask: signals are for the main thread. */
    sigset_t all, old;
    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    for (unsigned i = 0; i < n_threads; i++) {
        struct worker *worker = &workers->threads[i];
        worker->pool = workers;
        (void)pthread_cond_init(&worker->wake, NULL);
        if (pthread_create(&worker->thread, NULL, run_worker, worker) != 0) {
            (void)pthread_cond_destroy(&worker->wake);
            break;
        }
        workers->n_threads++;
        char thread_name[16];
        (void)snprintf(thread_name, sizeof thread_name, "%.11s-%u", name, i % 1000);
        (void)pthread_setname_np(worker->thread, thread_name);
    }

    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (workers->n_threads < n_threads) {
        hearth_workers_stop(workers);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot start %u threads for \"%s\"", n_threads,
                           name);
    }

    *ret_workers = workers;
    return HEARTH_OK;
}

enum hearth_queued hearth_workers_submit_as(struct hearth_workers *workers, struct hearth_job *job,
                                            const struct hearth_lane_key *key)
{
    assert(job != NULL && job->run != NULL);

    struct hearth_job *dropped = NULL;
    struct worker *woken = NULL;
    hearth_mutex_lock(&workers->lock);
    enum hearth_queued outcome = workers->stopping
                                     ? HEARTH_QUEUE_STOPPED
                                     : hearth_lanes_add(&workers->lanes, job, key, &dropped);
    if (outcome == HEARTH_QUEUED) {
        woken = take_idle(workers);
    }

    hearth_mutex_unlock(&workers->lock);
    if (woken != NULL) {
        (void)pthread_cond_signal(&woken->wake);
        (void)atomic_fetch_sub(&workers->n_signalling, 1);
    }

    /* Not under the lock: `drop` is the caller's code. */
    if (dropped != NULL) {
        dropped->drop(dropped);
    }

    return outcome;
}

bool hearth_workers_submit(struct hearth_workers *workers, struct hearth_job *job)
{
    job->drop = NULL;
    return hearth_workers_submit_as(workers, job, &(struct hearth_lane_key){.max_running = 0}) ==
           HEARTH_QUEUED;
}

size_t hearth_workers_queued(struct hearth_workers *workers)
{
    hearth_mutex_lock(&workers->lock);
    size_t n = workers->lanes.n_queued;
    hearth_mutex_unlock(&workers->lock);
    return n;
}

size_t hearth_workers_running(struct hearth_workers *workers)
{
    hearth_mutex_lock(&workers->lock);
    size_t n = workers->lanes.n_running;
    hearth_mutex_unlock(&workers->lock);
    return n;
}

struct hearth_lane_counts hearth_workers_count(struct hearth_workers *workers,
                                               struct hearth_str tenant)
{
    hearth_mutex_lock(&workers->lock);
    struct hearth_lane_counts counts = hearth_lanes_count(&workers->lanes, tenant);
    hearth_mutex_unlock(&workers->lock);
    return counts;
}

void hearth_workers_stop(struct hearth_workers *workers)
{
    if (workers == NULL) {
        return;
    }

    hearth_mutex_lock(&workers->lock);
    workers->stopping = true;
    for (unsigned i = 0; i < workers->n_threads; i++) {
        (void)pthread_cond_signal(&workers->threads[i].wake);
    }
    hearth_mutex_unlock(&workers->lock);

    /* Threads end when the queue is empty. Who submitted the last job may still be signalling. */
    for (unsigned i = 0; i < workers->n_threads; i++) {
        (void)pthread_join(workers->threads[i].thread, NULL);
    }
    while (atomic_load(&workers->n_signalling) > 0) {
        (void)sched_yield();
    }

    for (unsigned i = 0; i < workers->n_threads; i++) {
        (void)pthread_cond_destroy(&workers->threads[i].wake);
    }
    hearth_lanes_release(&workers->lanes);
    hearth_mutex_destroy(&workers->lock);
    hearth_mem_free(workers);
}
