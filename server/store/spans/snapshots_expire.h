/*
 * snapshots_expire.h -- deletes old thread snapshots and imported segments (private to the store).
 *
 * Threads: safe; the connection belongs to the caller.
 */
#ifndef HEARTH_STORE_SNAPSHOTS_EXPIRE_H
#define HEARTH_STORE_SNAPSHOTS_EXPIRE_H

#include "pg/pg.h"

/*
 * Delete rows that were received longer ago than retain_ns, if their task ended as long ago or is
 * deleted. retain_ns 0: delete nothing.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_snapshots_expire(struct hearth_pg *pg, int64_t retain_ns, struct hearth_err *err);

#endif
