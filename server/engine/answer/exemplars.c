/*
 * exemplars.c -- the largest profile behind each point of a time series.
 *
 * The total of one row is a lower bound of the largest profile in a bucket; the sum of all rows of
 * one time and service is an upper bound of a split profile. So only rows whose time and service
 * reach the largest single row are looked up: as a rule one per point.
 */
#include "select/singles.h"

#include <assert.h>

/* ---- missing profiles ---- */

/* Profiles that are missing for another reason, such as a deletion just now, are not noted. */
void hearth_exemplars_note_gone(const struct hearth_singles *singles)
{
    assert(singles != NULL);

    const struct hearth_query *query = singles->query;
    struct hearth_retention keep;

    hearth_call_retention(&query->call, &keep);
    int64_t from_ns = hearth_plan_profiles_from(&keep, hearth_clock_wall_ns());
    for (size_t i = 0; i < singles->n; i++) {
        const struct hearth_single *single = &singles->v[i];
        if (single->wanted && single->writer_id == 0 && single->ts_ns < from_ns) {
            char from[32];
            hearth_call_note(&query->call,
                             "exemplars exist from %s on; earlier profiles have expired "
                             "(retain-raw), so their values have no exemplar",
                             hearth_plan_moment(from_ns, from));
            return;
        }
    }
}

/* ---- labels ---- */

static bool is_group_label(const struct hearth_str *group_by, size_t n, struct hearth_str name)
{
    for (size_t i = 0; i < n; i++) {
        if (hearth_str_eq(group_by[i], name)) {
            return true;
        }
    }

    return false;
}

/*
 * Copies the labels of a hit, without the labels of its group; none if the series was deleted
 * meanwhile.
 */
static enum hearth_status copy_hit_labels(const struct hearth_call_index *index,
                                          const struct hearth_grouping *grouping, uint32_t hit,
                                          struct hearth_labels *ret, struct hearth_err *err)
{
    struct hearth_arena *arena = grouping->arena;
    struct hearth_labels all = {0};
    enum hearth_status status =
        hearth_call_index_labels(index, &grouping->hits[hit], arena, &all, err);
    if (status != HEARTH_OK && status != HEARTH_NOT_FOUND) {
        return status;
    }

    ret->v = hearth_arena_array(arena, all.n + 1, sizeof ret->v[0]);
    ret->n = 0;
    for (size_t i = 0; ret->v != NULL && i < all.n; i++) {
        if (!is_group_label(grouping->group_by, grouping->n_group_by, all.v[i].name)) {
            ret->v[ret->n++] = (struct hearth_label){hearth_arena_str(arena, all.v[i].name),
                                                     hearth_arena_str(arena, all.v[i].value)};
        }
    }

    return ret->v == NULL || arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* The labels that a and b have in common; a and *ret may be the same. */
static enum hearth_status intersect_labels(const struct hearth_labels *a,
                                           const struct hearth_labels *b,
                                           struct hearth_arena *arena, struct hearth_labels *ret,
                                           struct hearth_err *err)
{
    struct hearth_label *v = hearth_arena_array(arena, a->n, sizeof v[0]);
    if (v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        struct hearth_str value = hearth_labels_get(b, a->v[i].name);
        if (value.p != NULL && hearth_str_eq(value, a->v[i].value)) {
            v[n++] = a->v[i];
        }
    }

    *ret = (struct hearth_labels){v, n};
    return HEARTH_OK;
}

/* The labels of a split profile are those that all of its rows have. */
static enum hearth_status fill_exemplar(const struct hearth_exemplar_rows *one,
                                        const struct hearth_labels *of_hit,
                                        struct hearth_arena *arena, struct hearth_err *err)
{
    const struct hearth_single *row = one->rows;

    assert(one->n > 0);
    struct hearth_exemplar *out = one->exemplar;
    out->ts_ms = row->ts_ns / HEARTH_NS_PER_MS - (row->ts_ns % HEARTH_NS_PER_MS < 0);
    out->has_profile = true;
    out->profile = (struct hearth_profile_id){row->writer_id, row->profile_no};
    out->labels = of_hit[row->hit];

