/*
 * imported_traces.c -- segments and snapshots of imported trace tasks (contract:
 * hearth/store/store_spans.h).
 *
 * Segments have a table of their own: in span_group they would count as requests of a service that
 * had none, and a day far in the past would need a partition.
 */
#include "hearth/base/clock.h"
#include "hearth/store/store_spans.h"

#include "session/disk.h"
#include "spans/span_group_rows.h"

#include <assert.h>

/* ---- writing ---- */

struct import {
    const struct hearth_imported_traces *traces;
    int64_t now_ms;
};

/* The parameters that both statements have: $1 service, $2 task, $3 now. */
static void make_import_params(const struct import *import, struct hearth_arena *arena,
                               struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, arena);
    hearth_pg_param_i32(params, import->traces->service_id);
    hearth_pg_param_text(params, import->traces->task_id);
    hearth_pg_param_i64(params, import->now_ms);
}

/* A row of task_segment, besides the parameters above. */
struct segment_row {
    int64_t key, start_ns, duration_ns;
    int32_t n_spans, kind, flags;
    struct hearth_str trace_id, segment_id, service, instance, endpoint, spans;
};

#define SEGMENT(kind, member) HEARTH_COLUMN(kind, struct segment_row, member)
static const struct hearth_column segment_columns[] = {
    SEGMENT(I64, key),        SEGMENT(I64, start_ns),     SEGMENT(I64, duration_ns),
    SEGMENT(I32, n_spans),    SEGMENT(I32, kind),         SEGMENT(I32, flags),
    SEGMENT(BYTES, trace_id), SEGMENT(BYTES, segment_id), SEGMENT(TEXT, service),
    SEGMENT(TEXT, instance),  SEGMENT(TEXT, endpoint),    SEGMENT(BYTES, spans),
};
static const struct hearth_row_type segment_rows =
    HEARTH_ROW_TYPE(segment_columns, struct segment_row);

static enum hearth_status insert_imported_segments(const struct import *import,
                                                   struct hearth_transaction *transaction,
                                                   struct hearth_err *err)
{
    struct segment_row *rows =
        hearth_arena_array(transaction->arena, import->traces->n_groups, sizeof *rows);
    if (rows == NULL) {
        return HEARTH_FAIL_ARENA(err, transaction->arena);
    }

    for (size_t i = 0; i < import->traces->n_groups; i++) {
        const struct hearth_span_group *group = &import->traces->groups[i];
        rows[i] = (struct segment_row){
            .key = hearth_trace_key(group->segment_id, group->is_raw),
            .start_ns = group->start_ns,
            .duration_ns = group->end_ns - group->start_ns,
            .n_spans = group->n_spans,
            .kind = (int32_t)group->kind,
            .flags = hearth_span_group_flags_of(group),
            .trace_id = group->trace_id,
            .segment_id = group->segment_id,
            .service = group->service,
            .instance = group->instance,
            .endpoint = group->endpoint,
            .spans = group->spans,
        };
    }

    struct hearth_pg_params params;
    make_import_params(import, transaction->arena, &params);
    hearth_pg_param_rows(&params, &segment_rows, rows, import->traces->n_groups);

    return hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.task_segment (service_id, task_id, received_at, segment_key,"
        " start_at, duration, n_spans, kind, flags, trace_id, segment_id, service, instance,"
        " endpoint, spans) SELECT $1, $2, $3, r.* FROM unnest($4, $5, $6, $7, $8, $9, $10, $11,"
        " $12, $13, $14, $15) AS r ON CONFLICT DO NOTHING",
        &params, NULL, err);
}

/* A row of task_snapshot, besides the parameters above. */
struct snapshot_row {
    struct hearth_str segment_id;
    int64_t key;
    int32_t first_sequence, last_sequence, n_snapshots;
    int64_t first_ms, last_ms, content; /* content: a hash of snapshots */
    struct hearth_str snapshots;
};

