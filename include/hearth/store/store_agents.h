/*
 * store_agents.h -- stores and reads reports of services, instances and processes (model/agent.h).
 *
 * Reports are merged: the latest last_seen_ms counts; properties are merged by name; labels are
 * replaced if the report has any, the agent's id if it is not empty, the detect type if it is not
 * UNDEFINED, "can be profiled" always.
 *
 * The layer of an instance is the one it reported; if it never reported, the layer of its first
 * process. A report that changes nothing may leave last_seen_ms as it is for 10 s.
 *
 * Names are at most HEARTH_AGENT_NAME_BYTES. Times are milliseconds since the epoch.
 *
 * Ownership: inputs are borrowed, answers live in scope->arena.
 * Threads:   safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, and the errors named at each function.
 */
#ifndef HEARTH_STORE_AGENTS_H
#define HEARTH_STORE_AGENTS_H

#include "hearth/model/agent.h"
#include "hearth/store/store.h"

/*
 * Limit of an entity's merged properties, as JSON: above it only the properties of the last report
 * are kept.
 */
#define HEARTH_AGENT_MERGED_BYTES 262144

/*
 * The id of a service of the tenant. make: create the service if it does not exist; otherwise
 * NOT_FOUND. arena: not used.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_service_id(const struct hearth_scope *scope,
                                           struct hearth_str service, bool make,
                                           int32_t *ret_service_id, struct hearth_err *err);
/*
 * The ids of n different services; missing ones are created, in one transaction. ret_ids: [n].
 * arena: not used.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_service_ids(const struct hearth_scope *scope,
                                            const struct hearth_str *services, size_t n,
                                            int32_t *ret_ids, struct hearth_err *err);

/* A report, and the limits of its tenant. */
struct hearth_agent_report {
    const struct hearth_instance *instances;
    size_t n_instances;
    const struct hearth_process *processes;
    size_t n_processes;
    int64_t max_instances, max_processes; /* 0: no limit */
};

/*
 * Store a report in one transaction: services, instances (those of the processes, too) and
 * processes are created or merged; if all are known and unchanged, it is one statement. The latest
 * last_seen_ms of the report counts for all of it. arena: not used.
 *
 * INVALID_ARGUMENT: a name is blank or too long, or a text is not UTF-8; nothing is stored.
 * RESOURCE_EXHAUSTED: the tenant would have more than max_instances or max_processes; new ones are
 * left out, known ones are merged.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_report_agents(const struct hearth_scope *scope,
                                              const struct hearth_agent_report *report,
                                              struct hearth_err *err);

/* Sorted by service, instance and name. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_processes(const struct hearth_scope *scope,
                                          const struct hearth_process_filter *filter,
                                          struct hearth_process **ret, size_t *ret_n,
                                          struct hearth_err *err);
/*
 * Instances seen at or after seen_after_ms, sorted by service and name. service empty: those of all
 * services.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_instances(const struct hearth_scope *scope,
                                          struct hearth_str service, int64_t seen_after_ms,
                                          struct hearth_instance **ret, size_t *ret_n,
                                          struct hearth_err *err);
/* Services with an instance seen at or after seen_after_ms, sorted by name. service empty: all. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_reported_services(const struct hearth_scope *scope,
                                                  struct hearth_str service, int64_t seen_after_ms,
                                                  struct hearth_reported_service **ret,
                                                  size_t *ret_n, struct hearth_err *err);

#endif
