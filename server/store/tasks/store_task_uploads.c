/*
 * store_task_uploads.c -- whole files that tasks brought, in pieces; what of traced requests is in them; trimming
 * (contract: hearth/store/task_results.h).
 */
#include "hearth/store/task_results.h"

#include "pg/disk.h"
#include "pg/pg.h"
#include "pg/session.h"

#include <stdio.h>

#define PIECE_BYTES ((size_t)1 << 20)

struct question {
    struct hearth_str tenant, id; /* id: of a task or an upload */
    const struct hearth_str *ids;
    size_t n_ids;
    struct hearth_task_upload *upload; /* to be put */
    const struct hearth_go_segment *segments;
    size_t n_segments;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    /* The answer. */
    struct hearth_task_upload *uploads;
    struct hearth_go_segment *found;
    char *bytes; /* of the upload's content, n_bytes of them */
    size_t n;
};

/* ---- putting ---- */

/* Of what makes an upload the same one. */
static struct hearth_str upload_id(const struct hearth_task_upload *upload,
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

/* The row; *ret_upload_no 0: it was there. */
static enum hearth_status insert_upload(struct question *q, struct hearth_pg *pg,
                                        int64_t *ret_upload_no, enum hearth_pg_fault *ret_fault,
                                        struct hearth_err *err)
{
    const struct hearth_task_upload *upload = q->upload;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, q->arena);
    hearth_pg_param_text(&params, q->tenant);
    hearth_pg_param_i32(&params, upload->service_id);
    hearth_pg_param_text(&params, upload->upload_id);
    hearth_pg_param_text(&params, upload->task_id);
    hearth_pg_param_text(&params, upload->instance);
    hearth_pg_param_text(&params, upload->format);
    hearth_pg_param_i64(&params, (int64_t)upload->content.n);
    hearth_pg_param_i64(&params, upload->received_ms);
    hearth_pg_param_i32(&params, upload->is_pushed);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "INSERT INTO hearth_data.task_upload (tenant_id, service_id, upload_id, task_id, instance,"
        " format, n_bytes, received_at, is_pushed) SELECT tenant_id, $2, $3, $4, $5, $6, $7, $8,"
        " $9 <> 0 FROM hearth_data.tenant WHERE name = $1"
        " ON CONFLICT (tenant_id, upload_id) DO NOTHING RETURNING upload_no",
        &params, q->cancel, &rows, ret_fault, err));
    *ret_upload_no = PQntuples(rows) > 0 ? hearth_pg_i64(rows, 0, 0) : 0;
    PQclear(rows);
    return HEARTH_OK;
}

static enum hearth_status insert_pieces(struct question *q, int64_t upload_no, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_str content = q->upload->content;
    int32_t piece = 0;
    for (size_t at = 0; at < content.n; at += PIECE_BYTES) {
        size_t n = content.n - at < PIECE_BYTES ? content.n - at : PIECE_BYTES;
        struct hearth_arena scratch; /* parameters are copies */
        hearth_arena_init_like(&scratch, q->arena);
        struct hearth_pg_params params;
        hearth_pg_params_init(&params, &scratch);
        hearth_pg_param_i32(&params, q->upload->service_id);
        hearth_pg_param_i64(&params, upload_no);
        hearth_pg_param_i32(&params, piece++);
        hearth_pg_param_bytes(&params, hearth_str_n(content.p + at, n));
        enum hearth_status status = hearth_pg_exec(
            pg,
            "INSERT INTO hearth_data.task_upload_piece (service_id, upload_no, piece,"
            " payload) VALUES ($1, $2, $3, $4)",
            &params, q->cancel, NULL, ret_fault, err);
        hearth_arena_release(&scratch);
        HEARTH_TRY(status);
    }
    return HEARTH_OK;
}

