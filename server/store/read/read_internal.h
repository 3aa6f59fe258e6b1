/*
 * read_internal.h -- the statement of a read and the fields of its rows (private to the room).
 *
 *   read_state.c   state of services
 *   read_sql.c     branches, parameters and text of the statement
 *   read_id_range.c   which branches read a range of ids
 *   read_arrays.c  branches whose rows have many profiles each
 *   read_detail.c  the plan's struct hearth_read_detail, as conditions in SQL and in C
 *   read.c         runs the statement: rows, totals, costs
 *
 * Threads: pure.
 */
#ifndef HEARTH_STORE_READ_INTERNAL_H
#define HEARTH_STORE_READ_INTERNAL_H

#include "hearth/store/read.h"

#include "pg/pg.h"
#include "read/node_parts.h"

/* For bsearch and qsort of int32_t, and of structs whose first member is the int32_t to compare. */
static inline int hearth_compare_i32(const void *a, const void *b)
{
    int32_t x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Meaning of the rows of a statement. */
enum read_kind {
    READ_ROWS,   /* hearth_read_row */
    READ_TOTALS, /* hearth_read_total */
    READ_COSTS,  /* hearth_leg_cost, by leg and service */
};

/* Indexes of the first and last run of a list of series, in $1 to $3; counted from 1. */
struct read_runs {
    size_t first, last;
};

/* One SELECT of the statement: a leg, or one value column of it. */
struct read_branch {
    const struct hearth_read_leg *leg;
    uint16_t column; /* 0 in branches of segments and costs, which have no column */
    /*
     * Totals of profiles of series with ids in [first_id, last_id]: by id - first_id the service of
     * each selected series, and 0 of others. NULL: the statement lists the series.
     */
    const int32_t *services;
    int32_t first_id, last_id;
    bool in_arrays;          /* totals of many profiles in one row (field_packed) */
    struct read_runs pieces; /* in_arrays, services NULL: arrays for each of these runs */
};

/* Fields of a row. */
enum {
    FIELD_SERVICE,
    /*
     * Rows and totals with identity: series_id << 32 | writer_id. Totals without identity:
     * series_id. Segments: bytes when unpacked. Costs: rows. Generations: the generation.
     */
    FIELD_WHO,
    FIELD_TIME,              /* ts or t0 in ns; costs: bytes */
    FIELD_TAG,               /* n_profiles << 32 | index of the branch; or one of the tags below */
    FIELD_IDS,               /* READ_ROWS only; segments: the payload */
    FIELD_VAL,               /* READ_ROWS only */
    FIELD_TOTAL = FIELD_IDS, /* READ_TOTALS only */
};

#define TAG_GENERATION (-1)
#define TAG_SHARDS     (-2) /* service: how many shards of the part its node has */

struct read_statement {
    enum read_kind kind;
    struct hearth_buf sql; /* NUL-terminated */
    struct hearth_pg_params params;
    struct read_branch *branches;
    size_t n_branches;

    /* Indexes of optional fields; -1: the statement has no such field. */
    int field_val0, field_members; /* READ_ROWS only */
    /*
     * READ_TOTALS only: packed times or a segment; the next field: packed totals. Rows of branches
     * that are in_arrays have array_send of int8[] in both: the series of n profiles, then their
     * times; and n totals, -1 where the column is missing. If the branch lists its series,
     * FIELD_SERVICE is the service of all profiles.
     */
    int field_packed;
    int field_no;    /* profile_no; the next: duration_ns */
    int field_attrs; /* READ_ROWS only */
};

/* What a statement may know of the leaves that its legs read. */
struct read_leaves {
    const int64_t *bytes; /* [plan->n_legs], from hearth_read_leaf_bytes; NULL: not known */
    bool in_arrays;       /* totals may come in arrays */
};

/* The hits of a series in a leg; *ret_n may be 0. */
const struct hearth_series_hit *hearth_read_hits_of(const struct hearth_read_leg *leg,
                                                    int32_t service_id, int32_t series_id,
                                                    size_t *ret_n);
/* True if the plan is not restricted to instants, or if this is one of them. */
bool hearth_read_has_instant(const struct hearth_read_detail *detail, int32_t service_id,
                             int32_t series_id, int64_t ts_ns);

/* Append the optional fields of a branch; is_row false: they are NULL (segments, generations). */
void hearth_read_detail_fields(struct hearth_buf *sql, const struct read_statement *statement,
                               bool is_row);
/* Append conditions on rows of profile and profile_late. */
void hearth_read_detail_conditions(struct hearth_buf *sql, const struct hearth_read_detail *detail);
/* Append a condition on segments: the hours of the plan's instants. */
void hearth_read_detail_hours(struct hearth_buf *sql, const struct hearth_read_detail *detail);

/*
 * Find the mean size of the leaves that each leg reads, in arena: (*ret)[plan->n_legs], INT64_MAX
 * where it is not known or does not matter. *ret NULL: no leg has so many series that it does.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_read_leaf_bytes(const struct hearth_scope *scope,
                                          const struct hearth_read_plan *plan,
                                          struct hearth_arena *arena, int64_t **ret,
                                          struct hearth_err *err);
/*
 * Let a branch of totals read a range of ids if that is cheaper than looking for each series of its
 * leg and column; in arrays if these have bounds. False: it is not, or memory was refused.
 */
bool hearth_read_by_id_range(struct read_branch *branch, int64_t leaf_bytes,
                             struct hearth_arena *arena);
/* Whether the totals of a leg that lists its series may come in arrays: their number is bounded. */
bool hearth_read_in_pieces(const struct hearth_read_leg *leg);
/* The number of listed series whose totals share arrays. */
#define HEARTH_READ_SERIES_OF_ARRAY 16
/* Append " UNION ALL SELECT .. FROM" of a branch in arrays, up to its table. */
void hearth_read_arrays_from(struct hearth_buf *sql, const struct read_branch *branch, size_t tag);
/* Append " WHERE" and its conditions on services and series; runs: of the whole branch. */
void hearth_read_arrays_where(struct hearth_buf *sql, const struct read_branch *branch,
                              const struct read_runs *runs);
/* Append the end of a branch in arrays, after all of its conditions. */
void hearth_read_arrays_end(struct hearth_buf *sql);
/* The service of a selected series of a branch that reads a range of ids; 0: it is not selected. */
static inline int32_t hearth_branch_service(const struct read_branch *branch, int32_t series_id)
{
    uint32_t i = (uint32_t)series_id - (uint32_t)branch->first_id;

    return series_id >= branch->first_id && series_id <= branch->last_id ? branch->services[i] : 0;
}
/* Whether a row of a branch is of a selected series. */
static inline bool hearth_branch_wants(const struct read_branch *branch, int32_t series_id)
{
    return HEARTH_LIKELY(branch->services == NULL) || hearth_branch_service(branch, series_id) != 0;
}

/*
 * Make the statement of a plan with at least one leg, for tables that are distributed or not
 * (nodes/layout.h); part (NULL: none): for the tables of its shards, with a plan that
 * hearth_read_part_plan has made. leaves NULL: every branch lists its series. Branches and
 * parameters in arena; the caller releases statement->sql, also after a failure.
 * RESOURCE_EXHAUSTED: too many legs or columns.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_read_statement_make(struct read_statement *statement, enum read_kind kind,
                                              const struct hearth_read_plan *plan,
                                              bool is_distributed,
                                              const struct hearth_node_part *part,
                                              const struct read_leaves *leaves,
                                              struct hearth_arena *arena, struct hearth_err *err);

#endif
