/*
 * task_stacks.c -- writes and reads stack traces of tasks (contract: hearth/store/task_results.h).
 *
 * A transaction that writes stack traces locks the rows of their runs (by its upsert), in the order
 * of their ids. So if a flush is delivered twice, on any servers, the second transaction sees what
 * the first one stored.
 */
#include "hearth/base/mem.h"
#include "hearth/codec/compress.h"
#include "hearth/store/task_results.h"

#include "pg/queries.h"
#include "session/disk.h"
#include "session/statements.h"
#include "tasks/task_chunks.h"

#include <assert.h>
#include <stdlib.h>

#define ZSTD_LEVEL      3
#define MAX_CHUNK_BYTES ((size_t)256 << 20) /* inflated; written chunks are far smaller */

/* Flushes to be stored, in one transaction. */
struct flush_put {
    const struct hearth_scope *scope;
    struct hearth_task_flush **flushes; /* sorted by schedule id, then time */
    size_t n;
    int32_t unknown_service_id;
    bool is_pushed;
    struct hearth_inflater *inflater;
};

/* ---- runs ---- */

#define FLUSH(kind, member) HEARTH_COLUMN(kind, struct hearth_task_flush, member)
static const struct hearth_column run_columns[] = {
    FLUSH(I64, schedule_no), FLUSH(I32, service_id), FLUSH(TEXT, service),
    FLUSH(TEXT, instance),   FLUSH(TEXT, process),   FLUSH(TEXT, task_service),
    FLUSH(I64, previous_ms),
};
static const struct hearth_row_type run_rows =
    HEARTH_ROW_TYPE(run_columns, struct hearth_task_flush);

/* Creates or extends the run of a flush, and fills the members of the flush that _put promises. */
static enum hearth_status upsert_run(const struct flush_put *put, struct hearth_task_flush *flush,
                                     struct hearth_transaction *transaction, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, put->scope->tenant);
    hearth_pg_param_text(&params, flush->schedule_id);
    hearth_pg_param_text(&params, flush->task_id);
    hearth_pg_param_text(&params, flush->process_id);
    hearth_pg_param_i64(&params, flush->start_ms);
    hearth_pg_param_i64(&params, flush->at_ms);
    hearth_pg_param_i32(&params, put->unknown_service_id);

    /* Read the run. */
    struct hearth_task_flush run;
    bool found;
    HEARTH_TRY(hearth_transaction_select_one(transaction, put->scope->arena,
                                             hearth_sql_upsert_task_run, &params, &run_rows, &run,
                                             &found, err));
    if (!found) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND,
                           "neither process " HEARTH_STR_FMT " nor task " HEARTH_STR_FMT
                           " is known",
                           HEARTH_STR_ARG(flush->process_id), HEARTH_STR_ARG(flush->task_id));
    }

    /* Copy what the row says. */
    flush->schedule_no = run.schedule_no;
    flush->service_id = run.service_id;
    flush->service = run.service;
    flush->instance = run.instance;
    flush->process = run.process;
    flush->task_service = run.task_service;
    flush->previous_ms = run.previous_ms;

    return HEARTH_OK;
}

/* ---- parts ---- */

enum hearth_status hearth_task_chunk_unpack(struct hearth_inflater *inflater,
                                            struct hearth_str payload, struct hearth_arena *arena,
                                            struct hearth_task_chunk *ret, struct hearth_err *err)
{
    struct hearth_buf plain;
    hearth_buf_init(&plain, 0);
    plain.budget = arena->budget;

    /* Inflate the payload. */
    enum hearth_status status =
        hearth_inflate(inflater, HEARTH_COMPRESSION_ZSTD, payload, MAX_CHUNK_BYTES, &plain, err);
    struct hearth_str bytes = {0};
    if (status == HEARTH_OK) {
        bytes = hearth_arena_str(arena, hearth_buf_view(&plain));
        status = bytes.p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
    }