static enum hearth_status insert_segments(struct question *q, int64_t upload_no,
                                          struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                          struct hearth_err *err)
{
    if (q->n_segments == 0) {
        return HEARTH_OK;
    }
    struct hearth_str *ids = hearth_arena_array(q->arena, q->n_segments, sizeof *ids);
    int32_t *counts = hearth_arena_array(q->arena, q->n_segments, sizeof *counts);
    if (ids == NULL || counts == NULL) {
        return HEARTH_FAIL_ARENA(err, q->arena);
    }
    for (size_t i = 0; i < q->n_segments; i++) {
        ids[i] = q->segments[i].segment_id;
        counts[i] = q->segments[i].n_samples;
    }
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, q->arena);
    hearth_pg_param_i32(&params, q->upload->service_id);
    hearth_pg_param_i64(&params, upload_no);
    hearth_pg_param_text_array(&params, ids, q->n_segments);
    hearth_pg_param_i32_array(&params, counts, q->n_segments);
    return hearth_pg_exec(
        pg,
        "INSERT INTO hearth_data.task_go_segment (service_id, upload_no, segment_id, n_samples)"
        " SELECT $1, $2, u.id, u.n FROM unnest($3, $4) AS u(id, n)",
        &params, q->cancel, NULL, ret_fault, err);
}

static enum hearth_status read_is_pushed(struct question *q, struct hearth_pg *pg,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, q->arena);
    hearth_pg_param_text(&params, q->tenant);
    hearth_pg_param_text(&params, q->upload->upload_id);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT u.is_pushed::int4 FROM hearth_data.task_upload u JOIN hearth_data.tenant t"
        " USING (tenant_id) WHERE t.name = $1 AND u.upload_id = $2",
        &params, q->cancel, &rows, ret_fault, err));
    bool found = PQntuples(rows) > 0;
    q->upload->is_pushed = found && hearth_pg_i32(rows, 0, 0) != 0;
    PQclear(rows);
    return found ? HEARTH_OK
                 : HEARTH_FAIL(err, HEARTH_INTERNAL, "the tenant of an upload is not known");
}

static enum hearth_status put_in_transaction(struct question *q, struct hearth_pg *pg,
                                             enum hearth_pg_fault *ret_fault,
                                             struct hearth_err *err)
{
    int64_t upload_no;
    HEARTH_TRY(hearth_pg_script(pg, "BEGIN ISOLATION LEVEL READ COMMITTED", ret_fault, err));
    HEARTH_TRY(insert_upload(q, pg, &upload_no, ret_fault, err));
    if (upload_no == 0) {
        return read_is_pushed(q, pg, ret_fault, err);
    }
    HEARTH_TRY(insert_pieces(q, upload_no, pg, ret_fault, err));
    HEARTH_TRY(insert_segments(q, upload_no, pg, ret_fault, err));
    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

/* Done again when COMMIT went unanswered: the upload is then there. */
static enum hearth_status put_upload(void *context, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    enum hearth_status status = put_in_transaction(context, pg, ret_fault, err);
    hearth_pg_rollback(pg);
    return status;
}

enum hearth_status hearth_store_task_upload_put(const struct hearth_scope *scope,
                                                struct hearth_task_upload *upload,
                                                const struct hearth_go_segment *segments,
                                                size_t n_segments, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    HEARTH_TRY(hearth_disk_check(scope->store, err));
    upload->upload_id = upload_id(upload, scope->arena);
    upload->n_bytes = (int64_t)upload->content.n;
    if (upload->upload_id.p == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }
    struct question q = {.tenant = scope->tenant,
                         .upload = upload,
                         .segments = segments,
                         .n_segments = n_segments,
                         .cancel = scope->cancel,
                         .arena = scope->arena};
    return hearth_store_with_pg(scope->store, scope->cancel, put_upload, &q, err);
}

static enum hearth_status mark_upload(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *q = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, q->arena);
    hearth_pg_param_text(&params, q->tenant);
    hearth_pg_param_text(&params, q->id);
    return hearth_pg_exec(pg,
                          "UPDATE hearth_data.task_upload SET is_pushed = true WHERE upload_id = $2"
                          " AND tenant_id = (SELECT tenant_id FROM hearth_data.tenant"
                          " WHERE name = $1)",
                          &params, q->cancel, NULL, ret_fault, err);
}

