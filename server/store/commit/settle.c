/*
 * settle.c -- attempts to store one batch, and what follows from each fault.
 *
 *   committed                           done(OK)
 *   23505 on ingest_batch, and an       the earlier attempt was committed: done(OK), once the
 *     attempt before was in doubt         synchronous standbys have it, if there are any
 *   connection lost, or "retry"         again: the same bytes and seq, after 10 to 640 ms; also if
 *                                         it is the connection to the catalogue
 *   4 connections lost                  a probe settles the attempts; not stored: as "other faults"
 *   no such partition                   create it, then again
 *   disk full                           done(RESOURCE_EXHAUSTED)
 *   2 connections lost, and the         items of the queue and of the batch are given back to
 *     store says that it is away          callers that take them; the others become a batch
 *   some items were withdrawn           the others become a batch of their own
 *   some need a leaf that is dropped    the others first, then these, each a batch of their own
 *   a node that is lost: no new leaves  the same; these alone: done(UNAVAILABLE)
 *   other faults                        two halves, each a batch; a single item: done(INTERNAL)
 *
 * While an attempt is in doubt, only the first two lines and the retry apply: a batch that fails,
 * is split or given back must be known not to be stored. Items of the queue are given back even
 * then.
 */
#include "commit/settle.h"

#include "hearth/base/clock.h"
#include "hearth/base/metrics.h"
#include "hearth/store/lost_nodes.h"

#include "commit/ingest_dict.h"
#include "pg/lineage.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "session/partitions.h"
#include "session/session.h"

#include <assert.h>

#define CONNECT_TIMEOUT_MS  HEARTH_CATALOG_CONNECT_MS
#define BACKOFF_LAST_NS     (640 * HEARTH_NS_PER_MS)
#define MAX_ANSWERED_TRIES  12 /* after errors that PostgreSQL says to retry: about 5 s */
#define MAX_PARTITION_TRIES 3
/* Connections lost while one batch was stored, before the batch is suspected to be the cause. */
#define MAX_LOST_CONNECTIONS 4
/* The first attempt may have lost its connection alone; the second one could not make another. */
#define AWAY_AFTER_UNREACHED 2
/*
 * housekeeping.c deletes the batch rows of servers that were away for a day: an attempt after that
 * could store a batch twice.
 */
#define MAX_DOUBT_NS (12 * HEARTH_NS_PER_HOUR)

bool hearth_committers_abandoned(struct hearth_committers *all)
{
    return atomic_load(&all->abandon.cancelled);
}

/* ---- leaves ---- */

/*
 * The connection on which tables are made; on a node, only the coordinator makes them. It is
 * connected only if some leaves are not known.
 */
static enum hearth_status find_leaf_maker(struct hearth_committer *committer, unsigned leaves,
                                          int32_t day, struct hearth_pg **ret,
                                          struct hearth_err *err)
{
    struct hearth_pg *pg = committer->node == 0 ? &committer->pg : &committer->catalog;

    *ret = pg;

    return committer->node == 0 || hearth_pg_alive(pg) ||
                   hearth_partitions_are_known(committer->all->store, leaves, day)
               ? HEARTH_OK
               : hearth_pg_connect(pg, CONNECT_TIMEOUT_MS, err);
}

/*
 * Create the leaves that the batch writes to on a day. While retention or compaction drops the leaf
 * of profiles, a new one cannot be created. Late profiles of the day do not need it.
 */
static enum hearth_status ensure_batch_day(struct hearth_committer *committer,
                                           struct hearth_batch *batch, size_t i,
                                           struct hearth_err *err)
{
    struct hearth_store *store = committer->all->store;
    struct hearth_pg *pg = NULL;
    int32_t day = batch->days[i].day;
    bool leaving = false;

