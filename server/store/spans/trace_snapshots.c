/*
 * trace_snapshots.c -- snapshots of a batch, a statement for each tenant, a row for each task and
 * segment (trace_writer.h).
 */
#include "hearth/codec/compress.h"

#include "pg/pg_rows.h"
#include "pg/queries.h"
#include "spans/trace_writer.h"

#include <assert.h>
#include <stdlib.h>

/* A row of task_snapshot, as a parameter. */
struct run_row {
    struct hearth_str task_id, segment_id;
    int64_t key;
    int32_t first_sequence, last_sequence, n_snapshots;
    int64_t first_ms, last_ms, content; /* content: a hash of snapshots */
    struct hearth_str snapshots;
};

#define RUN_ROW(kind, member) HEARTH_COLUMN(kind, struct run_row, member)
static const struct hearth_column run_row_columns[] = {
    RUN_ROW(TEXT, task_id),       RUN_ROW(TEXT, segment_id),   RUN_ROW(I64, key),
    RUN_ROW(I32, first_sequence), RUN_ROW(I32, last_sequence), RUN_ROW(I32, n_snapshots),
    RUN_ROW(I64, first_ms),       RUN_ROW(I64, last_ms),       RUN_ROW(I64, content),
    RUN_ROW(BYTES, snapshots),
};
static const struct hearth_row_type run_row_type = HEARTH_ROW_TYPE(run_row_columns, struct run_row);

/* Encode and compress snapshots into the arena. */
static enum hearth_status pack_snapshots(const struct hearth_snapshot *snapshots, size_t n,
                                         struct hearth_arena *arena, struct hearth_str *ret,
                                         struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_buf_release) struct hearth_buf plain;
    HEARTH_CLEANUP(hearth_buf_release) struct hearth_buf packed;

    hearth_buf_init(&plain, 0);
    hearth_buf_init(&packed, 0);
    hearth_snapshots_encode(snapshots, n, &plain);
    if (hearth_buf_failed(&plain)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for %zu snapshots", n);
    }

    HEARTH_TRY(hearth_pack_text(hearth_buf_view(&plain), &packed, err));
    struct hearth_str bytes = hearth_arena_str(arena, hearth_buf_view(&packed));
    if (bytes.p == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    *ret = bytes;

    return HEARTH_OK;
}

/* Make the row of n > 0 snapshots of one task and segment, sorted by sequence number. */
static enum hearth_status make_run_row(const struct hearth_task_snapshot *const *all, size_t n,
                                       struct hearth_arena *arena, struct run_row *ret,
                                       struct hearth_err *err)
{
    assert(n > 0);

    struct hearth_snapshot *snapshots = hearth_arena_array(arena, n, sizeof *snapshots);
    if (snapshots == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Each sequence number once. */
    size_t n_kept = 0;
    int64_t first_ms = INT64_MAX, last_ms = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        const struct hearth_snapshot *it = &all[i]->snapshot;
        assert(i == 0 || all[i - 1]->snapshot.sequence <= it->sequence);
        if (n_kept > 0 && snapshots[n_kept - 1].sequence == it->sequence) {
            continue;
        }

        snapshots[n_kept++] = *it;
        first_ms = it->at_ms < first_ms ? it->at_ms : first_ms;
        last_ms = it->at_ms > last_ms ? it->at_ms : last_ms;
    }

    /* The row. */
    struct hearth_str packed;
    HEARTH_TRY(pack_snapshots(snapshots, n_kept, arena, &packed, err));
    *ret = (struct run_row){
        .task_id = all[0]->task_id,
        .segment_id = all[0]->segment_id,
        .key = hearth_trace_key(all[0]->segment_id, false),
        .first_sequence = snapshots[0].sequence,
        .last_sequence = snapshots[n_kept - 1].sequence,
        .n_snapshots = (int32_t)n_kept,
        .first_ms = first_ms,
        .last_ms = last_ms,
        .content = (int64_t)hearth_hash64(packed.p, packed.n, 0),
        .snapshots = packed,
    };

