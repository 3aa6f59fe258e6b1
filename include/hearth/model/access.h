/*
 * access.h -- who may do what: rights, roles, grants, and the part of a tenant's data that a caller
 * may see.
 *
 * A *subject* is a user, token, certificate or group ("user:alice"). A *grant* gives a subject a
 * role in a tenant, or in all tenants ("*"), optionally narrowed to the series that a selector
 * matches. A role gives rights. Each RPC and route needs one right (server/front/methods.def).
 *
 * Threads: pure; plain data.
 */
#ifndef HEARTH_MODEL_ACCESS_H
#define HEARTH_MODEL_ACCESS_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/base/str.h"

/*
 * What a method needs. A method without a tenant (HEARTH_METHOD_TENANT) concerns the whole server:
 * the right must come from a grant for all tenants.
 */
enum hearth_right {
    HEARTH_RIGHT_PUBLIC, /* nothing: health checks, login */
    HEARTH_RIGHT_ANY,    /* a valid credential with any role in any tenant */
    HEARTH_RIGHT_INGEST, /* send profiles, spans, files, results; poll for tasks and policies */
    HEARTH_RIGHT_READ,   /* query, list, download */
    HEARTH_RIGHT_TASK,   /* create and cancel tasks, arm policies */
    HEARTH_RIGHT_EDIT,   /* rules, settings, deletion of profiles and uploads */
    HEARTH_RIGHT_ADMIN,  /* limits, retention, applications, tokens, users, grants, audit log */
    HEARTH_N_RIGHTS,
};

enum hearth_role {
#define X(NAME, name, rights, meaning) HEARTH_ROLE_##NAME,
#include "hearth/model/roles.def"
#undef X
    HEARTH_N_ROLES,
};

/* "viewer"; static. */
const char *hearth_role_name(enum hearth_role role);
/* False for a text that is no role. */
HEARTH_MUST_CHECK bool hearth_role_parse(struct hearth_str text, enum hearth_role *ret);
/* The roles and their order are no hierarchy: only this function says what a role may do. */
bool hearth_role_gives(enum hearth_role role, enum hearth_right right);

/* How a listener finds out who calls; a bit mask, because a listener may accept several ways. */
enum hearth_auth_mode {
    HEARTH_AUTH_NONE = 1u << 0,  /* everybody may do everything; loopback only */
    HEARTH_AUTH_TOKEN = 1u << 1, /* tokens, as bearer, basic password, DD-API-KEY, authentication */
    HEARTH_AUTH_USER = 1u << 2,  /* sessions of users who logged in with a password */
    HEARTH_AUTH_MTLS = 1u << 3,  /* client certificates */
    HEARTH_AUTH_OIDC = 1u << 4,  /* JWTs of listed issuers; sessions of users who logged in there */
    HEARTH_AUTH_PROXY = 1u << 5, /* a header that a trusted proxy sets */
};

/*
 * Parses a list such as "token,user". "none" stands alone.
 *
 * Returns  OK; INVALID_ARGUMENT for unknown or repeated modes, an empty list, and for "none"
 *          together with others.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_auth_modes_parse(struct hearth_str text, unsigned *ret_modes,
                                           struct hearth_err *err);

#define HEARTH_MAX_TENANT_BYTES 150

/*
 * INVALID_ARGUMENT for a name of other bytes than letters, digits and !-_.*'(), for "." and "..",
 * and for more than HEARTH_MAX_TENANT_BYTES. Source: the rules of X-Scope-OrgID in Pyroscope.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_tenant_name_check(struct hearth_str name,
                                                              struct hearth_err *err);

/* The tenant of grants for all tenants, present and future, and for the server as a whole. */
#define HEARTH_ALL_TENANTS "*"

struct hearth_grant {
    struct hearth_str subject; /* "user:alice", "token:k3Jf0aQz", "cert:CN=web", "group:sre" */
    struct hearth_str tenant;  /* a name, or HEARTH_ALL_TENANTS */
    enum hearth_role role;
    struct hearth_str selector; /* narrows the grant; empty: all series of the tenant */
};

/*
 * The part of a tenant's data that a caller may see: series that match at least one of the
 * selectors. n_selectors == 0: all of it.
 */
struct hearth_view {
    struct hearth_str tenant;
    const struct hearth_str *selectors;
    size_t n_selectors;
};

/* A copy with its texts, in arena; NULL: memory was refused. */
struct hearth_view *hearth_view_copy(const struct hearth_view *view, struct hearth_arena *arena);

/* True if a part of the tenant's data is hidden. NULL-safe. */
static inline bool hearth_view_is_narrow(const struct hearth_view *view)
{
    return view != NULL && view->n_selectors > 0;
}

#endif
