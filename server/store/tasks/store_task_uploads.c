/*
 * store_task_uploads.c -- writes and reads uploaded files of tasks, stored in pieces, and the
 * segments that have samples in them (contract: hearth/store/task_results.h).
 */
#include "hearth/store/task_results.h"

#include "session/disk.h"
#include "session/statements.h"

#include <assert.h>
#include <stdio.h>

#define PIECE_BYTES ((size_t)1 << 20)

/* $1 tenant, $2 a task or an upload. */
static void make_upload_params(const struct hearth_scope *scope, struct hearth_str id,
                               struct hearth_arena *arena, struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, arena);
    hearth_pg_param_text(params, scope->tenant);
    hearth_pg_param_text(params, id);
}

/* ---- storing ---- */

/*
 * Makes the id of a file. Files with the same task, instance, format and content have the same id.
 * .p NULL: memory was refused.
 */
static struct hearth_str make_upload_id(const struct hearth_task_upload *upload,
                                        struct hearth_arena *arena)
{
    const struct hearth_hash128 parts[4] = {
        hearth_hash128(upload->task_id.p, upload->task_id.n, 0),
        hearth_hash128(upload->instance.p, upload->instance.n, 0),
        hearth_hash128(upload->format.p, upload->format.n, 0),
        hearth_hash128(upload->content.p, upload->content.n, 0),
    };

    struct hearth_hash128 hash = hearth_hash128(parts, sizeof parts, 0);

    return hearth_str_c(hearth_arena_printf(arena, "%016llx%016llx", (unsigned long long)hash.hi,
                                            (unsigned long long)hash.lo));
}

/* A file to be stored. */
struct upload_put {
    struct hearth_task_upload *upload;
    const struct hearth_go_segment *segments;
    size_t n_segments;
};

/* Inserts the row of the file. *ret_upload_no 0: it exists already. */
static enum hearth_status insert_upload(const struct hearth_task_upload *upload,
                                        struct hearth_transaction *transaction,
                                        int64_t *ret_upload_no, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, transaction->scope->tenant);
    hearth_pg_param_i32(&params, upload->service_id);
    hearth_pg_param_text(&params, upload->upload_id);
    hearth_pg_param_text(&params, upload->task_id);
    hearth_pg_param_text(&params, upload->instance);
    hearth_pg_param_text(&params, upload->format);
    hearth_pg_param_i64(&params, (int64_t)upload->content.n);
    hearth_pg_param_i64(&params, upload->received_ms);
    hearth_pg_param_i32(&params, upload->is_pushed);

    bool found;
    *ret_upload_no = 0;

    return hearth_transaction_select_one(
        transaction, transaction->arena,
        "INSERT INTO hearth_data.task_upload (tenant_id, service_id, upload_id, task_id, instance,"
        " format, n_bytes, received_at, is_pushed) SELECT tenant_id, $2, $3, $4, $5, $6, $7, $8,"
        " $9 <> 0 FROM hearth_data.tenant WHERE name = $1"
        " ON CONFLICT (tenant_id, upload_id) DO NOTHING RETURNING upload_no",
        &params, &hearth_i64_rows, ret_upload_no, &found, err);
}

/* Inserts the content, PIECE_BYTES at a time. */
static enum hearth_status insert_pieces(const struct hearth_task_upload *upload, int64_t upload_no,
                                        struct hearth_transaction *transaction,
                                        struct hearth_err *err)
{
    struct hearth_str content = upload->content;
    int32_t piece = 0;

    for (size_t at = 0; at < content.n; at += PIECE_BYTES) {
        /* Parameters are copies: this takes the memory of one piece at a time. */
        HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena scratch;
        hearth_arena_init_like(&scratch, transaction->arena);
        size_t n = content.n - at < PIECE_BYTES ? content.n - at : PIECE_BYTES;

        struct hearth_pg_params params;
        hearth_pg_params_init(&params, &scratch);
        hearth_pg_param_i32(&params, upload->service_id);
        hearth_pg_param_i64(&params, upload_no);
        hearth_pg_param_i32(&params, piece++);
        hearth_pg_param_bytes(&params, hearth_str_n(content.p + at, n));
        HEARTH_TRY(hearth_transaction_run(
            transaction,
            "INSERT INTO hearth_data.task_upload_piece (service_id, upload_no, piece,"
            " payload) VALUES ($1, $2, $3, $4)",
            &params, NULL, err));
    }

    return HEARTH_OK;
}

#define GO_SEGMENT(kind, member) HEARTH_COLUMN(kind, struct hearth_go_segment, member)
static const struct hearth_column put_segment_columns[] = {
    GO_SEGMENT(TEXT, segment_id),
    GO_SEGMENT(I32, n_samples),
};
static const struct hearth_row_type put_segment_rows =
    HEARTH_ROW_TYPE(put_segment_columns, struct hearth_go_segment);

