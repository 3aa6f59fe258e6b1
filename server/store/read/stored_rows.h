/*
 * stored_rows.h -- whole rows of stored profiles, for those who rewrite them: roll-ups, folding,
 * compaction, deletion (private to the store).
 */
#ifndef HEARTH_STORE_STORED_ROWS_H
#define HEARTH_STORE_STORED_ROWS_H

#include "hearth/base/clock.h"
#include "hearth/codec/compress.h"
#include "hearth/model/segment.h"
#include "hearth/store/store.h"

#include "pg/pg.h"

/* What COPY and SELECT of a profile row name, in this order. */
#define HEARTH_PROFILE_COLUMNS                                                                  \
    "service_id, series_id, ts, duration_ns, period, profile_no, writer_id, n_samples, totals," \
    " ids, vals, attrs"
#define HEARTH_N_PROFILE_COLUMNS 12

/* A row for COPY. */
void hearth_copy_stored_row(struct hearth_buf *out, int32_t service_id,
                            const struct hearth_stored_row *row);

/* A result row of HEARTH_PROFILE_COLUMNS (binary). Arrays in arena, texts borrow from the result. */
HEARTH_MUST_CHECK enum hearth_status hearth_stored_row_take(const PGresult *result, int at,
                                                            struct hearth_arena *arena,
                                                            int32_t *ret_service_id,
                                                            struct hearth_stored_row *ret,
                                                            struct hearth_err *err);

/* The row and its texts are valid during the call. */
typedef enum hearth_status hearth_stored_row_fn(void *context, const struct hearth_stored_row *row,
                                                struct hearth_err *err);

/*
 * Visit the profiles of a service with from_ns <= ts < to_ns, by series and time: from segments
 * before compacted_to_ns, from `profile` from there on; late ones are not among them. [from_ns,
 * to_ns) lies within one hour. One statement, one snapshot.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_stored_rows_read(struct hearth_pg *pg, struct hearth_inflater *inflater, int32_t service_id,
                        int64_t compacted_to_ns, int64_t from_ns, int64_t to_ns,
                        hearth_stored_row_fn *visit, void *context, struct hearth_err *err);

/*
 * In a transaction: write rows of one service and hour (sorted by series and time) as segments of
 * about 256 KiB before compression.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_segments_write(struct hearth_store *store,
                                                           struct hearth_pg *pg, int32_t service_id,
                                                           int64_t part,
                                                           const struct hearth_stored_row *rows,
                                                           size_t n_rows, struct hearth_err *err);

#define HEARTH_SEGMENT_BYTES ((size_t)256 << 10) /* of a segment's rows */
/* A segment of more bytes than that before compression is damaged. */
#define HEARTH_SEGMENT_MAX_BYTES ((size_t)256 << 20)

/*
 * The ordinal of a segment counts those of its hour and part in the lower 24 bits. Above them: 0, its
 * profiles lie anywhere in the hour; k > 0, in the k-th ten minutes of it, so that a question about minutes
 * need not unpack the hour.
 */
#define HEARTH_SEGMENT_SLICE_BITS 24
#define HEARTH_SEGMENT_SLICES     6 /* of an hour */
#define HEARTH_SEGMENT_SLICE_NS   (INT64_C(600) * HEARTH_NS_PER_SEC)

/*
 * The same for who writes an hour piece by piece. *ordinal: of the next segment of the hour and
 * part; first 0, or with the number of the slice that all rows lie in. *ret_n_bytes (may be NULL):
 * compressed.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_segments_append(struct hearth_pg *pg, int32_t service_id, int64_t part, int32_t *ordinal,
                       const struct hearth_stored_row *rows, size_t n_rows, int64_t *ret_n_bytes,
                       struct hearth_err *err);

/* What a row adds to a segment, about. */
size_t hearth_stored_row_bytes(const struct hearth_stored_row *row);

#endif
