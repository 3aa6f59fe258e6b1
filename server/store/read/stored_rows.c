/*
 * stored_rows.c -- reading and writing whole rows of stored profiles (contract: stored_rows.h).
 *
 * The segments of a compacted hour are sorted by series and time, each for itself: compaction wrote
 * some, folding of late profiles others. They are selected in the order of their first series, so
 * that a merge holds only the segments that overlap.
 */
#include "read/stored_rows.h"

#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "pg/pg_rows.h"
#include "pg/store_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* Higher levels take twice the time and save nothing: the ids of a segment hardly repeat. */
#define SEGMENT_ZSTD_LEVEL 1
#define SEND_BYTES         ((size_t)8 << 20) /* of segments, by one COPY */
#define ROW_OVERHEAD       24                /* bytes of the numbers and lengths of a row */

#define SEGMENT_COLUMNS                                                    \
    "service_id, t0, part, ordinal, n_rows, n_bytes, series_ids, payload," \
    " heads"
#define N_SEGMENT_COLUMNS 9

/* ---- rows ---- */

void hearth_copy_stored_row(struct hearth_buf *out, int32_t service_id,
                            const struct hearth_stored_row *row)
{
    assert(row->n_types == 0 || (row->totals != NULL && row->vals != NULL));

    /* The order of HEARTH_PROFILE_COLUMNS. */
    hearth_copy_row(out, HEARTH_N_PROFILE_COLUMNS);
    hearth_copy_i32(out, service_id);
    hearth_copy_i32(out, row->series_id);
    hearth_copy_i64(out, row->ts_ns);
    hearth_copy_i64(out, row->duration_ns);
    hearth_copy_i64(out, row->period);
    hearth_copy_i64(out, row->profile_no);
    hearth_copy_i32(out, row->writer_id);
    hearth_copy_i32(out, (int32_t)row->n_samples);
    hearth_copy_i64_array(out, row->totals, row->n_types);
    hearth_copy_bytes(out, row->ids);
    hearth_copy_bytes_array(out, row->vals, row->n_types);

    if (row->attrs.p == NULL) {
        hearth_copy_null(out);
    } else {
        hearth_copy_bytes(out, row->attrs);
    }
}

enum hearth_status hearth_stored_row_take(const PGresult *result, int at,
                                          struct hearth_arena *arena, int32_t *ret_service_id,
                                          struct hearth_stored_row *ret, struct hearth_err *err)
{
    int64_t *totals;
    struct hearth_str *vals;
    size_t n_totals, n_vals;
    assert(at >= 0 && at < PQntuples(result));

    /* The arrays, one element for each profile type. */
    HEARTH_TRY(hearth_pg_i64_array(result, at, 8, arena, &totals, &n_totals, err));
    HEARTH_TRY(hearth_pg_str_array_views(result, at, 10, arena, &vals, &n_vals, err));
    if (n_totals != n_vals || n_vals > UINT32_MAX) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "a profile has %zu totals and %zu value columns",
                           n_totals, n_vals);
    }

    *ret_service_id = hearth_pg_i32(result, at, 0);
    *ret = (struct hearth_stored_row){
        .series_id = hearth_pg_i32(result, at, 1),
        .ts_ns = hearth_pg_i64(result, at, 2),
        .duration_ns = hearth_pg_i64(result, at, 3),
        .period = hearth_pg_i64(result, at, 4),
        .profile_no = hearth_pg_i64(result, at, 5),
        .writer_id = hearth_pg_i32(result, at, 6),
        .n_samples = (uint32_t)hearth_pg_i32(result, at, 7),
        .n_types = (uint32_t)n_totals,
        .totals = totals,
        .ids = hearth_pg_str(result, at, 9),
        .vals = vals,
        .attrs = hearth_pg_str(result, at, 11),
    };

    return HEARTH_OK;
}

