/*
 * pg_slices.h -- deleting many old rows by short transactions (private to the store).
 *
 * Threads: a connection belongs to one thread at a time.
 */
#ifndef HEARTH_STORE_PG_SLICES_H
#define HEARTH_STORE_PG_SLICES_H

#include "pg/pg.h"

/*
 * Run a DELETE again and again, each time as a transaction of its own, until it deletes fewer than
 * slice_rows rows or has run max_slices times. Its parameters are $1 (int8), before_ms, and $2
 * (int8), slice_rows: it deletes at most that many rows.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_pg_delete_slices(struct hearth_pg *pg, const char *sql, int64_t before_ms,
                                           int64_t slice_rows, int max_slices,
                                           struct hearth_err *err);

#endif
