/* task_facts.c -- what is known about tasks beyond their rows (contract: hearth/store/task_facts.h). */
#include "hearth/store/task_facts.h"

#include "hearth/base/clock.h"

#include "pg/pg.h"
#include "pg/session.h"
#include "tasks/task_rows.h"

/* Polls are noted once a minute, and agents pause between them: so much earlier counts as asking then. */
#define ASKED_BEFORE "120000"
/* Processes that were reported so much before a task's start could still be told. */
#define SEEN_BEFORE "300000"

/* A flush of stack traces has what was sampled since the one before, so much earlier. */
#define FLUSH_PERIOD "5000"
/* The last flush of a network task comes so much after its end. */
#define FLUSHED_AFTER "10000"

enum row_kind {
    ROW_DELIVERY = 0, /* others up to 9: enum hearth_task_event */
    ROW_RESULT = 10,
};

struct question {
    struct hearth_str tenant, service, instance;
    const struct hearth_str *labels;
    size_t n_labels;
    int64_t seen_after_ms;
    const struct hearth_task *tasks;
    size_t n;
    struct hearth_str *task_ids;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    struct hearth_task_scope *scope;
    struct hearth_task_fact *facts;
};

/* ---- a service ---- */

static enum hearth_status read_scope(void *context, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_task_scope *scope = question->scope;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    hearth_task_param_service(&params, question->service);
    hearth_pg_param_text(&params, question->instance);
    hearth_pg_param_text_array(&params, question->labels, question->n_labels);
    hearth_pg_param_i64(&params, question->seen_after_ms);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT ARRAY(SELECT DISTINCT l COLLATE \"C\" FROM hearth_data.process p, unnest(p.labels) "
        "l"
        " WHERE p.service_id = s.service_id AND p.detect_type <> 3 ORDER BY 1),"
        " count(p.*) FILTER (WHERE p.last_seen >= $5),"
        " count(p.*) FILTER (WHERE p.last_seen >= $5 AND p.labels @> $4),"
        " count(p.*) FILTER (WHERE p.last_seen >= $5 AND p.labels @> $4 AND p.can_be_profiled),"
        " count(p.*) FILTER (WHERE i.name = $3),"
        " coalesce((SELECT max(at) FROM hearth_data.agent_poll a WHERE a.tenant_id = n.tenant_id"
        " AND a.service_id = 0 AND a.kind = 1), 0)"
        " FROM hearth_data.tenant n JOIN hearth_data.service s ON s.tenant_id = n.tenant_id"
        " LEFT JOIN hearth_data.process p ON p.service_id = s.service_id AND p.detect_type <> 3"
        " LEFT JOIN hearth_data.instance i ON i.instance_id = p.instance_id"
        " WHERE n.name = $1 AND s.fingerprint = $2 GROUP BY s.service_id, n.tenant_id",
        &params, question->cancel, &rows, ret_fault, err));
    enum hearth_status status = HEARTH_OK;
    *scope = (struct hearth_task_scope){.is_known = PQntuples(rows) > 0};
    if (scope->is_known) {
        status =
            hearth_pg_str_array(rows, 0, 0, question->arena, &scope->labels, &scope->n_labels, err);
        scope->n_processes = hearth_pg_i64(rows, 0, 1);
        scope->n_matching = hearth_pg_i64(rows, 0, 2);
        scope->n_profilable = hearth_pg_i64(rows, 0, 3);
        scope->n_of_instance = hearth_pg_i64(rows, 0, 4);
        scope->asked_ms = hearth_pg_i64(rows, 0, 5);
    }
    PQclear(rows);
    return status;
}

enum hearth_status hearth_store_task_scope(const struct hearth_scope *scope,
                                           struct hearth_str service, struct hearth_str instance,
                                           const struct hearth_str *labels, size_t n_labels,
                                           int64_t seen_after_ms, struct hearth_task_scope *ret,
                                           struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.tenant = scope->tenant,
                                .service = service,
                                .instance = instance,
                                .labels = labels,
                                .n_labels = n_labels,
                                .seen_after_ms = seen_after_ms,
                                .cancel = scope->cancel,
                                .arena = scope->arena,
                                .scope = ret};
    return hearth_store_with_pg(scope->store, scope->cancel, read_scope, &question, err);
}

