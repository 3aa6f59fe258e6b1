/*
 * store_policies.h -- policies with their history, and the metrics they use (sql/0009_policies.sql;
 * model/policy.h).
 *
 * The engine decides what makes a policy valid, and what agents are told (engine/policies.h). Times
 * are milliseconds since the epoch.
 *
 * Ownership: inputs are borrowed, answers live in scope->arena.
 * Threads:   safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, and the errors named at each function.
 */
#ifndef HEARTH_STORE_POLICIES_H
#define HEARTH_STORE_POLICIES_H

#include "hearth/model/policy.h"
#include "hearth/store/store.h"

/*
 * Policies of the n_services services that have one, or all if n_services is 0; sorted by service.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_policies(const struct hearth_scope *scope,
                                         const struct hearth_str *services, size_t n_services,
                                         struct hearth_policy **ret, size_t *ret_n,
                                         struct hearth_err *err);

/*
 * Create or replace the service's policy; the service is created if it is new. policy->version is
 * set to the stored version, and modified_ms if the policy changes; nothing changes if the stored
 * policy has this uuid. Versions before the newest max_versions are deleted (0: all are kept).
 * ABORTED: expected_version >= 0, and the stored version is another (0: there is no policy). arena:
 * may be NULL.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_policy_put(const struct hearth_scope *scope,
                                           struct hearth_policy *policy, int64_t expected_version,
                                           int64_t max_versions, struct hearth_err *err);
/*
 * Delete the policy, with a new version that says so. NOT_FOUND: the service has no policy. arena:
 * may be NULL.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_policy_delete(const struct hearth_scope *scope,
                                              struct hearth_str service,
                                              struct hearth_str modified_by, int64_t max_versions,
                                              struct hearth_err *err);
/* The history of a policy, the latest version first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_policy_versions(const struct hearth_scope *scope,
                                                struct hearth_str service,
                                                struct hearth_policy **ret, size_t *ret_n,
                                                struct hearth_err *err);

/* ---- tasks that policies started ---- */

struct hearth_trigger_count {
    struct hearth_str service;
    struct hearth_str instance, process_id; /* empty unless by_process */
    int32_t kind;                           /* enum hearth_policy_kind */
    int32_t n;
    int64_t last_ms;
};

struct hearth_trigger_filter {
    struct hearth_str service; /* empty: all services */
    int64_t since_ms;          /* tasks that started at or after this time */
    bool by_process;           /* counts by instance and process, too */
};

/* Counts of tasks that policies started, by service and kind; sorted by service and instance. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_trigger_counts(const struct hearth_scope *scope,
                                               const struct hearth_trigger_filter *filter,
                                               struct hearth_trigger_count **ret, size_t *ret_n,
                                               struct hearth_err *err);

/* ---- metrics ---- */

/* Most values of a line within one minute; a report that finds as many is dropped. */
#define HEARTH_MONITOR_MAX_PER_MINUTE 600

struct hearth_monitor_point {
    struct hearth_str process;
    struct hearth_str uri; /* HTTP monitors only */
    enum hearth_monitor monitor;
    double value;
};

/* Values of one instance at one time. */
struct hearth_monitor_report {
    struct hearth_str service, instance;
    int64_t at_ms;
    const struct hearth_monitor_point *points; /* [n] */
    size_t n;
};

/*
 * Store the values. Concurrent calls share a transaction; if its outcome is lost it is repeated,
 * and the values may be stored twice. The service is created if it is new.
 * RESOURCE_EXHAUSTED: the service would have more than max_lines lines (0: no limit).
 * INVALID_ARGUMENT: at_ms is negative or too large. arena: not used.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_monitors_add(const struct hearth_scope *scope,
                                             const struct hearth_monitor_report *report,
                                             int64_t max_lines, struct hearth_err *err);

/*
 * Lines with at least one value, by instance, process, monitor and URI. RESOURCE_EXHAUSTED: more
 * than filter->max_values.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_monitor_lines(const struct hearth_scope *scope,
                                              const struct hearth_monitor_filter *filter,
                                              struct hearth_monitor_line **ret, size_t *ret_n,
                                              struct hearth_err *err);

#endif
