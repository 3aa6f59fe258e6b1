/*
 * timeseries.c -- totals of profiles over time, in buckets, grouped by labels.
 *
 * The point at t sums the profiles with t - step < time <= t, for t = start, start + step, ... <=
 * end; the first also includes time = start - step. Times of profiles are cut to milliseconds
 * first, but a profile after the end is outside of the range even by a nanosecond. The time after
 * the last whole step is left out. Buckets are in pages, so that a long range with a small step
 * costs memory for its points only. The only point of a group is in the group itself, since a thin
 * series has no other; the second one moves it to its page.
 */

#include "select/series_order.h"
#include "select/singles.h"
#include "select/stack_passes.h"
#include "select/thread_filter.h"

#include <assert.h>

#define PAGE_BUCKETS 256

struct time_bucket {
    int64_t sum;
    int64_t n; /* number of profiles; 0: no point */
};

struct bucket_group {
    struct time_bucket only;    /* without pages: the only point, ... */
    int64_t only_b;             /* ... the number of its bucket + 1; 0: no points */
    struct time_bucket **pages; /* [n_pages], of which some may be NULL; NULL: none */
    int64_t sum;
    size_t n_points;
};

/* The bucket of the latest value: bucket b of a group, with from_ns <= time < to_ns. */
struct bucket_cursor {
    struct bucket_group *group;
    struct time_bucket *bucket; /* NULL: after the last bucket */
    int64_t b, from_ns, to_ns;
    size_t n_ahead; /* buckets that follow it in its page */
};

struct series_run {
    const struct hearth_query *query;
    const struct hearth_timeseries_spec *spec;
    struct hearth_buckets buckets;
    struct hearth_selection selection;
    struct hearth_grouping grouping;
    struct bucket_group *groups; /* [grouping.n] */
    size_t n_pages;
    struct bucket_cursor at;
    int64_t n_points, max_points;
    struct hearth_singles singles; /* of all groups; used for exemplars */
    /* With a filter of stacks: rows are kept until their dictionaries can be read. */
    struct hearth_kept_row *rows;
};

static enum hearth_status make_series_groups(struct series_run *run,
                                             const struct hearth_call_index *index,
                                             struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    run->grouping = (struct hearth_grouping){.hits = run->selection.hits,
                                             .n_hits = run->selection.n_hits,
                                             .group_by = run->spec->group_by,
                                             .n_group_by = run->spec->n_group_by,
                                             .arena = arena};
    HEARTH_TRY(hearth_grouping_make(&run->grouping, index, err));
    run->groups = hearth_arena_calloc(arena, run->grouping.n, sizeof run->groups[0]);
    return run->groups != NULL ? HEARTH_OK : HEARTH_FAIL_ARENA(err, arena);
}

/* The last page is as long as the range needs. */
static size_t count_page_buckets(const struct series_run *run, size_t page)
{
    size_t n = (size_t)run->buckets.n - page * PAGE_BUCKETS;

    return n < PAGE_BUCKETS ? n : PAGE_BUCKETS;
}

/* The bucket in its page, which is made. NULL: memory was refused. */
static struct time_bucket *make_paged_bucket(struct series_run *run, struct bucket_group *group,
                                             int64_t b)
{
    struct time_bucket **page = &group->pages[b / PAGE_BUCKETS];

    if (*page == NULL) {
        *page =
            hearth_arena_calloc(run->query->call.arena,
                                count_page_buckets(run, (size_t)(b / PAGE_BUCKETS)), sizeof **page);
    }

    return *page == NULL ? NULL : &(*page)[b % PAGE_BUCKETS];
}

/* Makes the pages of a group, and moves its only point there. False: memory was refused. */
static bool make_pages(struct series_run *run, struct bucket_group *group)
{
    assert(group->pages == NULL && group->only_b > 0);

    group->pages =
        hearth_arena_calloc(run->query->call.arena, run->n_pages, sizeof group->pages[0]);
    if (group->pages == NULL) {
        return false;
    }

    struct time_bucket *bucket = make_paged_bucket(run, group, group->only_b - 1);
    if (bucket != NULL) {
        *bucket = group->only;
    }

    return bucket != NULL;
}

/* Sets the bucket of the cursor by its group and number. */
static enum hearth_status enter_bucket(struct series_run *run, struct hearth_err *err)
{
    struct bucket_cursor *at = &run->at;
    struct bucket_group *group = at->group;

    at->bucket = NULL;
    at->n_ahead = 0;
    if (at->b >= run->buckets.n) {
        return HEARTH_OK;
    }

