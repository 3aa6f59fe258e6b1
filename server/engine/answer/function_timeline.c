/*
 * function_timeline.c -- self and total of functions over time, in the buckets of timeseries.c.
 *
 * The range is read in pieces, and a piece is finished before the next is read: its rows are kept
 * until the statement has ended and dictionaries can be read. Long buckets are a piece each,
 * planned like a merge, so that blocks answer for the part of them that lies wholly in the bucket.
 * Short buckets, into which no block fits, share a piece of an hour; after an empty piece the next
 * one is twice as long.
 */
#include "hearth/base/arena.h"
#include "hearth/base/budget.h"
#include "hearth/model/frame_name.h"

#include "answer/function_masks.h"
#include "select/grouping.h"
#include "select/planned.h"
#include "select/stack_filter.h"
#include "select/thread_filter.h"

#include <assert.h>
#include <stdlib.h>

/* With a shorter step, the plan of a bucket would contain hardly any block. */
#define MIN_PLANNED_STEP_MS (INT64_C(20) * 60 * 1000)
#define MAX_PLANNED_BUCKETS 2000
#define PIECE_MS            (INT64_C(3600) * 1000)
#define FRACTION_BITS       60

__extension__ typedef __int128 i128;

/* The values of one unit in one bucket. A unit is a group; for means, a label set of a service. */
struct timeline_cell {
    uint32_t unit, group;
    int64_t b, n_profiles; /* b: number of the bucket */
    int64_t *values;       /* [2 * n_functions]: self and total of each function */
};

struct timeline_group {
    struct hearth_labels labels;
    i128 sum;     /* sum of totals, by which groups are sorted */
    size_t first; /* index of its first point among the cells */
    size_t n_points;
};

struct timeline_run {
    const struct hearth_query *query;
    const struct hearth_function_timeline_spec *spec;
    struct hearth_buckets buckets;
    struct hearth_selection selection;
    bool mean; /* the mean per scrape of a gauge */
    struct hearth_function_masks masks;
    struct hearth_thread_filter threads;
    struct hearth_str *functions; /* distinct */
    size_t n_functions;
    struct hearth_grouping grouping;
    struct timeline_group *groups; /* [grouping.n] */
    struct hearth_idmap by_place;  /* (unit, bucket) -> cell */
    struct timeline_cell *cells;
    size_t n_cells, cap_cells;
    size_t budgeted_bytes; /* of by_place */
    int64_t max_points;

    /* The current piece. */
    int64_t planned_b; /* the bucket that it is; -1: the bucket of a row follows from its time */
    struct hearth_arena rows_arena;
    struct hearth_kept_row *rows; /* in rows_arena */
    int64_t *acc;                 /* [cap_acc]: values by stack; all 0 between rows */
    size_t cap_acc;
    struct hearth_arena acc_arena;
};

/* ---- the request ---- */

/* Copies the names of functions as frames show them, each once. */
static enum hearth_status copy_functions(struct timeline_run *run, struct hearth_err *err)
{
    const struct hearth_function_timeline_spec *spec = run->spec;

    run->functions =
        hearth_arena_array(run->query->call.arena, spec->n_functions, sizeof run->functions[0]);
    if (run->functions == NULL) {
        return HEARTH_FAIL_ARENA(err, run->query->call.arena);
    }

    for (size_t i = 0; i < spec->n_functions; i++) {
        /* A function may be named twice, also by the empty name and [unknown]. */
        struct hearth_str function = hearth_frame_shown(spec->functions[i]);
        bool repeated = false;
        for (size_t k = 0; k < run->n_functions; k++) {
            repeated = repeated || hearth_str_eq(run->functions[k], function);
        }
        if (!repeated && run->n_functions == HEARTH_MAX_FUNCTIONS) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "functions: more than %u names",
                               HEARTH_MAX_FUNCTIONS);
        }
        if (!repeated) {
            run->functions[run->n_functions++] = function;
        }
    }

    return run->n_functions > 0 ? HEARTH_OK
                                : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                              "functions: at least one name is required");
}

