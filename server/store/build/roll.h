/*
 * roll.h -- sums profiles of one service into roll-ups, in one transaction (private to the store).
 *
 * roll_close.c builds closed buckets, roll_fill.c what was left out, roll_fold.c adds late
 * profiles; they use roll_range.c, roll_write.c and roll_merge.c. Rows are added by series and
 * time. They are summed per (series, block, writer). A complete block is written, unless it is one
 * of those that are left out (roll_sparse.h), and added to the block of its whole service and to
 * the next longer block of its series.
 *
 *   10 min, series --> 1 h, series --> 1 d, series          each written, then added
 *        |                 |               |
 *        v                 v               v
 *   10 min, shape     1 h, shape      1 d, shape             of the whole service
 *
 * Parts. A key is (series, t0, writer, part). A sum that would exceed 64 bits, or its memory limit,
 * is written as a part before it is complete. Then the roll's part is raised, and the rest of the
 * key's sum becomes another part. At the end roll_state.generation is the last part used.
 *
 * Totals are written for each series and hour; of an hour that is built in pieces, for each piece,
 * until they become one row at its end. Readers use those of pieces, too. In an hour in which the
 * series have few profiles, several series share a row, with series_id 0 (roll_totals.c).
 *
 * Threads: a struct hearth_roll belongs to the builder's thread.
 * Errors:  of the database; NO_MEMORY, RESOURCE_EXHAUSTED (a sum beyond 256 MiB); CORRUPT and
 *          OUT_OF_RANGE for damaged rows. After a failure a roll can only be released.
 */
#ifndef HEARTH_STORE_ROLL_H
#define HEARTH_STORE_ROLL_H

#include "hearth/model/block.h"
#include "hearth/store/read.h"

#include "build/builder.h"
#include "build/roll_sparse.h"
#include "catalog/catalog.h"
#include "read/stored_rows.h"

#define HEARTH_BUCKET_NS (600 * HEARTH_NS_PER_SEC)
/* built_to and compacted_to of a service without such data: a whole day, before all profiles. */
#define HEARTH_NEVER_NS (INT64_C(-106751) * HEARTH_NS_PER_DAY)

/* Times to hours and days in SQL, rounded down; for every int8, HEARTH_NEVER_NS included. */
#define HEARTH_SQL_FLOOR(x, length) \
    "(" x ") / " length " - CASE WHEN mod(" x ", " length ") < 0 THEN 1 ELSE 0 END"
#define HEARTH_SQL_HOUR(x) "(" HEARTH_SQL_FLOOR(x, "3600000000000") ")::int4"
#define HEARTH_SQL_DAY(x)  "(" HEARTH_SQL_FLOOR(x, "86400000000000") ")"

enum hearth_tier {
    HEARTH_TIER_10M,
    HEARTH_TIER_1H,
    HEARTH_TIER_1D,
    HEARTH_N_TIERS
};

int64_t hearth_tier_length_ns(enum hearth_tier tier);
const char *hearth_tier_table(enum hearth_tier tier); /* "roll_10m", .. */

/* Begin of the piece of length_ns in which ts_ns lies. */
static inline int64_t hearth_floor_ns(int64_t ts_ns, int64_t length_ns)
{
    int64_t rest = ts_ns % length_ns;

    return ts_ns - (rest < 0 ? rest + length_ns : rest);
}

/* The sum of one key. */
struct hearth_roll_sum {
    int32_t series_id, writer_id; /* series_id < 0: a whole-service sum of the shape -series_id */
    int64_t t0_ns;
    struct hearth_block_sums sums;
    int32_t *members; /* series of a whole-service sum, in the order of their addition */
    size_t n_members, cap_members;
};

/* Sums of one tier. */
struct hearth_roll_set {
    struct hearth_roll_sum *sums;
    size_t n;      /* sums in use: [0, n) */
    size_t n_made; /* sums with memory: [n, n_made) are empty and will be used again */
    size_t cap;
};

struct hearth_roll_shape {
    int32_t series_id, shape_id;
};

struct hearth_roll_group; /* totals of several series that will be a row */

/* What a roll writes. */
enum hearth_roll_scope {
    HEARTH_ROLL_ALL,             /* blocks and totals */
    HEARTH_ROLL_HOURS,           /* only blocks of 1 h: all others are there */
    HEARTH_ROLL_HOURS_OF_SERIES, /* of these, only those of series */
};