    hearth_buf_release(&plain);

    /* Decode it. Stored bytes that cannot be inflated are damaged. */
    if (status != HEARTH_OK) {
        return status == HEARTH_INVALID_ARGUMENT ? HEARTH_CORRUPT : status;
    }

    return hearth_task_chunk_decode(bytes, arena, ret, err);
}

/* A stored part of a flush. */
struct stored_part {
    int32_t part;
    bool is_pushed;
    struct hearth_str payload; /* empty: the part is of another kind */
};

#define STORED_PART(kind, member) HEARTH_COLUMN(kind, struct stored_part, member)
static const struct hearth_column stored_part_columns[] = {
    STORED_PART(I32, part),
    STORED_PART(BOOL, is_pushed),
    STORED_PART(BYTES, payload),
};
static const struct hearth_row_type stored_part_rows =
    HEARTH_ROW_TYPE(stored_part_columns, struct stored_part);

/*
 * Adds the keys of the records of the first n parts to `known`, and the parts that are not profiles
 * yet to flush->parts, which has room for one more.
 */
static enum hearth_status take_parts(const struct flush_put *put, const struct stored_part *stored,
                                     size_t n, struct hearth_task_flush *flush,
                                     struct hearth_idmap *known, struct hearth_err *err)
{
    struct hearth_arena *arena = put->scope->arena;
    flush->parts = hearth_arena_calloc(arena, n + 1, sizeof *flush->parts);
    flush->n_parts = 0;
    if (flush->parts == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        struct hearth_task_part *part = &flush->parts[flush->n_parts];
        part->part = stored[i].part;
        HEARTH_TRY(
            hearth_task_chunk_unpack(put->inflater, stored[i].payload, arena, &part->chunk, err));
        part->hash = hearth_task_chunk_hash(&part->chunk);

        /* Add its keys. */
        for (uint32_t r = 0; r < part->chunk.n_records; r++) {
            bool inserted;
            if (hearth_idmap_intern(known, hearth_task_record_key(&part->chunk.records[r]), 0,
                                    &inserted) == HEARTH_IDMAP_NONE) {
                return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to compare stack traces");
            }
        }

        flush->n_parts += !stored[i].is_pushed;
    }

    assert(flush->n_parts <= n);

    return HEARTH_OK;
}

/* Returns the chunk without the known records. */
static enum hearth_status drop_known_records(const struct hearth_task_chunk *chunk,
                                             const struct hearth_idmap *known,
                                             struct hearth_arena *arena,
                                             struct hearth_task_chunk *ret, struct hearth_err *err)
{
    *ret = *chunk;
    if (known->n == 0) {
        return HEARTH_OK;
    }

