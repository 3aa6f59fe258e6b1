/*
 * admin.h -- administration of a running database: deletion, retention, limits, rebuilding, and
 * state.
 *
 * Times are milliseconds, ranges include both ends. Selectors are texts (selector/selector.h). Any
 * server accepts any of these requests; the server that builds does the work.
 *
 * Ownership: answers live in the given arena.
 * Threads:   safe.
 * Errors:    INVALID_ARGUMENT for what the caller can correct; NOT_FOUND; FAILED_PRECONDITION;
 *            UNAVAILABLE, CANCELLED, DEADLINE_EXCEEDED, NO_MEMORY.
 */
#ifndef HEARTH_ENGINE_ADMIN_H
#define HEARTH_ENGINE_ADMIN_H

#include "hearth/engine/query.h"
#include "hearth/model/maintenance.h"
#include "hearth/model/node_layout.h"

struct hearth_admin;

HEARTH_MUST_CHECK
enum hearth_status hearth_admin_new(struct hearth_store *store, /* kept */
                                    struct hearth_admin **ret_admin, struct hearth_err *err);
void hearth_admin_free(struct hearth_admin *admin); /* NULL-safe */

/* ---- deletion ---- */

struct hearth_admin_erase {
    struct hearth_str selector; /* "{}" selects all data of the tenant; must not be empty */
    int64_t from_ms, to_ms;     /* included; 0 and INT64_MAX: all times */
    struct hearth_str requested_by;
    bool only_count; /* only count the matching series, delete nothing */
};

struct hearth_admin_erased {
    int64_t erasure_id; /* 0: nothing was deleted (no series, or only_count) */
    size_t n_series, n_services;
};

/*
 * Delete the profiles that the selector matches in the range. All servers hide them at once; the
 * builder removes them a few minutes later. A profile with several types is deleted as a whole, so
 * the selector must not name a profile type (INVALID_ARGUMENT). A range that ends within two
 * minutes of now is extended to the end of that hour, so that labels without remaining profiles
 * disappear at once; profiles pushed into the extended range before the builder has finished are
 * deleted too. A narrowed call deletes visible series only, and of these only the ones that are
 * visible with all their types.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_erase(const struct hearth_call *call,
                                      const struct hearth_admin_erase *what,
                                      struct hearth_admin_erased *ret, struct hearth_err *err);

/* The latest 1,000 deletions of the tenant, newest first; none for a narrowed call. */
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_erasures(const struct hearth_call *call,
                                         struct hearth_erasure **ret, size_t *ret_n,
                                         struct hearth_err *err);

/* ---- retention ---- */

/* The retention that applies to the tenant now. */
void hearth_admin_retention(struct hearth_admin *admin, struct hearth_str tenant,
                            struct hearth_retention *ret);
/*
 * Set one retention of the tenant. name: retain-raw, retain-10m, retain-1h or retain-1d. value_ns
 * 0: for ever; negative: the server's value applies again. PERMISSION_DENIED for a narrowed call.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_retention_set(const struct hearth_call *call,
                                              struct hearth_str name, int64_t value_ns,
                                              struct hearth_err *err);

/* ---- limits and settings of a tenant (admin_limits.c) ---- */

struct hearth_admin_limit {
    const struct hearth_limit *limit;
    int64_t value, server; /* value that applies, and value of the server */
    bool is_own;
};

/* All limits that can be set for a tenant, in the order of tenant_limits.def. */
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_limits(struct hearth_admin *admin,
                                       const struct hearth_limits *server, struct hearth_str tenant,
                                       struct hearth_arena *arena, struct hearth_admin_limit **ret,
                                       size_t *ret_n, struct hearth_err *err);

struct hearth_admin_limit_change {
    struct hearth_str name, value; /* value as in options; "default": the server's value again */
};

/*
 * Change limits, all or none; also of a tenant that has pushed nothing yet. Changes apply at once
 * on this server, on others within seconds. INVALID_ARGUMENT names the error. PERMISSION_DENIED for
 * a narrowed call.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_limits_set(const struct hearth_call *call,
                                           const struct hearth_admin_limit_change *changes,
                                           size_t n, struct hearth_err *err);
/* Change the setting "gauge-aggregation" likewise; HEARTH_GAUGES_UNSET deletes it. */
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_gauges_set(const struct hearth_call *call,
                                           enum hearth_gauge_aggregation aggregation,
                                           struct hearth_err *err);

/* ---- roll-ups ---- */

/*
 * Build the roll-ups again from the day of from_ms, for one service or, if the name is empty, for
 * all services of the tenant. Queries read the profiles meanwhile. PERMISSION_DENIED for a narrowed
 * call that does not see all of it.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_rebuild(const struct hearth_call *call,
                                        struct hearth_str service_name, int64_t from_ms,
                                        struct hearth_err *err);

/* ---- state ---- */

HEARTH_MUST_CHECK
enum hearth_status hearth_admin_state(struct hearth_admin *admin, struct hearth_arena *arena,
                                      struct hearth_background_state *ret, struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_doctor(struct hearth_admin *admin, struct hearth_arena *arena,
                                       struct hearth_check **ret, size_t *ret_n,
                                       struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_layout(struct hearth_admin *admin, struct hearth_arena *arena,
                                       struct hearth_node_layout *ret, struct hearth_err *err);

#endif
