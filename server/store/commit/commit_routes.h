/*
 * commit_routes.h -- which committer stores a service, and how waiting items follow a shard that
 * moves to another node (private to the store).
 *
 * The routes are the ranges of the map of nodes, with numbers of committers. The shards of a node
 * take turns among its committers, so that a batch goes to as few shards as possible: a statement
 * is planned for each.
 *
 * Chunks of a dictionary must be stored in their order, by one committer at a time. So, when the
 * map changes, items that wait move to their new committer, and its node waits until batches that
 * were taken before, with items of the same services, have ended. Such a batch is stored by its old
 * committer, at the old node, which passes the statements on.
 *
 * Threads: "committer.lock" is held by the caller of all but _follow, which belongs to the thread
 * that refreshes the map.
 * Source:  docs/decisions/0044-connections-to-nodes.md.
 */
#ifndef HEARTH_STORE_COMMIT_ROUTES_H
#define HEARTH_STORE_COMMIT_ROUTES_H

#include "commit/commit_queue.h"

/* The committer of a service in the present map. */
struct hearth_committer *hearth_commit_route(struct hearth_committers *all, int32_t service_id);

/* Whether a batch of another committer has to end before this one may take the next. */
bool hearth_commit_is_owed(const struct hearth_committer *committer);
/* The batch of the committer has ended: those that waited for it go on. */
void hearth_commit_end_busy(struct hearth_committer *committer);

#endif
