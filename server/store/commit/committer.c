/*
 * committer.c -- group commit: the threads that empty the queues, and what they do about every fault.
 *
 * A service belongs to committer service_id % n, so that one connection at a time writes its
 * dictionary chunks, in their order. A committer waits until the oldest item is linger_ns old or
 * max_batch_rows are there, takes a batch, and keeps at it until it is settled:
 *
 *   committed                           done(OK)
 *   23505 on ingest_batch, and an       the earlier attempt was committed: done(OK)
 *     attempt before was in doubt
 *   connection lost, or "retry"         again, the same bytes under the same seq; 10 to 640 ms apart
 *   lost 4 times on the way             settled by a probe; not stored: as "anything else"
 *   no such partition                   make it, again
 *   disk full                           done(RESOURCE_EXHAUSTED)
 *   nobody waits for some of it         without them, a batch of its own
 *   some need a leaf that is dropped    the others first, a batch of their own
 *   anything else                       halves, each a batch of its own; a single item: done(INTERNAL)
 *
 * Nothing but the first two lines and the retry may happen while an attempt is in doubt: what is
 * failed or split must be known not to be stored.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/base/signals.h"

#include "commit/batch.h"
#include "commit/commit_queue.h"
#include "commit/committers.h"
#include "commit/ingest_dict.h"
#include "pg/partitions.h"
#include "pg/pg.h"
#include "pg/session.h"
#include "pg/store_state.h"

#include <stdio.h>

#define CONNECT_TIMEOUT_MS  5000
#define BACKOFF_FIRST_NS    (10 * HEARTH_NS_PER_MS)
#define BACKOFF_LAST_NS     (640 * HEARTH_NS_PER_MS)
#define MAX_ANSWERED_TRIES  12 /* of errors that PostgreSQL itself says to retry: about 5 s */
#define MAX_PARTITION_TRIES 3
/* Connections lost while one batch was being stored, before it is taken for the cause. */
#define MAX_LOST_CONNECTIONS 4
/* housekeeping.c deletes batch rows of servers not seen for a day: asking later could store a batch
 * twice. */
#define MAX_DOUBT_NS (12 * HEARTH_NS_PER_HOUR)

/* ---- settling a batch ---- */

enum verdict {
    VERDICT_STORED,
    VERDICT_FAILED, /* none is stored, or (closing only) nobody knows */
    VERDICT_SPLIT,  /* none is stored; try smaller ones */
    VERDICT_SHRINK, /* none is stored; some were withdrawn */
    VERDICT_SORT,   /* none is stored; some are blocked, others are not */
    VERDICT_AGAIN,
};

struct attempts {
    int64_t doubt_since_ns;
    unsigned n_answered;
    unsigned n_lost; /* connections that ended while the batch was on its way */
};

static bool abandoned(struct hearth_committers *all)
{
    return atomic_load(&all->abandon.cancelled);
}

/*
 * The leaves that the batch writes to on a day. While retention or compaction drops the old leaf of profiles, a new one
 * cannot be made. Late profiles of the day do not need it.
 */
static enum hearth_status ensure_day(struct hearth_committer *committer, struct hearth_batch *batch,
                                     size_t i, struct hearth_err *err)
{
    struct hearth_store *store = committer->all->store;
    int32_t day = batch->days[i].day;
    bool leaving = false;

    HEARTH_TRY(hearth_batch_avoid_leaf(batch, i, false, err)); /* it may have gone meanwhile */
    unsigned leaves = hearth_batch_leaves(batch, i);
    enum hearth_status status = hearth_partitions_ensure(store, &committer->pg, leaves, day, err);
    if (status != HEARTH_UNAVAILABLE || (leaves & HEARTH_LEAF_PROFILE) == 0 ||
        !hearth_pg_alive(&committer->pg)) {
        return status;
    }

    HEARTH_TRY(hearth_partitions_is_leaving(&committer->pg, "profile", day, &leaving, err));
    if (!leaving) {
        return status;
    }

    HEARTH_TRY(hearth_batch_avoid_leaf(batch, i, true, err));

    return hearth_partitions_ensure(store, &committer->pg, hearth_batch_leaves(batch, i), day, err);
}

