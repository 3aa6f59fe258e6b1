/*
 * node_state.h -- what the nodes of Citus say about themselves (private to the store).
 *
 * Threads: safe, each call with its own connection and arena.
 */
#ifndef HEARTH_STORE_NODE_STATE_H
#define HEARTH_STORE_NODE_STATE_H

#include "hearth/model/node_layout.h"

#include "pg/pg.h"

/* Measured: 48 MB/s on two processors that also ran the nodes. For plans only. */
#define HEARTH_MOVED_BYTES_PER_SECOND (40 << 20)

/*
 * Read the data tables, and the nodes if the database has the extension; all in the arena. A node
 * that does not answer is no failure. Asks each node a few times, and waits for the time-out of
 * Citus (citus.node_connection_timeout) if one cannot be reached.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_node_layout_read(struct hearth_pg *pg,
                                                             struct hearth_arena *arena,
                                                             struct hearth_node_layout *ret,
                                                             struct hearth_err *err);

#endif
