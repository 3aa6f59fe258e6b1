/*
 * roll_states.h -- rows of roll_state as parameters of statements over the catalogue (private to
 * the store).
 *
 * roll_state is data, the hours of services (series_hour) are catalogue, and no statement names
 * both (docs/decisions/0041-two-sets-of-tables.md). So the rows are read first; a statement over
 * the catalogue then gets them as a table. They may change in between (a rebuild lowers built_to):
 * a statement that writes compares them again.
 *
 * Threads: safe; the connection belongs to the caller.
 */
#ifndef HEARTH_STORE_ROLL_STATES_H
#define HEARTH_STORE_ROLL_STATES_H

#include "pg/pg.h"

/* Times in nanoseconds, as in roll_state. */
struct hearth_roll_state {
    int32_t service_id;
    int64_t watermark_ns, built_to_ns, compacted_to_ns;
};

/* The rows, which are parameters $1 to $4, as table r. */
#define HEARTH_SQL_STATES_R                                  \
    "unnest($1::int4[], $2::int8[], $3::int8[], $4::int8[])" \
    " r (service_id, watermark, built_to, compacted_to)"

/*
 * Return the rows that fulfil a condition ("true": all) in the arena. ret_fault may be NULL.
 * NO_MEMORY; errors of the statement.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_roll_states_read(struct hearth_pg *pg, const char *condition, struct hearth_arena *arena,
                        struct hearth_roll_state **ret, size_t *ret_n,
                        enum hearth_pg_fault *ret_fault, struct hearth_err *err);

/*
 * Run a query that returns the columns of struct hearth_roll_state, with the n rows as $1 to $4,
 * and return its rows in the arena.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_roll_states_choose(struct hearth_pg *pg, const char *sql,
                          const struct hearth_roll_state *states, size_t n,
                          struct hearth_arena *arena, struct hearth_roll_state **ret, size_t *ret_n,
                          struct hearth_err *err);

/* Begin the parameters of a statement with the n rows. */
void hearth_roll_states_param(struct hearth_pg_params *params, struct hearth_arena *arena,
                              const struct hearth_roll_state *states, size_t n);

/* Return whether a query has rows; it gets all rows of roll_state as $1 to $4. */
HEARTH_MUST_CHECK enum hearth_status hearth_roll_states_match(struct hearth_pg *pg, const char *sql,
                                                              bool *ret, struct hearth_err *err);

#endif
