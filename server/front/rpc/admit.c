/*
 * admit.c -- from the headers of a request to a tenant and a view.
 *
 * The tenant comes from the credential. X-Scope-OrgID only chooses among the tenants that the
 * credential names, and may be left out if it names one.
 */
#include "rpc/admit.h"

#include "oidc/oidc.h"
#include "rpc/agent_methods.h"
#include "rpc/front_internal.h"

#include <assert.h>

#define CREDENTIAL_MAX_BYTES ((size_t)64 << 10)
#define TENANTS_MAX_BYTES    ((size_t)256 << 10)

/* ---- the caller ---- */

/* The subjects "KIND:NAME" of a list of names, in the arena. Longer names are cut: they are no
 * subjects of grants. */
static enum hearth_status name_subjects(const char *kind, const struct hearth_str *names, size_t n,
                                        struct hearth_arena *arena, struct hearth_str *ret,
                                        struct hearth_err *err)
{
    for (size_t i = 0; i < n; i++) {
        size_t max = HEARTH_MAX_SUBJECT_BYTES;
        int n_bytes = (int)(names[i].n < max ? names[i].n : max);
        const char *text = hearth_arena_printf(arena, "%s:%.*s", kind, n_bytes, names[i].p);
        if (text == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        ret[i] = hearth_str_c(text);
    }

    return HEARTH_OK;
}

/* A user and its groups, as a trusted proxy names them. */
static enum hearth_status read_proxy_headers(const struct hearth_front_caller *caller,
                                             struct hearth_arena *arena,
                                             struct hearth_credential *ret, struct hearth_err *err)
{
    struct hearth_str names[HEARTH_ACCESS_MAX_GROUPS];
    struct hearth_str groups = caller->proxy_groups;
    size_t n = 0;

    for (size_t at = 0; at < groups.n && n < HEARTH_ARRAY_LEN(names);) {
        size_t end = hearth_str_find(groups, ',', at);
        struct hearth_str name = hearth_str_trim(hearth_str_n(groups.p + at, end - at));
        if (name.n > 0) {
            names[n++] = name;
        }
        at = end + 1;
    }

    struct hearth_str *subjects = hearth_arena_array(arena, n + 1, sizeof *subjects);
    if (subjects == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(name_subjects("proxy", &caller->proxy_user, 1, arena, subjects, err));
    HEARTH_TRY(name_subjects("group", names, n, arena, subjects + 1, err));
    ret->kind = HEARTH_CREDENTIAL_SUBJECT;
    ret->subjects = subjects;
    ret->n_subjects = n + 1;

    return HEARTH_OK;
}

static enum hearth_status read_certificate(const struct hearth_front_caller *caller,
                                           struct hearth_arena *arena,
                                           struct hearth_credential *ret, struct hearth_err *err)
{
    size_t n = caller->n_certificate_names;
    struct hearth_str *subjects = hearth_arena_array(arena, n, sizeof *subjects);

    if (subjects == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(name_subjects("cert", caller->certificate_names, n, arena, subjects, err));
    ret->kind = HEARTH_CREDENTIAL_SUBJECT;
    ret->subjects = subjects;
    ret->n_subjects = n;

    return HEARTH_OK;
}

/* A page of another origin must not use the session of its reader. */
static enum hearth_status read_session(const struct hearth_front_caller *caller,
                                       struct hearth_credential *ret, struct hearth_err *err)
{
    if (!caller->is_reading && !hearth_caller_is_same_origin(caller)) {
        return HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED,
                           "the request carries a session, but does not come from a page of this "
                           "server: its header Origin is missing or another one");
    }

    ret->kind = HEARTH_CREDENTIAL_SESSION;
    ret->text = caller->session;

    return HEARTH_OK;
}

/* A JWT of a listed issuer. Wrong ones are counted like wrong tokens. */
static enum hearth_status read_jwt(struct hearth_front *front, struct hearth_str jwt,
                                   struct hearth_arena *arena, struct hearth_credential *ret,
                                   struct hearth_err *err)
{
    struct hearth_oidc_identity identity;
    struct hearth_err why = HEARTH_ERR_INIT;
    bool is_wrong;

    struct hearth_oidc *oidc = hearth_oidc_hold(front->oidc);
    enum hearth_status status = hearth_oidc_verify(oidc, jwt, arena, &identity, &is_wrong, &why);
    hearth_oidc_release(oidc);
    if (status == HEARTH_UNAUTHENTICATED && is_wrong) {
        return hearth_access_refuse(front->options.access, ret->address, why.msg, err);
    }
    if (status != HEARTH_OK) {
        return HEARTH_FAIL(err, status, "%s", why.msg);
    }

