/*
 * background.h -- background work as operators see it: its state, rebuilding, retention, deletion
 * and checks.
 *
 * Every server runs a builder thread. The builder that holds the lease works, the others wait for
 * the lease to expire. All functions here work on any server.
 *
 * Threads: safe. Ownership: texts of requests are borrowed; results are in the given arena.
 * Errors: UNAVAILABLE while the store is not ready or the database is away.
 */
#ifndef HEARTH_STORE_BACKGROUND_H
#define HEARTH_STORE_BACKGROUND_H

#include "hearth/model/maintenance.h"
#include "hearth/model/node_layout.h"
#include "hearth/store/store.h"

/* ---- state ---- */

/* Read the state of the background work: of all servers, from the database. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_background_state(struct hearth_store *store,
                                                 struct hearth_arena *arena,
                                                 struct hearth_background_state *ret,
                                                 struct hearth_err *err);

/*
 * Delete the blocks of a service (0: of all services of the tenant) from the day of from_ns on; the
 * builder builds them again from the profiles. Meanwhile queries read the profiles and give the
 * same answers. NOT_FOUND: the service does not exist. FAILED_PRECONDITION: the first of these days
 * that has blocks, of any service, begins before the oldest profiles, so its blocks could not be
 * built again.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_rebuild(struct hearth_store *store, struct hearth_str tenant,
                                        int32_t service_id, int64_t from_ns,
                                        struct hearth_err *err);

/* ---- retention ---- */

/*
 * Return the retention of a tenant: its settings, and the server's options where it has none. Reads
 * memory only (settings.h).
 */
void hearth_store_retention(struct hearth_store *store, struct hearth_str tenant,
                            struct hearth_retention *ret);

/*
 * Change one setting of a tenant. name: retain-raw, retain-10m, retain-1h or retain-1d. value_ns:
 * 0: forever; below 0: the server's option applies again. INVALID_ARGUMENT: there is no such name.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_retention_set(struct hearth_store *store, struct hearth_str tenant,
                                              struct hearth_str name, int64_t value_ns,
                                              struct hearth_err *err);

/* ---- deletion ---- */

/* What to delete, borrowed during the call. */
struct hearth_erase_request {
    const struct hearth_series_hit *hits; /* of one tenant, in any order; columns are ignored */
    size_t n_hits;
    int64_t from_ns, to_ns;                          /* both included */
    struct hearth_str selector, requested_by;        /* texts for the log */
    const struct hearth_index_texts *whole_services; /* files of others must stay; NULL: none */
};

/*
 * Hide the profiles of these series with from_ns <= ts <= to_ns, at once and in all servers, in one
 * transaction; the builder removes them. Profiles that are pushed into the range before the builder
 * has finished are removed as well. Hours that lie within the range vanish from label queries;
 * series and label pairs that have no hour left are removed. INVALID_ARGUMENT: from_ns lies after
 * to_ns. NOT_FOUND: the tenant does not exist. PERMISSION_DENIED: files of services beyond
 * whole_services would be removed with the series.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_erase(struct hearth_store *store, struct hearth_str tenant,
                                      const struct hearth_erase_request *request,
                                      int64_t *ret_erasure_id, struct hearth_err *err);

/* Return the tenant's latest 1,000 deletions, newest first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_erasures(struct hearth_store *store, struct hearth_str tenant,
                                         struct hearth_arena *arena, struct hearth_erasure **ret,
                                         size_t *ret_n, struct hearth_err *err);

/* ---- doctor ---- */

/* Check the present state of the database and of the background work. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_doctor(struct hearth_store *store, struct hearth_arena *arena,
                                       struct hearth_check **ret, size_t *ret_n,
                                       struct hearth_err *err);

/* ---- nodes ---- */

/*
 * Read where the data tables lie, and what the nodes of Citus say. Works while tables are not
 * distributed, or the database lacks the extension. A node that does not answer is no failure.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_node_layout(struct hearth_store *store, struct hearth_arena *arena,
                                            struct hearth_node_layout *ret, struct hearth_err *err);

#endif
