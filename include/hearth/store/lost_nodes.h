/*
 * lost_nodes.h -- nodes of distributed tables that do not answer.
 *
 * A service lies on one node, so an answer can do without the services of a node that is lost. A
 * node is lost if hearthd cannot reach it, and Citus' coordinator cannot either. The store looks at
 * all nodes each two seconds, and at lost ones each second.
 *
 * Nodes have numbers, which stay the same while hearthd runs. Number 0 is the database of the URL:
 * it is in no set, because without it nothing works. Where tables are not distributed, or with
 * --node-connections=false, all services are of number 0.
 *
 * Threads: safe; a set belongs to one thread.
 * Source:  docs/decisions/0049-partial-answers.md.
 */
#ifndef HEARTH_STORE_LOST_NODES_H
#define HEARTH_STORE_LOST_NODES_H

#include "hearth/base/cancel.h"

#include <stddef.h>

#define HEARTH_MAX_NODES       64 /* hearthd connects to no more; the coordinator serves the rest */
#define HEARTH_NODE_NAME_BYTES 272
#define HEARTH_NODE_LOOK_MS    5000 /* hearth_store_find_lost takes no longer */

struct hearth_store;

struct hearth_node_set {
    bool has[HEARTH_MAX_NODES + 1]; /* by number; [0] is always false */
};

/* True if a node is lost, or may be. An atomic load: each read may call it. */
bool hearth_store_has_lost_nodes(const struct hearth_store *store);

/* The number of the node that owns a service now. */
unsigned hearth_store_node_of(struct hearth_store *store, int32_t service_id);

/* Write "host:port", by which Citus knows the node. */
void hearth_store_node_name(struct hearth_store *store, unsigned node,
                            char out[HEARTH_NODE_NAME_BYTES]);

/* Keep those of the set that are known to be lost. */
void hearth_store_known_lost(struct hearth_store *store, struct hearth_node_set *set);

/*
 * The same after a read has failed: nodes that are not known to be lost are asked first. Takes at
 * most HEARTH_NODE_LOOK_MS, and half of the time to the deadline of `cancel`, which may be NULL.
 */
void hearth_store_find_lost(struct hearth_store *store, struct hearth_cancel *cancel,
                            struct hearth_node_set *set);

#endif
