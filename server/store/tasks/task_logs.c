/*
 * task_logs.c -- writes and reads logs of tasks: reported events, and refused data (contract:
 * hearth/store/store_tasks.h).
 */
#include "hearth/store/store_tasks.h"

#include "tasks/task_rows.h"

#include <assert.h>

#define INSERT_LOG                                                                              \
    "INSERT INTO hearth_data.task_log AS l (task_id, instance, process_id, event, at, last_at," \
    " message)"
/*
 * The first event of a kind and target keeps its time; later ones replace its last time and its
 * message.
 */
#define ON_CONFLICT                                                               \
    " ON CONFLICT (task_id, instance, process_id, event) DO UPDATE SET last_at =" \
    " greatest(l.last_at, excluded.last_at), message = excluded.message"

/* ---- reported events ---- */

/* The first HEARTH_TASK_MESSAGE_BYTES of a message at most, without a part of a character. */
static struct hearth_str shorten_message(struct hearth_str message)
{
    if (message.n <= HEARTH_TASK_MESSAGE_BYTES) {
        return message;
    }

    size_t n = HEARTH_TASK_MESSAGE_BYTES;
    while (n > 0 && ((unsigned char)message.p[n] & 0xC0) == 0x80) {
        n--;
    }

    return hearth_str_n(message.p, n);
}

enum hearth_status hearth_store_task_log_add(const struct hearth_scope *scope,
                                             struct hearth_str task_id,
                                             const struct hearth_task_log *entry, bool *ret_known,
                                             struct hearth_err *err)
{
    if (entry->instance.n > HEARTH_AGENT_NAME_BYTES ||
        entry->process_id.n > HEARTH_AGENT_NAME_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the name of an instance or process has more than %d bytes",
                           HEARTH_AGENT_NAME_BYTES);
    }

    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_text(&params, task_id);
    hearth_pg_param_text(&params, entry->instance);
    hearth_pg_param_text(&params, entry->process_id);
    hearth_pg_param_i32(&params, (int32_t)entry->event);
    hearth_pg_param_i64(&params, entry->at_ms);
    hearth_pg_param_text(&params, shorten_message(entry->message));

    /* Add the event, if the tenant has the task. */
    size_t n = 0;
    enum hearth_status status = hearth_store_run(
        scope,
        INSERT_LOG " SELECT t.task_id, $3, $4, $5, $6, $6, $7 FROM " HEARTH_TASK_TABLES
                   " WHERE t.task_id = $2" ON_CONFLICT " RETURNING 1",
        &params, &n, err);
    if (ret_known != NULL) {
        *ret_known = n > 0;
    }

    return status;
}

/* ---- reading ---- */

/*
 * Logs of the tasks $2 and, as event 1 (NOTIFIED), their deliveries: by instance for tasks of
 * instances (kinds above 3), by process, with its instance, for the others. By the primary keys of
 * task_log and task_delivery.
 */
static const char SQL_LOGS[] =
    "SELECT t.task_id, l.instance, l.process_id, l.event, l.at, l.last_at, l.message"
    " FROM " HEARTH_TASK_TABLES " CROSS JOIN LATERAL"
    " (SELECT instance, process_id, event::int4, at, last_at, message"
    "  FROM hearth_data.task_log WHERE task_id = t.task_id"
    "  UNION ALL"
    "  SELECT CASE WHEN t.kind > 3 THEN d.target ELSE coalesce(min(i.name), '') END,"
    "  CASE WHEN t.kind > 3 THEN '' ELSE d.target END, 1, min(d.delivered_at),"
    "  max(d.delivered_at), ''"
    "  FROM hearth_data.task_delivery d LEFT JOIN hearth_data.process p"
    "  ON t.kind <= 3 AND p.service_id = t.service_id AND p.process_id = d.target"
    "  LEFT JOIN hearth_data.instance i ON i.instance_id = p.instance_id"
    "  WHERE d.task_id = t.task_id GROUP BY d.target) l"
    " WHERE t.task_id = ANY ($2)"
    " ORDER BY t.task_id COLLATE \"C\", l.at, l.event, l.instance COLLATE \"C\","
    " l.process_id COLLATE \"C\"";

