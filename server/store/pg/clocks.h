/*
 * clocks.h -- compares this machine's clock with the database's (private to the store).
 *
 * Threads: hearth_clocks_compare runs on the boot thread only; the other function is pure.
 */
#ifndef HEARTH_STORE_CLOCKS_H
#define HEARTH_STORE_CLOCKS_H

#include "hearth/store/store.h"

#include "pg/pg.h"

/*
 * Compare the clocks; hearth_store_clock_ahead_ns then returns the difference. Logs when it begins
 * and when it ends. A comparison that took longer than 2 s is ignored.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_clocks_compare(struct hearth_store *store, struct hearth_pg *pg, struct hearth_err *err);

/* Write a difference as a sentence; an empty text for 0. */
void hearth_clocks_explain(int64_t ahead_ns, char out[256]);

#endif
