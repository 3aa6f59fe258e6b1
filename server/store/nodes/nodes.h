/*
 * nodes.h -- the nodes of distributed tables: which one owns a service, and connections to it
 * (private to the store).
 *
 * Any node of Citus takes any statement over the data tables and passes it on to the owner of the
 * rows. That costs several times the CPU of a commit, makes it a two-phase commit, and one node
 * that is down then stops what the others could do. So reads of one node's services go to it
 * (node_reads.h); one of several nodes is divided first (read/node_parts.h). A map that is
 * out of date is harmless: the old owner passes statements on, and a statement that names tables
 * of shards checks that they are still there.
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

#include "nodes/node_aliases.h"
#include "nodes/node_shards.h"
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
 * Take over the shards that _refresh has read; sorted by hash. NO_MEMORY. The map is not suspected
 * then. Tests make a map by it.
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

/* Where the rows of a service are in the present map. */
struct hearth_node_place {
    unsigned node;
    bool has_shard; /* its tables are known; false for node 0, and while the map may be wrong */
    struct hearth_shard shard;
};
void hearth_nodes_find_place(struct hearth_nodes *nodes, int32_t service_id,
                             struct hearth_node_place *ret);

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

/* ---- whether nodes answer: node_health.h ---- */

#define HEARTH_NODE_WHY_BYTES 160

/* From good to bad. */
enum hearth_node_reach {
    HEARTH_NODE_ANSWERS, /* or nobody has tried */
    HEARTH_NODE_AWAY,    /* hearthd cannot connect; the coordinator was not asked yet */
    HEARTH_NODE_CUT_OFF, /* hearthd cannot connect, the coordinator can: profiles wait */
    HEARTH_NODE_LOST,    /* neither can: profiles wait, and queries leave out its services */
};

/* What is known of a node now. */
struct hearth_node_view {
    const struct hearth_pg_address *address; /* lives as long as the map; NULL: it owns nothing */
    struct hearth_pg_address known;          /* by which Citus knows it */
    enum hearth_node_reach reach;
    int64_t since_mono_ns;           /* when it did not answer first; only if it does not */
    char why[HEARTH_NODE_WHY_BYTES]; /* it does not, or an empty text */
};

/*
 * Set whether node 1 or above answers at this address, unless it has another one by now; and log
 * it, if that is new. AWAY does not replace what a look has found.
 */
void hearth_node_set_reach(struct hearth_nodes *nodes, unsigned node,
                           const struct hearth_pg_address *address, enum hearth_node_reach reach,
                           const char *why);
/* Whether it does, or may. */
bool hearth_node_is_reached(struct hearth_nodes *nodes, unsigned node);
/* Write which node does not answer, the worst one, and why and how long; an empty text: none. */
void hearth_nodes_explain(struct hearth_nodes *nodes, char reason[256]);

/*
 * The number of entries of node_addresses that name no node of the present map, and "NAME:PORT" of
 * the first one. 0 while no map was read.
 */
size_t hearth_nodes_unknown_addresses(struct hearth_nodes *nodes, char name[264]);

/* The URL of the store, which a connection to a node has but for its address. */
const struct hearth_secret *hearth_nodes_url(const struct hearth_nodes *nodes);

/* Write the nodes 1 to the returned number to ret[1] and so on. */
unsigned hearth_nodes_list(struct hearth_nodes *nodes,
                           struct hearth_node_view ret[HEARTH_MAX_NODES + 1]);

bool hearth_nodes_have_lost(const struct hearth_nodes *nodes);

/*
 * One thread at a time looks at nodes. False: another thread has looked while this one waited, or
 * the request is over. True: the caller looks, and then calls _end_look.
 */
bool hearth_nodes_begin_look(struct hearth_nodes *nodes, struct hearth_cancel *cancel);
void hearth_nodes_end_look(struct hearth_nodes *nodes);

#endif
