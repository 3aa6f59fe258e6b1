/* tenant.c -- the rules of X-Scope-OrgID. */
#include "rpc/tenant.h"

enum hearth_status hearth_tenant_find(bool multitenancy, size_t sent, struct hearth_str value,
                                      struct hearth_tenant *ret_tenant, struct hearth_err *err)
{
    struct hearth_str name = HEARTH_STR("anonymous");

    if (multitenancy) {
        name = hearth_str_trim(value);
        if (sent == 0 || name.n == 0) {
            return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "no org id");
        }
        if (sent > 1) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "X-Scope-OrgID was sent %zu times",
                               sent);
        }
        if (hearth_str_find(name, '|', 0) < name.n) {
            return HEARTH_FAIL(
                err, HEARTH_INVALID_ARGUMENT,
                "X-Scope-OrgID names several tenants; a request may have one tenant only");
        }
        HEARTH_TRY(hearth_tenant_name_check(name, err));
    }

    ret_tenant->n = name.n;
    memcpy(ret_tenant->text, name.p, name.n);

    return HEARTH_OK;
}
