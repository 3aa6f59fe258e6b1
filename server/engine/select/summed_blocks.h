/*
 * summed_blocks.h -- the blocks of a plan, added up once and then taken from the cache (private to
 * the engine; sum_cache.h). So are profiles at the edges of its range that nothing is added to any
 * more, unless the plan reads only some of them, or more of each than its values.
 *
 * hearth_summed_blocks_plan takes out of a plan what the cache has. All other rows of these kinds
 * go to hearth_summed_blocks_row, which adds them up; hearth_summed_blocks_finish gives the sums,
 * found or new, to the reader, as rows of a dictionary each, and keeps the new ones. Only readers
 * that add up values for each dictionary may use this (struct hearth_reader: sums).
 *
 * Threads: not thread-safe; one attempt to read a plan.
 */
#ifndef HEARTH_ENGINE_SUMMED_BLOCKS_H
#define HEARTH_ENGINE_SUMMED_BLOCKS_H

#include "select/planned.h"
#include "select/sum_cache.h"

struct hearth_block_slot;

struct hearth_summed_blocks {
    const struct hearth_query *query;
    struct hearth_sum_cache *cache;
    bool with_profiles;              /* the plan reads nothing but values of profiles */
    struct hearth_block_slot *slots; /* a service and source each, in the plan's arena */
    size_t n_slots, cap_slots;
    struct hearth_sums empty;       /* what the sums of a slot begin as */
    struct hearth_idmap by_service; /* service and source -> index of slots */
    size_t last;                    /* slot of the latest row */
    size_t n_others;                /* rows that are not summed here */
};

/*
 * Looks for the sums of the plan in the cache, and removes from the legs what was found.
 * Release `sums` in any case. Errors: NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_summed_blocks_plan(struct hearth_summed_blocks *sums,
                                             const struct hearth_query *query,
                                             const struct hearth_selection *selection,
                                             struct hearth_read_plan *plan,
                                             struct hearth_arena *arena, struct hearth_err *err);

/*
 * Adds a row; *ret_added is false if the row is not summed here. Errors: those of
 * hearth_sums_add_row.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_summed_blocks_row(struct hearth_summed_blocks *sums,
                                            const struct hearth_read_row *row, bool *ret_added,
                                            struct hearth_err *err);

/*
 * Call it when the whole plan has been read: gives all sums to the reader, unless it knows what
 * they come to (hearth_sums_known_fn). Errors: those of the reader; NO_MEMORY; OUT_OF_RANGE.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_summed_blocks_finish(struct hearth_summed_blocks *sums,
                                               const struct hearth_reader *reader,
                                               struct hearth_err *err);

void hearth_summed_blocks_release(struct hearth_summed_blocks *sums);

#endif
