/*
 * absent_blocks.h -- which blocks of a service are absent, as roll_state says it (private to the
 * store; docs/decisions/0046-sparse-data.md).
 *
 * Threads: pure functions. Ownership: arrays in the given arena.
 */
#ifndef HEARTH_STORE_ABSENT_BLOCKS_H
#define HEARTH_STORE_ABSENT_BLOCKS_H

#include "hearth/store/read.h"

#include "pg/pg.h"

/*
 * The fourth number of a range. A server that does not know the second flag would sum days without
 * their absent hours, and drop profiles before these are written: it refuses the service instead.
 */
#define HEARTH_ABSENT_WHOLE INT64_C(1) /* those of the whole service are absent, too */
#define HEARTH_ABSENT_LONG  INT64_C(2) /* hours or days: written before profiles are dropped */

int64_t hearth_absent_blocks_flags(const struct hearth_absent_blocks *range);

/*
 * Set absent and n_absent of the state from a field with roll_state.absent. CORRUPT: ranges that
 * are out of order, too many, or of blocks of another length than 10 minutes, an hour or a day.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_absent_blocks_take(const PGresult *result, int row, int field, struct hearth_arena *arena,
                          struct hearth_service_state *ret, struct hearth_err *err);

#endif
