/* diff_parts.c -- reads the sides of a diff into parts (contract: diff_parts.h). */
#include "answer/diff_parts.h"

#include "hearth/base/clock.h"

#include "select/plan_internal.h"
#include "select/stack_filter.h"
#include "select/thread_filter.h"

#include <assert.h>
#include <stdlib.h>

/* ---- slices ---- */

/*
 * The length of the slices of a range. From ten minutes on, slices consist of whole blocks, so they
 * cost no single profiles; shorter ones are used only for ranges that blocks would hardly divide.
 */
static int64_t choose_slice_length(int64_t range_ns)
{
    const int64_t second = HEARTH_NS_PER_SEC, minute = 60 * second, hour = 60 * minute;
    const struct {
        int64_t length_ns, n_most;
    } steps[] = {{10 * second, HEARTH_DIFF_MAX_SLICES}, {30 * second, HEARTH_DIFF_MAX_SLICES},
                 {minute, HEARTH_DIFF_MAX_SLICES},      {5 * minute, HEARTH_DIFF_MAX_SLICES / 2},
                 {10 * minute, HEARTH_DIFF_MAX_SLICES}, {30 * minute, HEARTH_DIFF_MAX_SLICES},
                 {hour, HEARTH_DIFF_MAX_SLICES},        {3 * hour, HEARTH_DIFF_MAX_SLICES},
                 {6 * hour, HEARTH_DIFF_MAX_SLICES},    {24 * hour, HEARTH_DIFF_MAX_SLICES}};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(steps); i++) {
        if (range_ns / steps[i].length_ns < steps[i].n_most) {
            return steps[i].length_ns;
        }
    }

    int64_t n_days = range_ns / HEARTH_NS_PER_DAY / HEARTH_DIFF_MAX_SLICES + 1;
    return n_days * HEARTH_NS_PER_DAY;
}

static int64_t slice_of(const struct hearth_diff_part_side *side, int64_t ts_ns)
{
    return ts_ns / side->slice_ns - (ts_ns % side->slice_ns < 0);
}

static void divide_into_slices(struct hearth_diff_part_side *side)
{
    int64_t from_ns = side->selection.from_ns, to_ns = side->selection.to_ns, range_ns;
    if (__builtin_sub_overflow(to_ns, from_ns, &range_ns)) {
        range_ns = INT64_MAX;
    }

    side->slice_ns = choose_slice_length(range_ns);
    side->first_slice = slice_of(side, from_ns);
    side->n_slices = (size_t)(slice_of(side, to_ns) - side->first_slice) + 1;
    side->selection.longest_block_ns = side->slice_ns;
}

/* Numbers the slices of both sides; slices of equal length and time are the same. */
static void number_slices(struct hearth_diff_parts *parts)
{
    struct hearth_diff_part_side *left = &parts->sides[0], *right = &parts->sides[1];
    int64_t after;

    right->first_part = left->n_slices;
    if (left->slice_ns == right->slice_ns &&
        !__builtin_sub_overflow(right->first_slice, left->first_slice, &after)) {
        if (after >= 0 && (uint64_t)after < left->n_slices) {
            right->first_part = (size_t)after;
        } else if (after < 0 && (uint64_t)-after < right->n_slices) {
            right->first_part = 0;
            left->first_part = (size_t)-after;
        }
    }

    size_t left_end = left->first_part + left->n_slices;
    size_t right_end = right->first_part + right->n_slices;
    parts->n_parts[HEARTH_DIFF_BY_SLICES] = left_end > right_end ? left_end : right_end;
}

int64_t hearth_diff_slice_overlap(const struct hearth_diff_part_side *side, size_t part)
{
    if (part < side->first_part || part - side->first_part >= side->n_slices) {
        return 0;
    }

    /* The first slice may begin before the earliest time, and the last may end after the latest. */
    int64_t number = side->first_slice + (int64_t)(part - side->first_part), begin_ns, next_ns;
    int64_t from_ns = side->selection.from_ns, to_ns = side->selection.to_ns;
    if (!__builtin_mul_overflow(number, side->slice_ns, &begin_ns)) {
        from_ns = max_i64(from_ns, begin_ns);
    }
    if (!__builtin_mul_overflow(number + 1, side->slice_ns, &next_ns)) {
        to_ns = min_i64(to_ns, next_ns - 1);
    }

    return to_ns - from_ns + 1;
}