/* Inserts the segments with samples in the file. */
static enum hearth_status insert_segments(const struct upload_put *put, int64_t upload_no,
                                          struct hearth_transaction *transaction,
                                          struct hearth_err *err)
{
    if (put->n_segments == 0) {
        return HEARTH_OK;
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_i32(&params, put->upload->service_id);
    hearth_pg_param_i64(&params, upload_no);
    hearth_pg_param_rows(&params, &put_segment_rows, put->segments, put->n_segments);

    return hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.task_go_segment (service_id, upload_no, segment_id, n_samples)"
        " SELECT $1, $2, u.id, u.n FROM unnest($3, $4) AS u(id, n)",
        &params, NULL, err);
}

/* Sets upload->is_pushed: whether the stored file with its id has become profiles. */
static enum hearth_status read_is_pushed(struct hearth_task_upload *upload,
                                         struct hearth_transaction *transaction,
                                         struct hearth_err *err)
{
    static const struct hearth_column columns[] = {{HEARTH_COLUMN_BOOL, 0, 0}};
    static const struct hearth_row_type bool_rows = HEARTH_ROW_TYPE(columns, bool);
    struct hearth_pg_params params;
    make_upload_params(transaction->scope, upload->upload_id, transaction->arena, &params);

    bool found;
    HEARTH_TRY(hearth_transaction_select_one(
        transaction, transaction->arena,
        "SELECT u.is_pushed::int4 FROM hearth_data.task_upload u JOIN hearth_data.tenant t"
        " USING (tenant_id) WHERE t.name = $1 AND u.upload_id = $2",
        &params, &bool_rows, &upload->is_pushed, &found, err));

    return found
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_INTERNAL, "the tenant of an uploaded file does not exist");
}

/* Stores a file. After a COMMIT without an answer the file may exist: then it is complete. */
static enum hearth_status put_upload(void *context, struct hearth_transaction *transaction,
                                     struct hearth_err *err)
{
    const struct upload_put *put = context;
    int64_t upload_no;

    /* Insert its row, unless it exists. */
    HEARTH_TRY(insert_upload(put->upload, transaction, &upload_no, err));
    if (upload_no == 0) {
        return read_is_pushed(put->upload, transaction, err);
    }

    /* Insert its content and segments. */
    HEARTH_TRY(insert_pieces(put->upload, upload_no, transaction, err));

    return insert_segments(put, upload_no, transaction, err);
}

enum hearth_status hearth_store_task_upload_put(const struct hearth_scope *scope,
                                                struct hearth_task_upload *upload,
                                                const struct hearth_go_segment *segments,
                                                size_t n_segments, struct hearth_err *err)
{
    assert(scope->arena != NULL && (segments != NULL || n_segments == 0));
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    HEARTH_TRY(hearth_disk_check(scope->store, err));

    /* Complete the upload, and store it. */
    upload->upload_id = make_upload_id(upload, scope->arena);
    upload->n_bytes = (int64_t)upload->content.n;
    if (upload->upload_id.p == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }

    struct upload_put put = {upload, segments, n_segments};

    return hearth_store_in_transaction(scope, put_upload, &put, err);
}

enum hearth_status hearth_store_task_upload_pushed(const struct hearth_scope *scope,
                                                   struct hearth_str upload,
                                                   struct hearth_profile_id profile,
                                                   struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    make_upload_params(scope, upload, &arena, &params);
    hearth_pg_param_i32(&params, profile.writer_id);
    hearth_pg_param_i64(&params, profile.profile_no);

    return hearth_store_run(scope,
                            "UPDATE hearth_data.task_upload SET is_pushed = true,"
                            " writer_id = $3, profile_no = $4 WHERE upload_id = $2 AND tenant_id ="
                            " (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1)",
                            &params, NULL, err);
}

/* ---- reading ---- */

#define UPLOAD_COLUMNS                                                                    \
    "u.upload_id, u.task_id, u.instance, u.format, u.service_id, s.name, u.received_at, " \
    "u.n_bytes, u.is_pushed::int4"
#define FROM_UPLOADS                                                                \
    " FROM hearth_data.task_upload u JOIN hearth_data.service s USING (service_id)" \
    " JOIN hearth_data.tenant t ON t.tenant_id = u.tenant_id AND t.name = $1"

#define UPLOAD(kind, member) HEARTH_COLUMN(kind, struct hearth_task_upload, member)
static const struct hearth_column upload_columns[] = {
    UPLOAD(TEXT, upload_id),  UPLOAD(TEXT, task_id),   UPLOAD(TEXT, instance),
    UPLOAD(TEXT, format),     UPLOAD(I32, service_id), UPLOAD(TEXT, service),
    UPLOAD(I64, received_ms), UPLOAD(I64, n_bytes),    UPLOAD(BOOL, is_pushed),
};
static const struct hearth_row_type upload_rows =
    HEARTH_ROW_TYPE(upload_columns, struct hearth_task_upload);

enum hearth_status hearth_store_task_uploads(const struct hearth_scope *scope,
                                             struct hearth_str task_id,
                                             struct hearth_task_upload **ret, size_t *ret_n,
                                             struct hearth_err *err)
{
    struct hearth_pg_params params;
    make_upload_params(scope, task_id, scope->arena, &params);

