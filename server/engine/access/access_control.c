/*
 * access_control.c -- the life of this room: options, thread, random bytes, new tokens, setup.
 *
 * The thread looks for a newer version four times a second. That is one statement that reads one
 * row, and it makes a deletion hold on all servers within half a second. Where nobody is asked who
 * calls, it looks more seldom: these statements were a sixth of what an idle server cost
 * PostgreSQL.
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/signals.h"

#include "access/access_internal.h"
#include "access/passwords.h"
#include "common/call_internal.h"

#include <assert.h>

#define TURN_NS        (250 * HEARTH_NS_PER_MS)
#define LONG_TURN_NS   HEARTH_NS_PER_SEC /* if credentials are looked at less often */
#define SAVE_EACH_NS   (10 * HEARTH_NS_PER_SEC)
#define STATEMENT_NS   (5 * HEARTH_NS_PER_SEC) /* the deadline of the thread's statements */
#define SETUP_TOKEN_NS HEARTH_NS_PER_HOUR

void hearth_access_options_init(struct hearth_access_options *options)
{
    *options = (struct hearth_access_options){
        .session_idle_ns = 12 * HEARTH_NS_PER_HOUR,
        .session_max_ns = 7 * HEARTH_NS_PER_DAY,
        .max_sessions = 20,
        .max_wrong = 20,
        .look_each_ns = TURN_NS,
    };
}

enum hearth_status hearth_access_make_token(struct hearth_arena *arena, struct hearth_str *ret_text,
                                            struct hearth_token *ret, struct hearth_err *err)
{
    unsigned char random[HEARTH_TOKEN_RANDOM_BYTES];
    unsigned char *hash = hearth_arena_alloc(arena, HEARTH_SHA256_BYTES);
    char *text = hearth_arena_alloc(arena, HEARTH_TOKEN_TEXT_CHARS + 1);

    if (hash == NULL || text == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(hearth_access_random(random, sizeof random, err));
    hearth_token_make(random, text);
    *ret_text = hearth_str_n(text, HEARTH_TOKEN_TEXT_CHARS);
    bool is_token = hearth_token_parse(*ret_text, &ret->id, hash);
    HEARTH_ASSERT(is_token);
    ret->hash = hearth_str_n((const char *)hash, HEARTH_SHA256_BYTES);

    return HEARTH_OK;
}

void hearth_access_wrote(struct hearth_access *access, struct hearth_cancel *cancel)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    if (hearth_snapshot_load(access, cancel, &err) != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_WARN, "access", "a change of credentials is not in force here yet",
                   "reason", err.msg, NULL);
    }
}

/* ---- the setup token ---- */

static bool is_setup_token(const struct hearth_token *token)
{
    return hearth_str_eq_c(token->name, HEARTH_SETUP_TOKEN_NAME) &&
           hearth_str_eq_c(token->created_by, HEARTH_OWN_SUBJECT);
}

/* Whether a token or a user that the subject names can call. Names of issuers, proxies and
 * certificates are known to those only: they can. */
static bool can_subject_call(const struct hearth_access_snapshot *snapshot,
                             struct hearth_str subject)
{
    size_t colon = hearth_str_find(subject, ':', 0);
    size_t n_kind = colon < subject.n ? colon + 1 : 0;
    struct hearth_str name = hearth_str_n(subject.p + n_kind, subject.n - n_kind);

    if (hearth_str_starts(subject, HEARTH_STR("token:"))) {
        const struct hearth_known_token *token = hearth_snapshot_token(snapshot, name);
        return token != NULL && !is_setup_token(token->row) &&
               (token->row->expires_ms == 0 || token->row->expires_ms > hearth_access_now_ms());
    }
    if (hearth_str_starts(subject, HEARTH_STR("user:"))) {
        const struct hearth_user *user = hearth_snapshot_user(snapshot, name);
        return user != NULL && !user->is_disabled;
    }

    return true;
}

bool hearth_access_makes_admin(const struct hearth_access_snapshot *snapshot,
                               const struct hearth_grant *grant)
{
    return hearth_grant_is_server_admin(grant) && can_subject_call(snapshot, grant->subject);
}