/* ---- targets ---- */

/*
 * $1 tenant, $2 task ids. What each brings: task, target, kind of row, first, last, number, milliseconds that these cover,
 * text.
 */
static const char targets_sql[] =
    "SELECT r.task_id, r.target, r.what, r.at, r.last, r.n, r.covered, r.text, coalesce(p.name, "
    "''),"
    " coalesce(i.name, '') FROM (SELECT d.task_id, d.target, 0 AS what, min(d.delivered_at) AS at,"
    " coalesce(max(d.confirmed_at), 0) AS last, 0::int8 AS n, 0::int8 AS covered, "
    "(array_agg(d.agent_id ORDER BY"
    " d.delivered_at DESC))[1] AS text FROM hearth_data.task_delivery d WHERE d.task_id = ANY ($2)"
    " GROUP BY d.task_id, d.target UNION ALL SELECT l.task_id, CASE WHEN l.process_id <> '' THEN"
    " l.process_id ELSE l.instance END, l.event::int4, l.at, l.last_at, 0::int8, 0::int8, l.message"
    " FROM hearth_data.task_log l WHERE l.task_id = ANY ($2)"
    " UNION ALL SELECT h.task_id, h.process_id, 10, min(h.start_at), max(h.end_at),"
    " coalesce(sum(c.n), 0)::int8, coalesce(sum(h.end_at - greatest(h.start_at, c.first_at -"
    " " FLUSH_PERIOD ")), 0)::int8, '' FROM hearth_data.task_schedule h JOIN hearth_data.tenant n"
    " ON n.tenant_id = h.tenant_id AND n.name = $1 CROSS JOIN LATERAL (SELECT sum(n_records) AS n,"
    " min(k.at) AS first_at FROM hearth_data.task_stack_chunk k WHERE k.service_id = h.service_id"
    " AND k.schedule_no = h.schedule_no) c WHERE h.task_id = ANY ($2) GROUP BY h.task_id,"
    " h.process_id UNION ALL SELECT u.task_id, u.instance, 10, min(u.received_at),"
    " max(u.received_at), count(*), 0::int8, '' FROM hearth_data.task_upload u JOIN "
    "hearth_data.tenant n"
    " ON n.tenant_id = u.tenant_id AND n.name = $1 WHERE u.task_id = ANY ($2) GROUP BY u.task_id,"
    " u.instance UNION ALL SELECT k.task_id, coalesce(g.instance, ''), 10, min(k.first_at),"
    " max(k.last_at), sum(k.n_snapshots)::int8, 0::int8, '' FROM " HEARTH_TASK_TABLES
    " JOIN hearth_data.task_snapshot k ON k.task_id = t.task_id AND k.service_id = t.service_id"
    " LEFT JOIN LATERAL (SELECT instance FROM hearth_data.span_group WHERE segment_key ="
    " k.segment_key AND service_id = k.service_id AND flags & 1 = 0 UNION ALL SELECT instance FROM"
    " hearth_data.task_segment WHERE service_id = k.service_id AND task_id = k.task_id AND"
    " segment_key = k.segment_key LIMIT 1) g ON true WHERE t.task_id = ANY ($2)"
    " GROUP BY k.task_id, g.instance UNION ALL SELECT t.task_id, CASE k.side WHEN 1 THEN"
    " k.source_id ELSE k.destination_id END, 10, min(k.at), max(k.at), count(*), 0::int8, '' FROM"
    " " HEARTH_TASK_TABLES " JOIN hearth_data.network_sample k ON k.service_id = t.service_id AND"
    " k.instance = t.instance AND k.at >= t.start_at AND k.at <= t.start_at + t.duration +"
    " " FLUSHED_AFTER " WHERE t.kind = 3 AND t.task_id = ANY ($2) GROUP BY 1, 2) r JOIN "
    "hearth_data.task t ON t.task_id = r.task_id LEFT JOIN "
    "hearth_data.process "
    "p"
    " ON t.kind <= 3 AND p.service_id = t.service_id AND p.process_id = r.target"
    " LEFT JOIN hearth_data.instance i ON i.instance_id = p.instance_id"
    " ORDER BY r.task_id COLLATE \"C\", r.target COLLATE \"C\", r.what, r.last";

