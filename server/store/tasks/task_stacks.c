/*
 * task_stacks.c -- stack traces of tasks as rows (contract: hearth/store/task_results.h).
 *
 * The row of a run is locked by whoever writes its stack traces (its upsert locks it), runs in the order of their
 * ids. So of two deliveries of one flush the second sees what the first stored, on whatever server.
 */
#include "hearth/base/mem.h"
#include "hearth/codec/compress.h"
#include "hearth/store/task_results.h"

#include "pg/disk.h"
#include "pg/pg.h"
#include "pg/session.h"
#include "tasks/task_chunks.h"

#include <stdlib.h>

#define ZSTD_LEVEL      3
#define MAX_CHUNK_BYTES ((size_t)256 << 20) /* inflated; what is written is far smaller */

struct writing {
    struct hearth_str tenant;
    struct hearth_task_flush **flushes; /* by schedule id, then time */
    size_t n;
    int32_t unknown_service_id;
    bool is_pushed;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    struct hearth_inflater *inflater;
};

/* ---- runs ---- */

/* Run and process of a flush: one row, or none when the service is not known. */
static const char UPSERT_RUN[] =
    "WITH t AS (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1),"
    " p AS (SELECT p.service_id, s.name AS service, i.name AS instance, p.name AS process"
    "  FROM hearth_data.process p JOIN hearth_data.service s USING (service_id)"
    "  JOIN hearth_data.instance i USING (instance_id)"
    "  WHERE p.process_id = $4 AND s.tenant_id = (SELECT tenant_id FROM t) LIMIT 1),"
    " k AS (SELECT k.service_id, s.name AS service FROM hearth_data.task k"
    "  JOIN hearth_data.service s USING (service_id)"
    "  WHERE k.task_id = $3 AND s.tenant_id = (SELECT tenant_id FROM t)),"
    " w AS (SELECT coalesce((SELECT service_id FROM p), (SELECT service_id FROM k), nullif($7, 0))"
    "  AS service_id),"
    " n AS (INSERT INTO hearth_data.task_schedule AS o (tenant_id, service_id, schedule_id, "
    "task_id,"
    "  process_id, start_at, end_at) SELECT t.tenant_id, w.service_id, $2, $3, $4, $5, "
    "greatest($5, $6)"
    "  FROM t, w WHERE w.service_id IS NOT NULL"
    "  ON CONFLICT (tenant_id, schedule_id) DO UPDATE SET end_at = greatest(o.end_at, "
    "excluded.end_at)"
    "  RETURNING schedule_no, service_id)"
    " SELECT n.schedule_no, n.service_id, p.service, p.instance, p.process, k.service,"
    " (SELECT coalesce(max(c.at), 0) FROM hearth_data.task_stack_chunk c WHERE c.service_id ="
    " n.service_id AND c.schedule_no = n.schedule_no AND c.at < $6)"
    " FROM n LEFT JOIN p ON true LEFT JOIN k ON true";

static enum hearth_status take_run(struct writing *w, struct hearth_task_flush *flush,
                                   const PGresult *rows, struct hearth_err *err)
{
    if (PQntuples(rows) == 0) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND,
                           "neither process " HEARTH_STR_FMT " nor task " HEARTH_STR_FMT
                           " is known",
                           HEARTH_STR_ARG(flush->process_id), HEARTH_STR_ARG(flush->task_id));
    }
    flush->schedule_no = hearth_pg_i64(rows, 0, 0);
    flush->service_id = hearth_pg_i32(rows, 0, 1);
    flush->service = hearth_arena_str(w->arena, hearth_pg_str(rows, 0, 2));
    flush->instance = hearth_arena_str(w->arena, hearth_pg_str(rows, 0, 3));
    flush->process = hearth_arena_str(w->arena, hearth_pg_str(rows, 0, 4));
    flush->task_service = hearth_arena_str(w->arena, hearth_pg_str(rows, 0, 5));
    flush->previous_ms = hearth_pg_i64(rows, 0, 6);
    return w->arena->refused ? HEARTH_FAIL_ARENA(err, w->arena) : HEARTH_OK;
}

