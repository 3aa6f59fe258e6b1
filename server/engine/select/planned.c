/*
 * planned.c -- the selection of a query, and reading it: state, plan, one statement; repeated if
 * background work interferes, or a node of distributed tables is lost.
 */
#include "select/planned.h"

#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/model/block.h"

#include "select/lost_services.h"
#include "select/summed_blocks.h"

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

/* ---- reading ---- */

/* The selected series that a whole-service block may consist of, for the latest such row. */
struct allowed_series {
    int32_t service_id, shape_id;
    uint16_t column;
    int32_t *series; /* [selection->n_hits], ascending */
    size_t n;
};

struct planned_read {
    const struct hearth_selection *selection;
    const struct hearth_reader *reader;
    struct hearth_arena *arena;
    struct allowed_series allowed_series;
    struct hearth_summed_blocks blocks; /* if the reader wants sums */
    bool foreign_members;               /* a block contained series that were not selected */
};

/*
 * Fills read->allowed_series for the service, shape and column of the row, unless it is for them
 * already.
 */
static enum hearth_status find_allowed_series(struct planned_read *read,
                                              const struct hearth_read_row *row,
                                              struct hearth_err *err)
{
    struct allowed_series *allowed_series = &read->allowed_series;
    const struct hearth_selection *selection = read->selection;

    if (allowed_series->series != NULL && allowed_series->service_id == row->service_id &&
        allowed_series->shape_id == -row->series_id && allowed_series->column == row->column) {
        return HEARTH_OK;
    }

    if (allowed_series->series == NULL) {
        allowed_series->series =
            hearth_arena_array(read->arena, selection->n_hits, sizeof allowed_series->series[0]);
        if (allowed_series->series == NULL) {
            return HEARTH_FAIL_ARENA(err, read->arena);
        }
    }

    allowed_series->service_id = row->service_id;
    allowed_series->shape_id = -row->series_id;
    allowed_series->column = row->column;
    allowed_series->n = 0;

    /* Hits are sorted by service: find its first one. */
    size_t low = 0, high = selection->n_hits;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (selection->hits[mid].service_id < row->service_id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    for (; low < selection->n_hits && selection->hits[low].service_id == row->service_id; low++) {
        const struct hearth_series_hit *hit = &selection->hits[low];
        if (hit->shape_id == allowed_series->shape_id && hit->column == allowed_series->column) {
            allowed_series->series[allowed_series->n++] = hit->series_id;
        }
    }

    return HEARTH_OK;
}

/*
 * That a selection covers a whole service was the label index's information at the time of the
 * plan; the block itself names the series that are in it, and is checked here.
 */
static enum hearth_status visit_planned_row(void *context, const struct hearth_read_row *row,
                                            struct hearth_err *err)
{
    struct planned_read *read = context;

    if (HEARTH_UNLIKELY(row->series_id < 0)) {
        HEARTH_TRY(find_allowed_series(read, row, err));
        if (row->members.p == NULL ||
            !hearth_members_within(row->members, read->allowed_series.series,
                                   read->allowed_series.n)) {
            read->foreign_members = true;
            return HEARTH_FAIL(err, HEARTH_ABORTED,
                               "a block of service %d has series that were not selected",
                               (int)row->service_id);
        }
    }

    bool added;
    HEARTH_TRY(hearth_summed_blocks_row(&read->blocks, row, &added, err));
    return added ? HEARTH_OK : read->reader->row(read->reader->context, row, err);
}

static void count_plan_legs(const struct hearth_read_plan *plan)
{
    for (size_t i = 0; i < plan->n_legs; i++) {
        hearth_metric_add_label(HEARTH_M_PLAN_LEGS,
                                hearth_str_c(hearth_source_name(plan->legs[i].source)), 1);
    }
}

/* Makes one plan and reads it. Errors: ABORTED if background work interfered. */
static enum hearth_status read_planned_once(const struct hearth_query *query,
                                            struct planned_read *read, struct hearth_buf *notes,
                                            struct hearth_err *err)
{
    const struct hearth_scope *scope = HEARTH_CALL_SCOPE(&query->call);
    struct hearth_read_plan plan;

    HEARTH_TRY(hearth_selection_plan(query, read->selection, read->arena, &plan, notes, err));
    assert(read->selection->n_hits > 0);
    plan.budget = read->arena->budget;
    plan.detail = read->selection->detail;
    if (read->selection->totals && (!read->selection->rows || read->reader->row == NULL)) {
        count_plan_legs(&plan);
        const struct hearth_total_visitor visitor = {read->reader->total, read->reader->totals,
                                                     read->reader->context};
        return hearth_store_visit_totals(scope, &plan, &visitor, err);
    }

