/*
 * tenants_expire.h -- deletes old rows of refused uploads and of targets (private to the store).
 *
 * Threads: safe, also between servers.
 */
#ifndef HEARTH_STORE_TENANTS_EXPIRE_H
#define HEARTH_STORE_TENANTS_EXPIRE_H

#include "pg/pg.h"

/* keep_ns: after the latest upload of a row; 0: deletes nothing. */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_errors_expire(struct hearth_pg *pg, int64_t keep_ns,
                                               struct hearth_err *err);
/* Targets that no server has claimed for an hour: they are in no configuration any more. */
HEARTH_MUST_CHECK
enum hearth_status hearth_scrape_targets_expire(struct hearth_pg *pg, struct hearth_err *err);

#endif