struct hearth_roll {
    struct hearth_builder *builder;
    int32_t service_id;
    int64_t part;                    /* part of the next written rows */
    int64_t from_ns, to_ns;          /* blocks of 1 h and 1 d that lie within are made */
    int64_t compacted_to_ns;         /* of the service; needed by roll_range.c alone */
    struct hearth_absent_set absent; /* blocks that are not written */
    bool may_lack[HEARTH_N_TIERS];   /* more of them may be left out; set by hearth_sparse_begin */
    /* Blocks of 10 min and 1 h, and profiles, before these may have expired; set with may_lack. */
    int64_t buckets_from_ns, hours_from_ns, profiles_from_ns;
    enum hearth_roll_scope scope;
    struct hearth_roll_shape *shapes; /* of the service's series, ascending by series */
    size_t n_shapes;
    struct hearth_roll_set series[HEARTH_N_TIERS];  /* sums of the current series */
    struct hearth_roll_set service[HEARTH_N_TIERS]; /* sums of the whole service */
    size_t n_sum_bytes;                             /* memory of the whole-service sums */

    /* State between rows: the series and blocks of the row before, if has_row. */
    bool has_row;
    int32_t series_id;
    uint32_t n_types;              /* of the totals; valid if n_totals > 0 */
    int64_t t0_ns[HEARTH_N_TIERS]; /* begins of the current blocks */

    /* Totals of the current hour. */
    int64_t *ts_ns, *values; /* [n_totals], [n_totals * n_types] */
    size_t n_totals, cap_ts, cap_values;

    bool groups_totals; /* series share rows of totals; set by roll_sparse.c for an hour */
    struct hearth_roll_group *groups[HEARTH_SERIES_MAX_TYPES + 1]; /* by number of types */

    struct hearth_buf blocks[HEARTH_N_TIERS], totals; /* COPY rows that are not sent */
    struct hearth_buf packed;                         /* scratch of one block */
    struct hearth_arena arena;                        /* scratch of one block or totals */
    struct hearth_arena keep;                         /* shapes */

    /* Counts for /metrics: written blocks and bytes, and added rows. */
    int64_t n_blocks[HEARTH_N_TIERS], n_block_bytes[HEARTH_N_TIERS], n_totals_bytes, n_rows;
};

/*
 * In a transaction: begin with the series and shapes of the service. Release the roll even if this
 * fails.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_roll_init(struct hearth_roll *roll, struct hearth_builder *builder, int32_t service_id,
                 int64_t part, int64_t from_ns, int64_t to_ns, struct hearth_err *err);
void hearth_roll_release(struct hearth_roll *roll);

/*
 * Add a row; rows are added by series and time. Complete blocks become rows of COPY; no statement
 * is run.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_add(struct hearth_roll *roll,
                                                     const struct hearth_stored_row *row,
                                                     struct hearth_err *err);
/* Write the blocks and totals of the last row's series, which is complete. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_end_series(struct hearth_roll *roll,
                                                            struct hearth_err *err);
/* Whether so many bytes are not sent that the caller should call hearth_roll_send. */
bool hearth_roll_is_full(const struct hearth_roll *roll);
/* Send the rows of complete blocks and totals by COPY. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_send(struct hearth_roll *roll,
                                                      struct hearth_err *err);
/* All rows were added: write the blocks of the last series and of the whole service, and send. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_end(struct hearth_roll *roll,
                                                     struct hearth_err *err);
/* After the commit: add the counts of the roll to /metrics. */
void hearth_roll_count(const struct hearth_roll *roll);

/* ---- roll_range.c: sums of stored profiles; needs compacted_to_ns ---- */

/* Add the profiles of a range within an hour, in one or more passes, and end the roll. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_rows(struct hearth_roll *roll, int64_t from_ns,
                                                      int64_t to_ns, struct hearth_err *err);
/*
 * Store which blocks are absent and the last part used. built_to is raised to built_to_ns; 0: it
 * stays.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_store_state(const struct hearth_roll *roll,
                                                             int64_t built_to_ns,
                                                             struct hearth_err *err);
/*
 * Write the blocks of an hour whose 10 minutes are built, unless they are absent: from these, or
 * again from profiles if some of these are absent.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_hour(struct hearth_roll *roll, int64_t hour_ns,
                                                      struct hearth_err *err);
/* Write the blocks of an hour from profiles; whole: those of the whole service, too. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_hour_rows(struct hearth_roll *roll,
                                                           int64_t hour_ns, bool whole,
                                                           struct hearth_err *err);

/* Whose blocks are summed. */
enum hearth_roll_whose {
    HEARTH_ROLL_UP_ALL,
    HEARTH_ROLL_UP_SERIES,
    HEARTH_ROLL_UP_SERVICE, /* the whole service */
};

/*
 * Write the blocks of a day, none of which may be there: from its hours, and from profiles where
 * these are absent; from_profiles: without its hours.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_day(struct hearth_roll *roll, int64_t day_ns,
                                                     enum hearth_roll_whose whose,
                                                     bool from_profiles, struct hearth_err *err);

/* ---- roll_merge.c: sums of stored blocks ---- */