static struct hearth_str text_of(const PGresult *rows, int row, int column,
                                 struct hearth_arena *arena)
{
    return hearth_arena_str(arena, hearth_pg_str(rows, row, column));
}

static void take_row(struct hearth_task_target *target, const PGresult *rows, int row,
                     struct hearth_arena *arena)
{
    int32_t what = hearth_pg_i32(rows, row, 2);
    int64_t at_ms = hearth_pg_i64(rows, row, 3), last_ms = hearth_pg_i64(rows, row, 4);
    switch (what) {
    case ROW_DELIVERY:
        target->delivered_ms = at_ms;
        target->confirmed_ms = last_ms;
        target->agent_id = text_of(rows, row, 7, arena);
        break;
    case HEARTH_TASK_NOTIFIED: /* of imported tasks */
        target->delivered_ms = target->delivered_ms > 0 ? target->delivered_ms : at_ms;
        target->confirmed_ms = target->confirmed_ms > 0 ? target->confirmed_ms : last_ms;
        break;
    case HEARTH_TASK_FINISHED:
        target->finished_ms = last_ms;
        break;
    case HEARTH_TASK_TOO_LARGE:
        target->too_large_ms = last_ms;
        target->message = text_of(rows, row, 7, arena);
        break;
    case HEARTH_TASK_FAILED:
        if (last_ms >= target->too_large_ms) {
            target->message = text_of(rows, row, 7, arena);
        }
        target->failed_ms = last_ms;
        break;
    default:
        target->n_records += hearth_pg_i64(rows, row, 5);
        target->covered_ms += hearth_pg_i64(rows, row, 6);
        target->first_ms =
            target->first_ms > 0 && target->first_ms < at_ms ? target->first_ms : at_ms;
        target->last_ms = target->last_ms > last_ms ? target->last_ms : last_ms;
        break;
    }
}

/* A task that a policy started runs already: its agent told us of it. */
static void add_triggered(struct question *question, size_t at, struct hearth_task_target *targets)
{
    const struct hearth_task *task = &question->tasks[at];
    struct hearth_task_fact *fact = &question->facts[at];
    struct hearth_str name = task->process_id.n > 0 ? task->process_id : task->instance;
    size_t i = 0;
    while (i < fact->n_targets && !hearth_str_eq(fact->targets[i].target, name)) {
        i++;
    }
    if (i == fact->n_targets) {
        if (i == 0) {
            fact->targets = targets;
        }
        fact->targets[fact->n_targets++] = (struct hearth_task_target){
            .target = name, .instance = task->instance, .process = task->process};
    }
    fact->targets[i].delivered_ms = task->created_ms;
    fact->targets[i].confirmed_ms = task->created_ms;
}

static size_t find_task(const struct question *question, struct hearth_str task_id)
{
    size_t i = 0;
    while (i < question->n && !hearth_str_eq(question->tasks[i].task_id, task_id)) {
        i++;
    }
    return i;
}

/* A new target of tasks[at] in the room for all. */
static struct hearth_task_target *add_target(struct question *question, size_t at,
                                             struct hearth_task_target *free_room,
                                             const PGresult *rows, int row)
{
    struct hearth_task_fact *fact = &question->facts[at];
    if (fact->n_targets == 0) {
        fact->targets = free_room;
    }
    struct hearth_task_target *target = &fact->targets[fact->n_targets++];
    *target = (struct hearth_task_target){
        .target = text_of(rows, row, 1, question->arena),
        .process = text_of(rows, row, 8, question->arena),
        .instance = text_of(rows, row, 9, question->arena),
    };
    if (question->tasks[at].kind > HEARTH_TASK_NETWORK) {
        target->instance = target->target;
    }
    return target;
}