    ret->kind = HEARTH_CREDENTIAL_SUBJECT;
    ret->subjects = identity.subjects;
    ret->n_subjects = identity.n_subjects;
    ret->expires_ms = identity.expires_ms;

    return HEARTH_OK;
}

/* True if a trusted proxy sent the request; its client's address is used from now on. */
static bool trust_proxy(const struct hearth_front *front, struct hearth_front_caller *caller)
{
    bool is_trusted = hearth_caller_is_within(caller, front->options.proxy_trusted);

    if (is_trusted) {
        hearth_caller_use_forwarded(caller);
    }

    return is_trusted;
}

static enum hearth_status refuse_without_credential(const struct hearth_front_caller *caller,
                                                    struct hearth_err *err)
{
    bool takes_tokens = (caller->modes & HEARTH_AUTH_TOKEN) != 0;
    return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "no credential was sent%s",
                       takes_tokens ? "; send a token: Authorization: Bearer hearth_..." : "");
}

/* Finds the credential that counts: the first one, by precedence, that the listener accepts. */
static enum hearth_status find_credential(struct hearth_front *front,
                                          const struct hearth_front_caller *caller,
                                          bool may_name_user, struct hearth_arena *arena,
                                          struct hearth_credential *ret, struct hearth_err *err)
{
    struct hearth_str token = {NULL, 0}, jwt = {NULL, 0};

    *ret = (struct hearth_credential){.address = hearth_str_c(caller->address)};
    if ((caller->modes & (HEARTH_AUTH_TOKEN | HEARTH_AUTH_OIDC)) != 0) {
        HEARTH_TRY(hearth_caller_token(caller, arena, &token, &jwt, err));
    }

    if (token.p != NULL && (caller->modes & HEARTH_AUTH_TOKEN) != 0) {
        ret->kind = HEARTH_CREDENTIAL_TOKEN;
        ret->text = token;
        return HEARTH_OK;
    }
    if (jwt.p != NULL && (caller->modes & HEARTH_AUTH_OIDC) != 0 && front->oidc != NULL) {
        return read_jwt(front, jwt, arena, ret, err);
    }
    if (caller->session.p != NULL && (caller->modes & (HEARTH_AUTH_USER | HEARTH_AUTH_OIDC)) != 0) {
        return read_session(caller, ret, err);
    }
    if (may_name_user && caller->proxy_user.n > 0) {
        return read_proxy_headers(caller, arena, ret, err);
    }
    if (caller->n_certificate_names > 0 && (caller->modes & HEARTH_AUTH_MTLS) != 0) {
        return read_certificate(caller, arena, ret, err);
    }

    return refuse_without_credential(caller, err);
}

static enum hearth_status identify_caller(struct hearth_front *front,
                                          const struct hearth_front_caller *caller,
                                          bool may_name_user, struct hearth_admission *ret,
                                          struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    struct hearth_credential credential;

    hearth_arena_init(&arena, CREDENTIAL_MAX_BYTES);
    HEARTH_TRY(find_credential(front, caller, may_name_user, &arena, &credential, err));

    return hearth_access_identify(front->options.access, &credential, ret, err);
}

/* ---- what it may do ---- */

static enum hearth_status find_tenants(const struct hearth_front *front,
                                       const struct hearth_method *method,
                                       const struct hearth_front_caller *caller,
                                       struct hearth_admitted *admitted, struct hearth_err *err)
{
    const struct hearth_tenant_rules rules = hearth_front_tenant_rules(&front->options, method);
    struct hearth_str tenant = caller->tenant;
    size_t n = caller->n_tenants;

    if (rules.multitenancy && n == 0) {
        tenant = hearth_access_only_tenant(&admitted->admission);
        if (tenant.p == NULL) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               HEARTH_STR_FMT " has roles in several tenants: name one in the "
                                              "header X-Scope-OrgID",
                               HEARTH_STR_ARG(admitted->admission.subject));
        }
        n = 1;
    }

    return hearth_tenant_find(&rules, n, tenant, &admitted->arena, &admitted->tenants, err);
}

/* The first role, by the order of the table, that gives a right. */
static const char *find_role_name(enum hearth_right right)
{
    int role = 0;

    while (role + 1 < HEARTH_N_ROLES && !hearth_role_gives((enum hearth_role)role, right)) {
        role++;
    }

    return hearth_role_name((enum hearth_role)role);
}

/* Checks the right of the method in each tenant that was found, and narrows what is seen of it. */
static enum hearth_status check_right(const struct hearth_method *method,
                                      struct hearth_admitted *admitted, struct hearth_err *err)
{
    struct hearth_admission *admission = &admitted->admission;
    struct hearth_view view;

