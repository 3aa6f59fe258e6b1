/*
 * store_tasks.c -- creates, changes and reads profiling tasks (contract:
 * hearth/store/store_tasks.h; logs: task_logs.c).
 */
#include "hearth/base/clock.h"

#include "session/statements.h"
#include "tasks/task_rows.h"

#include <assert.h>

/* ---- rows ---- */

static const struct hearth_column task_columns[] = {HEARTH_TASK_COLUMN_TABLE(struct hearth_task, )};
static const struct hearth_row_type task_rows = HEARTH_ROW_TYPE(task_columns, struct hearth_task);

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

/* $1 tenant, $2 task. */
static void make_task_params(const struct hearth_scope *scope, struct hearth_str task_id,
                             struct hearth_arena *arena, struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, arena);
    hearth_pg_param_text(params, scope->tenant);
    hearth_pg_param_text(params, task_id);
}

/* ---- creating ---- */

/*
 * Whether a created task overlaps the new one in time. $3 service, $4 kind, $5 start, $6 end, $7
 * labels, $8 events. On-CPU and off-CPU tasks (kinds up to 2) may touch, and overlap only if both
 * select a process. pprof tasks (6) overlap only if they have a common event. By the index on
 * (service_id, start_at + duration).
 */
#define OVERLAP                                                                               \
    "EXISTS (SELECT FROM hearth_data.task t WHERE t.service_id = $3 AND t.kind = $4"          \
    " AND t.origin = 1 AND t.cancelled_at IS NULL AND CASE WHEN $4 <= 2 THEN t.start_at < $6" \
    " AND t.start_at + t.duration > $5 AND (t.labels = '{}' OR $7 = '{}' OR t.labels && $7"   \
    " OR EXISTS (SELECT FROM hearth_data.process p WHERE p.service_id = $3 AND p.labels @>"   \
    " (t.labels || $7))) ELSE t.start_at <= $6 AND t.start_at + t.duration >= $5"             \
    " AND ($4 <> 6 OR t.events && $8) END)"

/*
 * The columns of struct task_check. $1 tenant, $2 id of the new task, $9 now; the others as for
 * OVERLAP. By the primary key and the indexes on service_id.
 */
static const char SQL_CHECK[] =
    "SELECT (SELECT count(*) FROM " HEARTH_TASK_TABLES
    " WHERE t.cancelled_at IS NULL AND t.start_at + t.duration > $9),"
    " coalesce((SELECT max(created_at) FROM hearth_data.task WHERE service_id = $3"
    " AND origin = 1), 0), (EXISTS (SELECT FROM hearth_data.task WHERE task_id = $2))::int4,"
    " (" OVERLAP ")::int4";

/* What is stored when a task is to be created. */
struct task_check {
    int64_t n_tasks;    /* tasks of the tenant that have not ended */
    int64_t created_ms; /* the latest of the service */
    bool exists, overlaps;
};

#define CHECK(kind, member) HEARTH_COLUMN(kind, struct task_check, member)
static const struct hearth_column check_columns[] = {
    CHECK(I64, n_tasks),
    CHECK(I64, created_ms),
    CHECK(BOOL, exists),
    CHECK(BOOL, overlaps),
};
static const struct hearth_row_type check_rows = HEARTH_ROW_TYPE(check_columns, struct task_check);

/* A task to be created. */
struct task_put {
    struct hearth_task *task;
    int64_t max_tasks;
    const char *overlap_message;
};

/* Fails if the task must not be created. */
static enum hearth_status refuse_task(const struct task_put *put, const struct task_check *check,
                                      struct hearth_err *err)
{
    if (put->max_tasks > 0 && check->n_tasks >= put->max_tasks) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the tenant has %lld tasks that have not ended, as many as max-tasks "
                           "allows",
                           (long long)check->n_tasks);
    }

    if (check->exists) {
        return HEARTH_FAIL(err, HEARTH_ALREADY_EXISTS, "task \"" HEARTH_STR_FMT "\" exists",
                           HEARTH_STR_ARG(put->task->task_id));
    }

    if (check->overlaps && put->overlap_message != NULL) {
        return HEARTH_FAIL(err, HEARTH_ALREADY_EXISTS, "%s", put->overlap_message);
    }

    return HEARTH_OK;
}