/* Rows come by task and target: those of a target follow each other. */
static enum hearth_status take_targets(struct question *question, const PGresult *rows,
                                       struct hearth_err *err)
{
    int n_rows = PQntuples(rows);
    /* Room for a triggered target behind those of each task. */
    struct hearth_task_target *room =
        hearth_arena_array(question->arena, (size_t)n_rows + question->n, sizeof *room);
    if (room == NULL) {
        return HEARTH_FAIL_ARENA(err, question->arena);
    }
    struct hearth_task_target *target = NULL;
    size_t n_room = 0, at = question->n;
    for (int row = 0; row < n_rows; row++) {
        struct hearth_str task_id = hearth_pg_str(rows, row, 0);
        if (at == question->n || !hearth_str_eq(question->tasks[at].task_id, task_id)) {
            n_room += at < question->n;
            at = find_task(question, task_id);
            target = NULL;
        }
        if (at == question->n) {
            return HEARTH_FAIL(err, HEARTH_INTERNAL, "facts of a task that nobody asked for");
        }
        if (target == NULL || !hearth_str_eq(target->target, hearth_pg_str(rows, row, 1))) {
            target = add_target(question, at, &room[n_room], rows, row);
            n_room++;
        }
        take_row(target, rows, row, question->arena);
    }
    n_room += at < question->n;
    for (size_t i = 0; i < question->n; i++) {
        if (question->tasks[i].origin == HEARTH_TASK_BY_POLICY) {
            bool is_new = question->facts[i].n_targets == 0;
            add_triggered(question, i, is_new ? &room[n_room] : NULL);
            n_room += is_new;
        }
    }
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

/* ---- asking and processes, of tasks that nobody was told of ---- */

#define END HEARTH_TASK_HANDED_OUT_UNTIL("t")

static const char asking_sql[] =
    "SELECT t.task_id, q.n, coalesce(q.last, 0), coalesce(q.after, 0), coalesce(q.names, '{}'),"
    " CASE WHEN t.kind <= 3 THEN p.n ELSE q.n END, CASE WHEN t.kind <= 3 THEN p.n_matching ELSE"
    " q.n_named END, p.n_profilable, coalesce(p.after, 0) FROM " HEARTH_TASK_TABLES
    " CROSS JOIN LATERAL (SELECT count(DISTINCT a.instance) FILTER (WHERE w) AS n, max(a.at) FILTER"
    " (WHERE a.since <= " END ") AS last, min(a.since) FILTER (WHERE a.since > " END ") AS after,"
    " (array_agg(DISTINCT a.instance) FILTER (WHERE w))[1:3] AS names, count(DISTINCT a.instance)"
    " FILTER (WHERE w AND (t.instances = '{}' OR a.instance = ANY (t.instances))) AS n_named"
    " FROM hearth_data.agent_poll a CROSS JOIN LATERAL (SELECT a.since <= " END
    " AND a.at >= t.start_at - " ASKED_BEFORE " AS w) x WHERE a.tenant_id = s.tenant_id"
    " AND a.service_id = CASE WHEN t.kind <= 3 THEN 0 ELSE t.service_id END"
    " AND a.kind = CASE WHEN t.kind <= 3 THEN 1 ELSE t.kind END) q"
    " CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE w) AS n, count(*) FILTER (WHERE w AND m) AS"
    " n_matching, count(*) FILTER (WHERE w AND m AND p.can_be_profiled) AS n_profilable,"
    " min(p.first_seen) FILTER (WHERE m AND p.first_seen > " END ") AS after"
    " FROM hearth_data.process p JOIN hearth_data.instance i ON i.instance_id = p.instance_id"
    " CROSS JOIN LATERAL (SELECT p.last_seen >= t.start_at - " SEEN_BEFORE
    " AND p.first_seen <= " END
    " AS w, CASE WHEN t.kind = 3 THEN i.name = t.instance ELSE p.labels @> t.labels END AS m) x"
    " WHERE t.kind <= 3 AND p.service_id = t.service_id AND p.detect_type <> 3) p"
    " WHERE t.task_id = ANY ($2) AND NOT EXISTS (SELECT FROM hearth_data.task_delivery d"
    " WHERE d.task_id = t.task_id)";

static struct hearth_str join(const struct hearth_str *texts, size_t n, struct hearth_arena *arena)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    for (size_t i = 0; i < n; i++) {
        hearth_buf_cstr(&out, i > 0 ? ", " : "");
        hearth_buf_str(&out, texts[i]);
    }
    struct hearth_str joined = hearth_arena_str(arena, hearth_buf_view(&out));
    hearth_buf_release(&out);
    return joined;
}

