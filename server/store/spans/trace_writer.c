/*
 * trace_writer.c -- the queue of spans and snapshots, and the thread that empties it
 * (trace_writer.h). The outcomes of a batch:
 *
 *   committed             done(OK)
 *   the database is away  tried again for ten seconds, 20 to 640 ms apart; then done(UNAVAILABLE)
 *   any other failure     each item is stored alone: done(its own status)
 *
 * Spans that other nodes of distributed tables own are handed to the lanes (trace_lanes.h), which
 * end their items.
 */
#include "spans/trace_writer.h"

#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/base/signals.h"

#include "pg/store_state.h"
#include "session/disk.h"
#include "session/session.h"
#include "spans/trace_lanes.h"

#include <assert.h>

#define LINGER_NS        (10 * HEARTH_NS_PER_MS) /* how long a batch waits for more items */
#define MAX_BATCH_ITEMS  1000
#define MAX_BATCH_BYTES  ((size_t)8 << 20)
#define BACKOFF_FIRST_NS (20 * HEARTH_NS_PER_MS)
#define BACKOFF_LAST_NS  (640 * HEARTH_NS_PER_MS)
#define PATIENCE_NS      (10 * HEARTH_NS_PER_SEC)
/* Approximate bytes of an item without its groups and snapshots: structs, arenas, parameters. */
#define ITEM_BYTES 2048u

struct hearth_trace_writer {
    struct hearth_store *store;
    pthread_t thread;
    struct hearth_mutex lock; /* guards the members up to ended */
    pthread_cond_t wake;      /* an item was queued, or stopping, ended or cancel was set */
    struct hearth_trace_item *head, *tail;
    size_t n_items; /* queued */
    size_t n_bytes; /* queued or in the current batch */
    bool stopping;  /* no items are accepted; the thread ends when the queue is empty */
    bool ended;     /* the thread has ended */

    struct hearth_cancel cancel; /* set when the deadline of _stop has passed */
    struct hearth_trace_lanes *lanes;
    /* Only for the thread: */
    struct hearth_trace_names names;
    struct hearth_trace_item *batch[MAX_BATCH_ITEMS];
};

/* ---- queue ---- */

static size_t count_trace_item_bytes(const struct hearth_trace_item *item)
{
    size_t n = ITEM_BYTES + item->n_groups * sizeof *item->groups +
               item->n_snapshots * sizeof *item->snapshots;

    for (size_t i = 0; i < item->n_groups; i++) {
        const struct hearth_span_group *group = &item->groups[i];
        n += group->spans.n + group->service.n + group->instance.n + group->trace_id.n +
             group->segment_id.n + group->endpoint.n + group->n_span_ids * sizeof *group->span_ids;
    }

    for (size_t i = 0; i < item->n_snapshots; i++) {
        const struct hearth_snapshot *snapshot = &item->snapshots[i].snapshot;
        n += item->snapshots[i].task_id.n + item->snapshots[i].segment_id.n;
        for (uint32_t k = 0; k < snapshot->n_frames; k++) {
            n += sizeof snapshot->frames[k] + snapshot->frames[k].n;
        }
    }

    return n;
}

/* The lock is held. An item is always accepted if the queue is empty. */
static enum hearth_status check_trace_queue_room(const struct hearth_trace_writer *writer,
                                                 const struct hearth_trace_item *item,
                                                 struct hearth_err *err)
{
    size_t max = writer->store->options.max_span_queue_bytes;
    hearth_mutex_assert_held(&writer->lock);

    if (writer->stopping) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "the server is stopping");
    }

    if (writer->n_bytes > 0 && (item->n_bytes > max || writer->n_bytes > max - item->n_bytes)) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "the queue of spans is full (max-span-queue-bytes %zu); retry", max);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_store_submit_traces(struct hearth_store *store,
                                              struct hearth_trace_item *item,
                                              struct hearth_err *err)
{
    assert(item->done != NULL);
    HEARTH_TRY(hearth_store_check_writable(store, err));
    HEARTH_TRY(hearth_disk_check(store, err));

    struct hearth_trace_writer *writer = store->trace_writer;
    item->n_bytes = count_trace_item_bytes(item);
    item->queued_mono_ns = hearth_clock_mono_ns();
    item->next = NULL;
    item->n_parts = 0;
    item->part_status = HEARTH_OK;
    item->part_err = (struct hearth_err)HEARTH_ERR_INIT;

