/*
 * roll_sparse.h -- blocks that are left out because they would sum few profiles (private to the
 * store; docs/decisions/0046-sparse-data.md, 0059-sparse-hours.md).
 *
 * Which ones are absent is written in roll_state in the transaction that builds, and read by each
 * plan. Totals are never left out, but in an hour with few profiles, series share rows of them;
 * blocks of the whole service are left out only where those of its series are.
 * Blocks of hours and days may be kept longer than profiles: roll_fill.c writes them before these
 * are dropped.
 *
 * Threads: a set belongs to its transaction.
 */
#ifndef HEARTH_STORE_ROLL_SPARSE_H
#define HEARTH_STORE_ROLL_SPARSE_H

#include "hearth/store/read.h"

#include "pg/pg.h"

struct hearth_roll;

/* The ranges of roll_state.absent. */
struct hearth_absent_set {
    struct hearth_absent_blocks ranges[HEARTH_MAX_ABSENT]; /* in the order of read.h */
    size_t n;
};

/* Read roll_state.absent of a service. CORRUPT: it is damaged. */
HEARTH_MUST_CHECK enum hearth_status hearth_absent_set_take(const PGresult *result, int row,
                                                            int field,
                                                            struct hearth_absent_set *ret,
                                                            struct hearth_err *err);
/* Add the set as a parameter of type int8[]. The arena of params holds it. */
HEARTH_MUST_CHECK bool hearth_absent_set_param(struct hearth_pg_params *params,
                                               struct hearth_arena *arena,
                                               const struct hearth_absent_set *set);

/*
 * Return whether blocks of this length are absent somewhere in [from_ns, to_ns): those of series,
 * or those of the whole service.
 */
bool hearth_absent_set_meets(const struct hearth_absent_set *set, int64_t length_ns, bool whole,
                             int64_t from_ns, int64_t to_ns);

/* Return the first time before built_to_ns at which an hour or a day is absent, or INT64_MAX. */
int64_t hearth_absent_set_first_long(const struct hearth_absent_set *set, int64_t built_to_ns);

/* Cut what is before end_ns, the end of a day, off the ranges of hours and days. */
void hearth_absent_set_cut_long(struct hearth_absent_set *set, int64_t end_ns);

/*
 * In a transaction, before anything is decided: bring roll->absent up to date. Ranges from
 * built_to_ns on, which are built again, and ranges that retention has passed are removed. Errors
 * of the database.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_sparse_begin(struct hearth_roll *roll, int64_t built_to_ns, struct hearth_err *err);

/*
 * Decide by stored profiles which blocks are absent in a piece of an hour that is about to be
 * built: those of 10 minutes, and those of the hour if the piece is all of it. Then
 * roll->groups_totals is decided, too; otherwise it becomes false. Errors of the database;
 * NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_sparse_decide(struct hearth_roll *roll, int64_t from_ns,
                                                          int64_t to_ns, struct hearth_err *err);

/*
 * Decide by stored totals whether the blocks of an hour, or of a day, are absent that is about to
 * be summed; of an hour also roll->groups_totals. Errors of the database; NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_sparse_decide_long(struct hearth_roll *roll,
                                                               int64_t length_ns, int64_t t0_ns,
                                                               struct hearth_err *err);

#endif
