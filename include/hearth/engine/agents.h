/*
 * agents.h -- instances and processes: what agents report is checked against the limits and stored; what is known of
 * them is answered.
 *
 * Ownership: inputs are borrowed, answers live in the call's arena.
 * Threads:   safe; one request is one thread.
 * Errors:    INVALID_ARGUMENT names the element and field ("processes[3].entity.serviceName"); RESOURCE_EXHAUSTED names the
 *            limit: max-agent-instances, max-agent-processes (of a tenant; what it has already is merged),
 *            max-agent-labels, max-agent-property-bytes (then nothing is stored); UNAVAILABLE, CANCELLED, NO_MEMORY.
 */
#ifndef HEARTH_ENGINE_AGENTS_H
#define HEARTH_ENGINE_AGENTS_H

#include "hearth/engine/call.h"
#include "hearth/model/agent.h"

/* The property by which an agent says that it can profile the process. */
#define HEARTH_PROPERTY_CAN_PROFILE "support_ebpf_profiling"

/*
 * One element of a report, as it came. An instance: process.name and labels are not looked at, and `layer` empty
 * becomes GENERAL.
 */
struct hearth_reported {
    struct hearth_process process; /* can_be_profiled and times are set by the engine */
    const char *path;              /* of its entity, for messages: "processes[3].entity." */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_agents_report_instance(const struct hearth_call *call,
                                                 const struct hearth_reported *instance,
                                                 struct hearth_err *err);
/* All or, unless a limit of the tenant is reached, none. */
HEARTH_MUST_CHECK
enum hearth_status hearth_agents_report_processes(const struct hearth_call *call,
                                                  const struct hearth_reported *reported, size_t n,
                                                  struct hearth_err *err);

/* ---- what is known ---- */

/* By name. */
HEARTH_MUST_CHECK
enum hearth_status hearth_agents_services(const struct hearth_call *call, int64_t seen_after_ms,
                                          struct hearth_reported_service **ret, size_t *ret_n,
                                          struct hearth_err *err);
/* By name; of a service. */
HEARTH_MUST_CHECK
enum hearth_status hearth_agents_instances(const struct hearth_call *call,
                                           struct hearth_str service, int64_t seen_after_ms,
                                           struct hearth_instance **ret, size_t *ret_n,
                                           struct hearth_err *err);
/* By instance and name; the filter names a service. */
HEARTH_MUST_CHECK
enum hearth_status hearth_agents_processes(const struct hearth_call *call,
                                           const struct hearth_process_filter *filter,
                                           struct hearth_process **ret, size_t *ret_n,
                                           struct hearth_err *err);
/* NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_agents_process(const struct hearth_call *call,
                                         struct hearth_str process_id, struct hearth_process *ret,
                                         struct hearth_err *err);

#endif