static enum hearth_status ensure_days(struct hearth_committer *committer,
                                      struct hearth_batch *batch, enum hearth_pg_fault *ret_fault,
                                      struct hearth_err *err)
{
    for (size_t i = 0; i < batch->n_days; i++) {
        enum hearth_status status = ensure_day(committer, batch, i, err);
        if (status != HEARTH_OK) {
            *ret_fault = committer->pg.conn == NULL            ? HEARTH_PG_FAULT_CONNECTION
                         : status == HEARTH_UNAVAILABLE        ? HEARTH_PG_FAULT_RETRY
                         : status == HEARTH_RESOURCE_EXHAUSTED ? HEARTH_PG_FAULT_DISK_FULL
                                                               : HEARTH_PG_FAULT_OTHER;
            return status;
        }
    }

    return HEARTH_OK;
}

/* A row may end the process that stores it, and again each time: then it must not be sent for ever. */
static bool is_suspect(const struct attempts *attempts)
{
    return attempts->n_lost >= MAX_LOST_CONNECTIONS;
}

/* Under the lock: a batch that may be stored is sent as it is. */
static bool must_shrink(const struct hearth_committer *committer, const struct hearth_batch *batch)
{
    hearth_mutex_assert_held(&committer->all->lock);

    bool any = false;
    for (size_t i = 0; i < batch->n_items && committer->n_withdrawn > 0 && !batch->in_doubt; i++) {
        any = any || batch->items[i].item->is_withdrawn;
    }
    return any;
}

/*
 * From here on, until _cover, an item of the batch that is withdrawn may be stored. False: some were withdrawn before,
 * and are not to be sent.
 */
static bool expose(struct hearth_committer *committer, const struct hearth_batch *batch)
{
    hearth_mutex_lock(&committer->all->lock);
    committer->is_exposed = !must_shrink(committer, batch);
    bool is_exposed = committer->is_exposed;
    hearth_mutex_unlock(&committer->all->lock);
    return is_exposed;
}

/* After an attempt. False: the batch is not stored, and some of it were withdrawn. */
static bool cover(struct hearth_committer *committer, const struct hearth_batch *batch, bool stored)
{
    hearth_mutex_lock(&committer->all->lock);
    committer->is_exposed = stored || batch->in_doubt;
    bool is_whole = stored || !must_shrink(committer, batch);
    hearth_mutex_unlock(&committer->all->lock);
    return is_whole;
}

static enum hearth_status attempt(struct hearth_committer *committer, struct hearth_batch *batch,
                                  struct attempts *attempts, enum hearth_pg_fault *ret_fault,
                                  struct hearth_err *err)
{
    batch->n_results = 0;
    if (!hearth_pg_alive(&committer->pg)) {
        enum hearth_status status = hearth_pg_connect(&committer->pg, CONNECT_TIMEOUT_MS, err);
        if (status != HEARTH_OK) {
            *ret_fault = HEARTH_PG_FAULT_CONNECTION;
            return status;
        }
    }

    if (is_suspect(attempts)) {
        return hearth_batch_probe(batch, &committer->pg, ret_fault, err);
    }

    HEARTH_TRY(ensure_days(committer, batch, ret_fault, err));
    if (!expose(committer, batch)) {
        return HEARTH_FAIL(err, HEARTH_ABORTED, "some of the batch were withdrawn");
    }

    enum hearth_status status = hearth_batch_send(batch, &committer->pg, ret_fault, err);
    if (status != HEARTH_OK) {
        hearth_pg_rollback(&committer->pg);
        attempts->n_lost += committer->pg.conn == NULL;
    }

    return status;
}

