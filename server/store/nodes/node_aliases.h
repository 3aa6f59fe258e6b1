/*
 * node_aliases.h -- how hearthd reaches nodes that Citus knows by another address, such as one of a
 * network of their own, or a pooler: the option node-addresses (private to the store).
 *
 * Threads: its owner has a lock (nodes.c).
 */
#ifndef HEARTH_STORE_NODE_ALIASES_H
#define HEARTH_STORE_NODE_ALIASES_H

#include "hearth/store/lost_nodes.h"

#include "pg/pg.h"

struct hearth_node_aliases;

/*
 * Parse "known:port=host:port,...", at most HEARTH_MAX_NODES of them; may be empty.
 * INVALID_ARGUMENT; NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_node_aliases_parse(const char *text,
                                                               struct hearth_node_aliases **ret,
                                                               struct hearth_err *err);
void hearth_node_aliases_free(struct hearth_node_aliases *aliases); /* NULL-safe */

/* The address at which hearthd reaches a node: the one that Citus knows, unless it has an alias. */
struct hearth_pg_address hearth_node_aliases_find(struct hearth_node_aliases *aliases,
                                                  struct hearth_str host, int32_t port);

/*
 * A name that no node has: which _find did not return since _reset. Returns how many there are, and
 * writes "NAME:PORT" of the first one.
 */
size_t hearth_node_aliases_unknown(const struct hearth_node_aliases *aliases, char out[264]);
void hearth_node_aliases_reset(struct hearth_node_aliases *aliases);

#endif
