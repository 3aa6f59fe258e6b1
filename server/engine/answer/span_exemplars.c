/*
 * span_exemplars.c -- the span that cost most behind each point of a time series.
 *
 * What a span cost is the sum of its samples in one row, as in heatmaps of spans: a span that goes on over several profiles
 * has a value in each. Totals do not know spans, so the rows are read after the points are known; where
 * only sums are left there are points without exemplars.
 */
#include "hearth/model/sample_attrs.h"

#include "select/singles.h"

/* The largest of a point so far. */
struct winner {
    struct hearth_single single; /* value is the span's */
    uint64_t span_id;            /* 0: nobody */
    struct hearth_trace_id trace;
};

struct exemplar_run {
    const struct hearth_query *query;
    struct hearth_grouping *grouping;
    const struct hearth_buckets *buckets;
    const size_t *series_of_group;
    struct hearth_timeseries *series;
    size_t n_series;
    struct winner *winners; /* of all points, series by series */
    size_t *first;          /* [n_series]: of its points */
    size_t n_points;
    struct hearth_arena scratch; /* of a row */
};

static void forget(void *context)
{
    struct exemplar_run *run = context;
    memset(run->winners, 0, run->n_points * sizeof run->winners[0]);
}

/* Where the point of a bucket is; NULL: there is none. */
static struct winner *winner_of(struct exemplar_run *run, uint32_t group, int64_t ts_ns)
{
    int64_t b = hearth_bucket_number(run->buckets, ts_ns);
    size_t s = run->series_of_group[group];
    if (b >= run->buckets->n || s >= run->n_series) {
        return NULL;
    }
    int64_t ts_ms = run->buckets->start_ms + b * run->buckets->step_ms;
    const struct hearth_timeseries *series = &run->series[s];
    size_t low = 0, high = series->n_points;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (series->points[mid].ts_ms < ts_ms) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    bool is_there = low < series->n_points && series->points[low].ts_ms == ts_ms;
    return is_there ? &run->winners[run->first[s] + low] : NULL;
}

/* Rows come in no particular order, which must not show. */
static bool is_larger(const struct winner *a, const struct winner *b)
{
    const struct hearth_single *x = &a->single, *y = &b->single;
    if (b->span_id == 0 || x->value != y->value) {
        return b->span_id == 0 || x->value > y->value;
    }
    if (x->ts_ns != y->ts_ns) {
        return x->ts_ns < y->ts_ns;
    }
    if (a->span_id != b->span_id) {
        return a->span_id < b->span_id;
    }
    if (x->writer_id != y->writer_id) {
        return x->writer_id < y->writer_id;
    }
    return x->profile_no != y->profile_no ? x->profile_no < y->profile_no : x->hit < y->hit;
}

static bool is_later_trace(struct hearth_trace_id a, struct hearth_trace_id b)
{
    return a.hi != b.hi ? a.hi > b.hi : a.lo > b.lo;
}

/* What each span of a row cost; of several traces the largest, so that it is always the same one. */
static enum hearth_status take_spans(struct exemplar_run *run,
                                     const struct hearth_attr_columns *columns,
                                     const struct winner *row, struct winner *best,
                                     struct hearth_err *err)
{
    const struct hearth_attr_column *spans = &columns->of[HEARTH_ATTR_SPAN_ID];
    const struct hearth_attr_column *traces = &columns->of[HEARTH_ATTR_TRACE_ID];
    if (spans->values == NULL) {
        return HEARTH_OK;
    }
    struct winner *sums = hearth_arena_calloc(&run->scratch, spans->n_values, sizeof sums[0]);
    if (sums == NULL) {
        return HEARTH_FAIL_ARENA(err, &run->scratch);
    }
    for (size_t i = 0; i < columns->n; i++) {
        if (spans->index[i] == 0) {
            continue;
        }
        struct winner *sum = &sums[spans->index[i] - 1];
        int64_t *value = &sum->single.value;
        if (columns->values[i] < 0 || __builtin_add_overflow(*value, columns->values[i], value)) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT, "damaged sample attributes of a profile");
        }
        if (traces->values != NULL && traces->index[i] != 0) {
            const struct hearth_attr_value *id = &traces->values[traces->index[i] - 1];
            struct hearth_trace_id trace = {id->hi, id->lo};
            sum->trace = is_later_trace(trace, sum->trace) ? trace : sum->trace;
        }
    }
    for (size_t i = 0; i < spans->n_values; i++) {
        struct winner one = *row;
        one.single.value = sums[i].single.value;
        one.span_id = spans->values[i].lo;
        one.trace = sums[i].trace;
        if (one.single.value > 0 && one.span_id != 0 && is_larger(&one, best)) {
            *best = one;
        }
    }
    return HEARTH_OK;
}