/* Makes the groups; the caller holds the lock of the index. */
static enum hearth_status make_timeline_groups(struct timeline_run *run,
                                               const struct hearth_call_index *index,
                                               struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    const struct hearth_selection *selection = &run->selection;

    run->grouping = (struct hearth_grouping){.hits = selection->hits,
                                             .n_hits = selection->n_hits,
                                             .group_by = run->spec->group_by,
                                             .n_group_by = run->spec->n_group_by,
                                             .arena = arena};
    HEARTH_TRY(hearth_grouping_make(&run->grouping, index, err));
    run->groups = hearth_arena_calloc(arena, run->grouping.n, sizeof run->groups[0]);
    if (run->groups == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < run->grouping.n; i++) {
        run->groups[i].labels = run->grouping.labels[i];
    }

    return HEARTH_OK;
}

/* Selects the series, makes the groups, and applies the filters. */
static enum hearth_status select_timeline_series(struct timeline_run *run, struct hearth_err *err)
{
    const struct hearth_query *query = run->query;
    const struct hearth_merge_spec *merge = &run->spec->merge;
    const struct hearth_call_index *index;
    const struct hearth_series_choice choice = {merge->profile_type, merge->selector,
                                                run->buckets.from_ns, run->buckets.to_ns};

    HEARTH_TRY(hearth_call_index_lock(&query->call, &index, err));
    enum hearth_status status = hearth_selection_make(query, &choice, index, &run->selection, err);
    run->mean = merge->mean && run->selection.gauge;
    if (status == HEARTH_OK) {
        status = make_timeline_groups(run, index, err);
    }
    hearth_call_index_unlock(index);
    HEARTH_TRY(status);
    if (run->spec->n_group_by > 0) {
        run->selection.n_covered = 0; /* blocks of whole services have no labels */
    }

    HEARTH_TRY(hearth_selection_match(query, &merge->profiles, &run->selection, err));
    hearth_selection_read_threads(&merge->stacks, &run->selection);
    return HEARTH_OK;
}

/* ---- rows ---- */

/* Copies a row, for the time after the statement. */
static enum hearth_status keep_timeline_row(void *context, const struct hearth_read_row *row,
                                            struct hearth_err *err)
{
    struct timeline_run *run = context;
    if (run->selection.match != NULL && !hearth_profile_match_row(run->selection.match, row)) {
        return HEARTH_OK;
    }

    return hearth_kept_row_push(&run->rows, row, &run->rows_arena, err);
}

static void reset_timeline_rows(void *context)
{
    struct timeline_run *run = context;
    hearth_arena_reset(&run->rows_arena);
    run->rows = NULL;
}

/* Finds or makes the cell of a row; NULL if it is in no bucket or was not selected. */
static enum hearth_status find_cell(struct timeline_run *run, const struct hearth_read_row *row,
                                    struct timeline_cell **ret, struct hearth_err *err)
{
    uint32_t hit =
        row->series_id < 0 /* a block of a service: there is one group */
            ? 0
            : hearth_grouping_hit(&run->grouping, row->service_id, row->series_id, row->column);
    int64_t b =
        run->planned_b >= 0 ? run->planned_b : hearth_bucket_number(&run->buckets, row->ts_ns);
    *ret = NULL;
    if (hit == HEARTH_IDMAP_NONE || b >= run->buckets.n) {
        return HEARTH_OK;
    }

    /* Cells are found by unit and bucket. */
    uint32_t group = run->grouping.of_hit[hit];
    uint32_t unit = run->mean ? hearth_selection_scraped(&run->selection, row) : group;
    int64_t place[2] = {unit, b};
    struct hearth_hash128 key = hearth_hash128(place, sizeof place, hearth_hash_process_seed());
    bool inserted;
    uint32_t i = hearth_idmap_intern(&run->by_place, key, (uint32_t)run->n_cells, &inserted);
    if (i == HEARTH_IDMAP_NONE ||
        !hearth_idmap_account(&run->by_place, run->query->call.arena, &run->budgeted_bytes) ||
        !hearth_arena_grow(run->query->call.arena, &run->cells, &run->cap_cells, run->n_cells + 1,
                           sizeof run->cells[0])) {
        return HEARTH_FAIL_ARENA(err, run->query->call.arena);
    }

