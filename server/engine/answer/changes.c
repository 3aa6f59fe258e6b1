/*
 * changes.c -- what changed beyond noise in any service: diffs of each service with itself, whose
 * functions are judged together.
 *
 * Totals by service are read first, which is cheap: they tell which services can be compared, and
 * which of them cost the most. Every diff has memory of its own, which is free before the next one.
 */
#include "hearth/selector/selector.h"

#include "select/plan_internal.h"
#include "select/planned.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* A service and a profile type. */
struct compared_pair {
    struct hearth_str service, type, unit;
    bool is_gauge;
    int64_t totals[2];
    double part;        /* of the totals of the type, the larger one of both sides */
    double right_total; /* of the type */
};

struct changes_run {
    const struct hearth_query *queries[2]; /* without notes, and with the arena of the answer */
    const struct hearth_changes_spec *spec;
    struct hearth_arena *arena;
    struct compared_pair *pairs;
    size_t n_pairs, cap_pairs;
    /* A row for each judged function, which has a name only if it can be a change. */
    struct hearth_service_change *rows;
    size_t n_rows, cap_rows;
    struct hearth_changes *ret;
};

/* ---- pairs ---- */

static struct hearth_str service_of(const struct hearth_timeseries *series)
{
    return hearth_labels_get(&series->labels, HEARTH_STR(HEARTH_LABEL_SERVICE));
}

static int compare_series_service(const void *left, const void *right)
{
    return hearth_str_cmp(service_of(left), service_of(right));
}

/* The total of each service on a side, sorted by service. One point is the whole range. */
static enum hearth_status read_service_totals(const struct changes_run *run, size_t side,
                                              struct hearth_str type,
                                              struct hearth_timeseries **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    const struct hearth_str service = HEARTH_STR(HEARTH_LABEL_SERVICE);
    struct hearth_query query = *run->queries[side];
    const struct hearth_timeseries_spec spec = {
        .profile_type = type,
        .selector = run->spec->selector,
        .group_by = &service,
        .n_group_by = 1,
        .step_seconds = ((double)query.end_ms - (double)query.start_ms + 1) / 1000.0,
    };

    query.start_ms = query.end_ms;
    hearth_plan_begin(&query, HEARTH_STEP_TOTALS, side == 0);
    HEARTH_TRY(hearth_query_timeseries(&query, &spec, ret, ret_n, err));
    if (*ret_n > 0) {
        qsort(*ret, *ret_n, sizeof(*ret)[0], compare_series_service);
    }

    return HEARTH_OK;
}

static double sum_totals(const struct hearth_timeseries *series, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        sum += (double)series[i].total;
    }

    return sum;
}

static enum hearth_status add_pair(struct changes_run *run, struct hearth_str type,
                                   const struct hearth_timeseries *left,
                                   const struct hearth_timeseries *right, const double sums[2],
                                   struct hearth_err *err)
{
    struct hearth_profile_type parts;

    if (left->total <= 0 || right->total <= 0) {
        run->ret->n_one_sided += left->total > 0 || right->total > 0;
        return HEARTH_OK;
    }
    HEARTH_TRY(hearth_profile_type_parse(type, &parts, err));
    if (!hearth_arena_grow(run->arena, &run->pairs, &run->cap_pairs, run->n_pairs + 1,
                           sizeof run->pairs[0])) {
        return HEARTH_FAIL_ARENA(err, run->arena);
    }

    run->pairs[run->n_pairs++] = (struct compared_pair){
        .service = service_of(right),
        .type = type,
        .unit = parts.sample_unit,
        .is_gauge = hearth_profile_type_is_gauge(&parts),
        .totals = {left->total, right->total},
        .part = fmax((double)left->total / sums[0], (double)right->total / sums[1]),
        .right_total = sums[1],
    };
    return HEARTH_OK;
}

/* The plan of the diffs of all services: those that are compared read a part of it, or all. */
static enum hearth_status plan_diffs_of_type(const struct changes_run *run, struct hearth_str type,
                                             struct hearth_err *err)
{
    const struct hearth_merge_spec spec = {
        .profile_type = type, .selector = run->spec->selector, .mean = run->spec->mean};
    struct hearth_diff_noise noise;
    struct hearth_flame_diff graph;

    return hearth_query_diff(run->queries[0], &spec, run->queries[1], &spec, &noise, &graph, err);
}

