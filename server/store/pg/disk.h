/*
 * disk.h -- how full the database's disk is (private to the store).
 *
 * Threads: hearth_disk_check is safe; hearth_disk_look belongs to the housekeeper.
 */
#ifndef HEARTH_STORE_DISK_H
#define HEARTH_STORE_DISK_H

#include "hearth/store/store.h"

#include "pg/pg.h"

/* RESOURCE_EXHAUSTED while the disk is too full for profiles. */
HEARTH_MUST_CHECK enum hearth_status hearth_disk_check(struct hearth_store *store,
                                                       struct hearth_err *err);
/* Once in a while: look how full it is. */
HEARTH_MUST_CHECK enum hearth_status hearth_disk_look(struct hearth_store *store,
                                                      struct hearth_pg *pg, struct hearth_err *err);

#endif