#define LOG(kind, member) HEARTH_COLUMN(kind, struct hearth_task_log, member)
static const struct hearth_column log_columns[] = {
    LOG(TEXT, task_id), LOG(TEXT, instance),  LOG(TEXT, process_id), LOG(I32, event),
    LOG(I64, at_ms),    LOG(I64, last_at_ms), LOG(TEXT, message),
};
static const struct hearth_row_type log_rows = HEARTH_ROW_TYPE(log_columns, struct hearth_task_log);

enum hearth_status hearth_store_task_logs(const struct hearth_scope *scope,
                                          const struct hearth_str *task_ids, size_t n_task_ids,
                                          struct hearth_task_log **ret, size_t *ret_n,
                                          struct hearth_err *err)
{
    assert(task_ids != NULL || n_task_ids == 0);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_text_array(&params, task_ids, n_task_ids);

    return hearth_store_select(scope, SQL_LOGS, &params, &log_rows, ret, ret_n, err);
}

/* ---- refusals ---- */

/* How long, in milliseconds, agents send the rest of their data after the end of a trace task. */
#define SENT_AFTER "60000"

/*
 * Logs refused data of a process, if the task was for the process. $1 tenant, $2 task, $3 process,
 * $4 now, $5 message. By the primary keys of task, process and task_delivery.
 */
static const char SQL_PROCESS_REFUSAL[] = INSERT_LOG
    " SELECT t.task_id, coalesce(i.name, ''), $3, 4, $4, $4, $5 FROM " HEARTH_TASK_TABLES
    " LEFT JOIN hearth_data.process p ON p.service_id = t.service_id AND p.process_id = $3"
    " LEFT JOIN hearth_data.instance i ON i.instance_id = p.instance_id WHERE t.task_id = $2"
    " AND (t.process_id = $3 OR EXISTS (SELECT FROM hearth_data.task_delivery d WHERE"
    " d.task_id = t.task_id AND d.target = $3))" ON_CONFLICT;

/*
 * Logs refused data of an instance for each trace task (4) that runs on it. $1 tenant, $2 service,
 * $3 instance, $4 now, $5 message. By the index task_delivery_target.
 */
static const char SQL_INSTANCE_REFUSAL[] = INSERT_LOG
    " SELECT t.task_id, $3, '', 4, $4, $4, $5 FROM " HEARTH_TASK_TABLES
    " JOIN hearth_data.task_delivery d ON d.task_id = t.task_id AND d.target = $3"
    " AND d.agent_id = '' WHERE s.fingerprint = $2 AND t.kind = 4"
    " AND greatest(t.start_at, d.delivered_at) + t.duration + " SENT_AFTER " >= $4" ON_CONFLICT;

enum hearth_status hearth_store_task_log_refusal(const struct hearth_scope *scope,
                                                 const struct hearth_task_refusal *refusal,
                                                 struct hearth_err *err)
{
    bool is_of_process = refusal->task_id.n > 0;

    /* Make the parameters of the statement for processes or for instances. */
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_text(&params, scope->tenant);
    if (is_of_process) {
        hearth_pg_param_text(&params, refusal->task_id);
        hearth_pg_param_text(&params, refusal->process_id);
    } else {
        hearth_task_param_service(&params, refusal->service);
        hearth_pg_param_text(&params, refusal->instance);
    }

    hearth_pg_param_i64(&params, refusal->at_ms);
    hearth_pg_param_text(&params, refusal->message);

    return hearth_store_run(scope, is_of_process ? SQL_PROCESS_REFUSAL : SQL_INSTANCE_REFUSAL,
                            &params, NULL, err);
}
