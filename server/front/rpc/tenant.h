/*
 * tenant.h -- the tenants of a request: the rules of the header X-Scope-OrgID and of its names.
 *
 * Threads:   pure.
 * Source:    docs/reference/api-transports.md, "Tenants".
 */
#ifndef HEARTH_FRONT_TENANT_H
#define HEARTH_FRONT_TENANT_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/model/access.h"

#define HEARTH_TENANT_MAX_BYTES HEARTH_MAX_TENANT_BYTES
/* Names in one header, repeated ones included. */
#define HEARTH_TENANT_MAX_NAMES 1000

/* n is 0 if the request has no tenant; otherwise 1 to HEARTH_TENANT_MAX_BYTES. No NUL at the end.
 * */
struct hearth_tenant {
    size_t n;
    char text[HEARTH_TENANT_MAX_BYTES];
};

/*
 * The tenants of a request. Not copied: `v` may point into it.
 */
struct hearth_tenants {
    struct hearth_tenant first; /* n 0: the method has no tenant */
    /*
     * [n]: each tenant with the part of it that the caller may see, sorted by name, distinct. The
     * part is all of the tenant, until authentication narrows it. In the arena if n > 1.
     */
    struct hearth_view *v;
    size_t n;
    const char *text; /* several: their names, as in "a|b", in the arena; otherwise NULL */
    struct hearth_view only;
};

/* What the header may say. */
struct hearth_tenant_rules {
    bool multitenancy;
    /* The most tenants of a request; 1: the method works on one tenant. */
    int64_t max_tenants;
    const char *path; /* of the method, for messages */
};

/*
 * Finds the tenants of a request. Without multitenancy it is "anonymous", and the header is
 * ignored. "a|b" names several; one that is repeated counts once.
 *
 * sent     number of X-Scope-OrgID headers
 * value    the first of them
 * Returns  OK; UNAUTHENTICATED if the header is missing or empty; INVALID_ARGUMENT for several
 *          headers, for several tenants where the method works on one, for more of them than
 *          rules->max_tenants, and for a name that breaks the rules; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_tenant_find(const struct hearth_tenant_rules *rules, size_t sent,
                                      struct hearth_str value, struct hearth_arena *arena,
                                      struct hearth_tenants *ret, struct hearth_err *err);

#endif