/* Adds the services that have data of a type on both sides, and counts the others. */
static enum hearth_status add_pairs_of_type(struct changes_run *run, struct hearth_str type,
                                            struct hearth_err *err)
{
    struct hearth_timeseries *sides[2] = {NULL, NULL};
    size_t n[2], at[2] = {0, 0};
    double sums[2];

    for (size_t s = 0; s < 2; s++) {
        HEARTH_TRY(read_service_totals(run, s, type, &sides[s], &n[s], err));
        sums[s] = sum_totals(sides[s], n[s]);
    }
    if (run->queries[0]->plan != NULL) {
        return plan_diffs_of_type(run, type, err);
    }

    while (at[0] < n[0] && at[1] < n[1]) {
        const struct hearth_timeseries *left = &sides[0][at[0]], *right = &sides[1][at[1]];
        int order = compare_series_service(left, right);
        if (order == 0) {
            HEARTH_TRY(add_pair(run, type, left, right, sums, err));
        }
        run->ret->n_one_sided += order != 0;
        at[0] += order <= 0;
        at[1] += order >= 0;
    }

    run->ret->n_one_sided += (int64_t)(n[0] - at[0] + n[1] - at[1]);
    return HEARTH_OK;
}

static int compare_pair_parts(const void *left, const void *right)
{
    const struct compared_pair *a = left, *b = right;

    if (a->part != b->part) {
        return (a->part < b->part) - (a->part > b->part);
    }

    int order = hearth_str_cmp(a->type, b->type);
    return order != 0 ? order : hearth_str_cmp(a->service, b->service);
}

/* Finds all pairs, and keeps the largest ones. */
static enum hearth_status choose_pairs(struct changes_run *run, struct hearth_err *err)
{
    struct hearth_str *types = NULL;
    size_t n_types = 0;
    struct hearth_limits limits;

    if (run->spec->profile_type.n > 0) {
        HEARTH_TRY(add_pairs_of_type(run, run->spec->profile_type, err));
    } else {
        HEARTH_TRY(hearth_query_profile_types(run->queries[1], &types, &n_types, err));
    }
    for (size_t i = 0; i < n_types; i++) {
        HEARTH_TRY(add_pairs_of_type(run, types[i], err));
    }

    if (run->n_pairs > 0) {
        qsort(run->pairs, run->n_pairs, sizeof run->pairs[0], compare_pair_parts);
    }
    hearth_call_limits(&run->queries[1]->call, &limits);
    if (limits.max_compared_pairs > 0 && (uint64_t)limits.max_compared_pairs < run->n_pairs) {
        run->ret->n_left_out = (int64_t)run->n_pairs - limits.max_compared_pairs;
        run->n_pairs = (size_t)limits.max_compared_pairs;
    }
    run->ret->n_compared = (int64_t)run->n_pairs;

    return HEARTH_OK;
}

/* ---- comparing ---- */

/* The selector of the request, narrowed to a service. */
static enum hearth_status narrow_selector(const struct changes_run *run,
                                          const struct compared_pair *pair,
                                          struct hearth_arena *scratch, struct hearth_str *ret,
                                          struct hearth_err *err)
{
    struct hearth_selector selector;
    struct hearth_buf text;

    hearth_selector_init(&selector);
    hearth_buf_init(&text, 0);
    enum hearth_status status =
        hearth_selector_parse(&selector, run->spec->selector, scratch, NULL, err);
    if (status == HEARTH_OK) {
        status = hearth_selector_add(&selector, HEARTH_STR(HEARTH_LABEL_SERVICE), HEARTH_MATCH_EQ,
                                     pair->service, scratch, err);
    }
    if (status == HEARTH_OK) {
        hearth_selector_format(&selector, &text);
        *ret = hearth_arena_str(scratch, hearth_buf_view(&text));
        status = hearth_buf_failed(&text) || ret->p == NULL ? HEARTH_FAIL_ARENA(err, scratch)
                                                            : HEARTH_OK;
    }

    hearth_buf_release(&text);
    hearth_selector_release(&selector);
    return status;
}

static int compare_changed_names(const void *left, const void *right)
{
    const struct hearth_function_change *a = left, *b = right;
    return hearth_str_cmp(a->name, b->name);
}

