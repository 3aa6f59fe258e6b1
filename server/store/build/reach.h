/*
 * reach.h -- from which day on roll-ups can be built again from profiles (private to the store).
 *
 * Threads: safe; the connection belongs to the caller.
 */
#ifndef HEARTH_STORE_REACH_H
#define HEARTH_STORE_REACH_H

#include "hearth/store/store.h"

#include "pg/pg.h"

/*
 * Return the begin of the first day that has a leaf of profiles and lies wholly within the tenant's
 * retention; INT64_MAX: no day has a leaf.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_profiles_reach(struct hearth_store *store,
                                                           struct hearth_pg *pg,
                                                           struct hearth_str tenant,
                                                           int64_t *ret_ns, struct hearth_err *err);

/*
 * Raise *reach_ns, the begin of a day or INT64_MAX, past the last day on which the service has
 * roll-ups without their profiles: blocks from there on can be built again. Days before from_ns are
 * not checked. ret_fault may be NULL.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_profiles_check_reach(struct hearth_pg *pg,
                                                                 int32_t service_id,
                                                                 int64_t from_ns, int64_t *reach_ns,
                                                                 enum hearth_pg_fault *ret_fault,
                                                                 struct hearth_err *err);

#endif
