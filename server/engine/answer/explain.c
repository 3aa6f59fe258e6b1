/*
 * explain_selection.c -- the plan of a query, the amount that it would read, and how long that
 * takes.
 *
 * Times are estimated from the cost of reading and merging a row and a stored byte of each kind,
 * with warm caches, on the machine of docs/benchmarks.md (2 cores; the database's and the server's
 * time together). They tell which of two queries costs more, and by how much; on another machine
 * the scale differs.
 */
#include "select/planned.h"
#include "select/stack_filter.h"

#include <assert.h>

/* Cost of a query without rows: index, state, statement, loaded dictionaries, a small answer. */
#define FIXED_MS 1.0
/* Cost of planning a branch in PostgreSQL, for each partition that it may read. */
#define LEG_MS 0.1

struct row_price {
    double us_per_row, ns_per_byte;
};

static const struct row_price MERGE_PRICES[HEARTH_N_SOURCES] = {
    [HEARTH_SOURCE_PROFILE] = {1.2, 1.2}, /* 860 bytes: 2.2 us */
    [HEARTH_SOURCE_LATE] = {1.2, 1.2},    /* the same columns */
    [HEARTH_SOURCE_SEGMENT] = {50, 4.5},  /* 600 bytes of one: 2.5 us */
    [HEARTH_SOURCE_TOTALS] = {2, 4},      /* 240 profiles in 1 KB: 5 us */
    [HEARTH_SOURCE_ROLL_10M] = {10, 6},   /* 5 KB, 8,000 stacks: 40 us */
    [HEARTH_SOURCE_ROLL_1H] = {10, 6},    /* 11 KB, 16,000 stacks: 80 us */
    [HEARTH_SOURCE_ROLL_1D] = {10, 6},    /* 22 KB, 20,000 stacks: 140 us */
};
/* For totals of single profiles, only the index is read. */
#define TOTAL_ROW_US    1.0
#define TOTAL_ROW_BYTES 8

static bool is_service_leg(const struct hearth_read_leg *leg)
{
    return leg->n_hits > 0 && leg->hits[0].series_id < 0;
}

/*
 * The number of API series that a leg covers: for whole services, all selected series of its
 * shapes.
 */
static int64_t count_leg_series(const struct hearth_read_leg *leg,
                                const struct hearth_selection *selection)
{
    if (!is_service_leg(leg)) {
        return (int64_t)leg->n_hits;
    }

    int64_t n = 0;
    size_t of_service = 0; /* the leg's first hit of the current service */
    for (size_t i = 0; i < selection->n_hits; i++) {
        const struct hearth_series_hit *hit = &selection->hits[i];
        while (of_service < leg->n_hits && leg->hits[of_service].service_id < hit->service_id) {
            of_service++;
        }
        for (size_t l = of_service; l < leg->n_hits && leg->hits[l].service_id == hit->service_id;
             l++) {
            n += leg->hits[l].series_id == -hit->shape_id && leg->hits[l].column == hit->column;
        }
    }

    return n;
}

static void explain_leg(const struct hearth_selection *selection, const struct hearth_read_leg *leg,
                        const struct hearth_leg_cost *cost, struct hearth_explained_leg *ret)
{
    *ret = (struct hearth_explained_leg){
        .source = leg->source,
        .whole_service = is_service_leg(leg),
        .from_ns = leg->from_ns,
        .to_ns = leg->to_ns,
        .n_series = count_leg_series(leg, selection),
        .n_rows = cost->n_rows,
        .n_bytes = cost->n_bytes,
    };
    for (size_t i = 0; i < leg->n_hits; i++) {
        ret->n_services += i == 0 || leg->hits[i].service_id != leg->hits[i - 1].service_id;
    }

    struct row_price price = MERGE_PRICES[leg->source];
    bool index_only = selection->totals && !selection->rows &&
                      (leg->source == HEARTH_SOURCE_PROFILE || leg->source == HEARTH_SOURCE_LATE);
    if (index_only) {
        ret->n_bytes = cost->n_rows * TOTAL_ROW_BYTES;
        price = (struct row_price){TOTAL_ROW_US, 0};
    }

    ret->ms = LEG_MS + (double)ret->n_rows * price.us_per_row / 1e3 +
              (double)ret->n_bytes * price.ns_per_byte / 1e6;
}

