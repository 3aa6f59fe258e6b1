/*
 * commit_queue.h -- the queues of the committers: adding, taking and withdrawing items (private to
 * the store).
 *
 * Committers are numbered by node (nodes/nodes.h) and service: those of node k have the numbers
 * from k * n_each on. On one database all services are node 0's. An item keeps the number of its
 * committer from its submission on; if the map of nodes changes while it waits, it moves to another
 * (commit_routes.h).
 *
 * Threads: one lock, "committer.lock", guards the queues of all committers.
 */
#ifndef HEARTH_STORE_COMMIT_QUEUE_H
#define HEARTH_STORE_COMMIT_QUEUE_H

#include "hearth/base/sync.h"
#include "hearth/store/store.h"

#include "commit/commit_lanes.h"
#include "commit/commit_statements.h"
#include "nodes/nodes.h"
#include "pg/pg.h"

/* The states of an item, guarded by the lock: in this order, FAILED or STORED at the end. */
enum hearth_item_stage {
    HEARTH_ITEM_NEW,    /* not submitted, or refused */
    HEARTH_ITEM_QUEUED, /* in the queue of its committer */
    HEARTH_ITEM_TAKEN,  /* by its committer */
    HEARTH_ITEM_FAILED,
    HEARTH_ITEM_STORED,
};

/* Whether a thread other than its own stores the batch of a committer (committer.c). */
enum hearth_commit_lead {
    HEARTH_LEAD_NONE,
    HEARTH_LEAD_TAKEN, /* the thread that submitted the item is storing it */
    HEARTH_LEAD_LEFT,  /* it did not store the item: the committer's thread will */
};

struct hearth_commit_job;

struct hearth_committer {
    struct hearth_committers *all;
    unsigned number, node;
    pthread_t thread;
    pthread_cond_t wake;
    struct hearth_commit_lanes queue; /* under lock, like the next eleven */
    size_t n_rows;
    int64_t oldest_mono_ns; /* not after the submission of the oldest item that waits */
    int64_t seq;            /* of the batch in flight; INT64_MAX: no batch */
    size_t n_withdrawn;     /* items of its batch that were withdrawn */
    bool is_exposed;        /* its batch is being sent, or may have been committed */
    bool is_busy;           /* has taken items that are not finished */
    enum hearth_commit_lead lead;
    int64_t submitted_mono_ns; /* when the last item was submitted */
    int64_t mean_gap_ns;       /* between submissions, lately */
    /* Nodes that have got services of its batch, and wait for its end; any_debts: if any do. */
    bool debts[HEARTH_MAX_NODES + 1], any_debts;
    struct hearth_pg pg;      /* to its node; used by its thread or a leader, like the rest */
    struct hearth_pg catalog; /* to the coordinator; used on node 1 and above only */
    struct hearth_commit_statements statements; /* on pg */
    struct hearth_zstd_tables *tables;          /* for chunks of dictionaries; or NULL */
    int64_t backoff_ns;                         /* pause before the next attempt */
    int64_t watermark_ns;          /* the highest watermark that its batches have read */
    struct hearth_commit_job *led; /* the batch of a leader */
};

struct hearth_committers {
    struct hearth_store *store;
    struct hearth_mutex lock;         /* "committer.lock": guards queues, sums, seqs, stopping */
    pthread_cond_t idle;              /* signalled when a committer thread ends */
    struct hearth_nodes *nodes;       /* NULL: one database; set once */
    struct hearth_node_range *routes; /* numbers of committers instead of nodes */
    size_t n_routes;                  /* 0: node 0 has all services */
    uint64_t map_version;             /* of `nodes`, which the routes are made of */
    unsigned n_debtors;               /* committers that have debts */
    size_t node_rows[HEARTH_MAX_NODES + 1], node_bytes[HEARTH_MAX_NODES + 1]; /* as lane_rows */
    size_t n_rows, n_bytes; /* queued or in flight, of all committers */
    size_t lane_rows[HEARTH_COMMIT_LANES], lane_bytes[HEARTH_COMMIT_LANES]; /* the same by lane */
    int64_t next_seq;
    bool stopping;
    unsigned n_running;
    struct hearth_cancel abandon; /* set when the closing deadline has passed */
    unsigned n_each;              /* committers of a node */
    unsigned n;                   /* that were started: all of nodes 0 to some number */
    struct hearth_committer *committers[];
};

/* Under the lock: add an item to the queue, or remove one that waits; its rows are counted. */
void hearth_commit_queue_append(struct hearth_committer *committer, struct hearth_push_item *item);
void hearth_commit_queue_unlink(struct hearth_committer *committer, struct hearth_push_item *item);

/*
 * Under the lock: unlink the next batch, at least one item of a queue that is not empty, then as
 * many as the limits and `max` >= 1 allow. Returns their number.
 */
size_t hearth_commit_queue_take(struct hearth_committer *committer,
                                struct hearth_push_item **ret_items, size_t max);
/*
 * Finish the withdrawn ones of n taken items, none of which is stored. The others move to the front
 * of the array, in their order; returns their number.
 */
size_t hearth_commit_queue_drop_withdrawn(struct hearth_committers *all,
                                          struct hearth_push_item **items, size_t n);

/*
 * While the database is away: end the items of the queue that may be given back, with UNAVAILABLE.
 * The caller does not hold the lock.
 */
void hearth_commit_queue_give_back(struct hearth_committer *committer,
                                   const struct hearth_err *err);
/*
 * The same for n taken items, none of which is stored. The others move to the front of the array,
 * in their order; returns their number.
 */
size_t hearth_commit_queue_give_back_taken(struct hearth_committers *all,
                                           struct hearth_push_item **items, size_t n,
                                           const struct hearth_err *err);

/* Finish taken items: call `done` of each, without the lock. */
void hearth_commit_queue_finish(struct hearth_committers *all,
                                struct hearth_push_item *const *items, size_t n,
                                enum hearth_status status, const struct hearth_err *err);

/*
 * With the lead of the committer, whose queue the only item was taken from into `led_items`: store
 * that item. Returns when it is stored and finished, or left to the committer's thread. The caller
 * does not hold the lock.
 */
void hearth_committer_lead(struct hearth_committer *committer);
struct hearth_push_item **hearth_committer_led_items(struct hearth_committer *committer);

#endif
