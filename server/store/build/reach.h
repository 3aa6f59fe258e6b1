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
 * The begin of the first day that has a leaf of profiles within the tenant's retention: before it
 * none are whole. INT64_MAX: there is none.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_profiles_reach(struct hearth_store *store,
                                                           struct hearth_pg *pg,
                                                           struct hearth_str tenant,
                                                           int64_t *ret_ns, struct hearth_err *err);
/*
 * Raise *reach_ns, a day's begin, past the last day of which the service has roll-ups without their
 * profiles: blocks from there on can be built again. Looks from the day of from_ns on.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_profiles_check_reach(struct hearth_pg *pg,
                                                                 int32_t service_id,
                                                                 int64_t from_ns, int64_t *reach_ns,
                                                                 enum hearth_pg_fault *ret_fault,
                                                                 struct hearth_err *err);

#endif
