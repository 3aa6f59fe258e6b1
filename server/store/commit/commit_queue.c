/*
 * commit_queue.c -- the queue of a committer: items are added if there is room, and taken fairly
 * (commit_lanes.h), each tenant's in the order of their submission, or withdrawn before.
 *
 * Withdrawing. A queued item is unlinked and finished at once. A taken item is marked, and the
 * committer leaves it out before it sends the batch (settle.c). From the sending until the batch is
 * known not to be stored, the committer is *exposed*: hearth_store_withdraw then returns that an
 * item of the batch may be stored.
 *
 * Giving back. While the database is away, items whose callers can keep them elsewhere are ended:
 * those in the queue, and those of a batch that is known not to be stored (settle.c).
 */
#include "commit/commit_queue.h"

#include "hearth/base/clock.h"
#include "hearth/base/metrics.h"
#include "hearth/model/profile_id.h"

#include "commit/commit_routes.h"
#include "commit/ingest_dict.h"
#include "pg/store_state.h"
#include "session/disk.h"
#include "session/session.h"

#include <assert.h>

#define MAX_BATCH_BYTES ((size_t)32 << 20)
#define GAPS            8 /* between submissions: about so many make the mean */

/* ---- adding ---- */

static size_t count_item_bytes(const struct hearth_push_item *item)
{
    size_t n = sizeof *item + item->original.name.n + item->original.bytes.n +
               item->original.client_tags.n;
    for (size_t i = 0; i < item->n_rows; i++) {
        const struct hearth_push_row *row = &item->rows[i];
        n += sizeof *row + row->columns.ids.n + row->attrs.n +
             row->n_associations * sizeof row->associations[0];
        for (uint32_t k = 0; k < row->columns.n_types; k++) {
            n += row->columns.vals[k].n + sizeof row->columns.vals[k] + sizeof(int64_t);
        }
    }

    return n;
}

static void publish_queue_sizes(const struct hearth_committers *all)
{
    hearth_metric_set(HEARTH_M_QUEUED_ROWS, (int64_t)all->n_rows);
    hearth_metric_set(HEARTH_M_QUEUED_BYTES, (int64_t)all->n_bytes);
}

/*
 * One tenant may not fill the whole queue. A lane without rows accepts an item of any size, as an
 * empty queue does.
 */
static enum hearth_status check_tenant_room(const struct hearth_committers *all,
                                            const struct hearth_push_item *item,
                                            struct hearth_err *err)
{
    const struct hearth_store_options *options = &all->store->options;
    size_t n_rows = all->lane_rows[item->lane], n_bytes = all->lane_bytes[item->lane];

    if (!options->share_queue || n_rows == 0) {
        return HEARTH_OK;
    }

    if (n_rows + item->n_rows > options->max_queue_rows - options->max_queue_rows / 4) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "the tenant's part of the ingest queue is full (three quarters of "
                           "max-queue-rows %zu); retry",
                           options->max_queue_rows);
    }

    if (n_bytes + item->n_bytes > options->max_queue_bytes - options->max_queue_bytes / 4) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "the tenant's part of the ingest queue is full (three quarters of "
                           "max-queue-bytes %zu); retry",
                           options->max_queue_bytes);
    }

    return HEARTH_OK;
}

/*
 * The rows of a node that is down may not fill the whole queue. Its part is smaller than that of a
 * tenant, so that a tenant's services on other nodes have room, too.
 */
static enum hearth_status check_node_room(const struct hearth_committers *all,
                                          const struct hearth_push_item *item, unsigned node,
                                          struct hearth_err *err)
{
    const struct hearth_store_options *options = &all->store->options;
    size_t n_rows = all->node_rows[node], n_bytes = all->node_bytes[node];

    if (all->n_routes == 0 || n_rows == 0) {
        return HEARTH_OK;
    }

    bool fits_rows = n_rows + item->n_rows <= options->max_queue_rows / 2;

    return fits_rows && n_bytes + item->n_bytes <= options->max_queue_bytes / 2
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                             "half of the ingest queue (%s %zu) waits for the PostgreSQL node of "
                             "the service; retry",
                             fits_rows ? "max-queue-bytes" : "max-queue-rows",
                             fits_rows ? options->max_queue_bytes : options->max_queue_rows);
}

