/*
 * clocks.h -- whether this machine's clock agrees with the database's (private to the store).
 *
 * Threads: hearth_clocks_compare belongs to the housekeeper; the other function is pure.
 */
#ifndef HEARTH_STORE_CLOCKS_H
#define HEARTH_STORE_CLOCKS_H

#include "hearth/store/store.h"

#include "pg/pg.h"

/* Once in a while: compare the database's clock with ours. */
HEARTH_MUST_CHECK enum hearth_status
hearth_clocks_compare(struct hearth_store *store, struct hearth_pg *pg, struct hearth_err *err);
/* A difference as a sentence; empty for 0. */
void hearth_clocks_explain(int64_t ahead_ns, char out[256]);

#endif
