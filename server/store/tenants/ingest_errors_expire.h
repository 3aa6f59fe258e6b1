/*
 * ingest_errors_expire.h -- deletes old rows of refused uploads (private to the store).
 *
 * Threads: safe, also between servers.
 */
#ifndef HEARTH_STORE_INGEST_ERRORS_EXPIRE_H
#define HEARTH_STORE_INGEST_ERRORS_EXPIRE_H

#include "pg/pg.h"

/* keep_ns: after the latest upload of a row; 0: deletes nothing. */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_errors_expire(struct hearth_pg *pg, int64_t keep_ns,
                                               struct hearth_err *err);

#endif
