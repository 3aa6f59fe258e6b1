/*
 * trace_writer.c -- the queue of spans and snapshots and the thread that empties it (trace_writer.h).
 *
 *   committed                   done(OK)
 *   the database is away        again, 20 to 640 ms apart, for ten seconds; then done(UNAVAILABLE)
 *   anything else               each item alone; what fails alone: done(its status)
 */
#include "spans/trace_writer.h"

#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/base/signals.h"

#include "pg/disk.h"
#include "pg/session.h"
#include "pg/store_state.h"

#include <errno.h>
#define LINGER_NS        (10 * HEARTH_NS_PER_MS)
#define MAX_BATCH_ITEMS  1000
#define MAX_BATCH_BYTES  ((size_t)8 << 20)
#define BACKOFF_FIRST_NS (20 * HEARTH_NS_PER_MS)
#define BACKOFF_LAST_NS  (640 * HEARTH_NS_PER_MS)
#define PATIENCE_NS      (10 * HEARTH_NS_PER_SEC)
/* Of each item: what it is made of, pieces of memory that are not full, the writer's arrays. */
#define ITEM_BYTES 2048u

struct hearth_trace_writer {
    struct hearth_store *store;
    pthread_t thread;
    pthread_mutex_t lock; /* guards queue, sums, stopping, ended */
    pthread_cond_t wake;
    struct hearth_trace_item *head, *tail;
    size_t n_items;
    size_t n_bytes; /* queued or in work */
    bool stopping, ended;
    struct hearth_cancel cancel; /* set when the closing deadline has passed */
    /* Its thread's own: */
    struct hearth_trace_names names;
    struct hearth_trace_item *batch[MAX_BATCH_ITEMS];
};

/* ---- queue ---- */

static size_t bytes_of(const struct hearth_trace_item *item)
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

/* Under the lock. What finds the queue empty is always taken. */
static enum hearth_status check_room(const struct hearth_trace_writer *writer,
                                     const struct hearth_trace_item *item, struct hearth_err *err)
{
    size_t max = writer->store->options.max_span_queue_bytes;

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
    HEARTH_TRY(hearth_store_check_open(store, err));
    HEARTH_TRY(hearth_disk_check(store, err));
    struct hearth_trace_writer *writer = store->trace_writer;
    item->n_bytes = bytes_of(item);
    item->queued_mono_ns = hearth_clock_mono_ns();
    item->next = NULL;
    (void)pthread_mutex_lock(&writer->lock);
    enum hearth_status status = check_room(writer, item, err);
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

    (void)pthread_mutex_unlock(&writer->lock);

    return status;
}

/* Under the lock: until woken, or the time has come. */
static void wait_until(struct hearth_trace_writer *writer, int64_t until_mono_ns)
{
    (void)hearth_cond_wait_until(&writer->wake, &writer->lock, until_mono_ns);
}

/* Wait for a batch and take it; 0: stopping, and nothing is left. */
static size_t take_batch(struct hearth_trace_writer *writer)
{
    (void)pthread_mutex_lock(&writer->lock);
    while (writer->head == NULL && !writer->stopping) {
        (void)pthread_cond_wait(&writer->wake, &writer->lock);
    }

    while (writer->head != NULL && !writer->stopping && writer->n_items < MAX_BATCH_ITEMS &&
           hearth_clock_mono_ns() < writer->head->queued_mono_ns + LINGER_NS) {
        wait_until(writer, writer->head->queued_mono_ns + LINGER_NS);
    }

    size_t n = 0, n_bytes = 0;
    while (writer->head != NULL && n < MAX_BATCH_ITEMS &&
           (n == 0 || n_bytes + writer->head->n_bytes <= MAX_BATCH_BYTES)) {
        struct hearth_trace_item *item = writer->head;
        writer->head = item->next;
        n_bytes += item->n_bytes;
        writer->batch[n++] = item;
    }

    writer->n_items -= n;
    (void)pthread_mutex_unlock(&writer->lock);

    return n;
}