    /* Try to have all leaves: the old one may be dropped by now. */
    HEARTH_TRY(hearth_batch_avoid_leaf(batch, i, false, err));
    unsigned leaves = hearth_batch_leaves(batch, i);
    HEARTH_TRY(find_leaf_maker(committer, leaves, day, &pg, err));
    enum hearth_status status = hearth_partitions_ensure(store, pg, leaves, day, err);
    batch->days[i].lacks_leaves =
        status == HEARTH_UNAVAILABLE && hearth_store_has_lost_nodes(store);
    if (batch->days[i].lacks_leaves) {
        return HEARTH_OK; /* for profiles of other days; err says why */
    }

    if (status != HEARTH_UNAVAILABLE || (leaves & HEARTH_LEAF_PROFILE) == 0 ||
        !hearth_pg_alive(pg)) {
        return status;
    }

    /* If the leaf of profiles is being dropped, do without it. */
    HEARTH_TRY(hearth_partitions_is_leaving(pg, "profile", day, &leaving, err));
    if (!leaving) {
        return status;
    }

    HEARTH_TRY(hearth_batch_avoid_leaf(batch, i, true, err));

    return hearth_partitions_ensure(store, pg, hearth_batch_leaves(batch, i), day, err);
}

static enum hearth_status ensure_batch_days(struct hearth_committer *committer,
                                            struct hearth_batch *batch,
                                            enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    bool lacks = false;

    for (size_t i = 0; i < batch->n_days; i++) {
        enum hearth_status status = ensure_batch_day(committer, batch, i, err);
        if (status != HEARTH_OK) {
            const struct hearth_pg *pg =
                committer->node == 0 ? &committer->pg : &committer->catalog;
            *ret_fault = pg->conn == NULL                      ? HEARTH_PG_FAULT_CONNECTION
                         : status == HEARTH_UNAVAILABLE        ? HEARTH_PG_FAULT_RETRY
                         : status == HEARTH_RESOURCE_EXHAUSTED ? HEARTH_PG_FAULT_DISK_FULL
                                                               : HEARTH_PG_FAULT_OTHER;
            return status;
        }
        lacks = lacks || batch->days[i].lacks_leaves;
    }

    batch->is_lacking = lacks && hearth_batch_mark_lacking(batch);
    if (batch->is_lacking) {
        *ret_fault = HEARTH_PG_FAULT_RETRY;
        return HEARTH_UNAVAILABLE; /* err is of the last day that lacks leaves */
    }

    return HEARTH_OK;
}

/* ---- attempts ---- */

/* A row may crash the backend that stores it, each time: then it must not be sent for ever. */
static bool is_suspected(const struct hearth_attempts *attempts)
{
    return attempts->n_lost >= MAX_LOST_CONNECTIONS;
}

/*
 * Return whether items of the batch were withdrawn. False for a batch in doubt, which must be sent
 * unchanged. The caller holds the lock.
 */
static bool has_withdrawn(const struct hearth_committer *committer,
                          const struct hearth_batch *batch)
{
    hearth_mutex_assert_held(&committer->all->lock);

    bool any = false;
    for (size_t i = 0; i < batch->n_items && committer->n_withdrawn > 0 && !batch->in_doubt; i++) {
        any = any || batch->items[i].item->is_withdrawn;
    }
    return any;
}

/*
 * From now on until cover_batch, items of the batch that are withdrawn may be stored. Returns false
 * if some were withdrawn before: then the batch is not sent.
 */
static bool expose_batch(struct hearth_committer *committer, const struct hearth_batch *batch)
{
    hearth_mutex_lock(&committer->all->lock);
    committer->is_exposed = !has_withdrawn(committer, batch);
    bool is_exposed = committer->is_exposed;
    hearth_mutex_unlock(&committer->all->lock);
    return is_exposed;
}

/* After an attempt. Returns false if the batch is not stored and some items were withdrawn. */
static bool cover_batch(struct hearth_committer *committer, const struct hearth_batch *batch,
                        bool stored)
{
    hearth_mutex_lock(&committer->all->lock);
    committer->is_exposed = stored || batch->in_doubt;
    bool is_whole = stored || !has_withdrawn(committer, batch);
    hearth_mutex_unlock(&committer->all->lock);
    return is_whole;
}

