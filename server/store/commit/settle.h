/*
 * settle.h -- attempts to store one batch, until its outcome is known (private to the store).
 *
 * Threads: confined to the thread that stores the batch of the committer (committer.c).
 */
#ifndef HEARTH_STORE_SETTLE_H
#define HEARTH_STORE_SETTLE_H

#include "commit/batch.h"
#include "commit/commit_queue.h"

enum hearth_batch_outcome {
    HEARTH_OUTCOME_STORED,
    HEARTH_OUTCOME_FAILED, /* no profile is stored; only at closing or after 12 h: not known */
    HEARTH_OUTCOME_SPLIT,  /* no profile is stored: try smaller batches */
    HEARTH_OUTCOME_SHRINK, /* no profile is stored, and some were withdrawn */
    HEARTH_OUTCOME_RETURN, /* no profile is stored, and some may be given back: the store is away */
    HEARTH_OUTCOME_SORT,   /* no profile is stored; some are blocked, others are not */
    HEARTH_OUTCOME_AGAIN,  /* not settled: send the same batch again; never returned */
};

/* Pause before the second attempt. */
#define HEARTH_BACKOFF_FIRST_NS (10 * HEARTH_NS_PER_MS)

/* The attempts at one batch so far; zero before the first. */
struct hearth_attempts {
    int64_t doubt_since_ns; /* 0: no attempt is in doubt */
    unsigned n_answered;    /* attempts that ended with an error of PostgreSQL */
    unsigned n_lost;        /* connections that ended during an attempt */
    unsigned n_unreached;   /* attempts that ended without a connection */
    /* Of the last attempt: */
    enum hearth_status status; /* OK, and no probe: the batch is stored */
    enum hearth_pg_fault fault;
    bool was_in_doubt; /* before it */
    bool was_probe;    /* it only found out whether an earlier one was committed */
    bool is_whole;     /* the batch is stored, or no item of it was withdrawn */
};

/* Send the encoded batch once. */
void hearth_committer_attempt(struct hearth_committer *committer, struct hearth_batch *batch,
                              struct hearth_attempts *attempts, struct hearth_err *err);
/*
 * After a first attempt: send the batch again until the outcome is known. attempts->status and
 * `err` are those of the last attempt; the status is OK only if the batch is STORED.
 */
enum hearth_batch_outcome hearth_committer_settle(struct hearth_committer *committer,
                                                  struct hearth_batch *batch,
                                                  struct hearth_attempts *attempts,
                                                  struct hearth_err *err);

/* The closing deadline has passed: nothing is sent any more. */
bool hearth_committers_abandoned(struct hearth_committers *all);

#endif
