/*
 * explain_selection.c -- the plan of a query, the amount that it would read, and how long that
 * takes.
 *
 * Times are estimated from the cost of reading and merging a row and a stored byte of each kind,
 * with warm caches, on the machine of docs/benchmarks.md (2 cores; the database's and the server's
 * time together). They tell which of two queries costs more, and by how much; on another machine
 * the scale differs.
 */
#include "select/lost_services.h"
#include "select/plan_internal.h"
#include "select/planned.h"

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
static enum hearth_status explain_planned(const struct hearth_query *query,
                                          const struct hearth_selection *selection,
                                          struct hearth_explanation *ret, struct hearth_err *err)
{
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

enum hearth_status hearth_selection_explain(const struct hearth_query *query,
                                            const struct hearth_selection *selection,
                                            struct hearth_explanation *ret, struct hearth_err *err)
{
    assert(query->call.notes != NULL && selection != NULL && ret != NULL);

    struct hearth_selection kept;
    enum hearth_status status;
    do {
        HEARTH_TRY(hearth_lost_leave_out(query, selection, &kept, err));
        status = explain_planned(query, &kept, ret, err);
    } while (hearth_lost_retry(query, &kept, status));

    if (status == HEARTH_OK) {
        hearth_lost_done(query, &kept);
    }

    return status;
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

/* ---- plans of several reads ---- */

static unsigned rank_of_leg(const struct hearth_explained_leg *leg)
{
    return 2 * (unsigned)leg->step + !leg->of_base;
}

/* Adds a leg; if the plan is summed, to the leg of the same step, side and source. */
static enum hearth_status append_explained_leg(struct hearth_explanation *all,
                                               const struct hearth_explained_leg *leg,
                                               struct hearth_arena *arena, struct hearth_err *err)
{
    for (size_t i = 0; all->is_summed && i < all->n_legs; i++) {
        struct hearth_explained_leg *sum = &all->legs[i];
        if (sum->step == all->step && sum->of_base == all->of_base && sum->source == leg->source &&
            sum->whole_service == leg->whole_service) {
            sum->from_ns = min_i64(sum->from_ns, leg->from_ns);
            sum->to_ns = max_i64(sum->to_ns, leg->to_ns);
            sum->n_services = max_i64(sum->n_services, leg->n_services);
            sum->n_series += leg->n_series;
            sum->n_rows += leg->n_rows;
            sum->n_bytes += leg->n_bytes;
            sum->ms += leg->ms;
            return HEARTH_OK;
        }
    }

    if (!hearth_arena_grow(arena, &all->legs, &all->cap_legs, all->n_legs + 1,
                           sizeof all->legs[0])) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* After those of earlier steps, and of the base in the same step. */
    struct hearth_explained_leg new = *leg;
    size_t at = all->n_legs++;
    new.step = all->step;
    new.of_base = all->of_base;
    for (; at > 0 && rank_of_leg(&all->legs[at - 1]) > rank_of_leg(&new); at--) {
        all->legs[at] = all->legs[at - 1];
    }
    all->legs[at] = new;

    return HEARTH_OK;
}

static enum hearth_status explain_read(const struct hearth_query *query, const void *selection,
                                       struct hearth_explanation *ret, struct hearth_err *err)
{
    return hearth_selection_explain(query, selection, ret, err);
}

enum hearth_status hearth_selection_add_plan(const struct hearth_query *query,
                                             const struct hearth_selection *selection,
                                             struct hearth_err *err)
{
    struct hearth_explanation *all = query->plan, one;

    assert(all != NULL && selection != NULL);

    HEARTH_TRY(hearth_explain_with_notes(query, explain_read, selection, &one, err));
    for (size_t i = 0; i < one.n_notes; i++) {
        hearth_call_note(&query->call, HEARTH_STR_FMT, HEARTH_STR_ARG(one.notes[i]));
    }
    for (size_t i = 0; i < one.n_legs; i++) {
        HEARTH_TRY(append_explained_leg(all, &one.legs[i], query->call.arena, err));
    }

    /* The range is that of all reads of the newer side. */
    if (!all->of_base) {
        bool is_first = all->from_ns == 0 && all->to_ns == 0;
        all->from_ns = is_first ? one.from_ns : min_i64(all->from_ns, one.from_ns);
        all->to_ns = is_first ? one.to_ns : max_i64(all->to_ns, one.to_ns);
    }
    all->n_services = max_i64(all->n_services, one.n_services);
    all->n_series = max_i64(all->n_series, one.n_series);
    all->n_rows += one.n_rows;
    all->n_bytes += one.n_bytes;
    all->ms += one.ms;

    return HEARTH_OK;
}
