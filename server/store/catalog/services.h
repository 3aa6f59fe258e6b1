/*
 * services.h -- services by name, for rows other than profiles that belong to a service (private to
 * the store).
 *
 * Threads: safe, also between servers.
 */
#ifndef HEARTH_STORE_SERVICES_H
#define HEARTH_STORE_SERVICES_H

#include "pg/pg.h"

struct hearth_store;

/*
 * An SQL condition on `e.service_id`: true while rows of the catalogue other than series refer to
 * the service. It lists each table that refers to `service`: otherwise the deletion of a service
 * would fail. Spans are data: hearth_services_without_spans.
 */
#define HEARTH_SERVICE_IS_NEEDED                                                               \
    "(EXISTS (SELECT FROM hearth_data.instance x WHERE x.service_id = e.service_id) OR"        \
    " EXISTS (SELECT FROM hearth_data.process x WHERE x.service_id = e.service_id) OR"         \
    " EXISTS (SELECT FROM hearth_data.task x WHERE x.service_id = e.service_id) OR"            \
    " EXISTS (SELECT FROM hearth_data.policy x WHERE x.service_id = e.service_id) OR"          \
    " EXISTS (SELECT FROM hearth_data.monitor_line x WHERE x.service_id = e.service_id) OR"    \
    " EXISTS (SELECT FROM hearth_data.agent_poll x WHERE x.service_id = e.service_id) OR"      \
    " EXISTS (SELECT FROM hearth_data.task_schedule x WHERE x.service_id = e.service_id) OR"   \
    " EXISTS (SELECT FROM hearth_data.task_upload x WHERE x.service_id = e.service_id) OR"     \
    " EXISTS (SELECT FROM hearth_data.task_segment x WHERE x.service_id = e.service_id) OR"    \
    " EXISTS (SELECT FROM hearth_data.task_snapshot x WHERE x.service_id = e.service_id) OR"   \
    " EXISTS (SELECT FROM hearth_data.network_sample x WHERE x.service_id = e.service_id) OR"  \
    " EXISTS (SELECT FROM hearth_data.network_request x WHERE x.service_id = e.service_id) OR" \
    " EXISTS (SELECT FROM hearth_data.captured_event x WHERE x.service_id = e.service_id))"

/*
 * Lock services $1, before they are deleted in the same transaction. It waits for transactions that
 * are adding rows which refer to them; the next statement sees these rows.
 */
#define HEARTH_SQL_LOCK_SERVICES                                                      \
    "SELECT FROM hearth_data.service WHERE service_id = ANY ($1) ORDER BY service_id" \
    " FOR UPDATE"

/*
 * Return those of n services that have no spans, in the arena. Nobody adds spans to services that
 * the transaction has locked by HEARTH_SQL_LOCK_SERVICES. ret_fault may be NULL.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_services_without_spans(struct hearth_pg *pg, const int32_t *service_ids, size_t n,
                              struct hearth_arena *arena, int32_t **ret, size_t *ret_n,
                              enum hearth_pg_fault *ret_fault, struct hearth_err *err);

/* The fingerprint by which the catalogue finds a service of a tenant. */
static inline struct hearth_hash128 hearth_service_fingerprint(struct hearth_str name)
{
    return hearth_hash128(name.p, name.n, 0);
}

/*
 * Create the tenant and the services that do not exist, in a transaction of its own that holds the
 * clock's lock. The connection has no open transaction. `cancel` may be NULL. RESOURCE_EXHAUSTED,
 * and nothing is created, if the tenant would have more services than max-services.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_services_make(struct hearth_store *store, struct hearth_pg *pg, struct hearth_str tenant,
                     const struct hearth_str *services, size_t n, struct hearth_cancel *cancel,
                     enum hearth_pg_fault *ret_fault, struct hearth_err *err);

/* Set the error of a tenant with n_old services, and return RESOURCE_EXHAUSTED. */
enum hearth_status hearth_services_refuse(int64_t n_old, int64_t n_new, int64_t limit,
                                          struct hearth_err *err);

#endif
