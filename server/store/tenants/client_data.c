/* client_data.c -- settings of clients and ad hoc profiles (contract: hearth/store/client_data.h). */
#include "hearth/store/client_data.h"

#include "pg/pg.h"
#include "pg/session.h"

/* What all questions here share. */
struct question {
    struct hearth_str tenant, name;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    int64_t max, max_bytes;
    const struct hearth_client_setting *setting;
    const struct hearth_adhoc *profile;
    /* The answer. */
    struct hearth_client_setting *settings;
    struct hearth_adhoc *profiles;
    size_t n;
};

static void name_params(const struct question *question, struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, question->arena);
    hearth_pg_param_text(params, question->tenant);
    hearth_pg_param_text(params, question->name);
}

/* ---- settings ---- */

static enum hearth_status list_settings(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT name, value, modified_at FROM hearth_data.client_setting WHERE tenant = $1"
        " ORDER BY name COLLATE \"C\"",
        &params, question->cancel, &rows, ret_fault, err));
    question->n = (size_t)PQntuples(rows);
    question->settings =
        hearth_arena_array(question->arena, question->n, sizeof *question->settings);
    for (size_t i = 0; i < question->n && question->settings != NULL; i++) {
        question->settings[i] = (struct hearth_client_setting){
            .name = hearth_arena_str(question->arena, hearth_pg_str(rows, (int)i, 0)),
            .value = hearth_arena_str(question->arena, hearth_pg_str(rows, (int)i, 1)),
            .modified_at_ms = hearth_pg_i64(rows, (int)i, 2),
        };
    }
    PQclear(rows);
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

enum hearth_status hearth_store_client_settings(const struct hearth_scope *scope,
                                                struct hearth_client_setting **ret, size_t *ret_n,
                                                struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {
        .tenant = scope->tenant, .cancel = scope->cancel, .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, list_settings, &question, err));
    *ret = question.settings;
    *ret_n = question.n;
    return HEARTH_OK;
}

/* Why the setting was not taken. */
static enum hearth_status explain_refusal(struct question *question, struct hearth_pg *pg,
                                          enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_pg_params params;
    name_params(question, &params);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg, "SELECT modified_at FROM hearth_data.client_setting WHERE tenant = $1 AND name = $2",
        &params, question->cancel, &rows, ret_fault, err));
    bool is_newer = PQntuples(rows) > 0;
    int64_t stored_ms = is_newer ? hearth_pg_i64(rows, 0, 0) : 0;
    PQclear(rows);
    if (is_newer) {
        return HEARTH_FAIL(err, HEARTH_ALREADY_EXISTS,
                           "setting \"" HEARTH_STR_FMT
                           "\" was modified at %lld, after the %lld of this request",
                           HEARTH_STR_ARG(question->name), (long long)stored_ms,
                           (long long)question->setting->modified_at_ms);
    }
    return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                       "the tenant has %lld settings, as many as max-settings allows",
                       (long long)question->max);
}

static enum hearth_status put_in_transaction(struct question *question, struct hearth_pg *pg,
                                             enum hearth_pg_fault *ret_fault,
                                             struct hearth_err *err)
{
    HEARTH_TRY(hearth_tenant_begin(pg, question->tenant, question->cancel, ret_fault, err));
    struct hearth_pg_params params;
    name_params(question, &params);
    hearth_pg_param_text(&params, question->setting->value);
    hearth_pg_param_i64(&params, question->setting->modified_at_ms);
    hearth_pg_param_i64(&params, question->max);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "INSERT INTO hearth_data.client_setting AS s (tenant, name, value, modified_at)"
        " SELECT $1, $2, $3, $4 WHERE $5 = 0 OR EXISTS (SELECT FROM hearth_data.client_setting"
        " WHERE tenant = $1 AND name = $2) OR (SELECT count(*) FROM hearth_data.client_setting"
        " WHERE tenant = $1) < $5 ON CONFLICT (tenant, name) DO UPDATE SET"
        " value = excluded.value, modified_at = excluded.modified_at"
        " WHERE s.modified_at <= excluded.modified_at RETURNING 1",
        &params, question->cancel, &rows, ret_fault, err));
    bool taken = PQntuples(rows) > 0;
    PQclear(rows);
    if (!taken) {
        return explain_refusal(question, pg, ret_fault, err);
    }
    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

/* A COMMIT that went unanswered is done again: the same setting, modified at the same time. */
static enum hearth_status put_setting(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    enum hearth_status status = put_in_transaction(context, pg, ret_fault, err);
    hearth_pg_rollback(pg);
    return status;
}

enum hearth_status hearth_store_client_setting_put(const struct hearth_scope *scope,
                                                   const struct hearth_client_setting *setting,
                                                   int64_t max_settings, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct question question = {.tenant = scope->tenant,
                                .name = setting->name,
                                .setting = setting,
                                .max = max_settings,
                                .cancel = scope->cancel,
                                .arena = &arena};
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, put_setting, &question, err);
    hearth_arena_release(&arena);
    return status;
}

static enum hearth_status delete_setting(void *context, struct hearth_pg *pg,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    name_params(question, &params);
    PGresult *rows = NULL;
    HEARTH_TRY(
        hearth_pg_exec(pg, "DELETE FROM hearth_data.client_setting WHERE tenant = $1 AND name = $2",
                       &params, question->cancel, &rows, ret_fault, err));
    PQclear(rows);
    return HEARTH_OK;
}