    if (inserted) {
        int64_t *values =
            hearth_arena_calloc(run->query->call.arena, 2 * run->n_functions, sizeof values[0]);
        if (values == NULL) {
            return HEARTH_FAIL_ARENA(err, run->query->call.arena);
        }
        run->cells[run->n_cells++] = (struct timeline_cell){unit, group, b, 0, values};
        if (run->max_points > 0 && run->n_cells > (uint64_t)run->max_points / run->n_functions) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "the answer would have more than max-points (%lld) points: use a "
                               "longer step or fewer groups",
                               (long long)run->max_points);
        }
    }

    *ret = &run->cells[i];
    return HEARTH_OK;
}

/* Adds the value of one stack to the functions that it contains. False if a sum overflows. */
static bool add_stack_to_cell(const struct timeline_run *run,
                              const struct hearth_function_mask *mask, struct timeline_cell *cell,
                              uint64_t stack, int64_t value)
{
    uint8_t self = mask->self[stack];
    bool overflow = false;

    /* `left` has a bit for each function of the stack that is still to be added. */
    if (self < run->n_functions) {
        int64_t *to = &cell->values[2 * self];
        overflow |= __builtin_add_overflow(*to, value, to);
    }

    for (uint64_t left = mask->total[stack]; left != 0; left &= left - 1) {
        int64_t *to = &cell->values[2 * __builtin_ctzll(left) + 1];
        overflow |= __builtin_add_overflow(*to, value, to);
    }

    return !overflow;
}

static enum hearth_status fail_timeline_sum(struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum of the timeline exceeds 64 bits");
}

/* Makes room in acc for stacks below bound, all 0. */
static enum hearth_status grow_stack_sums(struct timeline_run *run, uint32_t bound,
                                          struct hearth_err *err)
{
    if (bound <= run->cap_acc) {
        return HEARTH_OK;
    }

    size_t cap = run->cap_acc < 1024 ? 1024 : run->cap_acc;
    while (cap < bound) {
        cap *= 2;
    }

    hearth_arena_reset(&run->acc_arena);
    run->acc = hearth_arena_calloc(&run->acc_arena, cap, sizeof run->acc[0]);
    run->cap_acc = run->acc == NULL ? 0 : cap;

    return run->acc == NULL ? HEARTH_FAIL_ARENA(err, &run->acc_arena) : HEARTH_OK;
}

/* Adds the values of a row's stacks, and sets acc back to 0. */
static enum hearth_status add_timeline_row(struct timeline_run *run,
                                           const struct hearth_read_row *row,
                                           struct hearth_err *err)
{
    uint32_t bound;

    if (!hearth_columns_id_bound(row->ids, &bound) || row->n_profiles < 1) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "profiles of series %d: damaged ids",
                           (int)row->series_id);
    }

    const struct hearth_function_mask *mask;
    struct timeline_cell *cell;
    HEARTH_TRY(grow_stack_sums(run, bound, err));
    HEARTH_TRY(hearth_function_masks_of(&run->masks, row, bound, &mask, err));
    HEARTH_TRY(hearth_row_merge(&run->threads, row, run->query->call.arena, run->acc, bound, err));
    HEARTH_TRY(find_cell(run, row, &cell, err));

    /* Stacks are added and cleared even without a cell: acc must be 0 afterwards. */
    HEARTH_UNFILLED struct hearth_ids_walk walk;
    uint32_t stack;
    enum hearth_status status = HEARTH_OK;
    hearth_ids_walk_begin(&walk, row->ids);
    while (hearth_ids_walk_next(&walk, &stack)) {
        if (cell != NULL && status == HEARTH_OK &&
            !add_stack_to_cell(run, mask, cell, stack, run->acc[stack])) {
            status = fail_timeline_sum(err);
        }
        run->acc[stack] = 0;
    }

    if (cell != NULL && status == HEARTH_OK &&
        __builtin_add_overflow(cell->n_profiles, row->n_profiles, &cell->n_profiles)) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "too many profiles in a bucket");
    }

    return status;
}

