/* trace_lanes.c -- spans on the nodes of distributed tables (contract: trace_lanes.h). */
#include "spans/trace_lanes.h"

#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/signals.h"
#include "hearth/store/lost_nodes.h"

#include "pg/store_state.h"

#include <assert.h>
#include <stdio.h>

#define MAX_TAKEN_ROWS   1000u
#define BACKOFF_FIRST_NS (20 * HEARTH_NS_PER_MS)
#define BACKOFF_LAST_NS  (640 * HEARTH_NS_PER_MS)
#define PATIENCE_NS      (10 * HEARTH_NS_PER_SEC)

struct lane {
    struct hearth_trace_lanes *lanes;
    pthread_t thread;
    struct hearth_trace_part *head, *tail; /* under the lock, like n_bytes */
    size_t n_bytes;                        /* of items whose parts are queued or being stored */
    struct hearth_trace_target to;         /* only for its thread */
};

struct hearth_trace_lanes {
    struct hearth_store *store;
    struct hearth_cancel *cancel;
    hearth_trace_end_fn *end;
    void *context;
    struct hearth_mutex lock; /* guards the rest, and the members of items about their parts */
    pthread_cond_t wake;      /* a part was queued, or stopping, n_running or cancel has changed */
    bool stopping;
    unsigned n_running;
    struct lane *of[HEARTH_MAX_NODES + 1]; /* by node; NULL: it had no spans yet */
};

/* ---- parts ---- */

/* A part has ended, whose item counts in the lane if it was queued. Frees it. */
static void end_part(struct hearth_trace_lanes *lanes, struct hearth_trace_part *part,
                     struct lane *lane, enum hearth_status status, const struct hearth_err *err)
{
    struct hearth_trace_item *item = part->item;

    hearth_mutex_lock(&lanes->lock);
    if (lane != NULL) {
        assert(lane->n_bytes >= item->n_bytes);
        lane->n_bytes -= item->n_bytes;
    }
    if (status != HEARTH_OK && item->part_status == HEARTH_OK) {
        item->part_status = status;
        item->part_err = *err;
    }
    assert(item->n_parts > 0);
    bool is_last = --item->n_parts == 0;
    hearth_mutex_unlock(&lanes->lock);

    hearth_mem_free(part);
    if (is_last) {
        struct hearth_err item_err = item->part_err; /* the item may be freed meanwhile */
        lanes->end(lanes->context, item, item->part_status, &item_err);
    }
}

/* ---- storing ---- */

static bool is_passing(enum hearth_status status)
{
    return status == HEARTH_UNAVAILABLE || status == HEARTH_DEADLINE_EXCEEDED;
}

static void pause_lane(struct hearth_trace_lanes *lanes, int64_t duration_ns)
{
    int64_t until_ns = hearth_clock_mono_ns() + duration_ns;

    hearth_mutex_lock(&lanes->lock);
    while (hearth_clock_mono_ns() < until_ns && !atomic_load(&lanes->cancel->cancelled)) {
        (void)hearth_mutex_wait_until(&lanes->lock, &lanes->wake, until_ns);
    }
    hearth_mutex_unlock(&lanes->lock);
}

/* Store parts in one transaction; again for ten seconds while the node is away. */
static enum hearth_status insert_patiently(struct lane *lane, struct hearth_trace_part *parts,
                                           struct hearth_err *err)
{
    struct hearth_trace_lanes *lanes = lane->lanes;
    int64_t give_up_ns = hearth_clock_mono_ns() + PATIENCE_NS;

    for (int64_t backoff_ns = BACKOFF_FIRST_NS;; backoff_ns *= 2) {
        *err = (struct hearth_err)HEARTH_ERR_INIT;
        enum hearth_status status = hearth_trace_parts_store(&lane->to, parts, err);
        if (!is_passing(status) || hearth_clock_mono_ns() >= give_up_ns ||
            atomic_load(&lanes->cancel->cancelled)) {
            return status;
        }

        pause_lane(lanes, backoff_ns < BACKOFF_LAST_NS ? backoff_ns : BACKOFF_LAST_NS);
    }
}

/* Store taken parts and end them. After a failure that does not pass, each is stored alone. */
static void store_parts(struct lane *lane, struct hearth_trace_part *parts)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status = insert_patiently(lane, parts, &err);
    bool is_settled = status == HEARTH_OK || is_passing(status) || parts->next == NULL;

    while (parts != NULL) {
        struct hearth_trace_part *part = parts;
        parts = part->next;
        part->next = NULL;
        if (!is_settled) {
            status = insert_patiently(lane, part, &err);
            is_settled = is_passing(status);
        }
        if (status == HEARTH_ABORTED) {
            status = HEARTH_UNAVAILABLE; /* the client is to try again */
        } else if (status == HEARTH_CANCELLED) {
            status = HEARTH_FAIL(&err, HEARTH_UNAVAILABLE, "the server is stopping");
        }
        end_part(lane->lanes, part, lane, status, &err);
    }
}

/* ---- threads ---- */

/* Wait for parts and take some. NULL: stopping, and the queue is empty. */
static struct hearth_trace_part *take_lane_parts(struct lane *lane)
{
    struct hearth_trace_lanes *lanes = lane->lanes;

    hearth_mutex_lock(&lanes->lock);
    while (lane->head == NULL && !lanes->stopping) {
        hearth_mutex_wait(&lanes->lock, &lanes->wake);
    }

    struct hearth_trace_part *taken = lane->head, *last = taken;
    size_t n = last == NULL ? 0 : last->n;
    while (last != NULL && last->next != NULL && n + last->next->n <= MAX_TAKEN_ROWS) {
        last = last->next;
        n += last->n;
    }
    if (last != NULL) {
        lane->head = last->next;
        last->next = NULL;
    }
    hearth_mutex_unlock(&lanes->lock);

