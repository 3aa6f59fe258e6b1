/*
 * node_follow.h -- the thread that follows the nodes of distributed tables (private to the store).
 *
 * Each second it reads the map if that is due, lets the committers follow it, and looks which nodes
 * answer. A standby of a node that was promoted is found in this way, so nothing else may hold it
 * up: a statement of housekeeping that writes to a node which has died waits for as long as Citus
 * does. So it has a thread and a connection to the coordinator of its own.
 *
 * If a node has lost commits, what this server remembers of them is wrong, so the lineage of the
 * store counts as lost.
 *
 * Threads: _start and _stop are for the thread that keeps and closes the store.
 * Source:  docs/decisions/0045-operating-distributed-tables.md.
 */
#ifndef HEARTH_STORE_NODE_FOLLOW_H
#define HEARTH_STORE_NODE_FOLLOW_H

#include "hearth/store/store.h"

struct hearth_node_follower;

/*
 * store->nodes is set, and outlives the thread, as store->committers does, which may be NULL: then
 * nothing is written. NO_MEMORY; UNAVAILABLE: no thread could be started.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_node_follower_start(struct hearth_store *store,
                                                                struct hearth_node_follower **ret,
                                                                struct hearth_err *err);
/*
 * Cancel its statement, and wait for its end: up to five seconds if it looks at a node that is
 * silent. NULL-safe.
 */
void hearth_node_follower_stop(struct hearth_node_follower *follower);

#endif