/*
 * The caller holds the lock. An empty queue accepts an item of any size: otherwise a large item
 * could never be stored.
 */
static enum hearth_status check_queue_room(const struct hearth_committers *all,
                                           const struct hearth_push_item *item, unsigned node,
                                           struct hearth_err *err)
{
    hearth_mutex_assert_held(&all->lock);

    const struct hearth_store_options *options = &all->store->options;
    if (all->stopping) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "the server is stopping");
    }

    if (item->is_withdrawn) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "the profile was withdrawn before it was queued");
    }

    if (all->n_rows == 0) {
        return HEARTH_OK;
    }

    if (all->n_rows + item->n_rows > options->max_queue_rows) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "ingest queue is full (max-queue-rows %zu); retry",
                           options->max_queue_rows);
    }

    if (item->n_bytes > options->max_queue_bytes ||
        all->n_bytes > options->max_queue_bytes - item->n_bytes) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "ingest queue is full (max-queue-bytes %zu); retry",
                           options->max_queue_bytes);
    }

    HEARTH_TRY(check_node_room(all, item, node, err));

    return check_tenant_room(all, item, err);
}

void hearth_commit_queue_append(struct hearth_committer *committer, struct hearth_push_item *item)
{
    struct hearth_committers *all = committer->all;
    hearth_mutex_assert_held(&all->lock);

    if (committer->n_rows == 0 || item->queued_mono_ns < committer->oldest_mono_ns) {
        committer->oldest_mono_ns = item->queued_mono_ns;
    }
    item->stage = HEARTH_ITEM_QUEUED;
    item->committer = committer->number;
    hearth_commit_lanes_append(&committer->queue, item);
    committer->n_rows += item->n_rows;
    all->n_rows += item->n_rows;
    all->n_bytes += item->n_bytes;
    all->lane_rows[item->lane] += item->n_rows;
    all->lane_bytes[item->lane] += item->n_bytes;
    all->node_rows[committer->node] += item->n_rows;
    all->node_bytes[committer->node] += item->n_bytes;
}

/* Count an item out that is queued or taken. The caller holds the lock. */
static void count_out(struct hearth_committers *all, const struct hearth_push_item *item)
{
    hearth_mutex_assert_held(&all->lock);

    unsigned node = all->committers[item->committer]->node;
    all->n_rows -= item->n_rows;
    all->n_bytes -= item->n_bytes;
    all->lane_rows[item->lane] -= item->n_rows;
    all->lane_bytes[item->lane] -= item->n_bytes;
    all->node_rows[node] -= item->n_rows;
    all->node_bytes[node] -= item->n_bytes;
}

void hearth_commit_queue_unlink(struct hearth_committer *committer, struct hearth_push_item *item)
{
    hearth_commit_lanes_unlink(&committer->queue, item);
    committer->n_rows -= item->n_rows;
    count_out(committer->all, item);
}

int64_t hearth_store_count_upload(struct hearth_store *store)
{
    return atomic_fetch_add(&store->next_upload, 1);
}

/* Note the time of a submission. A long pause counts as a few of those that matter. */
static void note_gap(struct hearth_committer *committer, int64_t now_mono_ns)
{
    int64_t alone_ns = committer->all->store->options.alone_ns;
    int64_t gap_ns = now_mono_ns - committer->submitted_mono_ns;
    hearth_mutex_assert_held(&committer->all->lock);

    gap_ns = gap_ns < 0 ? 0 : gap_ns / GAPS > alone_ns ? GAPS * alone_ns : gap_ns;
    committer->mean_gap_ns += (gap_ns - committer->mean_gap_ns) / GAPS;
    committer->submitted_mono_ns = now_mono_ns;
}

/*
 * Whether the thread that submits the item is to store it: the item is alone, and items come so
 * rarely that others would probably not share its commit. Committers of nodes are not led: a node
 * that hangs would hold up threads that decode for others.
 */
static bool is_led(const struct hearth_committer *committer, const struct hearth_push_item *item)
{
    int64_t alone_ns = committer->all->store->options.alone_ns;
    hearth_mutex_assert_held(&committer->all->lock);

    return item->may_lead && alone_ns > 0 && committer->mean_gap_ns >= alone_ns &&
           committer->node == 0 && committer->n_rows == 0 && !committer->is_busy &&
           !hearth_commit_is_owed(committer);
}

