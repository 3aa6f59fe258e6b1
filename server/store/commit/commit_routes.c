/* commit_routes.c -- committers of services, and changes of the map (contract: commit_routes.h). */
#include "commit/commit_routes.h"

#include "hearth/base/mem.h"

#include "commit/committers.h"

#include <assert.h>

/* The number of the committer of a service. Without routes, node 0 has all services. */
static unsigned find_number(const struct hearth_committers *all, int32_t service_id)
{
    return all->n_routes == 0 ? (uint32_t)service_id % all->n_each
                              : hearth_node_in_ranges(all->routes, all->n_routes, service_id);
}

struct hearth_committer *hearth_commit_route(struct hearth_committers *all, int32_t service_id)
{
    hearth_mutex_assert_held(&all->lock);

    return all->committers[find_number(all, service_id)];
}

bool hearth_commit_is_owed(const struct hearth_committer *committer)
{
    const struct hearth_committers *all = committer->all;
    bool is_owed = false;

    hearth_mutex_assert_held(&all->lock);
    for (unsigned i = 0; i < all->n && all->n_debtors > 0 && !is_owed; i++) {
        is_owed = all->committers[i] != committer && all->committers[i]->debts[committer->node];
    }

    return is_owed;
}

void hearth_commit_end_busy(struct hearth_committer *committer)
{
    struct hearth_committers *all = committer->all;
    hearth_mutex_assert_held(&all->lock);

    committer->is_busy = false;
    if (!committer->any_debts) {
        return;
    }

    memset(committer->debts, 0, sizeof committer->debts);
    committer->any_debts = false;
    all->n_debtors--;
    for (unsigned i = 0; i < all->n; i++) {
        (void)pthread_cond_signal(&all->committers[i]->wake);
    }
}

/* ---- changes of the map ---- */

/* The batch of the debtor has services that a committer of `node` has got. */
static void add_debt(struct hearth_committer *debtor, unsigned node)
{
    debtor->all->n_debtors += !debtor->any_debts;
    debtor->any_debts = true;
    debtor->debts[node] = true;
}

/*
 * Services of the first committer are from now on those of the second. Those that the first had got
 * before may still be in the batch of a third one.
 */
static void note_debts_of_move(struct hearth_committers *all, unsigned from, unsigned to)
{
    unsigned from_node = all->committers[from]->node, to_node = all->committers[to]->node;

    if (from == to) {
        return;
    }

    if (all->committers[from]->is_busy) {
        add_debt(all->committers[from], to_node);
    }

    for (unsigned i = 0; i < all->n && all->n_debtors > 0; i++) {
        if (all->committers[i]->debts[from_node]) {
            add_debt(all->committers[i], to_node);
        }
    }
}

/* The last hash of ranges[i], which reaches to the next one. */
static int64_t end_of_range(const struct hearth_node_range *ranges, size_t n, size_t i)
{
    return i + 1 < n ? (int64_t)ranges[i + 1].first_hash - 1 : INT32_MAX;
}

/* Note all services that have another committer by the new routes. */
static void note_debts(struct hearth_committers *all, const struct hearth_node_range *routes,
                       size_t n)
{
    size_t i = 0, k = 0;
    while (i < all->n_routes && k < n) {
        note_debts_of_move(all, all->routes[i].node, routes[k].node);
        int64_t old_end = end_of_range(all->routes, all->n_routes, i);
        int64_t new_end = end_of_range(routes, n, k);
        i += old_end <= new_end;
        k += new_end <= old_end;
    }

    /* Before the first routes, the committers of node 0 share all services. */
    for (unsigned from = 0; from < all->n_each && all->n_routes == 0; from++) {
        for (k = 0; k < n; k++) {
            note_debts_of_move(all, from, routes[k].node);
        }
    }
}

/* Let the items that wait at a committer follow the routes, each lane in its order. */
static void move_items(struct hearth_committer *committer)
{
    struct hearth_committers *all = committer->all;

    for (unsigned lane = 0; lane < HEARTH_COMMIT_LANES; lane++) {
        struct hearth_push_item *next = NULL;
        for (struct hearth_push_item *item = committer->queue.lanes[lane].head; item != NULL;
             item = next) {
            next = item->next;
            struct hearth_committer *to = hearth_commit_route(all, item->service_id);
            if (to != committer) {
                hearth_commit_queue_unlink(committer, item);
                hearth_commit_queue_append(to, item);
            }
        }
    }
}

/* Replace the routes; returns the old ones. */
static struct hearth_node_range *swap_routes(struct hearth_committers *all,
                                             struct hearth_node_range *routes, size_t n,
                                             uint64_t version)
{
    hearth_mutex_lock(&all->lock);
    struct hearth_node_range *old = all->routes;
    note_debts(all, routes, n);
    all->routes = routes;
    all->n_routes = n;
    all->map_version = version;
    for (unsigned i = 0; i < all->n; i++) {
        move_items(all->committers[i]);
    }

    /* Each finds out itself whether it has items now. */
    for (unsigned i = 0; i < all->n; i++) {
        (void)pthread_cond_signal(&all->committers[i]->wake);
    }
    hearth_mutex_unlock(&all->lock);

    return old;
}

/* Replace the nodes by their committers; returns the last node. */
static unsigned number_committers(const struct hearth_committers *all,
                                  struct hearth_node_range *ranges, size_t n)
{
    unsigned n_of_node[HEARTH_MAX_NODES + 1] = {0}, last = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned node = ranges[i].node;
        assert(node <= HEARTH_MAX_NODES);
        last = node > last ? node : last;
        ranges[i].node = node * all->n_each + n_of_node[node]++ % all->n_each;
    }

    return last;
}

enum hearth_status hearth_committers_follow(struct hearth_committers *all,
                                            struct hearth_nodes *nodes, struct hearth_err *err)
{
    assert(all != NULL && nodes != NULL);

    hearth_mutex_lock(&all->lock);
    if (all->nodes == NULL) { /* before committers that read it without the lock */
        all->nodes = nodes;
    }
    bool is_same = all->map_version == hearth_nodes_version(nodes);
    hearth_mutex_unlock(&all->lock);
    assert(all->nodes == nodes);
    if (is_same) {
        return HEARTH_OK;
    }

    struct hearth_node_range *ranges = NULL;
    size_t n = 0;
    uint64_t version = 0;
    HEARTH_TRY(hearth_nodes_ranges(nodes, &ranges, &n, &version, err));
    enum hearth_status status =
        hearth_committers_add(all, number_committers(all, ranges, n) + 1, err);
    if (status == HEARTH_OK && n > 0) { /* without a map, all remains as it was */
        ranges = swap_routes(all, ranges, n, version);
    }
    hearth_mem_free(ranges);

    return status;
}