/* ---- series ---- */

static int compare_ids(const void *left, const void *right)
{
    int32_t a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a > b) - (a < b);
}

/* Sorts ids and removes repeated ones. Returns how many are left. */
static size_t make_distinct(int32_t *ids, size_t n)
{
    size_t n_distinct = 0;

    if (n > 0) {
        qsort(ids, n, sizeof ids[0], compare_ids);
    }

    for (size_t i = 0; i < n; i++) {
        if (n_distinct == 0 || ids[n_distinct - 1] != ids[i]) {
            ids[n_distinct++] = ids[i];
        }
    }

    return n_distinct;
}

/* Lists the series of both sides. */
static enum hearth_status list_series(struct hearth_diff_parts *parts, struct hearth_arena *arena,
                                      struct hearth_err *err)
{
    size_t n = parts->sides[0].selection.n_hits + parts->sides[1].selection.n_hits, at = 0;
    parts->series_ids = hearth_arena_array(arena, n, sizeof parts->series_ids[0]);
    if (parts->series_ids == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t s = 0; s < 2; s++) {
        struct hearth_diff_part_side *side = &parts->sides[s];
        size_t from = at;
        for (size_t i = 0; i < side->selection.n_hits; i++) {
            parts->series_ids[at++] = side->selection.hits[i].series_id;
        }
        side->n_series = make_distinct(parts->series_ids + from, at - from);
        at = from + side->n_series;
    }

    parts->n_series = make_distinct(parts->series_ids, at);
    return HEARTH_OK;
}

/* Divides by series if that can tell anything. Blocks of whole services are not read then. */
static void divide_by_series(struct hearth_diff_parts *parts)
{
    for (size_t s = 0; s < 2; s++) {
        size_t n = parts->sides[s].n_series;
        if (n < HEARTH_NOISE_MIN_PARTS || n > HEARTH_DIFF_MAX_SERIES) {
            return;
        }
    }

    parts->n_parts[HEARTH_DIFF_BY_SERIES] = parts->n_series < HEARTH_DIFF_MAX_SERIES_PARTS
                                                ? parts->n_series
                                                : HEARTH_DIFF_MAX_SERIES_PARTS;
    for (size_t s = 0; s < 2; s++) {
        parts->sides[s].selection.n_covered = 0;
    }
}

static size_t find_series_part(const struct hearth_diff_parts *parts, int32_t series_id)
{
    const int32_t *found = bsearch(&series_id, parts->series_ids, parts->n_series,
                                   sizeof parts->series_ids[0], compare_ids);

    /* A block of a whole service has no series; none is planned. */
    return found == NULL
               ? SIZE_MAX
               : (size_t)(found - parts->series_ids) % parts->n_parts[HEARTH_DIFF_BY_SERIES];
}

/* ---- reading ---- */

/* A side while it is read. All sums together keep to the limit of one. */
struct part_reader {
    const struct hearth_diff_parts *parts;
    struct hearth_diff_part_side *side;
    size_t limit_bytes, n_bytes;
};

static enum hearth_status add_row_to_part(struct part_reader *reader,
                                          enum hearth_diff_division division, size_t part,
                                          const struct hearth_read_row *row, struct hearth_err *err)
{
    struct hearth_sums *sums = &reader->side->sums[division][part];
    size_t dict, before = sums->n_bytes;

    if (reader->limit_bytes > 0) {
        sums->limit_bytes = reader->limit_bytes - (reader->n_bytes - before);
    }

    enum hearth_status status = hearth_sums_add_row(sums, row, &dict, err);
    reader->n_bytes += sums->n_bytes - before;
    return status;
}

static enum hearth_status add_row_to_parts(void *context, const struct hearth_read_row *row,
                                           struct hearth_err *err)
{
    struct part_reader *reader = context;
    struct hearth_diff_part_side *side = reader->side;

    /* A block that is longer than a slice counts for the slice in which it begins. */
    int64_t slice = slice_of(side, row->ts_ns) - side->first_slice;
    slice = slice < 0 ? 0 : slice;
    size_t last = side->n_slices - 1;
    size_t part = side->first_part + ((uint64_t)slice > last ? last : (size_t)slice);
    HEARTH_TRY(add_row_to_part(reader, HEARTH_DIFF_BY_SLICES, part, row, err));