    ret->records = hearth_arena_array(arena, chunk->n_records, sizeof *ret->records);
    if (ret->records == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    ret->n_records = 0;
    for (uint32_t i = 0; i < chunk->n_records; i++) {
        if (hearth_idmap_find(known, hearth_task_record_key(&chunk->records[i])) ==
            HEARTH_IDMAP_NONE) {
            ret->records[ret->n_records++] = chunk->records[i];
        }
    }

    assert(ret->n_records <= chunk->n_records);

    return HEARTH_OK;
}

/* Encodes and compresses a chunk. *ret_n_bytes: its size before compression. */
static enum hearth_status pack_chunk(const struct hearth_task_chunk *chunk,
                                     struct hearth_arena *arena, struct hearth_str *ret,
                                     int32_t *ret_n_bytes, struct hearth_err *err)
{
    assert(chunk->n_records > 0);

    /* Encode the chunk. */
    struct hearth_buf plain, packed;
    hearth_buf_init(&plain, MAX_CHUNK_BYTES);
    hearth_buf_init(&packed, 0);
    plain.budget = packed.budget = arena->budget;
    hearth_task_chunk_encode(chunk, &plain);

    /* Compress it into the arena. */
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

/* Inserts the row of a new part. */
static enum hearth_status insert_part(const struct flush_put *put,
                                      const struct hearth_task_flush *flush,
                                      const struct hearth_task_part *part,
                                      struct hearth_transaction *transaction,
                                      struct hearth_err *err)
{
    struct hearth_str payload;
    int32_t n_bytes;
    HEARTH_TRY(pack_chunk(&part->chunk, transaction->arena, &payload, &n_bytes, err));

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_i32(&params, flush->service_id);
    hearth_pg_param_i64(&params, flush->schedule_no);
    hearth_pg_param_i64(&params, flush->at_ms);
    hearth_pg_param_i32(&params, part->part);
    hearth_pg_param_i32(&params, (int32_t)part->chunk.kind);
    hearth_pg_param_uuid(&params, part->hash);
    hearth_pg_param_i32(&params, (int32_t)part->chunk.n_records);
    hearth_pg_param_i32(&params, n_bytes);
    hearth_pg_param_i32(&params, put->is_pushed);
    hearth_pg_param_bytes(&params, payload);

    return hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.task_stack_chunk (service_id, schedule_no, at, part, kind,"
        " chunk_hash, n_records, n_bytes, is_pushed, writer_id, profile_no, payload)"
        " VALUES ($1, $2, $3, $4, $5::int2, $6, $7, $8, $9 <> 0, 0, 0, $10)",
        &params, NULL, err);
}

/* Adds a part with the records that are not known, if any, after the n_stored parts. */
static enum hearth_status add_part(const struct flush_put *put, struct hearth_task_flush *flush,
                                   const struct hearth_idmap *known, size_t n_stored,
                                   struct hearth_transaction *transaction, struct hearth_err *err)
{
    struct hearth_task_part part = {.part = (int32_t)n_stored};

    /* Find its records. */
    HEARTH_TRY(drop_known_records(flush->chunk, known, put->scope->arena, &part.chunk, err));
    flush->n_repeated = flush->chunk->n_records - part.chunk.n_records;
    if (part.chunk.n_records == 0) {
        return HEARTH_OK;
    }

    /* Store it. */
    part.hash = hearth_task_chunk_hash(&part.chunk);
    HEARTH_TRY(insert_part(put, flush, &part, transaction, err));
    if (!put->is_pushed) {
        flush->parts[flush->n_parts++] = part;
    }

    return HEARTH_OK;
}

/* Stores the records of a flush that no stored part of it has. */
static enum hearth_status put_flush(const struct flush_put *put, struct hearth_task_flush *flush,
                                    struct hearth_transaction *transaction, struct hearth_err *err)
{
    HEARTH_TRY(upsert_run(put, flush, transaction, err));

    /* Read its stored parts: first those of its kind, with payloads, then the others without. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_i32(&params, flush->service_id);
    hearth_pg_param_i64(&params, flush->schedule_no);
    hearth_pg_param_i64(&params, flush->at_ms);
    hearth_pg_param_i32(&params, (int32_t)flush->chunk->kind);

    struct stored_part *stored;
    size_t n_stored, n_same = 0;
    HEARTH_TRY(hearth_transaction_select(
        transaction, transaction->arena,
        "SELECT part, is_pushed::int4, CASE WHEN kind = $4 THEN payload END"
        " FROM hearth_data.task_stack_chunk WHERE service_id = $1 AND schedule_no = $2 AND at = $3"
        " ORDER BY kind = $4 DESC, part",
        &params, &stored_part_rows, &stored, &n_stored, err));
    while (n_same < n_stored && stored[n_same].payload.n > 0) {
        n_same++;
    }

    /* Add a part with the other records. */
    struct hearth_idmap known;
    hearth_idmap_init(&known);
    enum hearth_status status = take_parts(put, stored, n_same, flush, &known, err);
    if (status == HEARTH_OK) {
        status = add_part(put, flush, &known, n_stored, transaction, err);
    }

    hearth_idmap_release(&known);

    return status;
}

/*
 * Stores the flushes. After a COMMIT without an answer the parts may be stored: then they are
 * found, and are not profiles yet.
 */
static enum hearth_status put_flushes(void *context, struct hearth_transaction *transaction,
                                      struct hearth_err *err)
{
    const struct flush_put *put = context;

    for (size_t i = 0; i < put->n; i++) {
        HEARTH_TRY(put_flush(put, put->flushes[i], transaction, err));
    }

    return HEARTH_OK;
}

/* By schedule id, then time. */
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
    assert(flushes != NULL || n == 0);
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    HEARTH_TRY(hearth_disk_check(scope->store, err));

    /* Sort the flushes, so that all transactions lock runs in one order. */
    struct hearth_task_flush **sorted = hearth_arena_array(scope->arena, n, sizeof *sorted);
    struct hearth_inflater *inflater = hearth_inflater_new();
    if (sorted == NULL || inflater == NULL) {
        hearth_inflater_free(inflater);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to store stack traces");
    }

    for (size_t i = 0; i < n; i++) {
        assert(flushes[i].chunk != NULL && flushes[i].chunk->n_records > 0);
        sorted[i] = &flushes[i];
    }

    qsort(sorted, n, sizeof *sorted, compare_flushes);

    /* Store them. */
    struct flush_put put = {.scope = scope,
                            .flushes = sorted,
                            .n = n,
                            .unknown_service_id = unknown_service_id,
                            .is_pushed = is_pushed,
                            .inflater = inflater};
    enum hearth_status status = hearth_store_in_transaction(scope, put_flushes, &put, err);
    hearth_inflater_free(inflater);

    return status;
}

/* ---- profiles ---- */

/* A part that has become a profile. */
struct pushed_part {
    int32_t service_id;
    int64_t schedule_no, at_ms;
    int32_t part, writer_id;
    int64_t profile_no;
};

#define PUSHED_PART(kind, member) HEARTH_COLUMN(kind, struct pushed_part, member)
static const struct hearth_column pushed_part_columns[] = {
    PUSHED_PART(I32, service_id), PUSHED_PART(I64, schedule_no), PUSHED_PART(I64, at_ms),
    PUSHED_PART(I32, part),       PUSHED_PART(I32, writer_id),   PUSHED_PART(I64, profile_no),
};
static const struct hearth_row_type pushed_part_rows =
    HEARTH_ROW_TYPE(pushed_part_columns, struct pushed_part);

/* Writes the parts of the flushes to `out`, which has room for all, by flush and part. */
static void fill_pushed_parts(const struct hearth_task_flush *flushes, size_t n,
                              struct pushed_part *out)
{
    assert(flushes != NULL && out != NULL);