    /* Blocks whose sums are known are not read. */
    if (read->reader->sums && hearth_sum_cache_is_on(query->call.engine->sum_cache)) {
        HEARTH_TRY(hearth_summed_blocks_plan(&read->blocks, query, read->selection, &plan,
                                             read->arena, err));
    }

    count_plan_legs(&plan);
    HEARTH_TRY(hearth_store_read(scope, &plan, visit_planned_row, read, err));
    return hearth_summed_blocks_finish(&read->blocks, read->reader, err);
}

/* Appends the notes of the successful attempt to those of the query. */
static enum hearth_status append_query_notes(const struct hearth_query *query,
                                             struct hearth_buf *notes, struct hearth_err *err)
{
    if (query->call.notes == NULL || notes->n == 0) {
        return HEARTH_OK;
    }

    hearth_buf_str(query->call.notes, hearth_buf_view(notes));
    return hearth_buf_failed(query->call.notes)
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the notes of an answer")
               : HEARTH_OK;
}

/* Makes plans and reads them until background work does not interfere. */
static enum hearth_status read_planned(const struct hearth_query *query,
                                       struct hearth_selection *selection,
                                       const struct hearth_reader *reader, struct hearth_err *err)
{
    struct hearth_arena arena;
    struct hearth_buf notes;
    hearth_arena_init_like(&arena, query->call.arena);
    hearth_buf_init(&notes, 0);

    /*
     * Each attempt starts over. After a block with other series, blocks of whole services are not
     * used.
     */
    enum hearth_status status = HEARTH_ABORTED;
    for (int i = 0; i < HEARTH_PLAN_ATTEMPTS && status == HEARTH_ABORTED; i++) {
        struct planned_read read = {.selection = selection, .reader = reader, .arena = &arena};
        hearth_arena_reset(&arena);
        hearth_buf_reset(&notes);
        reader->reset(reader->context);
        status = hearth_cancel_check(query->call.cancel, err);
        status = status == HEARTH_OK ? read_planned_once(query, &read, &notes, err) : status;
        hearth_summed_blocks_release(&read.blocks);
        if (status == HEARTH_ABORTED) {
            hearth_metric_add(HEARTH_M_PLAN_ABORTED, 1);
            selection->n_covered = read.foreign_members ? 0 : selection->n_covered;
        }
    }

    if (status == HEARTH_OK) {
        status = append_query_notes(query, &notes, err);
    } else if (status == HEARTH_ABORTED) {
        status = HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                             "background work interfered with this query %d times: retry",
                             HEARTH_PLAN_ATTEMPTS);
    }
    hearth_buf_release(&notes);
    hearth_arena_release(&arena);
    return status;
}

enum hearth_status hearth_selection_read(const struct hearth_query *query,
                                         struct hearth_selection *selection,
                                         const struct hearth_reader *reader, struct hearth_err *err)
{
    assert(query != NULL && selection != NULL && reader != NULL);

    if (selection->n_hits == 0) {
        return HEARTH_OK;
    }
    if (query->plan != NULL) {
        reader->reset(reader->context);
        return hearth_selection_add_plan(query, selection, err);
    }

    struct hearth_selection kept;
    enum hearth_status status;
    do {
        HEARTH_TRY(hearth_lost_leave_out(query, selection, &kept, err));
        status = read_planned(query, &kept, reader, err);
    } while (hearth_lost_retry(query, &kept, status));

    selection->n_covered = kept.n_covered == 0 ? 0 : selection->n_covered;
    if (status == HEARTH_OK) {
        hearth_lost_done(query, &kept);
    }

    return status;
}

enum hearth_status hearth_kept_row_push(struct hearth_kept_row **list,
                                        const struct hearth_read_row *row,
                                        struct hearth_arena *arena, struct hearth_err *err)
{
    assert(list != NULL && row != NULL);

    struct hearth_kept_row *kept = hearth_arena_alloc(arena, sizeof *kept);
    if (kept == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    kept->row = *row;
    kept->row.ids = hearth_arena_str(arena, row->ids);
    kept->row.val = hearth_arena_str(arena, row->val);
    kept->row.val0 = hearth_arena_str(arena, row->val0);
    if (row->attrs.p != NULL) {
        kept->row.attrs = hearth_arena_str(arena, row->attrs);
    }

    kept->row.members = (struct hearth_str){0};
    if (arena->refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    kept->next = *list;
    *list = kept;

    return HEARTH_OK;
}
