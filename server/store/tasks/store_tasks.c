/* store_tasks.c -- profiling tasks as rows, and their logs (contract: hearth/store/store_tasks.h). */
#include "pg/pg.h"
#include "pg/session.h"
#include "tasks/task_rows.h"

/* What all questions here share. */
struct question {
    struct hearth_str tenant, task_id;
    struct hearth_task *task;
    const struct hearth_task_filter *filter;
    int64_t max_tasks, now_ms, within_ms, more_ms;
    const char *overlap_message;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    int n_attempts;
    bool found;
    struct hearth_task *tasks;
    size_t n;
};

/* ---- rows ---- */

static struct hearth_str take_text(const PGresult *rows, int row, int column,
                                   struct hearth_arena *arena)
{
    return hearth_arena_str(arena, hearth_pg_str(rows, row, column));
}

enum hearth_status hearth_task_take(const PGresult *rows, int row, int first,
                                    struct hearth_arena *arena, struct hearth_task *ret,
                                    struct hearth_err *err)
{
    int at = first;
    ret->task_id = take_text(rows, row, at++, arena);
    int32_t kind = hearth_pg_i32(rows, row, at++), origin = hearth_pg_i32(rows, row, at++);
    ret->kind = (enum hearth_task_kind)kind;
    ret->origin = (enum hearth_task_origin)origin;
    ret->service_id = hearth_pg_i32(rows, row, at++);
    ret->service = take_text(rows, row, at++, arena);
    ret->instance = take_text(rows, row, at++, arena);
    ret->process_id = take_text(rows, row, at++, arena);
    ret->process = take_text(rows, row, at++, arena);
    HEARTH_TRY(hearth_pg_str_array(rows, row, at++, arena, &ret->labels, &ret->n_labels, err));
    HEARTH_TRY(
        hearth_pg_str_array(rows, row, at++, arena, &ret->instances, &ret->n_instances, err));
    HEARTH_TRY(hearth_pg_str_array(rows, row, at++, arena, &ret->events, &ret->n_events, err));
    ret->endpoint = take_text(rows, row, at++, arena);
    ret->exec_args = take_text(rows, row, at++, arena);
    ret->start_ms = hearth_pg_i64(rows, row, at++);
    ret->duration_ms = hearth_pg_i64(rows, row, at++);
    ret->created_ms = hearth_pg_i64(rows, row, at++);
    ret->updated_ms = hearth_pg_i64(rows, row, at++);
    ret->cancelled_ms = hearth_pg_i64(rows, row, at++);
    ret->extended_ms = hearth_pg_i64(rows, row, at++);
    ret->min_duration_ms = hearth_pg_i32(rows, row, at++);
    ret->dump_period_ms = hearth_pg_i32(rows, row, at++);
    ret->max_samples = hearth_pg_i32(rows, row, at++);
    ret->sampling = take_text(rows, row, at++, arena);
    ret->causes = take_text(rows, row, at++, arena);
    HEARTH_ASSERT(at == first + HEARTH_N_TASK_COLUMNS);
    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

int64_t hearth_task_handed_out_until(const struct hearth_task *task)
{
    bool is_upload = task->kind == HEARTH_TASK_ASYNC_PROFILER || task->kind == HEARTH_TASK_PPROF;
    bool is_short = is_upload && task->duration_ms < HEARTH_TASK_HANDED_OUT_MS;
    return task->start_ms + (is_short ? HEARTH_TASK_HANDED_OUT_MS : task->duration_ms);
}

void hearth_task_param_service(struct hearth_pg_params *params, struct hearth_str service)
{
    hearth_pg_param_uuid(params, hearth_hash128(service.p, service.n, 0));
}

static void id_params(const struct question *question, struct hearth_arena *arena,
                      struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, arena);
    hearth_pg_param_text(params, question->tenant);
    hearth_pg_param_text(params, question->task_id);
}

/* ---- a new one ---- */

/* $1 tenant, $2 id, $3 service, $4 kind, $5 start, $6 end, $7 labels, $8 events, $9 now */
#define OVERLAP                                                                               \
    "EXISTS (SELECT FROM hearth_data.task t WHERE t.service_id = $3 AND t.kind = $4"          \
    " AND t.origin = 1 AND t.cancelled_at IS NULL AND CASE WHEN $4 <= 2 THEN t.start_at < $6" \
    " AND t.start_at + t.duration > $5 AND (t.labels = '{}' OR $7 = '{}' OR t.labels && $7"   \
    " OR EXISTS (SELECT FROM hearth_data.process p WHERE p.service_id = $3 AND p.labels @>"   \
    " (t.labels || $7))) ELSE t.start_at <= $6 AND t.start_at + t.duration >= $5"             \
    " AND ($4 <> 6 OR t.events && $8) END)"

