/*
 * segment.h -- many stored profiles of one service as one run of bytes: what compaction writes.
 *
 * Rows keep everything that a row of hearth_data.profile has. They are sorted by (series, time), and
 * stored column by column, so that the compressor sees like beside like. Compression is the
 * caller's.
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
    struct hearth_str attrs;       /* p is NULL: none */
};

#define HEARTH_SEGMENT_MAX_TYPES 1024u

/* Append n rows, in the order given. OUT_OF_RANGE for more value columns than that; NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status hearth_segment_encode(const struct hearth_stored_row *rows,
                                                           size_t n, struct hearth_buf *out,
                                                           struct hearth_err *err);
/* The rows again; arrays in arena, texts borrow from `bytes`. CORRUPT for damaged bytes: every
 * count is compared with what is left before memory is asked for. */
HEARTH_MUST_CHECK enum hearth_status hearth_segment_decode(struct hearth_str bytes,
                                                           struct hearth_arena *arena,
                                                           struct hearth_stored_row **ret_rows,
                                                           size_t *ret_n, struct hearth_err *err);

#endif
