/*
 * heatmap.c -- profiles or spans, counted by time and value.
 *
 * A slot is a step of time, (t - step, t] for t = start, start + step, ... up to the first at or
 * after the end; times up to start belong to the first slot. Slots are divided into 20 cells of
 * equal height between the smallest and the largest value of all series. A value is in the last
 * cell whose reported lower edge it reaches.
 *
 * A profile that sample labels split into several rows of one group is one value
 * (hearth_singles_gather). Other profiles are identified only if exemplars are wanted: the largest
 * of each cell.
 */
#include "select/singles.h"

#include <assert.h>
#include <stdlib.h>

#define CELLS 20

/* A counted value. */
struct heat_spot {
    int64_t ts_ns, value;
    uint64_t span_id; /* 0: a profile */
    struct hearth_trace_id trace;
    uint32_t group;
    size_t first, n; /* the rows singles.v[] of its profile or span */
};

struct heatmap_run {
    const struct hearth_query *query;
    const struct hearth_heatmap_spec *spec;
    struct hearth_selection selection;
    struct hearth_grouping grouping;
    struct hearth_singles singles; /* with spans: one row for each spot */
    struct hearth_buf spot_bytes;  /* of spots, while they are added */
    struct heat_spot *spots;
    size_t n_spots;
    int64_t start_ms, step_ms, n_slots; /* the end of the first slot; length and number of slots */
    double y_min[CELLS];                /* lower edges of the cells, as reported */
    struct hearth_exemplar_rows *exemplars;
    size_t n_exemplars, cap_exemplars;
};

static enum hearth_status add_heat_spot(struct heatmap_run *run, const struct heat_spot *spot,
                                        struct hearth_err *err)
{
    hearth_buf_append(&run->spot_bytes, spot, sizeof *spot);
    return !hearth_buf_failed(&run->spot_bytes)
               ? HEARTH_OK
               : HEARTH_FAIL(
                     err, HEARTH_NO_MEMORY,
                     "a heatmap of this query needs more memory than max-query-memory-bytes: "
                     "shorten the range or add label matchers");
}

/* ---- profiles ---- */

static enum hearth_status add_heat_total(void *context, const struct hearth_read_total *total,
                                         struct hearth_err *err)
{
    struct heatmap_run *run = context;
    uint32_t hit =
        hearth_grouping_hit(&run->grouping, total->service_id, total->series_id, total->column);
    if (hit == HEARTH_IDMAP_NONE) {
        return HEARTH_OK;
    }

    const struct hearth_single single = {.ts_ns = total->ts_ns,
                                         .value = total->total,
                                         .hit = hit,
                                         .group = run->grouping.of_hit[hit]};

    return hearth_singles_add(&run->singles, &single, err);
}

/* Makes one spot of the rows of each profile. */
static enum hearth_status merge_split_profiles(struct heatmap_run *run, struct hearth_err *err)
{
    struct hearth_singles *singles = &run->singles;
    int64_t sum;

    HEARTH_TRY(hearth_singles_gather(singles, &run->selection, err));
    for (size_t i = 0; i < singles->n;) {
        size_t n = hearth_singles_profile(singles, i, &sum);
        const struct heat_spot spot = {.ts_ns = singles->v[i].ts_ns,
                                       .value = sum,
                                       .group = singles->v[i].group,
                                       .first = i,
                                       .n = n};
        HEARTH_TRY(add_heat_spot(run, &spot, err));
        i += n;
    }

    return HEARTH_OK;
}

/* ---- spans ---- */

static int compare_samples_by_span(const void *left, const void *right)
{
    const struct hearth_attr_sample *a = left, *b = right;
    if (a->attrs.span_id != b->attrs.span_id) {
        return a->attrs.span_id < b->attrs.span_id ? -1 : 1;
    }

    /*
     * The largest of several traces is first, so that the choice does not depend on the order.
     */
    if (a->attrs.trace_id_hi != b->attrs.trace_id_hi) {
        return a->attrs.trace_id_hi > b->attrs.trace_id_hi ? -1 : 1;
    }

    return (a->attrs.trace_id_lo < b->attrs.trace_id_lo) -
           (a->attrs.trace_id_lo > b->attrs.trace_id_lo);
}