size_t hearth_stored_row_bytes(const struct hearth_stored_row *row)
{
    size_t n = ROW_OVERHEAD + row->ids.n + row->attrs.n;

    for (uint32_t k = 0; k < row->n_types; k++) {
        n += row->vals[k].n + 4;
    }

    return n;
}

/* ---- reading ---- */

/* A decoded segment; not all of its rows have been visited. */
struct open_segment {
    struct hearth_buf bytes;   /* unpacked; rows borrow from it */
    struct hearth_arena arena; /* owner of rows */
    struct hearth_stored_row *rows;
    size_t n, next; /* next: the first row that was not visited */
};

struct row_reader {
    struct hearth_inflater *inflater;
    const struct hearth_stored_range *range;
    hearth_stored_row_fn *visit;
    void *context;
    struct hearth_arena arena; /* arrays of the current row of `profile` */
    struct open_segment *open;
    size_t n_open, cap_open;
    const struct hearth_stored_row **batch; /* rows of several segments, to be sorted and visited */
    size_t n_batch, cap_batch;
};

static void close_segment(struct open_segment *segment)
{
    hearth_buf_release(&segment->bytes);
    hearth_arena_release(&segment->arena);
}

static void release_row_reader(struct row_reader *reader)
{
    for (size_t i = 0; i < reader->n_open; i++) {
        close_segment(&reader->open[i]);
    }

    hearth_mem_free(reader->open);
    hearth_mem_free(reader->batch);
    hearth_arena_release(&reader->arena);
}

static enum hearth_status visit_stored_profile(void *context, const PGresult *row,
                                               struct hearth_err *err)
{
    struct row_reader *reader = context;
    struct hearth_stored_row stored;
    int32_t service_id;

    hearth_arena_reset(&reader->arena);
    HEARTH_TRY(hearth_stored_row_take(row, 0, &reader->arena, &service_id, &stored, err));

    return reader->visit(reader->context, &stored, err);
}

static int compare_stored_rows(const void *left, const void *right)
{
    const struct hearth_stored_row *a = *(const struct hearth_stored_row *const *)left;
    const struct hearth_stored_row *b = *(const struct hearth_stored_row *const *)right;

    if (a->series_id != b->series_id) {
        return a->series_id < b->series_id ? -1 : 1;
    }

    return (a->ts_ns > b->ts_ns) - (a->ts_ns < b->ts_ns);
}

/*
 * Visit the rows of the open segments with series below `below`, and close segments without further
 * rows. Segments that are opened later have no rows below.
 */
static enum hearth_status visit_below(struct row_reader *reader, int64_t below,
                                      struct hearth_err *err)
{
    /* Gather the rows. */
    reader->n_batch = 0;
    for (size_t i = 0; i < reader->n_open; i++) {
        struct open_segment *segment = &reader->open[i];
        for (; segment->next < segment->n && segment->rows[segment->next].series_id < below;
             segment->next++) {
            const struct hearth_stored_row *row = &segment->rows[segment->next];
            if (row->ts_ns < reader->range->from_ns || row->ts_ns >= reader->range->to_ns) {
                continue;
            }

            if (!hearth_mem_grow(&reader->batch, &reader->cap_batch, reader->n_batch + 1,
                                 sizeof *reader->batch)) {
                return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to merge segments");
            }

            reader->batch[reader->n_batch++] = row;
        }
    }

    /* Visit them by series and time. */
    if (reader->n_batch > 0) {
        qsort(reader->batch, reader->n_batch, sizeof *reader->batch, compare_stored_rows);
    }

    for (size_t i = 0; i < reader->n_batch; i++) {
        HEARTH_TRY(reader->visit(reader->context, reader->batch[i], err));
    }

    /* Close the finished segments. */
    size_t n_left = 0;
    for (size_t i = 0; i < reader->n_open; i++) {
        if (reader->open[i].next == reader->open[i].n) {
            close_segment(&reader->open[i]);
        } else {
            reader->open[n_left++] = reader->open[i];
        }
    }

    reader->n_open = n_left;

    return HEARTH_OK;
}

