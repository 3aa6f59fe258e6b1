/*
 * settle.h -- attempts to store one batch, until its outcome is known (private to the store).
 *
 * Threads: confined to the committer.
 */
#ifndef HEARTH_STORE_SETTLE_H
#define HEARTH_STORE_SETTLE_H

#include "commit/batch.h"
#include "commit/commit_queue.h"

enum hearth_verdict {
    HEARTH_VERDICT_STORED,
    HEARTH_VERDICT_FAILED, /* no profile is stored; only at closing or after 12 h: not known */
    HEARTH_VERDICT_SPLIT,  /* no profile is stored: try smaller batches */
    HEARTH_VERDICT_SHRINK, /* no profile is stored, and some were withdrawn */
    HEARTH_VERDICT_RETURN, /* no profile is stored, and some may be given back: the store is away */
    HEARTH_VERDICT_SORT,   /* no profile is stored; some are blocked, others are not */
    HEARTH_VERDICT_AGAIN,  /* not settled: send the same batch again; never returned */
};

/* Pause before the second attempt. */
#define HEARTH_BACKOFF_FIRST_NS (10 * HEARTH_NS_PER_MS)

/*
 * Send the encoded batch until there is a verdict. *ret_status and `err` are those of the last
 * attempt; *ret_status is OK only if the batch is STORED.
 */
enum hearth_verdict hearth_committer_settle(struct hearth_committer *committer,
                                            struct hearth_batch *batch,
                                            enum hearth_status *ret_status, struct hearth_err *err);

/* The closing deadline has passed: nothing is sent any more. */
bool hearth_committers_abandoned(struct hearth_committers *all);

#endif
