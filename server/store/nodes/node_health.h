/*
 * node_health.h -- which nodes of distributed tables answer (private to the store).
 *
 * A node answers if it takes a new connection. If it does not, the coordinator is asked whether it
 * can reach the node; if it can, the node is not lost but cut off: reads of it go through the
 * coordinator. A commit that cannot connect to a node reports it, too. nodes.h holds the state of
 * each node.
 *
 * The rest of the contract is hearth/store/lost_nodes.h.
 *
 * Threads: safe.
 */
#ifndef HEARTH_STORE_NODE_HEALTH_H
#define HEARTH_STORE_NODE_HEALTH_H

#include "hearth/store/lost_nodes.h"

#include "pg/pg.h"

struct hearth_nodes;

/*
 * Ask the lost nodes, and the others if they are due, on this thread: up to five seconds for each
 * that is silent. pg: a connection to the coordinator. *next_mono_ns: when the others are due; 0 at
 * first. node_follow.c calls it each second.
 */
void hearth_nodes_watch(struct hearth_store *store, struct hearth_pg *pg, int64_t *next_mono_ns);

#endif