/* Splits lines into texts, in the query's arena. */
static enum hearth_status split_notes(const struct hearth_query *query, struct hearth_str text,
                                      struct hearth_explanation *ret, struct hearth_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        n += text.p[i] == '\n';
    }

    struct hearth_str copy = hearth_arena_str(query->call.arena, text);
    ret->notes = hearth_arena_array(query->call.arena, n, sizeof ret->notes[0]);
    if (copy.p == NULL || ret->notes == NULL) {
        return HEARTH_FAIL_ARENA(err, query->call.arena);
    }

    size_t from = 0;
    for (size_t i = 0; i < copy.n; i++) {
        if (copy.p[i] == '\n') {
            ret->notes[ret->n_notes++] = hearth_str_n(copy.p + from, i - from);
            from = i + 1;
        }
    }

    return HEARTH_OK;
}

/* Makes one plan and counts what it would read. Errors: ABORTED if background work interfered. */
static enum hearth_status explain_once(const struct hearth_query *query,
                                       const struct hearth_selection *selection,
                                       struct hearth_explanation *ret, struct hearth_buf *notes,
                                       struct hearth_err *err)
{
    struct hearth_arena *arena = query->call.arena;
    struct hearth_read_plan plan;

    HEARTH_TRY(hearth_selection_plan(query, selection, arena, &plan, notes, err));
    plan.detail = selection->detail;
    struct hearth_leg_cost *costs = hearth_arena_array(arena, plan.n_legs, sizeof costs[0]);
    ret->legs = hearth_arena_array(arena, plan.n_legs, sizeof ret->legs[0]);
    if (costs == NULL || ret->legs == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(hearth_store_read_cost(HEARTH_CALL_SCOPE(&query->call), &plan, costs, err));

    ret->n_legs = plan.n_legs;
    ret->ms = FIXED_MS;
    for (size_t i = 0; i < plan.n_legs; i++) {
        explain_leg(selection, &plan.legs[i], &costs[i], &ret->legs[i]);
        ret->n_rows += ret->legs[i].n_rows;
        ret->n_bytes += ret->legs[i].n_bytes;
        ret->ms += ret->legs[i].ms;
    }

    return split_notes(query, hearth_buf_view(notes), ret, err);
}

/* Plans until background work does not interfere. */
enum hearth_status hearth_selection_explain(const struct hearth_query *query,
                                            const struct hearth_selection *selection,
                                            struct hearth_explanation *ret, struct hearth_err *err)
{
    assert(query->call.notes != NULL && selection != NULL && ret != NULL);

    struct hearth_str of_range = hearth_buf_view(query->call.notes); /* lines */
    struct hearth_buf notes;

    hearth_buf_init(&notes, 0);
    enum hearth_status status = HEARTH_ABORTED;
    for (int i = 0; i < HEARTH_PLAN_ATTEMPTS && status == HEARTH_ABORTED; i++) {
        *ret = (struct hearth_explanation){.from_ns = selection->from_ns,
                                           .to_ns = selection->to_ns,
                                           .n_services = (int64_t)selection->n_services,
                                           .n_series = (int64_t)selection->n_hits};
        hearth_buf_reset(&notes);
        hearth_buf_str(&notes, of_range);
        status = selection->n_hits == 0 ? split_notes(query, of_range, ret, err)
                                        : explain_once(query, selection, ret, &notes, err);
    }

    hearth_buf_release(&notes);
    if (status == HEARTH_ABORTED) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "background work interfered with this query %d times: retry",
                           HEARTH_PLAN_ATTEMPTS);
    }

    return status;
}

/* ---- kinds of queries ---- */

/* The specification of a query of single profiles, and whether it reads rows or totals. */
struct profiles_spec {
    const struct hearth_merge_spec *merge;
    bool rows;
};

static enum hearth_status explain_merge(const struct hearth_query *query, const void *spec,
                                        struct hearth_explanation *ret, struct hearth_err *err)
{
    struct hearth_selection selection;
    HEARTH_TRY(hearth_merge_select(query, spec, &selection, err));
    return hearth_selection_explain(query, &selection, ret, err);
}

static enum hearth_status select_explained(const struct hearth_query *query,
                                           const struct hearth_series_choice *choice,
                                           struct hearth_selection *ret, struct hearth_err *err)
{
    const struct hearth_call_index *index;

