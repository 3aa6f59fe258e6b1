/*
 * planned.c -- reads a selection: state, plan, one statement; repeated if background work
 * interferes, or a node of distributed tables is lost.
 */
#include "select/planned.h"

#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/model/block.h"

#include "select/lost_services.h"
#include "select/summed_blocks.h"

#include <assert.h>

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
