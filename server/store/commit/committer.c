/*
 * committer.c -- group commit: the threads that store the queued profiles.
 *
 * A service belongs to one committer of its node (commit_routes.h), so that one connection at a
 * time writes its dictionary chunks, in their order. A committer waits until the oldest item is
 * linger_ns old, or busy_linger_ns while items keep coming, or commit_rows are queued. Then it
 * takes a batch, and stores it (settle.c). If the outcome calls for smaller batches, it stores
 * these before it takes the next one.
 *
 * A lone item is stored by the thread that submitted it, which leads the committer meanwhile: a
 * thread that sleeps is not woken for it. The leader makes one attempt. If that does not store the
 * item, the committer's thread takes the batch over as it is and settles it, because a leader has
 * other work and may not wait for a database that is away.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/base/signals.h"
#include "hearth/codec/compress.h"

#include "commit/batch.h"
#include "commit/commit_queue.h"
#include "commit/commit_routes.h"
#include "commit/committers.h"
#include "commit/ingest_dict.h"
#include "commit/settle.h"
#include "pg/pg.h"
#include "pg/store_state.h"

#include <assert.h>
#include <stdio.h>

/* ---- one batch ---- */

/* Number a batch. Until drop_seq, its batch rows are needed. */
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

/* After COMMIT: the chunks of dictionaries are stored, and items know whether they are repeated. */
static void finish_stored_batch(struct hearth_batch *batch)
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

/* Replace the error by one that says what a client can do. */
static enum hearth_status explain_failure(struct hearth_committer *committer,
                                          const struct hearth_batch *batch,
                                          enum hearth_status status, struct hearth_err *err)
{
    if (batch->in_doubt) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "the database did not say whether the profile was stored; retry");
    }

    if (hearth_committers_abandoned(committer->all)) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "the server stopped before the profile was stored; retry");
    }

    err->is_passing = status == HEARTH_RESOURCE_EXHAUSTED; /* PostgreSQL's disk is full */

    return status;
}

/* Sort the items: first those that are not blocked, whose number is returned. */
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

/* A batch on its way into the database. */
struct hearth_commit_job {
    struct hearth_push_item **items;
    size_t n;
    struct hearth_batch batch;
    struct hearth_attempts attempts;
    bool is_attempted;
    enum hearth_batch_outcome outcome; /* if it was not attempted */
    enum hearth_status status;
    struct hearth_err err;
    struct hearth_push_item *one[1]; /* the items of a leader */
};

static bool is_stored(const struct hearth_commit_job *job)
{
    return job->is_attempted && job->attempts.status == HEARTH_OK && !job->attempts.was_probe;
}

/* Encode items as one batch, and send it once. */
static void begin_job(struct hearth_commit_job *job, struct hearth_committer *committer,
                      struct hearth_push_item **items, size_t n)
{
    assert(n > 0);

    job->items = items;
    job->n = n;
    job->attempts = (struct hearth_attempts){.status = HEARTH_OK};
    job->is_attempted = false;
    job->outcome = HEARTH_OUTCOME_FAILED;
    job->err = (struct hearth_err)HEARTH_ERR_INIT;
    struct hearth_committers *all = committer->all;
    const struct hearth_batch_input input = {
        .store = all->store,
        .items = items,
        .n_items = n,
        .seq = take_seq(committer),
        .at_ns = hearth_clock_wall_ns(),
        .late_below_ns = committer->watermark_ns,
        .catalog = committer->node == 0 ? NULL : &committer->catalog,
        .committer = committer->number,
        .nodes = committer->node == 0 ? NULL : all->nodes,
        .node = committer->node,
        .statements = &committer->statements,
        .tables = committer->tables,
    };
    job->status = hearth_batch_encode(&job->batch, &input, &job->err);

    if (job->status != HEARTH_OK) {
        job->outcome = HEARTH_OUTCOME_SPLIT;
    } else if (!hearth_committers_abandoned(all)) {
        job->is_attempted = true;
        hearth_committer_attempt(committer, &job->batch, &job->attempts, &job->err);
    }
}

static void store_items(struct hearth_committer *committer, struct hearth_push_item **items,
                        size_t n);