    for (size_t i = 1; i < one->n; i++) {
        if (row[i].hit != row[i - 1].hit) {
            HEARTH_TRY(
                intersect_labels(&out->labels, &of_hit[row[i].hit], arena, &out->labels, err));
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_exemplars_fill(const struct hearth_query *query,
                                         const struct hearth_grouping *grouping,
                                         const struct hearth_exemplar_rows *exemplars, size_t n,
                                         struct hearth_err *err)
{
    assert(query != NULL && grouping != NULL);

    struct hearth_arena *arena = query->call.arena;
    struct hearth_labels *of_hit = hearth_arena_calloc(arena, grouping->n_hits, sizeof of_hit[0]);
    if (of_hit == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Labels are copied while the index is locked, once per hit. */
    const struct hearth_call_index *index;
    HEARTH_TRY(hearth_call_index_lock(&query->call, &index, err));
    enum hearth_status status = HEARTH_OK;
    for (size_t i = 0; status == HEARTH_OK && i < n; i++) {
        for (size_t k = 0; status == HEARTH_OK && k < exemplars[i].n; k++) {
            uint32_t hit = exemplars[i].rows[k].hit;
            if (of_hit[hit].v == NULL) {
                status = copy_hit_labels(index, grouping, hit, &of_hit[hit], err);
            }
        }
    }
    hearth_call_index_unlock(index);
    for (size_t i = 0; status == HEARTH_OK && i < n; i++) {
        status = fill_exemplar(&exemplars[i], of_hit, arena, err);
    }

    return status;
}

/* ---- exemplars of a time series ---- */

/* The number of rows from i on that are in the group and bucket of v[i]. */
static size_t count_bucket_rows(const struct hearth_singles *singles,
                                const struct hearth_buckets *buckets, size_t i)
{
    int64_t b = hearth_bucket_number(buckets, singles->v[i].ts_ns);
    int64_t end_ns = hearth_bucket_end_ns(buckets, b);
    size_t n = 1;

    while (i + n < singles->n && singles->v[i + n].group == singles->v[i].group &&
           singles->v[i + n].ts_ns < end_ns) {
        n++;
    }

    return n;
}

/* Marks rows of a bucket whose profile must be identified to find the largest profile. */
static void mark_bucket_candidates(struct hearth_singles *singles, size_t from, size_t n)
{
    int64_t largest = INT64_MIN, sum;
    bool found = false;

    for (size_t i = from; i < from + n; i++) {
        largest = singles->v[i].value > largest ? singles->v[i].value : largest;
    }

    for (size_t i = from; i < from + n;) {
        size_t n_rows = hearth_singles_moment(singles, i, &sum);
        /* The first of several equally large single rows is enough. */
        bool is_candidate = n_rows == 1 ? sum == largest && !found : sum >= largest;
        found = found || (n_rows == 1 && is_candidate);
        for (size_t k = 0; k < n_rows; k++) {
            singles->v[i + k].wanted = is_candidate && singles->v[i + k].writer_id == 0;
        }
        i += n_rows;
    }
}

/* Sets the largest identified profile of a bucket. */
static void pick_bucket_winner(const struct hearth_singles *singles, size_t from, size_t n,
                               struct hearth_exemplar_rows *ret)
{
    for (size_t i = from; i < from + n;) {
        int64_t sum;
        size_t n_rows = hearth_singles_profile(singles, i, &sum);
        if (singles->v[i].writer_id != 0 && (ret->n == 0 || sum > ret->exemplar->value)) {
            ret->rows = &singles->v[i];
            ret->n = n_rows;
            ret->exemplar->value = sum;
        }
        i += n_rows;
    }
}

/*
 * Visits each bucket of the series in the answer: without winners to mark candidates, then to
 * pick_bucket_winner winners.
 */
static void visit_buckets(struct hearth_singles *singles,
                          const struct hearth_exemplar_target *target,
                          struct hearth_exemplar_rows *winners, size_t *n_winners)
{
    const struct hearth_buckets *buckets = target->buckets;
    size_t at = 0, point = 0;

    for (size_t i = 0, n = 0; i < singles->n; i += n) {
        n = count_bucket_rows(singles, buckets, i);
        size_t s = target->series_of_group[singles->v[i].group];
        if (i == 0 || singles->v[i].group != singles->v[i - 1].group) {
            at = s;
            point = 0;
        }

        /* A bucket without a series in the answer is skipped. */
        int64_t b = hearth_bucket_number(buckets, singles->v[i].ts_ns);
        if (at >= target->n_series || b >= buckets->n) {
            continue;
        }
        if (winners == NULL) {
            mark_bucket_candidates(singles, i, n);
            continue;
        }

        /* Points of a series ascend, as do the rows of its group. */
        int64_t ts_ms = buckets->start_ms + b * buckets->step_ms;
        const struct hearth_timeseries *series = &target->series[at];
        while (point < series->n_points && series->points[point].ts_ms < ts_ms) {
            point++;
        }
        if (point < series->n_points && series->points[point].ts_ms == ts_ms) {
            struct hearth_exemplar_rows *winner = &winners[*n_winners];
            *winner = (struct hearth_exemplar_rows){.exemplar = &series->exemplars[point]};
            pick_bucket_winner(singles, i, n, winner);
            *n_winners += winner->n > 0;
        }
    }
}

enum hearth_status hearth_exemplars_of_series(struct hearth_singles *singles,
                                              const struct hearth_exemplar_target *target,
                                              struct hearth_err *err)
{
    assert(singles != NULL && target != NULL);

    struct hearth_arena *arena = singles->query->call.arena;
    struct hearth_timeseries *series = target->series;
    size_t n_points = 0, n_winners = 0;

    for (size_t s = 0; s < target->n_series; s++) {
        series[s].exemplars =
            hearth_arena_calloc(arena, series[s].n_points, sizeof series[s].exemplars[0]);
        n_points += series[s].n_points;
        if (series[s].exemplars == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    struct hearth_exemplar_rows *winners = hearth_arena_array(arena, n_points, sizeof winners[0]);
    if (winners == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Mark candidates, look them up, pick_bucket_winner the largest profile of each point. */
    hearth_singles_sort(singles);
    visit_buckets(singles, target, NULL, NULL);
    HEARTH_TRY(hearth_singles_identify(singles, target->selection, err));
    hearth_exemplars_note_gone(singles);
    hearth_singles_settle(singles);
    visit_buckets(singles, target, winners, &n_winners);

    assert(n_winners <= n_points);
    return hearth_exemplars_fill(singles->query, singles->grouping, winners, n_winners, err);
}
