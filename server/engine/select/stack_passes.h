/*
 * stack_passes.h -- which stacks of many dictionaries pass a filter, by stack id (private to the
 * engine).
 *
 * Dictionaries can be loaded only while no statement runs, but rows are checked while one does. A
 * caller that knows beforehand which dictionaries will occur loads them first.
 *
 * Threads: a table belongs to one query.
 */
#ifndef HEARTH_ENGINE_STACK_PASSES_H
#define HEARTH_ENGINE_STACK_PASSES_H

#include "select/query_internal.h"
#include "select/row_mask.h"
#include "select/stack_filter.h"

/* Names a dictionary. */
struct hearth_dict_name {
    int32_t service_id, day, writer_id;
};

struct hearth_stack_pass {
    int32_t service_id, day, writer_id;
    uint32_t n_stacks;
    bool *passes; /* [n_stacks], in the query's arena */
};

struct hearth_stack_passes {
    const struct hearth_query *query;
    struct hearth_stack_mask mask;
    struct hearth_row_mask rows;
    struct hearth_stack_pass *v;
    size_t n, cap, budgeted_bytes;
    struct hearth_idmap by_key;
    uint32_t last; /* index of the latest find */
};

/*
 * filter is borrowed; if it is empty, every stack passes. Release the table in any case. Errors:
 * those of hearth_row_mask_init.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_passes_init(struct hearth_stack_passes *table,
                                            const struct hearth_query *query,
                                            const struct hearth_stack_filter *filter,
                                            struct hearth_err *err);
void hearth_stack_passes_release(struct hearth_stack_passes *table);
/* The loaded verdicts of a dictionary; NULL if it is not loaded. */
const struct hearth_stack_pass *hearth_stack_passes_find(struct hearth_stack_passes *table,
                                                         int32_t service_id, int32_t day,
                                                         int32_t writer_id);
/*
 * Loads a dictionary for the stacks below bound, unless that is done. Invalidates results of _find.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_passes_load(struct hearth_stack_passes *table,
                                            struct hearth_dict_name name, uint32_t bound,
                                            const struct hearth_stack_pass **ret,
                                            struct hearth_err *err);

#endif