/* Settle a batch and finish its items. Parts of a batch that was refused are stored recursively. */
static void end_job(struct hearth_commit_job *job, struct hearth_committer *committer)
{
    struct hearth_committers *all = committer->all;
    struct hearth_batch *batch = &job->batch;
    struct hearth_push_item **items = job->items;
    size_t n = job->n;
    enum hearth_batch_outcome outcome = job->outcome;
    enum hearth_status status = job->status;
    struct hearth_err *err = &job->err;

    if (job->is_attempted) {
        outcome = hearth_committer_settle(committer, batch, &job->attempts, err);
        status = job->attempts.status;
    }

    /* Take the outcome over. */
    if (outcome == HEARTH_OUTCOME_STORED) {
        finish_stored_batch(batch);
        int64_t watermark_ns = hearth_batch_watermark(batch);
        if (watermark_ns > committer->watermark_ns) {
            committer->watermark_ns = watermark_ns;
        }
        hearth_metric_add(HEARTH_M_ROLL_LATE, hearth_batch_late_rows(batch));
        hearth_metric_add(HEARTH_M_SPAN_ASSOCIATIONS, hearth_batch_associations(batch));
        hearth_batch_meter_originals(batch);
        status = HEARTH_OK;
    } else {
        status = explain_failure(committer, batch, status, err);
    }

    size_t n_first = outcome == HEARTH_OUTCOME_SORT ? move_blocked(batch, items) : n / 2;
    hearth_batch_release(batch);
    drop_seq(committer);
    /* Finish the items, or store them in smaller batches. */
    if (outcome == HEARTH_OUTCOME_SHRINK || outcome == HEARTH_OUTCOME_RETURN) {
        size_t n_kept = outcome == HEARTH_OUTCOME_SHRINK
                            ? hearth_commit_queue_drop_withdrawn(all, items, n)
                            : hearth_commit_queue_give_back_taken(all, items, n, err);
        if (n_kept > 0) {
            store_items(committer, items, n_kept);
        }
    } else if ((outcome == HEARTH_OUTCOME_SPLIT && n > 1) || outcome == HEARTH_OUTCOME_SORT) {
        committer->backoff_ns = HEARTH_BACKOFF_FIRST_NS;
        store_items(committer, items, n_first);
        store_items(committer, items + n_first, n - n_first);
    } else {
        hearth_commit_queue_finish(all, items, n, status, err);
    }
}

static void store_items(struct hearth_committer *committer, struct hearth_push_item **items,
                        size_t n)
{
    struct hearth_commit_job job;

    begin_job(&job, committer, items, n);
    end_job(&job, committer);
}

static void count_commit_cpu(int64_t from_ns, int64_t to_ns)
{
    hearth_metric_add_label(HEARTH_M_INGEST_STAGE_NS, HEARTH_STR("commit"), to_ns - from_ns);
}

/* ---- leaders ---- */

void hearth_committer_lead(struct hearth_committer *committer)
{
    struct hearth_committers *all = committer->all;
    struct hearth_commit_job *job = committer->led;
    int64_t cpu_ns = hearth_clock_thread_cpu_ns();

    /* The lead, and that the committer is busy, give this thread all that is the committer's. */
    assert(committer->lead == HEARTH_LEAD_TAKEN);
    job->n = 0;
    if (hearth_pg_alive(&committer->pg)) { /* a leader does not wait for a connection */
        committer->backoff_ns = HEARTH_BACKOFF_FIRST_NS;
        begin_job(job, committer, job->one, 1);
    }
    bool is_over = job->n > 0 && is_stored(job);
    if (is_over) {
        end_job(job, committer);
        hearth_metric_add(HEARTH_M_BATCHES_LED, 1);
    }
    count_commit_cpu(cpu_ns, hearth_clock_thread_cpu_ns());

    /* Signal it under the lock: after that the committer may end. */
    hearth_mutex_lock(&all->lock);
    committer->lead = is_over ? HEARTH_LEAD_NONE : HEARTH_LEAD_LEFT;
    if (is_over) {
        hearth_commit_end_busy(committer);
    }
    if (!is_over || committer->n_rows > 0 || all->stopping) {
        (void)pthread_cond_signal(&committer->wake);
    }
    hearth_mutex_unlock(&all->lock);
}