    hearth_mutex_lock(&writer->lock);
    enum hearth_status status = check_trace_queue_room(writer, item, err);
    if (status == HEARTH_OK) {
        if (writer->head == NULL) {
            writer->head = item;
        } else {
            writer->tail->next = item;
        }

        writer->tail = item;
        writer->n_items++;
        writer->n_bytes += item->n_bytes;
        hearth_metric_set(HEARTH_M_SPAN_QUEUE_BYTES, (int64_t)writer->n_bytes);
        (void)pthread_cond_broadcast(&writer->wake);
    }

    hearth_mutex_unlock(&writer->lock);

    return status;
}

/* Wait until the thread is woken or the time has passed. The lock is held. */
static void wait_for_wake(struct hearth_trace_writer *writer, int64_t until_mono_ns)
{
    (void)hearth_mutex_wait_until(&writer->lock, &writer->wake, until_mono_ns);
}

/* Wait for items and move them into writer->batch. Returns 0 if stopping and the queue is empty. */
static size_t take_batch(struct hearth_trace_writer *writer)
{
    /* Wait for one item, then a short time for more. */
    hearth_mutex_lock(&writer->lock);
    while (writer->head == NULL && !writer->stopping) {
        hearth_mutex_wait(&writer->lock, &writer->wake);
    }

    while (writer->head != NULL && !writer->stopping && writer->n_items < MAX_BATCH_ITEMS &&
           hearth_clock_mono_ns() < writer->head->queued_mono_ns + LINGER_NS) {
        wait_for_wake(writer, writer->head->queued_mono_ns + LINGER_NS);
    }

    /* Take as many as a batch may have, at least one. */
    size_t n = 0, n_bytes = 0;
    while (writer->head != NULL && n < MAX_BATCH_ITEMS &&
           (n == 0 || n_bytes + writer->head->n_bytes <= MAX_BATCH_BYTES)) {
        struct hearth_trace_item *item = writer->head;
        writer->head = item->next;
        n_bytes += item->n_bytes;
        writer->batch[n++] = item;
    }

    assert(n <= writer->n_items);
    writer->n_items -= n;
    hearth_mutex_unlock(&writer->lock);

    return n;
}

static void end_trace_item(struct hearth_trace_writer *writer, struct hearth_trace_item *item,
                           enum hearth_status status, const struct hearth_err *err)
{
    hearth_mutex_lock(&writer->lock);
    assert(item->n_bytes <= writer->n_bytes);
    writer->n_bytes -= item->n_bytes;
    hearth_metric_set(HEARTH_M_SPAN_QUEUE_BYTES, (int64_t)writer->n_bytes);
    hearth_mutex_unlock(&writer->lock);
    item->done(item, status, err); /* which may free the item */
}

/* An item has no parts any more. */
static void end_divided_item(void *context, struct hearth_trace_item *item,
                             enum hearth_status status, const struct hearth_err *err)
{
    end_trace_item(context, item, status, err);
}

/* ---- storing ---- */

static bool is_database_away(enum hearth_status status)
{
    return status == HEARTH_UNAVAILABLE || status == HEARTH_DEADLINE_EXCEEDED;
}

/* Sleep, unless the deadline of _stop passes. */
static void pause_writer(struct hearth_trace_writer *writer, int64_t duration_ns)
{
    int64_t until_ns = hearth_clock_mono_ns() + duration_ns;

    hearth_mutex_lock(&writer->lock);
    while (hearth_clock_mono_ns() < until_ns && !atomic_load(&writer->cancel.cancelled)) {
        wait_for_wake(writer, until_ns);
    }

    hearth_mutex_unlock(&writer->lock);
}

/*
 * Store items in one transaction; try again while the database is away. *ret_parts: what is left
 * for other nodes, if it returns OK.
 */
static enum hearth_status store_patiently(struct hearth_trace_writer *writer,
                                          struct hearth_trace_item *const *items, size_t n,
                                          struct hearth_trace_part **ret_parts,
                                          struct hearth_err *err)
{
    int64_t give_up_ns = hearth_clock_mono_ns() + PATIENCE_NS;

    for (int64_t backoff_ns = BACKOFF_FIRST_NS;; backoff_ns *= 2) {
        *err = (struct hearth_err)HEARTH_ERR_INIT;
        struct hearth_trace_batch batch = {
            .store = writer->store,
            .names = &writer->names,
            .items = items,
            .n_items = n,
            .cancel = &writer->cancel,
        };
        enum hearth_status status = hearth_trace_batch_store(&batch, err);
        *ret_parts = batch.parts;
        if (!is_database_away(status) || hearth_clock_mono_ns() >= give_up_ns ||
            atomic_load(&writer->cancel.cancelled)) {
            return status;
        }

        pause_writer(writer, backoff_ns < BACKOFF_LAST_NS ? backoff_ns : BACKOFF_LAST_NS);
    }
}

