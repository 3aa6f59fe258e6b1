/*
 * identify.c -- from a credential to an admission, and from an admission to what it allows.
 *
 * No statement runs here: all of it is answered from the snapshot.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"

#include "access/access_internal.h"

#include <assert.h>

#define ADMISSION_MAX_BYTES ((size_t)1 << 20)
/* A use is noted when the last noted one is older; each costs a row of a statement. */
#define NOTE_USE_MS 60000

/* The grant of the token that the options set (admin-token-file). */
static const struct hearth_stored_grant g_admin_grant = {
    .grant = {.subject = {"token:admin", 11}, .tenant = {"*", 1}, .role = HEARTH_ROLE_ADMIN}};

enum hearth_status hearth_access_refuse(struct hearth_access *access, struct hearth_str address,
                                        const char *why, struct hearth_err *err)
{
    uint32_t n = hearth_failures_count(&access->failures, address);

    if (n >= access->options.max_wrong) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "too many wrong credentials from this address within a minute "
                           "(max-wrong-credentials)");
    }

    hearth_failures_add(&access->failures, address);

    return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "%s", why);
}

/* Its error is the same for all wrong credentials. */
static enum hearth_status refuse_credential(struct hearth_access *access,
                                            const struct hearth_credential *credential,
                                            const char *why, struct hearth_err *err)
{
    return hearth_access_refuse(access, credential->address, why, err);
}

/* Makes `ret` hold the snapshot, which the caller holds, and own its texts. */
static void begin_admission(struct hearth_access *access, struct hearth_access_snapshot *held,
                            enum hearth_credential_kind kind, struct hearth_admission *ret)
{
    *ret = (struct hearth_admission){.access = access, .snapshot = held, .kind = kind};
    hearth_arena_init(&ret->arena, ADMISSION_MAX_BYTES);
    hearth_arena_init(&ret->views, ADMISSION_MAX_BYTES);
}

static bool is_expired(int64_t expires_ms, int64_t now_ms)
{
    return expires_ms != 0 && expires_ms <= now_ms;
}

/* ---- tokens ---- */

static void note_token_use(struct hearth_access *access, struct hearth_known_token *token,
                           struct hearth_str address, int64_t now_ms)
{
    if (now_ms - atomic_load(&token->used_ms) < NOTE_USE_MS) {
        return;
    }

    size_t n = address.n < sizeof token->used_from ? address.n : sizeof token->used_from - 1;
    hearth_mutex_lock(&access->use_lock);
    memcpy(token->used_from, n > 0 ? address.p : "", n);
    token->used_from[n] = '\0';
    hearth_mutex_unlock(&access->use_lock);
    atomic_store(&token->used_ms, now_ms);
    atomic_store(&token->is_unsaved, true);
}

static bool is_admin_token(const struct hearth_access *access, struct hearth_str text)
{
    const struct hearth_secret *secret = atomic_load(&access->admin_token);
    return secret != NULL && hearth_secret_equals(secret, text);
}

static enum hearth_status identify_token(struct hearth_access *access,
                                         const struct hearth_credential *credential,
                                         struct hearth_admission *ret, struct hearth_err *err)
{
    struct hearth_str id;
    unsigned char hash[HEARTH_SHA256_BYTES];

    if (is_admin_token(access, credential->text)) {
        ret->subject = ret->name = g_admin_grant.grant.subject;
        ret->own = (struct hearth_grant_range){&g_admin_grant, 1};
        return HEARTH_OK;
    }

    if (!hearth_token_parse(credential->text, &id, hash)) {
        return refuse_credential(access, credential,
                                 "the credential is not a token of this server: tokens begin with "
                                 "\"hearth_\" and were perhaps cut or mistyped",
                                 err);
    }

    struct hearth_known_token *token = hearth_snapshot_token(ret->snapshot, id);
    if (token == NULL ||
        !hearth_str_eq_secret(hearth_str_n((const char *)hash, sizeof hash), token->row->hash)) {
        return refuse_credential(access, credential,
                                 "the token is unknown: it was deleted, or belongs to another "
                                 "server",
                                 err);
    }

    /* The caller has the secret, so it may know more. */
    int64_t now_ms = hearth_access_now_ms();
    if (is_expired(token->row->expires_ms, now_ms)) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the token " HEARTH_STR_FMT " (" HEARTH_STR_FMT ") has expired",
                           HEARTH_STR_ARG(id), HEARTH_STR_ARG(token->row->name));
    }

    note_token_use(access, token, credential->address, now_ms);
    ret->key = token->row->id;
    ret->subject = token->subject;
    ret->name = token->row->name;
    ret->expires_ms = token->row->expires_ms;
    ret->own = token->grants;

    return HEARTH_OK;
}

