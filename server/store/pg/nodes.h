/*
 * nodes.h -- the nodes of distributed tables: which one owns a service, and connections to it
 * (private to the store).
 *
 * Any node of Citus takes any statement over the data tables and passes it on to the owner of the
 * rows. That costs several times the CPU of a commit, makes it a two-phase commit, and one node
 * that is down then stops what the others could do. So reads of one node's services go to it
 * (node_reads.h). A map that is out of date is harmless: the old owner passes statements on.
 *
 * The map is read from Citus' own catalogues on the coordinator, each 10 s, and sooner after a
 * connection to a node was lost. A node that has another address in it is met there first, because
 * it may be a standby that was promoted and lacks commits (lineage.h). Node 0 is the database of
 * the URL, the coordinator: it owns what no other node can be asked for, such as services of a node
 * that has no copy of Citus' catalogues. Another number belongs to one group of Citus (a primary
 * and its standbys) as long as hearthd runs; its address changes when another primary takes over.
 * Services of nodes beyond HEARTH_MAX_NODES are left to node 0, and a line of the log says so.
 *
 * Threads: safe; _refresh belongs to one thread at a time.
 * Source:  docs/decisions/0044-connections-to-nodes.md.
 */
#ifndef HEARTH_STORE_NODES_H
#define HEARTH_STORE_NODES_H

#include "hearth/store/store.h"

#include "pg/node_aliases.h"
#include "pg/node_ranges.h"
#include "pg/node_shards.h"
#include "pg/pg.h"

struct hearth_nodes;
struct hearth_pool;

/*
 * Uses url, node_addresses, max_readers (connections to each node) and statement_timeout_ms of the
 * options, which outlive it. The map is empty: node 0 owns all services. INVALID_ARGUMENT: a node
 * address cannot be parsed, or the URL has hostaddr.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_nodes_new(const struct hearth_store_options *options,
                                                      struct hearth_nodes **ret_nodes,
                                                      struct hearth_err *err);
void hearth_nodes_free(struct hearth_nodes *nodes); /* NULL-safe; no connection is taken */

/*
 * Read the map on a connection to the coordinator; up to 2 s for each node that has another address
 * and is silent. After a failure the old map remains, and is due after a second.
 * FAILED_PRECONDITION: Citus places services otherwise than hearthd computes. UNAVAILABLE: a node
 * cannot be met where Citus has it now, or has lost commits.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_nodes_refresh(struct hearth_nodes *nodes, struct hearth_pg *pg, struct hearth_err *err);
/* The map may be wrong: it is due to be read. */
void hearth_nodes_suspect(struct hearth_nodes *nodes);
bool hearth_nodes_are_due(struct hearth_nodes *nodes);

/*
 * Take over the shards that _refresh has read; sorted by hash. NO_MEMORY. Tests make a map by it.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_nodes_take(struct hearth_nodes *nodes,
                                                       const struct hearth_node_shard *shards,
                                                       size_t n, struct hearth_err *err);

/* The number of the present map, from 1; 0: none was read yet. Other owners, another number. */
uint64_t hearth_nodes_version(struct hearth_nodes *nodes);
/* Copy the ranges of the present map; the caller frees them with hearth_mem_free. NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status hearth_nodes_ranges(struct hearth_nodes *nodes,
                                                         struct hearth_node_range **ret_ranges,
                                                         size_t *ret_n, uint64_t *ret_version,
                                                         struct hearth_err *err);

/* The owner of a service in the present map. */
unsigned hearth_node_of(struct hearth_nodes *nodes, int32_t service_id);

/* The number of nodes that were known since the start, without node 0. */
unsigned hearth_nodes_count(struct hearth_nodes *nodes);
/* Connections to node 1 or above, which was the owner of a service. */
struct hearth_pool *hearth_node_pool(struct hearth_nodes *nodes, unsigned node);
/* Its history, which connections to it check (lineage.h). */
struct hearth_lineage *hearth_node_lineage(struct hearth_nodes *nodes, unsigned node);
/* Whether a node may have lost commits, as a standby that was promoted; then the reason. */
bool hearth_nodes_find_loss(struct hearth_nodes *nodes, char reason[256]);
/* Its address, valid as long as `nodes`; NULL: it owns nothing now, ask the coordinator. */
const struct hearth_pg_address *hearth_node_address(struct hearth_nodes *nodes, unsigned node);

/*
 * Record and log that commits cannot reach node 1 or above, or reach it again. _explain writes
 * which node that is and why; an empty text: none.
 */
void hearth_node_note_away(struct hearth_nodes *nodes, unsigned node, const char *why);
void hearth_node_note_back(struct hearth_nodes *nodes, unsigned node);
void hearth_nodes_explain(struct hearth_nodes *nodes, char reason[256]);

/* ---- nodes that are lost: node_health.h ---- */

/* What the map says of a node now. */
struct hearth_node_view {
    const struct hearth_pg_address *address; /* lives as long as the map; NULL: it owns nothing */
    struct hearth_pg_address known;          /* by which Citus knows it */
    bool is_lost;
};

/* The URL of the store, which a connection to a node has but for its address. */
const struct hearth_secret *hearth_nodes_url(const struct hearth_nodes *nodes);

/* Write the nodes 1 to the returned number to ret[1] and so on. */
unsigned hearth_nodes_list(struct hearth_nodes *nodes,
                           struct hearth_node_view ret[HEARTH_MAX_NODES + 1]);

#define HEARTH_NODE_WHY_BYTES 112

/*
 * Set why a node is lost, or with NULL that it is not, unless it has another address by now.
 * Returns whether it is lost now and was not before, or the other way round.
 */
bool hearth_node_set_lost(struct hearth_nodes *nodes, unsigned node,
                          const struct hearth_pg_address *address, const char *why);
/* Return how many nodes are lost, and write which is the first and why, if there are any. */
unsigned hearth_nodes_find_lost(struct hearth_nodes *nodes, struct hearth_pg_address *ret_known,
                                char why[HEARTH_NODE_WHY_BYTES]);
bool hearth_nodes_have_lost(const struct hearth_nodes *nodes);

/*
 * One thread at a time looks at nodes. False: another thread has looked while this one waited, or
 * the request is over. True: the caller looks, and then calls _end_look.
 */
bool hearth_nodes_begin_look(struct hearth_nodes *nodes, struct hearth_cancel *cancel);
void hearth_nodes_end_look(struct hearth_nodes *nodes);

#endif
