/*
 * lanes.h -- a queue of jobs that is fair between tenants: start-time fair queuing.
 *
 * Each tenant with jobs has a *lane*: its own first-in-first-out queue. The next job is of the lane
 * that has used threads for the shortest time. So a tenant with long jobs gets fewer starts, and a
 * tenant that returns after a pause has no claim for the time that it did not use. The cost of a
 * job is known only at its end: at its start, the lane is charged what its jobs took on average,
 * and at the end, the difference.
 *
 * Memory: a lane exists while it has jobs; the latest HEARTH_LANES_IDLE lanes without jobs are
 * kept, with what they owe. Adding and taking take O(log n) steps for n lanes with queued jobs.
 *
 * Ownership: jobs are the caller's, and linked here while they are queued.
 * Threads:   not thread-safe: the caller's lock guards it.
 * Source:    Goyal, Vin, Cheng: Start-time Fair Queuing (SIGCOMM 1996).
 */
#ifndef HEARTH_BASE_LANES_H
#define HEARTH_BASE_LANES_H

#include "hearth/base/str.h"

#define HEARTH_LANES_IDLE 64u

struct hearth_lane;

struct hearth_job {
    void (*run)(struct hearth_job *job);
    /* Ends a queued job that will not run, because others need its place; may not block. NULL: the
     * job keeps its place. */
    void (*drop)(struct hearth_job *job);
    struct hearth_job *next, *prev; /* owned by the queue */
};

/* The lane of a job, and its limits from now on. */
struct hearth_lane_key {
    struct hearth_str name; /* of the tenant; empty: jobs without a tenant */
    size_t max_running;     /* jobs of the lane that run at a time; 0: no limit */
    size_t max_queued;      /* jobs of the lane that wait; 0: no limit of its own */
};

enum hearth_queued {
    HEARTH_QUEUED,
    HEARTH_QUEUE_FULL,      /* the whole queue is full, and no other lane is longer */
    HEARTH_QUEUE_LANE_FULL, /* max_queued jobs of the lane wait */
    HEARTH_QUEUE_STOPPED,   /* the pool is stopping */
};

struct hearth_lanes {
    size_t max_queued;
    size_t n_queued, n_running, n_lanes;
    int64_t vtime_ns; /* virtual time: the start of the job that was taken last */
    uint64_t n_activations;
    struct hearth_lane **table; /* by hash of the name; n_table is a power of two */
    size_t n_table;
    struct hearth_lane **heap; /* lanes that may start a job, by start time */
    size_t n_heap, cap_heap;
    struct hearth_lane **by_length; /* [n_lengths]: lists of lanes by number of queued jobs */
    size_t n_lengths, longest;
    struct hearth_lane *idle_first, *idle_last; /* without jobs, the oldest first */
    size_t n_idle;
};

/* A job that runs: what hearth_lanes_end needs when the job itself may be freed. */
struct hearth_lane_run {
    struct hearth_job *job;
    struct hearth_lane *lane;
    int64_t charged_ns;
};

/* Returns false without memory. max_queued SIZE_MAX: no limit. */
HEARTH_MUST_CHECK bool hearth_lanes_init(struct hearth_lanes *lanes, size_t max_queued);
/* No job is queued or runs. A zeroed struct may be released. */
void hearth_lanes_release(struct hearth_lanes *lanes);

/*
 * Queue a job. If the queue is full, the newest job of the longest lane loses its place: *ret_drop
 * is that job, whose `drop` the caller calls without the lock; otherwise NULL. If no lane is longer
 * than that of the given job, it is refused itself: QUEUE_FULL, also returned without memory.
 */
HEARTH_MUST_CHECK
enum hearth_queued hearth_lanes_add(struct hearth_lanes *lanes, struct hearth_job *job,
                                    const struct hearth_lane_key *key,
                                    struct hearth_job **ret_drop);
/* Take the job that is to run next. False: no job is queued whose lane may start one. */
HEARTH_MUST_CHECK bool hearth_lanes_take(struct hearth_lanes *lanes, struct hearth_lane_run *ret);
/* A taken job has ended, and kept its thread for cost_ns. */
void hearth_lanes_end(struct hearth_lanes *lanes, const struct hearth_lane_run *run,
                      int64_t cost_ns);

struct hearth_lane_counts {
    size_t n_queued, n_running;
};

/* Jobs of one lane. */
struct hearth_lane_counts hearth_lanes_count(const struct hearth_lanes *lanes,
                                             struct hearth_str name);

#endif
