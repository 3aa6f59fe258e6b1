/*
 * originals_expire.h -- deletes old originals (private to the store).
 *
 * Threads: safe; the connection belongs to the caller.
 */
#ifndef HEARTH_STORE_ORIGINALS_EXPIRE_H
#define HEARTH_STORE_ORIGINALS_EXPIRE_H

#include "pg/pg.h"

/*
 * Delete originals of profiles older than retain-raw (the tenant's own, otherwise retain_ns; 0: for
 * ever), those of services that are gone, and the oldest of each tenant that has more than
 * max_bytes (0: no limit).
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_originals_expire(struct hearth_pg *pg, int64_t retain_ns,
                                           int64_t max_bytes, struct hearth_err *err);

#endif