enum hearth_status hearth_store_task_upload_pushed(const struct hearth_scope *scope,
                                                   struct hearth_str upload, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct question q = {
        .tenant = scope->tenant, .id = upload, .cancel = scope->cancel, .arena = &arena};
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, mark_upload, &q, err);
    hearth_arena_release(&arena);
    return status;
}

/* ---- reading ---- */

#define UPLOAD_COLUMNS                                                                    \
    "u.upload_id, u.task_id, u.instance, u.format, u.service_id, s.name, u.received_at, " \
    "u.n_bytes,"                                                                          \
    " u.is_pushed::int4"
#define FROM_UPLOADS                                                                \
    " FROM hearth_data.task_upload u JOIN hearth_data.service s USING (service_id)" \
    " JOIN hearth_data.tenant t ON t.tenant_id = u.tenant_id AND t.name = $1"

static void take_upload(struct hearth_task_upload *ret, const PGresult *rows, int row,
                        struct hearth_arena *arena)
{
    *ret = (struct hearth_task_upload){
        .upload_id = hearth_arena_str(arena, hearth_pg_str(rows, row, 0)),
        .task_id = hearth_arena_str(arena, hearth_pg_str(rows, row, 1)),
        .instance = hearth_arena_str(arena, hearth_pg_str(rows, row, 2)),
        .format = hearth_arena_str(arena, hearth_pg_str(rows, row, 3)),
        .service_id = hearth_pg_i32(rows, row, 4),
        .service = hearth_arena_str(arena, hearth_pg_str(rows, row, 5)),
        .received_ms = hearth_pg_i64(rows, row, 6),
        .n_bytes = hearth_pg_i64(rows, row, 7),
        .is_pushed = hearth_pg_i32(rows, row, 8) != 0,
    };
}

static enum hearth_status list_uploads(void *context, struct hearth_pg *pg,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *q = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, q->arena);
    hearth_pg_param_text(&params, q->tenant);
    hearth_pg_param_text(&params, q->id);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT " UPLOAD_COLUMNS FROM_UPLOADS " WHERE u.task_id = $2"
                              " ORDER BY u.received_at, u.upload_no",
                              &params, q->cancel, &rows, ret_fault, err));
    q->n = (size_t)PQntuples(rows);
    q->uploads = hearth_arena_array(q->arena, q->n, sizeof *q->uploads);
    for (size_t i = 0; i < q->n && q->uploads != NULL; i++) {
        take_upload(&q->uploads[i], rows, (int)i, q->arena);
    }
    PQclear(rows);
    return q->arena->refused ? HEARTH_FAIL_ARENA(err, q->arena) : HEARTH_OK;
}

enum hearth_status hearth_store_task_uploads(const struct hearth_scope *scope,
                                             struct hearth_str task_id,
                                             struct hearth_task_upload **ret, size_t *ret_n,
                                             struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question q = {
        .tenant = scope->tenant, .id = task_id, .cancel = scope->cancel, .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, list_uploads, &q, err));
    *ret = q.uploads;
    *ret_n = q.n;
    return HEARTH_OK;
}

/* A piece behind the q->n bytes before it. */
static enum hearth_status add_piece(void *context, const PGresult *row, struct hearth_err *err)
{
    struct question *q = context;
    struct hearth_str piece = hearth_pg_str(row, 0, 0);
    if (piece.n > (uint64_t)q->upload->n_bytes - q->n) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "an upload has more bytes than it says");
    }
    memcpy(q->bytes + q->n, piece.p, piece.n);
    q->n += piece.n;
    return HEARTH_OK;
}

static enum hearth_status read_content(struct question *q, struct hearth_pg *pg,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, q->arena);
    hearth_pg_param_text(&params, q->tenant);
    hearth_pg_param_text(&params, q->id);
    hearth_pg_param_i32(&params, q->upload->service_id);
    q->n = 0;
    q->bytes = hearth_arena_alloc(q->arena, (size_t)q->upload->n_bytes);
    if (q->bytes == NULL) {
        return HEARTH_FAIL_ARENA(err, q->arena);
    }
    HEARTH_TRY(hearth_pg_stream(
        pg,
        "SELECT p.payload" FROM_UPLOADS " JOIN hearth_data.task_upload_piece p"
        " ON p.service_id = $3 AND p.upload_no = u.upload_no WHERE u.upload_id = $2"
        " ORDER BY p.piece",
        &params, q->cancel, add_piece, q, ret_fault, err));
    if (q->n != (uint64_t)q->upload->n_bytes) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "upload " HEARTH_STR_FMT " has lost bytes",
                           HEARTH_STR_ARG(q->id));
    }
    q->upload->content = hearth_str_n(q->bytes, q->n);
    return HEARTH_OK;
}