/*
 * With a filter by span or trace: adds the samples of a row that pass, with the values of their
 * attributes.
 */
static enum hearth_status add_timeline_samples(struct timeline_run *run,
                                               const struct hearth_read_row *row,
                                               struct hearth_err *err)
{
    struct hearth_arena arena;
    struct hearth_attr_sample *samples;
    size_t n;
    struct timeline_cell *cell = NULL;

    hearth_arena_init_like(&arena, run->query->call.arena);
    enum hearth_status status = hearth_row_samples(row, &arena, &samples, &n, err);
    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        const struct hearth_function_mask *mask;
        uint32_t stack = samples[i].stack_id;
        if (!hearth_profile_match_sample(run->selection.match, &samples[i].attrs) ||
            !hearth_thread_filter_passes(&run->threads, &samples[i].attrs)) {
            continue;
        }

        if (stack == UINT32_MAX || samples[i].values[row->column] < 0) {
            status =
                HEARTH_FAIL(err, HEARTH_CORRUPT, "profiles of series %d: damaged sample attributes",
                            (int)row->series_id);
            break;
        }

        /* The profile counts once, with its first sample. */
        bool first = cell == NULL;
        status = find_cell(run, row, &cell, err);
        if (status != HEARTH_OK || cell == NULL) {
            break;
        }
        cell->n_profiles += first;
        status = hearth_function_masks_of(&run->masks, row, stack + 1, &mask, err);
        if (status == HEARTH_OK &&
            !add_stack_to_cell(run, mask, cell, stack, samples[i].values[row->column])) {
            status = fail_timeline_sum(err);
        }
    }

    hearth_arena_release(&arena);
    return status;
}

/* ---- pieces ---- */

/* Reads n buckets from the first on, and adds their rows. */
static enum hearth_status read_timeline_piece(struct timeline_run *run,
                                              const struct hearth_query *query, int64_t first,
                                              int64_t n, struct hearth_err *err)
{
    const struct hearth_reader reader = {
        .reset = reset_timeline_rows, .row = keep_timeline_row, .context = run};
    bool of_samples = run->selection.match != NULL && run->selection.match->of_samples;

    assert(n > 0 && first >= 0 && first + n <= run->buckets.n);

    run->selection.from_ns =
        first == 0 ? run->buckets.from_ns : hearth_bucket_end_ns(&run->buckets, first - 1);

    run->selection.to_ns = hearth_bucket_end_ns(&run->buckets, first + n - 1) - 1;
    if (run->selection.to_ns > run->buckets.to_ns) {
        run->selection.to_ns = run->buckets.to_ns;
    }

    run->rows = NULL;
    HEARTH_TRY(hearth_selection_read(query, &run->selection, &reader, err));
    for (const struct hearth_kept_row *kept = run->rows; kept != NULL; kept = kept->next) {
        HEARTH_TRY(hearth_cancel_check(query->call.cancel, err));
        HEARTH_TRY(of_samples ? add_timeline_samples(run, &kept->row, err)
                              : add_timeline_row(run, &kept->row, err));
    }

    return HEARTH_OK;
}

/* Reads all buckets, in planned pieces of one or in pieces of about an hour. */
static enum hearth_status read_timeline_pieces(struct timeline_run *run,
                                               const struct hearth_query *query,
                                               struct hearth_err *err)
{
    const struct hearth_buckets *buckets = &run->buckets;
    bool planned = buckets->step_ms >= MIN_PLANNED_STEP_MS && buckets->n <= MAX_PLANNED_BUCKETS &&
                   run->selection.match == NULL && run->threads.is_empty;
    int64_t least = buckets->step_ms < PIECE_MS ? PIECE_MS / buckets->step_ms : 1, n = least;

    run->selection.rows = !planned;

    for (int64_t first = 0; first < buckets->n;) {
        n = n > buckets->n - first ? buckets->n - first : n;
        run->planned_b = planned ? first : -1;
        HEARTH_TRY(read_timeline_piece(run, query, first, planned ? 1 : n, err));
        first += planned ? 1 : n;
        n = run->rows != NULL ? least : n < INT64_MAX / 2 ? 2 * n : n;
    }

