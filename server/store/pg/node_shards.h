/*
 * node_shards.h -- what Citus' catalogues say about the shards of data tables and their nodes
 * (private to the store).
 *
 * All data tables are placed together, so the shards of one of them, roll_state, stand for all.
 *
 * Threads: safe; a connection belongs to its caller. Errors: of the statements.
 */
#ifndef HEARTH_STORE_NODE_SHARDS_H
#define HEARTH_STORE_NODE_SHARDS_H

#include "pg/node_ranges.h"
#include "pg/pg.h"

struct hearth_node_shard {
    int32_t first_hash;
    int32_t group;          /* Citus' number of a primary and its standbys; 0: the coordinator */
    struct hearth_str host; /* of the primary */
    int32_t port;
    bool is_usable;   /* it is active, and its copy of Citus' catalogues is up to date */
    int64_t n_copies; /* above 1: written through the coordinator only, which writes all of them */
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
