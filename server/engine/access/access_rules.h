/*
 * access_rules.h -- what an administrator may change: checks that all changes share.
 *
 * Threads: as the call.
 */
#ifndef HEARTH_ENGINE_ACCESS_RULES_H
#define HEARTH_ENGINE_ACCESS_RULES_H

#include "hearth/engine/access_control.h"

/* OK if the caller administers the tenant, or the server (HEARTH_ALL_TENANTS), and all of it. */
HEARTH_MUST_CHECK enum hearth_status
hearth_access_check_admin(const struct hearth_access_call *call, struct hearth_str tenant,
                          struct hearth_err *err);
/* The same without an error. */
bool hearth_access_is_admin(const struct hearth_access_call *call, struct hearth_str tenant);
/* Checks tenant, role and selector of a new grant, and that the caller may give it. */
HEARTH_MUST_CHECK enum hearth_status
hearth_access_check_grant(const struct hearth_access_call *call, const struct hearth_grant *grant,
                          struct hearth_err *err);

#endif
