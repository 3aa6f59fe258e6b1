/*
 * span_exemplars.c -- the largest span behind each point of a time series.
 *
 * The value of a span is the sum of its samples in one row, as in heatmaps of spans: a span that
 * lasts over several profiles has a value in each. Totals lack spans, so the rows are read after
 * the points are known; points for which only sums are stored have no exemplar.
 */
#include "hearth/model/sample_attrs.h"

#include "select/singles.h"

#include <assert.h>

/* The largest span of a point so far. */
struct span_winner {
    struct hearth_single single; /* its value is the span's */
    uint64_t span_id;            /* 0: no span yet */
    struct hearth_trace_id trace;
};

struct exemplar_run {
    const struct hearth_query *query;
    struct hearth_grouping *grouping;
    const struct hearth_exemplar_target *target;
    struct span_winner *winners; /* [n_points]: of all points, series by series */
    size_t *first;               /* [n_series]: index of its first point in winners */
    size_t n_points;
    struct hearth_arena scratch; /* memory of a row */
};

static void reset_winners(void *context)
{
    struct exemplar_run *run = context;
    memset(run->winners, 0, run->n_points * sizeof run->winners[0]);
}

/* The winner of a bucket's point; NULL if the answer has no such point. */
static struct span_winner *find_winner(struct exemplar_run *run, uint32_t group, int64_t ts_ns)
{
    const struct hearth_buckets *buckets = run->target->buckets;
    int64_t b = hearth_bucket_number(buckets, ts_ns);
    size_t s = run->target->series_of_group[group];
    if (b >= buckets->n || s >= run->target->n_series) {
        return NULL;
    }

    int64_t ts_ms = buckets->start_ms + b * buckets->step_ms;
    const struct hearth_timeseries *series = &run->target->series[s];
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

/* A total order, so that the order of rows does not show in the answer. */
static bool is_larger_span(const struct span_winner *a, const struct span_winner *b)
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

static bool is_larger_trace(struct hearth_trace_id a, struct hearth_trace_id b)
{
    return a.hi != b.hi ? a.hi > b.hi : a.lo > b.lo;
}

/*
 * Sums the values of each span of a row. The largest of several traces counts, so that the choice
 * does not depend on the order.
 */
static enum hearth_status add_span_values(struct exemplar_run *run,
                                          const struct hearth_attr_columns *columns,
                                          const struct span_winner *row, struct span_winner *best,
                                          struct hearth_err *err)
{
    const struct hearth_attr_column *spans = &columns->of[HEARTH_ATTR_SPAN_ID];
    const struct hearth_attr_column *traces = &columns->of[HEARTH_ATTR_TRACE_ID];

    if (spans->values == NULL) {
        return HEARTH_OK;
    }

    struct span_winner *sums = hearth_arena_calloc(&run->scratch, spans->n_values, sizeof sums[0]);
    if (sums == NULL) {
        return HEARTH_FAIL_ARENA(err, &run->scratch);
    }

    for (size_t i = 0; i < columns->n; i++) {
        if (spans->index[i] == 0) {
            continue;
        }
        struct span_winner *sum = &sums[spans->index[i] - 1];
        int64_t *value = &sum->single.value;
        if (columns->values[i] < 0 || __builtin_add_overflow(*value, columns->values[i], value)) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT, "damaged sample attributes of a profile");
        }
        if (traces->values != NULL && traces->index[i] != 0) {
            const struct hearth_attr_value *id = &traces->values[traces->index[i] - 1];
            struct hearth_trace_id trace = {id->hi, id->lo};
            sum->trace = is_larger_trace(trace, sum->trace) ? trace : sum->trace;
        }
    }

    for (size_t i = 0; i < spans->n_values; i++) {
        struct span_winner one = *row;
        one.single.value = sums[i].single.value;
        one.span_id = spans->values[i].lo;
        one.trace = sums[i].trace;
        if (one.single.value > 0 && one.span_id != 0 && is_larger_span(&one, best)) {
            *best = one;
        }
    }

    return HEARTH_OK;
}