/* For the committer's thread: store the item that a leader has left. */
static void end_left_job(struct hearth_committer *committer)
{
    struct hearth_commit_job *job = committer->led;

    if (job->n > 0) {
        end_job(job, committer);
    } else { /* it was not sent */
        committer->backoff_ns = HEARTH_BACKOFF_FIRST_NS;
        store_items(committer, job->one, 1);
    }
}

struct hearth_push_item **hearth_committer_led_items(struct hearth_committer *committer)
{
    return committer->led->one;
}

/* ---- threads ---- */

/*
 * When the queued items are due. An item that arrived in the second half of linger_ns promises more
 * of them. Clients that wait for an acknowledgement before they send again send together, just
 * after the commit before, so no item of theirs arrives in the second half, and none waits longer.
 */
static int64_t find_due_ns(const struct hearth_committer *committer)
{
    const struct hearth_store_options *options = &committer->all->store->options;
    int64_t oldest_ns = committer->oldest_mono_ns;
    hearth_mutex_assert_held(&committer->all->lock);

    bool keep_coming = committer->submitted_mono_ns - oldest_ns > options->linger_ns / 2;

    return oldest_ns + (keep_coming && options->busy_linger_ns > options->linger_ns
                            ? options->busy_linger_ns
                            : options->linger_ns);
}

/*
 * Wait until a batch is due, or one was left by a leader. Returns false if the server is stopping
 * and the queue is empty. The caller holds the lock.
 */
static bool wait_for_work(struct hearth_committer *committer)
{
    struct hearth_committers *all = committer->all;
    hearth_mutex_assert_held(&all->lock);

    const struct hearth_store_options *options = &all->store->options;
    for (;;) {
        if (committer->lead == HEARTH_LEAD_LEFT) {
            return true;
        }
        if (committer->lead == HEARTH_LEAD_TAKEN) { /* the leader signals when it ends */
            hearth_mutex_wait(&all->lock, &committer->wake);
            continue;
        }
        if (committer->n_rows == 0 && all->stopping) {
            return false;
        }
        if (committer->n_rows == 0 || hearth_commit_is_owed(committer)) {
            hearth_mutex_wait(&all->lock, &committer->wake);
            continue;
        }
        int64_t due_ns = find_due_ns(committer);
        if (all->stopping || committer->n_rows >= options->commit_rows ||
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
        bool was_left = committer->lead == HEARTH_LEAD_LEFT;
        committer->lead = HEARTH_LEAD_NONE; /* as long as it is busy, nobody leads */
        size_t n = was_left ? 0
                            : hearth_commit_queue_take(committer, items == NULL ? one : items,
                                                       items == NULL ? 1 : max);
        hearth_mutex_unlock(&all->lock);
        if (was_left) {
            end_left_job(committer);
        } else {
            committer->backoff_ns = HEARTH_BACKOFF_FIRST_NS;
            store_items(committer, items == NULL ? one : items, n);
        }
        int64_t now_ns = hearth_clock_thread_cpu_ns();
        count_commit_cpu(cpu_ns, now_ns);
        cpu_ns = now_ns;
        hearth_mutex_lock(&all->lock);
        hearth_commit_end_busy(committer);
    }

    all->n_running--;
    (void)pthread_cond_signal(&all->idle);
    hearth_mutex_unlock(&all->lock);
    hearth_pg_close(&committer->pg);
    hearth_pg_close(&committer->catalog);
    hearth_mem_free(items);

    return NULL;
}

/* Make and start the next committer. */
static enum hearth_status start_committer(struct hearth_committers *all, struct hearth_err *err)
{
    const struct hearth_store *store = all->store;
    struct hearth_committer *committer = hearth_mem_zalloc(sizeof *committer);
    struct hearth_commit_job *led = hearth_mem_zalloc(sizeof *led);
    if (committer == NULL || led == NULL) {
        hearth_mem_free(committer);
        hearth_mem_free(led);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a committer");
    }

    const struct hearth_pg to_primary = {.url = store->url,
                                         .lineage = &all->store->lineage,
                                         .cancel = &all->abandon,
                                         .timeout_ms = store->options.statement_timeout_ms};
    *committer = (struct hearth_committer){.all = all,
                                           .number = all->n,
                                           .node = all->n / all->n_each,
                                           .seq = INT64_MAX,
                                           .led = led,
                                           .tables = hearth_zstd_tables_new(),
                                           .pg = to_primary,
                                           .catalog = to_primary};
    hearth_cond_init(&committer->wake);
    hearth_mutex_lock(&all->lock);
    bool started = pthread_create(&committer->thread, NULL, run_committer, committer) == 0;
    if (started) {
        all->committers[all->n++] = committer;
        all->n_running++;
    }
    hearth_mutex_unlock(&all->lock);
    if (!started) {
        (void)pthread_cond_destroy(&committer->wake);
        hearth_zstd_tables_free(committer->tables);
        hearth_mem_free(led);
        hearth_mem_free(committer);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot start %u committer threads",
                           all->n + 1);
    }

    char name[16];
    (void)snprintf(name, sizeof name, "commit-%u", committer->number % 1000);
    (void)pthread_setname_np(committer->thread, name);

    return HEARTH_OK;
}

