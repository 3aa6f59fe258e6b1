/*
 * label_stats.c -- how many profiles the values of a label have, and how large they are: one pass over
 * the totals of profiles.
 *
 * Sums of values and of their squares are whole numbers, so the order of rows does not matter and
 * nothing cancels out before the division at the end.
 */
#include "grouping.h"
#include "planned.h"

#include <math.h>
#include <stdlib.h>

__extension__ typedef unsigned __int128 u128;

struct stat {
    struct hearth_label_stat out;
    u128 squares;
};

struct stats_run {
    const struct hearth_query *query;
    struct hearth_selection selection;
    struct hearth_grouping grouping; /* by the label: a group is a value */
    bool *seen;                      /* [n_hits]: it had a profile in the range */
    struct stat *stats;              /* [grouping.n] */
};

/* Every hit's value, while the index is locked. */
static enum hearth_status find_values(struct stats_run *run,
                                      const struct hearth_label_index *index,
                                      struct hearth_str label,
                                      struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->arena;
    HEARTH_TRY(hearth_grouping_make(&run->grouping, index, run->selection.hits,
                                    run->selection.n_hits, &label, 1, arena, err));
    run->seen = hearth_arena_calloc(arena, run->selection.n_hits, sizeof run->seen[0]);
    run->stats = hearth_arena_calloc(arena, run->grouping.n, sizeof run->stats[0]);
    return run->seen != NULL && run->stats != NULL ? HEARTH_OK : HEARTH_FAIL_ARENA(err, arena);
}

static enum hearth_status select_hits(struct stats_run *run,
                                      struct hearth_str profile_type,
                                      struct hearth_str selector,
                                      struct hearth_str label,
                                      struct hearth_err *err)
{
    const struct hearth_query *query = run->query;
    struct hearth_range range;
    HEARTH_TRY(hearth_query_range(query, &range, err));
    const struct hearth_label_index *index;
    HEARTH_TRY(
        hearth_store_index_lock(query->engine->store, query->tenant, query->cancel, &index, err));
    enum hearth_status status = hearth_selection_make(
        query, profile_type, selector, index, range.from_ns, range.to_ns, &run->selection, err);
    if (range.empty) {
        run->selection.n_hits = 0;
    }
    if (status == HEARTH_OK) {
        status = find_values(run, index, label, err);
    }
    hearth_store_index_unlock(query->engine->store, index);
    run->selection.totals = true;
    return status;
}

/* ---- totals ---- */

static void forget(void *context)
{
    struct stats_run *run = context;
    if (run->selection.n_hits > 0) {
        memset(run->stats, 0, run->grouping.n * sizeof run->stats[0]);
        memset(run->seen, 0, run->selection.n_hits * sizeof run->seen[0]);
    }
}

static enum hearth_status
visit(void *context, const struct hearth_read_total *total, struct hearth_err *err)
{
    struct stats_run *run = context;
    uint32_t hit = hearth_grouping_hit(&run->grouping, total->series_id, total->column);
    if (hit == HEARTH_IDMAP_NONE) {
        return HEARTH_OK;
    }
    struct stat *stat = &run->stats[run->grouping.of_hit[hit]];
    struct hearth_label_stat *out = &stat->out;
    int64_t value = total->total;
    u128 size = value < 0 ? -(u128)value : (u128)value;
    if (__builtin_add_overflow(out->sum, value, &out->sum) ||
        __builtin_add_overflow(stat->squares, size * size, &stat->squares)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                           "a sum over the profiles of a label's value is too large");
    }
    out->min = out->n_profiles == 0 || value < out->min ? value : out->min;
    out->max = out->n_profiles == 0 || value > out->max ? value : out->max;
    out->n_profiles++;
    out->n_series += !run->seen[hit];
    run->seen[hit] = true;
    return HEARTH_OK;
}

/*
 * n times the variance is the sum of squares less sum * sum / n: taken apart into whole numbers, of which
 * the difference is exact, and a rest below 1.
 */
static double deviation_of(const struct stat *stat)
{
    u128 n = (u128)stat->out.n_profiles;
    u128 sum = stat->out.sum < 0 ? -(u128)stat->out.sum : (u128)stat->out.sum;
    u128 square = sum * sum;
    u128 whole = stat->squares - square / n;
    double rest = (double)(square % n) / (double)n;
    double variance = ((double)whole - rest) / (double)n;
    return variance > 0 ? sqrt(variance) : 0;
}

static int by_sum_then_value(const void *a, const void *b)
{
    const struct hearth_label_stat *x = a, *y = b;
    if (x->sum != y->sum) {
        return x->sum > y->sum ? -1 : 1;
    }
    return hearth_str_cmp(x->value, y->value);
}

static enum hearth_status write_stats(const struct stats_run *run,
                                      int64_t limit,
                                      struct hearth_label_stat **ret,
                                      size_t *ret_n,
                                      int64_t *ret_n_all,
                                      struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->arena;
    struct hearth_label_stat *stats = hearth_arena_array(arena, run->grouping.n, sizeof stats[0]);
    if (stats == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    size_t n = 0;
    for (size_t i = 0; i < run->grouping.n; i++) {
        const struct stat *stat = &run->stats[i];
        if (stat->out.n_profiles > 0) {
            const struct hearth_labels *labels = &run->grouping.labels[i];
            stats[n] = stat->out;
            stats[n].value = labels->n > 0 ? labels->v[0].value : HEARTH_STR("");
            stats[n].mean = (double)stat->out.sum / (double)stat->out.n_profiles;
            stats[n++].deviation = deviation_of(stat);
        }
    }
    if (n > 0) {
        qsort(stats, n, sizeof stats[0], by_sum_then_value);
    }
    *ret = stats;
    *ret_n_all = (int64_t)n;
    *ret_n = limit > 0 && n > (uint64_t)limit ? (size_t)limit : n;
    return HEARTH_OK;
}

enum hearth_status hearth_query_label_stats(const struct hearth_query *query,
                                            struct hearth_str profile_type,
                                            struct hearth_str selector,
                                            struct hearth_str label,
                                            int64_t limit,
                                            struct hearth_label_stat **ret,
                                            size_t *ret_n,
                                            int64_t *ret_n_all,
                                            struct hearth_err *err)
{
    if (label.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "label is required");
    }
    if (limit < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "limit is %lld; 0 means all",
                           (long long)limit);
    }
    struct stats_run run = {.query = query};
    const struct hearth_reader reader = {.reset = forget, .total = visit, .context = &run};
    enum hearth_status status = select_hits(&run, profile_type, selector, label, err);
    if (status == HEARTH_OK) {
        status = hearth_selection_read(query, &run.selection, &reader, err);
    }
    if (status == HEARTH_OK) {
        status = write_stats(&run, limit, ret, ret_n, ret_n_all, err);
    }
    hearth_grouping_release(&run.grouping);
    return status;
}
