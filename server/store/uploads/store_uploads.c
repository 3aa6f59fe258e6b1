/*
 * store_uploads.c -- uploads of people and their parts: creating, receiving, deleting
 * (contract: hearth/store/store_uploads.h).
 */
#include "hearth/store/store_uploads.h"

#include "hearth/base/clock.h"

#include "session/disk.h"
#include "session/session.h"
#include "uploads/upload_rows.h"

#include <assert.h>

/* ---- creating ---- */

/* An upload to be stored. */
struct upload_create {
    const struct hearth_profile_upload *upload;
    const struct hearth_upload_quota *quota;
};

/* What the tenant has stored. */
struct upload_usage {
    int64_t n, n_bytes;
};

static const struct hearth_column usage_columns[] = {
    HEARTH_COLUMN(I64, struct upload_usage, n),
    HEARTH_COLUMN(I64, struct upload_usage, n_bytes),
};
static const struct hearth_row_type usage_rows =
    HEARTH_ROW_TYPE(usage_columns, struct upload_usage);

/* Fails if the tenant may not have the upload, too. */
static enum hearth_status check_upload_quota(const struct upload_create *create,
                                             struct hearth_transaction *transaction,
                                             struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_upload_id_params(transaction->scope, create->upload->upload_id, transaction->arena,
                            &params);

    /* Sum the others. */
    struct upload_usage usage = {0, 0};
    bool found;
    HEARTH_TRY(hearth_transaction_select_one(
        transaction, transaction->arena,
        "SELECT count(*), coalesce(sum(n_bytes), 0)::int8 FROM hearth_data.profile_upload"
        " WHERE tenant = $1 AND upload_id <> $2",
        &params, &usage_rows, &usage, &found, err));

    /* Check the limits. */
    const struct hearth_upload_quota *quota = create->quota;
    if (quota->max_uploads > 0 && usage.n >= quota->max_uploads) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the tenant has %lld uploads, as many as max-uploads allows; delete "
                           "some, or wait until retain-uploads removes them",
                           (long long)usage.n);
    }

    int64_t n_bytes = create->upload->n_bytes;
    if (quota->max_bytes > 0 && n_bytes > quota->max_bytes - usage.n_bytes) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the tenant's uploads have %lld bytes; with %lld more they would exceed "
                           "max-uploads-bytes (%lld)",
                           (long long)usage.n_bytes, (long long)n_bytes,
                           (long long)quota->max_bytes);
    }

    return HEARTH_OK;
}

/* Adds the labels as two arrays: names, values. */
static enum hearth_status add_label_params(const struct hearth_profile_upload *upload,
                                           struct hearth_arena *arena,
                                           struct hearth_pg_params *params, struct hearth_err *err)
{
    size_t n = upload->n_labels;
    struct hearth_str *names = hearth_arena_array(arena, n, sizeof *names);
    struct hearth_str *values = hearth_arena_array(arena, n, sizeof *values);
    if (names == NULL || values == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        names[i] = upload->labels[i].name;
        values[i] = upload->labels[i].value;
    }

    hearth_pg_param_text_array(params, names, n);
    hearth_pg_param_text_array(params, values, n);

    return HEARTH_OK;
}

/* Stores an upload. After a COMMIT without an answer it may be stored: its id is random. */
static enum hearth_status create_upload(void *context, struct hearth_transaction *transaction,
                                        struct hearth_err *err)
{
    const struct upload_create *create = context;
    const struct hearth_profile_upload *upload = create->upload;
    HEARTH_TRY(hearth_transaction_lock_tenant(transaction, err));
    HEARTH_TRY(check_upload_quota(create, transaction, err));

    /* Insert it. */
    struct hearth_pg_params params;
    hearth_upload_id_params(transaction->scope, upload->upload_id, transaction->arena, &params);
    hearth_pg_param_text(&params, upload->file_name);
    hearth_pg_param_text(&params, upload->format);
    HEARTH_TRY(add_label_params(upload, transaction->arena, &params, err));
    hearth_pg_param_i64(&params, upload->from_ns);
    hearth_pg_param_i64(&params, upload->until_ns);
    hearth_pg_param_i64(&params, upload->sample_rate);
    hearth_pg_param_i64(&params, upload->n_bytes);
    hearth_pg_param_i32(&params, upload->part_bytes);
    hearth_pg_param_text(&params, upload->sha256);
    hearth_pg_param_i64(&params, upload->created_ms);

    return hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.profile_upload (tenant, upload_id, file_name, format, label_names,"
        " label_values, from_at, until_at, sample_rate, n_bytes, part_bytes, sha256, created_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
        " ON CONFLICT (tenant, upload_id) DO NOTHING",
        &params, NULL, err);
}

