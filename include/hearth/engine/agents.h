/*
 * agents.h -- instances and processes: checking and storing the reports of agents, and reading the
 * stored ones.
 *
 * Ownership: inputs are borrowed, answers live in the call's arena.
 * Threads:   safe; one request runs on one thread.
 * Errors:    INVALID_ARGUMENT names the element and field ("processes[3].entity.serviceName");
 *            RESOURCE_EXHAUSTED names the limit: max-agent-instances, max-agent-processes (of a
 *            tenant; reports about instances and processes that are already stored are merged),
 *            max-agent-labels, max-agent-property-bytes (nothing is stored then); UNAVAILABLE,
 *            CANCELLED, NO_MEMORY.
 */
#ifndef HEARTH_ENGINE_AGENTS_H
#define HEARTH_ENGINE_AGENTS_H

#include "hearth/engine/call.h"
#include "hearth/model/agent.h"

/* The property by which an agent declares that it can profile the process. */
#define HEARTH_PROPERTY_CAN_PROFILE "support_ebpf_profiling"

/*
 * One element of a report, as received. For an instance, process.name and labels are ignored, and
 * an empty `layer` becomes GENERAL.
 */
struct hearth_reported {
    struct hearth_process process; /* the engine sets can_be_profiled and the times */
    const char *path;              /* path of its entity, for error messages */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_agents_report_instance(const struct hearth_call *call,
                                                 const struct hearth_reported *instance,
                                                 struct hearth_err *err);
/* Store the processes, all or none; if a limit of the tenant is reached, those within it. */
HEARTH_MUST_CHECK
enum hearth_status hearth_agents_report_processes(const struct hearth_call *call,
                                                  const struct hearth_reported *reported, size_t n,
                                                  struct hearth_err *err);

/* ---- reading ---- */

/* Services, sorted by name. */
HEARTH_MUST_CHECK
enum hearth_status hearth_agents_services(const struct hearth_call *call, int64_t seen_after_ms,
                                          struct hearth_reported_service **ret, size_t *ret_n,
                                          struct hearth_err *err);
/* Instances of a service, sorted by name. */
HEARTH_MUST_CHECK
enum hearth_status hearth_agents_instances(const struct hearth_call *call,
                                           struct hearth_str service, int64_t seen_after_ms,
                                           struct hearth_instance **ret, size_t *ret_n,
                                           struct hearth_err *err);
/* Processes, sorted by instance and name; the filter must name a service. */
HEARTH_MUST_CHECK
enum hearth_status hearth_agents_processes(const struct hearth_call *call,
                                           const struct hearth_process_filter *filter,
                                           struct hearth_process **ret, size_t *ret_n,
                                           struct hearth_err *err);
/* One process. NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_agents_process(const struct hearth_call *call,
                                         struct hearth_str process_id, struct hearth_process *ret,
                                         struct hearth_err *err);

#endif
