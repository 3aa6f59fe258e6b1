/*
 * tenant.h -- the tenant of a request: the rules of the header X-Scope-OrgID and of its names.
 *
 * Threads:   pure.
 * Source:    docs/reference/api-transports.md, "Tenants".
 */
#ifndef HEARTH_FRONT_TENANT_H
#define HEARTH_FRONT_TENANT_H

#include "hearth/base/status.h"
#include "hearth/model/access.h"

#define HEARTH_TENANT_MAX_BYTES HEARTH_MAX_TENANT_BYTES

/* n is 0 if the request has no tenant; otherwise 1 to HEARTH_TENANT_MAX_BYTES. No NUL at the end.
 * */
struct hearth_tenant {
    size_t n;
    char text[HEARTH_TENANT_MAX_BYTES];
};

/*
 * Finds the tenant of a request. Without multitenancy it is "anonymous", and the header is ignored.
 *
 * sent     number of X-Scope-OrgID headers
 * value    the first of them
 * Returns  OK; UNAUTHENTICATED if the header is missing or empty; INVALID_ARGUMENT for several
 *          headers, for several tenants ("a|b") and for a name that breaks the rules.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_tenant_find(bool multitenancy, size_t sent, struct hearth_str value,
                                      struct hearth_tenant *ret_tenant, struct hearth_err *err);

#endif
