/*
 * people.c -- users and grants.
 *
 * Users concern the server as a whole: a user may have grants in several tenants.
 */
#include "hearth/base/clock.h"

#include "access/access_internal.h"
#include "access/access_rules.h"
#include "access/passwords.h"

#include <assert.h>
#include <ctype.h>

#define MAX_NAME_BYTES 100

/* ---- users ---- */

static enum hearth_status check_server_admin(const struct hearth_access_call *call,
                                             struct hearth_err *err)
{
    return hearth_access_check_admin(call, HEARTH_STR(HEARTH_ALL_TENANTS), err);
}

static bool is_name_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr(".-_@+", c) != NULL);
}

static enum hearth_status check_user_name(struct hearth_str name, struct hearth_err *err)
{
    bool is_good = name.n > 0 && name.n <= MAX_NAME_BYTES;

    for (size_t i = 0; is_good && i < name.n; i++) {
        is_good = is_name_byte((unsigned char)name.p[i]);
    }

    return is_good ? HEARTH_OK
                   : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                 "the name of a user has 1 to %d letters, digits and .-_@+",
                                 MAX_NAME_BYTES);
}

/* True if the text contains the part, whatever the case of its ASCII letters. */
static bool contains_nocase(struct hearth_str text, struct hearth_str part)
{
    for (size_t i = 0; i + part.n <= text.n; i++) {
        if (hearth_str_eq_nocase(hearth_str_n(text.p + i, part.n), part)) {
            return true;
        }
    }
    return false;
}

static enum hearth_status check_new_password(struct hearth_str name, struct hearth_str password,
                                             struct hearth_err *err)
{
    if (password.n < HEARTH_PASSWORD_MIN_BYTES || password.n > HEARTH_PASSWORD_MAX_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a password has %d to %d bytes",
                           HEARTH_PASSWORD_MIN_BYTES, HEARTH_PASSWORD_MAX_BYTES);
    }
    return contains_nocase(password, name)
               ? HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "the password contains the name of the user")
               : HEARTH_OK;
}

enum hearth_status hearth_access_create_user(const struct hearth_access_call *call,
                                             struct hearth_str name, struct hearth_str password,
                                             struct hearth_err *err)
{
    struct hearth_user user = {.name = name, .created_by = call->admission->subject};

    HEARTH_TRY(check_server_admin(call, err));
    HEARTH_TRY(check_user_name(name, err));
    HEARTH_TRY(check_new_password(name, password, err));
    HEARTH_TRY(hearth_password_hash(call->access->hashing, password, call->cancel, call->arena,
                                    &user.password, err));
    user.created_ms = user.password_ms = hearth_access_now_ms();
    HEARTH_TRY(hearth_store_user_add(HEARTH_ACCESS_SCOPE(call->access, call->cancel, call->arena),
                                     &user, err));
    hearth_access_wrote(call->access, call->cancel);

    return hearth_access_end_setup(call->access, call->cancel, err);
}

/* True if the caller is the user with that name. */
static bool is_self(const struct hearth_access_call *call, struct hearth_str name)
{
    struct hearth_str subject = call->admission->subject;
    return hearth_str_starts(subject, HEARTH_STR("user:")) &&
           hearth_str_eq(hearth_str_n(subject.p + 5, subject.n - 5), name);
}

/* Who changes the own password must know the old one: a session left open is not enough. */
static enum hearth_status check_old_password(const struct hearth_access_call *call,
                                             struct hearth_str name, struct hearth_str old_password,
                                             struct hearth_err *err)
{
    struct hearth_access *access = call->access;
    struct hearth_str subject = call->admission->subject;
    bool is_right = false;

    if (hearth_failures_count(&access->failures, subject) >= access->options.max_wrong) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "too many wrong passwords within a minute: wait, then try again");
    }

    struct hearth_access_snapshot *held = hearth_snapshot_hold(access);
    const struct hearth_user *user = held == NULL ? NULL : hearth_snapshot_user(held, name);
    struct hearth_str encoded =
        user == NULL ? HEARTH_STR("") : hearth_arena_str(call->arena, user->password);
    hearth_snapshot_release(held);

    hearth_failures_add(&access->failures, subject);
    old_password.n =
        old_password.n > HEARTH_PASSWORD_MAX_BYTES ? HEARTH_PASSWORD_MAX_BYTES : old_password.n;
    HEARTH_TRY(hearth_password_check(access->hashing, old_password, encoded, call->cancel,
                                     &is_right, err));
    if (!is_right) {
        return HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED, "the old password is wrong");
    }
    hearth_failures_forget(&access->failures, subject);

    return HEARTH_OK;
}

