/*
 * stored_rows.h -- whole rows of stored profiles, for roll-ups, folding, compaction and deletion,
 * which rewrite them (private to the store).
 *
 * Threads: safe; the connection belongs to the caller.
 */
#ifndef HEARTH_STORE_STORED_ROWS_H
#define HEARTH_STORE_STORED_ROWS_H

#include "hearth/base/clock.h"
#include "hearth/codec/compress.h"
#include "hearth/model/segment.h"
#include "hearth/store/store.h"

#include "pg/pg.h"

/* The columns of a profile row in the order of COPY and SELECT. */
#define HEARTH_PROFILE_COLUMNS                                                                  \
    "service_id, series_id, ts, duration_ns, period, profile_no, writer_id, n_samples, totals," \
    " ids, vals, attrs"
#define HEARTH_N_PROFILE_COLUMNS 12

/* Append a row for COPY, with HEARTH_PROFILE_COLUMNS. */
void hearth_copy_stored_row(struct hearth_buf *out, int32_t service_id,
                            const struct hearth_stored_row *row);

/*
 * Read row `at` of a binary result with HEARTH_PROFILE_COLUMNS. Arrays in arena, texts borrow from
 * the result. CORRUPT: its arrays have different lengths.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_stored_row_take(const PGresult *result, int at,
                                                            struct hearth_arena *arena,
                                                            int32_t *ret_service_id,
                                                            struct hearth_stored_row *ret,
                                                            struct hearth_err *err);

/* The row and its texts are valid during the call. */
typedef enum hearth_status hearth_stored_row_fn(void *context, const struct hearth_stored_row *row,
                                                struct hearth_err *err);

/*
 * Set $1 of a statement: the series of a service, ascending, in the arena. All series of the
 * catalogue, so that no profile is missed that was committed before the call. The table of these
 * series has columns series_id and at, by which PostgreSQL knows it to be sorted.
 */
#define HEARTH_SQL_STORED_SERIES "unnest($1::int4[]) WITH ORDINALITY s (series_id, at)"
HEARTH_MUST_CHECK enum hearth_status
hearth_stored_series_param(struct hearth_pg *pg, int32_t service_id, struct hearth_arena *arena,
                           struct hearth_pg_params *params, struct hearth_err *err);

/* Profiles of a service with from_ns <= ts < to_ns, which lie within one hour. */
struct hearth_stored_range {
    int32_t service_id;
    int64_t compacted_to_ns; /* of the service (roll_state) */
    int64_t from_ns, to_ns;
};

/*
 * Visit the profiles of a range by series and time: from segments before compacted_to_ns, otherwise
 * from `profile`; late profiles are not included. The rows are of one snapshot, which is not older
 * than the list of series.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_stored_rows_read(struct hearth_pg *pg, struct hearth_inflater *inflater,
                        const struct hearth_stored_range *range, hearth_stored_row_fn *visit,
                        void *context, struct hearth_err *err);

/*
 * In a transaction: write rows of one service and hour (sorted by series and time) as segments of
 * about 256 KiB before compression, and count their bytes in a metric.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_segments_write(struct hearth_pg *pg, int32_t service_id,
                                                           int64_t part,
                                                           const struct hearth_stored_row *rows,
                                                           size_t n_rows, struct hearth_err *err);

#define HEARTH_SEGMENT_BYTES ((size_t)256 << 10) /* of a segment's rows */
/* A segment with more bytes before compression is damaged. */
#define HEARTH_SEGMENT_MAX_BYTES ((size_t)256 << 20)

/*
 * The ordinal of a segment: its lower 24 bits count the segments of its hour and part. The bits
 * above are 0 if its profiles lie anywhere in the hour, or k > 0 if they lie in the k-th ten
 * minutes, so that queries about minutes need not unpack the hour.
 */
#define HEARTH_SEGMENT_SLICE_BITS 24
#define HEARTH_SEGMENT_SLICES     6 /* of an hour */
#define HEARTH_SEGMENT_SLICE_NS   (INT64_C(600) * HEARTH_NS_PER_SEC)

/* Where the next segments of an hour are written. */
struct hearth_segment_target {
    int32_t service_id;
    int64_t part;
    int32_t ordinal; /* of the next segment: raised by each */
    int64_t n_bytes; /* of written segments, compressed: raised by each */
};

/* Like hearth_segments_write, for an hour that is written in pieces, and without the metric. */
HEARTH_MUST_CHECK enum hearth_status hearth_segments_append(struct hearth_pg *pg,
                                                            struct hearth_segment_target *target,
                                                            const struct hearth_stored_row *rows,
                                                            size_t n_rows, struct hearth_err *err);

/* Approximate bytes of a row in a segment, before compression. */
size_t hearth_stored_row_bytes(const struct hearth_stored_row *row);

#endif