    if (group->only_b == 0) {
        group->only_b = at->b + 1;
    }

    if (group->pages == NULL && group->only_b == at->b + 1) {
        at->bucket = &group->only;
        return HEARTH_OK;
    }

    if (group->pages != NULL || make_pages(run, group)) {
        at->bucket = make_paged_bucket(run, group, at->b);
        at->n_ahead = count_page_buckets(run, (size_t)(at->b / PAGE_BUCKETS)) -
                      (size_t)(at->b % PAGE_BUCKETS) - 1;
    }

    return at->bucket != NULL ? HEARTH_OK : HEARTH_FAIL_ARENA(err, run->query->call.arena);
}

/* Moves the cursor to the bucket of this time. */
static enum hearth_status move_bucket_cursor(struct series_run *run, struct bucket_group *group,
                                             int64_t ts_ns, struct hearth_err *err)
{
    int64_t b = hearth_bucket_number(&run->buckets, ts_ns);

    run->at = (struct bucket_cursor){
        .group = group,
        .b = b,
        .from_ns = b == 0 ? INT64_MIN : hearth_bucket_end_ns(&run->buckets, b - 1),
        .to_ns = hearth_bucket_end_ns(&run->buckets, b),
    };

    return enter_bucket(run, err);
}

/*
 * Moves a cursor to the next bucket of its page, for a time that is not before it. False: the page
 * ends, or the time is beyond that bucket.
 */
HEARTH_ALWAYS_INLINE bool step_cursor(struct bucket_cursor *at, int64_t ts_ns, int64_t step_ns)
{
    if (at->n_ahead == 0 || (uint64_t)ts_ns - (uint64_t)at->to_ns >= (uint64_t)step_ns) {
        return false;
    }

    at->bucket++;
    at->n_ahead--;
    at->b++;
    at->from_ns = at->to_ns;
    at->to_ns = at->to_ns > INT64_MAX - step_ns ? INT64_MAX : at->to_ns + step_ns;

    return true;
}

/* Counts new points of a group. */
static enum hearth_status count_series_points(struct series_run *run, struct bucket_group *group,
                                              size_t n, struct hearth_err *err)
{
    int64_t max_points = run->max_points;

    group->n_points += n;
    run->n_points += (int64_t)n;
    if (max_points > 0 && run->n_points > max_points) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the answer would have more than max-points (%lld) points: use a longer "
                           "step or fewer groups",
                           (long long)max_points);
    }

    return HEARTH_OK;
}

/* Values of profiles of one series, with ascending times. */
struct series_values {
    const int64_t *ts_ns, *values;
    size_t n;
};

/*
 * Adds value i, which is in the bucket of the cursor, and those after it that are, too, to the
 * bucket and to the sum. Returns the first value that is not.
 */
HEARTH_ALWAYS_INLINE size_t fill_bucket(const struct bucket_cursor *at,
                                        const struct series_values *values, size_t i, int64_t *sum,
                                        bool *overflow)
{
    size_t first = i;
    int64_t in_bucket = 0;

    do {
        *overflow |= __builtin_add_overflow(in_bucket, values->values[i++], &in_bucket);
    } while (i < values->n && values->ts_ns[i] < at->to_ns);

    at->bucket->n += (int64_t)(i - first);
    *overflow |= __builtin_add_overflow(at->bucket->sum, in_bucket, &at->bucket->sum);
    *overflow |= __builtin_add_overflow(*sum, in_bucket, sum);

    return i;
}

/*
 * Adds values to a group. Profiles of a series are read in order of time, so a value is mostly in
 * the bucket of the one before, or in the next: the cursor saves a division for each.
 */
static enum hearth_status add_series_values(struct series_run *run, struct bucket_group *group,
                                            const struct series_values *values,
                                            struct hearth_err *err)
{
    const int64_t step_ns = run->buckets.step_ms * HEARTH_NS_PER_MS; /* fits: hearth_step_ms */
    struct bucket_cursor at = run->at;
    size_t n_points = 0;
    int64_t sum = 0;
    bool overflow = false;

    for (size_t i = 0; i < values->n;) {
        int64_t ts_ns = values->ts_ns[i];
        bool is_before = i == 0 && (group != at.group || ts_ns < at.from_ns);
        if (is_before || (ts_ns >= at.to_ns && !step_cursor(&at, ts_ns, step_ns))) {
            HEARTH_TRY(move_bucket_cursor(run, group, ts_ns, err));
            at = run->at;
        }

        if (at.bucket == NULL) { /* after the last whole step, as are all that follow */
            break;
        }

        n_points += at.bucket->n == 0;
        i = fill_bucket(&at, values, i, &sum, &overflow);
    }