/* Adds a spot for each span of a row that has a value. */
static enum hearth_status add_row_spans(struct heatmap_run *run, const struct hearth_read_row *row,
                                        uint32_t hit, struct hearth_attr_sample *samples, size_t n,
                                        struct hearth_err *err)
{
    if (n > 1) {
        qsort(samples, n, sizeof samples[0], compare_samples_by_span);
    }

    for (size_t i = 0, k; i < n; i = k) {
        const struct hearth_sample_attrs *attrs = &samples[i].attrs;

        /* Samples of one span are neighbours. */
        int64_t sum = 0;
        for (k = i; k < n && samples[k].attrs.span_id == attrs->span_id; k++) {
            int64_t value = samples[k].values[row->column];
            if (value < 0 || __builtin_add_overflow(sum, value, &sum)) {
                return HEARTH_FAIL(err, HEARTH_CORRUPT,
                                   "profiles of series %d: damaged sample attributes",
                                   row->series_id);
            }
        }

        if (attrs->span_id == 0 || sum == 0) {
            continue;
        }

        const struct hearth_single single = {.ts_ns = row->ts_ns,
                                             .value = sum,
                                             .profile_no = row->profile_no,
                                             .writer_id = row->writer_id,
                                             .hit = hit,
                                             .group = run->grouping.of_hit[hit]};
        const struct heat_spot spot = {.ts_ns = row->ts_ns,
                                       .value = sum,
                                       .span_id = attrs->span_id,
                                       .trace = {attrs->trace_id_hi, attrs->trace_id_lo},
                                       .group = single.group,
                                       .first = run->spot_bytes.n / sizeof spot,
                                       .n = 1};
        HEARTH_TRY(hearth_singles_add(&run->singles, &single, err));
        HEARTH_TRY(add_heat_spot(run, &spot, err));
    }

    return HEARTH_OK;
}

static enum hearth_status add_heat_row(void *context, const struct hearth_read_row *row,
                                       struct hearth_err *err)
{
    struct heatmap_run *run = context;
    uint32_t hit =
        hearth_grouping_hit(&run->grouping, row->service_id, row->series_id, row->column);
    if (hit == HEARTH_IDMAP_NONE) {
        return HEARTH_OK;
    }

    struct hearth_arena scratch;
    hearth_arena_init_like(&scratch, run->query->call.arena);
    struct hearth_attr_sample *samples;
    size_t n;
    enum hearth_status status = hearth_row_samples(row, &scratch, &samples, &n, err);
    if (status == HEARTH_OK) {
        status = add_row_spans(run, row, hit, samples, n, err);
    }

    hearth_arena_release(&scratch);
    return status;
}

/* ---- reading ---- */

static void reset_heat_values(void *context)
{
    struct heatmap_run *run = context;
    hearth_singles_forget(&run->singles);
    hearth_buf_reset(&run->spot_bytes);
}

/*
 * The order goes down to the profile, so that the order of rows does not show in the
 * answer_heatmap.
 */
static int compare_heat_spots(const void *left, const void *right, void *singles_ptr)
{
    const struct heat_spot *a = left, *b = right;
    const struct hearth_single *singles = singles_ptr;

    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }

    if (a->ts_ns != b->ts_ns) {
        return a->ts_ns < b->ts_ns ? -1 : 1;
    }

    if (a->value != b->value) {
        return a->value > b->value ? -1 : 1;
    }

    if (a->span_id != b->span_id) {
        return a->span_id < b->span_id ? -1 : 1;
    }

    const struct hearth_single *of_a = &singles[a->first], *of_b = &singles[b->first];
    if (of_a->writer_id != of_b->writer_id) {
        return of_a->writer_id < of_b->writer_id ? -1 : 1;
    }

    if (of_a->profile_no != of_b->profile_no) {
        return of_a->profile_no < of_b->profile_no ? -1 : 1;
    }

    return (of_a->hit > of_b->hit) - (of_a->hit < of_b->hit);
}

/* Reads all values as sorted spots. */
static enum hearth_status read_heat_spots(struct heatmap_run *run, struct hearth_err *err)
{
    const struct hearth_reader reader = {
        .reset = reset_heat_values, .row = add_heat_row, .total = add_heat_total, .context = run};
    struct hearth_singles *singles = &run->singles;

    if (run->spec->spans) {
        run->selection.rows = true;
        run->selection.detail =
            (struct hearth_read_detail){.identity = true, .attrs = HEARTH_ATTRS_ALONE};
    } else {
        run->selection.totals = true;
    }