/* A row of first series, bytes when unpacked, payload: open this segment. */
static enum hearth_status open_segment(void *context, const PGresult *row, struct hearth_err *err)
{
    struct row_reader *reader = context;

    /* Rows before it. */
    HEARTH_TRY(visit_below(reader, hearth_pg_i32(row, 0, 0), err));

    /* Unpack and decode it. */
    int32_t n_bytes = hearth_pg_i32(row, 0, 1);
    if (n_bytes < 0 || (size_t)n_bytes > HEARTH_SEGMENT_MAX_BYTES) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "a segment of service %" PRId32 " claims %" PRId32 " bytes",
                           reader->range->service_id, n_bytes);
    }

    if (!hearth_mem_grow(&reader->open, &reader->cap_open, reader->n_open + 1,
                         sizeof *reader->open)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to read segments");
    }

    assert(reader->n_open < reader->cap_open);
    struct open_segment *segment = &reader->open[reader->n_open++];
    *segment = (struct open_segment){.n = 0};
    hearth_buf_init(&segment->bytes, 0);
    hearth_arena_init(&segment->arena, 0);
    enum hearth_status status =
        hearth_inflate(reader->inflater, HEARTH_COMPRESSION_ZSTD, hearth_pg_str(row, 0, 2),
                       (size_t)n_bytes, &segment->bytes, err);
    if (status == HEARTH_OK) {
        status = hearth_segment_decode(hearth_buf_view(&segment->bytes), &segment->arena,
                                       &segment->rows, &segment->n, err);
    }

    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "segment of service %" PRId32, reader->range->service_id);
    }

    return status;
}

/* The segments of the hour, by the primary key. */
static enum hearth_status read_segments(struct row_reader *reader, struct hearth_pg *pg,
                                        struct hearth_err *err)
{
    char sql[320];

    (void)snprintf(sql, sizeof sql,
                   "SELECT series_ids[1], n_bytes, payload FROM hearth_data.segment WHERE"
                   " service_id = %" PRId32 " AND t0 = %" PRId64
                   " AND n_rows > 0 ORDER BY series_ids[1], part, ordinal",
                   reader->range->service_id,
                   hearth_hour_of(reader->range->from_ns) * HEARTH_NS_PER_HOUR);
    HEARTH_TRY(hearth_pg_stream(pg, sql, NULL, NULL, open_segment, reader, NULL, err));

    return visit_below(reader, INT64_MAX, err);
}

enum hearth_status hearth_stored_series_param(struct hearth_pg *pg, int32_t service_id,
                                              struct hearth_arena *arena,
                                              struct hearth_pg_params *params,
                                              struct hearth_err *err)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql,
                   "SELECT series_id FROM hearth_data.series WHERE service_id = %" PRId32
                   " ORDER BY series_id",
                   service_id);
    const struct hearth_pg_query query = {.sql = sql, .type = &hearth_i32_rows, .arena = arena};
    int32_t *series_ids = NULL;
    size_t n = 0;
    HEARTH_TRY(hearth_pg_select(pg, &query, &series_ids, &n, NULL, err));

    hearth_pg_params_init(params, arena);
    hearth_pg_param_i32_array(params, series_ids, n);

    return HEARTH_OK;
}

/*
 * Profiles of the range, series by series along the index (series_id, ts): rows of other services
 * are not read, and only one series is sorted at a time. The series are all series of the
 * catalogue, so that no row is missed; a look-up of a series without rows costs a microsecond.
 */
