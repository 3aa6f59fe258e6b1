/*
 * read_run.h -- a read while it runs (private to the room): read.c runs its statements, read_take.c
 * takes their rows.
 *
 * Threads: a struct read belongs to the thread that reads.
 */
#ifndef HEARTH_STORE_READ_RUN_H
#define HEARTH_STORE_READ_RUN_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/codec/compress.h"

#include "read/node_parts.h"
#include "read/read_internal.h"

/* Limit of a column of a block, or of a segment, unpacked: far above what the builder writes. */
#define HEARTH_READ_UNPACKED_BYTES ((size_t)256 << 20)

struct read {
    const struct hearth_read_plan *plan;
    const struct hearth_read_plan *now;  /* the plan, or that of the services of one node */
    const struct hearth_node_part *part; /* whose shards the statement names; NULL: data tables */
    struct read_statement statement;
    const struct hearth_scope *scope;
    struct hearth_arena arena;        /* text and parameters of the statement */
    struct hearth_arena rows;         /* rows of the current segment, arrays of the current row */
    struct hearth_buf ids, val, val0; /* unpacked columns of the current row */
    struct hearth_inflater *inflater; /* NULL until a row needs it */

    /* State of the service of the last row (find_service): */
    const struct hearth_service_state *service; /* NULL: no row yet, or no state in the plan */
    const struct hearth_tombstone *tombstones;
    size_t n_tombstones;

    bool has_shards;   /* the node has all shards of the part, as the statement has returned */
    bool is_stale;     /* it has not, or a table is missing */
    size_t n_current;  /* returned generations that equal the plan's */
    size_t n_expected; /* services that have a row of roll_state according to the plan */
    int64_t n_rows, n_bytes; /* for metrics; n_rows also tells whether a second run is allowed, */
    int64_t n_rows_before;   /* with the rows of the nodes before */

    /* Consumer of the rows: visit_row, visit_total or costs is set. */
    hearth_read_row_fn *visit_row;
    hearth_read_total_fn *visit_total;
    hearth_read_totals_fn *visit_totals; /* NULL: packed totals go to visit_total */
    void *context;
    struct hearth_leg_cost *costs; /* [plan->n_legs] */

    /* The current row of packed totals: */
    const struct read_branch *branch;
    int32_t service_id, series_id;
};

/* Take a row of the statement of this kind (hearth_pg_row_fn); context: the struct read. */
enum hearth_status hearth_read_take_row(void *context, const PGresult *result,
                                        struct hearth_err *err);
enum hearth_status hearth_read_take_total(void *context, const PGresult *result,
                                          struct hearth_err *err);
enum hearth_status hearth_read_take_cost(void *context, const PGresult *result,
                                         struct hearth_err *err);
/* After the last row: ABORTED if a row of roll_state that the plan knows was not returned. */
HEARTH_MUST_CHECK enum hearth_status hearth_read_check_generations(struct read *read,
                                                                   struct hearth_err *err);
/* Fails with ABORTED and notes that names of shards are stale. */
enum hearth_status hearth_read_fail_moved(struct read *read, struct hearth_err *err);

#endif
