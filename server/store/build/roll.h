/*
 * roll.h -- profiles of one service on their way into roll-ups, in one transaction (private to the
 * store; roll_write.c has what both building and folding do).
 *
 * Rows come in by series and time. Their sums are kept per (series, block, writer); a full block is
 * written, and added to the block of its whole service and to the next longer one of its series.
 *
 *   10 min, series --> 1 h, series --> 1 d, series          each written, then added
 *        |                 |               |
 *        v                 v               v
 *   10 min, shape     1 h, shape      1 d, shape             of the whole service
 *
 * Parts. A key is (series, t0, writer, part). Sums that must be written before they are complete (64
 * bits are full, or memory is) go out as a part of their own, and the roll's part is raised: the
 * rest of the key's sum comes under another one. At the end roll_state.generation is the last part used.
 */
#ifndef HEARTH_STORE_ROLL_H
#define HEARTH_STORE_ROLL_H

#include "hearth/model/block.h"
#include "hearth/store/read.h"

#include "build/builder.h"
#include "read/stored_rows.h"

#define HEARTH_BUCKET_NS (600 * HEARTH_NS_PER_SEC)
/* built_to and compacted_to of a service of which nothing is: a whole day, far before any profile. */
#define HEARTH_NEVER_NS (INT64_C(-106751) * HEARTH_NS_PER_DAY)

/* Times to hours and days in SQL, rounding down; of every int8, HEARTH_NEVER_NS too. */
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

/* Begin of the piece of length_ns that ts lies in. */
static inline int64_t hearth_floor_ns(int64_t ts_ns, int64_t length_ns)
{
    int64_t rest = ts_ns % length_ns;
    return ts_ns - (rest < 0 ? rest + length_ns : rest);
}

/* The sum of one key. */
struct hearth_roll_sum {
    int32_t series_id, writer_id; /* series_id < 0: -shape_id */
    int64_t t0_ns;
    struct hearth_block_sums sums;
    int32_t *members; /* of whole-service sums, in the order they came */
    size_t n_members, cap_members;
};

/* [0, n) in use; behind them, up to n_made, what keeps its memory for the next. */
struct hearth_roll_set {
    struct hearth_roll_sum *sums;
    size_t n, n_made, cap;
};

struct hearth_roll_shape {
    int32_t series_id, shape_id;
};

struct hearth_roll {
    struct hearth_builder *builder;
    int32_t service_id;
    int64_t part;
    int64_t from_ns, to_ns;           /* blocks that lie within are made */
    struct hearth_roll_shape *shapes; /* of the service's series, ascending */
    size_t n_shapes;
    struct hearth_roll_set series[HEARTH_N_TIERS], service[HEARTH_N_TIERS];
    size_t n_sum_bytes; /* of the whole-service sums */
    /* The row before: what its sums belong to. */
    bool has_row;
    int32_t series_id;
    uint32_t n_types;
    int64_t t0_ns[HEARTH_N_TIERS];
    /* Totals of its hour so far. */
    int64_t *ts_ns, *values; /* [n_totals], [n_totals * n_types] */
    size_t n_totals, cap_ts, cap_values;
    /* COPY rows not sent yet. */
    struct hearth_buf blocks[HEARTH_N_TIERS], totals;
    struct hearth_buf packed;  /* scratch of one block */
    struct hearth_arena arena; /* likewise */
    struct hearth_arena keep;  /* shapes */
    int64_t n_blocks[HEARTH_N_TIERS], n_block_bytes[HEARTH_N_TIERS], n_totals_bytes, n_rows;
};

/*
 * In a transaction. Blocks within [from_ns, to_ns) are made of the rows that come. Release it
 * whatever happens.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_roll_init(struct hearth_roll *roll, struct hearth_builder *builder, int32_t service_id,
                 int64_t part, int64_t from_ns, int64_t to_ns, struct hearth_err *err);
void hearth_roll_release(struct hearth_roll *roll);

/* By series and time. No statement is run. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_add(struct hearth_roll *roll,
                                                     const struct hearth_stored_row *row,
                                                     struct hearth_err *err);
/* The series of the last row is complete. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_end_series(struct hearth_roll *roll,
                                                            struct hearth_err *err);
/* So many bytes wait to be sent that the caller should (hearth_roll_send). */
bool hearth_roll_is_full(const struct hearth_roll *roll);
/* COPY what is complete. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_send(struct hearth_roll *roll,
                                                      struct hearth_err *err);
/* The whole service is complete: write its blocks too, and send. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_end(struct hearth_roll *roll,
                                                     struct hearth_err *err);
/* After the commit: what /metrics says. */
void hearth_roll_count(const struct hearth_roll *roll);

/* ---- roll_merge.c: sums of what is stored already ---- */

/* Write the blocks of `tier` at t0 as sums of the next shorter tier's. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_up(struct hearth_roll *roll, enum hearth_tier tier,
                                                    int64_t t0_ns, struct hearth_err *err);
/*
 * Make one part of keys of these series, with t0 from from_ns to to_ns (included), that have more
 * than max_parts; whole-service keys have series_id < 0. series_ids NULL: all.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_roll_merge_parts(struct hearth_roll *roll, enum hearth_tier tier, const int32_t *series_ids,
                        size_t n_series, int64_t from_ns, int64_t to_ns, int max_parts,
                        struct hearth_err *err);
/* The same for hour_totals. */
HEARTH_MUST_CHECK enum hearth_status
hearth_roll_merge_totals(struct hearth_roll *roll, const int32_t *series_ids, size_t n_series,
                         int64_t from_ns, int64_t to_ns, int max_parts, struct hearth_err *err);

/* For roll_merge.c: the sum of a key, made when it is new; NULL when memory was refused. */
struct hearth_roll_sum *hearth_roll_find(struct hearth_roll *roll, struct hearth_roll_set *set,
                                         int32_t series_id, int64_t t0_ns, int32_t writer_id,
                                         uint32_t n_types, struct hearth_err *err);
void hearth_roll_sum_clear(struct hearth_roll_sum *sum);
void hearth_roll_set_clear(struct hearth_roll_set *set); /* its sums keep their memory */
void hearth_roll_set_release(struct hearth_roll_set *set);
HEARTH_MUST_CHECK bool hearth_roll_add_members(struct hearth_roll_sum *sum,
                                               const int32_t *series_ids, size_t n);
/* Would the sum stay within 64 bits? */
bool hearth_roll_fits(const struct hearth_roll_sum *sum, const int64_t *totals);
/* Append the block to roll->blocks[tier]. The sum stays as it is. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_put(struct hearth_roll *roll,
                                                     enum hearth_tier tier,
                                                     const struct hearth_roll_sum *sum,
                                                     struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status
hearth_roll_put_totals(struct hearth_roll *roll, int32_t series_id, int64_t t0_ns,
                       const int64_t *ts_ns, const int64_t *values, size_t n, uint32_t n_types,
                       struct hearth_err *err);

/* ---- roll_close.c ---- */
struct hearth_close *hearth_close_new(void); /* NULL when memory was refused */
void hearth_close_free(struct hearth_close *close);

#endif
