/* store_users.c -- users and sessions (contract: hearth/store/store_access.h). */
#include "hearth/store/store_access.h"

#include "access/access_write.h"

#include <assert.h>

#define MAX_ADDRESS_BYTES 256 /* longer ones are cut */
#define MAX_AGENT_BYTES   512
#define USER_KIND         "user:"

/* ---- users ---- */

struct user_add {
    const struct hearth_user *user;
    bool was_inserted; /* by an earlier attempt, whose COMMIT may have been executed */
};

/* $1 to $7: arrays of one element each, the columns of hearth_user_rows. */
#define NEW_USER                                                                                 \
    "unnest($1::text[], $2::text[], $3::text[], $4::int8[], $5::int8[], $6::int8[], $7::int4[])" \
    " AS n (name, password, created_by, created_at, password_at, last_login_at, is_disabled)"

static enum hearth_status insert_user(void *context, struct hearth_transaction *transaction,
                                      bool *ret_changed, struct hearth_err *err)
{
    struct user_add *add = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_rows(&params, &hearth_user_rows, add->user, 1);

    /* Insert it. */
    size_t n;
    HEARTH_TRY(hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.access_user (name, password, created_by, created_at, password_at,"
        " last_login_at, is_disabled) SELECT name, password, created_by, created_at, password_at,"
        " last_login_at, is_disabled <> 0 FROM " NEW_USER
        " ON CONFLICT (name) DO NOTHING RETURNING 1",
        &params, &n, err));
    if (n > 0) {
        add->was_inserted = true;
        *ret_changed = true;
        return HEARTH_OK;
    }

    /* The name is taken, perhaps by an earlier attempt. */
    if (add->was_inserted) {
        HEARTH_TRY(hearth_transaction_run(
            transaction,
            "SELECT 1 FROM hearth_data.access_user u JOIN " NEW_USER " USING (name, password,"
            " created_by, created_at, password_at) WHERE u.is_disabled = (n.is_disabled <> 0)",
            &params, &n, err));
    }

    return n > 0 ? HEARTH_OK
                 : HEARTH_FAIL(err, HEARTH_ALREADY_EXISTS,
                               "there is a user \"" HEARTH_STR_FMT "\" already",
                               HEARTH_STR_ARG(add->user->name));
}

enum hearth_status hearth_store_user_add(const struct hearth_scope *scope,
                                         const struct hearth_user *user, struct hearth_err *err)
{
    assert(user != NULL);

    struct user_add add = {.user = user};

    return hearth_access_write(scope, insert_user, &add, err);
}

static enum hearth_status fail_no_user(struct hearth_str name, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "there is no user \"" HEARTH_STR_FMT "\"",
                       HEARTH_STR_ARG(name));
}

/* $1: the name. */
static const char END_SESSIONS_OF_USER[] =
    "DELETE FROM hearth_data.access_session WHERE subject = '" USER_KIND "' || $1";

static enum hearth_status change_user(void *context, struct hearth_transaction *transaction,
                                      bool *ret_changed, struct hearth_err *err)
{
    const struct hearth_user_change *change = context;
    bool has_password = change->password != NULL, has_disabled = change->is_disabled != NULL;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, change->name);
    hearth_pg_param_i32(&params, has_password);
    hearth_pg_param_text(&params, has_password ? *change->password : HEARTH_STR(""));
    hearth_pg_param_i64(&params, change->now_ms);
    hearth_pg_param_i32(&params, has_disabled);
    hearth_pg_param_i32(&params, has_disabled && *change->is_disabled);

    /* Change it. */
    size_t n;
    HEARTH_TRY(
        hearth_transaction_run(transaction,
                               "UPDATE hearth_data.access_user SET"
                               " password = CASE WHEN $2 <> 0 THEN $3 ELSE password END,"
                               " password_at = CASE WHEN $2 <> 0 THEN $4 ELSE password_at END,"
                               " is_disabled = CASE WHEN $5 <> 0 THEN $6 <> 0 ELSE is_disabled END"
                               " WHERE name = $1 RETURNING 1",
                               &params, &n, err));
    if (n == 0) {
        return fail_no_user(change->name, err);
    }

    *ret_changed = true;

    /* End the sessions. */
    bool ends_sessions = has_password || (has_disabled && *change->is_disabled);

    return ends_sessions
               ? hearth_transaction_run(transaction, END_SESSIONS_OF_USER, &params, NULL, err)
               : HEARTH_OK;
}

