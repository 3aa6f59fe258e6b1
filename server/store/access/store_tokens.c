/*
 * store_tokens.c -- tokens, and the last uses of tokens and sessions (contract:
 * hearth/store/store_access.h).
 */
#include "hearth/store/store_access.h"

#include "access/access_write.h"

#include <assert.h>

#define MAX_ADDRESS_BYTES 256 /* longer ones are cut */

/* ---- adding ---- */

/* The subject is made of the token's id. */
static const struct hearth_column given_columns[] = {
    HEARTH_COLUMN(TEXT, struct hearth_grant, tenant),
    HEARTH_COLUMN(I32, struct hearth_grant, role),
    HEARTH_COLUMN(TEXT, struct hearth_grant, selector),
};
static const struct hearth_row_type given_rows =
    HEARTH_ROW_TYPE(given_columns, struct hearth_grant);

struct token_add {
    const struct hearth_token *token;
    const struct hearth_grant *grants;
    size_t n_grants;
    bool was_inserted; /* by an earlier attempt, whose COMMIT may have been executed */
};

static enum hearth_status insert_token_grants(const struct token_add *add,
                                              struct hearth_transaction *transaction,
                                              struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, add->token->id);
    hearth_pg_param_text(&params, add->token->created_by);
    hearth_pg_param_i64(&params, add->token->created_ms);
    hearth_pg_param_rows(&params, &given_rows, add->grants, add->n_grants);

    return hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.access_grant (subject, tenant, role, selector, created_by,"
        " created_at) SELECT DISTINCT 'token:' || $1, g.tenant, g.role, g.selector, $2, $3"
        " FROM unnest($4::text[], $5::int4[], $6::text[]) AS g (tenant, role, selector)"
        " ORDER BY g.tenant, g.role, g.selector",
        &params, NULL, err);
}

/* *ret_same: the stored token has the hash of this one, so it is the one of an earlier attempt. */
static enum hearth_status is_same_token(const struct token_add *add,
                                        struct hearth_transaction *transaction, bool *ret_same,
                                        struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, add->token->id);
    hearth_pg_param_bytes(&params, add->token->hash);

    size_t n;
    HEARTH_TRY(hearth_transaction_run(
        transaction, "SELECT 1 FROM hearth_data.access_token WHERE token_id = $1 AND hash = $2",
        &params, &n, err));
    *ret_same = n > 0;

    return HEARTH_OK;
}

static enum hearth_status insert_token(void *context, struct hearth_transaction *transaction,
                                       bool *ret_changed, struct hearth_err *err)
{
    struct token_add *add = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_rows(&params, &hearth_token_rows, add->token, 1);

    /* Insert it. */
    size_t n;
    HEARTH_TRY(hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.access_token (token_id, name, hash, created_by, created_at,"
        " expires_at, last_used_at, last_used_from) SELECT * FROM unnest($1::text[], $2::text[],"
        " $3::bytea[], $4::text[], $5::int8[], $6::int8[], $7::int8[], $8::text[])"
        " ON CONFLICT (token_id) DO NOTHING RETURNING 1",
        &params, &n, err));
    if (n > 0) {
        add->was_inserted = true;
        *ret_changed = true;
        return insert_token_grants(add, transaction, err);
    }

    /* Its id is taken, perhaps by an earlier attempt. */
    bool is_same = false;
    if (add->was_inserted) {
        HEARTH_TRY(is_same_token(add, transaction, &is_same, err));
    }

    return is_same ? HEARTH_OK
                   : HEARTH_FAIL(err, HEARTH_ALREADY_EXISTS,
                                 "there is a token \"" HEARTH_STR_FMT "\" already",
                                 HEARTH_STR_ARG(add->token->id));
}

enum hearth_status hearth_store_token_add(const struct hearth_scope *scope,
                                          const struct hearth_token *token,
                                          const struct hearth_grant *grants, size_t n_grants,
                                          struct hearth_err *err)
{
    assert(token != NULL && token->hash.n == HEARTH_SHA256_BYTES);
    assert(grants != NULL || n_grants == 0);

    struct token_add add = {.token = token, .grants = grants, .n_grants = n_grants};

    return hearth_access_write(scope, insert_token, &add, err);
}

/* ---- ending ---- */

struct token_end {
    struct hearth_str id;
    int64_t expires_ms;
    bool was_found; /* by this or an earlier attempt */
};

