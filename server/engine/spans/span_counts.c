/*
 * span_counts.c -- numbers of different spans with profiles, in the buckets of timeseries.c.
 *
 * Only the first bucket differs: it excludes the millisecond at start - step. The spans of a point
 * can be listed, and that millisecond would be in none of these lists.
 *
 * A span counts once in a bucket and once in a series, however many profiles it has there. Buckets
 * and groups are small numbers, so (bucket of a group, span) and (group, span) are keys of exact
 * tables.
 */
#include "hearth/base/arena.h"
#include "hearth/base/budget.h"
#include "hearth/engine/span_profiles.h"

#include "common/id_table.h"
#include "spans/span_scan.h"

#include <assert.h>
#include <stdlib.h>

#define NONE HEARTH_IDMAP_NONE

struct count_cell {
    uint32_t group;
    int64_t b, n_spans, value;
};

struct counts_run {
    const struct hearth_query *query;
    const struct hearth_span_counts_spec *spec;
    struct hearth_buckets buckets;
    struct hearth_span_scan scan;
    struct hearth_id_table places;     /* number of the cell of (group, bucket) */
    struct hearth_id_table cell_spans; /* pairs (cell, span) that were counted */
    struct hearth_id_table spans;      /* pairs (group, span) that were counted */
    struct count_cell *cells;
    size_t cap_cells;
    int64_t *n_spans; /* [groups] */
    int64_t max_points;
};

static enum hearth_status find_or_make_cell(struct counts_run *run, uint32_t group, int64_t b,
                                            uint32_t *ret, struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    bool inserted;
    uint32_t at = hearth_id_table_intern(&run->places, group, (uint64_t)b, &inserted);

    if (at == NONE) {
        return hearth_span_fail_memory(err);
    }

    /* A new cell counts in the limit of points. */
    if (inserted) {
        if (run->max_points > 0 && run->places.n > (uint64_t)run->max_points) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "the answer would have more than max-points (%lld) points: use a "
                               "longer step or fewer groups",
                               (long long)run->max_points);
        }
        if (!hearth_arena_grow(arena, &run->cells, &run->cap_cells, run->places.n,
                               sizeof run->cells[0])) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        run->cells[at] = (struct count_cell){.group = group, .b = b};
    }

    *ret = at;

    return HEARTH_OK;
}

/* Count a span of a row, when its first sample counts. */
static enum hearth_status count_cell_span(struct counts_run *run, uint32_t at, uint64_t span_id,
                                          struct hearth_err *err)
{
    bool inserted;

    assert(at < run->places.n);

    struct count_cell *cell = &run->cells[at];

    /* Count it in the cell. */
    if (hearth_id_table_intern(&run->cell_spans, at, span_id, &inserted) == NONE) {
        return hearth_span_fail_memory(err);
    }

    cell->n_spans += inserted;
    if (!inserted) {
        return HEARTH_OK; /* then it was counted in the series too */
    }

    /* Count it in the series. */
    if (hearth_id_table_intern(&run->spans, cell->group, span_id, &inserted) == NONE) {
        return hearth_span_fail_memory(err);
    }

    run->n_spans[cell->group] += inserted;

    return HEARTH_OK;
}

static void prefetch_spans(const struct counts_run *run, uint32_t at,
                           const struct hearth_attr_column *spans)
{
    for (size_t i = 0; i < spans->n_values; i++) {
        hearth_id_table_prefetch(&run->cell_spans, at, spans->values[i].lo);
        hearth_id_table_prefetch(&run->spans, run->cells[at].group, spans->values[i].lo);
    }
}

static enum hearth_status visit_counts_row(void *context, const struct hearth_read_row *row,
                                           uint32_t hit, const struct hearth_attr_columns *columns,
                                           struct hearth_err *err)
{
    struct counts_run *run = context;
    const struct hearth_attr_column *spans = &columns->of[HEARTH_ATTR_SPAN_ID];

    /* Rows without span ids, or after the last bucket, do not count. */
    int64_t b = hearth_bucket_number(&run->buckets, row->ts_ns);

    if (spans->values == NULL || b >= run->buckets.n) {
        return HEARTH_OK;
    }

    bool *counted = hearth_arena_calloc(&run->scan.scratch, spans->n_values, sizeof counted[0]);
    if (counted == NULL) {
        return HEARTH_FAIL_ARENA(err, &run->scan.scratch);
    }

    /* Add each sample; count its span once per row. */
    uint32_t at = NONE;
    for (size_t i = 0; i < columns->n; i++) {
        uint32_t span = spans->index[i];
        if (span == 0 || columns->values[i] == 0) {
            continue;
        }
        if (at == NONE) {
            HEARTH_TRY(find_or_make_cell(run, run->scan.grouping.of_hit[hit], b, &at, err));
            prefetch_spans(run, at, spans);
        }

        int64_t *value = &run->cells[at].value;
        if (__builtin_add_overflow(*value, columns->values[i], value)) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum over spans exceeds 64 bits");
        }
        if (!counted[span - 1]) {
            counted[span - 1] = true;
            HEARTH_TRY(count_cell_span(run, at, spans->values[span - 1].lo, err));
        }
    }

    return HEARTH_OK;
}

static void reset_counts(void *context)
{
    struct counts_run *run = context;

    hearth_id_table_reset(&run->places);
    hearth_id_table_reset(&run->cell_spans);
    hearth_id_table_reset(&run->spans);
    memset(run->n_spans, 0, run->scan.grouping.n * sizeof run->n_spans[0]);
}

