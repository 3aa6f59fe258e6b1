/*
 * uploads_expire.h -- deletes old uploads (private to the store).
 *
 * Threads: safe; the connection belongs to the caller.
 */
#ifndef HEARTH_STORE_UPLOADS_EXPIRE_H
#define HEARTH_STORE_UPLOADS_EXPIRE_H

#include "pg/pg.h"

/*
 * Delete uploads that ended more than retain_ns ago, and unfinished ones that have received nothing
 * for idle_ns, with their parts. 0 (or less) deletes nothing.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_uploads_expire(struct hearth_pg *pg, int64_t retain_ns,
                                                           int64_t idle_ns, struct hearth_err *err);

#endif
