/*
 * span_index.h -- associations as bytes (sql/0011_span_index.sql): which profiles have samples of a
 * span, local root or trace, and which span_group holds a span.
 *
 * Fresh rows: associations in order of arrival, with whole keys. Packed rows: sorted by key. The
 * row gives the first `bits` bits of its keys; of the rest only as many bits are stored as make
 * false matches rare, so a reader verifies each match. Times are relative to the day.
 *
 * Units:   nanoseconds since the epoch.
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_SPAN_INDEX_H
#define HEARTH_MODEL_SPAN_INDEX_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/model/sample_attrs.h"
#include "hearth/model/trace_ids.h"

/* The kind of an id, as bits: the root span of a process, for instance, is its own local root. */
enum hearth_association_of {
    HEARTH_OF_SPAN = 1,
    HEARTH_OF_LOCAL_ROOT = 2,
    HEARTH_OF_TRACE = 4,
    HEARTH_OF_STORED_SPAN = 8, /* series_id is 0, ts_ns the start of the span_group */
};

struct hearth_association {
    uint64_t key;
    uint8_t of; /* bits of enum hearth_association_of */
    int32_t service_id, series_id;
    int64_t ts_ns;
};

/*
 * Keys are spread evenly over 64 bits, for ids of any form. The key of a trace is that of
 * its low 64 bits, because some profilers have only these; if they are 0, that of its high bits.
 */
uint64_t hearth_span_key(uint64_t id);
static inline uint64_t hearth_trace_id_key(struct hearth_trace_id id)
{
    return hearth_span_key(id.lo != 0 ? id.lo : id.hi);
}

/* The bucket of a key is its first `bits` bits, 0 <= bits <= HEARTH_SPAN_BUCKET_BITS. */
#define HEARTH_SPAN_BUCKET_BITS 24u
static inline uint32_t hearth_span_bucket(uint64_t key, unsigned bits)
{
    return bits == 0 ? 0 : (uint32_t)(key >> (64 - bits));
}

/*
 * Sort by key, service, series and time; duplicates are merged into one with the union of their
 * kinds. Scratch has room for n. Returns the number of associations left.
 */
size_t hearth_associations_sort(struct hearth_association *associations,
                                struct hearth_association *scratch, size_t n);

/*
 * The distinct span, local root and trace ids of a row's samples, in keep: key and `of` are set,
 * the other members are 0. *ret is NULL if there are none. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_associations_of_samples(const struct hearth_attr_sample *samples,
                                                  size_t n, struct hearth_arena *scratch,
                                                  struct hearth_arena *keep,
                                                  struct hearth_association **ret, size_t *ret_n,
                                                  struct hearth_err *err);

/* ---- fresh ---- */

/*
 * Append n associations with a common service, series and time, in the given order. Only key and
 * `of` of each are read.
 */
void hearth_associations_put_fresh(const struct hearth_association *associations, size_t n,
                                   int32_t series_id, int64_t ts_ns, struct hearth_buf *out);
/* Decode all of them into arena. CORRUPT; NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_associations_read_fresh(struct hearth_str bytes, int32_t service_id,
                                                  struct hearth_arena *arena,
                                                  struct hearth_association **ret, size_t *ret_n,
                                                  struct hearth_err *err);

/* ---- packed ---- */

/*
 * Append a row: associations of one day and bucket, distinct, sorted by key (then service, series,
 * time).
 */
void hearth_associations_pack(const struct hearth_association *associations, size_t n, int32_t day,
                              unsigned bits, struct hearth_buf *out);
/* A packed row, and the day and bucket that it is stored under. */
struct hearth_association_row {
    struct hearth_str bytes;
    int32_t day;
    unsigned bits;
    uint32_t bucket;
};

/*
 * Decode a row into arena. *ret_key_bits is the number of known leading bits of the keys; the
 * others are 0. CORRUPT; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_associations_unpack(const struct hearth_association_row *row,
                                              struct hearth_arena *arena,
                                              struct hearth_association **ret, size_t *ret_n,
                                              unsigned *ret_key_bits, struct hearth_err *err);

#endif
