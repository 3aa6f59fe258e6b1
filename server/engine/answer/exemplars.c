/*
 * exemplars.c -- the largest profile behind each point of a time series.
 *
 * The total of one row bounds the winner of a bucket from below; what all rows of one moment and
 * service come to bounds a split profile from above. So only moments that reach the largest single
 * row are looked up: as a rule one per point.
 */
#include "select/singles.h"

/* ---- what is not there ---- */

/* A profile that went for another reason, deleted just now say, is older than nothing. */
void hearth_exemplars_note_gone(const struct hearth_singles *singles)
{
    const struct hearth_query *query = singles->query;
    struct hearth_retention keep;
    hearth_store_retention(query->call.engine->store, query->call.tenant, &keep);
    int64_t from_ns = hearth_plan_profiles_from(&keep, hearth_clock_wall_ns());
    for (size_t i = 0; i < singles->n; i++) {
        const struct hearth_single *single = &singles->v[i];
        if (single->wanted && single->writer_id == 0 && single->ts_ns < from_ns) {
            char from[32];
            hearth_call_note(&query->call,
                             "there are exemplars from %s on: profiles before are gone "
                             "(retain-raw), and their values have none",
                             hearth_plan_moment(from_ns, from));
            return;
        }
    }
}

/* ---- labels ---- */

static bool is_grouped_by(const struct hearth_str *group_by, size_t n, struct hearth_str name)
{
    for (size_t i = 0; i < n; i++) {
        if (hearth_str_eq(group_by[i], name)) {
            return true;
        }
    }
    return false;
}

