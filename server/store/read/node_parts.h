/*
 * node_parts.h -- the services of a read, divided by the nodes that own them (private to the
 * store).
 *
 * A query of a distributed table is planned once for each shard, which costs several times the
 * query itself. A statement that names the tables of the shards is planned by PostgreSQL alone, on
 * the node that has them. So a read of several services is a statement for each node, and names
 * the tables of the shards.
 *
 * A shard may move. Its old tables stay on the old node for some seconds, and miss what is written
 * to the new ones. So each statement returns, from its own snapshot, how many of the shards the
 * node still has by Citus' catalogues. If it is not all of them, what the
 * statement returned is thrown away, and the read runs on the names of the data tables.
 *
 * The nodes work at the same time: each is sent its statement, then one result after the other is
 * fetched, first those that have begun to arrive. So a read holds a connection to each node. It
 * waits for none while it holds another one, so that two reads never wait for each other.
 *
 * Threads: safe. Ownership: all in the arena.
 * Source:  docs/decisions/0045-operating-distributed-tables.md.
 */
#ifndef HEARTH_STORE_NODE_PARTS_H
#define HEARTH_STORE_NODE_PARTS_H

#include "nodes/node_shards.h"
#include "session/node_reads.h"

/* The services of one node. */
struct hearth_node_part {
    unsigned node;           /* 0: the database of the URL */
    const int32_t *services; /* in the order of the read */
    size_t n_services;
    const size_t *shard_of;      /* [n_services], indexes of shards; NULL without shards */
    struct hearth_shard *shards; /* whose tables statements name */
    size_t n_shards;             /* 0: statements name the data tables */
};

/* Divide the services of a read. No parts: the store knows no nodes. NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status hearth_node_parts(struct hearth_store *store,
                                                       const int32_t *services, size_t n,
                                                       struct hearth_arena *arena,
                                                       struct hearth_node_part **ret, size_t *ret_n,
                                                       struct hearth_err *err);

/* Append " FROM .." and a condition that counts the shards of a part which its node has. */
void hearth_node_part_count(struct hearth_buf *sql, const struct hearth_node_part *part);

/* Append the name of a table of a shard; NULL: of the data table. */
void hearth_shard_name(struct hearth_buf *sql, unsigned table, const struct hearth_shard *shard);

/* The read of a part on its node. */
struct hearth_node_turn {
    const struct hearth_node_part *part;
    struct hearth_store_reader reader;      /* of the services of the part */
    struct hearth_node_statement statement; /* that the reader runs; sql NULL: no turn */
    struct hearth_pg *ahead; /* it was sent on this connection, and is not fetched yet */
    bool is_unreached;       /* no connection to the node could be opened */
};

/*
 * Several reads at the same time. At most HEARTH_MAX_NODES turns, of different nodes.
 *   _begin  send the statements, as far as connections are free; not that of a single turn
 *   _next   return a turn whose statement was sent, for hearth_node_part_read; waits until one of
 *           them has news. NULL: none is left.
 *   _end    give up those that were not returned
 * The other turns are read after the last _next: they wait for their connections.
 */
void hearth_node_turns_begin(struct hearth_node_turn *turns, size_t n);
struct hearth_node_turn *hearth_node_turns_next(struct hearth_node_turn *turns, size_t n);
void hearth_node_turns_end(struct hearth_node_turn *turns, size_t n);

/*
 * Run a read of a part with shards on its node. *ret_done false: it may run on the data tables,
 * because the node was not reached, or because the callback failed and has set *is_stale: not all
 * shards were there, or a table was missing. Then the map is read again.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_node_part_read(struct hearth_node_turn *turn,
                                                           const bool *is_stale, bool *ret_done,
                                                           struct hearth_err *err);

#endif
