/*
 * commit_queue.h -- what waits for a committer, and the way in and out of it (private to the store).
 *
 * Threads: one lock, "committer.lock", guards the queues of all committers.
 */
#ifndef HEARTH_STORE_COMMIT_QUEUE_H
#define HEARTH_STORE_COMMIT_QUEUE_H

#include "hearth/base/sync.h"
#include "hearth/store/store.h"

#include "pg/pg.h"

/* Where an item is. Under the lock. */
enum hearth_item_stage {
    HEARTH_ITEM_NEW,
    HEARTH_ITEM_QUEUED,
    HEARTH_ITEM_TAKEN, /* by its committer */
    HEARTH_ITEM_FAILED,
    HEARTH_ITEM_STORED,
};

struct hearth_committer {
    struct hearth_committers *all;
    pthread_t thread;
    pthread_cond_t wake;
    struct hearth_push_item *head, *tail; /* under lock, like the next four */
    size_t n_rows;
    int64_t seq;          /* in flight; INT64_MAX: none */
    size_t n_withdrawn;   /* of the items that it has taken */
    bool is_exposed;      /* its batch is being sent, or may have been committed */
    struct hearth_pg pg;  /* its thread's own */
    int64_t backoff_ns;   /* before the next attempt; its thread's own, like the next */
    int64_t watermark_ns; /* the highest that its batches have read */
};

struct hearth_committers {
    struct hearth_store *store;
    struct hearth_mutex lock; /* "committer.lock": guards queues, sums, seqs, stopping */
    pthread_cond_t idle;      /* a committer ended */
    size_t n_rows, n_bytes;   /* queued or in flight, of all committers */
    int64_t next_seq;
    bool stopping;
    unsigned n_running;
    struct hearth_cancel abandon; /* set when the closing deadline has passed */
    unsigned n;
    struct hearth_committer committers[];
};

/* Under the lock: unlink the next batch, at least one item, then as many as the limits and max allow. */
size_t hearth_commit_queue_take(struct hearth_committer *committer,
                                struct hearth_push_item **ret_items, size_t max);
/*
 * Items that were taken and that nobody waits for any more end, unless they may be stored: the caller knows that they
 * are not. The others move to the front of the array, in their order; returns their number.
 */
size_t hearth_commit_queue_drop_withdrawn(struct hearth_committers *all,
                                          struct hearth_push_item **items, size_t n);
/* The end of items that were taken: `done` of each. */
void hearth_commit_queue_finish(struct hearth_committers *all,
                                struct hearth_push_item *const *items, size_t n,
                                enum hearth_status status, const struct hearth_err *err);

#endif