static enum hearth_status take_asking(struct question *question, const PGresult *rows,
                                      struct hearth_err *err)
{
    for (int row = 0; row < PQntuples(rows); row++) {
        size_t at = find_task(question, hearth_pg_str(rows, row, 0));
        if (at == question->n) {
            return HEARTH_FAIL(err, HEARTH_INTERNAL, "facts of a task that nobody asked for");
        }
        struct hearth_task_fact *fact = &question->facts[at];
        struct hearth_str *names;
        size_t n_names;
        HEARTH_TRY(hearth_pg_str_array(rows, row, 4, question->arena, &names, &n_names, err));
        fact->n_asked = hearth_pg_i64(rows, row, 1);
        fact->last_asked_ms = hearth_pg_i64(rows, row, 2);
        fact->asked_after_ms = hearth_pg_i64(rows, row, 3);
        fact->asked = join(names, n_names, question->arena);
        fact->n_processes = hearth_pg_i64(rows, row, 5);
        fact->n_matching = hearth_pg_i64(rows, row, 6);
        fact->n_profilable = hearth_pg_i64(rows, row, 7);
        fact->reported_after_ms = hearth_pg_i64(rows, row, 8);
    }
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

/* ---- turns, of async-profiler and pprof tasks that nobody was told of ---- */

#define U_END HEARTH_TASK_HANDED_OUT_UNTIL("u")
/* Of `u`, which an instance was told of (`o`): it disturbs `t` there, and had not ended when t could be told at `now`. */
#define DISTURBS(now)                                                                          \
    "((u.kind = 5 OR u.events && t.events) AND o.delivered_at + u.duration >= " now            \
    " - " HEARTH_TASK_BEGINS_AFTER " AND NOT EXISTS (SELECT FROM hearth_data.task_log l WHERE" \
    " l.task_id = u.task_id AND l.instance = o.target AND l.process_id = '' AND l.event > 1"   \
    " AND l.at < " now "))"
#define DISTURBS_START DISTURBS("t.start_at")
#define DISTURBS_NOW   DISTURBS("$3")

/*
 * $3 now. `a`: the instances that match and ask. `told`: other tasks of the kind that these were told of, or ran, while
 * they could have been told of this one; those that they may still run, so that it waits. `queued`: tasks that they
 * are told of before it.
 */
static const char turns_sql[] =
    "SELECT t.task_id, told.n, told.n_running + queued.n FROM " HEARTH_TASK_TABLES
    " CROSS JOIN LATERAL (SELECT array_agg(DISTINCT a.instance) AS names FROM"
    " hearth_data.agent_poll a WHERE a.tenant_id = s.tenant_id AND a.service_id = t.service_id"
    " AND a.kind = t.kind AND a.since <= " END " AND a.at >= t.start_at - " ASKED_BEFORE
    " AND (t.instances = '{}' OR a.instance = ANY (t.instances))) a"
    " CROSS JOIN LATERAL (SELECT count(DISTINCT u.task_id) AS n, count(DISTINCT u.task_id) FILTER"
    " (WHERE " DISTURBS_NOW ") AS n_running FROM hearth_data.task_delivery o JOIN hearth_data.task"
    " u ON u.task_id = o.task_id AND u.service_id = t.service_id AND u.kind = t.kind WHERE"
    " o.target = ANY (a.names) AND o.agent_id = '' AND o.delivered_at <= " END
    " AND (o.delivered_at >= t.start_at OR " DISTURBS_START ")) told"
    " CROSS JOIN LATERAL (SELECT count(*) AS n FROM hearth_data.task u WHERE " END " >= $3 AND"
    " u.service_id = t.service_id AND u.kind = t.kind AND u.origin = 1 AND u.cancelled_at IS NULL"
    " AND u.start_at + u.duration >= $3 - 300000 AND " U_END " >= $3 AND u.start_at <= $3"
    " AND u.created_at < t.created_at AND (u.instances = '{}' OR u.instances && a.names)"
    " AND NOT EXISTS (SELECT FROM hearth_data.task_delivery o WHERE o.task_id = u.task_id"
    " AND o.target = ANY (a.names) AND o.agent_id = '')) queued"
    " WHERE t.task_id = ANY ($2) AND t.kind >= 5 AND a.names IS NOT NULL AND NOT EXISTS (SELECT"
    " FROM hearth_data.task_delivery d WHERE d.task_id = t.task_id)";

static enum hearth_status take_turns(struct question *question, const PGresult *rows,
                                     struct hearth_err *err)
{
    for (int row = 0; row < PQntuples(rows); row++) {
        size_t at = find_task(question, hearth_pg_str(rows, row, 0));
        if (at == question->n) {
            return HEARTH_FAIL(err, HEARTH_INTERNAL, "turns of a task that was not requested");
        }
        question->facts[at].n_told_instead = hearth_pg_i64(rows, row, 1);
        question->facts[at].n_before = hearth_pg_i64(rows, row, 2);
    }
    return HEARTH_OK;
}

/* ---- requests, of trace tasks that brought nothing ---- */

/* So many of the told instances are looked at, and so many requests of each. */
#define LOOKED_AT "20"
#define REQUESTS  "50000"

/* Rows by task and instance, the most frequent endpoint first. Agents see no requests that OpenTelemetry alone saw (flag 1). */
static const char requests_sql[] =
    "SELECT t.task_id, d.target, (g.endpoint = t.endpoint)::int4, g.endpoint, g.n, g.slowest FROM"
    " " HEARTH_TASK_TABLES " CROSS JOIN LATERAL (SELECT target, delivered_at FROM"
    " hearth_data.task_delivery WHERE task_id = t.task_id ORDER BY delivered_at LIMIT " LOOKED_AT
    ") d CROSS JOIN LATERAL (SELECT r.endpoint, count(*) AS n, max(r.duration) / 1000000 AS slowest"
    " FROM (SELECT endpoint, duration FROM hearth_data.span_group WHERE flags & 1 = 0"
    " AND service_id = t.service_id"
    " AND start_at >= greatest(t.start_at, d.delivered_at) * 1000000 AND start_at <="
    " (greatest(t.start_at, d.delivered_at) + t.duration) * 1000000 AND instance = d.target"
    " LIMIT " REQUESTS ") r GROUP BY r.endpoint) g WHERE t.task_id = ANY ($2) AND t.kind = 4"
    " AND NOT EXISTS (SELECT FROM hearth_data.task_snapshot k WHERE k.task_id = t.task_id)"
    " ORDER BY t.task_id COLLATE \"C\", d.target COLLATE \"C\", g.n DESC, g.endpoint COLLATE \"C\"";

static struct hearth_task_target *find_target(struct hearth_task_fact *fact,
                                              struct hearth_str target)
{
    for (size_t i = 0; i < fact->n_targets; i++) {
        if (hearth_str_eq(fact->targets[i].target, target)) {
            return &fact->targets[i];
        }
    }
    return NULL;
}

/* An endpoint that was not the task's behind those before it: three at most. */
static void add_other(struct hearth_task_target *target, struct hearth_str name,
                      struct hearth_arena *arena)
{
    if (target->n_others++ >= 3) {
        return;
    }
    const struct hearth_str both[] = {target->others, name};
    bool is_first = target->others.n == 0;
    target->others = join(&both[is_first], is_first ? 1 : 2, arena);
}

static enum hearth_status take_requests(struct question *question, const PGresult *rows,
                                        struct hearth_err *err)
{
    for (int row = 0; row < PQntuples(rows); row++) {
        size_t at = find_task(question, hearth_pg_str(rows, row, 0));
        struct hearth_task_target *target =
            at == question->n ? NULL
                              : find_target(&question->facts[at], hearth_pg_str(rows, row, 1));
        if (target == NULL) {
            continue;
        }
        if (hearth_pg_i32(rows, row, 2) != 0) {
            target->n_requests = hearth_pg_i64(rows, row, 4);
            target->slowest_ms = hearth_pg_i64(rows, row, 5);
        } else {
            add_other(target, hearth_pg_str(rows, row, 3), question->arena);
        }
    }
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

/*
 * Where one instance was told, and what came does not say whose it is (spans come later than snapshots, and files of
 * Go agents name no instance), it is that one's.
 */
static void give_to_the_only_one(struct hearth_task_fact *fact)
{
    if (fact->n_targets != 2 || fact->targets[0].target.n > 0) {
        return;
    }
    const struct hearth_task_target *unnamed = &fact->targets[0];
    struct hearth_task_target *one = &fact->targets[1];
    one->n_records += unnamed->n_records;
    one->first_ms =
        one->first_ms > 0 && one->first_ms < unnamed->first_ms ? one->first_ms : unnamed->first_ms;
    one->last_ms = one->last_ms > unnamed->last_ms ? one->last_ms : unnamed->last_ms;
    fact->targets++;
    fact->n_targets--;
}

/* ---- all ---- */

typedef enum hearth_status take_rows_fn(struct question *question, const PGresult *rows,
                                        struct hearth_err *err);

static enum hearth_status ask(struct question *question, struct hearth_pg *pg, const char *sql,
                              take_rows_fn *take, enum hearth_pg_fault *ret_fault,
                              struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    hearth_pg_param_text_array(&params, question->task_ids, question->n);
    hearth_pg_param_i64(&params, hearth_clock_wall_ns() / HEARTH_NS_PER_MS);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, sql, &params, question->cancel, &rows, ret_fault, err));
    enum hearth_status status = take(question, rows, err);
    PQclear(rows);
    return status;
}

