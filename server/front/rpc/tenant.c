/* tenant.c -- the rules of X-Scope-OrgID. */
#include "rpc/tenant.h"

#include <assert.h>
#include <stdlib.h>

/* ---- several tenants ---- */

static int compare_tenant_names(const void *a, const void *b)
{
    struct hearth_view left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return hearth_str_cmp(left.tenant, right.tenant);
}

static size_t count_tenant_names(struct hearth_str list)
{
    size_t n = 1;
    for (size_t i = 0; i < list.n; i++) {
        n += list.p[i] == '|';
    }
    return n;
}

/* Splits, checks and sorts the names of a list; repeated ones are removed. */
static enum hearth_status split_names(const struct hearth_tenant_rules *rules,
                                      struct hearth_str list, struct hearth_arena *arena,
                                      struct hearth_tenants *ret, struct hearth_err *err)
{
    size_t n_names = count_tenant_names(list), n = 0;
    if (n_names > HEARTH_TENANT_MAX_NAMES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "X-Scope-OrgID has %zu names; at most %d are allowed", n_names,
                           HEARTH_TENANT_MAX_NAMES);
    }

    struct hearth_view *v = hearth_arena_calloc(arena, n_names, sizeof v[0]);
    if (v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t from = 0; from <= list.n;) {
        size_t to = hearth_str_find(list, '|', from);
        v[n].tenant = hearth_str_trim(hearth_str_n(list.p + from, to - from));
        if (v[n].tenant.n == 0) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "X-Scope-OrgID \"%.*s\" has an empty name between its \"|\"",
                               (int)(list.n > 200 ? 200 : list.n), list.p);
        }
        HEARTH_TRY(hearth_tenant_name_check(v[n++].tenant, err));
        from = to + 1;
    }

    qsort(v, n, sizeof v[0], compare_tenant_names);
    for (size_t i = 0; i < n; i++) {
        if (ret->n == 0 || !hearth_str_eq(v[ret->n - 1].tenant, v[i].tenant)) {
            v[ret->n++] = v[i];
        }
    }
    ret->v = v;

    if (ret->n > 1 && rules->max_tenants <= 1) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "X-Scope-OrgID names several tenants; %s works on one tenant only",
                           rules->path);
    }
    if ((int64_t)ret->n > rules->max_tenants && ret->n > 1) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "X-Scope-OrgID names %zu tenants; a request may read %lld "
                           "(max-read-tenants)",
                           ret->n, (long long)rules->max_tenants);
    }

    return HEARTH_OK;
}

/* Copies the names, joined again; the views borrow from the copy. */
static enum hearth_status join_names(struct hearth_tenants *tenants, struct hearth_arena *arena,
                                     struct hearth_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < tenants->n; i++) {
        n += tenants->v[i].tenant.n + 1;
    }

    char *text = hearth_arena_alloc(arena, n + 1);
    if (text == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    tenants->text = text;
    for (size_t i = 0; i < tenants->n; i++) {
        struct hearth_str name = tenants->v[i].tenant;
        memcpy(text, name.p, name.n);
        tenants->v[i].tenant = hearth_str_n(text, name.n);
        text += name.n;
        *text++ = i + 1 < tenants->n ? '|' : '\0';
    }

    return HEARTH_OK;
}

/* The request has one tenant. */
static void set_only_tenant(struct hearth_tenants *tenants, struct hearth_str name)
{
    tenants->first.n = name.n;
    memcpy(tenants->first.text, name.p, name.n);
    tenants->only.tenant = hearth_str_n(tenants->first.text, name.n);
    tenants->v = &tenants->only;
    tenants->n = 1;
}

/* ---- the header ---- */

enum hearth_status hearth_tenant_find(const struct hearth_tenant_rules *rules, size_t sent,
                                      struct hearth_str value, struct hearth_arena *arena,
                                      struct hearth_tenants *ret, struct hearth_err *err)
{
    assert(rules != NULL && arena != NULL && ret != NULL);

    struct hearth_str name = HEARTH_STR("anonymous");

    *ret = (struct hearth_tenants){0};
    if (!rules->multitenancy) {
        set_only_tenant(ret, name);
        return HEARTH_OK;
    }

    name = hearth_str_trim(value);
    if (sent == 0 || name.n == 0) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "no org id");
    }
    if (sent > 1) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "X-Scope-OrgID was sent %zu times", sent);
    }

    if (hearth_str_find(name, '|', 0) == name.n) {
        HEARTH_TRY(hearth_tenant_name_check(name, err));
        set_only_tenant(ret, name);
        return HEARTH_OK;
    }

    /* Several names; the first one in their order is the tenant of logs. */
    HEARTH_TRY(split_names(rules, name, arena, ret, err));
    if (ret->n == 1) {
        set_only_tenant(ret, ret->v[0].tenant);
        return HEARTH_OK;
    }
    HEARTH_TRY(join_names(ret, arena, err));
    ret->first.n = ret->v[0].tenant.n;
    memcpy(ret->first.text, ret->v[0].tenant.p, ret->first.n);

    return HEARTH_OK;
}
