/*
 * erase_work.h -- a tombstone that is being worked off (private to erase_step.c and erase_blocks.c).
 *
 * Threads: the builder's.
 */
#ifndef HEARTH_STORE_ERASE_WORK_H
#define HEARTH_STORE_ERASE_WORK_H

#include "build/builder.h"

struct hearth_erase_work {
    struct hearth_builder *builder;
    struct hearth_arena arena; /* of the call */
    int32_t service_id;
    int64_t erasure_id, from_ns, to_ns; /* included */
    int32_t *series_ids;                /* ascending */
    size_t n_series;
    int64_t compacted_to_ns, built_to_ns;
    int64_t reach_ns; /* a day's begin: from here on blocks can be built again from profiles */
    bool reach_checked;
};

/* Among the tombstone's series. */
bool hearth_erase_has_series(const struct hearth_erase_work *work, int32_t series_id);

/*
 * In a transaction: take the series out of the blocks and totals of a day whose profiles are gone.
 * Blocks of a series go whole when they touch the range; those of the whole service are summed again
 * from what is left. *ret_part is the last part used. *ret_wider: some reached beyond the range.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_erase_blocks_of_day(struct hearth_erase_work *work,
                                                                int32_t day, int64_t part,
                                                                int64_t *ret_part, bool *ret_wider,
                                                                struct hearth_err *err);

#endif
