/* span_reads.c -- spans and snapshots out of their tables (contract: hearth/store/store_spans.h). */
#include "hearth/store/store_spans.h"

#include "pg/pg.h"
#include "pg/session.h"

/* What all questions here share. */
struct question {
    struct hearth_str tenant;
    const struct hearth_span_query *query;
    const struct hearth_str *ids;
    size_t n_ids;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    /* The answer. */
    struct hearth_span_group *groups;
    struct hearth_snapshot_run *runs;
    struct hearth_segment_snapshots *segments;
    size_t n;
};

static struct hearth_str take(const struct question *question, const PGresult *rows, int row, int c)
{
    return hearth_arena_str(question->arena, hearth_pg_str(rows, row, c));
}

static int64_t limit_of(size_t limit)
{
    return limit == 0 || limit > INT64_MAX ? INT64_MAX : (int64_t)limit;
}

static bool param_keys(struct hearth_pg_params *params, struct hearth_arena *arena,
                       const struct hearth_str *ids, size_t n, bool is_raw)
{
    int64_t *keys = hearth_arena_array(arena, n, sizeof *keys);
    for (size_t i = 0; i < n && keys != NULL; i++) {
        keys[i] = hearth_trace_key(ids[i], is_raw);
    }
    if (keys != NULL) {
        hearth_pg_param_i64_array(params, keys, n);
    }
    return keys != NULL;
}

/* ---- groups ---- */

#define GROUP_COLUMNS                                                                            \
    "g.service_id, s.name, g.instance, g.trace_id, g.segment_id, g.start_at, g.duration,"        \
    " g.n_spans, g.kind::int4, g.flags::int4, g.endpoint, g.spans FROM hearth_data.span_group g" \
    " JOIN hearth_data.service s USING (service_id) JOIN hearth_data.tenant n ON n.tenant_id ="  \
    " s.tenant_id AND n.name = $1 WHERE "
#define LATEST_FIRST " ORDER BY g.start_at DESC, g.segment_key LIMIT "

/* Two ids of equal keys are nearly always the same; of two texts one can say. */
static bool is_asked_for(const struct hearth_str *ids, size_t n, bool is_raw, struct hearth_str id,
                         bool id_is_raw)
{
    int64_t key = hearth_trace_key(id, id_is_raw);
    for (size_t i = 0; i < n; i++) {
        bool same_form = id_is_raw == is_raw && ids[i].n != 32;
        if (same_form ? hearth_str_eq(ids[i], id) : hearth_trace_key(ids[i], is_raw) == key) {
            return true;
        }
    }
    return n == 0;
}