static enum hearth_status upsert_run(struct writing *w, struct hearth_task_flush *flush,
                                     struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                     struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, w->arena);
    hearth_pg_param_text(&params, w->tenant);
    hearth_pg_param_text(&params, flush->schedule_id);
    hearth_pg_param_text(&params, flush->task_id);
    hearth_pg_param_text(&params, flush->process_id);
    hearth_pg_param_i64(&params, flush->start_ms);
    hearth_pg_param_i64(&params, flush->at_ms);
    hearth_pg_param_i32(&params, w->unknown_service_id);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, UPSERT_RUN, &params, w->cancel, &rows, ret_fault, err));
    enum hearth_status status = take_run(w, flush, rows, err);
    PQclear(rows);
    return status;
}

/* ---- parts ---- */

enum hearth_status hearth_task_chunk_unpack(struct hearth_inflater *inflater,
                                            struct hearth_str payload, struct hearth_arena *arena,
                                            struct hearth_task_chunk *ret, struct hearth_err *err)
{
    struct hearth_buf plain;
    hearth_buf_init(&plain, 0);
    plain.budget = arena->budget;
    enum hearth_status status =
        hearth_inflate(inflater, HEARTH_COMPRESSION_ZSTD, payload, MAX_CHUNK_BYTES, &plain, err);
    struct hearth_str bytes = {0};
    if (status == HEARTH_OK) {
        bytes = hearth_arena_str(arena, hearth_buf_view(&plain));
        status = bytes.p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
    }
    hearth_buf_release(&plain);
    if (status != HEARTH_OK) {
        return status == HEARTH_INVALID_ARGUMENT ? HEARTH_CORRUPT : status;
    }
    return hearth_task_chunk_decode(bytes, arena, ret, err);
}

/* What is stored of the flush: into `known`, and those that are no profiles yet into flush->parts. */
static enum hearth_status take_parts(struct writing *w, struct hearth_task_flush *flush,
                                     const PGresult *rows,
                                     int n_same, /* of its kind: the first ones */
                                     struct hearth_idmap *known, struct hearth_err *err)
{
    size_t n = (size_t)n_same;
    flush->parts = hearth_arena_calloc(w->arena, n + 1, sizeof *flush->parts);
    flush->n_parts = 0;
    if (flush->parts == NULL) {
        return HEARTH_FAIL_ARENA(err, w->arena);
    }
    for (size_t i = 0; i < n; i++) {
        struct hearth_task_part *part = &flush->parts[flush->n_parts];
        part->part = hearth_pg_i32(rows, (int)i, 0);
        HEARTH_TRY(hearth_task_chunk_unpack(w->inflater, hearth_pg_str(rows, (int)i, 2), w->arena,
                                            &part->chunk, err));
        part->hash = hearth_task_chunk_hash(&part->chunk);
        for (uint32_t r = 0; r < part->chunk.n_records; r++) {
            bool inserted;
            if (hearth_idmap_intern(known, hearth_task_record_key(&part->chunk.records[r]), 0,
                                    &inserted) == HEARTH_IDMAP_NONE) {
                return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to compare stack traces");
            }
        }
        if (hearth_pg_i32(rows, (int)i, 1) == 0) {
            flush->n_parts++;
        }
    }
    return HEARTH_OK;
}

