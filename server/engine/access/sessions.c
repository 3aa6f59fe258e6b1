/*
 * sessions.c -- log-in by password, and sessions.
 *
 * A wrong password, an unknown user and a disabled one have the same answer and take the same time.
 */
#include "hearth/base/clock.h"
#include "hearth/base/hash.h"

#include "access/access_internal.h"
#include "access/passwords.h"

#include <assert.h>
#include <stdio.h>

#define COOKIE_RANDOM_BYTES (HEARTH_COOKIE_CHARS / 2)
#define MAX_AGENT_BYTES     200 /* of a User-Agent that is kept */

static void hash_cookie(struct hearth_str cookie, unsigned char ret[HEARTH_SHA256_BYTES])
{
    struct hearth_sha256 state;

    hearth_sha256_init(&state);
    hearth_sha256_add(&state, cookie);
    hearth_sha256_end(&state, ret);
}

static enum hearth_status make_cookie(char ret[HEARTH_COOKIE_CHARS + 1], struct hearth_err *err)
{
    unsigned char random[COOKIE_RANDOM_BYTES];

    HEARTH_TRY(hearth_access_random(random, sizeof random, err));
    for (size_t i = 0; i < sizeof random; i++) {
        (void)snprintf(ret + 2 * i, 3, "%02x", random[i]);
    }

    return HEARTH_OK;
}

/* encoded: the password that was checked; p is NULL if none was. */
static enum hearth_status begin_session(struct hearth_access *access,
                                        const struct hearth_str *subjects, size_t n_subjects,
                                        const struct hearth_login *from, struct hearth_str encoded,
                                        struct hearth_cancel *cancel,
                                        char ret_cookie[HEARTH_COOKIE_CHARS + 1],
                                        struct hearth_err *err)
{
    unsigned char hash[HEARTH_SHA256_BYTES];
    int64_t now_ms = hearth_access_now_ms();
    size_t n_groups = n_subjects - 1;
    struct hearth_str groups[HEARTH_ACCESS_MAX_GROUPS];

    assert(n_subjects > 0);
    n_groups = n_groups < HEARTH_ACCESS_MAX_GROUPS ? n_groups : HEARTH_ACCESS_MAX_GROUPS;
    for (size_t i = 0; i < n_groups; i++) {
        groups[i] = subjects[i + 1];
    }

    HEARTH_TRY(make_cookie(ret_cookie, err));
    hash_cookie(hearth_str_n(ret_cookie, HEARTH_COOKIE_CHARS), hash);
    const struct hearth_session session = {
        .hash = hearth_str_n((const char *)hash, sizeof hash),
        .subject = subjects[0],
        .groups = groups,
        .n_groups = n_groups,
        .created_ms = now_ms,
        .last_used_ms = now_ms,
        .expires_ms = now_ms + access->options.session_max_ns / HEARTH_NS_PER_MS,
        .address = from->address,
        .agent = hearth_str_n(from->agent.p,
                              from->agent.n < MAX_AGENT_BYTES ? from->agent.n : MAX_AGENT_BYTES),
        .password = encoded,
    };
    HEARTH_TRY(hearth_store_session_add(HEARTH_ACCESS_SCOPE(access, cancel, NULL), &session,
                                        access->options.max_sessions, err));
    hearth_access_wrote(access, cancel);

    return HEARTH_OK;
}

enum hearth_status hearth_access_begin_session(struct hearth_access *access,
                                               const struct hearth_str *subjects, size_t n_subjects,
                                               const struct hearth_login *from,
                                               struct hearth_cancel *cancel,
                                               char ret_cookie[HEARTH_COOKIE_CHARS + 1],
                                               struct hearth_err *err)
{
    return begin_session(access, subjects, n_subjects, from, hearth_str_n(NULL, 0), cancel,
                         ret_cookie, err);
}

/* Too many failures of the address or of the user: the password is not checked. */
static enum hearth_status check_guesses(struct hearth_access *access,
                                        const struct hearth_login *login,
                                        struct hearth_str user_key, struct hearth_err *err)
{
    int64_t most = access->options.max_wrong;
    return hearth_failures_count(&access->failures, login->address) >= most ||
                   hearth_failures_count(&access->failures, user_key) >= most
               ? HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                             "too many wrong passwords within a minute: wait, then try again")
               : HEARTH_OK;
}

/* The encoded password of a user who may log in; empty for anybody else. In the arena. */
static struct hearth_str find_password(struct hearth_access *access, struct hearth_str name,
                                       struct hearth_arena *arena)
{
    struct hearth_str encoded = {"", 0};
    struct hearth_access_snapshot *held = hearth_snapshot_hold(access);
    const struct hearth_user *user = held == NULL ? NULL : hearth_snapshot_user(held, name);

    if (user != NULL && !user->is_disabled) {
        encoded = hearth_arena_str(arena, user->password);
    }
    hearth_snapshot_release(held);

    return encoded;
}

enum hearth_status hearth_access_login(struct hearth_access *access,
                                       const struct hearth_login *login,
                                       struct hearth_cancel *cancel,
                                       char ret_cookie[HEARTH_COOKIE_CHARS + 1],
                                       struct hearth_err *err)
{
    static const size_t max_bytes = 16384;
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    bool is_right = false;

    hearth_arena_init(&arena, max_bytes);
    const char *subject =
        hearth_arena_printf(&arena, "user:" HEARTH_STR_FMT, HEARTH_STR_ARG(login->user));
    if (subject == NULL) {
        return HEARTH_FAIL_ARENA(err, &arena);
    }

    /* Guesses are counted before they are checked: concurrent guesses do not pass the limit. */
    struct hearth_str user_key = hearth_str_c(subject);
    HEARTH_TRY(check_guesses(access, login, user_key, err));
    hearth_failures_add(&access->failures, user_key);
    hearth_failures_add(&access->failures, login->address);
    struct hearth_str password = login->password;
    password.n = password.n > HEARTH_PASSWORD_MAX_BYTES ? HEARTH_PASSWORD_MAX_BYTES : password.n;
    struct hearth_str encoded = find_password(access, login->user, &arena);
    HEARTH_TRY(hearth_password_check(access->hashing, password, encoded, cancel, &is_right, err));
    if (!is_right || password.n != login->password.n) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "user or password is wrong");
    }

    hearth_failures_forget(&access->failures, user_key);
    hearth_failures_undo(&access->failures, login->address);

    return begin_session(access, &user_key, 1, login, encoded, cancel, ret_cookie, err);
}

enum hearth_status hearth_access_logout(const struct hearth_admission *admission,
                                        struct hearth_cancel *cancel, struct hearth_err *err)
{
    size_t n;

    if (admission->access == NULL || admission->kind != HEARTH_CREDENTIAL_SESSION) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION, "the caller has no session");
    }

    HEARTH_TRY(hearth_store_session_delete(HEARTH_ACCESS_SCOPE(admission->access, cancel, NULL),
                                           admission->key, &n, err));
    hearth_access_wrote(admission->access, cancel);

    return HEARTH_OK;
}