static void forget_days(struct hearth_committer *committer, const struct hearth_batch *batch)
{
    for (size_t i = 0; i < batch->n_days; i++) {
        hearth_partitions_forget(committer->all->store, batch->days[i].day);
    }
}

/* An answered error of an attempt that is known not to be stored. */
static enum verdict judge_answered(struct hearth_committer *committer,
                                   const struct hearth_batch *batch, enum hearth_pg_fault fault,
                                   struct attempts *attempts)
{
    switch (fault) {
    case HEARTH_PG_FAULT_MISSING_TABLE:
        forget_days(committer, batch); /* 23514 may also be a constraint that one row breaks */
        return ++attempts->n_answered < MAX_PARTITION_TRIES ? VERDICT_AGAIN : VERDICT_SPLIT;
    case HEARTH_PG_FAULT_RETRY:
    case HEARTH_PG_FAULT_CANCELLED:
        return ++attempts->n_answered < MAX_ANSWERED_TRIES ? VERDICT_AGAIN : VERDICT_FAILED;
    case HEARTH_PG_FAULT_DISK_FULL:
        return VERDICT_FAILED;
    case HEARTH_PG_FAULT_UNIQUE:
        /* Chunks of another history under our names (a database restored to an earlier state). */
        for (size_t i = 0; i < batch->n_dicts && batch->n_results >= 2; i++) {
            hearth_ingest_dict_retire(batch->dicts[i].dict);
        }
        return VERDICT_SPLIT;
    case HEARTH_PG_FAULT_NONE:
    case HEARTH_PG_FAULT_CONNECTION:
    case HEARTH_PG_FAULT_OTHER:
        break;
    }

    return VERDICT_SPLIT;
}

static enum verdict judge(struct hearth_committer *committer, const struct hearth_batch *batch,
                          bool was_in_doubt, enum hearth_pg_fault fault, struct attempts *attempts)
{
    if (fault == HEARTH_PG_FAULT_UNIQUE && was_in_doubt && batch->n_results == 1) {
        hearth_metric_add(HEARTH_M_BATCH_SETTLED, 1);
        return VERDICT_STORED;
    }

    if (committer->pg.conn == NULL || batch->in_doubt) {
        return abandoned(committer->all) ? VERDICT_FAILED : VERDICT_AGAIN;
    }

    size_t n_blocked = hearth_batch_blocked(batch);

    return n_blocked > 0 && n_blocked < batch->n_items
               ? VERDICT_SORT
               : judge_answered(committer, batch, fault, attempts);
}

static const char *fault_name(enum hearth_pg_fault fault)
{
    switch (fault) {
    case HEARTH_PG_FAULT_CONNECTION:
        return "connection";
    case HEARTH_PG_FAULT_RETRY:
        return "busy";
    case HEARTH_PG_FAULT_CANCELLED:
        return "timeout";
    case HEARTH_PG_FAULT_MISSING_TABLE:
        return "partition";
    case HEARTH_PG_FAULT_DISK_FULL:
        return "disk";
    case HEARTH_PG_FAULT_NONE:
    case HEARTH_PG_FAULT_UNIQUE:
    case HEARTH_PG_FAULT_OTHER:
        break;
    }

    return "other";
}

static void back_off(struct hearth_committer *committer)
{
    struct hearth_committers *all = committer->all;
    int64_t until_ns = hearth_clock_mono_ns() + committer->backoff_ns;

    committer->backoff_ns =
        committer->backoff_ns * 2 > BACKOFF_LAST_NS ? BACKOFF_LAST_NS : committer->backoff_ns * 2;
    hearth_mutex_lock(&all->lock);
    while (!abandoned(all) && hearth_mutex_wait_until(&all->lock, &committer->wake, until_ns)) {
    }

    hearth_mutex_unlock(&all->lock);
}

/* Attempt until there is a verdict other than "again". *ret_status and err are the last attempt's.
 */