#define SNAPSHOT(kind, member) HEARTH_COLUMN(kind, struct snapshot_row, member)
static const struct hearth_column snapshot_columns[] = {
    SNAPSHOT(TEXT, segment_id),   SNAPSHOT(I64, key),         SNAPSHOT(I32, first_sequence),
    SNAPSHOT(I32, last_sequence), SNAPSHOT(I32, n_snapshots), SNAPSHOT(I64, first_ms),
    SNAPSHOT(I64, last_ms),       SNAPSHOT(I64, content),     SNAPSHOT(BYTES, snapshots),
};
static const struct hearth_row_type snapshot_rows =
    HEARTH_ROW_TYPE(snapshot_columns, struct snapshot_row);

static enum hearth_status insert_imported_runs(const struct import *import,
                                               struct hearth_transaction *transaction,
                                               struct hearth_err *err)
{
    struct snapshot_row *rows =
        hearth_arena_array(transaction->arena, import->traces->n_runs, sizeof *rows);
    if (rows == NULL) {
        return HEARTH_FAIL_ARENA(err, transaction->arena);
    }

    for (size_t i = 0; i < import->traces->n_runs; i++) {
        const struct hearth_snapshot_run *run = &import->traces->runs[i];
        rows[i] = (struct snapshot_row){
            .segment_id = run->segment_id,
            .key = hearth_trace_key(run->segment_id, false),
            .first_sequence = run->first_sequence,
            .last_sequence = run->last_sequence,
            .n_snapshots = run->n_snapshots,
            .first_ms = run->first_ms,
            .last_ms = run->last_ms,
            .content = (int64_t)hearth_hash64(run->snapshots.p, run->snapshots.n, 0),
            .snapshots = run->snapshots,
        };
    }

    struct hearth_pg_params params;
    make_import_params(import, transaction->arena, &params);
    hearth_pg_param_rows(&params, &snapshot_rows, rows, import->traces->n_runs);

    return hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.task_snapshot (service_id, task_id, received_at, segment_id,"
        " segment_key, first_sequence, last_sequence, n_snapshots, first_at, last_at, content,"
        " snapshots) SELECT $1, $2, $3, r.* FROM unnest($4, $5, $6, $7, $8, $9, $10, $11, $12)"
        " AS r ON CONFLICT DO NOTHING",
        &params, NULL, err);
}

/* Repeatable: after a COMMIT whose answer was lost, the second attempt inserts no row. */
static enum hearth_status put_import(void *context, struct hearth_transaction *transaction,
                                     struct hearth_err *err)
{
    const struct import *import = context;

    if (import->traces->n_groups > 0) {
        HEARTH_TRY(insert_imported_segments(import, transaction, err));
    }

    if (import->traces->n_runs > 0) {
        HEARTH_TRY(insert_imported_runs(import, transaction, err));
    }

    return HEARTH_OK;
}

enum hearth_status hearth_store_imported_put(const struct hearth_scope *scope,
                                             const struct hearth_imported_traces *traces,
                                             struct hearth_err *err)
{
    assert(traces->groups != NULL || traces->n_groups == 0);
    assert(traces->runs != NULL || traces->n_runs == 0);
    HEARTH_TRY(hearth_disk_check(scope->store, err));

    struct import import = {
        .traces = traces,
        .now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS,
    };

    return hearth_store_in_transaction(scope, put_import, &import, err);
}

/* ---- reading ---- */

enum hearth_status hearth_store_imported_groups(const struct hearth_scope *scope,
                                                struct hearth_str task_id,
                                                struct hearth_span_group **ret, size_t *ret_n,
                                                struct hearth_err *err)
{
    assert(ret != NULL && ret_n != NULL);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_text(&params, task_id);

    return hearth_select_span_groups(
        scope,
        "SELECT g.service_id, g.service, g.instance, g.trace_id, g.segment_id, g.start_at,"
        " g.duration, g.n_spans, g.kind::int4, g.flags::int4, g.endpoint, g.spans"
        " FROM hearth_data.task_segment g JOIN hearth_data.service s USING (service_id)"
        " JOIN hearth_data.tenant n ON n.tenant_id = s.tenant_id AND n.name = $1"
        " WHERE g.task_id = $2 ORDER BY g.start_at DESC, g.segment_key",
        &params, ret, ret_n, err);
}
