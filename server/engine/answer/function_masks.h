/*
 * function_masks.h -- which of some functions the stacks of a dictionary contain (private to the
 * engine).
 *
 * Threads: a table belongs to one query.
 */
#ifndef HEARTH_ENGINE_FUNCTION_MASKS_H
#define HEARTH_ENGINE_FUNCTION_MASKS_H

#include "hearth/store/store.h"

#include "select/query_internal.h"
#include "select/row_mask.h"

#define HEARTH_MAX_FUNCTIONS 64u /* bits of a mask */

struct hearth_function_mask {
    int32_t service_id, day, writer_id;
    uint32_t n_stacks;
    uint64_t *total; /* [n_stacks]: bit f is set if function f is in the stack */
    uint8_t *self;   /* [n_stacks]: the leaf's function; HEARTH_MAX_FUNCTIONS: another one */
};

struct hearth_function_masks {
    const struct hearth_query *query;
    const struct hearth_str *functions; /* distinct, at most HEARTH_MAX_FUNCTIONS */
    size_t n_functions;
    /* Stacks that do not pass count as without functions. */
    const struct hearth_stack_filter *stacks;
    struct hearth_row_mask rows; /* of the same filter */
    struct hearth_function_mask *masks;
    size_t n, cap;
    struct hearth_idmap by_key;
};

/*
 * Prepares the filter of a table whose other members are set. Release the table in any case.
 * Errors: those of hearth_row_mask_init.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_function_masks_init(struct hearth_function_masks *table,
                                              struct hearth_err *err);
void hearth_function_masks_release(struct hearth_function_masks *table);
/* The mask of a row's dictionary, for the stacks below bound; made once, in the query's arena. */
HEARTH_MUST_CHECK
enum hearth_status hearth_function_masks_of(struct hearth_function_masks *table,
                                            const struct hearth_read_row *row, uint32_t bound,
                                            const struct hearth_function_mask **ret,
                                            struct hearth_err *err);

#endif
