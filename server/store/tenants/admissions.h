/*
 * admissions.h -- applications and rules in memory (private to the store).
 *
 * Threads: safe.
 */
#ifndef HEARTH_STORE_ADMISSIONS_H
#define HEARTH_STORE_ADMISSIONS_H

#include "hearth/store/store_applications.h"

#include "pg/pg.h"

struct hearth_admissions;

HEARTH_MUST_CHECK enum hearth_status hearth_admissions_new(struct hearth_admissions **ret,
                                                           struct hearth_err *err);
void hearth_admissions_free(struct hearth_admissions *admissions); /* NULL-safe */

/* Write which services were seen, and read the tables again if they have changed. */
HEARTH_MUST_CHECK enum hearth_status
hearth_admissions_step(struct hearth_store *store, struct hearth_pg *pg, struct hearth_err *err);

#endif
