/*
 * columns.h -- the stored form of a profile's samples: byte columns over dense stack ids.
 *
 * In the byte form:
 *
 *   ids      varint(highest id + 1), so that a reader can allocate before it decodes; then for each
 *            sample, by ascending stack id: varint(delta << 1 | one), where delta is the distance
 *            to the previous id (for the first sample: the id itself) and `one` is 1 if the value
 *            of column 0 is 1
 *   vals[0]  0x00, then varint of column 0 for each sample whose `one` bit is clear
 *   vals[k]  0x00, then varint of column k for every sample; or
 *            0x01, varint(factor): column k is factor times column 0 (cpu time = period times
 *            count; factor 0: a column of zeros)
 *
 * In the bit form, which begins with a byte that no column in the byte form begins with:
 *
 *   ids      0x00, varint(highest id + 1), varint(samples), runs of the distances between ids less
 *            one (for the first sample: the id itself)
 *   vals[k]  0x00 or 0x01: as vals[k > 0] in the byte form; or
 *            0x02, runs of all values; or
 *            0x03, varint(m), a bit for each sample, runs of m numbers: all values are 1 or more;
 *            the bits, from the lowest of each byte on, tell which m of them are more than 1, and
 *            the numbers are these values less 2; or
 *            0x04: the same for values of 0 or more: those that are more than 0, less 1
 *
 * A run is up to 128 numbers in Rice code (server/model/profile/number_run.h); only the last one of
 * a column has fewer.
 *
 * Values are >= 0 (negative samples were dropped before); totals fit int64.
 *
 * Why: dense ids cost less than a byte a sample where content hashes cost 8-16; most counts are 1
 * (docs/decisions/0002-row-layout.md and 0050-bit-columns.md have the measurements).
 *
 * Threads:   pure.
 * Source:    docs/decisions/0002-row-layout.md, 0050-bit-columns.md.
 */
#ifndef HEARTH_MODEL_COLUMNS_H
#define HEARTH_MODEL_COLUMNS_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"

struct hearth_columns {
    uint32_t n; /* samples */
    uint32_t n_types;
    struct hearth_str ids;
    struct hearth_str *vals; /* [n_types] */
    int64_t *totals;         /* [n_types] */
};

/*
 * Encode n samples with ascending, distinct ids and values[i * n_types + k] >= 0, in the form that
 * takes fewer bytes. Output in arena. Returns OK; OUT_OF_RANGE if a total overflows int64 (the
 * message names the column); NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_columns_encode(const uint32_t *ids, const int64_t *values, uint32_t n,
                                         uint32_t n_types, struct hearth_arena *arena,
                                         struct hearth_columns *ret, struct hearth_err *err);

/*
 * The same in the byte form: for blocks that hold many ids of a dictionary and are compressed.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_columns_encode_bytes(const uint32_t *ids, const int64_t *values,
                                               uint32_t n, uint32_t n_types,
                                               struct hearth_arena *arena,
                                               struct hearth_columns *ret, struct hearth_err *err);

/* A value column that is `factor` times column 0, in arena; p is NULL if memory was refused. */
struct hearth_str hearth_columns_multiple(uint64_t factor, struct hearth_arena *arena);

/*
 * Add column k of a stored profile to acc[stack id]. `val` is vals[k]. `val0` is vals[0]; it is
 * read only if val is another column and is stored as a multiple of column 0
 * (hearth_columns_is_multiple). Returns OK; CORRUPT if an id is not below n_acc or bytes are
 * missing (acc may be partly changed); OUT_OF_RANGE if a sum overflows int64.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_columns_merge(struct hearth_str ids, struct hearth_str val,
                                        struct hearth_str val0, bool is_column0, int64_t *acc,
                                        size_t n_acc, struct hearth_err *err);

/*
 * Read the highest stack id plus one (0 if the column is empty) from the first bytes of an ids
 * column. False if these bytes are damaged.
 */
HEARTH_MUST_CHECK bool hearth_columns_id_bound(struct hearth_str ids, uint32_t *ret_bound);

#define HEARTH_IDS_WALK_CHUNK 128

/* Goes over the stack ids of a column in ascending order. Borrows the column. */
struct hearth_ids_walk {
    const uint8_t *at, *end;
    uint64_t lowest; /* id that the next sample can have; of ids in bytes: the latest id */
    uint32_t n_left; /* of ids in bits: samples that were not read yet */
    uint32_t n, next;
    bool in_bits;
    uint32_t ids[HEARTH_IDS_WALK_CHUNK]; /* ids[next] to ids[n - 1] come next */
};

/* For a column that hearth_columns_merge has accepted; the walk of a damaged one ends early. */
void hearth_ids_walk_begin(struct hearth_ids_walk *walk, struct hearth_str ids);
/* Read the next ids. False: there are no more. For hearth_ids_walk_next. */
HEARTH_MUST_CHECK bool hearth_ids_walk_read(struct hearth_ids_walk *walk);

/* Move to the next id. False: there are no more. */
HEARTH_MUST_CHECK static inline bool hearth_ids_walk_next(struct hearth_ids_walk *walk,
                                                          uint32_t *ret_stack)
{
    if (walk->next == walk->n && !hearth_ids_walk_read(walk)) {
        return false;
    }
    *ret_stack = walk->ids[walk->next++];
    return true;
}

/* True if vals[k] is stored as a multiple of column 0. */
static inline bool hearth_columns_is_multiple(struct hearth_str val)
{
    return val.n > 0 && val.p[0] == 1;
}

#endif
