/*
 * workers.h -- a fixed pool of threads with a bounded queue that is fair between tenants (lanes.h).
 *
 * Submission never blocks: if the queue is full, the caller reports UNAVAILABLE. Jobs are
 * intrusive; only the first job of a tenant allocates memory.
 *
 * Threads: submit is safe from any thread, including from a job. Jobs of one tenant start in the
 * order of their submission, on any thread of the pool.
 */
#ifndef HEARTH_BASE_WORKERS_H
#define HEARTH_BASE_WORKERS_H

#include "hearth/base/lanes.h"
#include "hearth/base/status.h"

struct hearth_workers;

HEARTH_MUST_CHECK
enum hearth_status
hearth_workers_start(const char *name, /* prefix of the thread names; 11 bytes of it are used */
                     unsigned n_threads, size_t max_queued, struct hearth_workers **ret_workers,
                     struct hearth_err *err);
/*
 * Submit a job without a tenant. Returns false if the queue is full or the pool is stopping. The
 * job must stay valid until it has run.
 */
HEARTH_MUST_CHECK bool hearth_workers_submit(struct hearth_workers *workers,
                                             struct hearth_job *job);
/*
 * Submit a job of a tenant. If the queue is full, the newest job of the tenant with the most queued
 * jobs is dropped for it: this thread calls its `drop`.
 */
HEARTH_MUST_CHECK
enum hearth_queued hearth_workers_submit_as(struct hearth_workers *workers, struct hearth_job *job,
                                            const struct hearth_lane_key *key);
size_t hearth_workers_queued(struct hearth_workers *workers);
size_t hearth_workers_running(struct hearth_workers *workers);
/* Jobs of a tenant that wait, and that run. */
struct hearth_lane_counts hearth_workers_count(struct hearth_workers *workers,
                                               struct hearth_str tenant);
/* Run all queued jobs, join the threads and free the pool. NULL-safe. */
void hearth_workers_stop(struct hearth_workers *workers);

#endif