/* Adds a judged function; self or total may be NULL. It needs no name if both p are too large. */
static void add_function(struct changes_run *run, const struct compared_pair *pair,
                         const struct hearth_function_change *self,
                         const struct hearth_function_change *total)
{
    const struct hearth_function_change unjudged = {.share = {.p = 1, .q = 1}};
    struct hearth_service_change *row = &run->rows[run->n_rows++];

    *row = (struct hearth_service_change){
        .service = pair->service,
        .profile_type = pair->type,
        .unit = pair->unit,
        .totals = {pair->totals[0], pair->totals[1]},
        .self = self == NULL ? unjudged : *self,
        .total = total == NULL ? unjudged : *total,
        .cost = (double)pair->totals[1] / pair->right_total, /* of a change of 1 */
    };
    bool may_be_change = fmin(row->self.share.p, row->total.share.p) <= HEARTH_NOISE_Q;
    struct hearth_str name = self == NULL ? total->name : self->name;
    row->self.name = row->total.name =
        may_be_change ? hearth_arena_str(run->arena, name) : HEARTH_STR("");
}

/* Adds the judged functions of a pair: those of its selfs and totals, joined by name. */
static enum hearth_status add_functions(struct changes_run *run, const struct compared_pair *pair,
                                        const struct hearth_diff_noise *noise,
                                        struct hearth_err *err)
{
    struct hearth_function_change *selfs = noise->functions, *totals = noise->function_totals;
    size_t n_selfs = noise->n_functions, n_totals = noise->n_function_totals, s = 0, t = 0;

    if (!hearth_arena_grow(run->arena, &run->rows, &run->cap_rows, run->n_rows + n_selfs + n_totals,
                           sizeof run->rows[0])) {
        return HEARTH_FAIL_ARENA(err, run->arena);
    }
    if (n_selfs > 0) {
        qsort(selfs, n_selfs, sizeof selfs[0], compare_changed_names);
    }
    if (n_totals > 0) {
        qsort(totals, n_totals, sizeof totals[0], compare_changed_names);
    }

    while (s < n_selfs || t < n_totals) {
        int order = s == n_selfs    ? 1
                    : t == n_totals ? -1
                                    : compare_changed_names(&selfs[s], &totals[t]);
        add_function(run, pair, order <= 0 ? &selfs[s] : NULL, order >= 0 ? &totals[t] : NULL);
        s += order <= 0;
        t += order >= 0;
    }

    return run->arena->refused ? HEARTH_FAIL_ARENA(err, run->arena) : HEARTH_OK;
}

/* Compares a pair; the answer is in `scratch`. */
static enum hearth_status diff_pair(struct changes_run *run, const struct compared_pair *pair,
                                    struct hearth_arena *scratch, struct hearth_diff_noise *ret,
                                    struct hearth_err *err)
{
    struct hearth_query sides[2] = {*run->queries[0], *run->queries[1]};
    struct hearth_flame_diff graph;
    struct hearth_merge_spec spec = {
        .profile_type = pair->type,
        .mean = run->spec->mean && pair->is_gauge,
        .has_max_nodes = true,
        .max_nodes = 1, /* only functions are shown */
    };

    HEARTH_TRY(narrow_selector(run, pair, scratch, &spec.selector, err));
    for (size_t s = 0; s < 2; s++) {
        sides[s].call.arena = scratch;
    }

    return hearth_query_diff(&sides[0], &spec, &sides[1], &spec, ret, &graph, err);
}

static enum hearth_status compare_pair(struct changes_run *run, const struct compared_pair *pair,
                                       struct hearth_err *err)
{
    struct hearth_arena scratch;
    struct hearth_diff_noise noise;

    hearth_arena_init_like(&scratch, run->arena);
    enum hearth_status status = diff_pair(run, pair, &scratch, &noise, err);
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "%.*s", (int)pair->service.n, pair->service.p);
    } else if (noise.method == HEARTH_NOISE_PARTS) {
        status = add_functions(run, pair, &noise, err);
    } else {
        run->ret->n_unjudged++;
    }

    hearth_arena_release(&scratch);
    return status;
}

/* ---- the answer ---- */

/* Equal costs: changes of selfs first, because the callers of such a function cost as much more. */
static int compare_costs(const void *left, const void *right)
{
    const struct hearth_service_change *a = left, *b = right;
    double x = fabs(a->cost), y = fabs(b->cost);

    if (x != y) {
        return (x < y) - (x > y);
    }

    return a->of_total != b->of_total ? a->of_total - b->of_total
                                      : hearth_str_cmp(a->self.name, b->self.name);
}

static struct hearth_function_change *change_of(struct hearth_service_change *row, bool of_total)
{
    return of_total ? &row->total : &row->self;
}

/* Judged ones have a share of a side. */
static bool is_judged(const struct hearth_function_change *change)
{
    return change->values[0] > 0 || change->values[1] > 0;
}

