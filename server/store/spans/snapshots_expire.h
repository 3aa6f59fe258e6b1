/*
 * snapshots_expire.h -- removing thread snapshots that are past their time (private to the store).
 *
 * Threads: safe; the connection belongs to the caller.
 */
#ifndef HEARTH_STORE_SNAPSHOTS_EXPIRE_H
#define HEARTH_STORE_SNAPSHOTS_EXPIRE_H

#include "pg/pg.h"

/* Snapshots that came longer ago, of tasks that ended as long ago or are gone. 0: none go. */
HEARTH_MUST_CHECK enum hearth_status
hearth_snapshots_expire(struct hearth_pg *pg, int64_t retain_ns, struct hearth_err *err);

#endif