/* Compares the spans of a row with the winner of its point. */
static enum hearth_status add_exemplar_row(void *context, const struct hearth_read_row *row,
                                           struct hearth_err *err)
{
    struct exemplar_run *run = context;
    uint32_t hit = hearth_grouping_hit(run->grouping, row->service_id, row->series_id, row->column);
    struct span_winner *best =
        hit == HEARTH_IDMAP_NONE ? NULL : find_winner(run, run->grouping->of_hit[hit], row->ts_ns);
    if (best == NULL) {
        return HEARTH_OK;
    }

    const struct span_winner of_row = {.single = {.ts_ns = row->ts_ns,
                                                  .profile_no = row->profile_no,
                                                  .writer_id = row->writer_id,
                                                  .hit = hit,
                                                  .group = run->grouping->of_hit[hit]}};
    const struct hearth_attr_wish wish = {
        .attrs = 1u << HEARTH_ATTR_SPAN_ID | 1u << HEARTH_ATTR_TRACE_ID, .column = row->column};
    struct hearth_attr_columns columns;
    hearth_arena_reset(&run->scratch);
    HEARTH_TRY(hearth_sample_attrs_columns(row->attrs, &wish, &run->scratch, &columns, err));

    return add_span_values(run, &columns, &of_row, best, err);
}

/* Makes room for the exemplars of all points, and their winners. */
static enum hearth_status make_span_winners(struct exemplar_run *run, struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    size_t n_series = run->target->n_series;

    run->first = hearth_arena_array(arena, n_series, sizeof run->first[0]);
    if (run->first == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t s = 0; s < n_series; s++) {
        struct hearth_timeseries *series = &run->target->series[s];
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

/* Writes the winners into the points, with their profiles and labels. */
static enum hearth_status write_span_exemplars(struct exemplar_run *run, struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    const struct hearth_exemplar_target *target = run->target;
    struct hearth_exemplar_rows *rows = hearth_arena_array(arena, run->n_points, sizeof rows[0]);
    if (rows == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n = 0;
    for (size_t s = 0; s < target->n_series; s++) {
        for (size_t i = 0; i < target->series[s].n_points; i++) {
            const struct span_winner *winner = &run->winners[run->first[s] + i];
            struct hearth_exemplar *exemplar = &target->series[s].exemplars[i];
            if (winner->span_id != 0) {
                exemplar->value = winner->single.value;
                exemplar->span_id = winner->span_id;
                exemplar->trace = winner->trace;
                rows[n++] = (struct hearth_exemplar_rows){exemplar, &winner->single, 1};
            }
        }
    }

    assert(n <= run->n_points);
    return hearth_exemplars_fill(run->query, run->grouping, rows, n, err);
}

enum hearth_status hearth_span_exemplars_of_series(const struct hearth_query *query,
                                                   struct hearth_grouping *grouping,
                                                   const struct hearth_exemplar_target *target,
                                                   struct hearth_err *err)
{
    assert(query != NULL && grouping != NULL && target != NULL);

    struct exemplar_run run = {.query = query, .grouping = grouping, .target = target};

    HEARTH_TRY(make_span_winners(&run, err));

    struct hearth_selection rows = *target->selection;
    rows.totals = false;
    rows.rows = true;
    rows.detail = (struct hearth_read_detail){.identity = true, .attrs = HEARTH_ATTRS_ALONE};

    const struct hearth_reader reader = {
        .reset = reset_winners, .row = add_exemplar_row, .context = &run};
    hearth_arena_init_like(&run.scratch, query->call.arena);
    enum hearth_status status = hearth_selection_read(query, &rows, &reader, err);
    hearth_arena_release(&run.scratch);

    return status == HEARTH_OK ? write_span_exemplars(&run, err) : status;
}