    if (side->sums[HEARTH_DIFF_BY_SERIES] == NULL) {
        return HEARTH_OK;
    }

    part = find_series_part(reader->parts, row->series_id);
    return part == SIZE_MAX ? HEARTH_OK
                            : add_row_to_part(reader, HEARTH_DIFF_BY_SERIES, part, row, err);
}

static void forget_parts(void *context)
{
    struct part_reader *reader = context;

    for (size_t d = 0; d < HEARTH_DIFF_N_DIVISIONS; d++) {
        for (size_t i = 0; reader->side->sums[d] != NULL && i < reader->parts->n_parts[d]; i++) {
            hearth_sums_forget(&reader->side->sums[d][i]);
        }
    }

    reader->n_bytes = 0;
}

/* Makes empty sums for the parts of a side. */
static enum hearth_status init_part_sums(const struct hearth_diff_parts *parts,
                                         struct hearth_diff_part_side *side,
                                         struct hearth_thread_filter *threads,
                                         struct hearth_err *err)
{
    struct hearth_arena *arena = side->query->call.arena;

    for (size_t d = 0; d < HEARTH_DIFF_N_DIVISIONS; d++) {
        size_t n = parts->n_parts[d];
        struct hearth_sums *sums = n == 0 ? NULL : hearth_arena_calloc(arena, n, sizeof sums[0]);
        if (n > 0 && sums == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        for (size_t i = 0; i < n; i++) {
            hearth_sums_init(&sums[i], side->query, side->selection.match);
            sums[i].threads = threads;
        }
        side->sums[d] = sums;
    }

    return HEARTH_OK;
}

static enum hearth_status read_part_side(const struct hearth_diff_parts *parts,
                                         struct hearth_diff_part_side *side, struct hearth_err *err)
{
    struct hearth_thread_filter threads;
    struct part_reader reader = {.parts = parts, .side = side};
    enum hearth_status status =
        hearth_thread_filter_init(&threads, &side->spec->stacks, side->query->call.arena, err);
    if (status == HEARTH_OK) {
        status = init_part_sums(parts, side, &threads, err);
    }

    if (status == HEARTH_OK) {
        reader.limit_bytes = side->sums[HEARTH_DIFF_BY_SLICES][0].limit_bytes;
        status = hearth_selection_read(side->query, &side->selection,
                                       &(struct hearth_reader){.reset = forget_parts,
                                                               .row = add_row_to_parts,
                                                               .context = &reader},
                                       err);
    }

    /* The filter ends here; the order of rows must not show. */
    for (size_t d = 0; d < HEARTH_DIFF_N_DIVISIONS; d++) {
        for (size_t i = 0; side->sums[d] != NULL && i < parts->n_parts[d]; i++) {
            side->sums[d][i].threads = NULL;
            hearth_sums_sort(&side->sums[d][i]);
        }
    }

    hearth_thread_filter_release(&threads);
    return status;
}

enum hearth_status hearth_diff_parts_read(struct hearth_diff_parts *parts,
                                          const struct hearth_query *const queries[2],
                                          const struct hearth_merge_spec *const specs[2],
                                          struct hearth_err *err)
{
    *parts = (struct hearth_diff_parts){0};

    for (size_t s = 0; s < 2; s++) {
        struct hearth_diff_part_side *side = &parts->sides[s];
        *side = (struct hearth_diff_part_side){.query = queries[s], .spec = specs[s]};
        HEARTH_TRY(hearth_merge_select(side->query, side->spec, &side->selection, err));
        divide_into_slices(side);
    }

    number_slices(parts);
    HEARTH_TRY(list_series(parts, queries[0]->call.arena, err));
    divide_by_series(parts);
    for (size_t s = 0; s < 2; s++) {
        hearth_plan_begin(queries[s], HEARTH_STEP_PARTS, s == 0);
        HEARTH_TRY(read_part_side(parts, &parts->sides[s], err));
    }

    return HEARTH_OK;
}

void hearth_diff_parts_release(struct hearth_diff_parts *parts)
{
    for (size_t s = 0; s < 2; s++) {
        for (size_t d = 0; d < HEARTH_DIFF_N_DIVISIONS; d++) {
            for (size_t i = 0; parts->sides[s].sums[d] != NULL && i < parts->n_parts[d]; i++) {
                hearth_sums_release(&parts->sides[s].sums[d][i]);
            }
        }
    }
}