/* The chunk without the records that are known. */
static enum hearth_status leave_out_known(struct writing *w, const struct hearth_task_chunk *chunk,
                                          const struct hearth_idmap *known,
                                          struct hearth_task_chunk *ret, struct hearth_err *err)
{
    *ret = *chunk;
    if (known->n == 0) {
        return HEARTH_OK;
    }
    ret->records = hearth_arena_array(w->arena, chunk->n_records, sizeof *ret->records);
    if (ret->records == NULL) {
        return HEARTH_FAIL_ARENA(err, w->arena);
    }
    ret->n_records = 0;
    for (uint32_t i = 0; i < chunk->n_records; i++) {
        if (hearth_idmap_find(known, hearth_task_record_key(&chunk->records[i])) ==
            HEARTH_IDMAP_NONE) {
            ret->records[ret->n_records++] = chunk->records[i];
        }
    }
    return HEARTH_OK;
}

static enum hearth_status pack_chunk(const struct hearth_task_chunk *chunk,
                                     struct hearth_arena *arena, struct hearth_str *ret,
                                     int32_t *ret_n_bytes, struct hearth_err *err)
{
    struct hearth_buf plain, packed;
    hearth_buf_init(&plain, MAX_CHUNK_BYTES);
    hearth_buf_init(&packed, 0);
    plain.budget = packed.budget = arena->budget;
    hearth_task_chunk_encode(chunk, &plain);
    enum hearth_status status;
    if (hearth_buf_failed(&plain)) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to store stack traces");
    } else {
        status = hearth_zstd(hearth_buf_view(&plain), ZSTD_LEVEL, &packed, err);
    }
    if (status == HEARTH_OK) {
        *ret_n_bytes = (int32_t)plain.n;
        *ret = hearth_arena_str(arena, hearth_buf_view(&packed));
        status = ret->p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
    }
    hearth_buf_release(&plain);
    hearth_buf_release(&packed);
    return status;
}

static enum hearth_status insert_part(struct writing *w, const struct hearth_task_flush *flush,
                                      const struct hearth_task_part *part, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_str payload;
    int32_t n_bytes;
    HEARTH_TRY(pack_chunk(&part->chunk, w->arena, &payload, &n_bytes, err));
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, w->arena);
    hearth_pg_param_i32(&params, flush->service_id);
    hearth_pg_param_i64(&params, flush->schedule_no);
    hearth_pg_param_i64(&params, flush->at_ms);
    hearth_pg_param_i32(&params, part->part);
    hearth_pg_param_i32(&params, (int32_t)part->chunk.kind);
    hearth_pg_param_uuid(&params, part->hash);
    hearth_pg_param_i32(&params, (int32_t)part->chunk.n_records);
    hearth_pg_param_i32(&params, n_bytes);
    hearth_pg_param_i32(&params, w->is_pushed);
    hearth_pg_param_bytes(&params, payload);
    return hearth_pg_exec(
        pg,
        "INSERT INTO hearth_data.task_stack_chunk (service_id, schedule_no, at, part, kind,"
        " chunk_hash, n_records, n_bytes, is_pushed, writer_id, profile_no, payload)"
        " VALUES ($1, $2, $3, $4, $5::int2, $6, $7, $8, $9 <> 0, 0, 0, $10)",
        &params, w->cancel, NULL, ret_fault, err);
}

/* A part of what `known` does not have, behind the last one. */
static enum hearth_status add_part(struct writing *w, struct hearth_task_flush *flush,
                                   const struct hearth_idmap *known, int32_t n_stored,
                                   struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                   struct hearth_err *err)
{
    struct hearth_task_part part = {.part = n_stored};
    HEARTH_TRY(leave_out_known(w, flush->chunk, known, &part.chunk, err));
    flush->n_repeated = flush->chunk->n_records - part.chunk.n_records;
    if (part.chunk.n_records == 0) {
        return HEARTH_OK;
    }
    part.hash = hearth_task_chunk_hash(&part.chunk);
    HEARTH_TRY(insert_part(w, flush, &part, pg, ret_fault, err));
    if (!w->is_pushed) {
        flush->parts[flush->n_parts++] = part;
    }
    return HEARTH_OK;
}