    HEARTH_TRY(hearth_call_index_lock(&query->call, &index, err));
    enum hearth_status status = hearth_selection_make(query, choice, index, ret, err);
    hearth_call_index_unlock(index);

    return status;
}

static enum hearth_status explain_timeseries(const struct hearth_query *query, const void *of,
                                             struct hearth_explanation *ret, struct hearth_err *err)
{
    const struct hearth_timeseries_spec *spec = of;
    struct hearth_buckets buckets;
    struct hearth_selection selection;

    HEARTH_TRY(hearth_stack_filter_check(&spec->stacks, query->call.arena, err));
    HEARTH_TRY(hearth_timeseries_buckets(query, spec, &buckets, err));
    const struct hearth_series_choice choice = {spec->profile_type, spec->selector, buckets.from_ns,
                                                buckets.to_ns};
    HEARTH_TRY(select_explained(query, &choice, &selection, err));
    selection.totals = true;
    selection.rows = !hearth_stack_filter_is_empty(&spec->stacks);
    if (buckets.empty) {
        selection.n_hits = selection.n_services = 0;
    }

    return hearth_selection_explain(query, &selection, ret, err);
}

static enum hearth_status explain_profiles(const struct hearth_query *query, const void *of,
                                           struct hearth_explanation *ret, struct hearth_err *err)
{
    const struct profiles_spec *spec = of;
    struct hearth_selection selection;

    HEARTH_TRY(hearth_merge_select(query, spec->merge, &selection, err));
    selection.totals = !spec->rows;
    selection.rows = spec->rows;

    return hearth_selection_explain(query, &selection, ret, err);
}

/* Labels, values, series and types are answered from the index of labels alone. */
static enum hearth_status explain_labels(const struct hearth_query *query, const void *of,
                                         struct hearth_explanation *ret, struct hearth_err *err)
{
    struct hearth_series_hits hits;
    struct hearth_range range;

    HEARTH_TRY(hearth_query_label_hits(query, of, &range, &hits, err));
    hearth_call_note(&query->call, "read from the index of labels in memory; no profile is read");

    *ret = (struct hearth_explanation){
        .from_ns = range.from_ns, .to_ns = range.to_ns, .n_series = (int64_t)hits.n};
    for (size_t i = 0; i < hits.n; i++) {
        ret->n_services += i == 0 || hits.v[i].service_id != hits.v[i - 1].service_id;
    }

    return split_notes(query, hearth_buf_view(query->call.notes), ret, err);
}

/* Notes about the range are part of the explanation, so a buffer of this call collects them. */
enum hearth_status hearth_explain_with_notes(const struct hearth_query *query,
                                             hearth_explain_fn *explain, const void *spec,
                                             struct hearth_explanation *ret, struct hearth_err *err)
{
    struct hearth_query own = *query;
    struct hearth_buf notes;

    hearth_buf_init(&notes, 0);
    own.call.notes = &notes;
    enum hearth_status status = explain(&own, spec, ret, err);
    hearth_buf_release(&notes);

    return status;
}

enum hearth_status hearth_query_explain_merge(const struct hearth_query *query,
                                              const struct hearth_merge_spec *spec,
                                              struct hearth_explanation *ret,
                                              struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret != NULL);

    return hearth_explain_with_notes(query, explain_merge, spec, ret, err);
}

enum hearth_status hearth_query_explain_timeseries(const struct hearth_query *query,
                                                   const struct hearth_timeseries_spec *spec,
                                                   struct hearth_explanation *ret,
                                                   struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret != NULL);

    return hearth_explain_with_notes(query, explain_timeseries, spec, ret, err);
}

enum hearth_status hearth_query_explain_profiles(const struct hearth_query *query,
                                                 const struct hearth_merge_spec *spec, bool rows,
                                                 struct hearth_explanation *ret,
                                                 struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && ret != NULL);

    const struct profiles_spec profiles = {spec, rows};
    return hearth_explain_with_notes(query, explain_profiles, &profiles, ret, err);
}

enum hearth_status hearth_query_explain_labels(const struct hearth_query *query,
                                               const struct hearth_label_request *request,
                                               struct hearth_explanation *ret,
                                               struct hearth_err *err)
{
    assert(query != NULL && request != NULL && ret != NULL);

    return hearth_explain_with_notes(query, explain_labels, request, ret, err);
}