static enum hearth_status refuse(const struct question *question, int64_t n_tasks, bool exists,
                                 bool overlaps, struct hearth_err *err)
{
    if (question->max_tasks > 0 && n_tasks >= question->max_tasks) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the tenant has %lld tasks that have not ended, as many as max-tasks "
                           "allows",
                           (long long)n_tasks);
    }
    if (exists) {
        return HEARTH_FAIL(err, HEARTH_ALREADY_EXISTS, "task \"" HEARTH_STR_FMT "\" exists",
                           HEARTH_STR_ARG(question->task->task_id));
    }
    if (overlaps && question->overlap_message != NULL) {
        return HEARTH_FAIL(err, HEARTH_ALREADY_EXISTS, "%s", question->overlap_message);
    }
    return HEARTH_OK;
}

/* Found: it is there already, by an attempt whose COMMIT went unanswered. */
static enum hearth_status check_task(struct question *question, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_task *task = question->task;
    struct hearth_pg_params params;
    id_params(question, question->arena, &params);
    hearth_pg_param_i32(&params, task->service_id);
    hearth_pg_param_i32(&params, (int32_t)task->kind);
    hearth_pg_param_i64(&params, task->start_ms);
    hearth_pg_param_i64(&params, task->start_ms + task->duration_ms);
    hearth_pg_param_text_array(&params, task->labels, task->n_labels);
    hearth_pg_param_text_array(&params, task->events, task->n_events);
    hearth_pg_param_i64(&params, hearth_clock_wall_ns() / HEARTH_NS_PER_MS);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT (SELECT count(*) FROM " HEARTH_TASK_TABLES
        " WHERE t.cancelled_at IS NULL AND t.start_at + t.duration > $9),"
        " coalesce((SELECT max(created_at) FROM hearth_data.task WHERE service_id = $3"
        " AND origin = 1), 0), (EXISTS (SELECT FROM hearth_data.task WHERE task_id = $2))::int4,"
        " (" OVERLAP ")::int4",
        &params, question->cancel, &rows, ret_fault, err));
    int64_t n_tasks = hearth_pg_i64(rows, 0, 0), last_ms = hearth_pg_i64(rows, 0, 1);
    bool exists = hearth_pg_i32(rows, 0, 2) != 0, overlaps = hearth_pg_i32(rows, 0, 3) != 0;
    PQclear(rows);
    question->found = exists && question->n_attempts > 1;
    if (question->found) {
        return HEARTH_OK;
    }
    if (task->origin == HEARTH_TASK_CREATED && task->created_ms <= last_ms) {
        task->created_ms = last_ms + 1;
    }
    task->updated_ms = task->updated_ms > task->created_ms ? task->updated_ms : task->created_ms;
    return refuse(question, n_tasks, exists, overlaps, err);
}

static enum hearth_status insert_task(struct question *question, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const struct hearth_task *task = question->task;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, task->task_id);
    hearth_pg_param_i32(&params, task->service_id);
    hearth_pg_param_i32(&params, (int32_t)task->kind);
    hearth_pg_param_i32(&params, (int32_t)task->origin);
    hearth_pg_param_text(&params, task->instance);
    hearth_pg_param_text(&params, task->process_id);
    hearth_pg_param_text(&params, task->process);
    hearth_pg_param_text_array(&params, task->labels, task->n_labels);
    hearth_pg_param_text_array(&params, task->instances, task->n_instances);
    hearth_pg_param_text(&params, task->endpoint);
    hearth_pg_param_text_array(&params, task->events, task->n_events);
    hearth_pg_param_text(&params, task->exec_args);
    hearth_pg_param_i64(&params, task->start_ms);
    hearth_pg_param_i64(&params, task->duration_ms);
    hearth_pg_param_i64(&params, task->created_ms);
    hearth_pg_param_i64(&params, task->updated_ms);
    hearth_pg_param_i64(&params, task->cancelled_ms);
    hearth_pg_param_i32(&params, task->min_duration_ms);
    hearth_pg_param_i32(&params, task->dump_period_ms);
    hearth_pg_param_i32(&params, task->max_samples);
    hearth_pg_param_text(&params, task->sampling);
    hearth_pg_param_text(&params, task->causes);
    hearth_pg_param_i64(&params, task->extended_ms);
    return hearth_pg_exec(
        pg,
        "INSERT INTO hearth_data.task (task_id, service_id, kind, origin, instance, process_id,"
        " process, labels, instances, endpoint, events, exec_args, start_at, duration, created_at,"
        " updated_at, cancelled_at, min_duration, dump_period, max_samples, sampling, causes,"
        " extended_at) VALUES ($1, $2, $3, $4, NULLIF($5, ''), NULLIF($6, ''), NULLIF($7, ''), $8,"
        " $9, $10, $11, $12, $13, $14, $15, $16, NULLIF($17, 0), $18, $19, $20,"
        " NULLIF($21, '')::jsonb, NULLIF($22, '')::jsonb, NULLIF($23, 0))",
        &params, question->cancel, NULL, ret_fault, err);
}

