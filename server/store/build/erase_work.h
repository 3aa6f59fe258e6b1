/*
 * erase_work.h -- the tombstone whose rows are being removed (private to erase_*.c).
 *
 * Threads: confined to the builder's.
 */
#ifndef HEARTH_STORE_ERASE_WORK_H
#define HEARTH_STORE_ERASE_WORK_H

#include "build/builder.h"

struct hearth_erase_work {
    struct hearth_builder *builder;
    struct hearth_arena arena; /* of one call of the step */
    int32_t service_id;        /* 0: there is no tombstone */
    int64_t erasure_id;
    int64_t from_ns, to_ns; /* both included */
    int32_t *series_ids;    /* ascending */
    size_t n_series;
    int64_t compacted_to_ns, built_to_ns; /* of the service, when the call began */
    int64_t reach_ns;   /* a day's begin: from here on blocks can be built again from profiles */
    bool reach_checked; /* reach_ns takes into account which profiles are stored (reach.h) */
};

/* ---- erase_rows.c ---- */

/* Return whether the series is one of the tombstone's. */
bool hearth_erase_has_series(const struct hearth_erase_work *work, int32_t series_id);

/* Run a statement with $1 = the series of the tombstone. ret_result may be NULL. */
HEARTH_MUST_CHECK enum hearth_status hearth_erase_exec(struct hearth_erase_work *work,
                                                       const char *sql, PGresult **ret_result,
                                                       struct hearth_err *err);

/* In a transaction: add to the number of removed rows in the log of deletions. */
HEARTH_MUST_CHECK enum hearth_status
hearth_erase_count_rows(struct hearth_erase_work *work, int64_t n_rows, struct hearth_err *err);

/* ---- the other files ---- */

/*
 * Write the next segments that hold the tombstone's rows again without them, in a transaction.
 * *ret_done: no segment is left.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_erase_segments(struct hearth_erase_work *work,
                                                           bool *ret_done, struct hearth_err *err);

/*
 * In a transaction: take the series out of the blocks and totals of a day whose profiles are
 * deleted. Blocks of a series are deleted as a whole when they touch the range; blocks of the whole
 * service are summed again from those of its other series. *part: in, the first part to write; out,
 * the last one used. *ret_wider: some deleted blocks reached beyond the range.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_erase_blocks_of_day(struct hearth_erase_work *work,
                                                                int32_t day, int64_t *part,
                                                                bool *ret_wider,
                                                                struct hearth_err *err);

#endif
