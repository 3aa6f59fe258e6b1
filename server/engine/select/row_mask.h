/*
 * row_mask.h -- which stacks of a dictionary pass a filter's conditions on rows of tables, other
 * than threads (private to the engine; filter.h: struct hearth_row_filter).
 *
 * A frame is judged once per function, mapping or line of a dictionary, and a location once; a
 * stack costs one look-up for each of its locations. Names that several dictionaries have are
 * judged once.
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_ENGINE_ROW_MASK_H
#define HEARTH_ENGINE_ROW_MASK_H

#include "select/frame_parts.h"
#include "select/query_internal.h"
#include "select/row_rules.h"

struct hearth_row_mask {
    struct hearth_row_rules rules;
    struct hearth_arena scratch; /* of the latest dictionary */
};

/* The filter is borrowed. Release the mask in any case. Errors: those of hearth_row_rules_init. */
HEARTH_MUST_CHECK
enum hearth_status hearth_row_mask_init(struct hearth_row_mask *mask,
                                        const struct hearth_stack_filter *filter,
                                        const struct hearth_arena *like, struct hearth_err *err);
void hearth_row_mask_release(struct hearth_row_mask *mask);

/*
 * (*ret_passes)[stack] for the first n stacks of a dictionary, valid until the next call; NULL if
 * the filter has no such conditions. With values, stacks whose values[stack] is 0 are not judged
 * and pass; values may be NULL. Errors: NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_row_mask_stacks(struct hearth_row_mask *mask,
                                          const struct hearth_dict *dict, uint32_t n,
                                          const int64_t *values, const bool **ret_passes,
                                          struct hearth_err *err);
/* Sets the sums of stacks that do not pass to 0. */
HEARTH_MUST_CHECK
enum hearth_status hearth_row_mask_clear(struct hearth_row_mask *mask,
                                         const struct hearth_dict *dict,
                                         const struct hearth_dict_sums *sums,
                                         struct hearth_err *err);

#endif
