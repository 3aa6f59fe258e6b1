/*
 * erase_segments.c -- deletion from segments: a segment that holds rows of the tombstone is
 * replaced by one without them.
 *
 * A few segments of one hour in a transaction: they are deleted, and their other rows are written
 * as a new part. The position moves on only when the transaction is committed: after a failure the
 * same segments are next, because the tombstone must not end while rows that it hides are stored.
 */
#include "hearth/base/clock.h"
#include "hearth/base/metrics.h"

#include "build/erase_work.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "read/stored_rows.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SEGMENTS_AT_ONCE  16
#define MAX_SEGMENT_BYTES ((size_t)1 << 30)

/* Segments of one hour that are written again. */
struct rewrite {
    struct hearth_erase_work *work;
    struct hearth_stored_row *rows; /* the rows that stay */
    size_t n_rows;
    int64_t n_gone;            /* the rows of the tombstone */
    struct hearth_arena arena; /* of the rows and their bytes */
};

static int compare_segment_rows(const void *left, const void *right)
{
    const struct hearth_stored_row *a = left, *b = right;
    if (a->series_id != b->series_id) {
        return a->series_id < b->series_id ? -1 : 1;
    }

    return (a->ts_ns > b->ts_ns) - (a->ts_ns < b->ts_ns);
}

/* Whether the tombstone hides the row. */
static bool is_hidden(const struct hearth_erase_work *work, const struct hearth_stored_row *row)
{
    return row->ts_ns >= work->from_ns && row->ts_ns <= work->to_ns &&
           hearth_erase_has_series(work, row->series_id);
}

/* Inflates a segment's payload and decodes its rows, both in the arena. */
static enum hearth_status decode_segment(struct rewrite *rewrite, struct hearth_str payload,
                                         struct hearth_stored_row **ret_rows, size_t *ret_n,
                                         struct hearth_err *err)
{
    struct hearth_buf plain;
    hearth_buf_init(&plain, 0);
    enum hearth_status status =
        hearth_inflate(rewrite->work->builder->inflater, HEARTH_COMPRESSION_ZSTD, payload,
                       MAX_SEGMENT_BYTES, &plain, err);
    struct hearth_str bytes = {NULL, 0};
    if (status == HEARTH_OK) {
        bytes = hearth_arena_str(&rewrite->arena, hearth_buf_view(&plain));
        status = bytes.p == NULL ? HEARTH_FAIL_ARENA(err, &rewrite->arena) : HEARTH_OK;
    }
    hearth_buf_release(&plain);
    HEARTH_TRY(status);

    return hearth_segment_decode(bytes, &rewrite->arena, ret_rows, ret_n, err);
}

/*
 * Adds the rows that stay to rewrite->rows. *ret_changes false: the tombstone hides no row of the
 * segment, which is left as it is.
 */
static enum hearth_status take_remaining_rows(struct rewrite *rewrite, struct hearth_str payload,
                                              bool *ret_changes, struct hearth_err *err)
{
    struct hearth_stored_row *rows;
    size_t n, n_stay = 0;
    HEARTH_TRY(decode_segment(rewrite, payload, &rows, &n, err));

    for (size_t i = 0; i < n; i++) {
        n_stay += !is_hidden(rewrite->work, &rows[i]);
    }
    *ret_changes = n_stay < n;
    if (n_stay == n) {
        return HEARTH_OK;
    }

    /* Append them to a larger array. */
    size_t n_before = rewrite->n_rows;
    struct hearth_stored_row *all =
        hearth_arena_array(&rewrite->arena, n_before + n_stay, sizeof *all);
    if (all == NULL) {
        return HEARTH_FAIL_ARENA(err, &rewrite->arena);
    }

    if (n_before > 0) {
        memcpy(all, rewrite->rows, n_before * sizeof *all);
    }

    for (size_t i = 0; i < n; i++) {
        if (!is_hidden(rewrite->work, &rows[i])) {
            all[rewrite->n_rows++] = rows[i];
        }
    }

    assert(rewrite->n_rows == n_before + n_stay);
    rewrite->rows = all;
    rewrite->n_gone += (int64_t)(n - n_stay);

    return HEARTH_OK;
}

/*
 * Finds the next segments that have one of the series, at most SEGMENTS_AT_ONCE and all of one
 * hour: rows (t0, part, ordinal, payload). The inner query reads the primary key of segment
 * (service_id, t0, part, ordinal) from the last position on; the outer one leaves out later hours.
 */
