/* tenant.c -- the rules of X-Scope-OrgID. */
#include "rpc/tenant.h"

static bool is_tenant_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr("!-_.*'()", c) != NULL);
}

enum hearth_status hearth_tenant_check(struct hearth_str name, struct hearth_err *err)
{
    if (name.n > HEARTH_TENANT_MAX_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "tenant ID is %zu bytes long; at most %d are allowed", name.n,
                           HEARTH_TENANT_MAX_BYTES);
    }

    if (hearth_str_eq_c(name, ".") || hearth_str_eq_c(name, "..")) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "tenant ID may not be \".\" or \"..\"");
    }

    for (size_t i = 0; i < name.n; i++) {
        if (!is_tenant_byte((unsigned char)name.p[i])) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "tenant ID \"" HEARTH_STR_FMT "\" has a character that is not "
                               "allowed at byte %zu; letters, digits and !-_.*'() are",
                               HEARTH_STR_ARG(name), i);
        }
    }

    return HEARTH_OK;
}

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
        HEARTH_TRY(hearth_tenant_check(name, err));
    }

    ret_tenant->n = name.n;
    memcpy(ret_tenant->text, name.p, name.n);

    return HEARTH_OK;
}
