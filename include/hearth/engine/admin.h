/*
 * admin.h -- what people do to a running database: delete, say how long things are kept, rebuild,
 * look at it.
 *
 * Times are milliseconds, ranges include both ends. Selectors are texts (query/selector.h).
 * Everything can be asked of any server: the one that builds does the work.
 *
 * Ownership: answers live in the arena given.
 * Threads:   safe.
 * Errors:    INVALID_ARGUMENT for what the caller can mend; NOT_FOUND; FAILED_PRECONDITION;
 *            UNAVAILABLE, CANCELLED, DEADLINE_EXCEEDED, NO_MEMORY.
 */
#ifndef HEARTH_ENGINE_ADMIN_H
#define HEARTH_ENGINE_ADMIN_H

#include "hearth/engine/query.h"
#include "hearth/model/maintenance.h"

struct hearth_admin;

HEARTH_MUST_CHECK
enum hearth_status hearth_admin_new(struct hearth_store *store, /* kept */
                                    struct hearth_admin **ret_admin, struct hearth_err *err);
void hearth_admin_free(struct hearth_admin *admin); /* NULL-safe */

/* ---- deletion ---- */

struct hearth_admin_erase {
    struct hearth_str tenant;
    struct hearth_str selector; /* "{}" is everything the tenant has; must not be empty */
    int64_t from_ms, to_ms;     /* included; 0 and INT64_MAX: all times */
    struct hearth_str requested_by;
    bool only_count; /* say what would go, delete nothing */
};

struct hearth_admin_erased {
    int64_t erasure_id; /* 0: nothing was deleted (no series, or only_count) */
    size_t n_series, n_services;
};

/*
 * Delete the profiles that the selector takes in the range: hidden at once in all servers, removed
 * by the builder a few minutes later. A profile that carries several types goes as a whole: the
 * selector must not name a profile type (INVALID_ARGUMENT). A range that ends within two minutes of
 * now is drawn out to the end of that hour, so that labels without anything left are gone at once;
 * what is pushed into it until the builder has been there goes too.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_erase(struct hearth_admin *admin,
                                      const struct hearth_admin_erase *what,
                                      struct hearth_cancel *cancel, struct hearth_arena *arena,
                                      struct hearth_admin_erased *ret, struct hearth_err *err);

/* The latest 1,000 deletions of the tenant, newest first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_erasures(struct hearth_admin *admin, struct hearth_str tenant,
                                         struct hearth_arena *arena, struct hearth_erasure **ret,
                                         size_t *ret_n, struct hearth_err *err);

/* ---- retention ---- */

/* What holds for the tenant now. */
void hearth_admin_retention(struct hearth_admin *admin, struct hearth_str tenant,
                            struct hearth_retention *ret);
/* name: retain-raw, retain-10m, retain-1h, retain-1d. 0: for ever; below 0: the server's again. */
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_retention_set(struct hearth_admin *admin, struct hearth_str tenant,
                                              struct hearth_str name, int64_t value_ns,
                                              struct hearth_err *err);

/* ---- limits and settings of a tenant (admin_limits.c) ---- */

struct hearth_admin_limit {
    const struct hearth_limit *limit;
    int64_t value, server; /* that holds, and the server's */
    bool is_own;
};

/* Every limit that a tenant may have of its own, in the order of tenant_limits.def. */
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_limits(struct hearth_admin *admin,
                                       const struct hearth_limits *server, struct hearth_str tenant,
                                       struct hearth_arena *arena, struct hearth_admin_limit **ret,
                                       size_t *ret_n, struct hearth_err *err);

struct hearth_admin_limit_change {
    struct hearth_str name, value; /* value as of options; "default": the server's again */
};

/*
 * All or none; for a tenant that has pushed nothing yet, too. They hold at once on this server, on others
 * within seconds. INVALID_ARGUMENT names what is wrong.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_limits_set(struct hearth_admin *admin, struct hearth_str tenant,
                                           const struct hearth_admin_limit_change *changes,
                                           size_t n, struct hearth_arena *arena,
                                           struct hearth_err *err);
/* The setting "gauge-aggregation"; HEARTH_GAUGES_UNSET takes it away. Likewise. */
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_gauges_set(struct hearth_admin *admin, struct hearth_str tenant,
                                           enum hearth_gauge_aggregation aggregation,
                                           struct hearth_err *err);

/* ---- roll-ups ---- */

/*
 * Build the roll-ups again from the day of from_ms on, of one service or (empty name) of all of the
 * tenant. Queries read the profiles meanwhile.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_rebuild(struct hearth_admin *admin, struct hearth_str tenant,
                                        struct hearth_str service_name, int64_t from_ms,
                                        struct hearth_cancel *cancel, struct hearth_arena *arena,
                                        struct hearth_err *err);

/* ---- looking ---- */

HEARTH_MUST_CHECK
enum hearth_status hearth_admin_state(struct hearth_admin *admin, struct hearth_arena *arena,
                                      struct hearth_background_state *ret, struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_admin_doctor(struct hearth_admin *admin, struct hearth_arena *arena,
                                       struct hearth_check **ret, size_t *ret_n,
                                       struct hearth_err *err);

#endif
