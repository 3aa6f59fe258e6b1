/*
 * snapshot.c -- credentials and grants in memory: loading, look-ups, last uses.
 *
 * Rows are sorted by the store, so a look-up is a binary search. The last uses of a snapshot that
 * were not saved move to the next one.
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/mem.h"

#include "access/access_internal.h"

#include <assert.h>
#include <stdlib.h>

#define SNAPSHOT_MAX_BYTES ((size_t)256 << 20)
#define RELOAD_NS          (60 * HEARTH_NS_PER_SEC)
#define MAX_SAVED_USES     1000 /* in one statement; the others wait for the next round */

/* ---- holding ---- */

struct hearth_access_snapshot *hearth_snapshot_hold(struct hearth_access *access)
{
    hearth_mutex_lock(&access->lock);
    struct hearth_access_snapshot *snapshot = atomic_load(&access->current);
    if (snapshot != NULL) {
        (void)atomic_fetch_add(&snapshot->n_holders, 1);
    }
    hearth_mutex_unlock(&access->lock);
    return snapshot;
}

void hearth_snapshot_release(struct hearth_access_snapshot *snapshot)
{
    if (snapshot == NULL || atomic_fetch_sub(&snapshot->n_holders, 1) > 1) {
        return;
    }
    hearth_arena_release(&snapshot->arena);
    hearth_mem_free(snapshot);
}

bool hearth_access_is_loaded(const struct hearth_access *access)
{
    return atomic_load(&access->current) != NULL;
}

/* ---- look-ups ---- */