/*
 * Connect to the node. Without an address, as after its last shard has moved, the coordinator takes
 * its statements, which can also settle a batch in doubt.
 */
static enum hearth_status connect_data(struct hearth_committer *committer, struct hearth_err *err)
{
    struct hearth_committers *all = committer->all;
    struct hearth_pg *pg = &committer->pg;

    /* Ids come from the catalogue: if that has lost commits, nodes get nothing either. */
    char reason[256];
    if (committer->node != 0 && hearth_lineage_explain(&all->store->lineage, reason)) {
        hearth_pg_close(pg);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%s", reason);
    }

    if (committer->node != 0) {
        hearth_pg_set_address(pg, hearth_node_address(all->nodes, committer->node));
        pg->lineage = pg->address == NULL ? &all->store->lineage
                                          : hearth_node_lineage(all->nodes, committer->node);
    }

    return hearth_pg_alive(pg) ? HEARTH_OK : hearth_pg_connect(pg, CONNECT_TIMEOUT_MS, err);
}

static enum hearth_status attempt_batch(struct hearth_committer *committer,
                                        struct hearth_batch *batch,
                                        struct hearth_attempts *attempts,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    batch->n_results = 0;

    /* Connect. */
    enum hearth_status status = connect_data(committer, err);
    if (status != HEARTH_OK) {
        *ret_fault = HEARTH_PG_FAULT_CONNECTION;
        return status;
    }

    if (is_suspected(attempts)) {
        return hearth_batch_probe(batch, &committer->pg, ret_fault, err);
    }

    /* Send. */
    HEARTH_TRY(ensure_batch_days(committer, batch, ret_fault, err));
    if (!expose_batch(committer, batch)) {
        return HEARTH_FAIL(err, HEARTH_ABORTED, "some profiles of the batch were withdrawn");
    }

    status = hearth_batch_send(batch, &committer->pg, ret_fault, err);
    if (status != HEARTH_OK) {
        hearth_pg_rollback(&committer->pg);
        attempts->n_lost += (committer->pg.conn == NULL && !committer->pg.is_node_lost &&
                             !committer->pg.lacks_standby) ||
                            batch->catalog_lost;
    }

    return status;
}

static void forget_batch_days(struct hearth_committer *committer, const struct hearth_batch *batch)
{
    for (size_t i = 0; i < batch->n_days; i++) {
        hearth_partitions_forget(committer->all->store, batch->days[i].day);
    }
}

/* The outcome after an error of PostgreSQL, when no attempt is in doubt. */
static enum hearth_batch_outcome judge_answered_error(struct hearth_committer *committer,
                                                      const struct hearth_batch *batch,
                                                      enum hearth_pg_fault fault,
                                                      struct hearth_attempts *attempts)
{
    switch (fault) {
    case HEARTH_PG_FAULT_MISSING_TABLE:
        /* Its code, 23514, may also mean that a row breaks a constraint. */
        forget_batch_days(committer, batch);
        return ++attempts->n_answered < MAX_PARTITION_TRIES ? HEARTH_OUTCOME_AGAIN
                                                            : HEARTH_OUTCOME_SPLIT;
    case HEARTH_PG_FAULT_RETRY:
    case HEARTH_PG_FAULT_CANCELLED:
        return ++attempts->n_answered < MAX_ANSWERED_TRIES ? HEARTH_OUTCOME_AGAIN
                                                           : HEARTH_OUTCOME_FAILED;
    case HEARTH_PG_FAULT_DISK_FULL:
        return HEARTH_OUTCOME_FAILED;
    case HEARTH_PG_FAULT_UNIQUE:
        /* The database has other chunks under our names: it was restored to an earlier state. */
        for (size_t i = 0; i < batch->n_dicts && batch->n_results >= HEARTH_BATCH_CLAIMED; i++) {
            hearth_ingest_dict_retire(batch->dicts[i].dict);
        }
        return HEARTH_OUTCOME_SPLIT;
    case HEARTH_PG_FAULT_NONE:
    case HEARTH_PG_FAULT_CONNECTION:
    case HEARTH_PG_FAULT_OTHER:
        break;
    }