static void end_item(struct hearth_trace_writer *writer, struct hearth_trace_item *item,
                     enum hearth_status status, const struct hearth_err *err)
{
    (void)pthread_mutex_lock(&writer->lock);
    writer->n_bytes -= item->n_bytes;
    hearth_metric_set(HEARTH_M_SPAN_QUEUE_BYTES, (int64_t)writer->n_bytes);
    (void)pthread_mutex_unlock(&writer->lock);
    item->done(item, status, err); /* it may be gone after this */
}

/* ---- storing ---- */

static bool is_away(enum hearth_status status)
{
    return status == HEARTH_UNAVAILABLE || status == HEARTH_DEADLINE_EXCEEDED;
}

/* Until the time has passed or nobody waits any more. */
static void pause_ns(struct hearth_trace_writer *writer, int64_t duration_ns)
{
    int64_t until_ns = hearth_clock_mono_ns() + duration_ns;

    (void)pthread_mutex_lock(&writer->lock);
    while (hearth_clock_mono_ns() < until_ns && !atomic_load(&writer->cancel.cancelled)) {
        wait_until(writer, until_ns);
    }

    (void)pthread_mutex_unlock(&writer->lock);
}

static enum hearth_status store_patiently(struct hearth_trace_writer *writer,
                                          struct hearth_trace_item *const *items, size_t n,
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
        if (!is_away(status) || hearth_clock_mono_ns() >= give_up_ns ||
            atomic_load(&writer->cancel.cancelled)) {
            return status;
        }

        pause_ns(writer, backoff_ns < BACKOFF_LAST_NS ? backoff_ns : BACKOFF_LAST_NS);
    }
}

static void store_batch(struct hearth_trace_writer *writer, size_t n)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status = store_patiently(writer, writer->batch, n, &err);
    bool is_settled = status == HEARTH_OK || is_away(status) || n == 1;

    for (size_t i = 0; i < n; i++) {
        if (!is_settled) { /* one of them may be the cause */
            status = store_patiently(writer, &writer->batch[i], 1, &err);
            is_settled = is_away(status); /* nobody waits that long again for each of the others */
        }

        if (status == HEARTH_CANCELLED) {
            status = HEARTH_FAIL(&err, HEARTH_UNAVAILABLE, "the server is stopping");
        }

        end_item(writer, writer->batch[i], status, &err);
    }
}

static void *run_writer(void *arg)
{
    struct hearth_trace_writer *writer = arg;

    for (size_t n = take_batch(writer); n > 0; n = take_batch(writer)) {
        store_batch(writer, n);
    }

    (void)pthread_mutex_lock(&writer->lock);
    writer->ended = true;
    (void)pthread_cond_broadcast(&writer->wake);
    (void)pthread_mutex_unlock(&writer->lock);

    return NULL;
}

/* ---- life ---- */

static void free_writer(struct hearth_trace_writer *writer)
{
    hearth_trace_names_release(&writer->names);
    (void)pthread_cond_destroy(&writer->wake);
    (void)pthread_mutex_destroy(&writer->lock);
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
    (void)pthread_mutex_init(&writer->lock, NULL);
    hearth_cond_init(&writer->wake);
    sigset_t all, old; /* signals are for the main thread */
    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    int rc = pthread_create(&writer->thread, NULL, run_writer, writer);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        free_writer(writer);
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

    (void)pthread_mutex_lock(&writer->lock);
    writer->stopping = true;
    (void)pthread_cond_broadcast(&writer->wake);
    while (!writer->ended && hearth_clock_mono_ns() < deadline_mono_ns) {
        wait_until(writer, deadline_mono_ns);
    }

    atomic_store(&writer->cancel.cancelled, true);
    (void)pthread_cond_broadcast(&writer->wake);
    (void)pthread_mutex_unlock(&writer->lock);
    (void)pthread_join(writer->thread, NULL);
    free_writer(writer);
}
