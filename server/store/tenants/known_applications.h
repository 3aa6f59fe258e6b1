/*
 * known_applications.h -- applications and rules in memory (private to the store).
 *
 * Threads: safe.
 */
#ifndef HEARTH_STORE_KNOWN_APPLICATIONS_H
#define HEARTH_STORE_KNOWN_APPLICATIONS_H

#include "hearth/store/store_applications.h"

#include "pg/pg.h"

struct hearth_known_applications;

HEARTH_MUST_CHECK enum hearth_status
hearth_known_applications_new(struct hearth_known_applications **ret, struct hearth_err *err);
void hearth_known_applications_free(struct hearth_known_applications *table); /* NULL-safe */

/* Write which services were seen, and read the tables again if they have changed. */
HEARTH_MUST_CHECK enum hearth_status hearth_known_applications_step(struct hearth_store *store,
                                                                    struct hearth_pg *pg,
                                                                    struct hearth_err *err);

#endif
