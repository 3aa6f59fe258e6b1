/*
 * housekeeping.h -- the periodic work of every server on its database (private to the store).
 *
 * Threads: confined to the boot thread.
 */
#ifndef HEARTH_STORE_HOUSEKEEPING_H
#define HEARTH_STORE_HOUSEKEEPING_H

#include "hearth/store/store.h"

#include "pg/pg.h"

/* Monotonic times at which each kind of work is due again; 0: now. */
struct hearth_housekeeping {
    int64_t next_partitions_ns, next_trim_ns, next_disk_ns, next_agents_ns, next_network_ns,
        next_uploads_ns, next_originals_ns, next_tenant_disk_ns;
};

/*
 * Times of a server that has just started: whatever acceptance of profiles and settings do not need
 * waits HEARTH_QUIET_START_NS, so that the first queries need not share the processors with it. The
 * boot has made the leaves and loaded the label indexes a moment ago.
 */
void hearth_housekeeping_begin(struct hearth_store *store, struct hearth_housekeeping *ret_times);

/*
 * Make the leaves that are missing, of today and n_days after it, in their order up to the first
 * failure, which is logged; it is tried again each 30 s.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_housekeeping_make_leaves(struct hearth_store *store,
                                                                     struct hearth_pg *pg,
                                                                     int64_t n_days,
                                                                     struct hearth_err *err);

/*
 * Do all work that is due, on a connection of the boot thread. After an error, the rest of the
 * failed kind waits for its next time, except for the steps of each 30 s, which do not wait for one
 * another; the other kinds are done by the next call.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_housekeeping_run(struct hearth_store *store,
                                                             struct hearth_pg *pg,
                                                             struct hearth_housekeeping *times,
                                                             struct hearth_err *err);

#endif