    run->at = at;
    if (overflow || __builtin_add_overflow(group->sum, sum, &group->sum)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum of the time series exceeds 64 bits");
    }

    return n_points == 0 ? HEARTH_OK : count_series_points(run, group, n_points, err);
}

/* Adds the value of a row of the hit that it names; rows that were not selected are ignored. */
static enum hearth_status add_single_value(struct series_run *run, struct hearth_single *single,
                                           struct hearth_err *err)
{
    if (single->hit == HEARTH_IDMAP_NONE) {
        return HEARTH_OK;
    }

    single->group = run->grouping.of_hit[single->hit];
    const struct series_values one = {&single->ts_ns, &single->value, 1};
    HEARTH_TRY(add_series_values(run, &run->groups[single->group], &one, err));
    return run->spec->exemplars ? hearth_singles_add(&run->singles, single, err) : HEARTH_OK;
}

static enum hearth_status add_series_total(void *context, const struct hearth_read_total *total,
                                           struct hearth_err *err)
{
    struct series_run *run = context;
    struct hearth_single single = {
        .ts_ns = total->ts_ns,
        .value = total->total,
        .hit =
            hearth_grouping_hit(&run->grouping, total->service_id, total->series_id, total->column),
    };

    return add_single_value(run, &single, err);
}

/* Packed totals of a series: one look-up for all. Exemplars need each by itself. */
static enum hearth_status add_series_totals(void *context, const struct hearth_read_totals *totals,
                                            struct hearth_err *err)
{
    struct series_run *run = context;
    uint32_t hit =
        hearth_grouping_hit(&run->grouping, totals->service_id, totals->series_id, totals->column);
    if (hit == HEARTH_IDMAP_NONE) {
        return HEARTH_OK;
    }

    uint32_t number = run->grouping.of_hit[hit];
    const struct series_values values = {totals->ts_ns, totals->totals, totals->n};
    HEARTH_TRY(add_series_values(run, &run->groups[number], &values, err));
    for (size_t i = 0; run->spec->exemplars && i < totals->n; i++) {
        const struct hearth_single single = {
            .ts_ns = totals->ts_ns[i], .value = totals->totals[i], .hit = hit, .group = number};
        HEARTH_TRY(hearth_singles_add(&run->singles, &single, err));
    }

    return HEARTH_OK;
}

/* ---- with a filter: the value of a profile is the sum of its stacks that pass ---- */

/* Copies a row, for the time after the statement. */
static enum hearth_status keep_filtered_row(void *context, const struct hearth_read_row *row,
                                            struct hearth_err *err)
{
    struct series_run *run = context;

    return hearth_kept_row_push(&run->rows, row, run->query->call.arena, err);
}

/* The filter of a query, prepared. */
struct series_filter {
    struct hearth_stack_passes passes;
    struct hearth_thread_filter threads;
    bool of_stacks;              /* otherwise all stacks pass */
    struct hearth_arena scratch; /* of one row */
};

/* Adds the value of a row: the sum of its stacks that pass. */
static enum hearth_status add_filtered_row(struct series_run *run, struct series_filter *filter,
                                           const struct hearth_read_row *row,
                                           struct hearth_err *err)
{
    struct hearth_arena *scratch = &filter->scratch;
    uint32_t bound;

    if (!hearth_columns_id_bound(row->ids, &bound)) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "profile of series %d: damaged ids",
                           row->series_id);
    }

    const struct hearth_stack_pass *pass = NULL;
    const struct hearth_dict_name name = {row->service_id, hearth_day_of(row->ts_ns),
                                          row->writer_id};
    if (filter->of_stacks) {
        HEARTH_TRY(hearth_stack_passes_load(&filter->passes, name, bound, &pass, err));
    }

    int64_t *acc = hearth_arena_calloc(scratch, bound, sizeof acc[0]);
    if (acc == NULL) {
        return HEARTH_FAIL_ARENA(err, scratch);
    }

    HEARTH_TRY(hearth_row_merge(&filter->threads, row, scratch, acc, bound, err));

    int64_t value = 0;
    for (uint32_t s = 0; s < bound; s++) {
        value +=
            pass == NULL || pass->passes[s] ? acc[s] : 0; /* part of the row's total, which fits */
    }

    struct hearth_single single = {
        .ts_ns = row->ts_ns,
        .value = value,
        .profile_no = row->profile_no,
        .writer_id = row->writer_id,
        .hit = hearth_grouping_hit(&run->grouping, row->service_id, row->series_id, row->column),
    };

    return value == 0 ? HEARTH_OK : add_single_value(run, &single, err);
}

