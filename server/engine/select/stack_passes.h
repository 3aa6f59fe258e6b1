/*
 * stack_passes.h -- which stacks of many dictionaries pass a filter, by stack id (private to the engine).
 *
 * Dictionaries are read when no statement runs; rows are asked about while one does. So who can say before which
 * dictionaries will come loads them first. Threads: a table belongs to one query.
 */
#ifndef HEARTH_ENGINE_STACK_PASSES_H
#define HEARTH_ENGINE_STACK_PASSES_H

#include "select/query_internal.h"
#include "select/stack_filter.h"

struct hearth_stack_pass {
    int32_t service_id, day, writer_id;
    uint32_t n_stacks;
    bool *passes; /* [n_stacks], in the query's arena */
};

struct hearth_stack_passes {
    const struct hearth_query *query;
    struct hearth_stack_mask mask;
    struct hearth_stack_pass *v;
    size_t n, cap, budgeted_bytes;
    struct hearth_idmap by_key;
    uint32_t last;
};

/* filter: borrowed, not empty */
void hearth_stack_passes_init(struct hearth_stack_passes *table, const struct hearth_query *query,
                              const struct hearth_stack_filter *filter);
void hearth_stack_passes_release(struct hearth_stack_passes *table);
/* What is loaded of a dictionary; NULL: nothing. */
const struct hearth_stack_pass *hearth_stack_passes_find(struct hearth_stack_passes *table,
                                                         int32_t service_id, int32_t day,
                                                         int32_t writer_id);
/* Load it for the stacks below bound, unless that was done. Moves what _find returned. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_passes_load(struct hearth_stack_passes *table, int32_t service_id,
                                            int32_t day, int32_t writer_id, uint32_t bound,
                                            const struct hearth_stack_pass **ret,
                                            struct hearth_err *err);

#endif