/* The labels of a hit without those grouped by, copied; none if the series has gone meanwhile. */
static enum hearth_status copy_labels(const struct hearth_label_index *index,
                                      const struct hearth_series_hit *hit,
                                      const struct hearth_str *group_by, size_t n_group_by,
                                      struct hearth_arena *arena, struct hearth_labels *ret,
                                      struct hearth_err *err)
{
    struct hearth_labels all = {0};
    enum hearth_status status = hearth_label_index_labels(index, hit, arena, &all, err);
    if (status != HEARTH_OK && status != HEARTH_NOT_FOUND) {
        return status;
    }
    ret->v = hearth_arena_array(arena, all.n + 1, sizeof ret->v[0]);
    ret->n = 0;
    for (size_t i = 0; ret->v != NULL && i < all.n; i++) {
        if (!is_grouped_by(group_by, n_group_by, all.v[i].name)) {
            ret->v[ret->n++] = (struct hearth_label){hearth_arena_str(arena, all.v[i].name),
                                                     hearth_arena_str(arena, all.v[i].value)};
        }
    }
    return ret->v == NULL || arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* What a and b both say; a and *ret may be one. */
static enum hearth_status intersect(const struct hearth_labels *a, const struct hearth_labels *b,
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

static enum hearth_status fill_one(const struct hearth_exemplar_rows *one,
                                   const struct hearth_labels *of_hit, struct hearth_arena *arena,
                                   struct hearth_err *err)
{
    const struct hearth_single *row = one->rows;
    struct hearth_exemplar *out = one->exemplar;
    out->ts_ms = row->ts_ns / HEARTH_NS_PER_MS - (row->ts_ns % HEARTH_NS_PER_MS < 0);
    out->has_profile = true;
    out->profile = (struct hearth_profile_id){row->writer_id, row->profile_no};
    out->labels = of_hit[row->hit];
    for (size_t i = 1; i < one->n; i++) {
        if (row[i].hit != row[i - 1].hit) {
            HEARTH_TRY(intersect(&out->labels, &of_hit[row[i].hit], arena, &out->labels, err));
        }
    }
    return HEARTH_OK;
}

enum hearth_status hearth_exemplars_fill(const struct hearth_query *query,
                                         const struct hearth_grouping *grouping,
                                         const struct hearth_str *group_by, size_t n_group_by,
                                         const struct hearth_exemplar_rows *exemplars, size_t n,
                                         struct hearth_err *err)
{
    struct hearth_arena *arena = query->call.arena;
    struct hearth_labels *of_hit = hearth_arena_calloc(arena, grouping->n_hits, sizeof of_hit[0]);
    if (of_hit == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    const struct hearth_label_index *index;
    struct hearth_store *store = query->call.engine->store;
    HEARTH_TRY(hearth_call_lock_index(&query->call, &index, err));
    enum hearth_status status = HEARTH_OK;
    for (size_t i = 0; status == HEARTH_OK && i < n; i++) {
        for (size_t k = 0; status == HEARTH_OK && k < exemplars[i].n; k++) {
            uint32_t hit = exemplars[i].rows[k].hit;
            if (of_hit[hit].v == NULL) {
                status = copy_labels(index, &grouping->hits[hit], group_by, n_group_by, arena,
                                     &of_hit[hit], err);
            }
        }
    }
    hearth_store_index_unlock(store, index);
    for (size_t i = 0; status == HEARTH_OK && i < n; i++) {
        status = fill_one(&exemplars[i], of_hit, arena, err);
    }
    return status;
}

/* ---- of a time series ---- */

/* From i on: how many are of one group and bucket. */
static size_t count_in_bucket(const struct hearth_singles *singles,
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

/* Ask who they are, where that can decide. */
static void mark_candidates(struct hearth_singles *singles, size_t from, size_t n)
{
    int64_t largest = INT64_MIN, sum;
    bool found = false;
    for (size_t i = from; i < from + n; i++) {
        largest = singles->v[i].value > largest ? singles->v[i].value : largest;
    }
    for (size_t i = from; i < from + n;) {
        size_t n_rows = hearth_singles_moment(singles, i, &sum);
        /* Of single rows that are equally large the first will do. */
        bool is_candidate = n_rows == 1 ? sum == largest && !found : sum >= largest;
        found = found || (n_rows == 1 && is_candidate);
        for (size_t k = 0; k < n_rows; k++) {
            singles->v[i + k].wanted = is_candidate && singles->v[i + k].writer_id == 0;
        }
        i += n_rows;
    }
}

static void pick(const struct hearth_singles *singles, size_t from, size_t n,
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

/* Visit each bucket of the series in the answer: to ask, then, with winners, to pick. */
static void for_each_bucket(struct hearth_singles *singles, const struct hearth_buckets *buckets,
                            const size_t *series_of_group, struct hearth_timeseries *series,
                            size_t n_series, struct hearth_exemplar_rows *winners,
                            size_t *n_winners)
{
    size_t at = 0, point = 0;
    for (size_t i = 0, n = 0; i < singles->n; i += n) {
        n = count_in_bucket(singles, buckets, i);
        size_t s = series_of_group[singles->v[i].group];
        if (i == 0 || singles->v[i].group != singles->v[i - 1].group) {
            at = s;
            point = 0;
        }
        int64_t b = hearth_bucket_number(buckets, singles->v[i].ts_ns);
        if (at >= n_series || b >= buckets->n) {
            continue;
        }
        if (winners == NULL) {
            mark_candidates(singles, i, n);
            continue;
        }
        int64_t ts_ms = buckets->start_ms + b * buckets->step_ms;
        while (point < series[at].n_points && series[at].points[point].ts_ms < ts_ms) {
            point++;
        }
        if (point < series[at].n_points && series[at].points[point].ts_ms == ts_ms) {
            struct hearth_exemplar_rows *winner = &winners[*n_winners];
            *winner = (struct hearth_exemplar_rows){.exemplar = &series[at].exemplars[point]};
            pick(singles, i, n, winner);
            *n_winners += winner->n > 0;
        }
    }
}

enum hearth_status hearth_exemplars_of_series(struct hearth_singles *singles,
                                              const struct hearth_selection *selection,
                                              const struct hearth_buckets *buckets,
                                              const struct hearth_timeseries_spec *spec,
                                              const size_t *series_of_group,
                                              struct hearth_timeseries *series, size_t n_series,
                                              struct hearth_err *err)
{
    struct hearth_arena *arena = singles->query->call.arena;
    size_t n_points = 0, n_winners = 0;
    for (size_t s = 0; s < n_series; s++) {
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
    hearth_singles_sort(singles);
    for_each_bucket(singles, buckets, series_of_group, series, n_series, NULL, NULL);
    HEARTH_TRY(hearth_singles_identify(singles, selection, err));
    hearth_exemplars_note_gone(singles);
    hearth_singles_settle(singles);
    for_each_bucket(singles, buckets, series_of_group, series, n_series, winners, &n_winners);
    return hearth_exemplars_fill(singles->query, singles->grouping, spec->group_by,
                                 spec->n_group_by, winners, n_winners, err);
}