    HEARTH_TRY(hearth_selection_read(run->query, &run->selection, &reader, err));
    /* Spots of spans refer to rows by their position: these must not be sorted. */
    if (run->spec->spans) {
        singles->v = (struct hearth_single *)(void *)singles->rows.p;
        singles->n = singles->rows.n / sizeof singles->v[0];
    } else {
        HEARTH_TRY(merge_split_profiles(run, err));
    }

    run->spots = (struct heat_spot *)(void *)run->spot_bytes.p;
    assert(run->spot_bytes.n % sizeof run->spots[0] == 0);
    run->n_spots = run->spot_bytes.n / sizeof run->spots[0];
    if (run->n_spots > 1) {
        qsort_r(run->spots, run->n_spots, sizeof run->spots[0], compare_heat_spots, singles->v);
    }

    return HEARTH_OK;
}

/* ---- the grid ---- */

/* The slot of a time; times after the last slot belong to it. */
static int64_t find_slot(const struct heatmap_run *run, int64_t ts_ns)
{
    const struct hearth_buckets buckets = {.start_ms = run->start_ms, .step_ms = run->step_ms};
    int64_t slot = hearth_bucket_number(&buckets, ts_ns);
    return slot < run->n_slots ? slot : run->n_slots - 1;
}

/*
 * The last cell whose reported lower edge the value reaches. Edges are rounded down to whole
 * numbers above the smallest value, so several cells have the same edge if there are few distinct
 * values.
 */
static size_t find_heat_cell(const struct heatmap_run *run, int64_t value)
{
    size_t c = CELLS - 1;
    while (c > 0 && (double)value < run->y_min[c]) {
        c--;
    }
    return c;
}

static void find_cell_edges(struct heatmap_run *run, struct hearth_heatmap *out)
/* Finds the lower edges of the cells, from the smallest to the largest value. */
{
    int64_t min = INT64_MAX, max = INT64_MIN;
    assert(run->n_spots > 0);
    for (size_t i = 0; i < run->n_spots; i++) {
        int64_t value = run->spots[i].value;
        min = value < min ? value : min;
        max = value > max ? value : max;
    }

    /* A single distinct value gets a range of 1 above it. */
    double height = (min == max ? 1 : (double)max - (double)min) / CELLS;
    for (size_t i = 0; i < CELLS; i++) {
        run->y_min[i] = (double)min + (double)(int64_t)((double)i * height);
    }
    memcpy(out->y_min, run->y_min, sizeof run->y_min);
}

/* The number of spots from i on that are in one group, and the number of their slots. */
static size_t measure_heat_group(const struct heatmap_run *run, size_t i, size_t *ret_n_slots)
{
    size_t n = 0, n_slots = 0;
    int64_t last = -1;

    while (i + n < run->n_spots && run->spots[i + n].group == run->spots[i].group) {
        int64_t slot = find_slot(run, run->spots[i + n].ts_ns);
        n_slots += slot != last;
        last = slot;
        n++;
    }

    *ret_n_slots = n_slots;
    return n;
}

/* Adds the largest spot of each cell to the exemplars of the slot. */
static enum hearth_status add_slot_exemplars(struct heatmap_run *run,
                                             const struct heat_spot *const *largest,
                                             struct hearth_heatmap_slot *slot,
                                             struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;

    slot->exemplars = hearth_arena_calloc(arena, CELLS, sizeof slot->exemplars[0]);
    if (slot->exemplars == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t c = 0; c < CELLS; c++) {
        const struct heat_spot *spot = largest[c];
        if (spot == NULL) {
            continue;
        }
        if (run->n_exemplars == run->cap_exemplars) {
            size_t cap = run->cap_exemplars == 0 ? 64 : 2 * run->cap_exemplars;
            struct hearth_exemplar_rows *v = hearth_arena_array(arena, cap, sizeof v[0]);
            if (v == NULL) {
                return HEARTH_FAIL_ARENA(err, arena);
            }
            if (run->n_exemplars > 0) {
                memcpy(v, run->exemplars, run->n_exemplars * sizeof v[0]);
            }
            run->exemplars = v;
            run->cap_exemplars = cap;
        }

        /* The exemplar refers to its rows, which are looked up unless their profile is known. */
        struct hearth_exemplar *exemplar = &slot->exemplars[slot->n_exemplars++];
        exemplar->value = spot->value;
        exemplar->span_id = spot->span_id;
        exemplar->trace = spot->trace;
        run->exemplars[run->n_exemplars++] =
            (struct hearth_exemplar_rows){exemplar, &run->singles.v[spot->first], spot->n};
        for (size_t k = 0; k < spot->n; k++) {
            struct hearth_single *single = &run->singles.v[spot->first + k];
            single->wanted = single->writer_id == 0;
        }
    }

    return HEARTH_OK;
}

