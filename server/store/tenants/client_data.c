/*
 * client_data.c -- writes and reads settings of clients and ad hoc profiles (contract:
 * hearth/store/client_data.h).
 */
#include "hearth/store/client_data.h"

#include "session/statements.h"

#include <assert.h>

/* $1 tenant, $2 name of a setting or id of a profile. */
static void make_name_params(const struct hearth_scope *scope, struct hearth_str name,
                             struct hearth_arena *arena, struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, arena);
    hearth_pg_param_text(params, scope->tenant);
    hearth_pg_param_text(params, name);
}

/* ---- settings ---- */

#define SETTING(kind, member) HEARTH_COLUMN(kind, struct hearth_client_setting, member)
static const struct hearth_column setting_columns[] = {
    SETTING(TEXT, name),
    SETTING(TEXT, value),
    SETTING(I64, modified_at_ms),
};
static const struct hearth_row_type setting_rows =
    HEARTH_ROW_TYPE(setting_columns, struct hearth_client_setting);

enum hearth_status hearth_store_client_settings(const struct hearth_scope *scope,
                                                struct hearth_client_setting **ret, size_t *ret_n,
                                                struct hearth_err *err)
{
    assert(scope->arena != NULL);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);

    return hearth_store_select(
        scope,
        "SELECT name, value, modified_at FROM hearth_data.client_setting WHERE tenant = $1"
        " ORDER BY name COLLATE \"C\"",
        &params, &setting_rows, ret, ret_n, err);
}

/* A setting to be stored. */
struct setting_put {
    const struct hearth_client_setting *setting;
    int64_t max_settings;
};

/* Fails with the reason why the setting was not stored. */
static enum hearth_status explain_setting_refusal(const struct setting_put *put,
                                                  struct hearth_transaction *transaction,
                                                  struct hearth_err *err)
{
    struct hearth_pg_params params;
    make_name_params(transaction->scope, put->setting->name, transaction->arena, &params);

    /* Read the stored setting: it is newer. */
    struct hearth_client_setting stored;
    bool is_newer;
    HEARTH_TRY(hearth_transaction_select_one(
        transaction, transaction->arena,
        "SELECT name, value, modified_at FROM hearth_data.client_setting"
        " WHERE tenant = $1 AND name = $2",
        &params, &setting_rows, &stored, &is_newer, err));

    /* Without one, the limit is reached. */
    if (is_newer) {
        return HEARTH_FAIL(err, HEARTH_ALREADY_EXISTS,
                           "setting \"" HEARTH_STR_FMT
                           "\" was modified at %lld, after the %lld of this request",
                           HEARTH_STR_ARG(put->setting->name), (long long)stored.modified_at_ms,
                           (long long)put->setting->modified_at_ms);
    }

    return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                       "the tenant has %lld settings, as many as max-settings allows",
                       (long long)put->max_settings);
}

/*
 * Stores a setting. After a COMMIT without an answer the same setting is stored again, modified at
 * the same time.
 */
static enum hearth_status put_setting(void *context, struct hearth_transaction *transaction,
                                      struct hearth_err *err)
{
    const struct setting_put *put = context;
    HEARTH_TRY(hearth_transaction_lock_tenant(transaction, err));

    /* Store it, unless the stored one is newer or the tenant has $5 others. By the primary key. */
    struct hearth_pg_params params;
    make_name_params(transaction->scope, put->setting->name, transaction->arena, &params);
    hearth_pg_param_text(&params, put->setting->value);
    hearth_pg_param_i64(&params, put->setting->modified_at_ms);
    hearth_pg_param_i64(&params, put->max_settings);

    size_t n_stored;
    HEARTH_TRY(hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.client_setting AS s (tenant, name, value, modified_at)"
        " SELECT $1, $2, $3, $4 WHERE $5 = 0"
        " OR EXISTS (SELECT FROM hearth_data.client_setting WHERE tenant = $1 AND name = $2)"
        " OR (SELECT count(*) FROM hearth_data.client_setting WHERE tenant = $1) < $5"
        " ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value,"
        " modified_at = excluded.modified_at WHERE s.modified_at <= excluded.modified_at"
        " RETURNING 1",
        &params, &n_stored, err));

    return n_stored > 0 ? HEARTH_OK : explain_setting_refusal(put, transaction, err);
}

enum hearth_status hearth_store_client_setting_put(const struct hearth_scope *scope,
                                                   const struct hearth_client_setting *setting,
                                                   int64_t max_settings, struct hearth_err *err)
{
    assert(setting != NULL);

    struct setting_put put = {setting, max_settings};

    return hearth_store_in_transaction(scope, put_setting, &put, err);
}

enum hearth_status hearth_store_client_setting_delete(const struct hearth_scope *scope,
                                                      struct hearth_str name,
                                                      struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);

    struct hearth_pg_params params;
    make_name_params(scope, name, &arena, &params);

    return hearth_store_run(
        scope, "DELETE FROM hearth_data.client_setting WHERE tenant = $1 AND name = $2", &params,
        NULL, err);
}

/* ---- ad hoc profiles ---- */