static enum hearth_status take_row(void *context, const struct hearth_read_row *row,
                                   struct hearth_err *err)
{
    struct exemplar_run *run = context;
    uint32_t hit = hearth_grouping_hit(run->grouping, row->series_id, row->column);
    struct winner *best =
        hit == HEARTH_IDMAP_NONE ? NULL : winner_of(run, run->grouping->of_hit[hit], row->ts_ns);
    if (best == NULL) {
        return HEARTH_OK;
    }
    const struct winner of_row = {.single = {.ts_ns = row->ts_ns,
                                             .profile_no = row->profile_no,
                                             .writer_id = row->writer_id,
                                             .hit = hit,
                                             .group = run->grouping->of_hit[hit]}};
    const struct hearth_attr_wish wish = {
        .attrs = 1u << HEARTH_ATTR_SPAN_ID | 1u << HEARTH_ATTR_TRACE_ID, .column = row->column};
    struct hearth_attr_columns columns;
    hearth_arena_reset(&run->scratch);
    HEARTH_TRY(hearth_sample_attrs_columns(row->attrs, &wish, &run->scratch, &columns, err));
    return take_spans(run, &columns, &of_row, best, err);
}

static enum hearth_status make_winners(struct exemplar_run *run, struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    run->first = hearth_arena_array(arena, run->n_series, sizeof run->first[0]);
    if (run->first == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    for (size_t s = 0; s < run->n_series; s++) {
        struct hearth_timeseries *series = &run->series[s];
        run->first[s] = run->n_points;
        run->n_points += series->n_points;
        series->exemplars =
            hearth_arena_calloc(arena, series->n_points, sizeof series->exemplars[0]);
        if (series->exemplars == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }
    run->winners = hearth_arena_calloc(arena, run->n_points, sizeof run->winners[0]);
    return run->winners != NULL ? HEARTH_OK : HEARTH_FAIL_ARENA(err, arena);
}

static enum hearth_status name_winners(struct exemplar_run *run,
                                       const struct hearth_timeseries_spec *spec,
                                       struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    struct hearth_exemplar_rows *rows = hearth_arena_array(arena, run->n_points, sizeof rows[0]);
    if (rows == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    size_t n = 0;
    for (size_t s = 0; s < run->n_series; s++) {
        for (size_t i = 0; i < run->series[s].n_points; i++) {
            const struct winner *winner = &run->winners[run->first[s] + i];
            struct hearth_exemplar *exemplar = &run->series[s].exemplars[i];
            if (winner->span_id != 0) {
                exemplar->value = winner->single.value;
                exemplar->span_id = winner->span_id;
                exemplar->trace = winner->trace;
                rows[n++] = (struct hearth_exemplar_rows){exemplar, &winner->single, 1};
            }
        }
    }
    return hearth_exemplars_fill(run->query, run->grouping, spec->group_by, spec->n_group_by, rows,
                                 n, err);
}

enum hearth_status hearth_span_exemplars_of_series(
    const struct hearth_query *query, struct hearth_grouping *grouping,
    const struct hearth_selection *selection, const struct hearth_buckets *buckets,
    const struct hearth_timeseries_spec *spec, const size_t *series_of_group,
    struct hearth_timeseries *series, size_t n_series, struct hearth_err *err)
{
    struct exemplar_run run = {.query = query,
                               .grouping = grouping,
                               .buckets = buckets,
                               .series_of_group = series_of_group,
                               .series = series,
                               .n_series = n_series};
    HEARTH_TRY(make_winners(&run, err));
    struct hearth_selection rows = *selection;
    rows.totals = false;
    rows.rows = true;
    rows.detail = (struct hearth_read_detail){.identity = true, .attrs = HEARTH_ATTRS_ALONE};
    const struct hearth_reader reader = {.reset = forget, .row = take_row, .context = &run};
    hearth_arena_init_like(&run.scratch, query->call.arena);
    enum hearth_status status = hearth_selection_read(query, &rows, &reader, err);
    hearth_arena_release(&run.scratch);
    return status == HEARTH_OK ? name_winners(&run, spec, err) : status;
}