enum hearth_status hearth_store_user_change(const struct hearth_scope *scope,
                                            const struct hearth_user_change *change,
                                            struct hearth_err *err)
{
    assert(change != NULL);

    struct hearth_user_change own = *change;

    return hearth_access_write(scope, change_user, &own, err);
}

struct user_delete {
    struct hearth_str name;
    bool was_found; /* by this or an earlier attempt */
};

static enum hearth_status delete_user(void *context, struct hearth_transaction *transaction,
                                      bool *ret_changed, struct hearth_err *err)
{
    struct user_delete *delete = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, delete->name);

    size_t n;
    HEARTH_TRY(hearth_transaction_run(
        transaction, "DELETE FROM hearth_data.access_user WHERE name = $1 RETURNING 1", &params, &n,
        err));
    delete->was_found = delete->was_found || n > 0;
    *ret_changed = n > 0;
    if (!delete->was_found) {
        return fail_no_user(delete->name, err);
    }

    HEARTH_TRY(hearth_transaction_run(transaction, END_SESSIONS_OF_USER, &params, NULL, err));

    return hearth_transaction_run(
        transaction, "DELETE FROM hearth_data.access_grant WHERE subject = '" USER_KIND "' || $1",
        &params, NULL, err);
}

enum hearth_status hearth_store_user_delete(const struct hearth_scope *scope,
                                            struct hearth_str name, struct hearth_err *err)
{
    struct user_delete delete = {.name = name};

    return hearth_access_write(scope, delete_user, &delete, err);
}

/* ---- adding sessions ---- */

struct session_add {
    const struct hearth_session *session;
    int64_t max_of_subject;
    bool was_inserted; /* by an earlier attempt, whose COMMIT may have been executed */
};

/*
 * Notes the log-in of a user, whose password was checked before. Fails if the user was disabled or
 * deleted meanwhile, or has another password: the sessions have ended, and no new one begins.
 * A user of an issuer has no row.
 */
static enum hearth_status note_login(const struct session_add *add,
                                     struct hearth_transaction *transaction, struct hearth_err *err)
{
    const struct hearth_session *session = add->session;
    size_t n_kind = sizeof USER_KIND - 1;
    if (!hearth_str_starts(session->subject, HEARTH_STR(USER_KIND))) {
        return HEARTH_OK;
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params,
                         hearth_str_n(session->subject.p + n_kind, session->subject.n - n_kind));
    hearth_pg_param_i64(&params, session->created_ms);
    hearth_pg_param_text(&params, session->password.n > 0 ? session->password : HEARTH_STR(""));

    int64_t is_disabled = 0;
    bool found;
    HEARTH_TRY(hearth_transaction_select_one(
        transaction, transaction->arena,
        "UPDATE hearth_data.access_user SET last_login_at = greatest(last_login_at, $2)"
        " WHERE name = $1 AND ($3 = '' OR password = $3) RETURNING is_disabled::int4::int8",
        &params, &hearth_i64_rows, &is_disabled, &found, err));
    if (!found && session->password.n > 0) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "user or password is wrong");
    }

    return is_disabled == 0
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED, "\"" HEARTH_STR_FMT "\" is disabled",
                             HEARTH_STR_ARG(session->subject));
}

/* *ret_inserted: by this attempt. */
static enum hearth_status insert_session(struct session_add *add,
                                         struct hearth_transaction *transaction, bool *ret_inserted,
                                         struct hearth_err *err)
{
    const struct hearth_session *session = add->session;
    struct hearth_arena *arena = transaction->arena;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_bytes(&params, session->hash);
    hearth_pg_param_text(&params, session->subject);
    hearth_pg_param_text_array(&params, session->groups, session->n_groups);
    hearth_pg_param_i64(&params, session->created_ms);
    hearth_pg_param_i64(&params, session->last_used_ms);
    hearth_pg_param_i64(&params, session->expires_ms);
    hearth_pg_param_text(&params, hearth_access_mend(arena, session->address, MAX_ADDRESS_BYTES));
    hearth_pg_param_text(&params, hearth_access_mend(arena, session->agent, MAX_AGENT_BYTES));

