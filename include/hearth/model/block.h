/*
 * block.h -- roll-ups: sums of many profiles over one dictionary, packed totals over time, sets of
 * series.
 *
 * Sums are exact: integers, overflow detected. A block is stored as columns (columns.h), so that
 * profiles, blocks and sums of blocks are read by one merge.
 *
 * Threads: pure; a struct hearth_block_sums belongs to one thread.
 */
#ifndef HEARTH_MODEL_BLOCK_H
#define HEARTH_MODEL_BLOCK_H

#include "hearth/base/buf.h"
#include "hearth/model/columns.h"

/* ---- sums of every value column over the stack ids of one dictionary ---- */

struct hearth_block_sums {
    uint32_t n_types;
    uint32_t bound; /* highest stack id seen, plus one */
    uint32_t cap;
    int64_t **acc;    /* [n_types][cap]; means something where factors[k] is -2 */
    int64_t *factors; /* [n_types]; >= 0: column k is column 0 times this; -1: it is 0 */
    int64_t *totals;  /* [n_types] */
    int64_t n_profiles;
    size_t limit_bytes, n_bytes; /* 0: no limit */
    uint32_t *listed;            /* [n_listed]: the stacks that are not 0, when is_listed */
    uint32_t n_listed;
    size_t cap_listed;
    bool is_listed;
};

HEARTH_MUST_CHECK enum hearth_status hearth_block_sums_init(struct hearth_block_sums *sums,
                                                            uint32_t n_types, size_t limit_bytes,
                                                            struct hearth_err *err);
void hearth_block_sums_release(struct hearth_block_sums *sums); /* zeroed ones too */
void hearth_block_sums_reset(struct hearth_block_sums *sums);   /* to 0; keeps its memory */

/*
 * Add a profile (n_profiles 1) or a block: ids, vals[n_types], totals[n_types] as stored, unpacked.
 * CORRUPT for damaged columns; OUT_OF_RANGE when a sum exceeds 64 bits; NO_MEMORY,
 * RESOURCE_EXHAUSTED beyond limit_bytes. After a failure the sums are not usable but for reset.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_block_sums_add(struct hearth_block_sums *sums, struct hearth_str ids,
                      const struct hearth_str *vals, const int64_t *totals, int64_t n_profiles,
                      struct hearth_err *err);
/* Add other sums of the same dictionary and number of types. */
HEARTH_MUST_CHECK enum hearth_status
hearth_block_sums_add_sums(struct hearth_block_sums *sums, const struct hearth_block_sums *other,
                           struct hearth_err *err);

/*
 * Note which stacks are not 0, until something is added: encoding these sums, adding them to others and
 * resetting them then touch no other stack. Worth it where several of that follow. When memory is
 * short nothing is noted, and everything goes on as without.
 */
void hearth_block_sums_list(struct hearth_block_sums *sums);

/* As columns, in arena: the stacks that are not 0 in every column, ascending. */
HEARTH_MUST_CHECK enum hearth_status hearth_block_sums_encode(const struct hearth_block_sums *sums,
                                                              struct hearth_arena *arena,
                                                              struct hearth_columns *ret,
                                                              struct hearth_err *err);

/* ---- packed totals ---- */

/*
 * ts: varint(n), varint(scale), then zigzag varint of the first time (relative to t0, in units of
 *     scale) and of each change of the distance between neighbours: profiles come at a steady pace.
 *     scale is the greatest common divisor of the times relative to t0 (at least 1).
 * val: varint(scale), then varint of each value / scale; scale is their greatest common divisor;
 *      0: all values are 0 and nothing follows.
 */
struct hearth_totals {
    struct hearth_str ts;
    struct hearth_str *vals; /* [n_types] */
};

/* n times ascending (equal ones allowed), values[i * n_types + k] >= 0. In arena. */
HEARTH_MUST_CHECK enum hearth_status
hearth_totals_encode(const int64_t *ts_ns, const int64_t *values, size_t n, uint32_t n_types,
                     int64_t t0_ns, struct hearth_arena *arena, struct hearth_totals *ret,
                     struct hearth_err *err);

typedef enum hearth_status hearth_totals_fn(void *context, int64_t ts_ns, int64_t value,
                                            struct hearth_err *err);

/* Visit (time, value) of one column in order; CORRUPT for damaged bytes; a status of `visit` ends it. */
HEARTH_MUST_CHECK enum hearth_status hearth_totals_read(struct hearth_str ts, struct hearth_str val,
                                                        int64_t t0_ns, hearth_totals_fn *visit,
                                                        void *context, struct hearth_err *err);

/* ---- sets of series ---- */

/* Ascending, distinct, positive ids as delta varints. */
void hearth_members_encode(const int32_t *series_ids, size_t n, struct hearth_buf *out);
/* In arena. CORRUPT for damaged bytes. */
HEARTH_MUST_CHECK enum hearth_status hearth_members_decode(struct hearth_str bytes,
                                                           struct hearth_arena *arena,
                                                           int32_t **ret_series_ids, size_t *ret_n,
                                                           struct hearth_err *err);
/* All members are among the n ascending ids; false also for damaged bytes. No allocation. */
bool hearth_members_within(struct hearth_str bytes, const int32_t *series_ids, size_t n);

#endif
