/*
 * imported_traces.c -- segments and snapshots of imported trace tasks (contract: hearth/store/store_spans.h).
 *
 * Segments have a table of their own: in span_group they would be requests of a service that had none, and a day that lies
 * far back would want a leaf.
 */
#include "hearth/base/clock.h"
#include "hearth/store/store_spans.h"

#include "pg/disk.h"
#include "pg/pg.h"
#include "pg/session.h"

struct import {
    struct hearth_str task_id;
    int32_t service_id;
    const struct hearth_span_group *groups;
    size_t n_groups;
    const struct hearth_snapshot_run *runs;
    size_t n_runs;
    int64_t now_ms;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
};

/* ---- writing ---- */

static enum hearth_status insert_groups(const struct import *import, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_arena *arena = import->arena;
    size_t n = import->n_groups;
    int64_t *keys = hearth_arena_array(arena, n, sizeof *keys);
    int64_t *starts = hearth_arena_array(arena, n, sizeof *starts);
    int64_t *durations = hearth_arena_array(arena, n, sizeof *durations);
    int32_t *counts = hearth_arena_array(arena, n, sizeof *counts);
    int32_t *kinds = hearth_arena_array(arena, n, sizeof *kinds);
    int32_t *flags = hearth_arena_array(arena, n, sizeof *flags);
    struct hearth_str *texts[6];
    for (size_t c = 0; c < HEARTH_ARRAY_LEN(texts); c++) {
        texts[c] = hearth_arena_array(arena, n, sizeof *texts[c]);
    }
    if (arena->refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    for (size_t i = 0; i < n; i++) {
        const struct hearth_span_group *group = &import->groups[i];
        const struct hearth_str row[] = {group->trace_id, group->segment_id, group->service,
                                         group->instance, group->endpoint,   group->spans};
        for (size_t c = 0; c < HEARTH_ARRAY_LEN(texts); c++) {
            texts[c][i] = row[c];
        }
        keys[i] = hearth_trace_key(group->segment_id, group->is_raw);
        starts[i] = group->start_ns;
        durations[i] = group->end_ns - group->start_ns;
        counts[i] = group->n_spans;
        kinds[i] = (int32_t)group->kind;
        flags[i] = (group->is_raw ? HEARTH_GROUP_RAW : 0) |
                   (group->has_error ? HEARTH_GROUP_ERRORS : 0) |
                   (group->is_cut ? HEARTH_GROUP_CUT : 0);
    }
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_i32(&params, import->service_id);
    hearth_pg_param_text(&params, import->task_id);
    hearth_pg_param_i64(&params, import->now_ms);
    hearth_pg_param_i64_array(&params, keys, n);
    hearth_pg_param_i64_array(&params, starts, n);
    hearth_pg_param_i64_array(&params, durations, n);
    hearth_pg_param_i32_array(&params, counts, n);
    hearth_pg_param_i32_array(&params, kinds, n);
    hearth_pg_param_i32_array(&params, flags, n);
    hearth_pg_param_bytes_array(&params, texts[0], n);
    hearth_pg_param_bytes_array(&params, texts[1], n);
    hearth_pg_param_text_array(&params, texts[2], n);
    hearth_pg_param_text_array(&params, texts[3], n);
    hearth_pg_param_text_array(&params, texts[4], n);
    hearth_pg_param_bytes_array(&params, texts[5], n);
    return hearth_pg_exec(
        pg,
        "INSERT INTO hearth_data.task_segment (service_id, task_id, received_at, segment_key,"
        " start_at, duration, n_spans, kind, flags, trace_id, segment_id, service, instance,"
        " endpoint, spans) SELECT $1, $2, $3, r.* FROM unnest($4, $5, $6, $7, $8, $9, $10, $11,"
        " $12, $13, $14, $15) AS r ON CONFLICT DO NOTHING",
        &params, import->cancel, NULL, ret_fault, err);
}

static enum hearth_status insert_runs(const struct import *import, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_arena *arena = import->arena;
    size_t n = import->n_runs;
    struct hearth_str *ids = hearth_arena_array(arena, n, sizeof *ids);
    struct hearth_str *packed = hearth_arena_array(arena, n, sizeof *packed);
    int64_t *keys = hearth_arena_array(arena, n, sizeof *keys);
    int64_t *contents = hearth_arena_array(arena, n, sizeof *contents);
    int64_t *first_at = hearth_arena_array(arena, n, sizeof *first_at);
    int64_t *last_at = hearth_arena_array(arena, n, sizeof *last_at);
    int32_t *first = hearth_arena_array(arena, n, sizeof *first);
    int32_t *last = hearth_arena_array(arena, n, sizeof *last);
    int32_t *counts = hearth_arena_array(arena, n, sizeof *counts);
    if (arena->refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    for (size_t i = 0; i < n; i++) {
        const struct hearth_snapshot_run *run = &import->runs[i];
        ids[i] = run->segment_id;
        packed[i] = run->snapshots;
        keys[i] = hearth_trace_key(run->segment_id, false);
        contents[i] = (int64_t)hearth_hash64(run->snapshots.p, run->snapshots.n, 0);
        first_at[i] = run->first_ms;
        last_at[i] = run->last_ms;
        first[i] = run->first_sequence;
        last[i] = run->last_sequence;
        counts[i] = run->n_snapshots;
    }
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_i32(&params, import->service_id);
    hearth_pg_param_text(&params, import->task_id);
    hearth_pg_param_i64(&params, import->now_ms);
    hearth_pg_param_text_array(&params, ids, n);
    hearth_pg_param_i64_array(&params, keys, n);
    hearth_pg_param_i32_array(&params, first, n);
    hearth_pg_param_i32_array(&params, last, n);
    hearth_pg_param_i32_array(&params, counts, n);
    hearth_pg_param_i64_array(&params, first_at, n);
    hearth_pg_param_i64_array(&params, last_at, n);
    hearth_pg_param_i64_array(&params, contents, n);
    hearth_pg_param_bytes_array(&params, packed, n);
    return hearth_pg_exec(
        pg,
        "INSERT INTO hearth_data.task_snapshot (service_id, task_id, received_at, segment_id,"
        " segment_key, first_sequence, last_sequence, n_snapshots, first_at, last_at, content,"
        " snapshots) SELECT $1, $2, $3, r.* FROM unnest($4, $5, $6, $7, $8, $9, $10, $11, $12)"
        " AS r ON CONFLICT DO NOTHING",
        &params, import->cancel, NULL, ret_fault, err);
}

static enum hearth_status put_all(const struct import *import, struct hearth_pg *pg,
                                  enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_script(pg, "BEGIN ISOLATION LEVEL READ COMMITTED", ret_fault, err));
    if (import->n_groups > 0) {
        HEARTH_TRY(insert_groups(import, pg, ret_fault, err));
    }
    if (import->n_runs > 0) {
        HEARTH_TRY(insert_runs(import, pg, ret_fault, err));
    }
    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

static enum hearth_status put_import(void *context, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    enum hearth_status status = put_all(context, pg, ret_fault, err);
    hearth_pg_rollback(pg);
    return status;
}

enum hearth_status hearth_store_imported_put(const struct hearth_scope *scope,
                                             struct hearth_str task_id, int32_t service_id,
                                             const struct hearth_span_group *groups,
                                             size_t n_groups,
                                             const struct hearth_snapshot_run *runs, size_t n_runs,
                                             struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    HEARTH_TRY(hearth_disk_check(scope->store, err));
    struct import import = {
        .task_id = task_id,
        .service_id = service_id,
        .groups = groups,
        .n_groups = n_groups,
        .runs = runs,
        .n_runs = n_runs,
        .now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS,
        .cancel = scope->cancel,
        .arena = scope->arena,
    };
    return hearth_store_with_pg(scope->store, scope->cancel, put_import, &import, err);
}

/* ---- reading ---- */

struct question {
    struct hearth_str tenant, task_id;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    struct hearth_span_group *groups; /* the answer */
    size_t n;
};

static struct hearth_str take(const struct question *question, const PGresult *rows, int row, int c)
{
    return hearth_arena_str(question->arena, hearth_pg_str(rows, row, c));
}

static void take_group(struct question *question, const PGresult *rows, int row)
{
    int64_t start_ns = hearth_pg_i64(rows, row, 5);
    int32_t kind = hearth_pg_i32(rows, row, 8), flags = hearth_pg_i32(rows, row, 9);
    question->groups[row] = (struct hearth_span_group){
        .service_id = hearth_pg_i32(rows, row, 0),
        .service = take(question, rows, row, 1),
        .instance = take(question, rows, row, 2),
        .trace_id = take(question, rows, row, 3),
        .segment_id = take(question, rows, row, 4),
        .is_raw = (flags & HEARTH_GROUP_RAW) != 0,
        .start_ns = start_ns,
        .end_ns = start_ns + hearth_pg_i64(rows, row, 6),
        .n_spans = hearth_pg_i32(rows, row, 7),
        .kind = (enum hearth_span_kind)kind,
        .has_error = (flags & HEARTH_GROUP_ERRORS) != 0,
        .is_cut = (flags & HEARTH_GROUP_CUT) != 0,
        .endpoint = take(question, rows, row, 10),
        .spans = take(question, rows, row, 11),
    };
}

static enum hearth_status read_groups(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    hearth_pg_param_text(&params, question->task_id);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT g.service_id, g.service, g.instance, g.trace_id, g.segment_id, g.start_at,"
        " g.duration, g.n_spans, g.kind::int4, g.flags::int4, g.endpoint, g.spans FROM"
        " hearth_data.task_segment g JOIN hearth_data.service s USING (service_id) JOIN"
        " hearth_data.tenant n ON n.tenant_id = s.tenant_id AND n.name = $1 WHERE g.task_id = $2"
        " ORDER BY g.start_at DESC, g.segment_key",
        &params, question->cancel, &rows, ret_fault, err));
    question->n = (size_t)PQntuples(rows);
    question->groups = hearth_arena_array(question->arena, question->n, sizeof *question->groups);
    for (size_t i = 0; i < question->n && question->groups != NULL; i++) {
        take_group(question, rows, (int)i);
    }
    PQclear(rows);
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

enum hearth_status hearth_store_imported_groups(const struct hearth_scope *scope,
                                                struct hearth_str task_id,
                                                struct hearth_span_group **ret, size_t *ret_n,
                                                struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.tenant = scope->tenant,
                                .task_id = task_id,
                                .cancel = scope->cancel,
                                .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_groups, &question, err));
    *ret = question.groups;
    *ret_n = question.n;
    return HEARTH_OK;
}
