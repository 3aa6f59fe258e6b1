/*
 * services.h -- services by name, for what is not a profile but belongs to one (private to the store).
 *
 * Threads: safe, also between servers.
 */
#ifndef HEARTH_STORE_SERVICES_H
#define HEARTH_STORE_SERVICES_H

#include "pg/pg.h"

/*
 * True while anything but its series needs a service: an SQL condition on `e.service_id`. Each table that refers to
 * `service` stands here, or removing a service would fail.
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
    " EXISTS (SELECT FROM hearth_data.span_group x WHERE x.service_id = e.service_id) OR"      \
    " EXISTS (SELECT FROM hearth_data.task_segment x WHERE x.service_id = e.service_id) OR"    \
    " EXISTS (SELECT FROM hearth_data.task_snapshot x WHERE x.service_id = e.service_id) OR"   \
    " EXISTS (SELECT FROM hearth_data.network_sample x WHERE x.service_id = e.service_id) OR"  \
    " EXISTS (SELECT FROM hearth_data.network_request x WHERE x.service_id = e.service_id) OR" \
    " EXISTS (SELECT FROM hearth_data.captured_event x WHERE x.service_id = e.service_id))"

/*
 * Before services $1 are removed, in the same transaction: waits for those who are giving them something, and a
 * statement after it sees what they gave.
 */
#define HEARTH_SQL_LOCK_SERVICES                                                      \
    "SELECT FROM hearth_data.service WHERE service_id = ANY ($1) ORDER BY service_id" \
    " FOR UPDATE"

/* As the catalogue has it: services are found by it. */
static inline struct hearth_hash128 hearth_service_fingerprint(struct hearth_str name)
{
    return hearth_hash128(name.p, name.n, 0);
}

/* The tenant and its services exist; a transaction of its own under the clock's lock. Not within another. */
HEARTH_MUST_CHECK enum hearth_status
hearth_services_make(struct hearth_pg *pg, struct hearth_str tenant,
                     const struct hearth_str *services, size_t n, struct hearth_cancel *cancel,
                     enum hearth_pg_fault *ret_fault, struct hearth_err *err);

#endif
