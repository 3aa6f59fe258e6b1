/* thread_filter.c -- values of rows without the samples of other threads (thread_filter.h). */
#include "select/thread_filter.h"

#include "hearth/model/columns.h"

#include <assert.h>
#include <stdio.h>

enum hearth_status hearth_thread_filter_init(struct hearth_thread_filter *threads,
                                             const struct hearth_stack_filter *filter,
                                             const struct hearth_arena *like,
                                             struct hearth_err *err)
{
    HEARTH_TRY(hearth_row_rules_init(&threads->rules, filter, true, like, err));
    threads->is_empty = threads->rules.n == 0;
    threads->passes_none = hearth_row_flags_pass(
        &threads->rules,
        hearth_row_rules_flags(&threads->rules, HEARTH_TOP_THREAD, HEARTH_STR("")));
    return HEARTH_OK;
}

void hearth_thread_filter_release(struct hearth_thread_filter *threads)
{
    hearth_row_rules_release(&threads->rules);
}

struct hearth_str hearth_thread_name(const struct hearth_sample_attrs *attrs,
                                     char out[HEARTH_THREAD_NAME_BYTES])
{
    uint64_t id = attrs->thread_native_id != 0 ? attrs->thread_native_id : attrs->thread_id;
    if (attrs->thread_name.n > 0 || id == 0) {
        return attrs->thread_name;
    }

    int n = snprintf(out, HEARTH_THREAD_NAME_BYTES, "%llu", (unsigned long long)id);
    return hearth_str_n(out, (size_t)n);
}

bool hearth_thread_filter_passes(struct hearth_thread_filter *threads,
                                 const struct hearth_sample_attrs *attrs)
{
    char out[HEARTH_THREAD_NAME_BYTES];
    uint64_t flags =
        hearth_row_rules_flags(&threads->rules, HEARTH_TOP_THREAD, hearth_thread_name(attrs, out));
    return hearth_row_flags_pass(&threads->rules, flags);
}

void hearth_selection_read_threads(const struct hearth_stack_filter *filter,
                                   struct hearth_selection *selection)
{
    if (hearth_stack_filter_has_rows(filter, true)) {
        selection->rows = true;
        if (selection->detail.attrs == HEARTH_ATTRS_NOT_READ) {
            selection->detail.attrs = HEARTH_ATTRS_BESIDE;
        }
    }
}

/* Adds samples that pass, or subtracts those that do not. */
static enum hearth_status merge_row_samples(struct hearth_thread_filter *threads,
                                            const struct hearth_read_row *row,
                                            struct hearth_arena *scratch, int64_t *acc,
                                            uint32_t bound, struct hearth_err *err)
{
    struct hearth_attr_sample *samples;
    size_t n;

    HEARTH_TRY(hearth_row_samples(row, scratch, &samples, &n, err));
    for (size_t i = 0; i < n; i++) {
        int64_t value = samples[i].values[row->column], sum;
        if (hearth_thread_filter_passes(threads, &samples[i].attrs) == threads->passes_none) {
            continue;
        }
        if (value < 0 || samples[i].stack_id >= bound) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT,
                               "profiles of series %d: damaged sample attributes", row->series_id);
        }
        bool overflow = threads->passes_none
                            ? __builtin_sub_overflow(acc[samples[i].stack_id], value, &sum)
                            : __builtin_add_overflow(acc[samples[i].stack_id], value, &sum);
        if (overflow) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum over samples exceeds 64 bits");
        }
        acc[samples[i].stack_id] = sum;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_row_merge(struct hearth_thread_filter *threads,
                                    const struct hearth_read_row *row,
                                    const struct hearth_arena *like, int64_t *acc, uint32_t bound,
                                    struct hearth_err *err)
{
    assert(row != NULL && like != NULL && acc != NULL);

    bool filtered = threads != NULL && !threads->is_empty;
    if (!filtered || threads->passes_none) {
        HEARTH_TRY(
            hearth_columns_merge(row->ids, row->val, row->val0, row->is_column0, acc, bound, err));
    }

    if (!filtered || row->attrs.n == 0) {
        return HEARTH_OK;
    }

    struct hearth_arena scratch;
    hearth_arena_init_like(&scratch, like);
    enum hearth_status status = merge_row_samples(threads, row, &scratch, acc, bound, err);
    hearth_arena_release(&scratch);
    return status;
}