static enum hearth_status put_flush(struct writing *w, struct hearth_task_flush *flush,
                                    struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                    struct hearth_err *err)
{
    HEARTH_TRY(upsert_run(w, flush, pg, ret_fault, err));
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, w->arena);
    hearth_pg_param_i32(&params, flush->service_id);
    hearth_pg_param_i64(&params, flush->schedule_no);
    hearth_pg_param_i64(&params, flush->at_ms);
    hearth_pg_param_i32(&params, (int32_t)flush->chunk->kind);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT part, is_pushed::int4, CASE WHEN kind = $4 THEN payload END"
        " FROM hearth_data.task_stack_chunk WHERE service_id = $1 AND schedule_no = $2 AND at = $3"
        " ORDER BY kind = $4 DESC, part",
        &params, w->cancel, &rows, ret_fault, err));
    int n_stored = PQntuples(rows), n_same = 0;
    while (n_same < n_stored && !hearth_pg_is_null(rows, n_same, 2)) {
        n_same++;
    }
    struct hearth_idmap known;
    hearth_idmap_init(&known);
    enum hearth_status status = take_parts(w, flush, rows, n_same, &known, err);
    PQclear(rows);
    if (status == HEARTH_OK) {
        status = add_part(w, flush, &known, n_stored, pg, ret_fault, err);
    }
    hearth_idmap_release(&known);
    return status;
}

static enum hearth_status put_all(struct writing *w, struct hearth_pg *pg,
                                  enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_script(pg, "BEGIN ISOLATION LEVEL READ COMMITTED", ret_fault, err));
    for (size_t i = 0; i < w->n; i++) {
        HEARTH_TRY(put_flush(w, w->flushes[i], pg, ret_fault, err));
    }
    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

/* Done again when COMMIT went unanswered: the parts are then there, and no profiles yet. */
static enum hearth_status put_flushes(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    enum hearth_status status = put_all(context, pg, ret_fault, err);
    hearth_pg_rollback(pg);
    return status;
}

static int compare_flushes(const void *va, const void *vb)
{
    const struct hearth_task_flush *a = *(struct hearth_task_flush *const *)va;
    const struct hearth_task_flush *b = *(struct hearth_task_flush *const *)vb;
    int order = hearth_str_cmp(a->schedule_id, b->schedule_id);
    return order != 0 ? order : (a->at_ms > b->at_ms) - (a->at_ms < b->at_ms);
}

enum hearth_status hearth_store_task_flushes_put(const struct hearth_scope *scope,
                                                 struct hearth_task_flush *flushes, size_t n,
                                                 int32_t unknown_service_id, bool is_pushed,
                                                 struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    HEARTH_TRY(hearth_disk_check(scope->store, err));
    struct writing w = {
        .tenant = scope->tenant,
        .flushes = hearth_arena_array(scope->arena, n, sizeof *w.flushes),
        .n = n,
        .unknown_service_id = unknown_service_id,
        .is_pushed = is_pushed,
        .cancel = scope->cancel,
        .arena = scope->arena,
        .inflater = hearth_inflater_new(),
    };
    enum hearth_status status =
        w.flushes == NULL || w.inflater == NULL
            ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to store stack traces")
            : HEARTH_OK;
    if (status == HEARTH_OK) {
        for (size_t i = 0; i < n; i++) {
            w.flushes[i] = &flushes[i];
        }
        qsort(w.flushes, n, sizeof *w.flushes, compare_flushes);
        status = hearth_store_with_pg(scope->store, scope->cancel, put_flushes, &w, err);
    }
    hearth_inflater_free(w.inflater);
    return status;
}

/* ---- profiles ---- */

struct marking {
    int32_t *services, *parts, *writers;
    int64_t *runs, *times, *profiles;
    size_t n;
    struct hearth_cancel *cancel;
    struct hearth_arena arena;
};

