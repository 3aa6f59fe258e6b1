/* task_logs.c -- logs of tasks: what agents reported, and what of theirs was refused (contract: hearth/store/store_tasks.h). */
#include "hearth/store/store_tasks.h"

#include "pg/pg.h"
#include "pg/session.h"
#include "tasks/task_rows.h"

struct logging {
    struct hearth_str tenant, task_id;
    const struct hearth_str *task_ids; /* that are read */
    size_t n_task_ids;
    const struct hearth_task_log *entry;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    bool found;
    struct hearth_task_log *logs;
    size_t n;
};

static struct hearth_str take_text(const PGresult *rows, int row, int column,
                                   struct hearth_arena *arena)
{
    return hearth_arena_str(arena, hearth_pg_str(rows, row, column));
}

/* At most so long, and no half character at its end. */
static struct hearth_str cut(struct hearth_str message)
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

static enum hearth_status add_log(void *context, struct hearth_pg *pg,
                                  enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct logging *logging = context;
    const struct hearth_task_log *entry = logging->entry;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, logging->arena);
    hearth_pg_param_text(&params, logging->tenant);
    hearth_pg_param_text(&params, logging->task_id);
    hearth_pg_param_text(&params, entry->instance);
    hearth_pg_param_text(&params, entry->process_id);
    hearth_pg_param_i32(&params, (int32_t)entry->event);
    hearth_pg_param_i64(&params, entry->at_ms);
    hearth_pg_param_text(&params, cut(entry->message));
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "INSERT INTO hearth_data.task_log AS l (task_id, instance, process_id, event, at, last_at,"
        " message) SELECT t.task_id, $3, $4, $5, $6, $6, $7 FROM " HEARTH_TASK_TABLES
        " WHERE t.task_id = $2 ON CONFLICT (task_id, instance, process_id, event) DO UPDATE SET"
        " last_at = greatest(l.last_at, excluded.last_at), message = excluded.message RETURNING 1",
        &params, logging->cancel, &rows, ret_fault, err));
    logging->found = PQntuples(rows) > 0;
    PQclear(rows);
    return HEARTH_OK;
}

enum hearth_status hearth_store_task_log_add(const struct hearth_scope *scope,
                                             struct hearth_str task_id,
                                             const struct hearth_task_log *entry, bool *ret_known,
                                             struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    if (entry->instance.n > HEARTH_AGENT_NAME_BYTES ||
        entry->process_id.n > HEARTH_AGENT_NAME_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the name of an instance or process has more than %d bytes",
                           HEARTH_AGENT_NAME_BYTES);
    }
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct logging logging = {.tenant = scope->tenant,
                              .task_id = task_id,
                              .entry = entry,
                              .cancel = scope->cancel,
                              .arena = &arena};
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, add_log, &logging, err);
    hearth_arena_release(&arena);
    if (ret_known != NULL) {
        *ret_known = logging.found;
    }
    return status;
}

static enum hearth_status list_logs(void *context, struct hearth_pg *pg,
                                    enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct logging *logging = context;
    struct hearth_arena *arena = logging->arena;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_text(&params, logging->tenant);
    hearth_pg_param_text_array(&params, logging->task_ids, logging->n_task_ids);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT t.task_id, l.instance, l.process_id, l.event, l.at, l.last_at, l.message FROM"
        " " HEARTH_TASK_TABLES " CROSS JOIN LATERAL (SELECT instance, process_id, event::int4, at,"
        " last_at, message FROM hearth_data.task_log WHERE task_id = t.task_id UNION ALL"
        " SELECT CASE WHEN t.kind > 3 THEN d.target ELSE coalesce(min(i.name), '') END,"
        " CASE WHEN t.kind > 3 THEN '' ELSE d.target END, 1, min(d.delivered_at),"
        " max(d.delivered_at), '' FROM hearth_data.task_delivery d LEFT JOIN hearth_data.process p"
        " ON t.kind <= 3 AND p.service_id = t.service_id AND p.process_id = d.target"
        " LEFT JOIN hearth_data.instance i ON i.instance_id = p.instance_id"
        " WHERE d.task_id = t.task_id GROUP BY d.target) l WHERE t.task_id = ANY ($2) ORDER BY"
        " t.task_id COLLATE \"C\", l.at, l.event, l.instance COLLATE \"C\", l.process_id COLLATE "
        "\"C\"",
        &params, logging->cancel, &rows, ret_fault, err));
    logging->n = (size_t)PQntuples(rows);
    logging->logs = hearth_arena_array(arena, logging->n, sizeof *logging->logs);
    for (int i = 0; i < (int)logging->n && logging->logs != NULL; i++) {
        int32_t event = hearth_pg_i32(rows, i, 3);
        logging->logs[i] = (struct hearth_task_log){
            .task_id = take_text(rows, i, 0, arena),
            .instance = take_text(rows, i, 1, arena),
            .process_id = take_text(rows, i, 2, arena),
            .event = (enum hearth_task_event)event,
            .at_ms = hearth_pg_i64(rows, i, 4),
            .last_at_ms = hearth_pg_i64(rows, i, 5),
            .message = take_text(rows, i, 6, arena),
        };
    }
    PQclear(rows);
    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