enum hearth_status hearth_access_set_password(const struct hearth_access_call *call,
                                              struct hearth_str name, struct hearth_str password,
                                              struct hearth_str old_password,
                                              struct hearth_err *err)
{
    struct hearth_str encoded;

    if (is_self(call, name)) {
        HEARTH_TRY(check_old_password(call, name, old_password, err));
    } else {
        HEARTH_TRY(check_server_admin(call, err));
    }

    HEARTH_TRY(check_new_password(name, password, err));
    HEARTH_TRY(hearth_password_hash(call->access->hashing, password, call->cancel, call->arena,
                                    &encoded, err));
    const struct hearth_user_change change = {
        .name = name, .password = &encoded, .now_ms = hearth_access_now_ms()};
    HEARTH_TRY(hearth_store_user_change(
        HEARTH_ACCESS_SCOPE(call->access, call->cancel, call->arena), &change, err));
    hearth_access_wrote(call->access, call->cancel);

    return HEARTH_OK;
}

enum hearth_status hearth_access_disable_user(const struct hearth_access_call *call,
                                              struct hearth_str name, bool disabled,
                                              struct hearth_err *err)
{
    const struct hearth_user_change change = {
        .name = name, .is_disabled = &disabled, .now_ms = hearth_access_now_ms()};

    HEARTH_TRY(check_server_admin(call, err));
    HEARTH_TRY(hearth_store_user_change(
        HEARTH_ACCESS_SCOPE(call->access, call->cancel, call->arena), &change, err));
    hearth_access_wrote(call->access, call->cancel);

    return hearth_access_end_setup(call->access, call->cancel, err);
}

enum hearth_status hearth_access_delete_user(const struct hearth_access_call *call,
                                             struct hearth_str name, struct hearth_err *err)
{
    HEARTH_TRY(check_server_admin(call, err));
    HEARTH_TRY(hearth_store_user_delete(
        HEARTH_ACCESS_SCOPE(call->access, call->cancel, call->arena), name, err));
    hearth_access_wrote(call->access, call->cancel);

    return HEARTH_OK;
}

enum hearth_status hearth_access_end_sessions(const struct hearth_access_call *call,
                                              struct hearth_str subject, int64_t *ret_n,
                                              struct hearth_err *err)
{
    size_t n = 0;

    if (!hearth_str_eq(subject, call->admission->subject)) {
        HEARTH_TRY(check_server_admin(call, err));
    }

    HEARTH_TRY(hearth_store_sessions_end(
        HEARTH_ACCESS_SCOPE(call->access, call->cancel, call->arena), subject, &n, err));
    hearth_access_wrote(call->access, call->cancel);
    *ret_n = (int64_t)n;

    return HEARTH_OK;
}

static int64_t count_sessions(const struct hearth_access_snapshot *held, struct hearth_str name)
{
    int64_t n = 0;

    for (size_t i = 0; i < held->rows.n_sessions; i++) {
        struct hearth_str subject = held->rows.sessions[i].subject;
        n += subject.n == name.n + 5 && hearth_str_starts(subject, HEARTH_STR("user:")) &&
             hearth_str_ends(subject, name);
    }

    return n;
}

static enum hearth_status copy_users(const struct hearth_access_snapshot *held,
                                     struct hearth_arena *arena, struct hearth_listed_user **ret,
                                     struct hearth_err *err)
{
    size_t n = held->rows.n_users;
    struct hearth_listed_user *list = hearth_arena_array(arena, n, sizeof *list);

    if (list == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        const struct hearth_user *row = &held->rows.users[i];
        list[i] = (struct hearth_listed_user){
            .user = {.name = hearth_arena_str(arena, row->name),
                     .created_by = hearth_arena_str(arena, row->created_by),
                     .created_ms = row->created_ms,
                     .password_ms = row->password_ms,
                     .last_login_ms = row->last_login_ms,
                     .is_disabled = row->is_disabled},
            .n_sessions = count_sessions(held, row->name)};
    }
    *ret = list;

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

enum hearth_status hearth_access_users(const struct hearth_access_call *call,
                                       struct hearth_listed_user **ret, size_t *ret_n,
                                       struct hearth_err *err)
{
    HEARTH_TRY(check_server_admin(call, err));

    struct hearth_access_snapshot *held = hearth_snapshot_hold(call->access);
    if (held == NULL) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "users are not known yet: retry later");
    }
    enum hearth_status status = copy_users(held, call->arena, ret, err);
    *ret_n = held->rows.n_users;
    hearth_snapshot_release(held);

    return status;
}