#define ADHOC(kind, member) HEARTH_COLUMN(kind, struct hearth_adhoc, member)
/* Lists are without the last column. */
static const struct hearth_column adhoc_columns[] = {
    ADHOC(TEXT, id),
    ADHOC(TEXT, name),
    ADHOC(I64, uploaded_at_ms),
    ADHOC(BYTES, payload),
};
static const struct hearth_row_type adhoc_rows =
    HEARTH_ROW_TYPE(adhoc_columns, struct hearth_adhoc);
static const struct hearth_row_type adhoc_list_rows = {
    adhoc_columns, HEARTH_ARRAY_LEN(adhoc_columns) - 1, sizeof(struct hearth_adhoc)};

/* A profile to be stored. */
struct adhoc_put {
    const struct hearth_adhoc *profile;
    int64_t max_profiles, max_bytes;
};

/* What the tenant has stored. */
struct adhoc_usage {
    int64_t n, n_bytes;
};

static const struct hearth_column usage_columns[] = {
    HEARTH_COLUMN(I64, struct adhoc_usage, n),
    HEARTH_COLUMN(I64, struct adhoc_usage, n_bytes),
};
static const struct hearth_row_type usage_rows = HEARTH_ROW_TYPE(usage_columns, struct adhoc_usage);

/* Fails if the tenant may not have the profile, too. */
static enum hearth_status check_adhoc_limits(const struct adhoc_put *put,
                                             struct hearth_transaction *transaction,
                                             struct hearth_err *err)
{
    struct hearth_pg_params params;
    make_name_params(transaction->scope, put->profile->id, transaction->arena, &params);

    /* Sum the others. */
    struct adhoc_usage usage = {0, 0};
    bool found;
    HEARTH_TRY(hearth_transaction_select_one(
        transaction, transaction->arena,
        "SELECT count(*), coalesce(sum(n_bytes), 0)::int8 FROM hearth_data.adhoc_profile"
        " WHERE tenant = $1 AND id <> $2",
        &params, &usage_rows, &usage, &found, err));

    /* Check the limits. */
    if (put->max_profiles > 0 && usage.n >= put->max_profiles) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the tenant has %lld ad hoc profiles, as many as max-adhoc-profiles "
                           "allows",
                           (long long)usage.n);
    }

    int64_t new_bytes = (int64_t)put->profile->payload.n;
    if (put->max_bytes > 0 && new_bytes > put->max_bytes - usage.n_bytes) {
        return HEARTH_FAIL(
            err, HEARTH_RESOURCE_EXHAUSTED,
            "the tenant's ad hoc profiles have %lld bytes; with %lld more they would "
            "exceed max-adhoc-bytes (%lld)",
            (long long)usage.n_bytes, (long long)new_bytes, (long long)put->max_bytes);
    }

    return HEARTH_OK;
}

/*
 * Stores a profile. After a COMMIT without an answer the profile may be stored: its id is random,
 * so no other profile has it.
 */
static enum hearth_status put_adhoc(void *context, struct hearth_transaction *transaction,
                                    struct hearth_err *err)
{
    const struct adhoc_put *put = context;
    const struct hearth_adhoc *profile = put->profile;
    HEARTH_TRY(hearth_transaction_lock_tenant(transaction, err));
    HEARTH_TRY(check_adhoc_limits(put, transaction, err));

    /* Insert it. */
    struct hearth_pg_params params;
    make_name_params(transaction->scope, profile->id, transaction->arena, &params);
    hearth_pg_param_text(&params, profile->name);
    hearth_pg_param_i64(&params, profile->uploaded_at_ms);
    hearth_pg_param_i64(&params, (int64_t)profile->payload.n);
    hearth_pg_param_bytes(&params, profile->payload);

    return hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.adhoc_profile (tenant, id, name, uploaded_at, n_bytes,"
        " payload) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (tenant, id) DO NOTHING",
        &params, NULL, err);
}

enum hearth_status hearth_store_adhoc_put(const struct hearth_scope *scope,
                                          const struct hearth_adhoc *profile, int64_t max_profiles,
                                          int64_t max_bytes, struct hearth_err *err)
{
    assert(profile != NULL);

    struct adhoc_put put = {profile, max_profiles, max_bytes};

    return hearth_store_in_transaction(scope, put_adhoc, &put, err);
}

enum hearth_status hearth_store_adhoc_get(const struct hearth_scope *scope, struct hearth_str id,
                                          struct hearth_adhoc *ret, struct hearth_err *err)
{
    assert(scope->arena != NULL);

    struct hearth_pg_params params;
    make_name_params(scope, id, scope->arena, &params);

    bool found;
    HEARTH_TRY(hearth_store_select_one(
        scope,
        "SELECT id, name, uploaded_at, payload FROM hearth_data.adhoc_profile"
        " WHERE tenant = $1 AND id = $2",
        &params, &adhoc_rows, ret, &found, err));

    return found ? HEARTH_OK
                 : HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no ad hoc profile \"" HEARTH_STR_FMT "\"",
                               HEARTH_STR_ARG(id));
}

enum hearth_status hearth_store_adhoc_list(const struct hearth_scope *scope,
                                           struct hearth_adhoc **ret, size_t *ret_n,
                                           struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);

    return hearth_store_select(scope,
                               "SELECT id, name, uploaded_at FROM hearth_data.adhoc_profile"
                               " WHERE tenant = $1 ORDER BY id COLLATE \"C\" DESC",
                               &params, &adhoc_list_rows, ret, ret_n, err);
}