    return HEARTH_OK;
}

static int compare_segments(const struct hearth_task_snapshot *a,
                            const struct hearth_task_snapshot *b)
{
    int order = hearth_str_cmp(a->task_id, b->task_id);
    return order != 0 ? order : hearth_str_cmp(a->segment_id, b->segment_id);
}

static int compare_snapshots(const void *left, const void *right)
{
    const struct hearth_task_snapshot *a = *(const struct hearth_task_snapshot *const *)left;
    const struct hearth_task_snapshot *b = *(const struct hearth_task_snapshot *const *)right;
    int order = compare_segments(a, b);

    return order != 0 ? order
                      : (a->snapshot.sequence > b->snapshot.sequence) -
                            (a->snapshot.sequence < b->snapshot.sequence);
}

/* The rows of one tenant. */
struct runs {
    struct run_row *rows;
    size_t n;
};

/* Make the rows of the tenant of item `first`, which is its first item with snapshots. */
static enum hearth_status make_runs(struct hearth_trace_batch *batch, size_t first,
                                    struct runs *ret, struct hearth_err *err)
{
    struct hearth_str tenant = batch->items[first]->tenant;
    size_t n = 0, at = 0;

    for (size_t i = first; i < batch->n_items; i++) {
        n += hearth_str_eq(batch->items[i]->tenant, tenant) ? batch->items[i]->n_snapshots : 0;
    }

    /* Gather and sort its snapshots. */
    const struct hearth_task_snapshot **all = hearth_arena_array(&batch->arena, n, sizeof *all);
    ret->rows = hearth_arena_array(&batch->arena, n, sizeof *ret->rows);
    ret->n = 0;
    if (all == NULL || ret->rows == NULL) {
        return HEARTH_FAIL_ARENA(err, &batch->arena);
    }

    for (size_t i = first; i < batch->n_items; i++) {
        const struct hearth_trace_item *item = batch->items[i];
        for (size_t k = 0; hearth_str_eq(item->tenant, tenant) && k < item->n_snapshots; k++) {
            all[at++] = &item->snapshots[k];
        }
    }

    assert(at == n);
    qsort(all, n, sizeof *all, compare_snapshots);

    /* A row for each task and segment. */
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && compare_segments(all[from], all[to]) == 0;) {
            to++;
        }

        HEARTH_TRY(make_run_row(&all[from], to - from, &batch->arena, &ret->rows[ret->n++], err));
    }

    return HEARTH_OK;
}

static enum hearth_status insert_tenant_runs(struct hearth_trace_batch *batch, size_t first,
                                             struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                             struct hearth_err *err)
{
    struct runs runs;
    HEARTH_TRY(make_runs(batch, first, &runs, err));

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &batch->arena);
    hearth_pg_param_text(&params, batch->items[first]->tenant);
    hearth_pg_param_rows(&params, &run_row_type, runs.rows, runs.n);
    hearth_pg_param_i64(&params, batch->now_ms);
    hearth_pg_param_i64(&params, batch->items[first]->max_snapshots);

    return hearth_pg_exec(pg, hearth_sql_insert_snapshot_runs, &params, batch->cancel, NULL,
                          ret_fault, err);
}

/* For each tenant at its first item with snapshots, whose max_snapshots holds for all. */
enum hearth_status hearth_trace_snapshots_insert(struct hearth_trace_batch *batch,
                                                 struct hearth_pg *pg,
                                                 enum hearth_pg_fault *ret_fault,
                                                 struct hearth_err *err)
{
    for (size_t i = 0; i < batch->n_items; i++) {
        bool is_first = batch->items[i]->n_snapshots > 0;
        for (size_t k = 0; k < i && is_first; k++) {
            is_first = batch->items[k]->n_snapshots == 0 ||
                       !hearth_str_eq(batch->items[k]->tenant, batch->items[i]->tenant);
        }

        if (is_first) {
            HEARTH_TRY(insert_tenant_runs(batch, i, pg, ret_fault, err));
        }
    }

    return HEARTH_OK;
}
