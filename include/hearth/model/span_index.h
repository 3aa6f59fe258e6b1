/*
 * span_index.h -- associations: which profiles have samples of a span, local root or trace, and in which span_group a span is,
 * as bytes (sql/0011_span_index.sql).
 *
 * Fresh: as they come, every key whole. Packed: sorted by key, of which the first `bits` bits are the row's and only as many
 * follow as make false finds rare; times relative to the day. Whoever finds one verifies it.
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

/* What the id is of. One association may be of several: the root span of a process is its own local root. */
enum hearth_association_of {
    HEARTH_OF_SPAN = 1,
    HEARTH_OF_LOCAL_ROOT = 2,
    HEARTH_OF_TRACE = 4,
    HEARTH_OF_STORED_SPAN = 8, /* series_id is 0, ts_ns the start of the span_group */
};

struct hearth_association {
    uint64_t key;
    uint8_t of; /* enum hearth_association_of */
    int32_t service_id, series_id;
    int64_t ts_ns;
};

/*
 * Keys spread evenly over 64 bits, whatever the ids look like. A trace's is that of its low 64 bits, which some profilers have
 * alone; of its high ones where these are 0, since 0 is nobody's.
 */
uint64_t hearth_span_key(uint64_t id);
static inline uint64_t hearth_trace_id_key(struct hearth_trace_id id)
{
    return hearth_span_key(id.lo != 0 ? id.lo : id.hi);
}

/* A bucket is the first 0 to so many bits of its keys. */
#define HEARTH_SPAN_BUCKET_BITS 24u
static inline uint32_t hearth_span_bucket(uint64_t key, unsigned bits)
{
    return bits == 0 ? 0 : (uint32_t)(key >> (64 - bits));
}

/*
 * By key, service, series and time; what is there twice becomes one that is of both. Scratch has room for n.
 * Returns how many there are.
 */
size_t hearth_associations_sort(struct hearth_association *associations,
                                struct hearth_association *scratch, size_t n);

/*
 * The distinct span, local root and trace ids of a row's samples, in keep: key and what it is of; the rest is 0.
 * NULL when there are none. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_associations_of_samples(const struct hearth_attr_sample *samples,
                                                  size_t n, struct hearth_arena *scratch,
                                                  struct hearth_arena *keep,
                                                  struct hearth_association **ret, size_t *ret_n,
                                                  struct hearth_err *err);

/* ---- fresh ---- */

/* Append n that have service, series and time in common, as given; of the associations only key and `of` are read. */
void hearth_associations_put_fresh(const struct hearth_association *associations, size_t n,
                                   int32_t series_id, int64_t ts_ns, struct hearth_buf *out);
/* All of them, in arena. CORRUPT, NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_associations_read_fresh(struct hearth_str bytes, int32_t service_id,
                                                  struct hearth_arena *arena,
                                                  struct hearth_association **ret, size_t *ret_n,
                                                  struct hearth_err *err);

/* ---- packed ---- */

/* Append a row: associations of one day and bucket, sorted by key (then service, series, time), each once. */
void hearth_associations_pack(const struct hearth_association *associations, size_t n, int32_t day,
                              unsigned bits, struct hearth_buf *out);
/*
 * All of a row; of keys, the bits that were left out are 0. In arena. CORRUPT, NO_MEMORY.
 * *ret_key_bits: how many leading bits of the keys are known.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_associations_unpack(struct hearth_str bytes, int32_t day, unsigned bits,
                                              uint32_t bucket, struct hearth_arena *arena,
                                              struct hearth_association **ret, size_t *ret_n,
                                              unsigned *ret_key_bits, struct hearth_err *err);

#endif
