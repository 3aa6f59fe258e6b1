/*
 * policies.h -- policies: when agents start profiling by themselves, what agents fetch and report,
 * and their stored metrics.
 *
 * Each service has at most one policy: targets (what starts), each with items (thresholds), any of
 * which is enough to start it. Setting a policy replaces the whole policy. Agents send the uuid of
 * the policy they have and receive the differences. The policy of an observing service is sent with
 * thresholds that cannot be reached: agents then report its metrics and start nothing.
 *
 * A triggered task has the origin HEARTH_TASK_BY_POLICY; counts cover the last
 * HEARTH_POLICY_WINDOW_MS.
 *
 * The call gives tenant, cancel and arena; a query also gives the range.
 *
 * Ownership: answers live in the call's arena. Threads: safe.
 * Errors:    those of the store, and those named with each function.
 * Source:    docs/reference/skywalking.md, docs/reference/monitors.md.
 */
#ifndef HEARTH_ENGINE_POLICIES_H
#define HEARTH_ENGINE_POLICIES_H

#include "hearth/engine/query.h"
#include "hearth/model/agent.h"
#include "hearth/model/policy.h"
#include "hearth/model/task.h"

#define HEARTH_POLICY_WINDOW_MS (INT64_C(48) * 3600 * 1000)
/*
 * A repeated report of the same process and target within this time is a retry after a lost answer:
 * agents report no sooner.
 */
#define HEARTH_POLICY_REPEAT_MS 60000

/* ---- contents of a policy (policy_check.c): pure ---- */

/* Check a policy. INVALID_ARGUMENT names the target, the item and the error. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policy_check(const struct hearth_policy *policy,
                                       const struct hearth_limits *limits, struct hearth_err *err);
/* Sort targets and items, and set json and uuid, which depend only on targets and is_observing. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policy_finish(struct hearth_policy *policy, struct hearth_arena *arena,
                                        struct hearth_err *err);

/* The policy of a service, for an agent. policy NULL: the service has no policy any more. */
struct hearth_policy_entry {
    struct hearth_str service;
    const struct hearth_policy *policy;
};

/* Append the argument ServiceWithPolicyJSON of the command. */
void hearth_policy_write_entries(const struct hearth_policy_entry *entries, size_t n,
                                 struct hearth_buf *out);

/* ---- management (policies.c) ---- */

struct hearth_policy_status {
    enum hearth_policy_kind kind;
    int32_t n_triggered;
    int64_t last_triggered_ms; /* 0: never */
};

struct hearth_policy_state {
    struct hearth_policy policy;
    struct hearth_policy_status *status; /* one for each of its targets */
    size_t n_status;
};

struct hearth_policy_change {
    struct hearth_policy policy; /* service, targets, modified_by, is_observing */
    int64_t expected_version;    /* -1: any */
    bool validate_only;
};

/*
 * Store a policy. *ret_policy is the stored policy, or with validate_only the policy that would be
 * stored; warnings are sentences for people. INVALID_ARGUMENT as of hearth_policy_check; ABORTED:
 * the stored version is not expected_version.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_set(const struct hearth_call *call,
                                       struct hearth_policy_change *change,
                                       struct hearth_policy *ret_policy,
                                       struct hearth_str **ret_warnings, size_t *ret_n_warnings,
                                       struct hearth_err *err);
/* The policy of a service. NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_get(const struct hearth_call *call, struct hearth_str service,
                                       struct hearth_policy_state *ret, struct hearth_err *err);
/* All policies of the tenant, sorted by service. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_list(const struct hearth_call *call,
                                        struct hearth_policy_state **ret, size_t *ret_n,
                                        struct hearth_err *err);
/* Delete the policy of a service. NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_delete(const struct hearth_call *call, struct hearth_str service,
                                          struct hearth_str modified_by, struct hearth_err *err);
/* All versions of a service's policy, newest first; empty if the service never had a policy. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_history(const struct hearth_call *call,
                                           struct hearth_str service, struct hearth_policy **ret,
                                           size_t *ret_n, struct hearth_err *err);

/* ---- monitored processes (policy_monitored.c) ---- */

struct hearth_monitored_process {
    struct hearth_process process;
    int32_t n_triggered;
    int64_t last_triggered_ms, silent_until_ms; /* 0: never triggered; not silent */
};

struct hearth_monitored_instance {
    struct hearth_str name;
    struct hearth_property *properties;
    size_t n_properties;
    int32_t n_triggered;
    int64_t last_triggered_ms;
    struct hearth_monitored_process *processes;
    size_t n_processes;
};

/* The processes of a service that were seen within the window, with or without a policy. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_monitored(const struct hearth_call *call,
                                             struct hearth_str service,
                                             enum hearth_policy_kind kind,
                                             struct hearth_monitored_instance **ret, size_t *ret_n,
                                             struct hearth_err *err);

/* ---- agents (policy_agents.c) ---- */

struct hearth_policy_query {
    struct hearth_str service, uuid; /* uuid: version that the agent has; empty: none */
};

/*
 * Append the policies that differ from the agent's versions, as hearth_policy_write_entries does;
 * append nothing if all are equal.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_for_agent(const struct hearth_call *call,
                                             const struct hearth_policy_query *asked, size_t n,
                                             struct hearth_buf *out, struct hearth_err *err);

struct hearth_policy_cause {
    enum hearth_monitor monitor;
    struct hearth_str uri_regex, uri_path;
    double threshold, current;
};

/* An agent's report that a policy made it start profiling. */
struct hearth_policy_report {
    enum hearth_policy_kind kind;
    struct hearth_str layer, service, instance, process;
    int32_t duration_seconds;
    struct hearth_policy_cause *causes;
    size_t n_causes;
    struct hearth_str *uri_regexes; /* network targets: expressions of the sampled URIs */
    size_t n_uri_regexes;
};

/*
 * Store the task of a report. INVALID_ARGUMENT: names, a duration or causes that no agent would
 * send.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_report(const struct hearth_call *call,
                                          const struct hearth_policy_report *report,
                                          struct hearth_str *ret_task_id, struct hearth_err *err);

/* ---- metrics (monitors.c; meters.h has their intake) ---- */

/* The same numbers as MonitorStepValue. */
enum hearth_monitor_step_value {
    HEARTH_MONITOR_STEP_MEAN,
    HEARTH_MONITOR_STEP_LOWEST,
    HEARTH_MONITOR_STEP_HIGHEST,
    HEARTH_MONITOR_STEP_END,
};

struct hearth_monitor_steps {
    int32_t seconds; /* 0: every value */
    enum hearth_monitor_step_value value;
};

/*
 * Lines of the query's range (0, 0: the last hour), sorted by instance, process, monitor and URI.
 * steps.seconds > 0: one value of each step that has any, at the beginning of the step.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_monitors_series(const struct hearth_query *query,
                                          const struct hearth_monitor_filter *filter,
                                          struct hearth_monitor_steps steps,
                                          struct hearth_monitor_line **ret, size_t *ret_n,
                                          struct hearth_err *err);

/* ---- dry run (policy_dry_run.c) ---- */

struct hearth_dry_run {
    struct hearth_policy_trigger *triggers;
    size_t n_triggers;
    int64_t resolution_ms;
    struct hearth_str *notes;
    size_t n_notes;
};

/*
 * The triggers that the policy would have had within the range (0, 0: the last hour).
 * INVALID_ARGUMENT as of hearth_policy_check.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_dry_run(const struct hearth_query *query,
                                           const struct hearth_policy *policy,
                                           struct hearth_dry_run *ret, struct hearth_err *err);

#endif
