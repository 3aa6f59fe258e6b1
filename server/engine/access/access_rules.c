/* access_rules.c -- what an administrator may change. */
#include "access/access_rules.h"

#include "hearth/selector/selector.h"

#include "access/access_internal.h"

#include <assert.h>

enum hearth_status hearth_access_check_admin(const struct hearth_access_call *call,
                                             struct hearth_str tenant, struct hearth_err *err)
{
    struct hearth_view view;

    HEARTH_TRY(hearth_access_allow(call->admission, HEARTH_RIGHT_ADMIN, tenant, &view, err));

    return hearth_view_is_narrow(&view)
               ? HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED,
                             HEARTH_STR_FMT
                             " administers only a part of the tenant \"" HEARTH_STR_FMT
                             "\"; credentials concern all of it",
                             HEARTH_STR_ARG(call->admission->subject), HEARTH_STR_ARG(tenant))
               : HEARTH_OK;
}

bool hearth_access_is_admin(const struct hearth_access_call *call, struct hearth_str tenant)
{
    struct hearth_err ignored = HEARTH_ERR_INIT;
    return hearth_access_check_admin(call, tenant, &ignored) == HEARTH_OK;
}

static enum hearth_status check_grant_selector(struct hearth_str text, struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    struct hearth_selector selector;
    struct hearth_err why = HEARTH_ERR_INIT;

    hearth_arena_init(&arena, (size_t)16 << 20);
    hearth_selector_init(&selector);
    enum hearth_status status = hearth_selector_parse(&selector, text, &arena, NULL, &why);
    hearth_selector_release(&selector);

    return status == HEARTH_OK ? HEARTH_OK
                               : HEARTH_FAIL(err, status, "the selector of the grant: %s", why.msg);
}

enum hearth_status hearth_access_check_grant(const struct hearth_access_call *call,
                                             const struct hearth_grant *grant,
                                             struct hearth_err *err)
{
    assert((unsigned)grant->role < HEARTH_N_ROLES);

    if (!hearth_str_eq_c(grant->tenant, HEARTH_ALL_TENANTS)) {
        HEARTH_TRY(hearth_tenant_name_check(grant->tenant, err));
    }
    if (grant->tenant.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the grant names no tenant; \"*\" means all tenants");
    }
    if (grant->selector.n > 0) {
        HEARTH_TRY(check_grant_selector(grant->selector, err));
    }

    return hearth_access_check_admin(call, grant->tenant, err);
}