/* The index of the first grant whose subject is not before `subject`. */
static size_t find_first_grant(const struct hearth_access_rows *rows, struct hearth_str subject)
{
    size_t low = 0, high = rows->n_grants;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (hearth_str_cmp(rows->grants[mid].grant.subject, subject) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low;
}

struct hearth_grant_range hearth_snapshot_grants(const struct hearth_access_snapshot *snapshot,
                                                 struct hearth_str subject)
{
    const struct hearth_access_rows *rows = &snapshot->rows;
    size_t first = find_first_grant(rows, subject), end = first;

    while (end < rows->n_grants && hearth_str_eq(rows->grants[end].grant.subject, subject)) {
        end++;
    }

    return (struct hearth_grant_range){rows->grants + first, end - first};
}

static int compare_id_with_token(const void *id, const void *token)
{
    const struct hearth_known_token *known = token;
    return hearth_str_cmp(*(const struct hearth_str *)id, known->row->id);
}

struct hearth_known_token *hearth_snapshot_token(const struct hearth_access_snapshot *snapshot,
                                                 struct hearth_str id)
{
    return snapshot->rows.n_tokens == 0 ? NULL
                                        : bsearch(&id, snapshot->tokens, snapshot->rows.n_tokens,
                                                  sizeof *snapshot->tokens, compare_id_with_token);
}

static int compare_hash_with_session(const void *hash, const void *session)
{
    const struct hearth_known_session *known = session;
    return hearth_str_cmp(*(const struct hearth_str *)hash, known->row->hash);
}

struct hearth_known_session *hearth_snapshot_session(const struct hearth_access_snapshot *snapshot,
                                                     struct hearth_str hash)
{
    return snapshot->rows.n_sessions == 0
               ? NULL
               : bsearch(&hash, snapshot->sessions, snapshot->rows.n_sessions,
                         sizeof *snapshot->sessions, compare_hash_with_session);
}

static int compare_name_with_user(const void *name, const void *user)
{
    return hearth_str_cmp(*(const struct hearth_str *)name,
                          ((const struct hearth_user *)user)->name);
}

const struct hearth_user *hearth_snapshot_user(const struct hearth_access_snapshot *snapshot,
                                               struct hearth_str name)
{
    return snapshot->rows.n_users == 0
               ? NULL
               : bsearch(&name, snapshot->rows.users, snapshot->rows.n_users,
                         sizeof *snapshot->rows.users, compare_name_with_user);
}

bool hearth_grant_is_server_admin(const struct hearth_grant *grant)
{
    return grant->role == HEARTH_ROLE_ADMIN && grant->selector.n == 0 &&
           hearth_str_eq_c(grant->tenant, HEARTH_ALL_TENANTS);
}

/* ---- the uses of a snapshot that is replaced ---- */

static void move_token_use(struct hearth_access *access, struct hearth_known_token *from,
                           struct hearth_known_token *to)
{
    int64_t used_ms = atomic_load(&from->used_ms);

    if (to == NULL || used_ms <= atomic_load(&to->used_ms)) {
        return;
    }

    hearth_mutex_lock(&access->use_lock);
    memcpy(to->used_from, from->used_from, sizeof to->used_from);
    hearth_mutex_unlock(&access->use_lock);
    atomic_store(&to->used_ms, used_ms);
    atomic_store(&to->is_unsaved, true);
}

static void move_session_use(const struct hearth_known_session *from,
                             struct hearth_known_session *to)
{
    int64_t used_ms = atomic_load(&from->used_ms);

    if (to != NULL && used_ms > atomic_load(&to->used_ms)) {
        atomic_store(&to->used_ms, used_ms);
        atomic_store(&to->is_unsaved, true);
    }
}

/* Moves uses that are not saved. */
static void move_uses(struct hearth_access *access, struct hearth_access_snapshot *from,
                      const struct hearth_access_snapshot *to)
{
    for (size_t i = 0; i < from->rows.n_tokens; i++) {
        struct hearth_known_token *token = &from->tokens[i];
        if (atomic_exchange(&token->is_unsaved, false)) {
            move_token_use(access, token, hearth_snapshot_token(to, token->row->id));
        }
    }

    for (size_t i = 0; i < from->rows.n_sessions; i++) {
        struct hearth_known_session *session = &from->sessions[i];
        if (atomic_exchange(&session->is_unsaved, false)) {
            move_session_use(session, hearth_snapshot_session(to, session->row->hash));
        }
    }
}

/* ---- loading ---- */

static enum hearth_status index_tokens(struct hearth_access_snapshot *snapshot,
                                       struct hearth_err *err)
{
    struct hearth_arena *arena = &snapshot->arena;

    snapshot->tokens =
        hearth_arena_calloc(arena, snapshot->rows.n_tokens, sizeof *snapshot->tokens);
    if (snapshot->tokens == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < snapshot->rows.n_tokens; i++) {
        struct hearth_known_token *known = &snapshot->tokens[i];
        const struct hearth_token *row = &snapshot->rows.tokens[i];
        const char *subject =
            hearth_arena_printf(arena, "token:" HEARTH_STR_FMT, HEARTH_STR_ARG(row->id));
        if (subject == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }

        known->row = row;
        known->subject = hearth_str_c(subject);
        known->grants = hearth_snapshot_grants(snapshot, known->subject);
        atomic_init(&known->used_ms, row->last_used_ms);
    }

    return HEARTH_OK;
}

static enum hearth_status index_sessions(struct hearth_access_snapshot *snapshot,
                                         struct hearth_err *err)
{
    struct hearth_arena *arena = &snapshot->arena;

    snapshot->sessions =
        hearth_arena_calloc(arena, snapshot->rows.n_sessions, sizeof *snapshot->sessions);
    if (snapshot->sessions == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < snapshot->rows.n_sessions; i++) {
        struct hearth_known_session *known = &snapshot->sessions[i];
        const struct hearth_session *row = &snapshot->rows.sessions[i];
        known->row = row;
        known->ranges = hearth_arena_array(arena, row->n_groups + 1, sizeof *known->ranges);
        if (known->ranges == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }

        known->ranges[0] = hearth_snapshot_grants(snapshot, row->subject);
        for (size_t g = 0; g < row->n_groups; g++) {
            known->ranges[g + 1] = hearth_snapshot_grants(snapshot, row->groups[g]);
        }
        atomic_init(&known->used_ms, row->last_used_ms);
    }

    return HEARTH_OK;
}

static enum hearth_status read_snapshot(struct hearth_access *access, struct hearth_cancel *cancel,
                                        struct hearth_access_snapshot *snapshot,
                                        struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_access_load(HEARTH_ACCESS_SCOPE(access, cancel, &snapshot->arena),
                                        &snapshot->rows, err));
    HEARTH_TRY(index_tokens(snapshot, err));
    return index_sessions(snapshot, err);
}