enum hearth_status hearth_store_submit(struct hearth_store *store, struct hearth_push_item *item,
                                       struct hearth_err *err)
{
    assert(item != NULL && item->dict != NULL && item->done != NULL);

    HEARTH_TRY(hearth_store_check_writable(store, err));
    HEARTH_TRY(hearth_disk_check(store, err));
    if (item->n_rows == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a profile without rows cannot be stored");
    }

    /* Prepare the item. */
    struct hearth_committers *all = store->committers;
    item->n_bytes = count_item_bytes(item);
    item->lane = hearth_commit_lane_of(item->tenant);
    item->queued_mono_ns = hearth_clock_mono_ns();
    int64_t count = item->upload_count > 0 ? item->upload_count : hearth_store_count_upload(store);
    item->profile_no = hearth_profile_no_make(item->service_id, item->ts_ns, count);
    item->writer_id = item->dict->writer_id;
    item->repeated = false;

    /* Queue it. */
    bool wakes = false, leads = false;
    hearth_mutex_lock(&all->lock);
    struct hearth_committer *committer = hearth_commit_route(all, item->service_id);
    enum hearth_status status = check_queue_room(all, item, committer->node, err);
    if (status == HEARTH_OK) {
        size_t before = committer->n_rows;
        note_gap(committer, item->queued_mono_ns);
        leads = is_led(committer, item);
        hearth_commit_queue_append(committer, item);
        publish_queue_sizes(all);
        /* Wake the committer for the first item, and when enough rows wait. A leader wakes it. */
        size_t enough = store->options.commit_rows;
        wakes = committer->lead == HEARTH_LEAD_NONE &&
                (before == 0 || (before < enough && committer->n_rows >= enough));
    }
    if (leads) {
        committer->lead = HEARTH_LEAD_TAKEN;
        (void)hearth_commit_queue_take(committer, hearth_committer_led_items(committer), 1);
    }

    /* A committer that is woken under the lock would wait for it. */
    hearth_mutex_unlock(&all->lock);
    if (leads) {
        hearth_committer_lead(committer); /* the item may be freed then */
    } else if (wakes) {
        (void)pthread_cond_signal(&committer->wake);
    }

    return status;
}

/* ---- taking and finishing ---- */

size_t hearth_commit_queue_take(struct hearth_committer *committer,
                                struct hearth_push_item **ret_items, size_t max)
{
    hearth_mutex_assert_held(&committer->all->lock);
    assert(max > 0);

    size_t n = 0, n_rows = 0, n_bytes = 0;
    committer->is_exposed = false; /* the previous batch is settled */
    committer->is_busy = true;
    struct hearth_push_item *item;
    while (n < max && (item = hearth_commit_lanes_next(&committer->queue)) != NULL) {
        bool fits = n_rows + item->n_rows <= committer->all->store->options.max_batch_rows &&
                    n_bytes + item->n_bytes <= MAX_BATCH_BYTES;
        if (n > 0 && !fits) {
            break;
        }
        n_rows += item->n_rows;
        n_bytes += item->n_bytes;
        hearth_commit_lanes_take(&committer->queue, item);
        item->stage = HEARTH_ITEM_TAKEN;
        ret_items[n++] = item;
    }

    /* Items that are left waited for a full batch: the next one is due at once. */
    committer->n_rows -= n_rows;
    committer->oldest_mono_ns = 0;

    return n;
}

/* The item is counted out. The caller holds the lock, and does not use it under the lock again. */
static void end_item(struct hearth_committers *all, struct hearth_push_item *item,
                     enum hearth_status status)
{
    item->stage = status == HEARTH_OK ? HEARTH_ITEM_STORED : HEARTH_ITEM_FAILED;
    publish_queue_sizes(all);
}

static void end_queued_item(struct hearth_committers *all, struct hearth_push_item *item,
                            enum hearth_status status, const struct hearth_err *err)
{
    struct hearth_ingest_dict *dict = item->dict;
    if (status == HEARTH_OK) {
        hearth_metric_observe_ns(HEARTH_M_COMMIT_SECONDS, (struct hearth_str){NULL, 0},
                                 hearth_clock_mono_ns() - item->queued_mono_ns);
    }
    item->done(item, status, err); /* may free the item */
    hearth_store_dict_release(all->store, dict);
}

