/*
 * segment.h -- many stored profiles of one service as one run of bytes, written by compaction.
 *
 * A segment keeps every column of hearth_data.profile. Rows are sorted by (series, time) and stored
 * column by column, so that similar bytes are adjacent and compress well. The caller compresses.
 *
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_SEGMENT_H
#define HEARTH_MODEL_SEGMENT_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/status.h"

/* A row of hearth_data.profile without its service. Texts borrow. */
struct hearth_stored_row {
    int32_t series_id, writer_id;
    int64_t ts_ns, duration_ns, period, profile_no;
    uint32_t n_samples, n_types;
    const int64_t *totals; /* [n_types] */
    struct hearth_str ids;
    const struct hearth_str *vals; /* [n_types] */
    struct hearth_str attrs;       /* p is NULL: no attributes */
};

#define HEARTH_SEGMENT_MAX_TYPES 1024u

/* Append n rows in the given order. OUT_OF_RANGE beyond HEARTH_SEGMENT_MAX_TYPES; NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status hearth_segment_encode(const struct hearth_stored_row *rows,
                                                           size_t n, struct hearth_buf *out,
                                                           struct hearth_err *err);
/*
 * The same for the heads of the rows: all numbers and totals, but no ids and no attrs, and of vals
 * only columns that are multiples. Never longer than the rows themselves. Scratch memory is in
 * `arena`.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_segment_encode_heads(const struct hearth_stored_row *rows, size_t n,
                            struct hearth_arena *arena, struct hearth_buf *out,
                            struct hearth_err *err);
/*
 * The rows of a segment; arrays in arena, texts borrow from `bytes`. CORRUPT for damaged bytes:
 * every count is compared with the remaining bytes before memory is allocated. NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_segment_decode(struct hearth_str bytes,
                                                           struct hearth_arena *arena,
                                                           struct hearth_stored_row **ret_rows,
                                                           size_t *ret_n, struct hearth_err *err);

#endif
