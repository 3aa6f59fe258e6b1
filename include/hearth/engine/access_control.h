/*
 * access_control.h -- who calls, and what the caller may do; tokens, users, sessions, grants; the
 * audit log.
 *
 * Each server holds all credentials and grants in memory: a *snapshot*, which never changes. A
 * thread checks the database for a newer version each look_each_ns, so a change by another server
 * holds here within half a second; a change by this server holds immediately. While the
 * database is away, the last snapshot holds; without any, all credentials are UNAVAILABLE.
 *
 *   hearth_access_identify   a credential -> an admission (who it is)
 *   hearth_access_allow      admission, right, tenant -> a view (what part of the data)
 *
 * Both only compute: no I/O, no waiting. The hashing of passwords takes tens of milliseconds and is
 * in hearth_access_login alone, for a few callers at a time.
 *
 * Wrong credentials are counted by the client's address, wrong passwords also by user. After
 * max_wrong within a minute, the next ones are RESOURCE_EXHAUSTED. Tokens are too
 * long to be guessed, so a valid token is always accepted; a password is not even checked.
 *
 * Threads: safe; start and stop from one thread.
 * Errors:  UNAUTHENTICATED: unknown, expired or wrong credentials. PERMISSION_DENIED: known, but
 *          not allowed. The messages tell a caller nothing about tenants, users and tokens that it
 *          may not see.
 */
#ifndef HEARTH_ENGINE_ACCESS_CONTROL_H
#define HEARTH_ENGINE_ACCESS_CONTROL_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/cancel.h"
#include "hearth/base/secret.h"
#include "hearth/model/access.h"
#include "hearth/model/credential.h"

struct hearth_access;
struct hearth_store;

#define HEARTH_ACCESS_MAX_GROUPS 64 /* groups of a subject that count */

/* Shows a new token to the person who started the server. Called once, on the thread of _start. */
typedef void hearth_setup_token_fn(const char *token);

struct hearth_access_options {
    int64_t session_idle_ns; /* a session that is not used ends; default 12 h */
    int64_t session_max_ns;  /* a session ends; default 7 d */
    int64_t max_sessions;    /* of a subject; the oldest end; default 20 */
    int64_t max_wrong;       /* wrong credentials per minute, of an address or a user; default 20 */
    /*
     * Interval between two checks for changes by other servers; default 250 ms. Longer only if no
     * listener authenticates, because a deleted token is accepted for that long.
     */
    int64_t look_each_ns;
    /* A token with the role admin in all tenants; kept; NULL: none. */
    const struct hearth_secret *admin_token;
    /*
     * Called if no subject that can call has the role admin in all tenants, with a token that has
     * it. Users that are unknown or disabled and tokens that have expired cannot call. The token
     * ends after an hour, or as soon as another subject has the role. NULL: no token is made.
     */
    hearth_setup_token_fn *offer_setup_token;
};

void hearth_access_options_init(struct hearth_access_options *options);

/* Starts the thread. The database need not be reachable. */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_start(const struct hearth_access_options *options, /* copied */
                                       struct hearth_store *store,                  /* kept */
                                       struct hearth_access **ret, struct hearth_err *err);
/* False until the credentials are known: callers are UNAVAILABLE. */
bool hearth_access_is_loaded(const struct hearth_access *access);
/* Replaces admin_token; kept; NULL: none. Safe. */
void hearth_access_set_admin_token(struct hearth_access *access, const struct hearth_secret *token);
/*
 * Writes last uses and events that wait, if the database answers within a second; stops the thread.
 * NULL-safe.
 */
void hearth_access_stop(struct hearth_access *access);

/* ---- who calls ---- */

enum hearth_credential_kind {
    HEARTH_CREDENTIAL_TOKEN,   /* the text of a token */
    HEARTH_CREDENTIAL_SESSION, /* the value of a session's cookie */
    HEARTH_CREDENTIAL_SUBJECT, /* a subject that the caller has verified: certificate, JWT, proxy */
};

struct hearth_credential {
    enum hearth_credential_kind kind;
    struct hearth_str text;            /* token or cookie */
    const struct hearth_str *subjects; /* SUBJECT: the caller itself, then its groups */
    size_t n_subjects;
    int64_t expires_ms;        /* SUBJECT: the end of what it was verified by; 0: never */
    struct hearth_str address; /* of the client, for counting failures and for the last use */
};

struct hearth_access_snapshot;

/* Grants of one subject, next to each other in a snapshot. */
struct hearth_grant_range {
    const struct hearth_stored_grant *first;
    size_t n;
};

/*
 * Who calls. Holds a snapshot, and must be released. A zeroed admission is that of a caller who
 * may do everything (HEARTH_AUTH_NONE), and holds nothing. Used by one thread at a time.
 */
