/*
 * access_load.c -- reads the version, and all tokens, users, sessions and grants (contract:
 * hearth/store/store_access.h).
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/store/store_access.h"

#include "access/access_write.h"

#include <assert.h>

#define SESSION(kind, member) HEARTH_COLUMN(kind, struct hearth_session, member)
static const struct hearth_column session_columns[] = {
    SESSION(BYTES, hash),
    SESSION(TEXT, subject),
    HEARTH_COLUMN_LIST(TEXTS, struct hearth_session, groups, n_groups),
    SESSION(I64, created_ms),
    SESSION(I64, last_used_ms),
    SESSION(I64, expires_ms),
    SESSION(TEXT, address),
    SESSION(TEXT, agent),
};
static const struct hearth_row_type session_rows =
    HEARTH_ROW_TYPE(session_columns, struct hearth_session);

#define GRANT(kind, member) HEARTH_COLUMN(kind, struct hearth_stored_grant, member)
static const struct hearth_column grant_columns[] = {
    GRANT(I32, id),         GRANT(TEXT, grant.subject),  GRANT(TEXT, grant.tenant),
    GRANT(I32, grant.role), GRANT(TEXT, grant.selector), GRANT(TEXT, created_by),
    GRANT(I64, created_ms),
};
static const struct hearth_row_type grant_rows =
    HEARTH_ROW_TYPE(grant_columns, struct hearth_stored_grant);

static const char VERSION_SQL[] = "SELECT version FROM hearth_data.access_clock";

enum hearth_status hearth_store_access_version(const struct hearth_scope *scope,
                                               int64_t *ret_version, struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_scope own = hearth_scope_of_owner(scope);
    own.arena = &arena;

    int64_t version = 0;
    bool found;
    HEARTH_TRY(
        hearth_store_select_one(&own, VERSION_SQL, NULL, &hearth_i64_rows, &version, &found, err));
    if (!found) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "hearth_data.access_clock has no row; restore the database");
    }

    *ret_version = version;

    return HEARTH_OK;
}

/* Removes grants of roles that this server does not know: without them, nobody may do more. */
static void skip_unknown_roles(struct hearth_access_rows *rows)
{
    size_t n = 0;

    for (size_t i = 0; i < rows->n_grants; i++) {
        const struct hearth_stored_grant *stored = &rows->grants[i];
        if ((unsigned)stored->grant.role < HEARTH_N_ROLES) {
            rows->grants[n++] = *stored;
        } else {
            HEARTH_LOG(HEARTH_LOG_WARN, "store", "a grant of an unknown role is ignored", "grant",
                       hearth_log_i64(stored->id), "role",
                       hearth_log_i64((int64_t)stored->grant.role), NULL);
        }
    }

    rows->n_grants = n;
}

static enum hearth_status read_sessions(struct hearth_transaction *transaction,
                                        struct hearth_access_rows *ret, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_i64(&params, hearth_clock_wall_ns() / HEARTH_NS_PER_MS);

    return hearth_transaction_select(
        transaction, transaction->scope->arena,
        "SELECT hash, subject, groups, created_at, last_used_at, expires_at, address, agent"
        " FROM hearth_data.access_session WHERE expires_at = 0 OR expires_at > $1 ORDER BY hash",
        &params, &session_rows, &ret->sessions, &ret->n_sessions, err);
}

/* Reads all rows. The statements of the transaction see one snapshot. */
static enum hearth_status read_access(void *context, struct hearth_transaction *transaction,
                                      struct hearth_err *err)
{
    struct hearth_access_rows *rows = context;
    struct hearth_arena *arena = transaction->scope->arena;
    bool found;
    HEARTH_TRY(hearth_pg_script(transaction->pg,
                                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
                                &transaction->fault, err));

    /* The version. */
    *rows = (struct hearth_access_rows){0};
    HEARTH_TRY(hearth_transaction_select_one(transaction, transaction->arena, VERSION_SQL, NULL,
                                             &hearth_i64_rows, &rows->version, &found, err));

    /* The tables. */
    HEARTH_TRY(hearth_transaction_select(
        transaction, arena,
        "SELECT token_id, name, hash, created_by, created_at, expires_at, last_used_at,"
        " last_used_from FROM hearth_data.access_token ORDER BY token_id COLLATE \"C\"",
        NULL, &hearth_token_rows, &rows->tokens, &rows->n_tokens, err));
    HEARTH_TRY(hearth_transaction_select(
        transaction, arena,
        "SELECT name, password, created_by, created_at, password_at, last_login_at,"
        " is_disabled::int4 FROM hearth_data.access_user ORDER BY name COLLATE \"C\"",
        NULL, &hearth_user_rows, &rows->users, &rows->n_users, err));
    HEARTH_TRY(read_sessions(transaction, rows, err));

    return hearth_transaction_select(
        transaction, arena,
        "SELECT grant_id, subject, tenant, role, selector, created_by, created_at"
        " FROM hearth_data.access_grant ORDER BY subject COLLATE \"C\", tenant COLLATE \"C\", role,"
        " selector COLLATE \"C\", grant_id",
        NULL, &grant_rows, &rows->grants, &rows->n_grants, err);
}

enum hearth_status hearth_store_access_load(const struct hearth_scope *scope,
                                            struct hearth_access_rows *ret, struct hearth_err *err)
{
    assert(scope->arena != NULL && ret != NULL);

    struct hearth_access_rows rows;
    const struct hearth_scope own = hearth_scope_of_owner(scope);
    HEARTH_TRY(hearth_store_in_transaction(&own, read_access, &rows, err));

    skip_unknown_roles(&rows);
    *ret = rows;

    return HEARTH_OK;
}