/* Counts the n spots of one series, from i on. */
static enum hearth_status fill_heat_series(struct heatmap_run *run, size_t i, size_t n,
                                           struct hearth_heatmap_series *series,
                                           struct hearth_err *err)
{
    struct hearth_heatmap_slot *slot = NULL;
    const struct heat_spot *largest[CELLS];
    int64_t last = -1;

    for (size_t end = i + n; i < end; i++) {
        const struct heat_spot *spot = &run->spots[i];

        int64_t k = find_slot(run, spot->ts_ns);

        /* Spots are sorted by time: a new slot begins a new row of cells. */
        if (k != last) {
            slot = &series->slots[series->n_slots++];
            slot->ts_ms = run->start_ms + k * run->step_ms;
            memset(largest, 0, sizeof largest);
            last = k;
        }

        size_t c = find_heat_cell(run, spot->value);
        slot->counts[c] += slot->counts[c] < INT32_MAX;
        if (largest[c] == NULL || spot->value > largest[c]->value) {
            largest[c] = spot;
        }

        /* The last spot of a slot: its exemplars are known. */
        bool is_last = i + 1 == end || find_slot(run, run->spots[i + 1].ts_ns) != k;
        if (is_last && run->spec->exemplars) {
            HEARTH_TRY(add_slot_exemplars(run, largest, slot, err));
        }
    }

    return HEARTH_OK;
}

/* A series before its slots are filled. */
struct ranked_heat {
    struct hearth_heatmap_series series;
    size_t first, n, n_slots;
};

static int compare_heat_series(const void *left, const void *right)
{
    const struct ranked_heat *a = left, *b = right;
    if (a->n != b->n) {
        return a->n > b->n ? -1 : 1;
    }
    return hearth_labels_cmp(&a->series.labels, &b->series.labels);
}

/* Makes the series in order, and fills their slots up to the limit. */
static enum hearth_status fill_heat_grid(struct heatmap_run *run, struct hearth_heatmap *ret,
                                         struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    struct ranked_heat *ranked = hearth_arena_calloc(arena, run->grouping.n, sizeof ranked[0]);

    ret->series = hearth_arena_array(arena, run->grouping.n, sizeof ret->series[0]);
    if (ranked == NULL || ret->series == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n = 0;
    for (size_t i = 0; i < run->n_spots; i += ranked[n++].n) {
        ranked[n].first = i;
        ranked[n].n = measure_heat_group(run, i, &ranked[n].n_slots);
        ranked[n].series.labels = run->grouping.labels[run->spots[i].group];
        ranked[n].series.n_points = (int64_t)ranked[n].n;
    }

    if (n > 0) {
        qsort(ranked, n, sizeof ranked[0], compare_heat_series);
    }

    if (run->spec->limit > 0 && n > (uint64_t)run->spec->limit) {
        hearth_call_note_series(&run->query->call, (size_t)run->spec->limit, n);
        n = (size_t)run->spec->limit;
    }

    for (size_t s = 0; s < n; s++) {
        struct hearth_heatmap_series *series = &ret->series[ret->n_series++];
        *series = ranked[s].series;
        series->slots = hearth_arena_calloc(arena, ranked[s].n_slots, sizeof series->slots[0]);
        if (series->slots == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        HEARTH_TRY(fill_heat_series(run, ranked[s].first, ranked[s].n, series, err));
    }

    return HEARTH_OK;
}

/* Identifies the largest spots; profiles that are not stored any more are left out. */
static enum hearth_status identify_exemplars(struct heatmap_run *run, struct hearth_err *err)
{
    HEARTH_TRY(hearth_singles_identify(&run->singles, &run->selection, err));
    hearth_exemplars_note_gone(&run->singles);
    size_t n = 0;

    for (size_t i = 0; i < run->n_exemplars; i++) {
        if (run->exemplars[i].rows[0].writer_id != 0) {
            run->exemplars[n++] = run->exemplars[i];
        }
    }

    return hearth_exemplars_fill(run->query, &run->grouping, run->exemplars, n, err);
}

/* Removes exemplars without a profile from all slots. */
static void drop_unidentified(struct hearth_heatmap *heatmap)
{
    for (size_t s = 0; s < heatmap->n_series; s++) {
        for (size_t k = 0; k < heatmap->series[s].n_slots; k++) {
            struct hearth_heatmap_slot *slot = &heatmap->series[s].slots[k];
            size_t n = 0;
            for (size_t e = 0; e < slot->n_exemplars; e++) {
                if (slot->exemplars[e].has_profile) {
                    slot->exemplars[n++] = slot->exemplars[e];
                }
            }
            slot->n_exemplars = n;
        }
    }
}

/* ---- the query ---- */

static enum hearth_status check_heatmap_spec(const struct hearth_query *query,
                                             const struct hearth_heatmap_spec *spec,
                                             struct hearth_err *err)
{
    if (!(spec->step_seconds >= 0.001 && spec->step_seconds < 1e12)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "step must be >= 1ms");
    }

    if (spec->limit < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "limit must not be negative");
    }

    if (query->start_ms != 0 && query->start_ms == query->end_ms) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a heatmap needs a start before its end");
    }

    if (!hearth_stack_filter_is_empty(&spec->merge.stacks) ||
        !hearth_profile_filter_is_empty(&spec->merge.profiles)) {
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT,
            "a heatmap counts whole profiles or spans: remove the filter of stacks and ids");
    }

    return HEARTH_OK;
}