/* Reads what is stored, under the lock of the tenant. */
static enum hearth_status check_task(const struct task_put *put,
                                     struct hearth_transaction *transaction, struct task_check *ret,
                                     struct hearth_err *err)
{
    const struct hearth_task *task = put->task;
    struct hearth_pg_params params;
    make_task_params(transaction->scope, task->task_id, transaction->arena, &params);
    hearth_pg_param_i32(&params, task->service_id);
    hearth_pg_param_i32(&params, (int32_t)task->kind);
    hearth_pg_param_i64(&params, task->start_ms);
    hearth_pg_param_i64(&params, task->start_ms + task->duration_ms);
    hearth_pg_param_text_array(&params, task->labels, task->n_labels);
    hearth_pg_param_text_array(&params, task->events, task->n_events);
    hearth_pg_param_i64(&params, hearth_clock_wall_ns() / HEARTH_NS_PER_MS);

    bool found;

    return hearth_transaction_select_one(transaction, transaction->arena, SQL_CHECK, &params,
                                         &check_rows, ret, &found, err);
}

static enum hearth_status insert_task(const struct hearth_task *task,
                                      struct hearth_transaction *transaction,
                                      struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
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

    return hearth_transaction_run(
        transaction,
        "INSERT INTO hearth_data.task (task_id, service_id, kind, origin, instance, process_id,"
        " process, labels, instances, endpoint, events, exec_args, start_at, duration, created_at,"
        " updated_at, cancelled_at, min_duration, dump_period, max_samples, sampling, causes,"
        " extended_at) VALUES ($1, $2, $3, $4, NULLIF($5, ''), NULLIF($6, ''), NULLIF($7, ''), $8,"
        " $9, $10, $11, $12, $13, $14, $15, $16, NULLIF($17, 0), $18, $19, $20,"
        " NULLIF($21, '')::jsonb, NULLIF($22, '')::jsonb, NULLIF($23, 0))",
        &params, NULL, err);
}

/* Creates the task of a struct task_put in a transaction. */
static enum hearth_status put_task(void *context, struct hearth_transaction *transaction,
                                   struct hearth_err *err)
{
    const struct task_put *put = context;
    struct hearth_task *task = put->task;
    /* Read the tenant's tasks under its lock. */
    HEARTH_TRY(hearth_transaction_lock_tenant(transaction, err));
    struct task_check check = {0};
    HEARTH_TRY(check_task(put, transaction, &check, err));
    if (check.exists && transaction->attempt > 1) {
        return HEARTH_OK; /* stored by an attempt whose COMMIT was not answered */
    }

    /* Creation times of a service's tasks are distinct: agents use them as cursors. */
    if (task->origin == HEARTH_TASK_CREATED && task->created_ms <= check.created_ms) {
        task->created_ms = check.created_ms + 1;
    }

    task->updated_ms = task->updated_ms > task->created_ms ? task->updated_ms : task->created_ms;

    HEARTH_TRY(refuse_task(put, &check, err));

    return insert_task(task, transaction, err);
}

enum hearth_status hearth_store_task_put(const struct hearth_scope *scope, struct hearth_task *task,
                                         int64_t max_tasks, const char *overlap_message,
                                         struct hearth_err *err)
{
    assert(task != NULL);

    struct task_put put = {task, max_tasks, overlap_message};

    return hearth_store_in_transaction(scope, put_task, &put, err);
}

/* ---- changing ---- */

static enum hearth_status fail_task_not_found(struct hearth_str task_id, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no task \"" HEARTH_STR_FMT "\"",
                       HEARTH_STR_ARG(task_id));
}