static enum hearth_status end_token(void *context, struct hearth_transaction *transaction,
                                    bool *ret_changed, struct hearth_err *err)
{
    struct token_end *end = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, end->id);
    hearth_pg_param_i64(&params, end->expires_ms);

    /* $2 is unused by the deletion. */
    size_t n;
    HEARTH_TRY(hearth_transaction_run(
        transaction,
        end->expires_ms == 0
            ? "DELETE FROM hearth_data.access_token WHERE token_id = $1 RETURNING 1"
            : "UPDATE hearth_data.access_token SET expires_at = CASE WHEN expires_at BETWEEN 1 AND"
              " $2 THEN expires_at ELSE $2 END WHERE token_id = $1 RETURNING 1",
        &params, &n, err));
    end->was_found = end->was_found || n > 0;
    *ret_changed = n > 0;
    if (!end->was_found) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "there is no token \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(end->id));
    }

    return end->expires_ms != 0
               ? HEARTH_OK
               : hearth_transaction_run(
                     transaction,
                     "DELETE FROM hearth_data.access_grant WHERE subject = 'token:' || $1", &params,
                     NULL, err);
}

enum hearth_status hearth_store_token_end(const struct hearth_scope *scope, struct hearth_str id,
                                          int64_t expires_ms, struct hearth_err *err)
{
    assert(expires_ms >= 0);

    struct token_end end = {.id = id, .expires_ms = expires_ms};

    return hearth_access_write(scope, end_token, &end, err);
}

/* ---- last uses ---- */

#define USE(kind, member) HEARTH_COLUMN(kind, struct hearth_credential_use, member)
static const struct hearth_column use_columns[] = {
    USE(TEXT, id),
    USE(BYTES, hash),
    USE(I64, at_ms),
    USE(TEXT, from),
};
static const struct hearth_row_type use_rows =
    HEARTH_ROW_TYPE(use_columns, struct hearth_credential_use);

#define USES                                                                                 \
    "unnest($1::text[], $2::bytea[], $3::int8[], $4::text[]) AS u (token_id, hash, used_at," \
    " address)"

struct use_note {
    const struct hearth_credential_use *uses;
    size_t n;
};

/* Copies the uses, with addresses that PostgreSQL accepts. */
static struct hearth_credential_use *mend_uses(const struct use_note *note,
                                               struct hearth_arena *arena)
{
    struct hearth_credential_use *copy = hearth_arena_array(arena, note->n, sizeof *copy);

    for (size_t i = 0; copy != NULL && i < note->n; i++) {
        copy[i] = note->uses[i];
        copy[i].from = hearth_access_mend(arena, note->uses[i].from, MAX_ADDRESS_BYTES);
    }

    return copy;
}

/* The lock of the clock keeps the order of locks; the version stays. */
static enum hearth_status note_uses(void *context, struct hearth_transaction *transaction,
                                    bool *ret_changed, struct hearth_err *err)
{
    const struct use_note *note = context;
    struct hearth_credential_use *uses = mend_uses(note, transaction->arena);
    if (uses == NULL) {
        return HEARTH_FAIL_ARENA(err, transaction->arena);
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_rows(&params, &use_rows, uses, note->n);
    *ret_changed = false;

    /* The latest of several uses of a credential counts. */
    HEARTH_TRY(hearth_transaction_run(
        transaction,
        "UPDATE hearth_data.access_token t SET last_used_at = l.used_at, last_used_from = l.address"
        " FROM (SELECT DISTINCT ON (token_id) token_id, used_at, address FROM " USES
        " WHERE token_id <> '' ORDER BY token_id, used_at DESC) l"
        " WHERE t.token_id = l.token_id AND t.last_used_at < l.used_at",
        &params, NULL, err));

    return hearth_transaction_run(transaction,
                                  "UPDATE hearth_data.access_session s SET last_used_at = l.used_at"
                                  " FROM (SELECT hash, max(used_at) AS used_at FROM " USES
                                  " WHERE token_id = '' GROUP BY hash) l"
                                  " WHERE s.hash = l.hash AND s.last_used_at < l.used_at",
                                  &params, NULL, err);
}

enum hearth_status hearth_store_access_note_use(const struct hearth_scope *scope,
                                                const struct hearth_credential_use *uses, size_t n,
                                                struct hearth_err *err)
{
    assert(uses != NULL || n == 0);

    struct use_note note = {uses, n};

    return n == 0 ? HEARTH_OK : hearth_access_write(scope, note_uses, &note, err);
}