    for (size_t i = 0; i < n; i++) {
        for (size_t p = 0; p < flushes[i].n_parts; p++) {
            const struct hearth_task_part *part = &flushes[i].parts[p];
            *out++ = (struct pushed_part){
                .service_id = flushes[i].service_id,
                .schedule_no = flushes[i].schedule_no,
                .at_ms = flushes[i].at_ms,
                .part = part->part,
                .writer_id = part->profile.writer_id,
                .profile_no = part->profile.profile_no,
            };
        }
    }
}

enum hearth_status hearth_store_task_parts_pushed(const struct hearth_scope *scope,
                                                  const struct hearth_task_flush *flushes, size_t n,
                                                  struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));

    /* Count the parts. */
    size_t n_parts = 0;
    for (size_t i = 0; i < n; i++) {
        n_parts += flushes[i].n_parts;
    }

    if (n_parts == 0) {
        return HEARTH_OK;
    }

    /* List them. */
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct pushed_part *parts = hearth_arena_array(&arena, n_parts, sizeof *parts);
    if (parts == NULL) {
        return HEARTH_FAIL_ARENA(err, &arena);
    }

    fill_pushed_parts(flushes, n, parts);

    /* Mark them; a part that is marked stays as it is. By the primary key. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_rows(&params, &pushed_part_rows, parts, n_parts);

    return hearth_store_run(
        scope,
        "UPDATE hearth_data.task_stack_chunk c SET is_pushed = true, writer_id = u.writer_id,"
        " profile_no = u.profile_no FROM unnest($1, $2, $3, $4, $5, $6)"
        " AS u(service_id, schedule_no, at, part, writer_id, profile_no)"
        " WHERE c.service_id = u.service_id AND c.schedule_no = u.schedule_no AND c.at = u.at"
        " AND c.part = u.part AND NOT c.is_pushed",
        &params, NULL, err);
}

/* ---- reading ---- */

