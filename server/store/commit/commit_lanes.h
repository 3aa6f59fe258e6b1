/*
 * commit_lanes.h -- the queue of one committer: deficit round robin over lanes, by bytes of rows
 * (private to the store).
 *
 * The items of a tenant share a lane and keep their order. Each lane in turn gives the batch
 * HEARTH_COMMIT_QUANTUM bytes: the rows of a quiet tenant are in the next batch, however long the
 * queue of another is. Tenants whose hashes collide share one of 64 lanes, and so its turn.
 *
 * Threads: the lock of the committers guards it.
 */
#ifndef HEARTH_STORE_COMMIT_LANES_H
#define HEARTH_STORE_COMMIT_LANES_H

#include "hearth/store/store.h"

#define HEARTH_COMMIT_LANES   64u
#define HEARTH_COMMIT_QUANTUM ((int64_t)64 << 10)

struct hearth_commit_lane {
    struct hearth_push_item *head, *tail;
    int64_t credit_bytes; /* left of its turn; negative: owed */
};

struct hearth_commit_lanes {
    struct hearth_commit_lane lanes[HEARTH_COMMIT_LANES];
    uint64_t waiting; /* bit i: lane i has items */
    unsigned turn;    /* the lane whose turn it is */
};

/* The lane of a tenant. */
unsigned hearth_commit_lane_of(struct hearth_str tenant);

void hearth_commit_lanes_append(struct hearth_commit_lanes *lanes, struct hearth_push_item *item);
void hearth_commit_lanes_unlink(struct hearth_commit_lanes *lanes, struct hearth_push_item *item);
/* The item that is to be taken next; NULL: the queue is empty. */
struct hearth_push_item *hearth_commit_lanes_next(struct hearth_commit_lanes *lanes);
/* Take that item. */
void hearth_commit_lanes_take(struct hearth_commit_lanes *lanes, struct hearth_push_item *item);

#endif