    return taken;
}

static void *run_lane(void *arg)
{
    struct lane *lane = arg;
    struct hearth_trace_lanes *lanes = lane->lanes;

    for (struct hearth_trace_part *parts = take_lane_parts(lane); parts != NULL;
         parts = take_lane_parts(lane)) {
        store_parts(lane, parts);
    }

    hearth_pg_close(&lane->to.pg);
    hearth_mutex_lock(&lanes->lock);
    lanes->n_running--;
    (void)pthread_cond_broadcast(&lanes->wake);
    hearth_mutex_unlock(&lanes->lock);

    return NULL;
}

/* The lane of a node, whose thread is started for its first spans. Only one thread submits. */
static enum hearth_status find_lane(struct hearth_trace_lanes *lanes, unsigned node,
                                    struct lane **ret, struct hearth_err *err)
{
    *ret = lanes->of[node];
    if (*ret != NULL) {
        return HEARTH_OK;
    }

    const struct hearth_store *store = lanes->store;
    struct lane *lane = hearth_mem_zalloc(sizeof *lane);
    if (lane == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the spans of a node");
    }
    *lane = (struct lane){.lanes = lanes};
    lane->to = (struct hearth_trace_target){
        .store = lanes->store,
        .cancel = lanes->cancel,
        .node = node,
        .pg = {.url = store->url,
               .cancel = lanes->cancel,
               .timeout_ms = store->options.statement_timeout_ms},
    };

    sigset_t all, old; /* signals are for the main thread */
    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    hearth_mutex_lock(&lanes->lock);
    bool is_started = pthread_create(&lane->thread, NULL, run_lane, lane) == 0;
    lanes->n_running += is_started;
    hearth_mutex_unlock(&lanes->lock);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!is_started) {
        hearth_mem_free(lane);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot start the thread of a node's spans");
    }

    char name[16];
    (void)snprintf(name, sizeof name, "spans-%u", node % 1000);
    (void)pthread_setname_np(lane->thread, name);
    lanes->of[node] = *ret = lane;

    return HEARTH_OK;
}

static enum hearth_status queue_part(struct hearth_trace_lanes *lanes,
                                     struct hearth_trace_part *part, struct hearth_err *err)
{
    struct lane *lane = NULL;
    HEARTH_TRY(find_lane(lanes, part->node, &lane, err));

    /* A lane without parts takes one of any size. */
    size_t max = lanes->store->options.max_span_queue_bytes;
    hearth_mutex_lock(&lanes->lock);
    bool has_room = lane->n_bytes == 0 || lane->n_bytes + part->item->n_bytes <= max / 2;
    if (has_room) {
        lane->n_bytes += part->item->n_bytes;
        *(lane->head == NULL ? &lane->head : &lane->tail->next) = part;
        lane->tail = part;
        (void)pthread_cond_broadcast(&lanes->wake);
    }
    hearth_mutex_unlock(&lanes->lock);

    return has_room ? HEARTH_OK
                    : HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                                  "half of the queue of spans (max-span-queue-bytes %zu) waits for "
                                  "the PostgreSQL node of the service; retry",
                                  max);
}

void hearth_trace_lanes_submit(struct hearth_trace_lanes *lanes, struct hearth_trace_part *parts)
{
    while (parts != NULL) {
        struct hearth_trace_part *part = parts;
        struct hearth_err err = HEARTH_ERR_INIT;
        parts = part->next;
        part->next = NULL;
        enum hearth_status status = queue_part(lanes, part, &err);
        if (status != HEARTH_OK) {
            end_part(lanes, part, NULL, status, &err);
        }
    }
}

/* ---- life ---- */

enum hearth_status hearth_trace_lanes_new(struct hearth_store *store, struct hearth_cancel *cancel,
                                          hearth_trace_end_fn *end, void *context,
                                          struct hearth_trace_lanes **ret, struct hearth_err *err)
{
    struct hearth_trace_lanes *lanes = hearth_mem_zalloc(sizeof *lanes);
    if (lanes == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the spans of nodes");
    }

    lanes->store = store;
    lanes->cancel = cancel;
    lanes->end = end;
    lanes->context = context;
    hearth_mutex_init(&lanes->lock, HEARTH_RANK_TRACE_LANES, "trace_lanes.lock");
    hearth_cond_init(&lanes->wake);
    *ret = lanes;

    return HEARTH_OK;
}

void hearth_trace_lanes_stop(struct hearth_trace_lanes *lanes, int64_t deadline_mono_ns)
{
    if (lanes == NULL) {
        return;
    }

    hearth_mutex_lock(&lanes->lock);
    lanes->stopping = true;
    (void)pthread_cond_broadcast(&lanes->wake);
    while (lanes->n_running > 0 && hearth_clock_mono_ns() < deadline_mono_ns) {
        (void)hearth_mutex_wait_until(&lanes->lock, &lanes->wake, deadline_mono_ns);
    }
    atomic_store(&lanes->cancel->cancelled, true);
    (void)pthread_cond_broadcast(&lanes->wake);
    hearth_mutex_unlock(&lanes->lock);

    for (unsigned i = 0; i <= HEARTH_MAX_NODES; i++) {
        if (lanes->of[i] != NULL) {
            (void)pthread_join(lanes->of[i]->thread, NULL);
            hearth_mem_free(lanes->of[i]);
        }
    }

    (void)pthread_cond_destroy(&lanes->wake);
    hearth_mutex_destroy(&lanes->lock);
    hearth_mem_free(lanes);
}