    return HEARTH_OK;
}

/* Reads all pieces. Each has notes of its own; equal lines are added once. */
static enum hearth_status read_timeline(struct timeline_run *run, struct hearth_err *err)
{
    struct hearth_query query = *run->query;
    struct hearth_buf notes;

    hearth_buf_init(&notes, 64 * 1024);
    query.call.notes = query.call.notes == NULL ? NULL : &notes;

    enum hearth_status status =
        run->selection.n_hits == 0 ? HEARTH_OK : read_timeline_pieces(run, &query, err);
    hearth_call_note_lines(&run->query->call, hearth_buf_view(&notes));
    hearth_buf_release(&notes);

    return status;
}

/* ---- the answer ---- */

static int compare_cells(const void *a, const void *b)
{
    const struct timeline_cell *x = a, *y = b;
    if (x->group != y->group) {
        return x->group < y->group ? -1 : 1;
    }

    if (x->b != y->b) {
        return x->b < y->b ? -1 : 1;
    }

    return (x->unit > y->unit) - (x->unit < y->unit);
}

/*
 * The mean of the n cells of one group and bucket, rounded half away from zero. Each quotient is
 * rounded down by less than one of its last digits.
 */
static enum hearth_status divide_cell_values(const struct timeline_cell *cells, size_t n, size_t at,
                                             int64_t *ret, struct hearth_err *err)
{
    i128 sum = 0;
    for (size_t i = 0; i < n; i++) {
        i128 value = (i128)cells[i].values[at] * ((i128)1 << FRACTION_BITS);
        if (__builtin_add_overflow(sum, value / cells[i].n_profiles, &sum)) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a mean exceeds 64 bits");
        }
    }

    sum = (sum + ((i128)1 << (FRACTION_BITS - 1)) + (i128)n) >> FRACTION_BITS;
    *ret = (int64_t)sum;
    return sum > INT64_MAX ? HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a mean exceeds 64 bits")
                           : HEARTH_OK;
}

/*
 * Merges the cells of one group and bucket, which may have several units, into the first of them;
 * sums up groups.
 */
static enum hearth_status merge_units(struct timeline_run *run, struct hearth_err *err)
{
    size_t n = 0;

    if (run->n_cells > 0) {
        qsort(run->cells, run->n_cells, sizeof run->cells[0], compare_cells);
    }

    for (size_t i = 0, next; i < run->n_cells; i = next) {
        struct timeline_cell *cell = &run->cells[i];
        struct timeline_group *group = &run->groups[cell->group];
        next = i + 1;
        while (next < run->n_cells && run->cells[next].group == cell->group &&
               run->cells[next].b == cell->b) {
            next++;
        }

        for (size_t k = 0; run->mean && k < 2 * run->n_functions; k++) {
            HEARTH_TRY(divide_cell_values(cell, next - i, k, &cell->values[k], err));
        }
        for (size_t f = 0; f < run->n_functions; f++) {
            group->sum += cell->values[2 * f + 1];
        }
        group->first = group->n_points++ == 0 ? n : group->first;
        run->cells[n++] = *cell;
    }

    run->n_cells = n;
    return HEARTH_OK;
}

static int compare_timeline_groups(const void *a, const void *b)
{
    struct timeline_group x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    if (x.sum != y.sum) {
        return x.sum > y.sum ? -1 : 1;
    }

    return hearth_labels_cmp(&x.labels, &y.labels);
}

/* Writes the points of one function in one group. */
static enum hearth_status write_function_series(const struct timeline_run *run,
                                                const struct timeline_group *group, size_t f,
                                                struct hearth_function_series *out,
                                                struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;

    out->function = run->functions[f];
    out->labels = group->labels;
    out->n_points = group->n_points;
    out->points = hearth_arena_array(arena, group->n_points, sizeof out->points[0]);
    if (out->points == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < group->n_points; i++) {
        const struct timeline_cell *cell = &run->cells[group->first + i];
        out->points[i] =
            (struct hearth_function_point){run->buckets.start_ms + cell->b * run->buckets.step_ms,
                                           cell->values[2 * f], cell->values[2 * f + 1]};
    }

    return HEARTH_OK;
}

