/*
 * housekeeping.h -- what a store does once in a while (private to the store).
 *
 * Threads: the boot thread only.
 */
#ifndef HEARTH_STORE_HOUSEKEEPING_H
#define HEARTH_STORE_HOUSEKEEPING_H

#include "hearth/store/store.h"

#include "pg/pg.h"

/* Everything that is due now, on a connection of the boot thread. `times` starts as zeros. */
struct hearth_housekeeping {
    int64_t next_partitions_ns, next_trim_ns, next_disk_ns, next_agents_ns,
        next_network_ns; /* monotonic */
};
HEARTH_MUST_CHECK enum hearth_status hearth_housekeeping_run(struct hearth_store *store,
                                                             struct hearth_pg *pg,
                                                             struct hearth_housekeeping *times,
                                                             struct hearth_err *err);

#endif
