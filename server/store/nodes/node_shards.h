/*
 * node_shards.h -- which node owns a service, and what Citus' catalogues say about the shards of
 * data tables and their nodes (private to the store).
 *
 * All data tables are placed together, so the shards of one of them, roll_state, stand for all.
 *
 * On a node, a shard is an ordinary table with the name of the data table, an underscore and the
 * number of the shard. A query that names it is planned by PostgreSQL alone (read/node_parts.h).
 *
 * Citus divides all services by ranges of hashes of their ids.
 *
 * Threads: safe; a connection belongs to its caller. Errors: of the statements.
 */
#ifndef HEARTH_STORE_NODE_SHARDS_H
#define HEARTH_STORE_NODE_SHARDS_H

#include "hearth/model/profile_source.h"

#include "pg/pg.h"

/* ---- which node owns a service ---- */

/* The first hash of a range, which reaches to the next one, and the number of its node: nodes.h. */
struct hearth_node_range {
    int32_t first_hash;
    unsigned node;
};

/* Return the range of a service; NULL: none, such as in an empty list. ranges: sorted. */
const struct hearth_node_range *hearth_node_find_range(const struct hearth_node_range *ranges,
                                                       size_t n, int32_t service_id);
/* Return the owner of a service; node 0 owns what no range has. */
unsigned hearth_node_in_ranges(const struct hearth_node_range *ranges, size_t n,
                               int32_t service_id);

/* ---- shards ---- */

/* The tables whose shards statements name: one for each source, and these. */
enum {
    HEARTH_SHARD_ROLL_STATE = HEARTH_N_SOURCES,
    HEARTH_SHARD_TOMBSTONE,
    HEARTH_SHARD_DICT_CHUNK,
    HEARTH_SHARD_PUSH_ID,
    HEARTH_SHARD_INGEST_BATCH,
    HEARTH_N_SHARD_TABLES,
};

/* The name of such a table, without its schema. */
const char *hearth_shard_table(unsigned table);

/* The tables of a range of hashes. */
struct hearth_shard {
    int32_t group;                      /* of the node that has them */
    int64_t ids[HEARTH_N_SHARD_TABLES]; /* Citus' numbers of the shards */
};

/* The shards of one number are named by that of roll_state. */
static inline int64_t hearth_shard_id(const struct hearth_shard *shard)
{
    return shard->ids[HEARTH_SHARD_ROLL_STATE];
}

struct hearth_node_shard {
    int32_t first_hash;
    int32_t group;          /* Citus' number of a primary and its standbys; 0: the coordinator */
    struct hearth_str host; /* of the primary */
    int32_t port;
    bool is_usable;   /* it is active, and its copy of Citus' catalogues is up to date */
    int64_t n_copies; /* above 1: written through the coordinator only, which writes all of them */
    int64_t *ids;     /* of the shards with this first hash, by HEARTH_SHARD_*; may be incomplete */
    size_t n_ids;
};

/* Read the shards, sorted by hash, on a connection to the coordinator. */
HEARTH_MUST_CHECK enum hearth_status hearth_node_shards_read(struct hearth_pg *pg,
                                                             struct hearth_arena *arena,
                                                             struct hearth_node_shard **ret,
                                                             size_t *ret_n, struct hearth_err *err);

/*
 * Compare the ranges of some services with the shards that Citus chooses for them.
 * FAILED_PRECONDITION: they differ.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_node_shards_check(struct hearth_pg *pg, struct hearth_arena *arena,
                         const struct hearth_node_range *ranges, size_t n_ranges,
                         struct hearth_err *err);

#endif
