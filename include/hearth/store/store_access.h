/*
 * store_access.h -- stores tokens, users, sessions, grants and the audit log
 * (hearth/model/credential.h).
 *
 * All of it but the audit log is small and is read whole. Each write that changes a row raises the
 * version in its own transaction, so a server sees by one cheap statement that it must read again.
 * Writes run one at a time, over all servers.
 *
 * The tenant of the scope is ignored. Threads: safe, also between servers.
 * Errors:  UNAVAILABLE, INTERNAL, NO_MEMORY; others as named.
 */
#ifndef HEARTH_STORE_STORE_ACCESS_H
#define HEARTH_STORE_STORE_ACCESS_H

#include "hearth/model/credential.h"
#include "hearth/store/store.h"

/* All rows, from one snapshot. */
struct hearth_access_rows {
    int64_t version;
    struct hearth_token *tokens; /* by id */
    size_t n_tokens;
    struct hearth_user *users; /* by name */
    size_t n_users;
    struct hearth_session *sessions; /* by hash; without ended ones, by this machine's clock */
    size_t n_sessions;
    /* By subject, tenant, role, selector, in C order; without roles that this server lacks. */
    struct hearth_stored_grant *grants;
    size_t n_grants;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_store_access_version(const struct hearth_scope *scope,
                                               int64_t *ret_version, struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_store_access_load(const struct hearth_scope *scope,
                                            struct hearth_access_rows *ret, struct hearth_err *err);

/* ---- tokens ---- */

/*
 * Add a token with its grants. Their subject is "token:ID", whatever grants[].subject is.
 * ALREADY_EXISTS if the id is taken.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_token_add(const struct hearth_scope *scope,
                                          const struct hearth_token *token,
                                          const struct hearth_grant *grants, size_t n_grants,
                                          struct hearth_err *err);
/*
 * Let the token end at expires_ms, unless it ends earlier; 0: delete it and its grants. NOT_FOUND.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_token_end(const struct hearth_scope *scope, struct hearth_str id,
                                          int64_t expires_ms, struct hearth_err *err);

/* ---- users and sessions ---- */

/* Add a user. ALREADY_EXISTS. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_user_add(const struct hearth_scope *scope,
                                         const struct hearth_user *user, struct hearth_err *err);

/* What to change of a user. */
struct hearth_user_change {
    struct hearth_str name;
    const struct hearth_str *password; /* NULL: keep it; otherwise all sessions of the user end */
    const bool *is_disabled;           /* NULL: keep it; true also ends all sessions of the user */
    int64_t now_ms;
};

/* NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_user_change(const struct hearth_scope *scope,
                                            const struct hearth_user_change *change,
                                            struct hearth_err *err);
/* Delete the user, the user's grants and sessions. NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_user_delete(const struct hearth_scope *scope,
                                            struct hearth_str name, struct hearth_err *err);

/*
 * Add a session and, of a user "user:NAME", note the log-in. The newest max_of_subject sessions of
 * the subject stay, among them this one; 0: all. Address and agent are cut to 256 and 512 bytes.
 * PERMISSION_DENIED: the user was disabled meanwhile. UNAUTHENTICATED: session->password is given,
 * and is not that of the user any more. ALREADY_EXISTS: the hash is taken.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_session_add(const struct hearth_scope *scope,
                                            const struct hearth_session *session,
                                            int64_t max_of_subject, struct hearth_err *err);
/* Delete a session by its hash, or all sessions of a subject; *ret_n: their number. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_session_delete(const struct hearth_scope *scope,
                                               struct hearth_str hash, size_t *ret_n,
                                               struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_store_sessions_end(const struct hearth_scope *scope,
                                             struct hearth_str subject, size_t *ret_n,
                                             struct hearth_err *err);

/* The last use of a token or session. */
struct hearth_credential_use {
    struct hearth_str id;   /* of a token; empty: of a session */
    struct hearth_str hash; /* of a session */
    int64_t at_ms;
    struct hearth_str from; /* address; tokens only */
};

/* Note last uses: later times win. Does not raise the version. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_access_note_use(const struct hearth_scope *scope,
                                                const struct hearth_credential_use *uses, size_t n,
                                                struct hearth_err *err);

/* ---- grants ---- */

/* Add a grant; *ret_id is that of an equal grant if there is one. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_grant_add(const struct hearth_scope *scope,
                                          const struct hearth_stored_grant *grant, int32_t *ret_id,
                                          struct hearth_err *err);
/* NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_grant_delete(const struct hearth_scope *scope, int32_t id,
                                             struct hearth_err *err);

/* ---- the audit log ---- */

/*
 * Add events; their months get partitions if they have none. OUT_OF_RANGE: a time before 1970 or
 * after the year 9999.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_audit_add(const struct hearth_scope *scope,
                                          const struct hearth_audit_event *events, size_t n,
                                          struct hearth_err *err);

/* Which events to read; texts may be empty: all. */
struct hearth_audit_filter {
    int64_t from_ms, to_ms;            /* both included */
    const struct hearth_str *tenants;  /* events of these tenants */
    size_t n_tenants;                  /* 0: of all tenants and of the server as a whole */
    struct hearth_str subject, action; /* action: a prefix */
    struct hearth_str outcome;
    int64_t before_id; /* only events with a smaller id; 0: all */
    int64_t limit;     /* at least 1 */
};

/* The latest first: by descending id, the order in which they were stored. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_audit(const struct hearth_scope *scope,
                                      const struct hearth_audit_filter *filter,
                                      struct hearth_audit_event **ret, size_t *ret_n,
                                      struct hearth_err *err);

#endif