/* ---- sessions ---- */

static enum hearth_status identify_session(struct hearth_access *access,
                                           const struct hearth_credential *credential,
                                           struct hearth_admission *ret, struct hearth_err *err)
{
    struct hearth_sha256 state;
    unsigned char hash[HEARTH_SHA256_BYTES];

    hearth_sha256_init(&state);
    hearth_sha256_add(&state, credential->text);
    hearth_sha256_end(&state, hash);
    struct hearth_known_session *session =
        hearth_snapshot_session(ret->snapshot, hearth_str_n((const char *)hash, sizeof hash));
    if (session == NULL) {
        return refuse_credential(access, credential, "the session has ended: log in again", err);
    }

    int64_t now_ms = hearth_access_now_ms(), used_ms = atomic_load(&session->used_ms);
    if (is_expired(session->row->expires_ms, now_ms) ||
        now_ms - used_ms > access->options.session_idle_ns / HEARTH_NS_PER_MS) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "the session has expired: log in again");
    }

    if (now_ms - used_ms >= NOTE_USE_MS) {
        atomic_store(&session->used_ms, now_ms);
        atomic_store(&session->is_unsaved, true);
    }
    ret->key = session->row->hash;
    ret->subject = ret->name = session->row->subject;
    ret->expires_ms = session->row->expires_ms;
    ret->ranges = session->ranges;
    ret->n_ranges = session->row->n_groups + 1;

    return HEARTH_OK;
}

/* ---- verified subjects ---- */

static enum hearth_status identify_subject(const struct hearth_credential *credential,
                                           struct hearth_admission *ret, struct hearth_err *err)
{
    size_t n = credential->n_subjects;
    n = n > HEARTH_ACCESS_MAX_GROUPS + 1 ? HEARTH_ACCESS_MAX_GROUPS + 1 : n;
    assert(n > 0);

    ret->subjects = hearth_arena_array(&ret->arena, n, sizeof *ret->subjects);
    ret->ranges = hearth_arena_array(&ret->arena, n, sizeof *ret->ranges);
    if (ret->subjects == NULL || ret->ranges == NULL) {
        return HEARTH_FAIL_ARENA(err, &ret->arena);
    }

    for (size_t i = 0; i < n; i++) {
        ret->subjects[i] = hearth_arena_str(&ret->arena, credential->subjects[i]);
        if (ret->subjects[i].p == NULL) {
            return HEARTH_FAIL_ARENA(err, &ret->arena);
        }
        ret->ranges[i] = hearth_snapshot_grants(ret->snapshot, ret->subjects[i]);
    }
    ret->subject = ret->name = ret->subjects[0];
    ret->n_subjects = ret->n_ranges = n;
    ret->expires_ms = credential->expires_ms;

    return HEARTH_OK;
}

/* ---- admissions ---- */

static size_t count_grants(const struct hearth_admission *admission)
{
    size_t n = admission->own.n;
    for (size_t i = 0; i < admission->n_ranges; i++) {
        n += admission->ranges[i].n;
    }
    return n;
}

static enum hearth_status identify(struct hearth_access *access,
                                   const struct hearth_credential *credential,
                                   struct hearth_admission *ret, struct hearth_err *err)
{
    switch (credential->kind) {
    case HEARTH_CREDENTIAL_TOKEN:
        return identify_token(access, credential, ret, err);
    case HEARTH_CREDENTIAL_SESSION:
        return identify_session(access, credential, ret, err);
    case HEARTH_CREDENTIAL_SUBJECT:
        return identify_subject(credential, ret, err);
    }
    HEARTH_BUG("unknown kind of credential");
}

enum hearth_status hearth_access_identify(struct hearth_access *access,
                                          const struct hearth_credential *credential,
                                          struct hearth_admission *ret, struct hearth_err *err)
{
    assert(access != NULL && credential != NULL && ret != NULL);

    struct hearth_access_snapshot *held = hearth_snapshot_hold(access);
    if (held == NULL) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "the database has not told yet who may call: retry later");
    }

    struct hearth_admission admission;
    begin_admission(access, held, credential->kind, &admission);
    enum hearth_status status = identify(access, credential, &admission, err);
    if (status == HEARTH_OK && count_grants(&admission) == 0) {
        status =
            HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED, HEARTH_STR_FMT " has no role on this server",
                        HEARTH_STR_ARG(admission.subject));
    }

    if (status != HEARTH_OK) {
        hearth_admission_release(&admission);
        return status;
    }

    *ret = admission;

    return HEARTH_OK;
}

