/*
 * disk.h -- how full the database's disk is (private to the store).
 *
 * Threads: hearth_disk_check is safe; hearth_disk_look runs on the boot thread only.
 */
#ifndef HEARTH_STORE_DISK_H
#define HEARTH_STORE_DISK_H

#include "hearth/store/store.h"

#include "pg/pg.h"

/*
 * RESOURCE_EXHAUSTED (with err->is_passing) while the disk is too full for profiles. Runs no
 * statement.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_disk_check(struct hearth_store *store,
                                                       struct hearth_err *err);

/*
 * Append two parameters: the distributed tables (int8[], by oid), and their bytes on the nodes
 * (int8[]). Both are empty where no table is distributed. A node that is down counts as nothing.
 * ret_fault may be NULL. Errors: of the statement.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_disk_add_nodes(const struct hearth_store *store, struct hearth_pg *pg,
                      struct hearth_arena *arena, struct hearth_pg_params *params,
                      enum hearth_pg_fault *ret_fault, struct hearth_err *err);

/* Let the first measurement of the tables wait until then, unless max_disk_bytes limits them. */
void hearth_disk_begin(struct hearth_store *store, int64_t sizes_mono_ns);

/*
 * Measure the tables (every five minutes; with a limit every minute, and every 5 s while they
 * exceed it) and the free space, and compare them with the limits. Logs each change of the state.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_disk_look(struct hearth_store *store,
                                                      struct hearth_pg *pg, struct hearth_err *err);

#endif
