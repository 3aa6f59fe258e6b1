/*
 * admin_limits.c -- limits of a tenant, and how its gauges are merged (contract:
 * hearth/engine/admin.h).
 */
#include "hearth/store/settings.h"

#include "common/call_internal.h"
#include "common/shown.h"
#include "select/query_internal.h"
#include "tenants/admin_internal.h"

#include <assert.h>

#define MAX_CHANGES 64

static void mark_own_limit(void *context, struct hearth_str name, int64_t value)
{
    struct hearth_admin_limit *limits = context;
    const struct hearth_limit *limit = hearth_limit_find(name);

    (void)value;
    if (limit != NULL) {
        limits[limit - hearth_tenant_limits].is_own = true;
    }
}

enum hearth_status hearth_admin_limits(struct hearth_admin *admin,
                                       const struct hearth_limits *server, struct hearth_str tenant,
                                       struct hearth_arena *arena, struct hearth_admin_limit **ret,
                                       size_t *ret_n, struct hearth_err *err)
{
    struct hearth_admin_limit *limits =
        hearth_arena_calloc(arena, hearth_n_tenant_limits, sizeof limits[0]);

    assert(ret != NULL && ret_n != NULL);
    assert(server != NULL);

    if (limits == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Answer the tenant's and the server's value of each limit. */
    struct hearth_limits own;
    hearth_limits_of_tenant(server, admin->store, tenant, &own);
    for (size_t i = 0; i < hearth_n_tenant_limits; i++) {
        limits[i].limit = &hearth_tenant_limits[i];
        limits[i].value = hearth_limit_get(limits[i].limit, &own);
        limits[i].server = hearth_limit_get(limits[i].limit, server);
    }

    /* Mark the limits that the tenant has set. */
    hearth_store_settings(admin->store, tenant, mark_own_limit, limits);
    *ret = limits;
    *ret_n = hearth_n_tenant_limits;

    return HEARTH_OK;
}

static enum hearth_status read_limit_change(const struct hearth_admin_limit_change *change,
                                            struct hearth_setting *ret, struct hearth_err *err)
{
    const struct hearth_limit *limit = hearth_limit_find(change->name);

    if (limit == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "\"%.*s\" is not a limit that can be set for a tenant; hearth admin "
                           "limits, or GetLimits, lists those that can",
                           (int)(change->name.n > 64 ? 64 : change->name.n), change->name.p);
    }

    *ret = (struct hearth_setting){.name = change->name, .value = -1};

    return hearth_str_eq_c(change->value, "default")
               ? HEARTH_OK
               : hearth_limit_parse(limit, change->value, &ret->value, err);
}

enum hearth_status hearth_admin_limits_set(const struct hearth_call *call,
                                           const struct hearth_admin_limit_change *changes,
                                           size_t n, struct hearth_err *err)
{
    HEARTH_TRY(hearth_call_check_whole(call, err));
    if (n == 0 || n > MAX_CHANGES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the request has %zu limits; it may set 1 to %d at once", n,
                           MAX_CHANGES);
    }

    struct hearth_setting *settings = hearth_arena_array(call->arena, n, sizeof settings[0]);
    if (settings == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Check all changes before any is stored. */
    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(read_limit_change(&changes[i], &settings[i], err));
    }

    return hearth_store_settings_set(call->engine->store, call->tenant, true, settings, n, err);
}

enum hearth_status hearth_admin_gauges_set(const struct hearth_call *call,
                                           enum hearth_gauge_aggregation aggregation,
                                           struct hearth_err *err)
{
    struct hearth_setting setting = {
        .name = HEARTH_STR(HEARTH_SETTING_GAUGES),
        .value = aggregation == HEARTH_GAUGES_UNSET ? -1 : (int64_t)aggregation,
    };

    HEARTH_TRY(hearth_call_check_whole(call, err));

    return hearth_store_settings_set(call->engine->store, call->tenant, true, &setting, 1, err);
}