static enum hearth_status put_in_transaction(struct question *question, struct hearth_pg *pg,
                                             enum hearth_pg_fault *ret_fault,
                                             struct hearth_err *err)
{
    HEARTH_TRY(hearth_tenant_begin(pg, question->tenant, question->cancel, ret_fault, err));
    HEARTH_TRY(check_task(question, pg, ret_fault, err));
    if (question->found) {
        return HEARTH_OK;
    }
    HEARTH_TRY(insert_task(question, pg, ret_fault, err));
    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

static enum hearth_status put_task(void *context, struct hearth_pg *pg,
                                   enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    question->n_attempts++;
    enum hearth_status status = put_in_transaction(question, pg, ret_fault, err);
    hearth_pg_rollback(pg);
    return status;
}

enum hearth_status hearth_store_task_put(const struct hearth_scope *scope, struct hearth_task *task,
                                         int64_t max_tasks, const char *overlap_message,
                                         struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct question question = {.tenant = scope->tenant,
                                .task_id = task->task_id,
                                .task = task,
                                .max_tasks = max_tasks,
                                .overlap_message = overlap_message,
                                .cancel = scope->cancel,
                                .arena = &arena};
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, put_task, &question, err);
    hearth_arena_release(&arena);
    return status;
}

/* ---- changes ---- */

static enum hearth_status cancel_task(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    id_params(question, question->arena, &params);
    hearth_pg_param_i64(&params, question->now_ms);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "UPDATE hearth_data.task t SET cancelled_at = coalesce(t.cancelled_at, $3)"
        " FROM hearth_data.service s, hearth_data.tenant n WHERE t.task_id = $2"
        " AND s.service_id = t.service_id AND n.tenant_id = s.tenant_id AND n.name = $1"
        " RETURNING 1",
        &params, question->cancel, &rows, ret_fault, err));
    question->found = PQntuples(rows) > 0;
    PQclear(rows);
    return HEARTH_OK;
}

static enum hearth_status not_found(struct hearth_str task_id, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no task \"" HEARTH_STR_FMT "\"",
                       HEARTH_STR_ARG(task_id));
}

enum hearth_status hearth_store_task_cancel(const struct hearth_scope *scope,
                                            struct hearth_str task_id, int64_t now_ms,
                                            struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct question question = {.tenant = scope->tenant,
                                .task_id = task_id,
                                .now_ms = now_ms,
                                .cancel = scope->cancel,
                                .arena = &arena};
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, cancel_task, &question, err);
    hearth_arena_release(&arena);
    HEARTH_TRY(status);
    return question.found ? HEARTH_OK : not_found(task_id, err);
}

/* An attempt whose answer was lost may have done it: then it does not end so soon any more, and the next
 * attempt says that nothing was extended. Who asked wants it to live, which it does. */
static enum hearth_status extend_task(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    id_params(question, question->arena, &params);
    hearth_pg_param_i64(&params, question->now_ms);
    hearth_pg_param_i64(&params, question->within_ms);
    hearth_pg_param_i64(&params, question->more_ms);
    PGresult *rows = NULL;
    HEARTH_TRY(
        hearth_pg_exec(pg,
                       "UPDATE hearth_data.task t SET duration = t.duration + $5, extended_at = $3,"
                       " updated_at = greatest(t.updated_at + 1, $3) FROM hearth_data.service s,"
                       " hearth_data.tenant n WHERE t.task_id = $2 AND s.service_id = t.service_id"
                       " AND n.tenant_id = s.tenant_id AND n.name = $1 AND t.cancelled_at IS NULL"
                       " AND t.start_at + t.duration BETWEEN $3 AND $3 + $4 RETURNING 1",
                       &params, question->cancel, &rows, ret_fault, err));
    question->found = PQntuples(rows) > 0;
    PQclear(rows);
    return HEARTH_OK;
}