/*
 * Write the blocks of `tier` (not the shortest) at t0_ns as sums of the next shorter tier's.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_up(struct hearth_roll *roll, enum hearth_tier tier,
                                                    int64_t t0_ns, enum hearth_roll_whose whose,
                                                    struct hearth_err *err);
/* Keys of blocks or totals. */
struct hearth_roll_keys {
    const int32_t *series_ids; /* NULL: all; below 0: shapes of whole-service blocks, negated */
    size_t n_series;
    int64_t from_ns, to_ns; /* range of t0, to_ns included */
};

/* Replace the parts of each key that has more than max_parts by one part. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_merge_parts(struct hearth_roll *roll,
                                                             enum hearth_tier tier,
                                                             const struct hearth_roll_keys *keys,
                                                             int max_parts, struct hearth_err *err);
/*
 * The same for hour_totals, where max_parts may be 0: all are written again, in shared rows if
 * groups_totals is set. Rows that series share already stay as they are.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_merge_totals(struct hearth_roll *roll,
                                                              const struct hearth_roll_keys *keys,
                                                              int max_parts,
                                                              struct hearth_err *err);

/* ---- roll_write.c: single sums, also for roll_range.c, roll_merge.c and erase_blocks.c ---- */

/*
 * Return the shape of a series; 0: the series is no longer in the catalogue, so no selector finds
 * it and no block of the whole service needs it.
 */
int32_t hearth_roll_shape_of(const struct hearth_roll *roll, int32_t series_id);

/*
 * Return the sum of a key; a new one is empty. NULL after an error: NO_MEMORY; CORRUPT if the sum
 * has another number of types.
 */
struct hearth_roll_sum *hearth_roll_find(struct hearth_roll *roll, struct hearth_roll_set *set,
                                         int32_t series_id, int64_t t0_ns, int32_t writer_id,
                                         uint32_t n_types, struct hearth_err *err);
/* Empty a sum. It keeps its key and memory. */
void hearth_roll_sum_clear(struct hearth_roll_sum *sum);
/* Remove all sums from the set, which keeps their memory for later sums. */
void hearth_roll_set_clear(struct hearth_roll_set *set);
/* Remove all sums and free their memory; a zeroed set is allowed. */
void hearth_roll_set_release(struct hearth_roll_set *set);
/* Append n members; the first is left out if it is the last present member. False: no memory. */
HEARTH_MUST_CHECK bool hearth_roll_add_members(struct hearth_roll_sum *sum,
                                               const int32_t *series_ids, size_t n);
/* Whether the sum would stay within 64 bits if values with these totals[n_types] were added. */
bool hearth_roll_fits(const struct hearth_roll_sum *sum, const int64_t *totals);
/* Append the block to roll->blocks[tier]. The sum stays as it is, but its members are sorted. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_put(struct hearth_roll *roll,
                                                     enum hearth_tier tier,
                                                     const struct hearth_roll_sum *sum,
                                                     struct hearth_err *err);

/* Totals of a series in an hour. */
struct hearth_roll_totals {
    int32_t series_id;
    int64_t t0_ns;         /* begin of the hour */
    const int64_t *ts_ns;  /* [n], ascending */
    const int64_t *values; /* [n * n_types] */
    size_t n;
    uint32_t n_types;
};

/* ---- roll_totals.c ---- */

/* The columns of hour_totals in the order of COPY. */
#define HEARTH_TOTALS_COLUMNS   "service_id, series_id, t0, part, n_profiles, ts, vals, totals"
#define HEARTH_N_TOTALS_COLUMNS 8

/* Append the totals to roll->totals, or to a row that series share; series ascend by id. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_put_totals(struct hearth_roll *roll,
                                                            const struct hearth_roll_totals *totals,
                                                            struct hearth_err *err);

/* Packed totals of a series in an hour. */
struct hearth_packed_totals {
    int32_t series_id;
    int64_t t0_ns;
    size_t n_profiles; /* at most UINT32_MAX */
    uint32_t n_types;  /* 1 to HEARTH_SERIES_MAX_TYPES */
    struct hearth_totals totals;
    const int64_t *sums; /* [n_types] */
};

/* Append them to a row that series share. */
HEARTH_MUST_CHECK enum hearth_status
hearth_roll_group_add(struct hearth_roll *roll, const struct hearth_packed_totals *packed,
                      struct hearth_err *err);
/* Append the shared rows to roll->totals, and raise roll->part for each. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_put_groups(struct hearth_roll *roll,
                                                            struct hearth_err *err);
void hearth_roll_release_groups(struct hearth_roll *roll);

/* ---- roll_close.c ---- */

/* The state of the barrier. NULL: memory was refused. */
struct hearth_close *hearth_close_new(void);
void hearth_close_free(struct hearth_close *close); /* NULL-safe */

#endif
