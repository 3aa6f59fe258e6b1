/*
 * store_agents.h -- services, instances and processes as agents report them.
 *
 * Reports merge: the last ping counts, properties are merged by key, labels are replaced when there are any, an
 * agent's id when it is not blank, the detect type when it is not UNDEFINED, "can be profiled" always.
 *
 * The layer of an instance is what it says itself; of one that only its processes name, what the first of them said.
 * A report that changes nothing within 10 s of the last may leave last_seen_ms as it is.
 *
 * Names are at most HEARTH_AGENT_NAME_BYTES. Times are milliseconds since the epoch.
 *
 * Ownership: inputs are borrowed, answers live in the arena given. Threads: safe.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, INVALID_ARGUMENT (names, texts that are not UTF-8),
 *            RESOURCE_EXHAUSTED (max_instances, max_processes of a tenant, named: what is new is left out, what is
 *            known is merged), and what each function says.
 */
#ifndef HEARTH_STORE_AGENTS_H
#define HEARTH_STORE_AGENTS_H

#include "hearth/model/agent.h"
#include "hearth/store/store.h"

#define HEARTH_AGENT_MERGED_BYTES \
    262144 /* of properties, as JSON: beyond, only those of the last report stay */

/* The id of a service of the tenant. `make`: it becomes one when it is not; else NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_service_id(const struct hearth_scope *scope,
                                           struct hearth_str service, bool make,
                                           int32_t *ret_service_id, struct hearth_err *err);
/* Of n different ones, which become services where they are none, in one transaction. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_service_ids(const struct hearth_scope *scope,
                                            const struct hearth_str *services, size_t n,
                                            int32_t *ret_ids, struct hearth_err *err);

/*
 * One transaction: services, instances (those of the processes too) and processes are made or merged. One statement
 * where all are known and as they are said to be. The latest last_seen_ms counts, for all.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_report_agents(const struct hearth_scope *scope,
                                              const struct hearth_instance *instances,
                                              size_t n_instances,
                                              const struct hearth_process *processes,
                                              size_t n_processes,
                                              int64_t max_instances, /* 0: no limit */
                                              int64_t max_processes, struct hearth_err *err);

/* By service, instance and name. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_processes(const struct hearth_scope *scope,
                                          const struct hearth_process_filter *filter,
                                          struct hearth_process **ret, size_t *ret_n,
                                          struct hearth_err *err);
/* By name; service empty: of all. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_instances(const struct hearth_scope *scope,
                                          struct hearth_str service, int64_t seen_after_ms,
                                          struct hearth_instance **ret, size_t *ret_n,
                                          struct hearth_err *err);
/* By name; service empty: all. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_reported_services(const struct hearth_scope *scope,
                                                  struct hearth_str service, int64_t seen_after_ms,
                                                  struct hearth_reported_service **ret,
                                                  size_t *ret_n, struct hearth_err *err);

#endif