static enum hearth_status find_next_segments(struct hearth_erase_work *work, PGresult **ret_rows,
                                             struct hearth_err *err)
{
    const struct hearth_erase_progress *at = &work->builder->store->erase;
    int64_t first_ns = work->from_ns > INT64_MIN + HEARTH_NS_PER_HOUR
                           ? work->from_ns - HEARTH_NS_PER_HOUR
                           : INT64_MIN;

    char sql[640];
    (void)snprintf(sql, sizeof sql,
                   "SELECT t0, part, ordinal, payload FROM (SELECT t0, part, ordinal, payload,"
                   " min(t0) OVER () first FROM hearth_data.segment WHERE service_id = %" PRId32
                   " AND t0 > '%" PRId64 "'::int8 AND t0 <= %" PRId64 " AND series_ids && $1"
                   " AND (t0, part, ordinal) > ('%" PRId64 "'::int8, %" PRId64 ", %" PRId32 ")"
                   " ORDER BY t0, part, ordinal LIMIT %d) s WHERE t0 = first"
                   " ORDER BY t0, part, ordinal",
                   work->service_id, first_ns, work->to_ns, at->segment_t0_ns, at->segment_part,
                   at->segment_ordinal, SEGMENTS_AT_ONCE);

    return hearth_erase_exec(work, sql, ret_rows, err);
}

static enum hearth_status delete_segment(struct hearth_erase_work *work, const PGresult *rows,
                                         int row, struct hearth_err *err)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM hearth_data.segment WHERE service_id = %" PRId32
                   " AND t0 = %" PRId64 " AND part = %" PRId64 " AND ordinal = %" PRId32,
                   work->service_id, hearth_pg_i64(rows, row, 0), hearth_pg_i64(rows, row, 1),
                   hearth_pg_i32(rows, row, 2));

    return hearth_pg_exec(&work->builder->pg, sql, NULL, NULL, NULL, NULL, err);
}

/* Replaces the segments of these rows by others, in a transaction. */
static enum hearth_status rewrite_segments(struct rewrite *rewrite, const PGresult *segments,
                                           struct hearth_err *err)
{
    struct hearth_erase_work *work = rewrite->work;
    struct hearth_builder *builder = work->builder;
    int64_t part;
    HEARTH_TRY(hearth_builder_begin(builder, err));
    HEARTH_TRY(hearth_builder_next_generation(builder, work->service_id, &part, err));

    /* Delete the segments that have rows of the tombstone. */
    for (int i = 0; i < PQntuples(segments); i++) {
        bool changes = false;
        HEARTH_TRY(take_remaining_rows(rewrite, hearth_pg_str(segments, i, 3), &changes, err));
        if (changes) {
            HEARTH_TRY(delete_segment(work, segments, i, err));
        }
    }

    /* Write their other rows as a new part. */
    if (rewrite->n_rows > 0) {
        qsort(rewrite->rows, rewrite->n_rows, sizeof *rewrite->rows, compare_segment_rows);
        HEARTH_TRY(hearth_segments_write(&builder->pg, work->service_id, part, rewrite->rows,
                                         rewrite->n_rows, err));
    }

    HEARTH_TRY(hearth_erase_count_rows(work, rewrite->n_gone, err));
    HEARTH_TRY(hearth_builder_commit(builder, err));
    hearth_metric_add(HEARTH_M_ERASED_ROWS, rewrite->n_gone);

    return HEARTH_OK;
}

enum hearth_status hearth_erase_segments(struct hearth_erase_work *work, bool *ret_done,
                                         struct hearth_err *err)
{
    struct hearth_erase_progress *at = &work->builder->store->erase;
    PGresult *rows = NULL;
    HEARTH_TRY(find_next_segments(work, &rows, err));

    int n = PQntuples(rows);
    *ret_done = n == 0;
    enum hearth_status status = HEARTH_OK;
    if (n > 0) {
        struct rewrite rewrite = {.work = work};
        hearth_arena_init(&rewrite.arena, 0);
        status = rewrite_segments(&rewrite, rows, err);
        hearth_arena_release(&rewrite.arena);
    }

    if (n > 0 && status == HEARTH_OK) {
        at->segment_t0_ns = hearth_pg_i64(rows, n - 1, 0);
        at->segment_part = hearth_pg_i64(rows, n - 1, 1);
        at->segment_ordinal = hearth_pg_i32(rows, n - 1, 2);
    }
    PQclear(rows);

    return status;
}