/* A run, and the writers and numbers of its profiles. */
struct schedule_row {
    struct hearth_task_schedule schedule;
    int32_t *writers;
    int64_t *numbers;
    size_t n_writers, n_numbers;
};

#define SCHEDULE(kind, member) HEARTH_COLUMN(kind, struct schedule_row, schedule.member)
static const struct hearth_column schedule_columns[] = {
    SCHEDULE(I64, schedule_no),
    SCHEDULE(I32, service_id),
    SCHEDULE(TEXT, schedule_id),
    SCHEDULE(TEXT, task_id),
    SCHEDULE(TEXT, process_id),
    SCHEDULE(TEXT, process),
    SCHEDULE(TEXT, instance),
    SCHEDULE(I64, start_ms),
    SCHEDULE(I64, end_ms),
    HEARTH_COLUMN_LIST(I32S, struct schedule_row, writers, n_writers),
    HEARTH_COLUMN_LIST(I64S, struct schedule_row, numbers, n_numbers),
};
static const struct hearth_row_type schedule_rows =
    HEARTH_ROW_TYPE(schedule_columns, struct schedule_row);

/* Makes a run of a row: its profiles from the two arrays. */
static enum hearth_status pair_profiles(const struct schedule_row *row, struct hearth_arena *arena,
                                        struct hearth_task_schedule *ret, struct hearth_err *err)
{
    *ret = row->schedule;
    ret->n_profiles = row->n_writers < row->n_numbers ? row->n_writers : row->n_numbers;
    ret->profiles = hearth_arena_array(arena, ret->n_profiles, sizeof *ret->profiles);
    if (ret->profiles == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < ret->n_profiles; i++) {
        ret->profiles[i] = (struct hearth_profile_id){row->writers[i], row->numbers[i]};
    }

    return HEARTH_OK;
}

enum hearth_status hearth_store_task_schedules(const struct hearth_scope *scope,
                                               const struct hearth_task_schedule_filter *filter,
                                               struct hearth_task_schedule **ret, size_t *ret_n,
                                               struct hearth_err *err)
{
    assert(filter->schedule_ids != NULL || filter->n_ids == 0);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_text(&params, filter->task_id);
    hearth_pg_param_text_array(&params, filter->schedule_ids, filter->n_ids);
    hearth_pg_param_i64(&params, HEARTH_TASK_SCHEDULE_PROFILES);

    /* Read the runs. */
    struct schedule_row *rows;
    size_t n;
    HEARTH_TRY(hearth_store_select(scope, hearth_sql_select_task_runs, &params, &schedule_rows,
                                   &rows, &n, err));
    struct hearth_task_schedule *schedules = hearth_arena_array(scope->arena, n, sizeof *schedules);
    if (schedules == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }

    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(pair_profiles(&rows[i], scope->arena, &schedules[i], err));
    }

    *ret = schedules;
    *ret_n = n;

    return HEARTH_OK;
}

/* A read of chunks. */
struct chunk_read {
    const struct hearth_task_chunk_filter *filter;
    const struct hearth_task_chunk_reader *reader;
    struct hearth_pg_params params;
    struct hearth_cancel *cancel;
    struct hearth_inflater *inflater;
    struct hearth_arena scratch; /* for one chunk */
};