static enum hearth_status add_filtered_rows(struct series_run *run, struct hearth_err *err)
{
    const struct hearth_stack_filter *stacks = &run->spec->stacks;
    struct hearth_arena *arena = run->query->call.arena;
    struct series_filter filter = {.of_stacks = hearth_stack_filter_needs_stacks(stacks)};

    hearth_arena_init_like(&filter.scratch, arena);
    enum hearth_status status = hearth_stack_passes_init(&filter.passes, run->query, stacks, err);
    if (status == HEARTH_OK) {
        status = hearth_thread_filter_init(&filter.threads, stacks, arena, err);
    }

    for (const struct hearth_kept_row *kept = run->rows; status == HEARTH_OK && kept != NULL;
         kept = kept->next) {
        hearth_arena_reset(&filter.scratch);
        status = hearth_cancel_check(run->query->call.cancel, err);
        if (status == HEARTH_OK) {
            status = add_filtered_row(run, &filter, &kept->row, err);
        }
    }

    hearth_arena_release(&filter.scratch);
    hearth_thread_filter_release(&filter.threads);
    hearth_stack_passes_release(&filter.passes);
    return status;
}

/* ---- the answer ---- */

static void write_series_point(const struct series_run *run, const struct time_bucket *bucket,
                               int64_t b, struct hearth_timeseries *out)
{
    double value = (double)bucket->sum;
    if (run->spec->average) {
        value /= (double)bucket->n;
    }

    out->points[out->n_points++] =
        (struct hearth_point){run->buckets.start_ms + b * run->buckets.step_ms, value};
    out->sum += value;
}

/* Writes the points in order of time. */
static void write_series_points(const struct series_run *run, const struct bucket_group *group,
                                struct hearth_timeseries *out)
{
    if (group->pages == NULL) {
        write_series_point(run, &group->only, group->only_b - 1, out);
        return;
    }

    for (size_t p = 0; p < run->n_pages; p++) {
        const struct time_bucket *page = group->pages[p];
        size_t n = page == NULL ? 0 : count_page_buckets(run, p);
        for (size_t i = 0; i < n; i++) {
            if (page[i].n > 0) {
                write_series_point(run, &page[i], (int64_t)(p * PAGE_BUCKETS + i), out);
            }
        }
    }
}