static void take_group(struct question *question, const PGresult *rows, int row)
{
    const struct hearth_span_query *query = question->query;
    int32_t flags = hearth_pg_i32(rows, row, 9);
    bool is_raw = (flags & HEARTH_GROUP_RAW) != 0;
    if (!is_asked_for(query->trace_ids, query->n_trace_ids, query->is_raw,
                      hearth_pg_str(rows, row, 3), is_raw) ||
        (query->n_trace_ids == 0 &&
         !is_asked_for(query->segment_ids, query->n_segment_ids, query->is_raw,
                       hearth_pg_str(rows, row, 4), is_raw))) {
        return;
    }
    int64_t start_ns = hearth_pg_i64(rows, row, 5);
    int32_t kind = hearth_pg_i32(rows, row, 8);
    question->groups[question->n++] = (struct hearth_span_group){
        .service_id = hearth_pg_i32(rows, row, 0),
        .service = take(question, rows, row, 1),
        .instance = take(question, rows, row, 2),
        .trace_id = take(question, rows, row, 3),
        .segment_id = take(question, rows, row, 4),
        .is_raw = is_raw,
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

static const char *place_statement(const struct question *question, struct hearth_pg_params *params)
{
    const struct hearth_span_query *query = question->query;
    size_t n = query->n_places;
    int32_t *services = hearth_arena_array(question->arena, n, sizeof *services);
    int64_t *starts = hearth_arena_array(question->arena, n, sizeof *starts);
    if (services == NULL || starts == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        services[i] = query->places[i].service_id;
        starts[i] = query->places[i].start_ns;
    }
    hearth_pg_param_i32_array(params, services, n);
    hearth_pg_param_i64_array(params, starts, n);
    hearth_pg_param_i64(params, limit_of(query->limit));
    return "SELECT " GROUP_COLUMNS
           "(g.service_id, g.start_at) IN (SELECT p.service, p.start_at FROM"
           " unnest($2::int4[], $3::int8[]) p (service, start_at))" LATEST_FIRST "$4";
}

/* By ids: $2 keys, $3 limit. By places: $2 services, $3 starts, $4 limit. Else $2 service, $3 from, $4 to, $5 instance, $6 endpoint, $7 limit. */
static const char *group_statement(const struct question *question, struct hearth_pg_params *params)
{
    const struct hearth_span_query *query = question->query;
    hearth_pg_params_init(params, question->arena);
    hearth_pg_param_text(params, question->tenant);
    if (query->n_trace_ids > 0 || query->n_segment_ids > 0) {
        bool by_trace = query->n_trace_ids > 0;
        if (!param_keys(params, question->arena, by_trace ? query->trace_ids : query->segment_ids,
                        by_trace ? query->n_trace_ids : query->n_segment_ids, query->is_raw)) {
            return NULL;
        }
        hearth_pg_param_i64(params, limit_of(query->limit));
        return by_trace ? "SELECT " GROUP_COLUMNS "g.trace_key = ANY ($2)" LATEST_FIRST "$3"
                        : "SELECT " GROUP_COLUMNS "g.segment_key = ANY ($2)" LATEST_FIRST "$3";
    }
    if (query->n_places > 0) {
        return place_statement(question, params);
    }
    hearth_pg_param_text(params, query->service);
    hearth_pg_param_i64(params, query->from_ns);
    hearth_pg_param_i64(params, query->to_ns);
    hearth_pg_param_text(params, query->instance);
    hearth_pg_param_text(params, query->endpoint);
    hearth_pg_param_i64(params, limit_of(query->limit));
    return "SELECT " GROUP_COLUMNS
           "s.name = $2 AND g.start_at >= $3 AND g.start_at <= $4 AND ($5 = '' OR g.instance = $5)"
           " AND ($6 = '' OR g.endpoint = $6)" LATEST_FIRST "$7";
}

static enum hearth_status read_groups(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    const char *sql = group_statement(question, &params);
    if (sql == NULL) {
        return HEARTH_FAIL_ARENA(err, question->arena);
    }
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, sql, &params, question->cancel, &rows, ret_fault, err));
    size_t n = (size_t)PQntuples(rows);
    question->n = 0;
    question->groups = hearth_arena_array(question->arena, n, sizeof *question->groups);
    for (size_t i = 0; i < n && question->groups != NULL; i++) {
        take_group(question, rows, (int)i);
    }
    PQclear(rows);
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

enum hearth_status hearth_store_span_groups(const struct hearth_scope *scope,
                                            const struct hearth_span_query *query,
                                            struct hearth_span_group **ret, size_t *ret_n,
                                            struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {
        .tenant = scope->tenant, .query = query, .cancel = scope->cancel, .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_groups, &question, err));
    *ret = question.groups;
    *ret_n = question.n;
    return HEARTH_OK;
}

static enum hearth_status has_groups(void *context, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    bool *ret = context;
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, "SELECT FROM hearth_data.span_group LIMIT 1", NULL, NULL, &rows,
                              ret_fault, err));
    *ret = PQntuples(rows) > 0;
    PQclear(rows);
    return HEARTH_OK;
}

enum hearth_status hearth_store_has_span_groups(const struct hearth_scope *scope, bool *ret,
                                                struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    return hearth_store_with_pg(scope->store, scope->cancel, has_groups, ret, err);
}

/* ---- snapshots ---- */

