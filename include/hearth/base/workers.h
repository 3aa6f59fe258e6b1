/*
 * workers.h -- a fixed pool of threads with a bounded queue.
 *
 * Submission never blocks: if the queue is full, the caller reports UNAVAILABLE. Jobs are
 * intrusive, so submission allocates nothing.
 *
 * Threads: submit is safe from any thread, including from a job. Jobs start in the order of their
 * submission, on any thread of the pool.
 */
#ifndef HEARTH_BASE_WORKERS_H
#define HEARTH_BASE_WORKERS_H

#include "hearth/base/status.h"

struct hearth_job {
    void (*run)(struct hearth_job *job);
    struct hearth_job *next; /* owned by the pool while queued */
};

struct hearth_workers;

HEARTH_MUST_CHECK
enum hearth_status
hearth_workers_start(const char *name, /* prefix of the thread names; 11 bytes of it are used */
                     unsigned n_threads, size_t max_queued, struct hearth_workers **ret_workers,
                     struct hearth_err *err);
/*
 * Returns false if the queue is full or the pool is stopping. The job must stay valid until it has
 * run.
 */
HEARTH_MUST_CHECK bool hearth_workers_submit(struct hearth_workers *workers,
                                             struct hearth_job *job);
size_t hearth_workers_queued(struct hearth_workers *workers);
/* Run all queued jobs, join the threads and free the pool. NULL-safe. */
void hearth_workers_stop(struct hearth_workers *workers);

#endif
