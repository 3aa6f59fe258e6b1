/*
 * block.h -- roll-ups: sums of many profiles that share a dictionary, packed totals over time, and
 * sets of series ids.
 *
 * Sums are exact: integers with overflow checks. A block is stored as columns (columns.h), so one
 * merge loop reads profiles, blocks and sums of blocks.
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
    uint32_t bound;   /* highest added stack id plus one */
    uint32_t cap;     /* allocated length of each acc[k] */
    int64_t **acc;    /* [n_types][cap]; valid only where factors[k] is -2 */
    int64_t *factors; /* [n_types]; >= 0: column k is this multiple of column 0; -1: all zero */
    int64_t *totals;  /* [n_types] */
    int64_t n_profiles;
    size_t limit_bytes; /* memory limit; 0: no limit */
    size_t n_bytes;     /* memory in use */
    uint32_t *listed;   /* [n_listed]: the stacks with a non-zero value; valid if is_listed */
    uint32_t n_listed;
    size_t cap_listed;
    bool is_listed;
};

HEARTH_MUST_CHECK enum hearth_status hearth_block_sums_init(struct hearth_block_sums *sums,
                                                            uint32_t n_types, size_t limit_bytes,
                                                            struct hearth_err *err);
/* Free the memory of the sums; zeroed sums are allowed. */
void hearth_block_sums_release(struct hearth_block_sums *sums);
/* Set all sums to 0 and keep the memory. */
void hearth_block_sums_reset(struct hearth_block_sums *sums);

/*
 * Add a profile (n_profiles is 1) or a block: ids, vals[n_types] and totals[n_types] as stored, but
 * unpacked. CORRUPT for damaged columns; OUT_OF_RANGE if a sum exceeds 64 bits; NO_MEMORY;
 * RESOURCE_EXHAUSTED beyond limit_bytes. After a failure the sums can only be reset or released.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_block_sums_add(struct hearth_block_sums *sums, struct hearth_str ids,
                      const struct hearth_str *vals, const int64_t *totals, int64_t n_profiles,
                      struct hearth_err *err);
/* Add the sums of another instance with the same dictionary and number of types. Errors as _add. */
HEARTH_MUST_CHECK enum hearth_status
hearth_block_sums_add_sums(struct hearth_block_sums *sums, const struct hearth_block_sums *other,
                           struct hearth_err *err);

/*
 * List the stacks with non-zero sums. Until the next _add, the functions that encode these sums,
 * add them to others or reset them visit only the listed stacks. Useful before several such calls.
 * If memory is short, no list is made and those calls visit all stacks.
 */
void hearth_block_sums_list(struct hearth_block_sums *sums);

/*
 * Columns, in arena, of all stacks with a non-zero value in any column; ascending stack ids; in the
 * byte form, which packs well (codec/compress.h). Errors: OUT_OF_RANGE, NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_block_sums_encode(const struct hearth_block_sums *sums,
                                                              struct hearth_arena *arena,
                                                              struct hearth_columns *ret,
                                                              struct hearth_err *err);
/*
 * The same, usually in the bit form. Where the sums hold few of a dictionary's stacks, it takes
 * fewer bytes than the packed byte form and less time to read (docs/decisions/0055-thin-blocks.md).
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_block_sums_encode_thin(const struct hearth_block_sums *sums, struct hearth_arena *arena,
                              struct hearth_columns *ret, struct hearth_err *err);

/* ---- packed totals ---- */

/*
 * Times and values of many profiles of one series.
 *
 * ts:  varint(n), varint(scale), then zigzag varints, in units of scale: the first time relative to
 *      t0, then for each following time the change of its distance to the time before it (profiles
 *      arrive at a steady pace, so most changes are small). scale is the greatest common divisor of
 *      the times relative to t0, at least 1. Or, where that is shorter, in runs of equal changes:
 *      varint(n), 0, varint(scale), the first time, then for each run varint(length), its change.
 * val: varint(scale), then a varint of each value / scale; scale is the greatest common divisor of
 *      the values. scale 0: all values are 0 and no varints follow.
 */
struct hearth_totals {
    struct hearth_str ts;
    struct hearth_str *vals; /* [n_types] */
};

/*
 * Pack n ascending times (duplicates allowed) with values[i * n_types + k] >= 0. Output in arena.
 * OUT_OF_RANGE for other times or values, and for times that span more than 64 bits; NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_totals_encode(const int64_t *ts_ns, const int64_t *values, size_t n, uint32_t n_types,
                     int64_t t0_ns, struct hearth_arena *arena, struct hearth_totals *ret,
                     struct hearth_err *err);

/* Visitor of n > 0 ascending times and their values. */
typedef enum hearth_status hearth_totals_fn(void *context, const int64_t *ts_ns,
                                            const int64_t *values, size_t n,
                                            struct hearth_err *err);

/* A visitor gets at most this many at a time. */
#define HEARTH_TOTALS_CHUNK 256

/*
 * Call `visit` with the times and values of one column in order, chunk by chunk. CORRUPT for
 * damaged bytes, perhaps after earlier chunks were visited; a status other than OK from `visit`
 * ends the reading and is returned.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_totals_read(struct hearth_str ts, struct hearth_str val,
                                                        int64_t t0_ns, hearth_totals_fn *visit,
                                                        void *context, struct hearth_err *err);

/* ---- packed totals of several series ---- */

/*
 * Packed totals of several series in columns that they share. A column has of each series, by
 * ascending id:
 *
 * ts:  varint(distance to the id before, the first to 0), varint(length), its packed times
 * val: varint(length), its packed values
 */
void hearth_totals_group_add(int32_t id_before, int32_t series_id,
                             const struct hearth_totals *totals, uint32_t n_types,
                             struct hearth_buf *ts, struct hearth_buf *vals); /* [n_types] */

/* Bytes of the packed value of a single profile, at most. */
#define HEARTH_TOTALS_ONE_BYTES 11
/* Pack the value of a single profile, and return its bytes. A negative one is read as CORRUPT. */
size_t hearth_totals_pack_one(int64_t value, char out[HEARTH_TOTALS_ONE_BYTES]);

/* Walks through the series of one value column. It begins with the two columns and all else 0. */
struct hearth_totals_group {
    struct hearth_str ts, val; /* bytes of the series that follow; val.p NULL: times alone */
    int32_t series_id;         /* the series; its packed totals are: */
    struct hearth_str series_ts, series_val;
};

/*
 * Go to the next series. *ret_has false: there is no other one. CORRUPT for damaged bytes, but the
 * packed totals of the series may be damaged, too.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_totals_group_next(struct hearth_totals_group *group, bool *ret_has, struct hearth_err *err);

/* ---- sets of series ---- */

/* Append n ascending, distinct, positive ids as delta varints. */
void hearth_members_encode(const int32_t *series_ids, size_t n, struct hearth_buf *out);
/* Decode such ids into arena. CORRUPT for damaged bytes; NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status hearth_members_decode(struct hearth_str bytes,
                                                           struct hearth_arena *arena,
                                                           int32_t **ret_series_ids, size_t *ret_n,
                                                           struct hearth_err *err);
/*
 * True if all encoded ids are among the n ascending series_ids; false for damaged bytes. Allocates
 * nothing.
 */
bool hearth_members_within(struct hearth_str bytes, const int32_t *series_ids, size_t n);

#endif