/* Selects the series and makes the groups. */
static enum hearth_status select_heat_series(struct heatmap_run *run,
                                             const struct hearth_range *range,
                                             struct hearth_err *err)
{
    const struct hearth_query *query = run->query;
    const struct hearth_call_index *index;
    const struct hearth_series_choice choice = {
        run->spec->merge.profile_type, run->spec->merge.selector, range->from_ns, range->to_ns};

    HEARTH_TRY(hearth_call_index_lock(&query->call, &index, err));
    enum hearth_status status = hearth_selection_make(query, &choice, index, &run->selection, err);
    if (status == HEARTH_OK) {
        run->grouping = (struct hearth_grouping){.hits = run->selection.hits,
                                                 .n_hits = run->selection.n_hits,
                                                 .group_by = run->spec->group_by,
                                                 .n_group_by = run->spec->n_group_by,
                                                 .arena = query->call.arena};
        status = hearth_grouping_make(&run->grouping, index, err);
    }
    hearth_call_index_unlock(index);

    return status;
}

/* Reads, counts, and finds exemplars. */
static enum hearth_status answer_heatmap(struct heatmap_run *run, struct hearth_heatmap *ret,
                                         struct hearth_err *err)
{
    HEARTH_TRY(read_heat_spots(run, err));
    if (run->n_spots == 0) {
        return HEARTH_OK;
    }

    find_cell_edges(run, ret);
    HEARTH_TRY(fill_heat_grid(run, ret, err));
    if (run->spec->exemplars) {
        HEARTH_TRY(identify_exemplars(run, err));
        drop_unidentified(ret);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_query_heatmap(const struct hearth_query *query,
                                        const struct hearth_heatmap_spec *spec,
                                        struct hearth_heatmap *ret, struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret != NULL);

    *ret = (struct hearth_heatmap){0};
    struct heatmap_run run = {.query = query, .spec = spec};
    struct hearth_range range;

    HEARTH_TRY(hearth_query_range(query, &range, err));
    HEARTH_TRY(check_heatmap_spec(query, spec, err));
    if (range.empty) {
        return HEARTH_OK;
    }

    run.start_ms = range.from_ns / HEARTH_NS_PER_MS;
    run.step_ms = hearth_step_ms(spec->step_seconds);
    const struct hearth_buckets buckets = {.start_ms = run.start_ms, .step_ms = run.step_ms};
    run.n_slots = hearth_bucket_number(&buckets, range.to_ns) + 1;

    hearth_singles_init(&run.singles, query, &run.grouping);
    hearth_buf_init(&run.spot_bytes, run.singles.rows.limit_bytes);
    run.spot_bytes.budget = query->call.arena->budget;

    enum hearth_status status = select_heat_series(&run, &range, err);
    if (status == HEARTH_OK) {
        status = answer_heatmap(&run, ret, err);
    }

    hearth_buf_release(&run.spot_bytes);
    hearth_singles_release(&run.singles);

    return status;
}
