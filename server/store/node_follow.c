/* node_follow.c -- the thread that follows the nodes (contract: node_follow.h). */
#include "node_follow.h"

#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/signals.h"

#include "commit/committers.h"
#include "nodes/node_health.h"
#include "nodes/nodes.h"
#include "pg/pg.h"
#include "pg/store_state.h"

#include <assert.h>

#define TICK_NS HEARTH_NS_PER_SEC
/* To connect to the coordinator, and for each statement there: it is asked for catalogues only. */
#define PATIENCE_MS 5000

struct hearth_node_follower {
    struct hearth_store *store;
    struct hearth_pg pg; /* to the coordinator */
    struct hearth_lineage_seen seen;
    int64_t next_look_ns; /* when nodes are due that answered before */
    pthread_t thread;
    struct hearth_cancel cancel; /* set by _stop, under the lock */
    struct hearth_mutex lock;
    pthread_cond_t wake;
};

/* Let the store begin again if a node has lost commits. */
static void report_loss(struct hearth_store *store)
{
    char loss[256];

    if (hearth_nodes_find_loss(store->nodes, loss)) {
        hearth_lineage_lose(&store->lineage, loss);
    }
}

static void follow_map(struct hearth_node_follower *follower)
{
    struct hearth_store *store = follower->store;
    struct hearth_err err = HEARTH_ERR_INIT;

    if (hearth_nodes_are_due(store->nodes) &&
        hearth_nodes_refresh(store->nodes, &follower->pg, &err) != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_DEBUG, "store", "the map of nodes was not read", "reason", err.msg,
                   NULL);
    }

    /* Also after a failure: committers may not have followed the last map. */
    if (store->committers != NULL &&
        hearth_committers_follow(store->committers, store->nodes, &err) != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_WARN, "store", "commits do not follow the map of nodes", "reason",
                   err.msg, NULL);
    }
}

/* The coordinator that is asked must be the one that the store knows. */
static enum hearth_status ensure_connection(struct hearth_node_follower *follower)
{
    struct hearth_pg *pg = &follower->pg;

    return hearth_pg_alive(pg)
               ? hearth_lineage_recheck(&follower->store->lineage, pg, &follower->seen, NULL)
               : hearth_pg_connect(pg, PATIENCE_MS, NULL);
}

static void sleep_unless_stopping(struct hearth_node_follower *follower)
{
    int64_t until_ns = hearth_clock_mono_ns() + TICK_NS;
    bool has_time = true;

    hearth_mutex_lock(&follower->lock);
    while (has_time && !atomic_load(&follower->cancel.cancelled)) {
        has_time = hearth_mutex_wait_until(&follower->lock, &follower->wake, until_ns);
    }
    hearth_mutex_unlock(&follower->lock);
}

static void *run_follower(void *arg)
{
    struct hearth_node_follower *follower = arg;

    while (!atomic_load(&follower->cancel.cancelled)) {
        report_loss(follower->store);
        if (ensure_connection(follower) == HEARTH_OK) {
            follow_map(follower);
            report_loss(follower->store);
            hearth_nodes_watch(follower->store, &follower->pg, &follower->next_look_ns);
        }
        sleep_unless_stopping(follower);
    }

    return NULL;
}

static void free_follower(struct hearth_node_follower *follower)
{
    hearth_pg_close(&follower->pg);
    (void)pthread_cond_destroy(&follower->wake);
    hearth_mutex_destroy(&follower->lock);
    hearth_mem_free(follower);
}

enum hearth_status hearth_node_follower_start(struct hearth_store *store,
                                              struct hearth_node_follower **ret,
                                              struct hearth_err *err)
{
    assert(store->nodes != NULL);

    struct hearth_node_follower *follower = hearth_mem_zalloc(sizeof *follower);
    if (follower == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the thread of nodes");
    }

    follower->store = store;
    hearth_cancel_init(&follower->cancel, INT64_MAX);
    hearth_mutex_init(&follower->lock, HEARTH_RANK_NODE_FOLLOWER, "node_follower.lock");
    hearth_cond_init(&follower->wake);
    follower->pg = (struct hearth_pg){.url = store->url,
                                      .lineage = &store->lineage,
                                      .cancel = &follower->cancel,
                                      .timeout_ms = PATIENCE_MS};

    /* The new thread inherits the mask: signals are for the main thread. */
    sigset_t all, old;
    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    int rc = pthread_create(&follower->thread, NULL, run_follower, follower);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        free_follower(follower);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot start the thread of nodes: %s",
                           strerrordesc_np(rc));
    }

    (void)pthread_setname_np(follower->thread, "nodes");
    *ret = follower;

    return HEARTH_OK;
}

void hearth_node_follower_stop(struct hearth_node_follower *follower)
{
    if (follower == NULL) {
        return;
    }

    hearth_mutex_lock(&follower->lock);
    atomic_store(&follower->cancel.cancelled, true);
    (void)pthread_cond_broadcast(&follower->wake);
    hearth_mutex_unlock(&follower->lock);
    (void)pthread_join(follower->thread, NULL);
    free_follower(follower);
}