static void store_batch(struct hearth_trace_writer *writer, size_t n)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_trace_part *parts = NULL;
    enum hearth_status status = store_patiently(writer, writer->batch, n, &parts, &err);
    bool is_settled = status == HEARTH_OK || is_database_away(status) || n == 1;

    for (size_t i = 0; i < n; i++) {
        /* One item may be the cause: store each alone, until the database is away. */
        if (!is_settled) {
            status = store_patiently(writer, &writer->batch[i], 1, &parts, &err);
            is_settled = is_database_away(status); /* do not wait again for each of the others */
        }

        if (status == HEARTH_CANCELLED) {
            status = HEARTH_FAIL(&err, HEARTH_UNAVAILABLE, "the server is stopping");
        }

        /* Only this thread changes the number of parts before it hands them over. */
        if (writer->batch[i]->n_parts == 0) {
            end_trace_item(writer, writer->batch[i], status, &err);
        }
        if (!is_settled) {
            hearth_trace_lanes_submit(writer->lanes, parts);
            parts = NULL;
        }
    }

    hearth_trace_lanes_submit(writer->lanes, parts);
}

static void *run_trace_writer(void *arg)
{
    struct hearth_trace_writer *writer = arg;

    for (size_t n = take_batch(writer); n > 0; n = take_batch(writer)) {
        store_batch(writer, n);
    }

    hearth_mutex_lock(&writer->lock);
    writer->ended = true;
    (void)pthread_cond_broadcast(&writer->wake);
    hearth_mutex_unlock(&writer->lock);

    return NULL;
}

/* ---- life ---- */

static void free_trace_writer(struct hearth_trace_writer *writer)
{
    hearth_trace_names_release(&writer->names);
    (void)pthread_cond_destroy(&writer->wake);
    hearth_mutex_destroy(&writer->lock);
    hearth_mem_free(writer);
}

enum hearth_status hearth_trace_writer_start(struct hearth_store *store,
                                             struct hearth_trace_writer **ret,
                                             struct hearth_err *err)
{
    struct hearth_trace_writer *writer = hearth_mem_zalloc(sizeof *writer);
    if (writer == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the writer of spans");
    }

    writer->store = store;
    hearth_cancel_init(&writer->cancel, INT64_MAX);
    hearth_trace_names_init(&writer->names);
    hearth_mutex_init(&writer->lock, HEARTH_RANK_TRACE_WRITER, "trace_writer.lock");
    hearth_cond_init(&writer->wake);
    enum hearth_status status = hearth_trace_lanes_new(store, &writer->cancel, end_divided_item,
                                                       writer, &writer->lanes, err);
    if (status != HEARTH_OK) {
        free_trace_writer(writer);
        return status;
    }

    /* Start the thread with all signals blocked: the main thread handles them. */
    sigset_t all, old;
    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    int rc = pthread_create(&writer->thread, NULL, run_trace_writer, writer);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        hearth_trace_lanes_stop(writer->lanes, 0);
        free_trace_writer(writer);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot start the thread that writes spans");
    }

    (void)pthread_setname_np(writer->thread, "spans");
    *ret = writer;

    return HEARTH_OK;
}

void hearth_trace_writer_stop(struct hearth_trace_writer *writer, int64_t deadline_mono_ns)
{
    if (writer == NULL) {
        return;
    }

    /* Let the thread empty the queue. */
    hearth_mutex_lock(&writer->lock);
    writer->stopping = true;
    (void)pthread_cond_broadcast(&writer->wake);
    while (!writer->ended && hearth_clock_mono_ns() < deadline_mono_ns) {
        wait_for_wake(writer, deadline_mono_ns);
    }

    /* After the deadline its statements are cancelled. If it has ended, nodes have the time. */
    if (!writer->ended) {
        atomic_store(&writer->cancel.cancelled, true);
    }
    (void)pthread_cond_broadcast(&writer->wake);
    hearth_mutex_unlock(&writer->lock);
    (void)pthread_join(writer->thread, NULL);
    hearth_trace_lanes_stop(writer->lanes, deadline_mono_ns);
    free_trace_writer(writer);
}