void hearth_admission_release(struct hearth_admission *admission)
{
    if (admission->access != NULL) {
        hearth_arena_release(&admission->arena);
        hearth_arena_release(&admission->views);
        hearth_snapshot_release(admission->snapshot);
    }
    *admission = (struct hearth_admission){0};
}

/* ---- admissions that last ---- */

static enum hearth_status renew_token(struct hearth_admission *admission, struct hearth_err *err)
{
    struct hearth_known_token *token = hearth_snapshot_token(admission->snapshot, admission->key);

    if (token == NULL) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "the token was deleted");
    }
    admission->subject = token->subject;
    admission->name = token->row->name;
    admission->key = token->row->id;
    admission->expires_ms = token->row->expires_ms;
    admission->own = token->grants;

    return HEARTH_OK;
}

static enum hearth_status renew_session(struct hearth_admission *admission, struct hearth_err *err)
{
    struct hearth_known_session *session =
        hearth_snapshot_session(admission->snapshot, admission->key);

    if (session == NULL) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "the session has ended");
    }
    admission->subject = admission->name = session->row->subject;
    admission->key = session->row->hash;
    admission->ranges = session->ranges;

    return HEARTH_OK;
}

static enum hearth_status renew_grants(struct hearth_admission *admission, struct hearth_err *err)
{
    if (admission->kind == HEARTH_CREDENTIAL_SUBJECT) {
        for (size_t i = 0; i < admission->n_subjects; i++) {
            admission->ranges[i] =
                hearth_snapshot_grants(admission->snapshot, admission->subjects[i]);
        }
        return HEARTH_OK;
    }
    if (admission->kind == HEARTH_CREDENTIAL_SESSION) {
        return renew_session(admission, err);
    }
    return admission->key.p == NULL ? HEARTH_OK : renew_token(admission, err);
}

enum hearth_status hearth_admission_renew(struct hearth_admission *admission,
                                          struct hearth_err *err)
{
    struct hearth_access *access = admission->access;
    enum hearth_status status = HEARTH_OK;

    if (access == NULL) {
        return HEARTH_OK;
    }
    if (is_expired(admission->expires_ms, hearth_access_now_ms())) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "the credential has expired");
    }
    hearth_arena_reset(&admission->views);
    if (atomic_load(&access->current) == admission->snapshot) {
        return HEARTH_OK;
    }

    /* The key still points into the old snapshot, which is held until it was looked up. */
    struct hearth_access_snapshot *old = admission->snapshot;
    admission->snapshot = hearth_snapshot_hold(access);
    status = renew_grants(admission, err);
    hearth_snapshot_release(old);
    if (status == HEARTH_OK && count_grants(admission) == 0) {
        status = HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED, "the caller has no role any more");
    }

    /* What points into the old snapshot must not be used. */
    if (status != HEARTH_OK) {
        admission->subject = admission->name = HEARTH_STR("unknown");
        admission->own.n = admission->n_ranges = 0;
    }

    return status;
}

/* ---- what an admission allows ---- */

/* Calls visit for each grant of the caller until it returns false. */
typedef bool visit_grant_fn(void *context, const struct hearth_grant *grant);

static void visit_grants(const struct hearth_admission *admission, visit_grant_fn *visit,
                         void *context)
{
    for (size_t g = 0; g < admission->own.n; g++) {
        if (!visit(context, &admission->own.first[g].grant)) {
            return;
        }
    }

    for (size_t i = 0; i < admission->n_ranges; i++) {
        for (size_t g = 0; g < admission->ranges[i].n; g++) {
            if (!visit(context, &admission->ranges[i].first[g].grant)) {
                return;
            }
        }
    }
}

/* The grants that give a right in a tenant. */
struct allowed {
    enum hearth_right right;
    struct hearth_str tenant;
    bool is_server;               /* tenant is HEARTH_ALL_TENANTS */
    bool is_whole;                /* a grant without a selector */
    struct hearth_str *selectors; /* NULL: only count */
    size_t n;
};

static bool add_allowed_grant(void *context, const struct hearth_grant *grant)
{
    struct allowed *allowed = context;
    bool is_everywhere = hearth_str_eq_c(grant->tenant, HEARTH_ALL_TENANTS);

    if (!hearth_role_gives(grant->role, allowed->right) ||
        !(is_everywhere ||
          (!allowed->is_server && hearth_str_eq(grant->tenant, allowed->tenant)))) {
        return true;
    }

    if (grant->selector.n == 0) {
        allowed->is_whole = true;
        return false;
    }

    /* A narrowed grant does not cover the server as a whole. */
    if (!allowed->is_server) {
        if (allowed->selectors != NULL) {
            allowed->selectors[allowed->n] = grant->selector;
        }
        allowed->n++;
    }

    return true;
}