struct hearth_admission {
    struct hearth_access *access; /* NULL: may do everything */
    struct hearth_access_snapshot *snapshot;
    struct hearth_str subject; /* "token:k3Jf0aQz7B", "user:alice" */
    struct hearth_str name;    /* of the token; otherwise the subject */
    int64_t expires_ms;        /* of the token, session or subject; 0: never */
    /* Private: how it was identified, and the grants of the caller (own) and of its groups. */
    enum hearth_credential_kind kind;
    struct hearth_str key; /* id of a token, hash of a session; p is NULL for a set one */
    struct hearth_str *subjects;
    size_t n_subjects;
    struct hearth_grant_range own, *ranges;
    size_t n_ranges;
    struct hearth_arena arena; /* copied subjects, ranges */
    struct hearth_arena views; /* selectors of views, until the admission is renewed */
};

/*
 * Finds out who calls. UNAUTHENTICATED; RESOURCE_EXHAUSTED after too many wrong ones; UNAVAILABLE
 * before the first snapshot; NO_MEMORY. A subject without any grant is PERMISSION_DENIED.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_identify(struct hearth_access *access,
                                          const struct hearth_credential *credential,
                                          struct hearth_admission *ret, struct hearth_err *err);
void hearth_admission_release(struct hearth_admission *admission);
/*
 * For a credential that the caller itself found to be wrong: counts the failure of the address.
 * UNAUTHENTICATED with the reason, RESOURCE_EXHAUSTED after too many.
 */
enum hearth_status hearth_access_refuse(struct hearth_access *access, struct hearth_str address,
                                        const char *why, struct hearth_err *err);
/*
 * Checks an admission that lasts against the credentials that hold now. Views that it gave are no
 * longer valid. UNAUTHENTICATED if the token or session has ended; PERMISSION_DENIED without
 * any grant; NO_MEMORY. Costs next to nothing while no credential changes.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_admission_renew(struct hearth_admission *admission,
                                          struct hearth_err *err);

/*
 * Checks that the caller has the right in the tenant, and returns what it may see there. The view
 * borrows from the admission, and `tenant` from the caller.
 *
 * tenant  a name; HEARTH_ALL_TENANTS: the server as a whole
 *
 * Returns  OK; PERMISSION_DENIED, with one message whether or not the tenant exists; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_allow(struct hearth_admission *admission, enum hearth_right right,
                                       struct hearth_str tenant, struct hearth_view *ret_view,
                                       struct hearth_err *err);
/* True if the caller has the right in some tenant. */
bool hearth_access_allows_any(const struct hearth_admission *admission, enum hearth_right right);
/*
 * The only tenant in which the caller has any role; p is NULL if there are several, or a grant for
 * all tenants.
 */
struct hearth_str hearth_access_only_tenant(const struct hearth_admission *admission);
/* The grants of the caller, in the arena. */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_grants_of(const struct hearth_admission *admission,
                                           struct hearth_arena *arena, struct hearth_grant **ret,
                                           size_t *ret_n, struct hearth_err *err);

/* ---- sessions ---- */

struct hearth_login {
    struct hearth_str user, password;
    struct hearth_str address, agent;
};

#define HEARTH_COOKIE_CHARS 64 /* of a session's cookie: hexadecimal digits, without the NUL */

/*
 * Checks a password and begins a session. Blocks: hashes, waits its turn, writes. A user that does
 * not exist takes as long as a wrong password. UNAUTHENTICATED; RESOURCE_EXHAUSTED after too many
 * wrong ones, or when too many log-ins wait.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_login(struct hearth_access *access,
                                       const struct hearth_login *login,
                                       struct hearth_cancel *cancel,
                                       char ret_cookie[HEARTH_COOKIE_CHARS + 1],
                                       struct hearth_err *err);
/* Begins a session of a verified subject and its groups: log-in by OIDC. */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_begin_session(struct hearth_access *access,
                                               const struct hearth_str *subjects, size_t n_subjects,
                                               const struct hearth_login *from,
                                               struct hearth_cancel *cancel,
                                               char ret_cookie[HEARTH_COOKIE_CHARS + 1],
                                               struct hearth_err *err);
/* Ends the session of the caller. FAILED_PRECONDITION if it has another kind of credential. */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_logout(const struct hearth_admission *admission,
                                        struct hearth_cancel *cancel, struct hearth_err *err);

/* ---- administration ---- */

/*
 * A call to change or list credentials. The caller must have the right ADMIN, not narrowed, in each
 * tenant that the change concerns; lists contain only what concerns such tenants. Users concern the
 * server as a whole.
 */
struct hearth_access_call {
    struct hearth_access *access;
    struct hearth_admission *admission; /* of the caller */
    struct hearth_arena *arena;
    struct hearth_cancel *cancel;
};

struct hearth_new_token {
    struct hearth_str name;            /* 1 to 100 bytes */
    const struct hearth_grant *grants; /* without subjects; at least one, at most 64 */
    size_t n_grants;
    int64_t expires_ms; /* 0: never */
};