    return HEARTH_OUTCOME_SPLIT;
}

/* The commit that was found may not have reached the standbys. */
static enum hearth_status await_standbys(struct hearth_committer *committer, struct hearth_err *err)
{
    hearth_pg_rollback(&committer->pg);

    return hearth_session_await_standbys(&committer->pg, NULL, err);
}

static enum hearth_batch_outcome judge_attempt(struct hearth_committer *committer,
                                               const struct hearth_batch *batch, bool was_in_doubt,
                                               enum hearth_pg_fault fault,
                                               struct hearth_attempts *attempts,
                                               struct hearth_err *err)
{
    if (fault == HEARTH_PG_FAULT_UNIQUE && was_in_doubt &&
        batch->n_results == HEARTH_BATCH_LOCKED && await_standbys(committer, err) == HEARTH_OK) {
        hearth_metric_add(HEARTH_M_BATCH_SETTLED, 1);
        return HEARTH_OUTCOME_STORED;
    }

    /* A connection is lost: that of the data, or of the catalogue. */
    if (fault == HEARTH_PG_FAULT_CONNECTION || committer->pg.conn == NULL || batch->in_doubt) {
        return hearth_committers_abandoned(committer->all) ? HEARTH_OUTCOME_FAILED
                                                           : HEARTH_OUTCOME_AGAIN;
    }

    size_t n_blocked = hearth_batch_blocked(batch);

    if (n_blocked > 0 && n_blocked < batch->n_items) {
        return HEARTH_OUTCOME_SORT;
    }

    /* To wait for the node would hold up profiles of days that have leaves. */
    return n_blocked > 0 && batch->is_lacking
               ? HEARTH_OUTCOME_FAILED
               : judge_answered_error(committer, batch, fault, attempts);
}

static const char *name_fault(enum hearth_pg_fault fault)
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

static void note_node_back(struct hearth_committer *committer)
{
    if (committer->node != 0) {
        hearth_node_set_reach(committer->all->nodes, committer->node, committer->pg.address,
                              HEARTH_NODE_ANSWERS, "");
    }
}

/* Tell what cannot be reached: a node hurts its own services only. */
static void note_lost_connection(struct hearth_committer *committer, enum hearth_pg_fault fault,
                                 const struct hearth_err *err)
{
    struct hearth_committers *all = committer->all;
    bool is_node = committer->node != 0 && committer->pg.address != NULL;

    if (hearth_committers_abandoned(all) || committer->pg.lacks_standby) {
        return;
    }

    if (committer->pg.conn == NULL && is_node) {
        hearth_node_set_reach(all->nodes, committer->node, committer->pg.address, HEARTH_NODE_AWAY,
                              err->msg);
    } else if (committer->pg.conn == NULL || fault == HEARTH_PG_FAULT_CONNECTION) {
        hearth_store_note_away(all->store, err->msg);
    }
}

/*
 * While the database is away, give back what is in the queue. Returns whether items of the batch
 * may be given back, too; then *err, that of the attempt, becomes the one for them.
 */
static bool gives_back(struct hearth_committer *committer, const struct hearth_batch *batch,
                       enum hearth_pg_fault fault, struct hearth_attempts *attempts,
                       struct hearth_err *err)
{
    struct hearth_err away = HEARTH_ERR_INIT;
    bool any = false;

    attempts->n_unreached += committer->pg.conn == NULL || fault == HEARTH_PG_FAULT_CONNECTION;
    if (attempts->n_unreached < AWAY_AFTER_UNREACHED ||
        !hearth_store_is_away(committer->all->store)) {
        return false;
    }

    (void)HEARTH_FAIL(&away, HEARTH_UNAVAILABLE,
                      "the database went away before it stored the profile; it will not be stored: "
                      "retry (%.200s)",
                      err->msg);
    hearth_commit_queue_give_back(committer, &away);
    for (size_t i = 0; i < batch->n_items && !batch->in_doubt; i++) {
        any = any || batch->items[i].item->may_give_back;
    }
    if (any) {
        *err = away;
    }