void hearth_commit_queue_finish(struct hearth_committers *all,
                                struct hearth_push_item *const *items, size_t n,
                                enum hearth_status status, const struct hearth_err *err)
{
    for (size_t i = 0; i < n; i++) {
        hearth_mutex_lock(&all->lock);
        all->committers[items[i]->committer]->n_withdrawn -= items[i]->is_withdrawn;
        count_out(all, items[i]);
        end_item(all, items[i], status);
        hearth_mutex_unlock(&all->lock);
        end_queued_item(all, items[i], status, err);
    }
}

bool hearth_store_withdraw(struct hearth_store *store, struct hearth_push_item *item,
                           enum hearth_status status, const struct hearth_err *err)
{
    if (!atomic_load(&store->ready)) {
        return true; /* there is no queue yet, whose lock guards the stage */
    }

    struct hearth_committers *all = store->committers;
    hearth_mutex_lock(&all->lock);
    bool was_queued = item->stage == HEARTH_ITEM_QUEUED;
    bool may_be_stored = item->stage == HEARTH_ITEM_STORED;

    /* Its committer is known once it was submitted. */
    if (was_queued) {
        hearth_commit_queue_unlink(all->committers[item->committer], item);
        end_item(all, item, status);
    } else if (item->stage == HEARTH_ITEM_TAKEN) {
        struct hearth_committer *committer = all->committers[item->committer];
        committer->n_withdrawn += !item->is_withdrawn;
        may_be_stored = committer->is_exposed;
    }

    item->is_withdrawn = true;
    hearth_mutex_unlock(&all->lock);

    /* Not under the lock: `done` is the caller's code. */
    if (was_queued) {
        end_queued_item(all, item, status, err);
    }

    return may_be_stored;
}

/* ---- giving back ---- */

void hearth_commit_queue_give_back(struct hearth_committer *committer, const struct hearth_err *err)
{
    struct hearth_committers *all = committer->all;
    struct hearth_push_item *first = NULL, **last = &first;

    /* Unlink them. The links of an item that is not queued are free for a list. */
    hearth_mutex_lock(&all->lock);
    for (unsigned lane = 0; lane < HEARTH_COMMIT_LANES; lane++) {
        struct hearth_push_item *next, *item = committer->queue.lanes[lane].head;
        for (; item != NULL; item = next) {
            next = item->next;
            if (item->may_give_back) {
                hearth_commit_queue_unlink(committer, item);
                end_item(all, item, HEARTH_UNAVAILABLE);
                item->is_given_back = true;
                item->next = NULL;
                *last = item;
                last = &item->next;
            }
        }
    }
    hearth_mutex_unlock(&all->lock);

    /* `done` may free the item. */
    while (first != NULL) {
        struct hearth_push_item *item = first;
        first = item->next;
        end_queued_item(all, item, HEARTH_UNAVAILABLE, err);
    }
}

size_t hearth_commit_queue_give_back_taken(struct hearth_committers *all,
                                           struct hearth_push_item **items, size_t n,
                                           const struct hearth_err *err)
{
    size_t n_kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (items[i]->may_give_back) {
            items[i]->is_given_back = true;
            hearth_commit_queue_finish(all, &items[i], 1, HEARTH_UNAVAILABLE, err);
        } else {
            items[n_kept++] = items[i];
        }
    }

    return n_kept;
}

/* ---- withdrawn items of a batch ---- */

size_t hearth_commit_queue_drop_withdrawn(struct hearth_committers *all,
                                          struct hearth_push_item **items, size_t n)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status =
        HEARTH_FAIL(&err, HEARTH_UNAVAILABLE, "withdrawn before it was stored");
    size_t n_kept = 0;

    for (size_t i = 0; i < n; i++) {
        hearth_mutex_lock(&all->lock);
        bool is_withdrawn = items[i]->is_withdrawn;
        hearth_mutex_unlock(&all->lock);
        if (is_withdrawn) {
            hearth_commit_queue_finish(all, &items[i], 1, status, &err);
        } else {
            items[n_kept++] = items[i];
        }
    }

    return n_kept;
}