static enum hearth_status read_runs(void *context, struct hearth_pg *pg,
                                    enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    hearth_pg_param_text_array(&params, question->ids, question->n_ids);
    if (!param_keys(&params, question->arena, question->ids, question->n_ids, false)) {
        return HEARTH_FAIL_ARENA(err, question->arena);
    }
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT r.task_id, r.segment_id, r.first_sequence, r.last_sequence, r.n_snapshots,"
        " r.first_at, r.last_at, r.snapshots FROM hearth_data.task_snapshot r JOIN"
        " hearth_data.service s USING (service_id) JOIN hearth_data.tenant n ON n.tenant_id ="
        " s.tenant_id AND n.name = $1 WHERE r.segment_key = ANY ($3) AND r.segment_id = ANY ($2)"
        " ORDER BY r.segment_id COLLATE \"C\", r.first_sequence, r.received_at, r.content",
        &params, question->cancel, &rows, ret_fault, err));
    question->n = (size_t)PQntuples(rows);
    question->runs = hearth_arena_array(question->arena, question->n, sizeof *question->runs);
    for (size_t i = 0; i < question->n && question->runs != NULL; i++) {
        question->runs[i] = (struct hearth_snapshot_run){
            .task_id = take(question, rows, (int)i, 0),
            .segment_id = take(question, rows, (int)i, 1),
            .first_sequence = hearth_pg_i32(rows, (int)i, 2),
            .last_sequence = hearth_pg_i32(rows, (int)i, 3),
            .n_snapshots = hearth_pg_i32(rows, (int)i, 4),
            .first_ms = hearth_pg_i64(rows, (int)i, 5),
            .last_ms = hearth_pg_i64(rows, (int)i, 6),
            .snapshots = take(question, rows, (int)i, 7),
        };
    }
    PQclear(rows);
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

enum hearth_status hearth_store_snapshot_runs(const struct hearth_scope *scope,
                                              const struct hearth_str *segment_ids, size_t n_ids,
                                              struct hearth_snapshot_run **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.tenant = scope->tenant,
                                .ids = segment_ids,
                                .n_ids = n_ids,
                                .cancel = scope->cancel,
                                .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_runs, &question, err));
    *ret = question.runs;
    *ret_n = question.n;
    return HEARTH_OK;
}

static enum hearth_status read_segments(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    hearth_pg_param_text_array(&params, question->ids, question->n_ids);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT r.task_id, r.segment_id, coalesce((SELECT g.instance FROM hearth_data.span_group g"
        " WHERE g.segment_key = r.segment_key AND g.service_id = r.service_id AND g.segment_id ="
        " convert_to(r.segment_id, 'UTF8') LIMIT 1), (SELECT g.instance FROM "
        "hearth_data.task_segment"
        " g WHERE g.service_id = r.service_id AND g.task_id = r.task_id AND g.segment_key ="
        " r.segment_key LIMIT 1), ''), r.n, r.first_at, r.last_at FROM (SELECT"
        " o.task_id, o.segment_id, o.segment_key, o.service_id, sum(o.n_snapshots)::int8 AS n,"
        " min(o.first_at) AS first_at, max(o.last_at) AS last_at FROM hearth_data.task_snapshot o"
        " JOIN hearth_data.service s USING (service_id) JOIN hearth_data.tenant t ON t.tenant_id ="
        " s.tenant_id AND t.name = $1 WHERE o.task_id = ANY ($2) GROUP BY 1, 2, 3, 4) r"
        " ORDER BY r.task_id COLLATE \"C\", r.first_at, r.segment_id COLLATE \"C\"",
        &params, question->cancel, &rows, ret_fault, err));
    question->n = (size_t)PQntuples(rows);
    question->segments =
        hearth_arena_array(question->arena, question->n, sizeof *question->segments);
    for (size_t i = 0; i < question->n && question->segments != NULL; i++) {
        question->segments[i] = (struct hearth_segment_snapshots){
            .task_id = take(question, rows, (int)i, 0),
            .segment_id = take(question, rows, (int)i, 1),
            .instance = take(question, rows, (int)i, 2),
            .n_snapshots = hearth_pg_i64(rows, (int)i, 3),
            .first_ms = hearth_pg_i64(rows, (int)i, 4),
            .last_ms = hearth_pg_i64(rows, (int)i, 5),
        };
    }
    PQclear(rows);
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

enum hearth_status hearth_store_segment_snapshots(const struct hearth_scope *scope,
                                                  const struct hearth_str *task_ids, size_t n_ids,
                                                  struct hearth_segment_snapshots **ret,
                                                  size_t *ret_n, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.tenant = scope->tenant,
                                .ids = task_ids,
                                .n_ids = n_ids,
                                .cancel = scope->cancel,
                                .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_segments, &question, err));
    *ret = question.segments;
    *ret_n = question.n;
    return HEARTH_OK;
}