static enum hearth_status read_all(struct question *question, struct hearth_pg *pg,
                                   enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    HEARTH_TRY(ask(question, pg, targets_sql, take_targets, ret_fault, err));
    HEARTH_TRY(ask(question, pg, asking_sql, take_asking, ret_fault, err));

    bool has_traces = false, has_turns = false;
    for (size_t i = 0; i < question->n; i++) {
        give_to_the_only_one(&question->facts[i]);
        has_traces = has_traces || question->tasks[i].kind == HEARTH_TASK_TRACE;
        has_turns = has_turns || question->tasks[i].kind > HEARTH_TASK_TRACE;
    }
    if (has_turns) {
        HEARTH_TRY(ask(question, pg, turns_sql, take_turns, ret_fault, err));
    }
    return has_traces ? ask(question, pg, requests_sql, take_requests, ret_fault, err) : HEARTH_OK;
}

/*
 * All statements read one snapshot: a task that is handed out between two of them would have neither targets nor facts
 * about who asked.
 */
static enum hearth_status read_facts(void *context, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    memset(question->facts, 0, question->n * sizeof *question->facts);
    HEARTH_TRY(
        hearth_pg_script(pg, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ret_fault, err));

    enum hearth_status status = read_all(question, pg, ret_fault, err);
    hearth_pg_rollback(pg);
    return status;
}

enum hearth_status hearth_store_task_facts(const struct hearth_scope *scope,
                                           const struct hearth_task *tasks, size_t n,
                                           struct hearth_task_fact **ret, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.tenant = scope->tenant,
                                .tasks = tasks,
                                .n = n,
                                .cancel = scope->cancel,
                                .arena = scope->arena};
    question.task_ids = hearth_arena_array(scope->arena, n, sizeof *question.task_ids);
    question.facts = hearth_arena_calloc(scope->arena, n, sizeof *question.facts);
    if (question.task_ids == NULL || question.facts == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }
    for (size_t i = 0; i < n; i++) {
        question.task_ids[i] = tasks[i].task_id;
    }
    *ret = question.facts;
    return n == 0 ? HEARTH_OK
                  : hearth_store_with_pg(scope->store, scope->cancel, read_facts, &question, err);
}