enum hearth_status hearth_store_task_logs(const struct hearth_scope *scope,
                                          const struct hearth_str *task_ids, size_t n_task_ids,
                                          struct hearth_task_log **ret, size_t *ret_n,
                                          struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct logging logging = {.tenant = scope->tenant,
                              .task_ids = task_ids,
                              .n_task_ids = n_task_ids,
                              .cancel = scope->cancel,
                              .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, list_logs, &logging, err));
    *ret = logging.logs;
    *ret_n = logging.n;
    return HEARTH_OK;
}

/* ---- refusals ---- */

/* Agents send the rest of what they have for so long after the end of a trace task. */
#define SENT_AFTER "60000"

#define INSERT_LOG                                                                              \
    "INSERT INTO hearth_data.task_log AS l (task_id, instance, process_id, event, at, last_at," \
    " message)"
#define ON_CONFLICT                                                               \
    " ON CONFLICT (task_id, instance, process_id, event) DO UPDATE SET last_at =" \
    " greatest(l.last_at, excluded.last_at), message = excluded.message"

/* $1 tenant, $2 task, $3 process, $4 now, $5 message. */
static const char process_sql[] = INSERT_LOG
    " SELECT t.task_id, coalesce(i.name, ''), $3, 4, $4, $4, $5 FROM " HEARTH_TASK_TABLES
    " LEFT JOIN hearth_data.process p ON p.service_id = t.service_id AND p.process_id = $3"
    " LEFT JOIN hearth_data.instance i ON i.instance_id = p.instance_id WHERE t.task_id = $2"
    " AND (t.process_id = $3 OR EXISTS (SELECT FROM hearth_data.task_delivery d WHERE"
    " d.task_id = t.task_id AND d.target = $3))" ON_CONFLICT;

/* $1 tenant, $2 service, $3 instance, $4 now, $5 message. */
static const char instance_sql[] = INSERT_LOG
    " SELECT t.task_id, $3, '', 4, $4, $4, $5 FROM " HEARTH_TASK_TABLES
    " JOIN hearth_data.task_delivery d ON d.task_id = t.task_id AND d.target = $3"
    " AND d.agent_id = '' WHERE s.fingerprint = $2 AND t.kind = 4"
    " AND greatest(t.start_at, d.delivered_at) + t.duration + " SENT_AFTER " >= $4" ON_CONFLICT;

struct refusing {
    struct hearth_str tenant;
    const struct hearth_task_refusal *refusal;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
};

static enum hearth_status add_refusal(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct refusing *refusing = context;
    const struct hearth_task_refusal *refusal = refusing->refusal;
    bool is_of_process = refusal->task_id.n > 0;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, refusing->arena);
    hearth_pg_param_text(&params, refusing->tenant);
    if (is_of_process) {
        hearth_pg_param_text(&params, refusal->task_id);
        hearth_pg_param_text(&params, refusal->process_id);
    } else {
        hearth_task_param_service(&params, refusal->service);
        hearth_pg_param_text(&params, refusal->instance);
    }
    hearth_pg_param_i64(&params, refusal->at_ms);
    hearth_pg_param_text(&params, refusal->message);
    return hearth_pg_exec(pg, is_of_process ? process_sql : instance_sql, &params, refusing->cancel,
                          NULL, ret_fault, err);
}

enum hearth_status hearth_store_task_log_refusal(const struct hearth_scope *scope,
                                                 const struct hearth_task_refusal *refusal,
                                                 struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct refusing refusing = {scope->tenant, refusal, scope->cancel, &arena};
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, add_refusal, &refusing, err);
    hearth_arena_release(&arena);
    return status;
}