/* ---- grants ---- */

static enum hearth_status check_subject(struct hearth_str subject, struct hearth_err *err)
{
    static const char *const kinds[] = {"user:", "group:", "cert:", "oidc:", "proxy:"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(kinds); i++) {
        struct hearth_str kind = hearth_str_c(kinds[i]);
        if (hearth_str_starts(subject, kind) && subject.n > kind.n &&
            subject.n <= HEARTH_MAX_SUBJECT_BYTES && hearth_str_utf8_valid(subject)) {
            return HEARTH_OK;
        }
    }

    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                       "the subject \"" HEARTH_STR_FMT "\" is none of user:NAME, group:NAME, "
                       "cert:NAME, oidc:NAME and proxy:NAME of at most %d bytes",
                       HEARTH_STR_ARG(subject), HEARTH_MAX_SUBJECT_BYTES);
}

enum hearth_status hearth_access_add_grant(const struct hearth_access_call *call,
                                           const struct hearth_grant *grant, int32_t *ret_id,
                                           struct hearth_err *err)
{
    const struct hearth_stored_grant row = {.grant = *grant,
                                            .created_by = call->admission->subject,
                                            .created_ms = hearth_access_now_ms()};

    HEARTH_TRY(check_subject(grant->subject, err));
    HEARTH_TRY(hearth_access_check_grant(call, grant, err));
    HEARTH_TRY(hearth_store_grant_add(HEARTH_ACCESS_SCOPE(call->access, call->cancel, call->arena),
                                      &row, ret_id, err));
    hearth_access_wrote(call->access, call->cancel);

    return hearth_access_end_setup(call->access, call->cancel, err);
}

/* Checks that the grant may be deleted: by this caller, and that an administrator is left. */
static enum hearth_status check_grant_deletion(const struct hearth_access_call *call,
                                               const struct hearth_access_snapshot *held,
                                               int32_t id, struct hearth_err *err)
{
    const struct hearth_grant *found = NULL;

    for (size_t i = 0; held != NULL && i < held->rows.n_grants; i++) {
        const struct hearth_stored_grant *row = &held->rows.grants[i];
        found = row->id == id ? &row->grant : found;
    }

    if (found == NULL || !hearth_access_is_admin(call, found->tenant)) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "there is no grant %d", id);
    }

    if (hearth_access_makes_admin(held, found) && hearth_access_count_admins(held) == 1) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "this is the last grant of the role admin in all tenants that a subject "
                           "can use; give it to another subject first");
    }

    return HEARTH_OK;
}

enum hearth_status hearth_access_delete_grant(const struct hearth_access_call *call, int32_t id,
                                              struct hearth_err *err)
{
    struct hearth_access_snapshot *held = hearth_snapshot_hold(call->access);
    enum hearth_status status = check_grant_deletion(call, held, id, err);
    hearth_snapshot_release(held);
    HEARTH_TRY(status);

    HEARTH_TRY(hearth_store_grant_delete(
        HEARTH_ACCESS_SCOPE(call->access, call->cancel, call->arena), id, err));
    hearth_access_wrote(call->access, call->cancel);

    return HEARTH_OK;
}

static struct hearth_stored_grant copy_grant(const struct hearth_stored_grant *row,
                                             struct hearth_arena *arena)
{
    return (struct hearth_stored_grant){
        .id = row->id,
        .grant = {.subject = hearth_arena_str(arena, row->grant.subject),
                  .tenant = hearth_arena_str(arena, row->grant.tenant),
                  .role = row->grant.role,
                  .selector = hearth_arena_str(arena, row->grant.selector)},
        .created_by = hearth_arena_str(arena, row->created_by),
        .created_ms = row->created_ms};
}

enum hearth_status hearth_access_grants(const struct hearth_access_call *call,
                                        struct hearth_stored_grant **ret, size_t *ret_n,
                                        struct hearth_err *err)
{
    struct hearth_access_snapshot *held = hearth_snapshot_hold(call->access);
    size_t n_rows = held == NULL ? 0 : held->rows.n_grants, n = 0;
    struct hearth_stored_grant *list = hearth_arena_array(call->arena, n_rows, sizeof *list);

    for (size_t i = 0; list != NULL && i < n_rows; i++) {
        if (hearth_access_is_admin(call, held->rows.grants[i].grant.tenant)) {
            list[n++] = copy_grant(&held->rows.grants[i], call->arena);
        }
    }
    hearth_snapshot_release(held);
    if (list == NULL || call->arena->refused) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    *ret = list;
    *ret_n = n;

    return HEARTH_OK;
}