    return any;
}

static void wait_before_retry(struct hearth_committer *committer)
{
    struct hearth_committers *all = committer->all;
    int64_t until_ns = hearth_clock_mono_ns() + committer->backoff_ns;

    committer->backoff_ns =
        committer->backoff_ns * 2 > BACKOFF_LAST_NS ? BACKOFF_LAST_NS : committer->backoff_ns * 2;
    hearth_mutex_lock(&all->lock);
    while (!hearth_committers_abandoned(all) &&
           hearth_mutex_wait_until(&all->lock, &committer->wake, until_ns)) {
    }

    hearth_mutex_unlock(&all->lock);
}

void hearth_committer_attempt(struct hearth_committer *committer, struct hearth_batch *batch,
                              struct hearth_attempts *attempts, struct hearth_err *err)
{
    assert(batch->n_items > 0 && batch->n_copies > 0);

    attempts->fault = HEARTH_PG_FAULT_NONE;
    attempts->was_in_doubt = batch->in_doubt;
    attempts->was_probe = is_suspected(attempts);
    attempts->status = attempt_batch(committer, batch, attempts, &attempts->fault, err);
    attempts->is_whole =
        cover_batch(committer, batch, attempts->status == HEARTH_OK && !attempts->was_probe);
}

/* Judge the last attempt, which did not store the batch. */
static enum hearth_batch_outcome judge_failed_attempt(struct hearth_committer *committer,
                                                      const struct hearth_batch *batch,
                                                      struct hearth_attempts *attempts,
                                                      struct hearth_err *err)
{
    enum hearth_batch_outcome outcome =
        judge_attempt(committer, batch, attempts->was_in_doubt, attempts->fault, attempts, err);

    if (batch->in_doubt && attempts->doubt_since_ns == 0) {
        attempts->doubt_since_ns = hearth_clock_mono_ns();
    } else if (!batch->in_doubt) {
        attempts->doubt_since_ns = 0;
    } else if (hearth_clock_mono_ns() - attempts->doubt_since_ns > MAX_DOUBT_NS) {
        outcome = HEARTH_OUTCOME_FAILED;
    }

    return outcome;
}

enum hearth_batch_outcome hearth_committer_settle(struct hearth_committer *committer,
                                                  struct hearth_batch *batch,
                                                  struct hearth_attempts *attempts,
                                                  struct hearth_err *err)
{
    for (;;) {
        if (attempts->status == HEARTH_OK && attempts->was_probe) {
            attempts->status = HEARTH_FAIL(err, HEARTH_INTERNAL,
                                           "the database ended %u connections that were storing it",
                                           attempts->n_lost);
            return HEARTH_OUTCOME_SPLIT;
        }
        if (attempts->status == HEARTH_OK) {
            note_node_back(committer);
            return HEARTH_OUTCOME_STORED;
        }

        /* Return, or wait before the next attempt. */
        enum hearth_batch_outcome outcome = judge_failed_attempt(committer, batch, attempts, err);
        bool may_shrink = !attempts->is_whole &&
                          (outcome == HEARTH_OUTCOME_AGAIN || outcome == HEARTH_OUTCOME_SPLIT);
        if (outcome != HEARTH_OUTCOME_AGAIN) {
            return may_shrink ? HEARTH_OUTCOME_SHRINK : outcome;
        }
        note_lost_connection(committer, attempts->fault, err);
        hearth_metric_add_label(HEARTH_M_BATCH_RETRIES, hearth_str_c(name_fault(attempts->fault)),
                                1);
        if (gives_back(committer, batch, attempts->fault, attempts, err)) {
            return HEARTH_OUTCOME_RETURN;
        }
        wait_before_retry(committer);
        if (may_shrink) {
            return HEARTH_OUTCOME_SHRINK;
        }
        hearth_committer_attempt(committer, batch, attempts, err);
    }
}
