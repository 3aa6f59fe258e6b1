/*
 * uploads_read.c -- reads uploads, their results and their parts (contract:
 * hearth/store/store_uploads.h).
 */
#include "uploads/upload_rows.h"

/* ---- uploads ---- */

#define UPLOAD(kind, member) HEARTH_COLUMN(kind, struct hearth_profile_upload, member)
static const struct hearth_column upload_columns[] = {
    UPLOAD(TEXT, tenant),
    UPLOAD(TEXT, upload_id),
    UPLOAD(TEXT, file_name),
    UPLOAD(TEXT, format),
    HEARTH_COLUMN_LIST(PAIRS, struct hearth_profile_upload, labels, n_labels),
    UPLOAD(I64, from_ns),
    UPLOAD(I64, until_ns),
    UPLOAD(I64, sample_rate),
    UPLOAD(I64, n_bytes),
    UPLOAD(I32, part_bytes),
    UPLOAD(TEXT, sha256),
    UPLOAD(I32, state),
    UPLOAD(I64, created_ms),
    UPLOAD(I64, queued_ms),
    UPLOAD(I64, ended_ms),
    UPLOAD(I64, n_received_bytes),
    UPLOAD(I64, n_profiles),
    UPLOAD(I64, n_samples),
    UPLOAD(I64, n_settled),
    UPLOAD(I64, n_stored),
    UPLOAD(I64, n_refused),
    UPLOAD(TEXT, dropped),
    UPLOAD(TEXT, reason),
    UPLOAD(I64, upload_no),
    UPLOAD(I32, claim),
    UPLOAD(I32, n_lost),
    UPLOAD(I64, storing_ms),
};
const struct hearth_row_type hearth_upload_rows =
    HEARTH_ROW_TYPE(upload_columns, struct hearth_profile_upload);

void hearth_upload_id_params(const struct hearth_scope *scope, struct hearth_str upload_id,
                             struct hearth_arena *arena, struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, arena);
    hearth_pg_param_text(params, scope->tenant);
    hearth_pg_param_text(params, upload_id);
}

bool hearth_upload_id_is_valid(struct hearth_str upload_id)
{
    for (size_t i = 0; i < upload_id.n; i++) {
        char c = upload_id.p[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
    }
    return upload_id.n == HEARTH_PROFILE_UPLOAD_ID_TEXT;
}

enum hearth_status hearth_upload_fail_unknown(struct hearth_str upload_id, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no upload \"" HEARTH_STR_FMT "\"",
                       HEARTH_STR_ARG(upload_id));
}

enum hearth_status hearth_store_upload_get(const struct hearth_scope *scope,
                                           struct hearth_str upload_id,
                                           struct hearth_profile_upload *ret,
                                           struct hearth_err *err)
{
    if (!hearth_upload_id_is_valid(upload_id)) {
        return hearth_upload_fail_unknown(upload_id, err);
    }

    struct hearth_pg_params params;
    hearth_upload_id_params(scope, upload_id, scope->arena, &params);

    bool found;
    HEARTH_TRY(hearth_store_select_one(scope,
                                       "SELECT " HEARTH_UPLOAD_COLUMNS
                                       " FROM hearth_data.profile_upload u"
                                       " WHERE u.tenant = $1 AND u.upload_id = $2",
                                       &params, &hearth_upload_rows, ret, &found, err));

    return found ? HEARTH_OK : hearth_upload_fail_unknown(upload_id, err);
}

enum hearth_status hearth_store_uploads(const struct hearth_scope *scope, int32_t limit,
                                        struct hearth_profile_upload **ret, size_t *ret_n,
                                        struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_i32(&params, limit);

    return hearth_store_select(scope,
                               "SELECT " HEARTH_UPLOAD_COLUMNS
                               " FROM hearth_data.profile_upload u WHERE u.tenant = $1"
                               " ORDER BY u.upload_no DESC LIMIT $2",
                               &params, &hearth_upload_rows, ret, ret_n, err);
}

/* ---- results ---- */

#define RESULT(kind, member) HEARTH_COLUMN(kind, struct hearth_profile_upload_result, member)
static const struct hearth_column result_columns[] = {
    RESULT(I32, profile),   RESULT(I32, type),       RESULT(TEXT, profile_type),
    RESULT(I32, writer_id), RESULT(I64, profile_no), RESULT(I64, n_samples),
    RESULT(I64, total),
};
const struct hearth_row_type hearth_upload_result_rows =
    HEARTH_ROW_TYPE(result_columns, struct hearth_profile_upload_result);

enum hearth_status hearth_store_upload_results(const struct hearth_scope *scope, int64_t upload_no,
                                               struct hearth_profile_upload_result **ret,
                                               size_t *ret_n, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_i64(&params, upload_no);

    return hearth_store_select(scope,
                               "SELECT profile, type, profile_type, writer_id, profile_no,"
                               " n_samples, total FROM hearth_data.profile_upload_result"
                               " WHERE upload_no = $1 ORDER BY profile, type",
                               &params, &hearth_upload_result_rows, ret, ret_n, err);
}

/* ---- parts ---- */

/* A read of parts. */
struct part_read {
    struct hearth_pg_params params;
    struct hearth_cancel *cancel;
    const struct hearth_upload_reader *reader;
};

static enum hearth_status visit_part(void *context, const PGresult *row, struct hearth_err *err)
{
    const struct part_read *read = context;
    return read->reader->part(read->reader->context, hearth_pg_str(row, 0, 0), err);
}

static enum hearth_status stream_parts(void *context, struct hearth_pg *pg,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct part_read *read = context;

    HEARTH_TRY(read->reader->begin(read->reader->context, err));

    return hearth_pg_stream(pg,
                            "SELECT payload FROM hearth_data.profile_upload_part"
                            " WHERE upload_no = $1 AND part >= $2 AND part - $2 < $3"
                            " ORDER BY part",
                            &read->params, read->cancel, visit_part, read, ret_fault, err);
}

enum hearth_status hearth_store_upload_read(const struct hearth_scope *scope, int64_t upload_no,
                                            int32_t first, int32_t n,
                                            const struct hearth_upload_reader *reader,
                                            struct hearth_err *err)
{
    struct part_read read = {.cancel = scope->cancel, .reader = reader};
    hearth_pg_params_init(&read.params, scope->arena);
    hearth_pg_param_i64(&read.params, upload_no);
    hearth_pg_param_i32(&read.params, first);
    hearth_pg_param_i32(&read.params, n);

    return hearth_store_with_pg(scope, stream_parts, &read, err);
}