/* ---- the answer ---- */

static int compare_count_cells(const void *left, const void *right)
{
    const struct count_cell *a = left, *b = right;

    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }
    return (a->b > b->b) - (a->b < b->b);
}

static int compare_count_series(const void *left, const void *right)
{
    const struct hearth_span_count_series *a = left, *b = right;

    if (a->n_spans != b->n_spans) {
        return a->n_spans > b->n_spans ? -1 : 1;
    }
    return hearth_labels_cmp(&a->labels, &b->labels);
}

static enum hearth_status write_count_series(struct counts_run *run,
                                             struct hearth_span_count_series **ret, size_t *ret_n,
                                             struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    size_t n_cells = run->places.n, n = 0;
    struct hearth_span_count_series *series =
        hearth_arena_calloc(arena, run->scan.grouping.n, sizeof series[0]);
    struct hearth_span_count_point *points = hearth_arena_array(arena, n_cells, sizeof points[0]);

    if (series == NULL || points == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Sort the cells by series and time. */
    if (n_cells > 0) {
        qsort(run->cells, n_cells, sizeof run->cells[0], compare_count_cells);
    }

    /* Make series and points. */
    for (size_t i = 0; i < n_cells; i++) {
        const struct count_cell *cell = &run->cells[i];
        if (i == 0 || cell->group != run->cells[i - 1].group) {
            series[n++] = (struct hearth_span_count_series){
                .labels = run->scan.grouping.labels[cell->group],
                .points = &points[i],
                .n_spans = run->n_spans[cell->group],
            };
        }
        points[i] = (struct hearth_span_count_point){
            run->buckets.start_ms + cell->b * run->buckets.step_ms, cell->n_spans, cell->value};
        series[n - 1].n_points++;
    }

    /* Sort the series, and apply the limit. */
    if (n > 0) {
        qsort(series, n, sizeof series[0], compare_count_series);
    }

    if (run->spec->limit > 0 && n > (uint64_t)run->spec->limit) {
        hearth_call_note_series(&run->query->call, (size_t)run->spec->limit, n);
        n = (size_t)run->spec->limit;
    }

    *ret = series;
    *ret_n = n;

    return HEARTH_OK;
}

/* ---- the query ---- */

/* The first nanosecond of (start - step, start], in whole milliseconds. */
static int64_t find_first_ns(const struct hearth_buckets *buckets)
{
    int64_t ms, ns;
    bool is_far = __builtin_sub_overflow(buckets->start_ms + 1, buckets->step_ms, &ms) ||
                  __builtin_mul_overflow(ms, HEARTH_NS_PER_MS, &ns);
    return is_far ? INT64_MIN : ns;
}

static enum hearth_status count_spans_over_time(struct counts_run *run,
                                                struct hearth_span_count_series **ret,
                                                size_t *ret_n, struct hearth_err *err)
{
    const struct hearth_str service = HEARTH_STR("service_name");

    /* Scan with the requested groups. */
    bool is_grouped = run->spec->n_group_by > 0;

    HEARTH_TRY(hearth_span_scan_init(&run->scan, find_first_ns(&run->buckets), run->buckets.to_ns,
                                     is_grouped ? run->spec->group_by : &service,
                                     is_grouped ? run->spec->n_group_by : 1, err));
    run->n_spans =
        hearth_arena_calloc(run->query->call.arena, run->scan.grouping.n, sizeof run->n_spans[0]);
    if (run->n_spans == NULL) {
        return HEARTH_FAIL_ARENA(err, run->query->call.arena);
    }

    /* Count, then write. */
    HEARTH_TRY(hearth_span_scan_run(&run->scan, err));

    return write_count_series(run, ret, ret_n, err);
}

enum hearth_status hearth_query_span_counts(const struct hearth_query *query,
                                            const struct hearth_span_counts_spec *spec,
                                            struct hearth_span_count_series **ret, size_t *ret_n,
                                            struct hearth_err *err)
{
    assert(query != NULL && ret != NULL && ret_n != NULL);

    *ret = NULL;
    *ret_n = 0;
    const struct hearth_timeseries_spec step = {.step_seconds = spec->step_seconds,
                                                .whole_ms = true};
    struct counts_run run = {.query = query, .spec = spec};
    struct hearth_limits limits;

    HEARTH_TRY(hearth_timeseries_buckets(query, &step, &run.buckets, err));
    if (spec->limit < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "limit %lld is negative",
                           (long long)spec->limit);
    }

    if (run.buckets.empty) {
        return HEARTH_OK;
    }

    /* Set up the scan. */
    hearth_call_limits(&query->call, &limits);
    run.max_points = limits.max_points;
    run.scan = (struct hearth_span_scan){
        .query = query,
        .merge = &spec->merge,
        .attrs = 1u << HEARTH_ATTR_SPAN_ID,
        .visit = visit_counts_row,
        .reset = reset_counts,
        .context = &run,
    };

    /* Count. */
    hearth_id_table_init(&run.places, query->call.arena->budget);
    hearth_id_table_init(&run.cell_spans, query->call.arena->budget);
    hearth_id_table_init(&run.spans, query->call.arena->budget);
    enum hearth_status status = count_spans_over_time(&run, ret, ret_n, err);
    hearth_span_scan_release(&run.scan);
    hearth_id_table_release(&run.places);
    hearth_id_table_release(&run.cell_spans);
    hearth_id_table_release(&run.spans);

    return status;
}
