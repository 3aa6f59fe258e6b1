/* workers.c -- a fixed pool of threads over one bounded FIFO. */
#include "hearth/base/workers.h"

#include "hearth/base/mem.h"
#include "hearth/base/signals.h"
#include "hearth/base/sync.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

struct hearth_workers {
    struct hearth_mutex lock; /* guards all members below except `threads` */
    pthread_cond_t wake;
    struct hearth_job *head, *tail;
    size_t n_queued, max_queued;
    bool stopping;
    unsigned n_threads;
    pthread_t threads[];
};

static void *run_worker(void *arg)
{
    struct hearth_workers *workers = arg;

    hearth_mutex_lock(&workers->lock);
    for (;;) {
        while (workers->head == NULL && !workers->stopping) {
            hearth_mutex_wait(&workers->lock, &workers->wake);
        }

        struct hearth_job *job = workers->head;
        if (job == NULL) {
            break;
        }

        /* Take the first job and run it without the lock. */
        assert(workers->n_queued > 0);
        workers->head = job->next;
        if (workers->head == NULL) {
            workers->tail = NULL;
        }

        workers->n_queued--;
        hearth_mutex_unlock(&workers->lock);
        job->run(job);
        hearth_mutex_lock(&workers->lock);
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
    if (workers == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate worker pool \"%s\"", name);
    }

    hearth_mutex_init(&workers->lock, HEARTH_RANK_WORKERS, "workers.lock");
    (void)pthread_cond_init(&workers->wake, NULL);
    workers->max_queued = max_queued;

    /* New threads inherit the signal mask: signals are for the main thread. */
    sigset_t all, old;
    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    for (unsigned i = 0; i < n_threads; i++) {
        if (pthread_create(&workers->threads[i], NULL, run_worker, workers) != 0) {
            break;
        }
        workers->n_threads++;
        char thread_name[16];
        (void)snprintf(thread_name, sizeof thread_name, "%.11s-%u", name, i % 1000);
        (void)pthread_setname_np(workers->threads[i], thread_name);
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

bool hearth_workers_submit(struct hearth_workers *workers, struct hearth_job *job)
{
    assert(job != NULL && job->run != NULL);

    job->next = NULL;
    hearth_mutex_lock(&workers->lock);
    bool taken = !workers->stopping && workers->n_queued < workers->max_queued;
    if (taken) {
        if (workers->tail == NULL) {
            workers->head = job;
        } else {
            workers->tail->next = job;
        }
        workers->tail = job;
        workers->n_queued++;
        (void)pthread_cond_signal(&workers->wake);
    }

    hearth_mutex_unlock(&workers->lock);

    return taken;
}

size_t hearth_workers_queued(struct hearth_workers *workers)
{
    hearth_mutex_lock(&workers->lock);
    size_t n = workers->n_queued;
    hearth_mutex_unlock(&workers->lock);
    return n;
}

void hearth_workers_stop(struct hearth_workers *workers)
{
    if (workers == NULL) {
        return;
    }

    hearth_mutex_lock(&workers->lock);
    workers->stopping = true;
    (void)pthread_cond_broadcast(&workers->wake);
    hearth_mutex_unlock(&workers->lock);

    /* Threads end when the queue is empty. */
    for (unsigned i = 0; i < workers->n_threads; i++) {
        (void)pthread_join(workers->threads[i], NULL);
    }

    assert(workers->head == NULL || workers->n_threads == 0);
    (void)pthread_cond_destroy(&workers->wake);
    hearth_mutex_destroy(&workers->lock);
    hearth_mem_free(workers);
}
