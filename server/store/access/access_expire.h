/*
 * access_expire.h -- deletes sessions and tokens that have ended, and old months of the audit log
 * (private to the store).
 *
 * Threads: safe, also between servers.
 */
#ifndef HEARTH_STORE_ACCESS_EXPIRE_H
#define HEARTH_STORE_ACCESS_EXPIRE_H

#include "hearth/store/store.h"

#include "pg/pg.h"

/*
 * Delete sessions that have ended, and tokens that ended 30 days ago, with their grants. Some
 * thousands at a time; the rest waits for the next call.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_expire(struct hearth_store *store, struct hearth_pg *pg,
                                        struct hearth_err *err);

/*
 * Drop the months of the audit log that lie wholly before options.retain_audit_ns ago. A month that
 * is being read waits for the next call. `pg` must not be in a transaction; it may be reconnected.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_audit_expire(struct hearth_store *store, struct hearth_pg *pg,
                                       struct hearth_err *err);

#endif