enum hearth_status hearth_committers_add(struct hearth_committers *all, unsigned n_nodes,
                                         struct hearth_err *err)
{
    assert(n_nodes >= 1 && n_nodes <= HEARTH_MAX_NODES + 1);

    enum hearth_status status = HEARTH_OK;
    sigset_t everything, old; /* signals are for the main thread */
    hearth_signals_to_block(&everything);
    (void)pthread_sigmask(SIG_BLOCK, &everything, &old);
    while (status == HEARTH_OK && all->n < n_nodes * all->n_each) {
        status = start_committer(all, err);
    }
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);

    return status;
}

enum hearth_status hearth_committers_start(struct hearth_store *store,
                                           struct hearth_committers **ret_committers,
                                           struct hearth_err *err)
{
    unsigned n_each = store->options.n_committers;
    struct hearth_committers *all = hearth_mem_zalloc(
        sizeof *all + (HEARTH_MAX_NODES + 1) * (size_t)n_each * sizeof(struct hearth_committer *));
    if (all == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the committers");
    }

    all->store = store;
    all->n_each = n_each;
    all->next_seq = 1;
    hearth_cancel_init(&all->abandon, INT64_MAX);
    hearth_mutex_init(&all->lock, HEARTH_RANK_COMMITTER, "committer.lock");
    hearth_cond_init(&all->idle);
    enum hearth_status status = hearth_committers_add(all, 1, err);
    if (status != HEARTH_OK) {
        hearth_committers_stop(all, 0);
        return status;
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
        (void)pthread_cond_broadcast(&all->committers[i]->wake);
    }

    while (all->n_running > 0 && hearth_clock_mono_ns() < deadline_mono_ns) {
        (void)hearth_mutex_wait_until(&all->lock, &all->idle, deadline_mono_ns);
    }

    atomic_store(&all->abandon.cancelled, true);
    for (unsigned i = 0; i < all->n; i++) {
        (void)pthread_cond_broadcast(&all->committers[i]->wake);
    }

    hearth_mutex_unlock(&all->lock);
    for (unsigned i = 0; i < all->n; i++) {
        (void)pthread_join(all->committers[i]->thread, NULL);
    }
    for (unsigned i = 0; i < all->n; i++) { /* the last one may signal the others */
        (void)pthread_cond_destroy(&all->committers[i]->wake);
        hearth_zstd_tables_free(all->committers[i]->tables);
        hearth_mem_free(all->committers[i]->led);
        hearth_mem_free(all->committers[i]);
    }

    (void)pthread_cond_destroy(&all->idle);
    hearth_mutex_destroy(&all->lock);
    hearth_mem_free(all->routes);
    hearth_mem_free(all);
}

enum hearth_status hearth_committers_list_unsettled(struct hearth_committers *all,
                                                    struct hearth_arena *arena, int64_t **ret,
                                                    size_t *ret_n, int64_t *ret_next,
                                                    struct hearth_err *err)
{
    hearth_mutex_lock(&all->lock);
    int64_t *seqs = hearth_arena_array(arena, all->n, sizeof seqs[0]);
    size_t n = 0;
    for (unsigned i = 0; seqs != NULL && i < all->n; i++) {
        if (all->committers[i]->seq != INT64_MAX) {
            seqs[n++] = all->committers[i]->seq;
        }
    }
    *ret_next = all->next_seq;
    hearth_mutex_unlock(&all->lock);
    *ret = seqs;
    *ret_n = n;

    return seqs != NULL ? HEARTH_OK : HEARTH_FAIL_ARENA(err, arena);
}