static enum verdict settle(struct hearth_committer *committer, struct hearth_batch *batch,
                           enum hearth_status *ret_status, struct hearth_err *err)
{
    struct hearth_store *store = committer->all->store;
    struct attempts attempts = {0};

    for (;;) {
        enum hearth_pg_fault fault = HEARTH_PG_FAULT_NONE;
        bool was_in_doubt = batch->in_doubt;
        bool is_probe = is_suspect(&attempts);
        enum hearth_status status = attempt(committer, batch, &attempts, &fault, err);
        *ret_status = status;
        bool is_whole = cover(committer, batch, status == HEARTH_OK && !is_probe);
        if (status == HEARTH_OK && is_probe) {
            *ret_status = HEARTH_FAIL(err, HEARTH_INTERNAL,
                                      "the database ended %u connections that were storing it",
                                      attempts.n_lost);
            return VERDICT_SPLIT;
        }
        if (status == HEARTH_OK) {
            return VERDICT_STORED;
        }
        enum verdict verdict = judge(committer, batch, was_in_doubt, fault, &attempts);
        if (batch->in_doubt && attempts.doubt_since_ns == 0) {
            attempts.doubt_since_ns = hearth_clock_mono_ns();
        } else if (!batch->in_doubt) {
            attempts.doubt_since_ns = 0;
        } else if (hearth_clock_mono_ns() - attempts.doubt_since_ns > MAX_DOUBT_NS) {
            verdict = VERDICT_FAILED;
        }
        bool may_shrink = !is_whole && (verdict == VERDICT_AGAIN || verdict == VERDICT_SPLIT);
        if (verdict != VERDICT_AGAIN) {
            return may_shrink ? VERDICT_SHRINK : verdict;
        }
        hearth_metric_add_label(HEARTH_M_BATCH_RETRIES, hearth_str_c(fault_name(fault)), 1);
        if (committer->pg.conn == NULL && !abandoned(committer->all)) {
            hearth_store_note_away(store, err->msg);
        }
        back_off(committer);
        if (may_shrink) {
            return VERDICT_SHRINK;
        }
    }
}

static int64_t take_seq(struct hearth_committer *committer)
{
    struct hearth_committers *all = committer->all;
    hearth_mutex_lock(&all->lock);
    int64_t seq = all->next_seq++;
    committer->seq = seq;
    hearth_mutex_unlock(&all->lock);
    return seq;
}

static void drop_seq(struct hearth_committer *committer)
{
    hearth_mutex_lock(&committer->all->lock);
    committer->seq = INT64_MAX;
    hearth_mutex_unlock(&committer->all->lock);
}

static void take_over(struct hearth_batch *batch)
{
    for (size_t i = 0; i < batch->n_dicts; i++) {
        if (batch->dicts[i].cut) {
            hearth_ingest_dict_commit(batch->dicts[i].dict, batch->dicts[i].upto);
        }
    }

    for (size_t i = 0; i < batch->n_items; i++) {
        batch->items[i].item->repeated = batch->items[i].twin || batch->items[i].repeated;
    }

    hearth_metric_add(HEARTH_M_BATCHES, 1);
}

/* Say what a client can do about it. */
static enum hearth_status explain(struct hearth_committer *committer,
                                  const struct hearth_batch *batch, enum hearth_status status,
                                  struct hearth_err *err)
{
    if (batch->in_doubt) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "the database did not say whether the profile was stored; retry");
    }

    if (abandoned(committer->all)) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "the server stopped before the profile was stored; retry");
    }

    err->is_passing = status == HEARTH_RESOURCE_EXHAUSTED; /* PostgreSQL's disk is full */

    return status;
}

