/*
 * policies.h -- when agents start profiling by themselves: policies, what agents are told of them and report, and
 * what is known of the past.
 *
 * A policy is one of a service: targets (what starts), each with items (what it starts on), any of which is enough.
 * Setting replaces all of it. Agents ask with the uuid of what they have and are told what differs. A policy that is
 * observing is told them with thresholds that cannot be reached: then they report its metrics, and start nothing.
 *
 * What triggered is a task of the origin HEARTH_TASK_BY_POLICY; counts are of the last HEARTH_POLICY_WINDOW_MS.
 *
 * The call says tenant, cancel, arena, and where there is a range, that.
 * Ownership: answers live in the call's arena. Threads: safe.
 * Errors:    of the store, and what each function says.
 * Source:    docs/reference/skywalking.md, docs/reference/monitors.md.
 */
#ifndef HEARTH_ENGINE_POLICIES_H
#define HEARTH_ENGINE_POLICIES_H

#include "hearth/engine/query.h"
#include "hearth/model/agent.h"
#include "hearth/model/policy.h"
#include "hearth/model/task.h"

#define HEARTH_POLICY_WINDOW_MS (INT64_C(48) * 3600 * 1000)
/* A report within it, of the same process and target, is one whose answer was lost: agents report no sooner. */
#define HEARTH_POLICY_REPEAT_MS 60000

/* ---- what a policy says (policy_check.c): pure ---- */

/* INVALID_ARGUMENT says which item of which target, and what of it. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policy_check(const struct hearth_policy *policy,
                                       const struct hearth_limits *limits, struct hearth_err *err);
/* Put targets and items in order, and fill in json and uuid, which depend on nothing but targets and is_observing. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policy_finish(struct hearth_policy *policy, struct hearth_arena *arena,
                                        struct hearth_err *err);

/* What an agent is told of a service. policy NULL: that it has none any more. */
struct hearth_policy_entry {
    struct hearth_str service;
    const struct hearth_policy *policy;
};

/* The argument ServiceWithPolicyJSON of the command. */
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
    struct hearth_policy_status *status; /* of each of its targets */
    size_t n_status;
};

struct hearth_policy_change {
    struct hearth_policy policy; /* service, targets, modified_by, is_observing */
    int64_t expected_version;    /* -1: any */
    bool validate_only;
};

/*
 * INVALID_ARGUMENT as hearth_policy_check; ABORTED. *ret_policy is what is stored, or would be; warnings are for
 * people.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_set(const struct hearth_call *call,
                                       struct hearth_policy_change *change,
                                       struct hearth_policy *ret_policy,
                                       struct hearth_str **ret_warnings, size_t *ret_n_warnings,
                                       struct hearth_err *err);
/* NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_get(const struct hearth_call *call, struct hearth_str service,
                                       struct hearth_policy_state *ret, struct hearth_err *err);
/* By service. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_list(const struct hearth_call *call,
                                        struct hearth_policy_state **ret, size_t *ret_n,
                                        struct hearth_err *err);
/* NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_delete(const struct hearth_call *call, struct hearth_str service,
                                          struct hearth_str modified_by, struct hearth_err *err);
/* The latest first; empty for a service that never had one. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_history(const struct hearth_call *call,
                                           struct hearth_str service, struct hearth_policy **ret,
                                           size_t *ret_n, struct hearth_err *err);

/* ---- who is watched (policy_monitored.c) ---- */

struct hearth_monitored_process {
    struct hearth_process process;
    int32_t n_triggered;
    int64_t last_triggered_ms, silent_until_ms; /* 0: never; not silent */
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

/* Of the processes that were seen within the window, whether or not there is a policy. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_monitored(const struct hearth_call *call,
                                             struct hearth_str service,
                                             enum hearth_policy_kind kind,
                                             struct hearth_monitored_instance **ret, size_t *ret_n,
                                             struct hearth_err *err);

/* ---- agents (policy_agents.c) ---- */

struct hearth_policy_query {
    struct hearth_str service, uuid; /* uuid: of what the agent has; empty: nothing */
};

/* Append what the agents' policies differ in, as hearth_policy_write_entries; nothing when they do not. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_for_agent(const struct hearth_call *call,
                                             const struct hearth_policy_query *asked, size_t n,
                                             struct hearth_buf *out, struct hearth_err *err);

struct hearth_policy_cause {
    enum hearth_monitor monitor;
    struct hearth_str uri_regex, uri_path;
    double threshold, current;
};

/* An agent is about to profile, as a policy says. */
struct hearth_policy_report {
    enum hearth_policy_kind kind;
    struct hearth_str layer, service, instance, process;
    int32_t duration_seconds;
    struct hearth_policy_cause *causes;
    size_t n_causes;
    struct hearth_str *uri_regexes; /* network: what is sampled */
    size_t n_uri_regexes;
};

/* Its task, which is stored. INVALID_ARGUMENT: names, duration, causes that no agent would send. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_report(const struct hearth_call *call,
                                          const struct hearth_policy_report *report,
                                          struct hearth_str *ret_task_id, struct hearth_err *err);

/* ---- metrics (monitors.c; meters.h has their intake) ---- */

/*
 * Lines of the query's range (0, 0: the last hour), by instance, process, monitor, URI. step_seconds > 0: means of
 * steps, at their beginning.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_monitors_series(const struct hearth_query *query,
                                          const struct hearth_monitor_filter *filter,
                                          int32_t step_seconds, struct hearth_monitor_line **ret,
                                          size_t *ret_n, struct hearth_err *err);

/* ---- dry run (policy_dry_run.c) ---- */

struct hearth_dry_run {
    struct hearth_policy_trigger *triggers;
    size_t n_triggers;
    int64_t resolution_ms;
    struct hearth_str *notes;
    size_t n_notes;
};

/* What the policy would have triggered on within the range (0, 0: the last hour). INVALID_ARGUMENT as the check. */
HEARTH_MUST_CHECK
enum hearth_status hearth_policies_dry_run(const struct hearth_query *query,
                                           const struct hearth_policy *policy,
                                           struct hearth_dry_run *ret, struct hearth_err *err);

#endif