size_t hearth_access_count_admins(const struct hearth_access_snapshot *snapshot)
{
    size_t n = 0;

    for (size_t i = 0; i < snapshot->rows.n_grants; i++) {
        n += hearth_access_makes_admin(snapshot, &snapshot->rows.grants[i].grant) ? 1 : 0;
    }

    return n;
}

/* Deletes the setup tokens of the snapshot. */
static enum hearth_status delete_setup_tokens(struct hearth_access *access,
                                              const struct hearth_access_snapshot *held,
                                              struct hearth_cancel *cancel, struct hearth_err *err)
{
    for (size_t i = 0; i < held->rows.n_tokens; i++) {
        if (!is_setup_token(&held->rows.tokens[i])) {
            continue;
        }
        enum hearth_status status = hearth_store_token_end(
            HEARTH_ACCESS_SCOPE(access, cancel, NULL), held->rows.tokens[i].id, 0, err);
        if (status != HEARTH_OK && status != HEARTH_NOT_FOUND) {
            return status;
        }
        hearth_access_wrote(access, cancel);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_access_end_setup(struct hearth_access *access,
                                           struct hearth_cancel *cancel, struct hearth_err *err)
{
    struct hearth_access_snapshot *held = hearth_snapshot_hold(access);
    enum hearth_status status = HEARTH_OK;

    if (held != NULL && hearth_access_count_admins(held) > 0) {
        status = delete_setup_tokens(access, held, cancel, err);
    }
    hearth_snapshot_release(held);

    return status;
}

static enum hearth_status make_setup_token(struct hearth_access *access,
                                           struct hearth_cancel *cancel, struct hearth_arena *arena,
                                           struct hearth_str *ret_text, struct hearth_err *err)
{
    struct hearth_token token = {.name = HEARTH_STR(HEARTH_SETUP_TOKEN_NAME),
                                 .created_by = HEARTH_STR(HEARTH_OWN_SUBJECT),
                                 .created_ms = hearth_access_now_ms()};
    const struct hearth_grant grant = {.tenant = HEARTH_STR(HEARTH_ALL_TENANTS),
                                       .role = HEARTH_ROLE_ADMIN};

    token.expires_ms = token.created_ms + SETUP_TOKEN_NS / HEARTH_NS_PER_MS;
    HEARTH_TRY(hearth_access_make_token(arena, ret_text, &token, err));
    HEARTH_TRY(
        hearth_store_token_add(HEARTH_ACCESS_SCOPE(access, cancel, arena), &token, &grant, 1, err));
    hearth_access_wrote(access, cancel);

    return HEARTH_OK;
}

/* Once the credentials are known, offers a setup token if no subject may administer the server. */
static void offer_setup_token(struct hearth_access *access)
{
    struct hearth_access_snapshot *held = hearth_snapshot_hold(access);
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_str text;

    if (held == NULL) {
        return;
    }
    bool has_admin = hearth_access_count_admins(held) > 0;
    hearth_snapshot_release(held);
    if (has_admin) {
        access->options.offer_setup_token = NULL;
        return;
    }

    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    if (make_setup_token(access, &access->cancel, &arena, &text, &err) == HEARTH_OK) {
        access->options.offer_setup_token(text.p);
        access->options.offer_setup_token = NULL;
    }
}

/* ---- the thread ---- */

/* True at the stop; otherwise after a while. */
static bool wait_for_turn(struct hearth_access *access)
{
    bool is_long = access->options.look_each_ns >= LONG_TURN_NS &&
                   access->options.offer_setup_token == NULL && hearth_access_is_loaded(access);
    int64_t until_ns = hearth_clock_mono_ns() + (is_long ? LONG_TURN_NS : TURN_NS);

    hearth_mutex_lock(&access->lock);
    while (!access->stopping && hearth_clock_mono_ns() < until_ns) {
        (void)hearth_mutex_wait_until(&access->lock, &access->wake, until_ns);
    }
    bool stops = access->stopping;
    hearth_mutex_unlock(&access->lock);

    return stops;
}

static void *run_access(void *arg)
{
    struct hearth_access *access = arg;
    int64_t saved_ns = hearth_clock_mono_ns(), looked_ns = INT64_MIN / 2;

    do {
        struct hearth_err err = HEARTH_ERR_INIT;
        int64_t now = hearth_clock_mono_ns();
        access->cancel.deadline_mono_ns = now + STATEMENT_NS;
        if (now - saved_ns >= SAVE_EACH_NS) {
            saved_ns = now;
            hearth_snapshot_save_uses(access);
        }

        /* While the database is away, the store says so itself. */
        if (!hearth_access_is_loaded(access) ||
            now - looked_ns > access->options.look_each_ns - TURN_NS) {
            looked_ns = now;
            (void)!hearth_snapshot_refresh(access, &access->cancel, &err);
        }
        if (access->options.offer_setup_token != NULL) {
            offer_setup_token(access);
        }
        hearth_audit_flush(access, &access->cancel, false);
    } while (!wait_for_turn(access));

    return NULL;
}

static void free_access(struct hearth_access *access)
{
    hearth_snapshot_release(atomic_load(&access->current));
    hearth_audit_free(access);
    hearth_hashing_free(access->hashing);
    hearth_failures_destroy(&access->failures);
    hearth_mutex_destroy(&access->use_lock);
    (void)pthread_cond_destroy(&access->wake);
    hearth_mutex_destroy(&access->lock);
    hearth_mem_free(access);
}

static enum hearth_status start_access_thread(struct hearth_access *access, struct hearth_err *err)
{
    sigset_t all, old;

    hearth_signals_to_block(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    int rc = pthread_create(&access->thread, NULL, run_access, access);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot start the thread of credentials");
    }
    (void)pthread_setname_np(access->thread, "access");

    return HEARTH_OK;
}

enum hearth_status hearth_access_start(const struct hearth_access_options *options,
                                       struct hearth_store *store, struct hearth_access **ret,
                                       struct hearth_err *err)
{
    struct hearth_access *access = hearth_mem_zalloc(sizeof *access);

    assert(options != NULL && store != NULL && ret != NULL);
    if (access == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the credentials");
    }

    access->options = *options;
    atomic_init(&access->admin_token, options->admin_token);
    if (options->admin_token != NULL) {
        access->options.offer_setup_token = NULL; /* there is an administrator */
    }
    access->store = store;
    hearth_cancel_init(&access->cancel, INT64_MAX);
    hearth_mutex_init(&access->lock, HEARTH_RANK_ACCESS, "access.lock");
    hearth_mutex_init(&access->use_lock, HEARTH_RANK_CREDENTIAL_USE, "access.use_lock");
    hearth_cond_init(&access->wake);
    hearth_failures_init(&access->failures);

    enum hearth_status status = hearth_hashing_new(&access->hashing, err);
    if (status == HEARTH_OK) {
        status = hearth_audit_init(access, err);
    }
    if (status == HEARTH_OK) {
        status = start_access_thread(access, err);
    }
    if (status != HEARTH_OK) {
        free_access(access);
        return status;
    }

    *ret = access;

    return HEARTH_OK;
}

void hearth_access_set_admin_token(struct hearth_access *access, const struct hearth_secret *token)
{
    atomic_store(&access->admin_token, token);
}

void hearth_access_stop(struct hearth_access *access)
{
    if (access == NULL) {
        return;
    }

    hearth_mutex_lock(&access->lock);
    access->stopping = true;
    (void)pthread_cond_broadcast(&access->wake);
    hearth_mutex_unlock(&access->lock);
    atomic_store(&access->cancel.cancelled, true);
    (void)pthread_join(access->thread, NULL);

    /* What waits, if the database answers within a second. */
    hearth_cancel_init(&access->cancel, hearth_clock_mono_ns() + HEARTH_NS_PER_SEC);
    hearth_audit_flush(access, &access->cancel, true);
    hearth_snapshot_save_uses(access);
    free_access(access);
}