static enum hearth_status read_profiles(struct row_reader *reader, struct hearth_pg *pg,
                                        struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    HEARTH_TRY(hearth_stored_series_param(pg, reader->range->service_id, &arena, &params, err));

    char sql[640];
    (void)snprintf(sql, sizeof sql,
                   "SELECT p.* FROM " HEARTH_SQL_STORED_SERIES
                   " CROSS JOIN LATERAL (SELECT " HEARTH_PROFILE_COLUMNS
                   " FROM hearth_data.profile p WHERE p.service_id = %" PRId32
                   " AND p.series_id = s.series_id AND p.ts >= %" PRId64 " AND p.ts < %" PRId64
                   " ORDER BY p.ts OFFSET 0) p ORDER BY s.at, p.ts",
                   reader->range->service_id, reader->range->from_ns, reader->range->to_ns);

    return hearth_pg_stream(pg, sql, &params, NULL, visit_stored_profile, reader, NULL, err);
}

enum hearth_status hearth_stored_rows_read(struct hearth_pg *pg, struct hearth_inflater *inflater,
                                           const struct hearth_stored_range *range,
                                           hearth_stored_row_fn *visit, void *context,
                                           struct hearth_err *err)
{
    assert(inflater != NULL && visit != NULL);
    assert(range->from_ns >= range->to_ns ||
           hearth_hour_of(range->from_ns) == hearth_hour_of(range->to_ns - 1));

    struct row_reader reader = {
        .inflater = inflater,
        .range = range,
        .visit = visit,
        .context = context,
    };

    hearth_arena_init(&reader.arena, 0);
    enum hearth_status status = range->from_ns < range->compacted_to_ns
                                    ? read_segments(&reader, pg, err)
                                    : read_profiles(&reader, pg, err);
    release_row_reader(&reader);

    return status;
}

/* ---- writing segments ---- */

struct segment_writer {
    struct hearth_pg *pg;
    struct hearth_segment_target *target;
    struct hearth_buf raw, packed; /* the current segment before and after compression */
    struct hearth_buf heads;       /* its heads, compressed */
    struct hearth_buf copy;        /* rows for COPY */
    int32_t *series_ids;           /* of the current segment */
    size_t cap_series;
};

static void release_segment_writer(struct segment_writer *writer)
{
    hearth_buf_release(&writer->raw);
    hearth_buf_release(&writer->packed);
    hearth_buf_release(&writer->heads);
    hearth_buf_release(&writer->copy);
    hearth_mem_free(writer->series_ids);
}

/* Encode and compress the heads of rows into writer->heads; writer->raw is overwritten. */
static enum hearth_status pack_heads(struct segment_writer *writer,
                                     const struct hearth_stored_row *rows, size_t n,
                                     struct hearth_err *err)
{
    struct hearth_arena scratch;

    hearth_arena_init(&scratch, 0);
    hearth_buf_reset(&writer->raw);
    hearth_buf_reset(&writer->heads);
    enum hearth_status status = hearth_segment_encode_heads(rows, n, &scratch, &writer->raw, err);
    if (status == HEARTH_OK) {
        status =
            hearth_zstd(hearth_buf_view(&writer->raw), SEGMENT_ZSTD_LEVEL, &writer->heads, err);
    }
    hearth_arena_release(&scratch);

    return status;
}

/* Append one row for COPY: a segment of these rows. */
static enum hearth_status put_segment(struct segment_writer *writer,
                                      const struct hearth_stored_row *rows, size_t n,
                                      struct hearth_err *err)
{
    struct hearth_segment_target *target = writer->target;
    assert(n > 0 && n <= INT32_MAX);