/* The items of the batch in their order, those that are blocked behind the others. Returns the number of others. */
static size_t move_blocked(const struct hearth_batch *batch, struct hearth_push_item **items)
{
    size_t n = 0;
    for (int blocked = 0; blocked < 2; blocked++) {
        for (size_t i = 0; i < batch->n_items; i++) {
            if (batch->items[i].blocked == (blocked == 1)) {
                items[n++] = batch->items[i].item;
            }
        }
    }

    return batch->n_items - hearth_batch_blocked(batch);
}

/* Encode, settle and finish items; halves of a batch that was refused come back here. */
static void process(struct hearth_committer *committer, struct hearth_push_item **items, size_t n)
{
    struct hearth_committers *all = committer->all;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_batch batch;
    enum verdict verdict = VERDICT_FAILED;
    enum hearth_status status =
        hearth_batch_encode(&batch, items, n, all->store->batch_writer_id, take_seq(committer),
                            hearth_clock_wall_ns(), committer->watermark_ns, &err);

    if (status != HEARTH_OK) {
        verdict = VERDICT_SPLIT;
    } else if (!abandoned(all)) {
        verdict = settle(committer, &batch, &status, &err);
    }

    if (verdict == VERDICT_STORED) {
        take_over(&batch);
        int64_t watermark_ns = hearth_batch_watermark(&batch);
        if (watermark_ns > committer->watermark_ns) {
            committer->watermark_ns = watermark_ns;
        }
        hearth_metric_add(HEARTH_M_ROLL_LATE, hearth_batch_late_rows(&batch));
        hearth_metric_add(HEARTH_M_SPAN_ASSOCIATIONS, hearth_batch_associations(&batch));
        status = HEARTH_OK;
    } else {
        status = explain(committer, &batch, status, &err);
    }

    size_t n_first = verdict == VERDICT_SORT ? move_blocked(&batch, items) : n / 2;
    hearth_batch_release(&batch);
    drop_seq(committer);
    if (verdict == VERDICT_SHRINK) {
        size_t n_kept = hearth_commit_queue_drop_withdrawn(all, items, n);
        if (n_kept > 0) {
            process(committer, items, n_kept);
        }
    } else if ((verdict == VERDICT_SPLIT && n > 1) || verdict == VERDICT_SORT) {
        committer->backoff_ns = BACKOFF_FIRST_NS;
        process(committer, items, n_first);
        process(committer, items + n_first, n - n_first);
    } else {
        hearth_commit_queue_finish(all, items, n, status, &err);
    }
}

/* ---- threads ---- */

/* Wait for a batch to be due. False: stopping, and nothing is left. Under the lock. */
static bool wait_for_work(struct hearth_committer *committer)
{
    struct hearth_committers *all = committer->all;
    hearth_mutex_assert_held(&all->lock);

    const struct hearth_store_options *options = &all->store->options;
    for (;;) {
        if (committer->head == NULL) {
            if (all->stopping) {
                return false;
            }
            hearth_mutex_wait(&all->lock, &committer->wake);
            continue;
        }
        int64_t due_ns = committer->head->queued_mono_ns + options->linger_ns;
        if (all->stopping || committer->n_rows >= options->max_batch_rows ||
            hearth_clock_mono_ns() >= due_ns) {
            return true;
        }
        (void)hearth_mutex_wait_until(&all->lock, &committer->wake, due_ns);
    }
}

static void *run_committer(void *arg)
{
    struct hearth_committer *committer = arg;
    struct hearth_committers *all = committer->all;
    size_t max = all->store->options.max_batch_rows;
    struct hearth_push_item **items = hearth_mem_calloc(max, sizeof(void *));
    struct hearth_push_item *one[1];
    int64_t cpu_ns = hearth_clock_thread_cpu_ns();

    hearth_mutex_lock(&all->lock);
    while (wait_for_work(committer)) {
        size_t n = hearth_commit_queue_take(committer, items == NULL ? one : items,
                                            items == NULL ? 1 : max);
        hearth_mutex_unlock(&all->lock);
        committer->backoff_ns = BACKOFF_FIRST_NS;
        process(committer, items == NULL ? one : items, n);
        int64_t now_ns = hearth_clock_thread_cpu_ns();
        hearth_metric_add_label(HEARTH_M_INGEST_STAGE_NS, HEARTH_STR("commit"), now_ns - cpu_ns);
        cpu_ns = now_ns;
        hearth_mutex_lock(&all->lock);
    }

    all->n_running--;
    (void)pthread_cond_signal(&all->idle);
    hearth_mutex_unlock(&all->lock);
    hearth_pg_close(&committer->pg);
    hearth_mem_free(items);

    return NULL;
}