enum hearth_status hearth_snapshot_load(struct hearth_access *access, struct hearth_cancel *cancel,
                                        struct hearth_err *err)
{
    struct hearth_access_snapshot *snapshot = hearth_mem_zalloc(sizeof *snapshot);
    if (snapshot == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the credentials");
    }

    atomic_init(&snapshot->n_holders, 1);
    hearth_arena_init(&snapshot->arena, SNAPSHOT_MAX_BYTES);
    snapshot->loaded_mono_ns = hearth_clock_mono_ns();
    enum hearth_status status = read_snapshot(access, cancel, snapshot, err);
    if (status != HEARTH_OK) {
        hearth_snapshot_release(snapshot);
        return status;
    }

    /* Two loads may overlap: the later version stays. */
    hearth_mutex_lock(&access->lock);
    struct hearth_access_snapshot *old = atomic_load(&access->current);
    bool is_later = old == NULL || snapshot->rows.version >= old->rows.version;
    if (is_later) {
        (void)atomic_fetch_add(&snapshot->n_holders, 1);
        atomic_store(&access->current, snapshot);
    }
    hearth_mutex_unlock(&access->lock);

    if (is_later && old != NULL) {
        move_uses(access, old, snapshot);
        hearth_snapshot_release(old);
    }
    hearth_snapshot_release(snapshot);

    return HEARTH_OK;
}

enum hearth_status hearth_snapshot_refresh(struct hearth_access *access,
                                           struct hearth_cancel *cancel, struct hearth_err *err)
{
    int64_t version;

    HEARTH_TRY(
        hearth_store_access_version(HEARTH_ACCESS_SCOPE(access, cancel, NULL), &version, err));

    struct hearth_access_snapshot *held = hearth_snapshot_hold(access);
    bool is_current = held != NULL && held->rows.version == version &&
                      hearth_clock_mono_ns() - held->loaded_mono_ns < RELOAD_NS;
    hearth_snapshot_release(held);

    return is_current ? HEARTH_OK : hearth_snapshot_load(access, cancel, err);
}

/* ---- last uses ---- */

/* Gathers uses that are not saved; their texts are copied to the arena. */
static size_t gather_uses(struct hearth_access *access, struct hearth_access_snapshot *snapshot,
                          struct hearth_arena *arena, struct hearth_credential_use *uses)
{
    size_t n = 0;

    for (size_t i = 0; i < snapshot->rows.n_tokens && n < MAX_SAVED_USES; i++) {
        struct hearth_known_token *token = &snapshot->tokens[i];
        if (!atomic_exchange(&token->is_unsaved, false)) {
            continue;
        }
        hearth_mutex_lock(&access->use_lock);
        struct hearth_str from = hearth_arena_str(arena, hearth_str_c(token->used_from));
        hearth_mutex_unlock(&access->use_lock);
        uses[n++] = (struct hearth_credential_use){
            .id = token->row->id, .at_ms = atomic_load(&token->used_ms), .from = from};
    }

    for (size_t i = 0; i < snapshot->rows.n_sessions && n < MAX_SAVED_USES; i++) {
        struct hearth_known_session *session = &snapshot->sessions[i];
        if (atomic_exchange(&session->is_unsaved, false)) {
            uses[n++] = (struct hearth_credential_use){.hash = session->row->hash,
                                                       .at_ms = atomic_load(&session->used_ms)};
        }
    }

    return n;
}

void hearth_snapshot_save_uses(struct hearth_access *access)
{
    static const size_t max_bytes = (size_t)1 << 20;
    struct hearth_access_snapshot *held = hearth_snapshot_hold(access);
    struct hearth_err err = HEARTH_ERR_INIT;

    if (held == NULL) {
        return;
    }

    struct hearth_arena arena;
    hearth_arena_init(&arena, max_bytes);
    struct hearth_credential_use *uses = hearth_arena_array(&arena, MAX_SAVED_USES, sizeof *uses);
    size_t n = uses == NULL ? 0 : gather_uses(access, held, &arena, uses);
    if (n > 0 && !arena.refused &&
        hearth_store_access_note_use(HEARTH_ACCESS_SCOPE(access, &access->cancel, NULL), uses, n,
                                     &err) != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_DEBUG, "access", "last uses of credentials were not saved", "reason",
                   err.msg, NULL);
    }

    hearth_arena_release(&arena);
    hearth_snapshot_release(held);
}
