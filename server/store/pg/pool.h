/*
 * pool.h -- a bounded set of connections for readers and the catalogue (private to the store).
 *
 * Threads: safe. A connection that was taken belongs to one thread until it is given back.
 */
#ifndef HEARTH_STORE_POOL_H
#define HEARTH_STORE_POOL_H

#include "pg/pg.h"

struct hearth_pool;

HEARTH_MUST_CHECK enum hearth_status hearth_pool_new(const char *url, unsigned max_connections,
                                                     struct hearth_pool **ret_pool,
                                                     struct hearth_err *err);
void hearth_pool_free(struct hearth_pool *pool);
/*
 * A connected connection; waits for a free one until the request's deadline, at most 10 s
 * (UNAVAILABLE then).
 */
HEARTH_MUST_CHECK enum hearth_status hearth_pool_take(struct hearth_pool *pool,
                                                      struct hearth_cancel *cancel,
                                                      struct hearth_pg **ret_pg,
                                                      struct hearth_err *err);
/* Of statements whose request has no deadline; before the first take. */
void hearth_pool_set_timeout(struct hearth_pool *pool, int64_t timeout_ms);
/* Give it back; one that is broken or in a transaction is closed. */
void hearth_pool_give(struct hearth_pool *pool, struct hearth_pg *pg);

#endif
