/*
 * store_policies.h -- policies with their history, and the metrics that they are about (sql/0009_policies.sql).
 *
 * What makes a policy valid, and what agents are told, is the engine's (engine/policies.h). Times are milliseconds
 * since the epoch.
 *
 * Ownership: inputs are borrowed, answers live in the arena given. Threads: safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, and what each function says.
 */
#ifndef HEARTH_STORE_POLICIES_H
#define HEARTH_STORE_POLICIES_H

#include "hearth/model/policy.h"
#include "hearth/store/store.h"

/* By service; those of `services` that have one, or all when there is none. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_policies(const struct hearth_scope *scope,
                                         const struct hearth_str *services, size_t n_services,
                                         struct hearth_policy **ret, size_t *ret_n,
                                         struct hearth_err *err);

/*
 * Replace the service's policy; the service is made when it is not. policy->version and modified_ms are set to what
 * is stored; nothing is changed when it has this uuid already. ABORTED: expected_version >= 0, and another one is
 * stored (0: none is). Versions before the newest max_versions (0: all are kept) are forgotten.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_policy_put(const struct hearth_scope *scope,
                                           struct hearth_policy *policy, int64_t expected_version,
                                           int64_t max_versions, struct hearth_err *err);
/* NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_policy_delete(const struct hearth_scope *scope,
                                              struct hearth_str service,
                                              struct hearth_str modified_by, int64_t max_versions,
                                              struct hearth_err *err);
/* The latest first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_policy_versions(const struct hearth_scope *scope,
                                                struct hearth_str service,
                                                struct hearth_policy **ret, size_t *ret_n,
                                                struct hearth_err *err);

/* ---- what they started ---- */

struct hearth_trigger_count {
    struct hearth_str service, instance, process_id; /* the last two where they are asked for */
    int32_t kind;                                    /* enum hearth_policy_kind */
    int32_t n;
    int64_t last_ms;
};

/* Tasks that policies started at or after since_ms; of all services when `service` is empty, by process on demand. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_trigger_counts(const struct hearth_scope *scope,
                                               struct hearth_str service, int64_t since_ms,
                                               bool by_process, struct hearth_trigger_count **ret,
                                               size_t *ret_n, struct hearth_err *err);

/* ---- metrics ---- */

/* Values of a line within one minute; more are not kept. */
#define HEARTH_MONITOR_MAX_PER_MINUTE 600

struct hearth_monitor_point {
    struct hearth_str process, uri; /* uri: HTTP monitors */
    enum hearth_monitor monitor;
    double value;
};

/*
 * Keep n values of one instance at one time. Those who wait at the same time share a transaction; when its outcome
 * was lost it is made again, and may then have counted twice. RESOURCE_EXHAUSTED: the service has max_lines lines
 * (0: no limit) and would need more.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_monitors_add(const struct hearth_scope *scope,
                                             struct hearth_str service, struct hearth_str instance,
                                             int64_t at_ms,
                                             const struct hearth_monitor_point *points, size_t n,
                                             int64_t max_lines, struct hearth_err *err);

/* By instance, process, monitor, URI. RESOURCE_EXHAUSTED beyond max_values. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_monitor_lines(const struct hearth_scope *scope,
                                              const struct hearth_monitor_filter *filter,
                                              struct hearth_monitor_line **ret, size_t *ret_n,
                                              struct hearth_err *err);

#endif