    return hearth_store_select(scope,
                               "SELECT " UPLOAD_COLUMNS FROM_UPLOADS " WHERE u.task_id = $2"
                               " ORDER BY u.received_at, u.upload_no",
                               &params, &upload_rows, ret, ret_n, err);
}

/* A read of the content of a file. */
struct content_read {
    struct hearth_pg_params params;
    struct hearth_cancel *cancel;
    char *bytes;
    size_t n, n_expected;
};

/* Appends the piece of a row to the content. */
static enum hearth_status append_piece(void *context, const PGresult *row, struct hearth_err *err)
{
    struct content_read *read = context;
    assert(read->n <= read->n_expected);

    struct hearth_str piece = hearth_pg_str(row, 0, 0);
    if (piece.n > read->n_expected - read->n) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "the pieces of an uploaded file have more bytes than the file");
    }

    memcpy(read->bytes + read->n, piece.p, piece.n);
    read->n += piece.n;

    return HEARTH_OK;
}

static enum hearth_status stream_content(void *context, struct hearth_pg *pg,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct content_read *read = context;
    read->n = 0; /* an earlier attempt may have read some */

    return hearth_pg_stream(
        pg,
        "SELECT p.payload" FROM_UPLOADS " JOIN hearth_data.task_upload_piece p"
        " ON p.service_id = $3 AND p.upload_no = u.upload_no WHERE u.upload_id = $2"
        " ORDER BY p.piece",
        &read->params, read->cancel, append_piece, read, ret_fault, err);
}

/* Reads the content of an upload into the arena. */
static enum hearth_status read_content(const struct hearth_scope *scope,
                                       struct hearth_task_upload *upload, struct hearth_err *err)
{
    struct content_read read = {.cancel = scope->cancel, .n_expected = (size_t)upload->n_bytes};
    make_upload_params(scope, upload->upload_id, scope->arena, &read.params);
    hearth_pg_param_i32(&read.params, upload->service_id);
    read.bytes = hearth_arena_alloc(scope->arena, read.n_expected);
    if (read.bytes == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }

    /* Read the pieces. */
    HEARTH_TRY(hearth_store_with_pg(scope, stream_content, &read, err));
    if (read.n != read.n_expected) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "upload " HEARTH_STR_FMT " has lost bytes",
                           HEARTH_STR_ARG(upload->upload_id));
    }

    upload->content = hearth_str_n(read.bytes, read.n);

    return HEARTH_OK;
}

enum hearth_status hearth_store_task_upload_get(const struct hearth_scope *scope,
                                                struct hearth_str upload,
                                                struct hearth_task_upload *ret,
                                                struct hearth_err *err)
{
    struct hearth_pg_params params;
    make_upload_params(scope, upload, scope->arena, &params);

    bool found;
    HEARTH_TRY(hearth_store_select_one(
        scope, "SELECT " UPLOAD_COLUMNS FROM_UPLOADS " WHERE u.upload_id = $2", &params,
        &upload_rows, ret, &found, err));
    if (!found) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no upload \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(upload));
    }

    return read_content(scope, ret, err);
}

static const struct hearth_column go_segment_columns[] = {
    GO_SEGMENT(TEXT, segment_id),
    GO_SEGMENT(TEXT, upload_id),
    GO_SEGMENT(TEXT, task_id),
    GO_SEGMENT(I32, n_samples),
};
static const struct hearth_row_type go_segment_rows =
    HEARTH_ROW_TYPE(go_segment_columns, struct hearth_go_segment);

enum hearth_status hearth_store_go_segments(const struct hearth_scope *scope,
                                            const struct hearth_go_segment_filter *filter,
                                            struct hearth_go_segment **ret, size_t *ret_n,
                                            struct hearth_err *err)
{
    assert(filter->segment_ids != NULL || filter->n_ids == 0);
    HEARTH_TRY(hearth_store_check_open(scope->store, err));

    /* Without a restriction nothing is found. */
    *ret_n = 0;
    if (filter->task_id.n == 0 && filter->n_ids == 0) {
        return HEARTH_OK;
    }

    struct hearth_pg_params params;
    struct hearth_str task_id = filter->task_id.n > 0 ? filter->task_id : HEARTH_STR("");
    make_upload_params(scope, task_id, scope->arena, &params);
    hearth_pg_param_text_array(&params, filter->segment_ids, filter->n_ids);

    /* By the index on segment_id or on task_upload (task_id). */
    return hearth_store_select(
        scope,
        "SELECT g.segment_id, u.upload_id, u.task_id, g.n_samples" FROM_UPLOADS
        " JOIN hearth_data.task_go_segment g ON g.service_id = u.service_id AND"
        " g.upload_no = u.upload_no WHERE ($2 = '' OR u.task_id = $2)"
        " AND (cardinality($3) = 0 OR g.segment_id = ANY ($3))"
        " ORDER BY u.received_at, u.upload_no, g.segment_id COLLATE \"C\"",
        &params, &go_segment_rows, ret, ret_n, err);
}
