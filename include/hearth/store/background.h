/*
 * background.h -- what the builder does and how people direct it: roll-ups, compaction, retention,
 * deletion; and what state all of it is in.
 *
 * Every server runs a builder thread; the one that holds the lease works, the others wait for it to
 * expire. So everything here is asked of any server.
 *
 * Threads: safe. Ownership: answers live in the arena given.
 */
#ifndef HEARTH_STORE_BACKGROUND_H
#define HEARTH_STORE_BACKGROUND_H

#include "hearth/model/maintenance.h"
#include "hearth/store/store.h"

/* ---- state ---- */

HEARTH_MUST_CHECK
enum hearth_status hearth_store_background_state(struct hearth_store *store,
                                                 struct hearth_arena *arena,
                                                 struct hearth_background_state *ret,
                                                 struct hearth_err *err);

/*
 * Throw away the blocks of a service (0: of all services of the tenant) from the day of from_ns on, and build them again
 * from the profiles. Queries read the profiles meanwhile, with the same answers. Only as far back as
 * profiles reach. FAILED_PRECONDITION when from_ns lies before that; NOT_FOUND for no such service.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_rebuild(struct hearth_store *store, struct hearth_str tenant,
                                        int32_t service_id, int64_t from_ns,
                                        struct hearth_err *err);

/* ---- retention ---- */

/* The tenant's, with the server's where it has none of its own. From memory (settings.h). */
void hearth_store_retention(struct hearth_store *store, struct hearth_str tenant,
                            struct hearth_retention *ret);
/* name: retain-raw, retain-10m, retain-1h, retain-1d. value_ns < 0: the server's again. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_retention_set(struct hearth_store *store, struct hearth_str tenant,
                                              struct hearth_str name, int64_t value_ns,
                                              struct hearth_err *err);

/* ---- deletion ---- */

/*
 * Hide the profiles of these series (of one tenant; by (service_id, series_id), columns do not matter)
 * with from_ns <= ts <= to_ns, at once and in all servers, in one transaction; the builder removes them. What is pushed into
 * the range before it has is removed as well. Hours that lie within the range vanish from
 * label queries; series and label pairs that are left without any are removed.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_erase(struct hearth_store *store, struct hearth_str tenant,
                                      const struct hearth_series_hit *hits, size_t n_hits,
                                      struct hearth_str selector, /* for the log */
                                      struct hearth_str requested_by, int64_t from_ns,
                                      int64_t to_ns, int64_t *ret_erasure_id,
                                      struct hearth_err *err);

/* The latest 1,000 of the tenant, newest first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_erasures(struct hearth_store *store, struct hearth_str tenant,
                                         struct hearth_arena *arena, struct hearth_erasure **ret,
                                         size_t *ret_n, struct hearth_err *err);

/* ---- doctor ---- */

/* Look at the database as it is now. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_doctor(struct hearth_store *store, struct hearth_arena *arena,
                                       struct hearth_check **ret, size_t *ret_n,
                                       struct hearth_err *err);

#endif