enum hearth_status hearth_store_client_setting_delete(const struct hearth_scope *scope,
                                                      struct hearth_str name,
                                                      struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct question question = {
        .tenant = scope->tenant, .name = name, .cancel = scope->cancel, .arena = &arena};
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, delete_setting, &question, err);
    hearth_arena_release(&arena);
    return status;
}

/* ---- ad hoc profiles ---- */

static enum hearth_status check_room(struct question *question, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_pg_params params;
    name_params(question, &params);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT count(*), coalesce(sum(n_bytes), 0)::int8 FROM hearth_data.adhoc_profile"
        " WHERE tenant = $1 AND id <> $2",
        &params, question->cancel, &rows, ret_fault, err));
    int64_t n = hearth_pg_i64(rows, 0, 0), n_bytes = hearth_pg_i64(rows, 0, 1);
    PQclear(rows);
    if (question->max > 0 && n >= question->max) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the tenant has %lld ad hoc profiles, as many as max-adhoc-profiles "
                           "allows",
                           (long long)n);
    }
    int64_t new_bytes = (int64_t)question->profile->payload.n;
    if (question->max_bytes > 0 && new_bytes > question->max_bytes - n_bytes) {
        return HEARTH_FAIL(
            err, HEARTH_RESOURCE_EXHAUSTED,
            "the tenant's ad hoc profiles have %lld bytes; with %lld more they would "
            "exceed max-adhoc-bytes (%lld)",
            (long long)n_bytes, (long long)new_bytes, (long long)question->max_bytes);
    }
    return HEARTH_OK;
}

static enum hearth_status put_profile_in_transaction(struct question *question,
                                                     struct hearth_pg *pg,
                                                     enum hearth_pg_fault *ret_fault,
                                                     struct hearth_err *err)
{
    const struct hearth_adhoc *profile = question->profile;
    HEARTH_TRY(hearth_tenant_begin(pg, question->tenant, question->cancel, ret_fault, err));
    HEARTH_TRY(check_room(question, pg, ret_fault, err));
    struct hearth_pg_params params;
    name_params(question, &params);
    hearth_pg_param_text(&params, profile->name);
    hearth_pg_param_i64(&params, profile->uploaded_at_ms);
    hearth_pg_param_i64(&params, (int64_t)profile->payload.n);
    hearth_pg_param_bytes(&params, profile->payload);
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "INSERT INTO hearth_data.adhoc_profile (tenant, id, name, uploaded_at, n_bytes,"
        " payload) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (tenant, id) DO NOTHING",
        &params, question->cancel, NULL, ret_fault, err));
    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

/* Done again when COMMIT went unanswered: the id is random, so what has it is this profile. */
static enum hearth_status put_profile(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    enum hearth_status status = put_profile_in_transaction(context, pg, ret_fault, err);
    hearth_pg_rollback(pg);
    return status;
}

enum hearth_status hearth_store_adhoc_put(const struct hearth_scope *scope,
                                          const struct hearth_adhoc *profile, int64_t max_profiles,
                                          int64_t max_bytes, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct question question = {.tenant = scope->tenant,
                                .name = profile->id,
                                .profile = profile,
                                .max = max_profiles,
                                .max_bytes = max_bytes,
                                .cancel = scope->cancel,
                                .arena = &arena};
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, put_profile, &question, err);
    hearth_arena_release(&arena);
    return status;
}

static void take_profile(struct question *question, const PGresult *rows, int row,
                         bool with_payload)
{
    struct hearth_arena *arena = question->arena;
    question->profiles[row] = (struct hearth_adhoc){
        .id = hearth_arena_str(arena, hearth_pg_str(rows, row, 0)),
        .name = hearth_arena_str(arena, hearth_pg_str(rows, row, 1)),
        .uploaded_at_ms = hearth_pg_i64(rows, row, 2),
    };
    if (with_payload) {
        question->profiles[row].payload = hearth_arena_str(arena, hearth_pg_str(rows, row, 3));
    }
}

/* Of one id, with its bytes; of no id: all, without. */
static enum hearth_status read_profiles(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    bool is_one = question->name.p != NULL;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    if (is_one) {
        hearth_pg_param_text(&params, question->name);
    }
    const char *sql = is_one
                          ? "SELECT id, name, uploaded_at, payload FROM hearth_data.adhoc_profile"
                            " WHERE tenant = $1 AND id = $2"
                          : "SELECT id, name, uploaded_at FROM hearth_data.adhoc_profile"
                            " WHERE tenant = $1 ORDER BY id COLLATE \"C\" DESC";
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, sql, &params, question->cancel, &rows, ret_fault, err));
    question->n = (size_t)PQntuples(rows);
    question->profiles =
        hearth_arena_array(question->arena, question->n, sizeof *question->profiles);
    for (size_t i = 0; i < question->n && question->profiles != NULL; i++) {
        take_profile(question, rows, (int)i, is_one);
    }
    PQclear(rows);
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

enum hearth_status hearth_store_adhoc_get(const struct hearth_scope *scope, struct hearth_str id,
                                          struct hearth_adhoc *ret, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {
        .tenant = scope->tenant, .name = id, .cancel = scope->cancel, .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_profiles, &question, err));
    if (question.n == 0) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no ad hoc profile \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(id));
    }
    *ret = question.profiles[0];
    return HEARTH_OK;
}

enum hearth_status hearth_store_adhoc_list(const struct hearth_scope *scope,
                                           struct hearth_adhoc **ret, size_t *ret_n,
                                           struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {
        .tenant = scope->tenant, .cancel = scope->cancel, .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_profiles, &question, err));
    *ret = question.profiles;
    *ret_n = question.n;
    return HEARTH_OK;
}