enum hearth_status hearth_store_task_extend(const struct hearth_scope *scope,
                                            struct hearth_str task_id, int64_t now_ms,
                                            int64_t within_ms, int64_t more_ms, bool *ret_extended,
                                            struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct question question = {.tenant = scope->tenant,
                                .task_id = task_id,
                                .now_ms = now_ms,
                                .within_ms = within_ms,
                                .more_ms = more_ms,
                                .cancel = scope->cancel,
                                .arena = &arena};
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, extend_task, &question, err);
    hearth_arena_release(&arena);
    *ret_extended = question.found;
    return status;
}

/* ---- questions ---- */

static enum hearth_status take_tasks(struct question *question, const PGresult *rows,
                                     struct hearth_err *err)
{
    question->n = (size_t)PQntuples(rows);
    question->tasks = hearth_arena_calloc(question->arena, question->n, sizeof *question->tasks);
    if (question->tasks == NULL) {
        return HEARTH_FAIL_ARENA(err, question->arena);
    }
    for (size_t i = 0; i < question->n; i++) {
        HEARTH_TRY(hearth_task_take(rows, (int)i, 0, question->arena, &question->tasks[i], err));
    }
    return HEARTH_OK;
}

static enum hearth_status get_task(void *context, struct hearth_pg *pg,
                                   enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    id_params(question, question->arena, &params);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg, "SELECT " HEARTH_TASK_COLUMNS " FROM " HEARTH_TASK_TABLES " WHERE t.task_id = $2",
        &params, question->cancel, &rows, ret_fault, err));
    enum hearth_status status = take_tasks(question, rows, err);
    PQclear(rows);
    return status;
}

enum hearth_status hearth_store_task_get(const struct hearth_scope *scope,
                                         struct hearth_str task_id, struct hearth_task *ret,
                                         struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.tenant = scope->tenant,
                                .task_id = task_id,
                                .cancel = scope->cancel,
                                .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, get_task, &question, err));
    if (question.n == 0) {
        return not_found(task_id, err);
    }
    *ret = question.tasks[0];
    return HEARTH_OK;
}

static enum hearth_status list_tasks(void *context, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    const struct hearth_task_filter *filter = question->filter;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    hearth_pg_param_i32(&params, filter->service.n > 0);
    hearth_task_param_service(&params, filter->service);
    hearth_pg_param_text(&params, filter->instance);
    hearth_pg_param_text(&params, filter->endpoint);
    hearth_pg_param_i32(&params, filter->kinds == 0 ? -1 : (int32_t)filter->kinds);
    hearth_pg_param_i32(&params, (int32_t)filter->origin);
    hearth_pg_param_i64(&params, filter->start_from_ms);
    hearth_pg_param_i64(&params, filter->start_to_ms > 0 ? filter->start_to_ms : INT64_MAX);
    hearth_pg_param_i64(&params, filter->before_start_ms);
    hearth_pg_param_text(&params, filter->before_task_id);
    hearth_pg_param_i64(&params, filter->limit > 0 ? (int64_t)filter->limit : INT64_MAX);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT " HEARTH_TASK_COLUMNS " FROM " HEARTH_TASK_TABLES
        " WHERE ($2 = 0 OR s.fingerprint = $3) AND ($4 = '' OR t.instance = $4"
        " OR $4 = ANY (t.instances)) AND ($5 = '' OR t.endpoint = $5)"
        " AND (1 << t.kind) & $6 <> 0 AND ($7 = 0 OR t.origin = $7) AND t.start_at BETWEEN $8"
        " AND $9 AND ($10 = 0 OR (t.start_at, t.task_id COLLATE \"C\") < ($10, $11))"
        " ORDER BY t.start_at DESC, t.task_id COLLATE \"C\" DESC LIMIT $12",
        &params, question->cancel, &rows, ret_fault, err));
    enum hearth_status status = take_tasks(question, rows, err);
    PQclear(rows);
    return status;
}

enum hearth_status hearth_store_tasks(const struct hearth_scope *scope,
                                      const struct hearth_task_filter *filter,
                                      struct hearth_task **ret, size_t *ret_n,
                                      struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {
        .tenant = scope->tenant, .filter = filter, .cancel = scope->cancel, .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, list_tasks, &question, err));
    *ret = question.tasks;
    *ret_n = question.n;
    return HEARTH_OK;
}