    size_t n;
    HEARTH_TRY(hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.access_session (hash, subject, groups, created_at, last_used_at,"
        " expires_at, address, agent) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
        " ON CONFLICT (hash) DO NOTHING RETURNING 1",
        &params, &n, err));
    add->was_inserted = add->was_inserted || n > 0;
    *ret_inserted = n > 0;

    /* Cookies are random: somebody else's session must not be given away. */
    return add->was_inserted ? HEARTH_OK
                             : HEARTH_FAIL(err, HEARTH_ALREADY_EXISTS,
                                           "there is a session with this cookie already");
}

static enum hearth_status add_session(void *context, struct hearth_transaction *transaction,
                                      bool *ret_changed, struct hearth_err *err)
{
    struct session_add *add = context;
    HEARTH_TRY(note_login(add, transaction, err));
    HEARTH_TRY(insert_session(add, transaction, ret_changed, err));
    if (add->max_of_subject == 0) {
        return HEARTH_OK;
    }

    /* Delete the oldest ones of the subject, but not this one. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, add->session->subject);
    hearth_pg_param_bytes(&params, add->session->hash);
    hearth_pg_param_i64(&params, add->max_of_subject);

    return hearth_transaction_run(
        transaction,
        "DELETE FROM hearth_data.access_session WHERE hash IN (SELECT hash"
        " FROM hearth_data.access_session WHERE subject = $1"
        " ORDER BY hash = $2 DESC, created_at DESC, hash OFFSET $3)",
        &params, NULL, err);
}

enum hearth_status hearth_store_session_add(const struct hearth_scope *scope,
                                            const struct hearth_session *session,
                                            int64_t max_of_subject, struct hearth_err *err)
{
    assert(session != NULL && session->hash.n == HEARTH_SHA256_BYTES && max_of_subject >= 0);

    struct session_add add = {.session = session, .max_of_subject = max_of_subject};

    return hearth_access_write(scope, add_session, &add, err);
}

/* ---- ending sessions ---- */

struct session_end {
    const char *sql;       /* with $1, the hash or the subject */
    struct hearth_str key; /* bytes or text */
    bool is_hash;
    size_t n; /* sessions that ended */
};

static enum hearth_status end_sessions(void *context, struct hearth_transaction *transaction,
                                       bool *ret_changed, struct hearth_err *err)
{
    struct session_end *end = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    if (end->is_hash) {
        hearth_pg_param_bytes(&params, end->key);
    } else {
        hearth_pg_param_text(&params, end->key);
    }

    size_t n;
    HEARTH_TRY(hearth_transaction_run(transaction, end->sql, &params, &n, err));
    *ret_changed = n > 0;
    /* An earlier attempt may have ended them, although its result was lost. */
    end->n = n > end->n ? n : end->n;

    return HEARTH_OK;
}

enum hearth_status hearth_store_session_delete(const struct hearth_scope *scope,
                                               struct hearth_str hash, size_t *ret_n,
                                               struct hearth_err *err)
{
    assert(ret_n != NULL);

    struct session_end end = {"DELETE FROM hearth_data.access_session WHERE hash = $1 RETURNING 1",
                              hash, true, 0};
    HEARTH_TRY(hearth_access_write(scope, end_sessions, &end, err));
    *ret_n = end.n;

    return HEARTH_OK;
}

enum hearth_status hearth_store_sessions_end(const struct hearth_scope *scope,
                                             struct hearth_str subject, size_t *ret_n,
                                             struct hearth_err *err)
{
    assert(ret_n != NULL);

    struct session_end end = {
        "DELETE FROM hearth_data.access_session WHERE subject = $1 RETURNING 1", subject, false, 0};
    HEARTH_TRY(hearth_access_write(scope, end_sessions, &end, err));
    *ret_n = end.n;

    return HEARTH_OK;
}
