/*
 * disk_shares.h -- the parameters of select_service_disk.sql (private to the store).
 *
 * Threads: safe; the connection belongs to the caller.
 */
#ifndef HEARTH_STORE_DISK_SHARES_H
#define HEARTH_STORE_DISK_SHARES_H

#include "pg/pg.h"
#include "pg/store_state.h"

/*
 * Set all parameters, in the arena: the tenant (empty: all tenants), the bytes of each table that
 * are read (option max_disk_sample_bytes; 0: all), and the bytes of services in the tables of data,
 * which it reads. ret_fault and cancel may be NULL. Errors: of the statement; NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_disk_shares_read(const struct hearth_store *store, struct hearth_pg *pg,
                        struct hearth_str tenant, struct hearth_cancel *cancel,
                        struct hearth_arena *arena, struct hearth_pg_params *params,
                        enum hearth_pg_fault *ret_fault, struct hearth_err *err);

#endif
