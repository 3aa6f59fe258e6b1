/*
 * access_internal.h -- the state of this room, and the snapshot that all of it reads.
 *
 * Threads: a snapshot never changes, except for the atomic times of last uses.
 */
#ifndef HEARTH_ENGINE_ACCESS_INTERNAL_H
#define HEARTH_ENGINE_ACCESS_INTERNAL_H

#include "hearth/base/clock.h"
#include "hearth/base/sync.h"
#include "hearth/engine/access_control.h"
#include "hearth/store/store_access.h"

#include "access/failures.h"

#include <stdatomic.h>

struct hearth_known_token {
    const struct hearth_token *row;
    struct hearth_str subject;        /* "token:ID" */
    struct hearth_grant_range grants; /* of the subject */
    _Atomic int64_t used_ms;          /* the last use; saved by the thread */
    _Atomic bool is_unsaved;
    char used_from[64]; /* address of the use that set is_unsaved; guarded by use_lock */
};

struct hearth_known_session {
    const struct hearth_session *row;
    struct hearth_grant_range *ranges; /* of the subject, then of its groups; [n_groups + 1] */
    _Atomic int64_t used_ms;
    _Atomic bool is_unsaved;
};

struct hearth_access_snapshot {
    atomic_size_t n_holders;
    struct hearth_arena arena;
    struct hearth_access_rows rows;
    struct hearth_known_token *tokens;     /* [rows.n_tokens], by id */
    struct hearth_known_session *sessions; /* [rows.n_sessions], by hash */
    int64_t loaded_mono_ns;
};

struct hearth_audit_buffer; /* audit.c: events that wait */
struct hearth_hashing;      /* passwords.c: callers that hash, callers that wait */

struct hearth_access {
    struct hearth_access_options options;
    _Atomic(const struct hearth_secret *) admin_token; /* that of options is the one of the start */
    struct hearth_store *store;
    struct hearth_cancel cancel; /* of the thread's own statements */
    pthread_t thread;
    struct hearth_mutex lock; /* guards current, stopping; wakes the thread */
    pthread_cond_t wake;
    bool stopping;
    _Atomic(struct hearth_access_snapshot *) current; /* NULL before the first load */
    struct hearth_mutex use_lock;                     /* guards used_from of tokens */
    struct hearth_failures failures;
    struct hearth_hashing *hashing;
    struct hearth_audit_buffer *audit;
};

/* ---- snapshot.c ---- */

/* The current snapshot, held for the caller; NULL before the first load. */
struct hearth_access_snapshot *hearth_snapshot_hold(struct hearth_access *access);
/* NULL-safe. */
void hearth_snapshot_release(struct hearth_access_snapshot *snapshot);
/* Reads all rows and makes them the current snapshot. */
HEARTH_MUST_CHECK enum hearth_status hearth_snapshot_load(struct hearth_access *access,
                                                          struct hearth_cancel *cancel,
                                                          struct hearth_err *err);
/* Loads if the database has a newer version, or the snapshot is a minute old. */
HEARTH_MUST_CHECK enum hearth_status hearth_snapshot_refresh(struct hearth_access *access,
                                                             struct hearth_cancel *cancel,
                                                             struct hearth_err *err);
/* Saves the last uses of credentials. */
void hearth_snapshot_save_uses(struct hearth_access *access);

/* The grants of a subject. */
struct hearth_grant_range hearth_snapshot_grants(const struct hearth_access_snapshot *snapshot,
                                                 struct hearth_str subject);
struct hearth_known_token *hearth_snapshot_token(const struct hearth_access_snapshot *snapshot,
                                                 struct hearth_str id);
struct hearth_known_session *hearth_snapshot_session(const struct hearth_access_snapshot *snapshot,
                                                     struct hearth_str hash);
const struct hearth_user *hearth_snapshot_user(const struct hearth_access_snapshot *snapshot,
                                               struct hearth_str name);

static inline int64_t hearth_access_now_ms(void)
{
    return hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
}

/* True for a grant of the role admin in all tenants, not narrowed. */
bool hearth_grant_is_server_admin(const struct hearth_grant *grant);
#define HEARTH_SETUP_TOKEN_NAME "setup"
#define HEARTH_OWN_SUBJECT      "hearthd" /* who created what the server made itself */

/* ---- access_control.c ---- */

/* The scope of this room's statements. */
#define HEARTH_ACCESS_SCOPE(access, cancel_, arena_) \
    (&(const struct hearth_scope){.store = (access)->store, .cancel = (cancel_), .arena = (arena_)})

/* After a write: loads, so that what was written holds here at once. Failures are left to the
 * thread. */
void hearth_access_wrote(struct hearth_access *access, struct hearth_cancel *cancel);
/* Fills with random bytes. */
HEARTH_MUST_CHECK enum hearth_status hearth_access_random(void *out, size_t n,
                                                          struct hearth_err *err);
/*
 * Whether a grant makes its subject an administrator of the server. Grants of setup tokens, of
 * tokens that have expired, and of users that are unknown or disabled do not.
 */
bool hearth_access_makes_admin(const struct hearth_access_snapshot *snapshot,
                               const struct hearth_grant *grant);
/* The number of grants that do. */
size_t hearth_access_count_admins(const struct hearth_access_snapshot *snapshot);
/* After a change that may have made an administrator: if there is one, deletes the setup tokens. */
HEARTH_MUST_CHECK enum hearth_status hearth_access_end_setup(struct hearth_access *access,
                                                             struct hearth_cancel *cancel,
                                                             struct hearth_err *err);
/* A new token: its text, its id (a view of it), and the hash of its secret, in the arena. */
HEARTH_MUST_CHECK enum hearth_status hearth_access_make_token(struct hearth_arena *arena,
                                                              struct hearth_str *ret_text,
                                                              struct hearth_token *ret,
                                                              struct hearth_err *err);

/* ---- audit.c ---- */

HEARTH_MUST_CHECK enum hearth_status hearth_audit_init(struct hearth_access *access,
                                                       struct hearth_err *err);
void hearth_audit_free(struct hearth_access *access);
/* Writes the noted events, if the database answers and, unless this is the end, it is time. */
void hearth_audit_flush(struct hearth_access *access, struct hearth_cancel *cancel, bool is_end);

#endif