static enum hearth_status make_narrow_view(struct hearth_admission *admission,
                                           struct allowed *allowed, struct hearth_view *ret_view,
                                           struct hearth_err *err)
{
    allowed->selectors =
        hearth_arena_array(&admission->views, allowed->n, sizeof *allowed->selectors);
    if (allowed->selectors == NULL) {
        return HEARTH_FAIL_ARENA(err, &admission->views);
    }

    allowed->n = 0;
    visit_grants(admission, add_allowed_grant, allowed);
    *ret_view = (struct hearth_view){allowed->tenant, allowed->selectors, allowed->n};

    return HEARTH_OK;
}

enum hearth_status hearth_access_allow(struct hearth_admission *admission, enum hearth_right right,
                                       struct hearth_str tenant, struct hearth_view *ret_view,
                                       struct hearth_err *err)
{
    static const char *const needed[HEARTH_N_RIGHTS] = {"",         "any role", "ingest", "viewer",
                                                        "profiler", "editor",   "admin"};
    struct allowed allowed = {.right = right, .tenant = tenant};

    if (admission->access == NULL) {
        *ret_view = (struct hearth_view){.tenant = tenant};
        return HEARTH_OK;
    }

    allowed.is_server = hearth_str_eq_c(tenant, HEARTH_ALL_TENANTS);
    visit_grants(admission, add_allowed_grant, &allowed);
    if (allowed.is_whole) {
        *ret_view = (struct hearth_view){.tenant = tenant};
        return HEARTH_OK;
    }

    if (allowed.n > 0) {
        return make_narrow_view(admission, &allowed, ret_view, err);
    }

    return allowed.is_server
               ? HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED,
                             HEARTH_STR_FMT " may not do this; it concerns the whole server and "
                                            "needs the role %s in all tenants",
                             HEARTH_STR_ARG(admission->subject), needed[right])
               : HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED,
                             HEARTH_STR_FMT " may not do this in the tenant \"" HEARTH_STR_FMT
                                            "\"; it needs the role %s there",
                             HEARTH_STR_ARG(admission->subject), HEARTH_STR_ARG(tenant),
                             needed[right]);
}

/* Whether a grant gives the right, anywhere. */
struct any_right {
    enum hearth_right right;
    bool is_found;
};

static bool find_right(void *context, const struct hearth_grant *grant)
{
    struct any_right *any = context;
    any->is_found = hearth_role_gives(grant->role, any->right);
    return !any->is_found;
}

bool hearth_access_allows_any(const struct hearth_admission *admission, enum hearth_right right)
{
    struct any_right any = {.right = right};
    visit_grants(admission, find_right, &any);
    return admission->access == NULL || any.is_found;
}

/* The only tenant of all grants. */
struct only_tenant {
    struct hearth_str tenant;
    bool are_several;
};

static bool compare_tenant(void *context, const struct hearth_grant *grant)
{
    struct only_tenant *only = context;

    only->are_several = hearth_str_eq_c(grant->tenant, HEARTH_ALL_TENANTS) ||
                        (only->tenant.p != NULL && !hearth_str_eq(only->tenant, grant->tenant));
    only->tenant = grant->tenant;

    return !only->are_several;
}

struct hearth_str hearth_access_only_tenant(const struct hearth_admission *admission)
{
    struct only_tenant only = {0};
    visit_grants(admission, compare_tenant, &only);
    return only.are_several ? hearth_str_n(NULL, 0) : only.tenant;
}

/* A list of grants that is being filled. */
struct grant_list {
    struct hearth_grant *grants;
    size_t n;
};

static bool append_grant(void *context, const struct hearth_grant *grant)
{
    struct grant_list *list = context;
    list->grants[list->n++] = *grant;
    return true;
}

enum hearth_status hearth_access_grants_of(const struct hearth_admission *admission,
                                           struct hearth_arena *arena, struct hearth_grant **ret,
                                           size_t *ret_n, struct hearth_err *err)
{
    struct grant_list list = {
        .grants = hearth_arena_array(arena, count_grants(admission), sizeof *list.grants)};
    if (list.grants == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    visit_grants(admission, append_grant, &list);
    *ret = list.grants;
    *ret_n = list.n;

    return HEARTH_OK;
}
