/*
 * thread_filter.h -- the conditions of a filter on threads, applied to the samples of rows (private
 * to the engine; filter.h: struct hearth_row_filter).
 *
 * A row has the full value of each stack, and its attributes name the threads of some samples. The
 * rest of the value has no thread. So if samples without a thread pass, the value of a row is that
 * of its stacks less the samples that do not pass; otherwise it is the sum of the samples that do.
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_ENGINE_THREAD_FILTER_H
#define HEARTH_ENGINE_THREAD_FILTER_H

#include "select/planned.h"
#include "select/row_rules.h"

#define HEARTH_THREAD_NAME_BYTES 24

struct hearth_thread_filter {
    struct hearth_row_rules rules;
    bool is_empty;    /* every sample passes */
    bool passes_none; /* samples without a thread pass */
};

/* The filter is borrowed. Release the result in any case. Errors as of hearth_row_rules_init. */
HEARTH_MUST_CHECK
enum hearth_status hearth_thread_filter_init(struct hearth_thread_filter *threads,
                                             const struct hearth_stack_filter *filter,
                                             const struct hearth_arena *like,
                                             struct hearth_err *err);
void hearth_thread_filter_release(struct hearth_thread_filter *threads);

/* The name of a sample's thread, or its id, written to out; empty if it has none. */
struct hearth_str hearth_thread_name(const struct hearth_sample_attrs *attrs,
                                     char out[HEARTH_THREAD_NAME_BYTES]);
/* Whether a sample passes. */
bool hearth_thread_filter_passes(struct hearth_thread_filter *threads,
                                 const struct hearth_sample_attrs *attrs);

/* Makes a selection read the attributes that a filter with conditions on threads needs. */
void hearth_selection_read_threads(const struct hearth_stack_filter *filter,
                                   struct hearth_selection *selection);

/*
 * Adds the values of a row's stacks to acc[bound]: like hearth_columns_merge, but only those of
 * samples that pass. threads may be NULL: all pass. `like` has the limits for memory. Errors:
 * CORRUPT, OUT_OF_RANGE, NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_row_merge(struct hearth_thread_filter *threads,
                                    const struct hearth_read_row *row,
                                    const struct hearth_arena *like, int64_t *acc, uint32_t bound,
                                    struct hearth_err *err);

#endif
