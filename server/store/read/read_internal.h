/*
 * read_internal.h -- the statement of a read and the one who takes its rows (private to the store).
 *
 *   read_state.c   what stands where
 *   read_sql.c     branches, parameters, text
 *   read_detail.c  what is wanted of single profiles: whether it comes, and as SQL
 *   read.c         rows, totals, costs
 */
#ifndef HEARTH_STORE_READ_INTERNAL_H
#define HEARTH_STORE_READ_INTERNAL_H

#include "hearth/store/read.h"

#include "pg/pg.h"

/* For tombstones and states, which begin with it, and for ids themselves. */
static inline int hearth_compare_i32(const void *a, const void *b)
{
    int32_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* What the rows of a statement are. */
enum read_kind {
    READ_ROWS,
    READ_TOTALS,
    READ_COSTS,
};

/* One SELECT of the statement: a leg, or one value column of it. */
struct read_branch {
    const struct hearth_read_leg *leg;
    uint16_t column; /* of segments and costs: any */
};

/* Fields of the answer. */
enum {
    FIELD_SERVICE,
    FIELD_WHO,  /* series_id << 32 | writer_id; totals without identity: series_id; segments:
                   n_bytes; costs: rows; generations: the generation */
    FIELD_TIME, /* costs: bytes */
    FIELD_TAG,  /* n_profiles << 32 | branch; negative: a generation */
    FIELD_IDS,  /* rows only; segments: the payload */
    FIELD_VAL,
    FIELD_TOTAL = FIELD_IDS, /* totals only */
};

struct read_statement {
    enum read_kind kind;
    struct hearth_buf sql;
    struct hearth_pg_params params;
    struct read_branch *branches;
    size_t n_branches;
    int field_val0, field_members; /* of rows; -1: not there */
    int field_packed;              /* of totals: packed times or a segment, then packed values */
    int field_no;    /* with the duration behind it, as the detail asks; -1: not there */
    int field_attrs; /* likewise */
};

/* The leg's hits of a series. */
const struct hearth_series_hit *hearth_read_hits_of(const struct hearth_read_leg *leg,
                                                    int32_t service_id, int32_t series_id,
                                                    size_t *ret_n);
/* Is it one of the instants that a plan is about? */
bool hearth_read_wants(const struct hearth_read_detail *detail, int32_t service_id,
                       int32_t series_id, int64_t ts_ns);

/* Fields of a branch beyond those that all have; `is_row`: not of a segment. */
void hearth_read_detail_fields(struct hearth_buf *sql, const struct read_statement *statement,
                               bool is_row);
/* Conditions on the rows of profile and profile_late. */
void hearth_read_detail_conditions(struct hearth_buf *sql, const struct hearth_read_detail *detail);
/* Conditions on segments: the hours of instants. */
void hearth_read_detail_hours(struct hearth_buf *sql, const struct hearth_read_detail *detail);

/* NUL-terminated text and parameters in arena. RESOURCE_EXHAUSTED: too many legs or columns. */
HEARTH_MUST_CHECK
enum hearth_status hearth_read_statement_make(struct read_statement *statement, enum read_kind kind,
                                              const struct hearth_read_plan *plan,
                                              struct hearth_arena *arena, struct hearth_err *err);

#endif
