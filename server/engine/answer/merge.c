/*
 * merge.c -- what a merge selects, and its sums by dictionary (select/sums.c).
 */
#include "select/planned.h"
#include "select/stack_filter.h"
#include "select/thread_filter.h"

#include <assert.h>

struct merge_read {
    struct hearth_sums *sums;
    hearth_sums_known_fn *known; /* may be NULL */
    void *known_context;
};

static enum hearth_status add_merge_row(void *context, const struct hearth_read_row *row,
                                        struct hearth_err *err)
{
    const struct merge_read *read = context;
    size_t dict;
    return hearth_sums_add_row(read->sums, row, &dict, err);
}

static void reset_sums(void *context)
{
    const struct merge_read *read = context;
    hearth_sums_forget(read->sums);
}

static bool ask_if_known(void *context, struct hearth_hash128 key)
{
    const struct merge_read *read = context;
    return read->known(read->known_context, key);
}

enum hearth_status hearth_merge_select(const struct hearth_query *query,
                                       const struct hearth_merge_spec *spec,
                                       struct hearth_selection *ret, struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret != NULL);

    *ret = (struct hearth_selection){0};
    struct hearth_range range;

    HEARTH_TRY(hearth_stack_filter_check(&spec->stacks, query->call.arena, err));
    HEARTH_TRY(hearth_query_range(query, &range, err));
    const struct hearth_call_index *index;
    const struct hearth_series_choice choice = {spec->profile_type, spec->selector, range.from_ns,
                                                range.to_ns};
    HEARTH_TRY(hearth_call_index_lock(&query->call, &index, err));
    enum hearth_status status = hearth_selection_make(query, &choice, index, ret, err);
    hearth_call_index_unlock(index);
    if (range.empty) {
        ret->n_hits = 0;
    }

    HEARTH_TRY(status);
    HEARTH_TRY(hearth_selection_match(query, &spec->profiles, ret, err));
    hearth_selection_read_threads(&spec->stacks, ret);
    return HEARTH_OK;
}

/* Reads the selection of a merge into read->sums. */
static enum hearth_status read_merge(const struct hearth_query *query,
                                     const struct hearth_merge_spec *spec, struct merge_read *read,
                                     struct hearth_err *err)
{
    struct hearth_sums *sums = read->sums;
    struct hearth_selection selection;

    HEARTH_TRY(hearth_merge_select(query, spec, &selection, err));
    sums->match = selection.match;
    if (spec->mean && selection.gauge) {
        return hearth_mean_sum(query, &selection, sums, err);
    }

    const struct hearth_reader reader = {.reset = reset_sums,
                                         .row = add_merge_row,
                                         .context = read,
                                         .sums = true,
                                         .known = read->known == NULL ? NULL : ask_if_known};
    return hearth_selection_read(query, &selection, &reader, err);
}

enum hearth_status hearth_query_sum(const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec, struct hearth_sums *sums,
                                    struct hearth_err *err)
{
    return hearth_query_sum_unless_known(query, spec, NULL, NULL, sums, err);
}

enum hearth_status hearth_query_sum_unless_known(const struct hearth_query *query,
                                                 const struct hearth_merge_spec *spec,
                                                 hearth_sums_known_fn *known, void *context,
                                                 struct hearth_sums *sums, struct hearth_err *err)
{
    assert(query != NULL && spec != NULL);

    struct merge_read read = {.sums = sums, .known = known, .known_context = context};
    struct hearth_thread_filter threads;

    hearth_sums_init(sums, query, NULL);
    sums->threads = &threads;
    enum hearth_status status =
        hearth_thread_filter_init(&threads, &spec->stacks, query->call.arena, err);
    if (status == HEARTH_OK) {
        status = read_merge(query, spec, &read, err);
    }

    sums->threads = NULL;
    hearth_thread_filter_release(&threads);
    if (status == HEARTH_OK) {
        hearth_sums_sort(sums);
    }

    return status;
}
