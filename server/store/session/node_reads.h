/*
 * node_reads.h -- reads on the node that owns the services (private to the store).
 *
 * A read of one node's services runs on that node, which has all that was committed before: a
 * commit through the coordinator has ended there, too, before it is acknowledged. If the node
 * cannot be reached, the coordinator is asked instead: the map may be out of date.
 *
 * Threads: safe.
 * Source:  docs/decisions/0044-connections-to-nodes.md.
 */
#ifndef HEARTH_STORE_NODE_READS_H
#define HEARTH_STORE_NODE_READS_H

#include "session/session.h"

/* Return the node that owns all services of the reader; 0: the database of the URL. */
unsigned hearth_node_of_reader(const struct hearth_store_reader *reader);

/*
 * Run the read on the coordinator, which passes it on to the nodes. UNAVAILABLE: a node of its
 * services was lost meanwhile; the coordinator may wait for that node longer than the reader.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_node_read_all(const struct hearth_store_reader *reader,
                                                          const struct hearth_pg_params *wall,
                                                          struct hearth_err *err);

/* A statement that a reader's function will run first. */
struct hearth_node_statement {
    const char *sql;
    const struct hearth_pg_params *params;
    bool is_streamed; /* by hearth_pg_stream, otherwise by hearth_pg_exec */
};

/*
 * Take a connection to node 1 or above and send the statement ahead on it (pg.h), for
 * hearth_node_read. Does not wait for a connection that is taken, so that a read may hold one to
 * each node. *ret_pg NULL: no connection is free, or the node is lost, and nothing was sent.
 * UNAVAILABLE: a new connection could not be opened.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_node_send_ahead(const struct hearth_store_reader *reader, unsigned node,
                       const struct hearth_node_statement *statement, bool may_connect,
                       struct hearth_pg **ret_pg, struct hearth_err *err);
/* Whether a service of the reader lies on a node that is lost. context: the reader. */
bool hearth_node_reader_is_lost(const void *context);

/*
 * Run the read on node 1 or above: on `ahead`, on which its statement was sent, and which is given
 * back; NULL: a connection is taken. *ret_done false: it returned no row and may run elsewhere.
 * UNAVAILABLE: the node is lost, perhaps since the read began. ABORTED: it gave up the read after
 * rows were delivered; the caller begins again.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_node_read(const struct hearth_store_reader *reader,
                                                      unsigned node, struct hearth_pg *ahead,
                                                      bool *ret_done, struct hearth_err *err);

#endif