    /* Encode and compress. */
    hearth_buf_reset(&writer->raw);
    hearth_buf_reset(&writer->packed);
    HEARTH_TRY(hearth_segment_encode(rows, n, &writer->raw, err));
    if (writer->raw.n > HEARTH_SEGMENT_MAX_BYTES) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                           "a profile of %zu bytes exceeds the %zu bytes of a segment",
                           writer->raw.n, HEARTH_SEGMENT_MAX_BYTES);
    }

    HEARTH_TRY(
        hearth_zstd(hearth_buf_view(&writer->raw), SEGMENT_ZSTD_LEVEL, &writer->packed, err));
    size_t n_bytes = writer->raw.n;
    HEARTH_TRY(pack_heads(writer, rows, n, err));
    assert(writer->raw.n <= n_bytes);

    /* List its series. */
    size_t n_series = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || rows[i].series_id != rows[i - 1].series_id) {
            if (!hearth_mem_grow(&writer->series_ids, &writer->cap_series, n_series + 1,
                                 sizeof *writer->series_ids)) {
                return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the series of a segment");
            }

            writer->series_ids[n_series++] = rows[i].series_id;
        }
    }

    /* The order of SEGMENT_COLUMNS. */
    struct hearth_buf *out = &writer->copy;
    hearth_copy_row(out, N_SEGMENT_COLUMNS);
    hearth_copy_i32(out, target->service_id);
    hearth_copy_i64(out, hearth_hour_of(rows[0].ts_ns) * HEARTH_NS_PER_HOUR);
    hearth_copy_i64(out, target->part);
    hearth_copy_i32(out, target->ordinal);
    hearth_copy_i32(out, (int32_t)n);
    hearth_copy_i32(out, (int32_t)n_bytes);
    hearth_copy_i32_array(out, writer->series_ids, n_series);
    hearth_copy_bytes(out, hearth_buf_view(&writer->packed));
    hearth_copy_bytes(out, hearth_buf_view(&writer->heads));
    target->ordinal++;
    target->n_bytes += (int64_t)(writer->packed.n + writer->heads.n);

    return hearth_buf_failed(out)
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a segment of %zu profiles", n)
               : HEARTH_OK;
}

static enum hearth_status send_segments(struct segment_writer *writer, struct hearth_err *err)
{
    if (writer->copy.n == 0) {
        return HEARTH_OK;
    }

    enum hearth_status status = hearth_pg_copy(
        writer->pg, "COPY hearth_data.segment (" SEGMENT_COLUMNS ") FROM STDIN (FORMAT binary)",
        hearth_buf_view(&writer->copy), NULL, err);
    hearth_buf_reset(&writer->copy);

    return status;
}

static enum hearth_status copy_segments(struct segment_writer *writer,
                                        const struct hearth_stored_row *rows, size_t n_rows,
                                        struct hearth_err *err)
{
    for (size_t from = 0, to; from < n_rows; from = to) {
        /* As many rows as fit, at least one. */
        size_t n_bytes = 0;
        for (to = from; to < n_rows; to++) {
            size_t more = hearth_stored_row_bytes(&rows[to]);
            if (to > from && n_bytes + more > HEARTH_SEGMENT_BYTES) {
                break;
            }

            n_bytes += more;
        }

        HEARTH_TRY(put_segment(writer, rows + from, to - from, err));
        if (writer->copy.n > SEND_BYTES) {
            HEARTH_TRY(send_segments(writer, err));
        }
    }

    return send_segments(writer, err);
}

enum hearth_status hearth_segments_append(struct hearth_pg *pg,
                                          struct hearth_segment_target *target,
                                          const struct hearth_stored_row *rows, size_t n_rows,
                                          struct hearth_err *err)
{
    assert(rows != NULL || n_rows == 0);
    assert(target->ordinal >= 0);

    struct segment_writer writer = {.pg = pg, .target = target};

    hearth_buf_init(&writer.raw, 0);
    hearth_buf_init(&writer.packed, 0);
    hearth_buf_init(&writer.heads, 0);
    hearth_buf_init(&writer.copy, 0);
    enum hearth_status status = copy_segments(&writer, rows, n_rows, err);
    release_segment_writer(&writer);

    return status;
}

enum hearth_status hearth_segments_write(struct hearth_pg *pg, int32_t service_id, int64_t part,
                                         const struct hearth_stored_row *rows, size_t n_rows,
                                         struct hearth_err *err)
{
    struct hearth_segment_target target = {.service_id = service_id, .part = part};

    HEARTH_TRY(hearth_segments_append(pg, &target, rows, n_rows, err));
    hearth_metric_add(HEARTH_M_SEGMENT_BYTES, target.n_bytes);

    return HEARTH_OK;
}