static enum hearth_status mark_pushed(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct marking *m = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &m->arena);
    hearth_pg_param_i32_array(&params, m->services, m->n);
    hearth_pg_param_i64_array(&params, m->runs, m->n);
    hearth_pg_param_i64_array(&params, m->times, m->n);
    hearth_pg_param_i32_array(&params, m->parts, m->n);
    hearth_pg_param_i32_array(&params, m->writers, m->n);
    hearth_pg_param_i64_array(&params, m->profiles, m->n);
    return hearth_pg_exec(
        pg,
        "UPDATE hearth_data.task_stack_chunk c SET is_pushed = true, writer_id = u.writer_id,"
        " profile_no = u.profile_no FROM unnest($1, $2, $3, $4, $5, $6)"
        " AS u(service_id, schedule_no, at, part, writer_id, profile_no)"
        " WHERE c.service_id = u.service_id AND c.schedule_no = u.schedule_no AND c.at = u.at"
        " AND c.part = u.part AND NOT c.is_pushed",
        &params, m->cancel, NULL, ret_fault, err);
}

static bool marking_alloc(struct marking *m, size_t n)
{
    m->services = hearth_arena_array(&m->arena, n, sizeof *m->services);
    m->parts = hearth_arena_array(&m->arena, n, sizeof *m->parts);
    m->writers = hearth_arena_array(&m->arena, n, sizeof *m->writers);
    m->runs = hearth_arena_array(&m->arena, n, sizeof *m->runs);
    m->times = hearth_arena_array(&m->arena, n, sizeof *m->times);
    m->profiles = hearth_arena_array(&m->arena, n, sizeof *m->profiles);
    return !m->arena.refused;
}

static void marking_add(struct marking *m, const struct hearth_task_flush *flush,
                        const struct hearth_task_part *part)
{
    m->services[m->n] = flush->service_id;
    m->runs[m->n] = flush->schedule_no;
    m->times[m->n] = flush->at_ms;
    m->parts[m->n] = part->part;
    m->writers[m->n] = part->profile.writer_id;
    m->profiles[m->n++] = part->profile.profile_no;
}

enum hearth_status hearth_store_task_parts_pushed(const struct hearth_scope *scope,
                                                  const struct hearth_task_flush *flushes, size_t n,
                                                  struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    size_t n_parts = 0;
    for (size_t i = 0; i < n; i++) {
        n_parts += flushes[i].n_parts;
    }
    if (n_parts == 0) {
        return HEARTH_OK;
    }
    struct marking m = {.cancel = scope->cancel};
    hearth_arena_init(&m.arena, 0);
    enum hearth_status status;
    if (marking_alloc(&m, n_parts)) {
        for (size_t i = 0; i < n; i++) {
            for (size_t p = 0; p < flushes[i].n_parts; p++) {
                marking_add(&m, &flushes[i], &flushes[i].parts[p]);
            }
        }
        status = hearth_store_with_pg(scope->store, scope->cancel, mark_pushed, &m, err);
    } else {
        status = HEARTH_FAIL_ARENA(err, &m.arena);
    }
    hearth_arena_release(&m.arena);
    return status;
}

/* ---- reading ---- */

struct reading {
    struct hearth_str tenant, task_id;
    const struct hearth_str *ids;
    size_t n_ids;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    struct hearth_task_schedule *schedules; /* the answer */
    size_t n;
    /* of chunks */
    const struct hearth_task_schedule *of;
    const struct hearth_task_range *ranges;
    size_t n_ranges;
    const struct hearth_task_chunk_reader *reader;
    struct hearth_inflater *inflater;
    struct hearth_arena scratch;
};

