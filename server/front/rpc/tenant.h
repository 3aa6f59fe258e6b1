/*
 * tenant.h -- whose request it is: the rules of X-Scope-OrgID.
 *
 * Threads:   pure.
 * Source:    docs/reference/api-transports.md, "Tenants".
 */
#ifndef HEARTH_FRONT_TENANT_H
#define HEARTH_FRONT_TENANT_H

#include "hearth/base/status.h"

#define HEARTH_TENANT_MAX_BYTES 150

/* Zero bytes are "not sent" for the caller; a sent name has 1..150 bytes. */
struct hearth_tenant {
    size_t n;
    char text[HEARTH_TENANT_MAX_BYTES];
};

/*
 * The tenant of a request. Without multitenancy the header is not even looked at: "anonymous".
 *
 * sent     how many X-Scope-OrgID headers came
 * value    the first of them
 * Returns  OK; UNAUTHENTICATED when none came or it is empty; INVALID_ARGUMENT for several headers,
 * a name that breaks the rules (letters, digits, ! - _ . * ' ( ), not "." or "..") or names several
 * tenants ("a|b").
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_tenant_find(bool multitenancy, size_t sent, struct hearth_str value,
                                      struct hearth_tenant *ret_tenant, struct hearth_err *err);

#endif
