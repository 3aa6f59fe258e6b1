/*
 * read_make.h -- a read's statement while it is made: read_sql.c decides on its branches and
 * parameters, read_text.c writes each branch (private to the room).
 *
 * What is refused memory is noted in the statement's buffer.
 */
#ifndef HEARTH_STORE_READ_MAKE_H
#define HEARTH_STORE_READ_MAKE_H

#include "catalog/catalog.h"
#include "read/read_internal.h"

#define READ_MAX_COLUMNS     HEARTH_SERIES_MAX_TYPES
#define READ_TIMES_OF_BRANCH 4 /* at most */

/* Slices of the shared arrays, counted from 1 as in SQL; counts may be 0. */
struct read_slice {
    size_t first_run, n_runs, first_series, n_series;
};

/* A list of hits and its slices; legs of one group share a list. */
struct read_selection {
    const struct hearth_series_hit *hits;
    size_t n_hits;
    bool in_pieces;                              /* a leg with these hits may be read in pieces */
    struct read_slice columns[READ_MAX_COLUMNS]; /* hits of one column */
    struct read_runs pieces[READ_MAX_COLUMNS];   /* the runs of `columns`, if in_pieces */
    struct read_slice all;                       /* hits of all columns */
};

struct read_maker {
    struct read_statement *out;
    const struct hearth_read_plan *plan;
    struct hearth_arena *arena;
    bool is_distributed;
    const struct hearth_node_part *part; /* NULL: data tables are named */
    const struct read_leaves *leaves;    /* NULL: every branch lists its series */
    bool lists_series;                   /* a branch uses $4 */
    struct read_selection *selections;
    size_t n_selections;
    size_t *selection_of; /* [plan->n_legs] */

    /* Parameters $1 to $4: */
    int32_t *run_service, *run_first, *run_last, *series;
    size_t n_runs, n_series;
    size_t cap_runs; /* of each of the four arrays */

    /* Parameters $6 to $8: */
    int32_t *instant_service, *instant_series;
    int64_t *instants;
    size_t n_instants;

    /* The last parameter; NULL: times are literals. */
    int64_t *times;
    size_t n_times;
};

/* Append the table of a leg. */
void hearth_read_append_table(const struct read_maker *m, struct hearth_buf *sql,
                              const struct hearth_read_leg *leg);

/* Append the first branches: the first of all defines the names and types of all fields. */
void hearth_read_append_generations(struct read_maker *m);

/*
 * Append a branch: the series of the slice, which has some. Instants and times that it compares
 * with are added to the parameters.
 */
void hearth_read_append_branch(struct read_maker *m, const struct read_branch *branch,
                               struct read_slice slice);

#endif