/* Columns 9 and 10: of each profile its writer and its number. */
static enum hearth_status take_profiles(const PGresult *rows, int row, struct hearth_arena *arena,
                                        struct hearth_task_schedule *schedule,
                                        struct hearth_err *err)
{
    int32_t *writers;
    int64_t *numbers;
    size_t n_writers, n_numbers;
    HEARTH_TRY(hearth_pg_i32_array(rows, row, 9, arena, &writers, &n_writers, err));
    HEARTH_TRY(hearth_pg_i64_array(rows, row, 10, arena, &numbers, &n_numbers, err));
    schedule->n_profiles = n_writers < n_numbers ? n_writers : n_numbers;
    schedule->profiles =
        hearth_arena_array(arena, schedule->n_profiles, sizeof *schedule->profiles);
    for (size_t i = 0; i < schedule->n_profiles && schedule->profiles != NULL; i++) {
        schedule->profiles[i] = (struct hearth_profile_id){writers[i], numbers[i]};
    }
    return HEARTH_OK;
}

static enum hearth_status read_schedules(void *context, struct hearth_pg *pg,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct reading *r = context;
    struct hearth_arena *arena = r->arena;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_text(&params, r->tenant);
    hearth_pg_param_text(&params, r->task_id);
    hearth_pg_param_text_array(&params, r->ids, r->n_ids);
    hearth_pg_param_i64(&params, HEARTH_TASK_SCHEDULE_PROFILES);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT d.schedule_no, d.service_id, d.schedule_id, d.task_id, d.process_id, p.name, "
        "i.name,"
        " d.start_at, d.end_at, coalesce(c.writers, '{}'), coalesce(c.numbers, '{}')"
        " FROM hearth_data.task_schedule d"
        " JOIN hearth_data.tenant t ON t.tenant_id = d.tenant_id AND t.name = $1"
        " LEFT JOIN hearth_data.process p ON p.service_id = d.service_id AND"
        " p.process_id = d.process_id LEFT JOIN hearth_data.instance i USING (instance_id)"
        " LEFT JOIN LATERAL (SELECT array_agg(k.writer_id) AS writers, array_agg(k.profile_no) AS"
        " numbers FROM (SELECT writer_id, profile_no FROM hearth_data.task_stack_chunk WHERE"
        " service_id = d.service_id AND schedule_no = d.schedule_no AND writer_id > 0 ORDER BY at,"
        " part LIMIT $4) k) c ON true"
        " WHERE CASE WHEN $2 <> '' THEN d.task_id = $2 ELSE d.schedule_id = ANY ($3) END"
        " ORDER BY d.start_at, d.schedule_id COLLATE \"C\"",
        &params, r->cancel, &rows, ret_fault, err));
    r->n = (size_t)PQntuples(rows);
    r->schedules = hearth_arena_array(arena, r->n, sizeof *r->schedules);
    enum hearth_status status = HEARTH_OK;
    for (size_t i = 0; i < r->n && r->schedules != NULL && status == HEARTH_OK; i++) {
        r->schedules[i] = (struct hearth_task_schedule){
            .schedule_no = hearth_pg_i64(rows, (int)i, 0),
            .service_id = hearth_pg_i32(rows, (int)i, 1),
            .schedule_id = hearth_arena_str(arena, hearth_pg_str(rows, (int)i, 2)),
            .task_id = hearth_arena_str(arena, hearth_pg_str(rows, (int)i, 3)),
            .process_id = hearth_arena_str(arena, hearth_pg_str(rows, (int)i, 4)),
            .process = hearth_arena_str(arena, hearth_pg_str(rows, (int)i, 5)),
            .instance = hearth_arena_str(arena, hearth_pg_str(rows, (int)i, 6)),
            .start_ms = hearth_pg_i64(rows, (int)i, 7),
            .end_ms = hearth_pg_i64(rows, (int)i, 8),
        };
        status = take_profiles(rows, (int)i, arena, &r->schedules[i], err);
    }
    PQclear(rows);
    HEARTH_TRY(status);
    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