struct hearth_made_token {
    struct hearth_str id, text; /* in the arena of the call; the text is returned this once */
    int64_t expires_ms;         /* 0: never */
};

/* INVALID_ARGUMENT; PERMISSION_DENIED. */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_create_token(const struct hearth_access_call *call,
                                              const struct hearth_new_token *token,
                                              struct hearth_made_token *ret,
                                              struct hearth_err *err);

struct hearth_rotation {
    struct hearth_str id;
    int64_t overlap_ns; /* how long the old token stays valid */
    int64_t expires_ms; /* of the new token; 0: it lives as long as the old one was to */
    bool never_expires; /* the new token; expires_ms is 0 */
};

/* Creates a token with the name and grants of another one. NOT_FOUND; as create_token. */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_rotate_token(const struct hearth_access_call *call,
                                              const struct hearth_rotation *rotation,
                                              struct hearth_made_token *ret,
                                              struct hearth_err *err);
/* NOT_FOUND, also for tokens that the caller may not see. */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_delete_token(const struct hearth_access_call *call,
                                              struct hearth_str id, struct hearth_err *err);

struct hearth_listed_token {
    struct hearth_token token; /* without its hash */
    struct hearth_grant *grants;
    size_t n_grants;
};
/* Sorted by name, then id. */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_tokens(const struct hearth_access_call *call,
                                        struct hearth_listed_token **ret, size_t *ret_n,
                                        struct hearth_err *err);

/*
 * Adds a user, who can log in with the password. ALREADY_EXISTS; INVALID_ARGUMENT for names of
 * other bytes than letters, digits and .-_@+, and for passwords under 12 bytes, over 1,024, or
 * that contain the name.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_create_user(const struct hearth_access_call *call,
                                             struct hearth_str name, struct hearth_str password,
                                             struct hearth_err *err);
/*
 * A caller may set its own password, and must then give the right old_password. All sessions of the
 * user end.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_set_password(const struct hearth_access_call *call,
                                              struct hearth_str name, struct hearth_str password,
                                              struct hearth_str old_password,
                                              struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_access_disable_user(const struct hearth_access_call *call,
                                              struct hearth_str name, bool disabled,
                                              struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_access_delete_user(const struct hearth_access_call *call,
                                             struct hearth_str name, struct hearth_err *err);
/* Ends all sessions of a subject; of oneself, or as an administrator. */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_end_sessions(const struct hearth_access_call *call,
                                              struct hearth_str subject, int64_t *ret_n,
                                              struct hearth_err *err);

struct hearth_listed_user {
    struct hearth_user user; /* without its password */
    int64_t n_sessions;
};
/* Sorted by name. */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_users(const struct hearth_access_call *call,
                                       struct hearth_listed_user **ret, size_t *ret_n,
                                       struct hearth_err *err);

/*
 * Adds a grant. The subject is "user:", "group:", "cert:", "oidc:" or "proxy:" and a name; grants
 * of tokens are made with them. An equal grant stays as it is.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_add_grant(const struct hearth_access_call *call,
                                           const struct hearth_grant *grant, int32_t *ret_id,
                                           struct hearth_err *err);
/* NOT_FOUND. FAILED_PRECONDITION for the last grant of admin in all tenants. */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_delete_grant(const struct hearth_access_call *call, int32_t id,
                                              struct hearth_err *err);
/* Sorted by subject, tenant, role. */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_grants(const struct hearth_access_call *call,
                                        struct hearth_stored_grant **ret, size_t *ret_n,
                                        struct hearth_err *err);

/* ---- the audit log ---- */

/* Writes an event and waits for its commit. id and at_ms are set here. */
HEARTH_MUST_CHECK
enum hearth_status hearth_audit_write(struct hearth_access *access,
                                      const struct hearth_audit_event *event,
                                      struct hearth_cancel *cancel, struct hearth_err *err);
/*
 * Notes an event that is written within a second: refusals, which must cost a client's flood
 * nothing. Events that differ only in their time share a row while they wait; beyond 256 kinds,
 * they are counted in hearth_audit_unrecorded_total.
 */
void hearth_audit_note(struct hearth_access *access, const struct hearth_audit_event *event);

struct hearth_audit_query {
    int64_t from_ms, to_ms;            /* both included; to_ms 0: now */
    struct hearth_str tenant;          /* empty: all that the caller may see */
    struct hearth_str subject, action; /* empty: all; action: a prefix */
    struct hearth_str outcome;
    int64_t before_id, limit; /* limit 0: 100; at most 1,000 */
};
/* The latest first. Only events of tenants that the caller administers. */
HEARTH_MUST_CHECK
enum hearth_status hearth_audit_list(const struct hearth_access_call *call,
                                     const struct hearth_audit_query *query,
                                     struct hearth_audit_event **ret, size_t *ret_n,
                                     struct hearth_err *err);

#endif
