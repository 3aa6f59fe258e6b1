/*
 * pool.h -- a bounded set of connections for readers and the catalogue (private to the store).
 *
 * Threads: safe. A connection that was taken belongs to one thread until it is given back.
 */
#ifndef HEARTH_STORE_POOL_H
#define HEARTH_STORE_POOL_H

#include "pg/pg.h"

struct hearth_pool;

/* Connections are opened when they are needed. The URL is copied; max_connections is above 0. */
HEARTH_MUST_CHECK enum hearth_status hearth_pool_new(const struct hearth_secret *url,
                                                     unsigned max_connections,
                                                     struct hearth_pool **ret_pool,
                                                     struct hearth_err *err);

/* Close all connections; none of them is taken. NULL-safe. */
void hearth_pool_free(struct hearth_pool *pool);

/* Check the lineage at each connect. Keeps it. Call it before the first _take. */
void hearth_pool_set_lineage(struct hearth_pool *pool, struct hearth_lineage *lineage);

/*
 * From the next _take on, connect to this address instead of the URL's; NULL: to the URL's. Open
 * connections to another address are closed when they are taken. Keeps the address.
 */
void hearth_pool_set_address(struct hearth_pool *pool, const struct hearth_pg_address *address);

/* Limit statements whose request has no deadline; 0: no limit. Call it before the first _take. */
void hearth_pool_set_timeout(struct hearth_pool *pool, int64_t timeout_ms);

/*
 * From the next _take on, connections refuse to write, with this text (struct hearth_pg). Keeps
 * the text.
 */
void hearth_pool_set_read_only(struct hearth_pool *pool, const char *reason);

/*
 * Return an open connection. Waits for a free one until the request's deadline, at most 10 s;
 * UNAVAILABLE after that. cancel (may be NULL) applies to its statements until it is given back.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_pool_take(struct hearth_pool *pool,
                                                      struct hearth_cancel *cancel,
                                                      struct hearth_pg **ret_pg,
                                                      struct hearth_err *err);
/*
 * The same without waiting for a connection that is taken: *ret_pg NULL if none is free, or if none
 * of the free ones is open and may_connect is false. UNAVAILABLE: it could not be opened, or it was
 * pointless (struct hearth_pg; doubt may be NULL, and is kept until the connection is given back).
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_pool_take_free(struct hearth_pool *pool, struct hearth_cancel *cancel,
                      const struct hearth_pg_doubt *doubt, bool may_connect,
                      struct hearth_pg **ret_pg, struct hearth_err *err);
/* Give a connection back. A broken connection, or one in a transaction, is closed. */
void hearth_pool_give(struct hearth_pool *pool, struct hearth_pg *pg);

#endif