/* Unpacks the chunk of a row, and passes it to the reader. */
static enum hearth_status visit_chunk(void *context, const PGresult *row, struct hearth_err *err)
{
    struct chunk_read *read = context;
    const struct hearth_task_chunk_filter *filter = read->filter;

    /* Find its run. */
    int64_t schedule_no = hearth_pg_i64(row, 0, 0), at_ms = hearth_pg_i64(row, 0, 1);
    size_t i = 0;
    while (i < filter->n_schedules && filter->schedules[i].schedule_no != schedule_no) {
        i++;
    }

    if (i == filter->n_schedules) {
        return HEARTH_OK;
    }

    /* Unpack it. */
    struct hearth_task_chunk chunk;
    hearth_arena_reset(&read->scratch);
    HEARTH_TRY(hearth_task_chunk_unpack(read->inflater, hearth_pg_str(row, 0, 2), &read->scratch,
                                        &chunk, err));

    return read->reader->chunk(read->reader->context, &filter->schedules[i], at_ms, &chunk, err);
}

static enum hearth_status stream_chunks(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct chunk_read *read = context;
    HEARTH_TRY(read->reader->begin(read->reader->context, err));

    /* Chunks of the runs within the ranges. By the primary key. */
    return hearth_pg_stream(
        pg,
        "SELECT c.schedule_no, c.at, c.payload FROM unnest($1, $2) AS s(service_id, schedule_no)"
        " JOIN hearth_data.task_stack_chunk c USING (service_id, schedule_no)"
        " WHERE cardinality($3) = 0 OR EXISTS (SELECT FROM unnest($3, $4) AS r(a, b)"
        " WHERE c.at BETWEEN r.a AND r.b) ORDER BY c.schedule_no, c.at, c.part",
        &read->params, read->cancel, visit_chunk, read, ret_fault, err);
}

#define RUN_KEY(kind, member) HEARTH_COLUMN(kind, struct hearth_task_schedule, member)
static const struct hearth_column run_key_columns[] = {
    RUN_KEY(I32, service_id),
    RUN_KEY(I64, schedule_no),
};
static const struct hearth_row_type run_key_rows =
    HEARTH_ROW_TYPE(run_key_columns, struct hearth_task_schedule);

static const struct hearth_column range_columns[] = {
    HEARTH_COLUMN(I64, struct hearth_task_range, from_ms),
    HEARTH_COLUMN(I64, struct hearth_task_range, to_ms),
};
static const struct hearth_row_type range_rows =
    HEARTH_ROW_TYPE(range_columns, struct hearth_task_range);

enum hearth_status hearth_store_task_chunks(const struct hearth_scope *scope,
                                            const struct hearth_task_chunk_filter *filter,
                                            const struct hearth_task_chunk_reader *reader,
                                            struct hearth_err *err)
{
    assert(reader->begin != NULL && reader->chunk != NULL);
    assert(filter->schedules != NULL || filter->n_schedules == 0);
    assert(filter->ranges != NULL || filter->n_ranges == 0);
    HEARTH_TRY(hearth_store_check_open(scope->store, err));

    struct chunk_read read = {.filter = filter,
                              .reader = reader,
                              .cancel = scope->cancel,
                              .inflater = hearth_inflater_new()};
    if (read.inflater == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to read stack traces");
    }

    hearth_pg_params_init(&read.params, scope->arena);
    hearth_pg_param_rows(&read.params, &run_key_rows, filter->schedules, filter->n_schedules);
    hearth_pg_param_rows(&read.params, &range_rows, filter->ranges, filter->n_ranges);

    hearth_arena_init_like(&read.scratch, scope->arena);
    enum hearth_status status = hearth_store_with_pg(scope, stream_chunks, &read, err);
    hearth_arena_release(&read.scratch);
    hearth_inflater_free(read.inflater);

    return status;
}