enum hearth_status hearth_store_task_cancel(const struct hearth_scope *scope,
                                            struct hearth_str task_id, int64_t now_ms,
                                            struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    make_task_params(scope, task_id, &arena, &params);
    hearth_pg_param_i64(&params, now_ms);

    size_t n;
    HEARTH_TRY(hearth_store_run(
        scope,
        "UPDATE hearth_data.task t SET cancelled_at = coalesce(t.cancelled_at, $3)"
        " FROM hearth_data.service s, hearth_data.tenant n WHERE t.task_id = $2"
        " AND s.service_id = t.service_id AND n.tenant_id = s.tenant_id AND n.name = $1"
        " RETURNING 1",
        &params, &n, err));

    return n > 0 ? HEARTH_OK : fail_task_not_found(task_id, err);
}

/*
 * An attempt whose answer was lost may have extended the task: then the task no longer ends soon,
 * and the next attempt changes nothing.
 */
enum hearth_status hearth_store_task_extend(const struct hearth_scope *scope,
                                            struct hearth_str task_id,
                                            const struct hearth_task_extension *extension,
                                            struct hearth_err *err)
{
    assert(extension->within_ms >= 0 && extension->more_ms > 0);

    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    make_task_params(scope, task_id, &arena, &params);
    hearth_pg_param_i64(&params, extension->now_ms);
    hearth_pg_param_i64(&params, extension->within_ms);
    hearth_pg_param_i64(&params, extension->more_ms);

    /* Extend the task, unless it was cancelled or does not end soon. */
    return hearth_store_run(
        scope,
        "UPDATE hearth_data.task t SET duration = t.duration + $5, extended_at = $3,"
        " updated_at = greatest(t.updated_at + 1, $3) FROM hearth_data.service s,"
        " hearth_data.tenant n WHERE t.task_id = $2 AND s.service_id = t.service_id"
        " AND n.tenant_id = s.tenant_id AND n.name = $1 AND t.cancelled_at IS NULL"
        " AND t.start_at + t.duration BETWEEN $3 AND $3 + $4",
        &params, NULL, err);
}

/* ---- reading ---- */

enum hearth_status hearth_store_task_get(const struct hearth_scope *scope,
                                         struct hearth_str task_id, struct hearth_task *ret,
                                         struct hearth_err *err)
{
    struct hearth_pg_params params;
    make_task_params(scope, task_id, scope->arena, &params);

    bool found;
    HEARTH_TRY(hearth_store_select_one(
        scope, "SELECT " HEARTH_TASK_COLUMNS " FROM " HEARTH_TASK_TABLES " WHERE t.task_id = $2",
        &params, &task_rows, ret, &found, err));

    return found ? HEARTH_OK : fail_task_not_found(task_id, err);
}

enum hearth_status hearth_store_tasks(const struct hearth_scope *scope,
                                      const struct hearth_task_filter *filter,
                                      struct hearth_task **ret, size_t *ret_n,
                                      struct hearth_err *err)
{
    assert(scope->arena != NULL);

    /* A zeroed member of the filter becomes a value that does not restrict. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
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

    /* Pages continue before ($10, $11). By the indexes on service_id and start_at. */
    return hearth_store_select(
        scope,
        "SELECT " HEARTH_TASK_COLUMNS " FROM " HEARTH_TASK_TABLES
        " WHERE ($2 = 0 OR s.fingerprint = $3)"
        " AND ($4 = '' OR t.instance = $4 OR $4 = ANY (t.instances))"
        " AND ($5 = '' OR t.endpoint = $5)"
        " AND (1 << t.kind) & $6 <> 0 AND ($7 = 0 OR t.origin = $7)"
        " AND t.start_at BETWEEN $8 AND $9"
        " AND ($10 = 0 OR (t.start_at, t.task_id COLLATE \"C\") < ($10, $11))"
        " ORDER BY t.start_at DESC, t.task_id COLLATE \"C\" DESC LIMIT $12",
        &params, &task_rows, ret, ret_n, err);
}