/* Ranks the selfs, or the totals, of all services together. */
static enum hearth_status rank_family(struct changes_run *run, bool of_totals,
                                      int64_t *ret_n_judged, struct hearth_err *err)
{
    struct hearth_change *all = hearth_arena_array(run->arena, run->n_rows, sizeof all[0]);
    size_t n = 0;

    if (all == NULL) {
        return HEARTH_FAIL_ARENA(err, run->arena);
    }
    for (size_t i = 0; i < run->n_rows; i++) {
        const struct hearth_function_change *change = change_of(&run->rows[i], of_totals);
        if (is_judged(change)) {
            all[n++] = change->share;
        }
    }
    HEARTH_TRY(hearth_noise_rank(all, n, run->arena, err));

    *ret_n_judged = (int64_t)n;
    n = 0;
    for (size_t i = 0; i < run->n_rows; i++) {
        struct hearth_function_change *change = change_of(&run->rows[i], of_totals);
        if (is_judged(change)) {
            change->share = all[n++];
        }
    }

    return HEARTH_OK;
}

/* Chooses whether a row is about the self or the total, by what costs more. False: neither is. */
static bool choose_changed(struct hearth_service_change *row)
{
    bool self = row->self.share.q <= HEARTH_NOISE_Q, total = row->total.share.q <= HEARTH_NOISE_Q;

    row->of_total =
        total && (!self || fabs(row->total.share.change) > fabs(row->self.share.change));
    row->cost *= change_of(row, row->of_total)->share.change;

    return self || total;
}

/* Judges all functions together, and keeps the changes. */
static enum hearth_status keep_changes(struct changes_run *run, struct hearth_err *err)
{
    size_t n = 0;

    HEARTH_TRY(rank_family(run, false, &run->ret->n_judged, err));
    HEARTH_TRY(rank_family(run, true, &run->ret->n_judged_totals, err));
    for (size_t i = 0; i < run->n_rows; i++) {
        if (choose_changed(&run->rows[i])) {
            run->rows[n++] = run->rows[i];
        }
    }
    if (n > 0) {
        qsort(run->rows, n, sizeof run->rows[0], compare_costs);
    }
    run->ret->n_changed = (int64_t)n;
    run->ret->rows = run->rows;
    run->ret->n_rows =
        run->spec->limit > 0 && (uint64_t)run->spec->limit < n ? (size_t)run->spec->limit : n;

    return HEARTH_OK;
}

/* Checks what the first query would find wrong, which may not run. */
static enum hearth_status check_changes_spec(const struct changes_run *run, struct hearth_err *err)
{
    struct hearth_selector selector;
    struct hearth_profile_type type;

    if (run->spec->profile_type.n > 0) {
        HEARTH_TRY(hearth_profile_type_parse(run->spec->profile_type, &type, err));
    }

    hearth_selector_init(&selector);
    enum hearth_status status =
        hearth_selector_parse(&selector, run->spec->selector, run->arena, NULL, err);
    hearth_selector_release(&selector);
    return status;
}

enum hearth_status hearth_query_changes(const struct hearth_query *left,
                                        const struct hearth_query *right,
                                        const struct hearth_changes_spec *spec,
                                        struct hearth_changes *ret, struct hearth_err *err)
{
    struct hearth_query quiet[2] = {*left, *right};
    struct hearth_range ranges[2];
    struct changes_run run = {
        .queries = {&quiet[0], &quiet[1]}, .spec = spec, .arena = left->call.arena, .ret = ret};

    assert(left->call.arena == right->call.arena);
    *ret = (struct hearth_changes){0};

    HEARTH_TRY(check_changes_spec(&run, err));

    /* What is said of a range is said once, not for each service. */
    HEARTH_TRY(hearth_query_range(left, &ranges[0], err));
    HEARTH_TRY(hearth_query_range(right, &ranges[1], err));
    for (size_t s = 0; s < 2; s++) {
        if (ranges[s].empty) {
            return HEARTH_OK;
        }
        quiet[s].call.notes = NULL;
        quiet[s].start_ms = ranges[s].from_ns / HEARTH_NS_PER_MS;
        quiet[s].end_ms = ranges[s].to_ns / HEARTH_NS_PER_MS;
    }

    HEARTH_TRY(choose_pairs(&run, err));
    for (size_t i = 0; i < run.n_pairs; i++) {
        HEARTH_TRY(compare_pair(&run, &run.pairs[i], err));
    }

    return keep_changes(&run, err);
}