static enum hearth_status get_upload(void *context, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *q = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, q->arena);
    hearth_pg_param_text(&params, q->tenant);
    hearth_pg_param_text(&params, q->id);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, "SELECT " UPLOAD_COLUMNS FROM_UPLOADS " WHERE u.upload_id = $2",
                              &params, q->cancel, &rows, ret_fault, err));
    bool found = PQntuples(rows) > 0;
    if (found) {
        take_upload(q->upload, rows, 0, q->arena);
    }
    PQclear(rows);
    if (!found) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no upload \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(q->id));
    }
    if (q->arena->refused) {
        return HEARTH_FAIL_ARENA(err, q->arena);
    }
    return read_content(q, pg, ret_fault, err);
}

enum hearth_status hearth_store_task_upload_get(const struct hearth_scope *scope,
                                                struct hearth_str upload,
                                                struct hearth_task_upload *ret,
                                                struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question q = {.tenant = scope->tenant,
                         .id = upload,
                         .upload = ret,
                         .cancel = scope->cancel,
                         .arena = scope->arena};
    return hearth_store_with_pg(scope->store, scope->cancel, get_upload, &q, err);
}

static enum hearth_status list_segments(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *q = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, q->arena);
    hearth_pg_param_text(&params, q->tenant);
    hearth_pg_param_text(&params, q->id);
    hearth_pg_param_text_array(&params, q->ids, q->n_ids);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT g.segment_id, u.upload_id, u.task_id, g.n_samples" FROM_UPLOADS
        " JOIN hearth_data.task_go_segment g ON g.service_id = u.service_id AND"
        " g.upload_no = u.upload_no WHERE ($2 = '' OR u.task_id = $2) AND (cardinality($3) = 0 OR"
        " g.segment_id = ANY ($3)) ORDER BY u.received_at, u.upload_no, g.segment_id COLLATE \"C\"",
        &params, q->cancel, &rows, ret_fault, err));
    q->n = (size_t)PQntuples(rows);
    q->found = hearth_arena_array(q->arena, q->n, sizeof *q->found);
    for (size_t i = 0; i < q->n && q->found != NULL; i++) {
        q->found[i] = (struct hearth_go_segment){
            .segment_id = hearth_arena_str(q->arena, hearth_pg_str(rows, (int)i, 0)),
            .upload_id = hearth_arena_str(q->arena, hearth_pg_str(rows, (int)i, 1)),
            .task_id = hearth_arena_str(q->arena, hearth_pg_str(rows, (int)i, 2)),
            .n_samples = hearth_pg_i32(rows, (int)i, 3),
        };
    }
    PQclear(rows);
    return q->arena->refused ? HEARTH_FAIL_ARENA(err, q->arena) : HEARTH_OK;
}

enum hearth_status hearth_store_go_segments(const struct hearth_scope *scope,
                                            struct hearth_str task_id,
                                            const struct hearth_str *segment_ids, size_t n_ids,
                                            struct hearth_go_segment **ret, size_t *ret_n,
                                            struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    *ret_n = 0;
    if (task_id.n == 0 && n_ids == 0) {
        return HEARTH_OK;
    }
    struct question q = {.tenant = scope->tenant,
                         .id = hearth_str_n(task_id.n > 0 ? task_id.p : "", task_id.n),
                         .ids = segment_ids,
                         .n_ids = n_ids,
                         .cancel = scope->cancel,
                         .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, list_segments, &q, err));
    *ret = q.found;
    *ret_n = q.n;
    return HEARTH_OK;
}
