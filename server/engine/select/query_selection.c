/* query_selection.c -- the series of a query, and the plan that reads them (contract: planned.h) */
#include "select/planned.h"

#include <assert.h>
#include <stdlib.h>

enum hearth_status hearth_selection_make(const struct hearth_query *query,
                                         const struct hearth_series_choice *choice,
                                         const struct hearth_call_index *index,
                                         struct hearth_selection *ret, struct hearth_err *err)
{
    assert(query != NULL && index != NULL && ret != NULL);

    *ret = (struct hearth_selection){.from_ns = choice->from_ns, .to_ns = choice->to_ns};
    struct hearth_series_hits hits;
    HEARTH_TRY(hearth_query_hits(query, choice, index, &hits, err));
    ret->hits = hits.v;
    ret->n_hits = hits.n;

    /* Means need the series of each process; sums may use blocks of whole services. */
    struct hearth_profile_type type;
    HEARTH_TRY(hearth_profile_type_parse(choice->profile_type, &type, err));
    ret->gauge = hearth_profile_type_is_gauge(&type);
    if (ret->gauge) {
        HEARTH_TRY(
            hearth_call_index_same_labels(index, &hits, query->call.arena, &ret->same_labels, err));
    } else {
        const struct hearth_index_filter range = {.from_ns = choice->from_ns,
                                                  .to_ns = choice->to_ns};
        struct hearth_series_hits covered;
        HEARTH_TRY(
            hearth_call_index_covered(index, &range, &hits, query->call.arena, &covered, err));
        ret->covered = covered.v;
        ret->n_covered = covered.n;
    }

    /* Hits are sorted by service. */
    ret->service_ids =
        hearth_arena_array(query->call.arena, ret->n_hits, sizeof ret->service_ids[0]);
    if (ret->service_ids == NULL) {
        return HEARTH_FAIL_ARENA(err, query->call.arena);
    }

    for (size_t i = 0; i < ret->n_hits; i++) {
        if (i == 0 || ret->hits[i].service_id != ret->hits[i - 1].service_id) {
            ret->service_ids[ret->n_services++] = ret->hits[i].service_id;
        }
    }

    return HEARTH_OK;
}

static int compare_hit_positions(const void *left, const void *right)
{
    const struct hearth_series_hit *a = left, *b = right;
    if (a->service_id != b->service_id) {
        return a->service_id < b->service_id ? -1 : 1;
    }

    if (a->series_id != b->series_id) {
        return a->series_id < b->series_id ? -1 : 1;
    }

    return (a->column > b->column) - (a->column < b->column);
}

uint32_t hearth_selection_scraped(const struct hearth_selection *selection,
                                  const struct hearth_read_row *row)
{
    assert(selection->same_labels != NULL || selection->n_hits == 0);
    const struct hearth_series_hit wanted = {
        .service_id = row->service_id, .series_id = row->series_id, .column = row->column};
    const struct hearth_series_hit *hit =
        bsearch(&wanted, selection->hits, selection->n_hits, sizeof wanted, compare_hit_positions);

    return hit == NULL ? HEARTH_IDMAP_NONE : selection->same_labels[hit - selection->hits];
}

enum hearth_status hearth_selection_plan(const struct hearth_query *query,
                                         const struct hearth_selection *selection,
                                         struct hearth_arena *arena, struct hearth_read_plan *ret,
                                         struct hearth_buf *notes, struct hearth_err *err)
{
    assert(query != NULL && selection != NULL && arena != NULL && ret != NULL);

    struct hearth_read_state *state = hearth_arena_zalloc(arena, sizeof *state);
    if (state == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    struct hearth_scope scope = *HEARTH_CALL_SCOPE(&query->call);
    scope.arena = arena;
    HEARTH_TRY(
        hearth_store_read_state(&scope, selection->service_ids, selection->n_services, state, err));

    struct hearth_plan_input input = {
        .hits = selection->hits,
        .n_hits = selection->n_hits,
        .from_ns = selection->from_ns,
        .to_ns = selection->to_ns,
        .now_ns = hearth_clock_wall_ns(),
        .state = state,
        .totals = selection->totals,
        .rows = selection->rows,
        .gauge = selection->gauge,
        .longest_block_ns = selection->longest_block_ns,
        .covered = selection->covered,
        .n_covered = selection->n_covered,
    };
    hearth_call_retention(&query->call, &input.retention);

    return hearth_plan_make(&input, arena, ret, notes, err);
}