enum hearth_status hearth_store_task_schedules(const struct hearth_scope *scope,
                                               struct hearth_str task_id,
                                               const struct hearth_str *schedule_ids, size_t n_ids,
                                               struct hearth_task_schedule **ret, size_t *ret_n,
                                               struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct reading r = {.tenant = scope->tenant,
                        .task_id = task_id,
                        .ids = schedule_ids,
                        .n_ids = n_ids,
                        .cancel = scope->cancel,
                        .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_schedules, &r, err));
    *ret = r.schedules;
    *ret_n = r.n;
    return HEARTH_OK;
}

static enum hearth_status visit_chunk(void *context, const PGresult *row, struct hearth_err *err)
{
    struct reading *r = context;
    int64_t run = hearth_pg_i64(row, 0, 0);
    size_t i = 0;
    while (i < r->n && r->of[i].schedule_no != run) {
        i++;
    }
    if (i == r->n) {
        return HEARTH_OK;
    }
    struct hearth_task_chunk chunk;
    hearth_arena_reset(&r->scratch);
    HEARTH_TRY(
        hearth_task_chunk_unpack(r->inflater, hearth_pg_str(row, 0, 2), &r->scratch, &chunk, err));
    return r->reader->chunk(r->reader->context, &r->of[i], hearth_pg_i64(row, 0, 1), &chunk, err);
}

static enum hearth_status read_chunks(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct reading *r = context;
    HEARTH_TRY(r->reader->begin(r->reader->context, err));
    int32_t *services = hearth_arena_array(r->arena, r->n, sizeof *services);
    int64_t *runs = hearth_arena_array(r->arena, r->n, sizeof *runs);
    int64_t *from = hearth_arena_array(r->arena, r->n_ranges, sizeof *from);
    int64_t *to = hearth_arena_array(r->arena, r->n_ranges, sizeof *to);
    if (services == NULL || runs == NULL || from == NULL || to == NULL) {
        return HEARTH_FAIL_ARENA(err, r->arena);
    }
    for (size_t i = 0; i < r->n; i++) {
        services[i] = r->of[i].service_id;
        runs[i] = r->of[i].schedule_no;
    }
    for (size_t i = 0; i < r->n_ranges; i++) {
        from[i] = r->ranges[i].from_ms;
        to[i] = r->ranges[i].to_ms;
    }
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, r->arena);
    hearth_pg_param_i32_array(&params, services, r->n);
    hearth_pg_param_i64_array(&params, runs, r->n);
    hearth_pg_param_i64_array(&params, from, r->n_ranges);
    hearth_pg_param_i64_array(&params, to, r->n_ranges);
    return hearth_pg_stream(
        pg,
        "SELECT c.schedule_no, c.at, c.payload FROM unnest($1, $2) AS s(service_id, schedule_no)"
        " JOIN hearth_data.task_stack_chunk c USING (service_id, schedule_no)"
        " WHERE cardinality($3) = 0 OR EXISTS (SELECT FROM unnest($3, $4) AS r(a, b)"
        " WHERE c.at BETWEEN r.a AND r.b) ORDER BY c.schedule_no, c.at, c.part",
        &params, r->cancel, visit_chunk, r, ret_fault, err);
}

enum hearth_status hearth_store_task_chunks(const struct hearth_scope *scope,
                                            const struct hearth_task_schedule *schedules,
                                            size_t n_schedules,
                                            const struct hearth_task_range *ranges, size_t n_ranges,
                                            const struct hearth_task_chunk_reader *reader,
                                            struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct reading r = {.of = schedules,
                        .n = n_schedules,
                        .ranges = ranges,
                        .n_ranges = n_ranges,
                        .cancel = scope->cancel,
                        .arena = scope->arena,
                        .reader = reader,
                        .inflater = hearth_inflater_new()};
    if (r.inflater == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to read stack traces");
    }
    hearth_arena_init_like(&r.scratch, scope->arena);
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, read_chunks, &r, err);
    hearth_arena_release(&r.scratch);
    hearth_inflater_free(r.inflater);
    return status;
}