/* Writes the series of all functions in the largest groups. */
static enum hearth_status write_timeline(struct timeline_run *run,
                                         struct hearth_function_series **ret, size_t *ret_n,
                                         struct hearth_err *err)
{
    HEARTH_TRY(merge_units(run, err));

    size_t n_groups = 0;

    for (size_t i = 0; i < run->grouping.n; i++) {
        if (run->groups[i].n_points > 0) {
            run->groups[n_groups++] = run->groups[i];
        }
    }

    if (n_groups > 0) {
        qsort(run->groups, n_groups, sizeof run->groups[0], compare_timeline_groups);
    }

    if (run->spec->limit > 0 && n_groups > (uint64_t)run->spec->limit) {
        hearth_call_note(&run->query->call,
                         "%lld of %zu groups are in the answer: raise limit to see "
                         "more",
                         (long long)run->spec->limit, n_groups);
        n_groups = (size_t)run->spec->limit;
    }

    struct hearth_arena *arena = run->query->call.arena;
    struct hearth_function_series *series =
        hearth_arena_calloc(arena, n_groups * run->n_functions, sizeof series[0]);
    if (series == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t f = 0; f < run->n_functions; f++) {
        for (size_t g = 0; g < n_groups; g++) {
            HEARTH_TRY(
                write_function_series(run, &run->groups[g], f, &series[f * n_groups + g], err));
        }
    }

    *ret = series;
    *ret_n = n_groups * run->n_functions;
    return HEARTH_OK;
}

/* Runs the query: checks, buckets, series, rows, answer. */
static enum hearth_status run_timeline(struct timeline_run *run,
                                       struct hearth_function_series **ret, size_t *ret_n,
                                       struct hearth_err *err)
{
    const struct hearth_timeseries_spec step = {.step_seconds = run->spec->step_seconds};
    struct hearth_limits limits;

    HEARTH_TRY(copy_functions(run, err));
    HEARTH_TRY(hearth_stack_filter_check(&run->spec->merge.stacks, run->query->call.arena, err));
    HEARTH_TRY(hearth_timeseries_buckets(run->query, &step, &run->buckets, err));
    hearth_call_limits(&run->query->call, &limits);
    run->max_points = limits.max_points;

    run->masks = (struct hearth_function_masks){
        .query = run->query,
        .functions = run->functions,
        .n_functions = run->n_functions,
        .stacks = &run->spec->merge.stacks,
    };
    HEARTH_TRY(hearth_function_masks_init(&run->masks, err));
    HEARTH_TRY(hearth_thread_filter_init(&run->threads, &run->spec->merge.stacks,
                                         run->query->call.arena, err));
    if (run->buckets.empty) {
        return HEARTH_OK;
    }

    HEARTH_TRY(select_timeline_series(run, err));
    HEARTH_TRY(read_timeline(run, err));

    return write_timeline(run, ret, ret_n, err);
}

enum hearth_status hearth_query_function_timeline(const struct hearth_query *query,
                                                  const struct hearth_function_timeline_spec *spec,
                                                  struct hearth_function_series **ret,
                                                  size_t *ret_n, struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret != NULL && ret_n != NULL);

    struct timeline_run run = {.query = query, .spec = spec};
    *ret = NULL;
    *ret_n = 0;

    hearth_idmap_init(&run.by_place);
    hearth_arena_init_like(&run.rows_arena, query->call.arena);
    hearth_arena_init_like(&run.acc_arena, query->call.arena);

    enum hearth_status status = run_timeline(&run, ret, ret_n, err);

    hearth_arena_release(&run.acc_arena);
    hearth_arena_release(&run.rows_arena);
    hearth_function_masks_release(&run.masks);
    hearth_thread_filter_release(&run.threads);
    hearth_idmap_release(&run.by_place);
    hearth_budget_give(query->call.arena->budget, run.budgeted_bytes);

    return status;
}