    if ((method->flags & HEARTH_METHOD_TENANT) != 0) {
        for (size_t i = 0; i < admitted->tenants.n; i++) {
            struct hearth_view *of_tenant = &admitted->tenants.v[i];
            HEARTH_TRY(
                hearth_access_allow(admission, method->right, of_tenant->tenant, &view, err));
            of_tenant->selectors = view.selectors;
            of_tenant->n_selectors = view.n_selectors;
        }
        return HEARTH_OK;
    }

    if (method->right == HEARTH_RIGHT_ANY || (method->flags & HEARTH_METHOD_SOME_TENANT) != 0) {
        return hearth_access_allows_any(admission, method->right)
                   ? HEARTH_OK
                   : HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED,
                                 HEARTH_STR_FMT
                                 " may not do this in any tenant; it needs the role %s in one",
                                 HEARTH_STR_ARG(admission->subject), find_role_name(method->right));
    }

    return hearth_access_allow(admission, method->right, HEARTH_STR(HEARTH_ALL_TENANTS), &view,
                               err);
}

/* Refusals are in the audit log. */
static void note_refusal(struct hearth_front *front, const struct hearth_method *method,
                         const struct hearth_front_caller *caller,
                         const struct hearth_admitted *admitted, enum hearth_status status,
                         const struct hearth_err *err)
{
    if (front->options.access == NULL ||
        (status != HEARTH_UNAUTHENTICATED && status != HEARTH_PERMISSION_DENIED &&
         status != HEARTH_RESOURCE_EXHAUSTED)) {
        return;
    }

    const struct hearth_tenant *tenant = &admitted->tenants.first;
    hearth_audit_note(front->options.access,
                      &(const struct hearth_audit_event){
                          .tenant = hearth_str_n(tenant->text, tenant->n),
                          .subject = admitted->admission.subject.n > 0 ? admitted->admission.subject
                                                                       : HEARTH_STR("unknown"),
                          .address = hearth_str_c(caller->address),
                          .action = hearth_str_c(method->path),
                          .outcome = hearth_str_c(hearth_status_name(status)),
                          .message = hearth_str_c(err->msg),
                      });
}

static enum hearth_status admit_by_credential(struct hearth_front *front,
                                              const struct hearth_method *method,
                                              const struct hearth_front_caller *caller,
                                              bool may_name_user, struct hearth_admitted *admitted,
                                              struct hearth_err *err)
{
    HEARTH_TRY(hearth_front_check_switches(&front->options, method, err));
    if (method->right == HEARTH_RIGHT_PUBLIC) {
        return HEARTH_OK;
    }

    HEARTH_TRY(identify_caller(front, caller, may_name_user, &admitted->admission, err));
    if ((method->flags & HEARTH_METHOD_TENANT) != 0) {
        HEARTH_TRY(find_tenants(front, method, caller, admitted, err));
    }

    return check_right(method, admitted, err);
}

enum hearth_status hearth_front_admit(struct hearth_front *front,
                                      const struct hearth_method *method,
                                      struct hearth_front_caller *caller,
                                      struct hearth_admitted *ret, struct hearth_err *err)
{
    enum hearth_status status;

    assert(method != NULL && ret != NULL);
    *ret = (struct hearth_admitted){.modes = caller->modes,
                                    .is_over_tls = hearth_caller_is_over_tls(caller)};
    hearth_arena_init(&ret->arena, TENANTS_MAX_BYTES);
    if (caller->modes == 0) {
        return HEARTH_FAIL(err, HEARTH_CANCELLED, "the client has closed its connection");
    }

    bool is_trusted_proxy = trust_proxy(front, caller);
    if ((caller->modes & HEARTH_AUTH_NONE) != 0) {
        status = hearth_front_admit_all(&front->options, method, caller, &ret->arena, &ret->tenants,
                                        err);
    } else {
        bool may_name_user = is_trusted_proxy && (caller->modes & HEARTH_AUTH_PROXY) != 0;
        status = admit_by_credential(front, method, caller, may_name_user, ret, err);
    }

    /* A refused request belongs to no tenant: nothing of it may be counted there. */
    if (status != HEARTH_OK) {
        note_refusal(front, method, caller, ret, status, err);
        hearth_admitted_release(ret);
        return status;
    }

    memcpy(ret->address, caller->address, sizeof ret->address);

    return HEARTH_OK;
}

enum hearth_status hearth_front_readmit(const struct hearth_method *method,
                                        struct hearth_admitted *admitted, struct hearth_err *err)
{
    if (admitted->admission.access == NULL) {
        return HEARTH_OK;
    }
    HEARTH_TRY(hearth_admission_renew(&admitted->admission, err));
    return check_right(method, admitted, err);
}

void hearth_admitted_release(struct hearth_admitted *admitted)
{
    hearth_admission_release(&admitted->admission);
    hearth_arena_release(&admitted->arena);
    admitted->tenants = (struct hearth_tenants){0};
}