/* Makes the series of all groups that have points, in the order of the groups. */
static enum hearth_status make_timeseries(struct series_run *run, struct hearth_timeseries *made,
                                          struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;

    for (size_t g = 0; g < run->grouping.n; g++) {
        const struct bucket_group *group = &run->groups[g];
        if (group->n_points == 0) {
            continue;
        }
        struct hearth_timeseries *series = &made[g];
        series->labels = run->grouping.labels[g];
        series->points = hearth_arena_array(arena, group->n_points, sizeof series->points[0]);
        if (series->points == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        series->total = group->sum;
        write_series_points(run, group, series);
    }

    return HEARTH_OK;
}

/* Makes the series up to the limit, sorted, and the place of each group among them. */
static enum hearth_status rank_series(struct series_run *run, size_t *series_of_group,
                                      struct hearth_timeseries **ret_series, size_t *ret_n,
                                      struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    size_t n = 0, n_groups = run->grouping.n;
    struct hearth_timeseries *made = hearth_arena_calloc(arena, n_groups, sizeof made[0]);
    struct hearth_ranked_series *ranked = hearth_arena_array(arena, n_groups, sizeof ranked[0]);
    struct hearth_ranked_series *spare = hearth_arena_array(arena, n_groups, sizeof spare[0]);
    if (made == NULL || ranked == NULL || spare == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(make_timeseries(run, made, err));
    for (size_t g = 0; g < n_groups; g++) {
        if (made[g].n_points > 0) {
            ranked[n++].group = (uint32_t)g;
        }
    }

    hearth_series_order(ranked, spare, n, made);
    size_t n_kept =
        run->spec->limit > 0 && n > (uint64_t)run->spec->limit ? (size_t)run->spec->limit : n;
    hearth_call_note_series(&run->query->call, n_kept, n);

    struct hearth_timeseries *series = hearth_arena_array(arena, n_kept, sizeof series[0]);
    if (series == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t g = 0; g < n_groups; g++) {
        series_of_group[g] = n_kept;
    }

    for (size_t i = 0; i < n_kept; i++) {
        series[i] = made[ranked[i].group];
        series_of_group[ranked[i].group] = i;
    }

    *ret_series = series;
    *ret_n = n_kept;
    return HEARTH_OK;
}

/* Writes the series up to the limit, and their exemplars. */
static enum hearth_status write_timeseries(struct series_run *run,
                                           struct hearth_timeseries **ret_series, size_t *ret_n,
                                           struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    size_t *series_of_group = hearth_arena_array(arena, run->grouping.n, sizeof series_of_group[0]);
    if (series_of_group == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(rank_series(run, series_of_group, ret_series, ret_n, err));

    const struct hearth_exemplar_target target = {.selection = &run->selection,
                                                  .buckets = &run->buckets,
                                                  .series_of_group = series_of_group,
                                                  .series = *ret_series,
                                                  .n_series = *ret_n};
    if (run->spec->span_exemplars) {
        return hearth_span_exemplars_of_series(run->query, &run->grouping, &target, err);
    }

    return run->spec->exemplars ? hearth_exemplars_of_series(&run->singles, &target, err)
                                : HEARTH_OK;
}

/* Selects the series and makes their groups; the index is locked only here. */
static enum hearth_status select_timeseries(struct series_run *run, struct hearth_err *err)
{
    const struct hearth_call_index *index;
    const struct hearth_series_choice choice = {run->spec->profile_type, run->spec->selector,
                                                run->buckets.from_ns, run->buckets.to_ns};

    HEARTH_TRY(hearth_call_index_lock(&run->query->call, &index, err));
    enum hearth_status status =
        hearth_selection_make(run->query, &choice, index, &run->selection, err);
    if (status == HEARTH_OK) {
        status = make_series_groups(run, index, err);
    }
    hearth_call_index_unlock(index);

    return status;
}

static void reset_series_values(void *context)
{
    struct series_run *run = context;

    for (size_t g = 0; g < run->grouping.n; g++) {
        run->groups[g] = (struct bucket_group){0};
    }

    hearth_singles_forget(&run->singles);
    run->n_points = 0;
    run->at = (struct bucket_cursor){0};
    run->rows = NULL;
}

/* Reads totals, or rows if there is a filter of stacks. */
static enum hearth_status read_series_values(struct series_run *run, struct hearth_err *err)
{
    const struct hearth_reader reader = {.reset = reset_series_values,
                                         .row = keep_filtered_row,
                                         .total = add_series_total,
                                         .totals = add_series_totals,
                                         .context = run};

    run->selection.totals = true;
    run->selection.rows = !hearth_stack_filter_is_empty(&run->spec->stacks);
    run->selection.detail.identity = run->selection.rows && run->spec->exemplars;
    hearth_selection_read_threads(&run->spec->stacks, &run->selection);
    HEARTH_TRY(hearth_selection_read(run->query, &run->selection, &reader, err));
    return run->rows == NULL ? HEARTH_OK : add_filtered_rows(run, err);
}

enum hearth_status hearth_query_timeseries(const struct hearth_query *query,
                                           const struct hearth_timeseries_spec *spec,
                                           struct hearth_timeseries **ret_series, size_t *ret_n,
                                           struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret_series != NULL && ret_n != NULL);

    *ret_n = 0;
    struct series_run run = {.query = query, .spec = spec};

    HEARTH_TRY(hearth_stack_filter_check(&spec->stacks, query->call.arena, err));

    if (spec->span_exemplars && !hearth_stack_filter_is_empty(&spec->stacks)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "exemplars of spans cannot be combined with a filter of stack traces: "
                           "TopSpans returns the spans of a function");
    }

    HEARTH_TRY(hearth_timeseries_buckets(query, spec, &run.buckets, err));
    if (run.buckets.empty) {
        return HEARTH_OK;
    }

    run.n_pages = (size_t)((run.buckets.n + PAGE_BUCKETS - 1) / PAGE_BUCKETS);
    hearth_singles_init(&run.singles, query, &run.grouping);
    struct hearth_limits limits;
    hearth_call_limits(&query->call, &limits);
    run.max_points = limits.max_points;

    enum hearth_status status = select_timeseries(&run, err);
    if (status == HEARTH_OK) {
        status = read_series_values(&run, err);
    }

    if (status == HEARTH_OK) {
        status = write_timeseries(&run, ret_series, ret_n, err);
    }

    hearth_singles_release(&run.singles);
    return status;
}
