/*
 * label_stats.c -- how many profiles the values of a label have, and how large they are, from the
 * totals of profiles.
 *
 * A profile that sample labels split over several series of one value counts once, with the sum of
 * its parts. A series that is the only one of its service and value has no such parts: its totals
 * are counted directly. Totals of other series are gathered first, in pieces of the range, so that
 * a long range needs no more memory than its fullest day.
 *
 * Sums of values and of their squares are integers, so the order of rows does not matter and
 * nothing cancels out before the division at the end.
 */
#include "select/singles.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

__extension__ typedef unsigned __int128 u128;

#define PIECE_NS HEARTH_NS_PER_DAY

struct value_stat {
    struct hearth_label_stat out;
    u128 squares; /* sum of squared values */
};

/* The counts of a part of the range. */
struct stat_counts {
    bool *seen;               /* [n_hits], by same_labels: it has a profile in the range */
    struct value_stat *stats; /* [grouping.n] */
};

struct stats_run {
    const struct hearth_query *query;
    struct hearth_selection selection;
    struct hearth_grouping grouping; /* by the label: each group is a value */
    uint32_t *same_labels; /* [n_hits]: first of the hits that differ in their shapes only */
    bool *alone;           /* [n_hits]: no other hit has its service and value */
    bool all_alone;        /* all hits are alone */
    struct stat_counts now, before; /* with the current piece, and without it */
    struct hearth_singles singles;  /* of the current piece, for hits that are not alone */
};

/* Finds the hits that are alone. Hits are sorted by service. */
static enum hearth_status find_alone_hits(struct stats_run *run, struct hearth_err *err)
{
    const struct hearth_series_hit *hits = run->selection.hits;
    const uint32_t *group = run->grouping.of_hit;
    struct hearth_arena *arena = run->query->call.arena;
    uint32_t *n_hits = hearth_arena_calloc(arena, run->grouping.n, sizeof n_hits[0]);