enum hearth_status hearth_committers_start(struct hearth_store *store,
                                           struct hearth_committers **ret_committers,
                                           struct hearth_err *err)
{
    unsigned n = store->options.n_committers;
    struct hearth_committers *all = hearth_mem_zalloc(sizeof *all + n * sizeof all->committers[0]);

    if (all == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the committers");
    }

    all->store = store;
    all->next_seq = 1;
    hearth_cancel_init(&all->abandon, INT64_MAX);
    hearth_mutex_init(&all->lock, HEARTH_RANK_COMMITTER, "committer.lock");
    hearth_cond_init(&all->idle);
    sigset_t everything, old; /* signals are for the main thread */
    hearth_signals_to_block(&everything);
    (void)pthread_sigmask(SIG_BLOCK, &everything, &old);
    for (; all->n < n; all->n++) {
        struct hearth_committer *committer = &all->committers[all->n];
        *committer =
            (struct hearth_committer){.all = all,
                                      .seq = INT64_MAX,
                                      .pg = {.url = store->url,
                                             .cancel = &all->abandon,
                                             .timeout_ms = store->options.statement_timeout_ms}};
        hearth_cond_init(&committer->wake);
        hearth_mutex_lock(&all->lock);
        bool started = pthread_create(&committer->thread, NULL, run_committer, committer) == 0;
        all->n_running += started;
        hearth_mutex_unlock(&all->lock);
        if (!started) {
            (void)pthread_cond_destroy(&committer->wake);
            break;
        }
        char name[16];
        (void)snprintf(name, sizeof name, "commit-%u", all->n % 1000);
        (void)pthread_setname_np(committer->thread, name);
    }

    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (all->n < n) {
        hearth_committers_stop(all, 0);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot start %u committer threads", n);
    }

    *ret_committers = all;

    return HEARTH_OK;
}

void hearth_committers_stop(struct hearth_committers *all, int64_t deadline_mono_ns)
{
    if (all == NULL) {
        return;
    }

    hearth_mutex_lock(&all->lock);
    all->stopping = true;
    for (unsigned i = 0; i < all->n; i++) {
        (void)pthread_cond_broadcast(&all->committers[i].wake);
    }

    while (all->n_running > 0 && hearth_clock_mono_ns() < deadline_mono_ns) {
        (void)hearth_mutex_wait_until(&all->lock, &all->idle, deadline_mono_ns);
    }

    atomic_store(&all->abandon.cancelled, true);
    for (unsigned i = 0; i < all->n; i++) {
        (void)pthread_cond_broadcast(&all->committers[i].wake);
    }

    hearth_mutex_unlock(&all->lock);
    for (unsigned i = 0; i < all->n; i++) {
        (void)pthread_join(all->committers[i].thread, NULL);
        (void)pthread_cond_destroy(&all->committers[i].wake);
    }

    (void)pthread_cond_destroy(&all->idle);
    hearth_mutex_destroy(&all->lock);
    hearth_mem_free(all);
}

int64_t hearth_committers_settled_below(struct hearth_committers *all)
{
    hearth_mutex_lock(&all->lock);
    int64_t below = all->next_seq;
    for (unsigned i = 0; i < all->n; i++) {
        below = all->committers[i].seq < below ? all->committers[i].seq : below;
    }
    hearth_mutex_unlock(&all->lock);
    return below;
}
