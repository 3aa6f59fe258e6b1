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

#include "pg/session.h"

/* Return the node that owns all services of the reader; 0: the database of the URL. */
unsigned hearth_node_of_reader(const struct hearth_store_reader *reader);

/*
 * Run the read on node 1 or above. *ret_done false: it returned no row and may run elsewhere.
 * ABORTED: the node was lost after rows were delivered; the caller begins again.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_node_read(const struct hearth_store_reader *reader,
                                                      unsigned node, bool *ret_done,
                                                      struct hearth_err *err);

#endif