    run->alone = hearth_arena_calloc(arena, run->selection.n_hits, sizeof run->alone[0]);
    if (n_hits == NULL || run->alone == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    run->all_alone = true;

    /* Count the hits of each value per service, mark those with a count of 1, reset the counts. */
    for (size_t from = 0, to; from < run->selection.n_hits; from = to) {
        for (to = from; to < run->selection.n_hits && hits[to].service_id == hits[from].service_id;
             to++) {
            n_hits[group[to]]++;
        }
        for (size_t i = from; i < to; i++) {
            run->alone[i] = n_hits[group[i]] == 1;
            run->all_alone = run->all_alone && run->alone[i];
        }
        for (size_t i = from; i < to; i++) {
            n_hits[group[i]] = 0;
        }
    }

    return HEARTH_OK;
}

static bool make_stat_counts(const struct stats_run *run, struct stat_counts *ret)
{
    struct hearth_arena *arena = run->query->call.arena;
    ret->seen = hearth_arena_calloc(arena, run->selection.n_hits, sizeof ret->seen[0]);
    ret->stats = hearth_arena_calloc(arena, run->grouping.n, sizeof ret->stats[0]);
    return ret->seen != NULL && ret->stats != NULL;
}

static void copy_stat_counts(const struct stats_run *run, struct stat_counts *to,
                             const struct stat_counts *from)
{
    if (run->selection.n_hits > 0) {
        memcpy(to->seen, from->seen, run->selection.n_hits * sizeof to->seen[0]);
        memcpy(to->stats, from->stats, run->grouping.n * sizeof to->stats[0]);
    }
}

/* Groups the hits by their value of the label; the caller holds the lock of the index. */
static enum hearth_status group_by_value(struct stats_run *run,
                                         const struct hearth_call_index *index,
                                         const struct hearth_str *label, struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;

    run->grouping = (struct hearth_grouping){.hits = run->selection.hits,
                                             .n_hits = run->selection.n_hits,
                                             .group_by = label,
                                             .n_group_by = 1,
                                             .arena = arena};
    HEARTH_TRY(hearth_grouping_make(&run->grouping, index, err));
    if (!make_stat_counts(run, &run->now) || !make_stat_counts(run, &run->before)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    const struct hearth_series_hits hits = {run->selection.hits, run->selection.n_hits};
    HEARTH_TRY(hearth_call_index_same_labels(index, &hits, arena, &run->same_labels, err));
    return find_alone_hits(run, err);
}

static enum hearth_status select_stat_hits(struct stats_run *run,
                                           const struct hearth_label_stats_spec *spec,
                                           struct hearth_err *err)
{
    const struct hearth_query *query = run->query;
    struct hearth_range range;

    HEARTH_TRY(hearth_query_range(query, &range, err));
    const struct hearth_series_choice choice = {spec->profile_type, spec->selector, range.from_ns,
                                                range.to_ns};
    const struct hearth_call_index *index;
    HEARTH_TRY(hearth_call_index_lock(&query->call, &index, err));
    enum hearth_status status = hearth_selection_make(query, &choice, index, &run->selection, err);
    if (range.empty) {
        run->selection.n_hits = 0;
    }

    if (status == HEARTH_OK) {
        status = group_by_value(run, index, &spec->label, err);
    }
    hearth_call_index_unlock(index);
    run->selection.totals = true;

    return status;
}

/* ---- totals ---- */

static void reset_stats_piece(void *context)
{
    struct stats_run *run = context;
    copy_stat_counts(run, &run->now, &run->before);
    hearth_singles_forget(&run->singles);
}

/* Counts a profile of one value of the label. */
static enum hearth_status count_value_profile(struct stats_run *run, uint32_t group, int64_t value,
                                              struct hearth_err *err)
{
    struct value_stat *stat = &run->now.stats[group];
    struct hearth_label_stat *out = &stat->out;

    u128 size = value < 0 ? -(u128)value : (u128)value;
    if (__builtin_add_overflow(out->sum, value, &out->sum) ||
        __builtin_add_overflow(stat->squares, size * size, &stat->squares)) {
        return HEARTH_FAIL(
            err, HEARTH_OUT_OF_RANGE,
            "a sum over the profiles of one value of the label is too large: shorten the range");
    }

    out->min = out->n_profiles == 0 || value < out->min ? value : out->min;
    out->max = out->n_profiles == 0 || value > out->max ? value : out->max;
    out->n_profiles++;

    return HEARTH_OK;
}

/* Counts a total, or keeps it if it may be a part of a profile. */
static enum hearth_status count_stat_total(void *context, const struct hearth_read_total *total,
                                           struct hearth_err *err)
{
    struct stats_run *run = context;
    uint32_t hit =
        hearth_grouping_hit(&run->grouping, total->service_id, total->series_id, total->column);
    if (hit == HEARTH_IDMAP_NONE) {
        return HEARTH_OK;
    }

    uint32_t group = run->grouping.of_hit[hit];
    bool *seen = &run->now.seen[run->same_labels[hit]];
    run->now.stats[group].out.n_series += !*seen;
    *seen = true;
    if (run->alone[hit]) {
        return count_value_profile(run, group, total->total, err);
    }

    const struct hearth_single single = {
        .ts_ns = total->ts_ns, .value = total->total, .hit = hit, .group = group};
    return hearth_singles_add(&run->singles, &single, err);
}

/* Counts the profiles of a piece, whose parts are now known. */
static enum hearth_status count_gathered_profiles(struct stats_run *run, struct hearth_err *err)
{
    struct hearth_singles *singles = &run->singles;

    HEARTH_TRY(hearth_singles_gather(singles, &run->selection, err));
    for (size_t i = 0, n; i < singles->n; i += n) {
        int64_t sum;
        n = hearth_singles_profile(singles, i, &sum);
        HEARTH_TRY(count_value_profile(run, singles->v[i].group, sum, err));
    }

    return HEARTH_OK;
}

/*
 * Reads the range in pieces. The rows of a profile have the same time, so they are in one piece.
 * Pieces grow while nothing is found.
 */
static enum hearth_status read_stats_pieces(struct stats_run *run, const struct hearth_query *query,
                                            struct hearth_err *err)
{
    const struct hearth_reader reader = {
        .reset = reset_stats_piece, .total = count_stat_total, .context = run};
    struct hearth_selection *selection = &run->selection;
    const int64_t to_ns = selection->to_ns;

    for (int64_t length_ns = PIECE_NS;;) {
        int64_t last_ns;
        bool is_last = run->all_alone ||
                       __builtin_add_overflow(selection->from_ns, length_ns - 1, &last_ns) ||
                       last_ns >= to_ns;
        selection->to_ns = is_last ? to_ns : last_ns;
        HEARTH_TRY(hearth_selection_read(query, selection, &reader, err));
        bool is_empty = run->singles.rows.n == 0;
        HEARTH_TRY(count_gathered_profiles(run, err));
        if (is_last) {
            return HEARTH_OK;
        }

        /* The piece is finished: its counts are kept even if the next one is read again. */
        copy_stat_counts(run, &run->before, &run->now);
        hearth_singles_forget(&run->singles);
        selection->from_ns = last_ns + 1;
        length_ns = !is_empty ? PIECE_NS : length_ns < INT64_MAX / 2 ? 2 * length_ns : length_ns;
    }
}

/* Reads all pieces; equal lines of their notes are added once. */
static enum hearth_status read_stats(struct stats_run *run, struct hearth_err *err)
{
    struct hearth_query query = *run->query;
    struct hearth_buf notes;

    hearth_buf_init(&notes, 64 * 1024);
    query.call.notes = query.call.notes == NULL ? NULL : &notes;
    enum hearth_status status = read_stats_pieces(run, &query, err);
    hearth_call_note_lines(&run->query->call, hearth_buf_view(&notes));
    hearth_buf_release(&notes);

    return status;
}

/*
 * n times the variance is the sum of squares less sum * sum / n. It is split into integers, whose
 * difference is exact, and a rest below 1.
 */
static double find_deviation(const struct value_stat *stat)
{
    u128 n = (u128)stat->out.n_profiles;
    assert(stat->out.n_profiles > 0);
    u128 sum = stat->out.sum < 0 ? -(u128)stat->out.sum : (u128)stat->out.sum;
    u128 square = sum * sum;
    u128 whole = stat->squares - square / n;
    double rest = (double)(square % n) / (double)n;
    double variance = ((double)whole - rest) / (double)n;

    return variance > 0 ? sqrt(variance) : 0;
}

static int compare_label_stats(const void *a, const void *b)
{
    const struct hearth_label_stat *x = a, *y = b;
    if (x->sum != y->sum) {
        return x->sum > y->sum ? -1 : 1;
    }
    return hearth_str_cmp(x->value, y->value);
}

/* Makes the statistics of all values, sorted. */
static enum hearth_status write_label_stats(const struct stats_run *run,
                                            struct hearth_label_stat **ret, size_t *ret_n,
                                            struct hearth_err *err)
{
    struct hearth_arena *arena = run->query->call.arena;
    struct hearth_label_stat *stats = hearth_arena_array(arena, run->grouping.n, sizeof stats[0]);
    if (stats == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Values without a profile in the range are left out. */
    size_t n = 0;
    for (size_t i = 0; i < run->grouping.n; i++) {
        const struct value_stat *stat = &run->now.stats[i];
        if (stat->out.n_profiles > 0) {
            const struct hearth_labels *labels = &run->grouping.labels[i];
            stats[n] = stat->out;
            stats[n].value = labels->n > 0 ? labels->v[0].value : HEARTH_STR("");
            stats[n].mean = (double)stat->out.sum / (double)stat->out.n_profiles;
            stats[n++].deviation = find_deviation(stat);
        }
    }

    if (n > 0) {
        qsort(stats, n, sizeof stats[0], compare_label_stats);
    }

    assert(n <= run->grouping.n);
    *ret = stats;
    *ret_n = n;

    return HEARTH_OK;
}

enum hearth_status hearth_query_label_stats(const struct hearth_query *query,
                                            const struct hearth_label_stats_spec *spec,
                                            struct hearth_label_stat **ret, size_t *ret_n,
                                            int64_t *ret_n_all, struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret != NULL && ret_n != NULL);

    if (spec->label.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "label is required");
    }

    if (spec->limit < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "limit is %lld, which is negative; 0 means all values",
                           (long long)spec->limit);
    }

    struct stats_run run = {.query = query};
    hearth_singles_init(&run.singles, query, &run.grouping);
    enum hearth_status status = select_stat_hits(&run, spec, err);
    if (status == HEARTH_OK) {
        status = read_stats(&run, err);
    }

    if (status == HEARTH_OK) {
        size_t n;
        status = write_label_stats(&run, ret, &n, err);
        if (status == HEARTH_OK) {
            *ret_n_all = (int64_t)n;
            *ret_n = spec->limit > 0 && n > (uint64_t)spec->limit ? (size_t)spec->limit : n;
        }
    }

    hearth_singles_release(&run.singles);
    return status;
}