enum hearth_status hearth_store_upload_create(const struct hearth_scope *scope,
                                              const struct hearth_profile_upload *upload,
                                              const struct hearth_upload_quota *quota,
                                              struct hearth_err *err)
{
    assert(upload->n_bytes > 0 && upload->part_bytes > 0);
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    HEARTH_TRY(hearth_disk_check(scope->store, err));

    struct upload_create create = {upload, quota};

    return hearth_store_in_transaction(scope, create_upload, &create, err);
}

/* ---- receiving ---- */

enum hearth_status hearth_store_upload_part(const struct hearth_scope *scope,
                                            const struct hearth_profile_upload *upload,
                                            int32_t part, struct hearth_str bytes,
                                            struct hearth_err *err)
{
    assert(scope->arena != NULL && part >= 0 && bytes.n > 0);
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    HEARTH_TRY(hearth_disk_check(scope->store, err));

    /* Parameters are copies: this takes the memory of one part at a time. */
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena scratch;
    hearth_arena_init_like(&scratch, scope->arena);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &scratch);
    hearth_pg_param_i64(&params, upload->upload_no);
    hearth_pg_param_i32(&params, part);
    hearth_pg_param_i32(&params, (int32_t)bytes.n);
    hearth_pg_param_i64(&params, hearth_clock_wall_ns() / HEARTH_NS_PER_MS);
    hearth_pg_param_bytes(&params, bytes);

    /* The lock keeps the upload from being queued before the part is committed. */
    size_t n_stored;
    HEARTH_TRY(hearth_store_run(
        scope,
        "INSERT INTO hearth_data.profile_upload_part AS p (upload_no, part, n_bytes, received_at,"
        " payload) SELECT upload_no, $2, $3, $4, $5 FROM hearth_data.profile_upload"
        " WHERE upload_no = $1 AND state = 0 FOR SHARE ON CONFLICT (upload_no, part) DO UPDATE SET"
        " n_bytes = excluded.n_bytes, received_at = excluded.received_at,"
        " payload = excluded.payload RETURNING 1",
        &params, &n_stored, err));

    return n_stored > 0 ? HEARTH_OK
                        : HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                                      "upload \"" HEARTH_STR_FMT "\" receives no more parts",
                                      HEARTH_STR_ARG(upload->upload_id));
}

enum hearth_status hearth_store_upload_missing(const struct hearth_scope *scope,
                                               const struct hearth_profile_upload *upload,
                                               int32_t limit, int32_t **ret, size_t *ret_n,
                                               struct hearth_err *err)
{
    static const struct hearth_column columns[] = {{HEARTH_COLUMN_I32, 0, 0}};
    static const struct hearth_row_type i32_rows = HEARTH_ROW_TYPE(columns, int32_t);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_i64(&params, upload->upload_no);
    hearth_pg_param_i32(&params, hearth_profile_upload_n_parts(upload) - 1);
    hearth_pg_param_i32(&params, limit);

    return hearth_store_select(
        scope,
        "SELECT n FROM generate_series(0, $2) AS n WHERE NOT EXISTS (SELECT FROM"
        " hearth_data.profile_upload_part p WHERE p.upload_no = $1 AND p.part = n)"
        " ORDER BY n LIMIT $3",
        &params, &i32_rows, ret, ret_n, err);
}

enum hearth_status hearth_store_upload_queue(const struct hearth_scope *scope,
                                             struct hearth_str upload_id, struct hearth_str sha256,
                                             struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_upload_id_params(scope, upload_id, &arena, &params);
    hearth_pg_param_text(&params, sha256);
    hearth_pg_param_i64(&params, hearth_clock_wall_ns() / HEARTH_NS_PER_MS);

    return hearth_store_run(
        scope,
        "UPDATE hearth_data.profile_upload SET state = 1, sha256 = $3, queued_at = $4,"
        " due_at = now() WHERE tenant = $1 AND upload_id = $2 AND state = 0",
        &params, NULL, err);
}

enum hearth_status hearth_store_upload_settle(const struct hearth_scope *scope,
                                              struct hearth_err *err)
{
    return hearth_store_run(scope, HEARTH_SQL_SETTLE, NULL, NULL, err);
}

/* ---- deleting ---- */

enum hearth_status hearth_store_upload_delete(const struct hearth_scope *scope,
                                              struct hearth_str upload_id, struct hearth_err *err)
{
    if (!hearth_upload_id_is_valid(upload_id)) {
        return hearth_upload_fail_unknown(upload_id, err);
    }

    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_upload_id_params(scope, upload_id, &arena, &params);

    size_t n;
    HEARTH_TRY(hearth_store_run(scope,
                                "DELETE FROM hearth_data.profile_upload"
                                " WHERE tenant = $1 AND upload_id = $2 RETURNING 1",
                                &params, &n, err));

    return n > 0 ? HEARTH_OK : hearth_upload_fail_unknown(upload_id, err);
}
