/*
 * task_facts.c -- what is known about tasks besides their rows (contract:
 * hearth/store/task_facts.h).
 */
#include "hearth/store/task_facts.h"

#include "hearth/base/clock.h"

#include "session/statements.h"
#include "tasks/task_rows.h"
#include "tasks/task_targets.h"

#include <assert.h>

/*
 * A poll this long before the start of a task counts, in milliseconds: polls are noted once a
 * minute, and agents pause between them.
 */
#define ASKED_BEFORE "120000"
/* A task can be handed out for processes that were reported this long before its start. */
#define SEEN_BEFORE "300000"

/* ---- a service ---- */

/*
 * The labels and the numbers of processes of a service. $1 tenant, $2 fingerprint of the service,
 * $3 instance, $4 labels, $5 lower bound of the time last seen. Virtual processes (3) do not count.
 * By the indexes on service_id.
 */
static const char SQL_SCOPE[] =
    "SELECT ARRAY(SELECT DISTINCT l COLLATE \"C\" FROM hearth_data.process p, unnest(p.labels) l"
    "  WHERE p.service_id = s.service_id AND p.detect_type <> 3 ORDER BY 1),"
    " count(p.*) FILTER (WHERE p.last_seen >= $5),"
    " count(p.*) FILTER (WHERE p.last_seen >= $5 AND p.labels @> $4),"
    " count(p.*) FILTER (WHERE p.last_seen >= $5 AND p.labels @> $4 AND p.can_be_profiled),"
    " count(p.*) FILTER (WHERE i.name = $3),"
    " coalesce((SELECT max(at) FROM hearth_data.agent_poll a WHERE a.tenant_id = n.tenant_id"
    "  AND a.service_id = 0 AND a.kind = 1), 0)"
    " FROM hearth_data.tenant n JOIN hearth_data.service s ON s.tenant_id = n.tenant_id"
    " LEFT JOIN hearth_data.process p ON p.service_id = s.service_id AND p.detect_type <> 3"
    " LEFT JOIN hearth_data.instance i ON i.instance_id = p.instance_id"
    " WHERE n.name = $1 AND s.fingerprint = $2 GROUP BY s.service_id, n.tenant_id";

#define SCOPE(kind, member) HEARTH_COLUMN(kind, struct hearth_task_scope, member)
static const struct hearth_column scope_columns[] = {
    HEARTH_COLUMN_LIST(TEXTS, struct hearth_task_scope, labels, n_labels),
    SCOPE(I64, n_processes),
    SCOPE(I64, n_matching),
    SCOPE(I64, n_profilable),
    SCOPE(I64, n_of_instance),
    SCOPE(I64, asked_ms),
};
static const struct hearth_row_type scope_rows =
    HEARTH_ROW_TYPE(scope_columns, struct hearth_task_scope);

enum hearth_status hearth_store_task_scope(const struct hearth_scope *scope,
                                           const struct hearth_task_scope_filter *filter,
                                           struct hearth_task_scope *ret, struct hearth_err *err)
{
    assert(filter->labels != NULL || filter->n_labels == 0);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_task_param_service(&params, filter->service);
    hearth_pg_param_text(&params, filter->instance);
    hearth_pg_param_text_array(&params, filter->labels, filter->n_labels);
    hearth_pg_param_i64(&params, filter->seen_after_ms);

    struct hearth_task_scope found_scope = {0};
    bool found;
    HEARTH_TRY(
        hearth_store_select_one(scope, SQL_SCOPE, &params, &scope_rows, &found_scope, &found, err));
    found_scope.is_known = found;
    *ret = found_scope;

    return HEARTH_OK;
}

/* ---- facts of tasks ---- */

/* The names, separated by commas, in the arena. If memory is refused, arena->refused is set. */
static struct hearth_str join_names(const struct hearth_str *names, size_t n,
                                    struct hearth_arena *arena)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    for (size_t i = 0; i < n; i++) {
        hearth_buf_cstr(&out, i > 0 ? ", " : "");
        hearth_buf_str(&out, names[i]);
    }

    struct hearth_str joined = hearth_arena_str(arena, hearth_buf_view(&out));
    hearth_buf_release(&out);

    return joined;
}

/* ---- tasks that were not handed out: polls and processes ---- */

#define END HEARTH_TASK_HANDED_OUT_UNTIL("t")

/*
 * For each task without deliveries: `q`, the agents (kinds up to 3) or instances that polled for
 * its kind, `w` while it could be handed out, from agent_poll by its primary key; `p`, the
 * processes of its service, `w` reported while it could be handed out, `m` matching it.
 */
static const char SQL_POLLS[] =
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

/* The polls and processes of a task. */
struct poll_row {
    struct hearth_str task_id;
    int64_t n_asked, last_asked_ms, asked_after_ms;
    struct hearth_str *names;
    size_t n_names;
    int64_t n_processes, n_matching, n_profilable, reported_after_ms;
};

#define POLL(kind, member) HEARTH_COLUMN(kind, struct poll_row, member)
static const struct hearth_column poll_columns[] = {
    POLL(TEXT, task_id),
    POLL(I64, n_asked),
    POLL(I64, last_asked_ms),
    POLL(I64, asked_after_ms),
    HEARTH_COLUMN_LIST(TEXTS, struct poll_row, names, n_names),
    POLL(I64, n_processes),
    POLL(I64, n_matching),
    POLL(I64, n_profilable),
    POLL(I64, reported_after_ms),
};
static const struct hearth_row_type poll_rows = HEARTH_ROW_TYPE(poll_columns, struct poll_row);

static enum hearth_status read_polls(struct hearth_fact_read *read, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct poll_row *rows;
    size_t n;
    const struct hearth_pg_query query = {SQL_POLLS, &read->params, &poll_rows, read->cancel,
                                          read->arena};
    HEARTH_TRY(hearth_pg_select(pg, &query, &rows, &n, ret_fault, err));

    for (size_t i = 0; i < n; i++) {
        size_t at = hearth_fact_find_task(read, rows[i].task_id);
        if (at == read->n) {
            return hearth_fact_fail_unknown_task(err);
        }

        struct hearth_task_fact *fact = &read->facts[at];
        fact->n_asked = rows[i].n_asked;
        fact->last_asked_ms = rows[i].last_asked_ms;
        fact->asked_after_ms = rows[i].asked_after_ms;
        fact->asked = join_names(rows[i].names, rows[i].n_names, read->arena);
        fact->n_processes = rows[i].n_processes;
        fact->n_matching = rows[i].n_matching;
        fact->n_profilable = rows[i].n_profilable;
        fact->reported_after_ms = rows[i].reported_after_ms;
    }

    return read->arena->refused ? HEARTH_FAIL_ARENA(err, read->arena) : HEARTH_OK;
}

/* ---- async-profiler and pprof tasks that were not handed out: turns ---- */

#define U_END HEARTH_TASK_HANDED_OUT_UNTIL("u")
/*
 * The task `u`, delivered to an instance by `o`, would disturb `t` there, and had not ended at
 * `now`.
 */
#define DISTURBS(now)                                                                          \
    "((u.kind = 5 OR u.events && t.events) AND o.delivered_at + u.duration >= " now            \
    " - " HEARTH_TASK_BEGINS_AFTER " AND NOT EXISTS (SELECT FROM hearth_data.task_log l WHERE" \
    " l.task_id = u.task_id AND l.instance = o.target AND l.process_id = '' AND l.event > 1"   \
    " AND l.at < " now "))"
#define DISTURBS_START DISTURBS("t.start_at")
#define DISTURBS_NOW   DISTURBS("$3")

/*
 * `a`: the instances that match and poll. `told`: other tasks of the kind that were delivered to
 * them, or that they ran, while this one could be handed out, and how many of these they may still
 * run, so that this one waits. `queued`: tasks that are handed out to them before this one. By the
 * indexes task_delivery_target and task_end.
 */
static const char SQL_TURNS[] =
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

/* The tasks that a task waits for. */
struct turn_row {
    struct hearth_str task_id;
    int64_t n_told_instead, n_before;
};

static const struct hearth_column turn_columns[] = {
    HEARTH_COLUMN(TEXT, struct turn_row, task_id),
    HEARTH_COLUMN(I64, struct turn_row, n_told_instead),
    HEARTH_COLUMN(I64, struct turn_row, n_before),
};
static const struct hearth_row_type turn_rows = HEARTH_ROW_TYPE(turn_columns, struct turn_row);

static enum hearth_status read_turns(struct hearth_fact_read *read, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct turn_row *rows;
    size_t n;
    const struct hearth_pg_query query = {SQL_TURNS, &read->params, &turn_rows, read->cancel,
                                          read->arena};
    HEARTH_TRY(hearth_pg_select(pg, &query, &rows, &n, ret_fault, err));

    for (size_t i = 0; i < n; i++) {
        size_t at = hearth_fact_find_task(read, rows[i].task_id);
        if (at == read->n) {
            return hearth_fact_fail_unknown_task(err);
        }

        read->facts[at].n_told_instead = rows[i].n_told_instead;
        read->facts[at].n_before = rows[i].n_before;
    }

    return HEARTH_OK;
}

/* ---- trace tasks without snapshots: requests ---- */

/* Limits: instances of a task, and requests of each. */
#define MAX_INSTANCES "20"
#define MAX_REQUESTS  "50000"

/* The instances that received trace tasks without snapshots, and when each ran the task. */
static const char SQL_RUNS[] =
    "SELECT t.task_id, d.target, t.service_id, t.endpoint,"
    " greatest(t.start_at, d.delivered_at)::int8,"
    " (greatest(t.start_at, d.delivered_at) + t.duration)::int8 FROM " HEARTH_TASK_TABLES
    " CROSS JOIN LATERAL (SELECT target, delivered_at FROM hearth_data.task_delivery WHERE task_id"
    " = t.task_id ORDER BY delivered_at LIMIT " MAX_INSTANCES ") d WHERE t.task_id = ANY ($2) AND"
    " t.kind = 4 AND NOT EXISTS (SELECT FROM hearth_data.task_snapshot k WHERE k.task_id ="
    " t.task_id)";

struct run_row {
    struct hearth_str task_id, target;
    int32_t service_id;
    struct hearth_str endpoint; /* of the task */
    int64_t from_ms, to_ms;
};

#define RUN(kind, member) HEARTH_COLUMN(kind, struct run_row, member)
static const struct hearth_column run_columns[] = {
    RUN(TEXT, task_id),  RUN(TEXT, target), RUN(I32, service_id),
    RUN(TEXT, endpoint), RUN(I64, from_ms), RUN(I64, to_ms),
};
static const struct hearth_row_type run_rows = HEARTH_ROW_TYPE(run_columns, struct run_row);

/*
 * Requests of an instance while the task ran, by endpoint, the most frequent one first. Groups with
 * flag 1 (raw ids) are left out: agents do not see requests that only OpenTelemetry saw. $1
 * service, $2 instance, $3 from and $4 to in milliseconds. By the index on (service_id, start_at).
 * A statement for each run, because the LIMIT is one of each run: a distributed table allows no
 * LIMIT in a lateral query over parameters.
 */
static const char SQL_REQUESTS[] =
    "SELECT r.endpoint, count(*) AS n, max(r.duration) / 1000000 AS slowest"
    " FROM (SELECT endpoint, duration FROM hearth_data.span_group WHERE flags & 1 = 0"
    " AND service_id = $1 AND start_at >= $3 * 1000000 AND start_at <= $4 * 1000000 AND instance ="
    " $2 LIMIT " MAX_REQUESTS ") r GROUP BY r.endpoint ORDER BY n DESC, r.endpoint COLLATE \"C\"";

/* The requests of an instance to an endpoint. */
struct request_row {
    struct hearth_str endpoint;
    int64_t n, slowest_ms;
};

#define REQUEST(kind, member) HEARTH_COLUMN(kind, struct request_row, member)
static const struct hearth_column request_columns[] = {REQUEST(TEXT, endpoint), REQUEST(I64, n),
                                                       REQUEST(I64, slowest_ms)};
static const struct hearth_row_type request_rows =
    HEARTH_ROW_TYPE(request_columns, struct request_row);

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

/* Counts an endpoint that is not the task's, and adds its name if it is one of the first three. */
static void add_other_endpoint(struct hearth_task_target *target, struct hearth_str name,
                               struct hearth_arena *arena)
{
    if (target->n_others++ >= 3) {
        return;
    }

    const struct hearth_str both[] = {target->others, name};
    bool is_first = target->others.n == 0;
    target->others = join_names(&both[is_first], is_first ? 1 : 2, arena);
}

/* Reads the requests of one run, if its instance is known as a target of the task. */
static enum hearth_status read_requests_of_run(struct hearth_fact_read *read, struct hearth_pg *pg,
                                               const struct run_row *run,
                                               enum hearth_pg_fault *ret_fault,
                                               struct hearth_err *err)
{
    size_t at = hearth_fact_find_task(read, run->task_id);
    struct hearth_task_target *target =
        at == read->n ? NULL : find_target(&read->facts[at], run->target);
    if (target == NULL) {
        return HEARTH_OK;
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, read->arena);
    hearth_pg_param_i32(&params, run->service_id);
    hearth_pg_param_text(&params, run->target);
    hearth_pg_param_i64(&params, run->from_ms);
    hearth_pg_param_i64(&params, run->to_ms);
    const struct hearth_pg_query query = {SQL_REQUESTS, &params, &request_rows, read->cancel,
                                          read->arena};
    struct request_row *rows;
    size_t n;
    HEARTH_TRY(hearth_pg_select(pg, &query, &rows, &n, ret_fault, err));

    for (size_t i = 0; i < n; i++) {
        if (hearth_str_eq(rows[i].endpoint, run->endpoint)) {
            target->n_requests = rows[i].n;
            target->slowest_ms = rows[i].slowest_ms;
        } else {
            add_other_endpoint(target, rows[i].endpoint, read->arena);
        }
    }

    return HEARTH_OK;
}

static enum hearth_status read_requests(struct hearth_fact_read *read, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct run_row *runs;
    size_t n_runs;
    const struct hearth_pg_query query = {SQL_RUNS, &read->params, &run_rows, read->cancel,
                                          read->arena};
    HEARTH_TRY(hearth_pg_select(pg, &query, &runs, &n_runs, ret_fault, err));
    for (size_t i = 0; i < n_runs; i++) {
        HEARTH_TRY(read_requests_of_run(read, pg, &runs[i], ret_fault, err));
    }

    return read->arena->refused ? HEARTH_FAIL_ARENA(err, read->arena) : HEARTH_OK;
}

/* ---- all facts ---- */

/* Reads the facts on a connection, in the transaction of read_facts. */
static enum hearth_status read_all_facts(struct hearth_fact_read *read, struct hearth_pg *pg,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    HEARTH_TRY(hearth_fact_read_targets(read, pg, ret_fault, err));
    HEARTH_TRY(read_polls(read, pg, ret_fault, err));

    /* Find out which further statements are necessary. */
    bool has_traces = false, has_turns = false;
    for (size_t i = 0; i < read->n; i++) {
        hearth_fact_assign_unnamed_results(&read->facts[i]);
        has_traces = has_traces || read->tasks[i].kind == HEARTH_TASK_TRACE;
        has_turns = has_turns || read->tasks[i].kind > HEARTH_TASK_TRACE;
    }

    if (has_turns) {
        HEARTH_TRY(read_turns(read, pg, ret_fault, err));
    }

    return has_traces ? read_requests(read, pg, ret_fault, err) : HEARTH_OK;
}

/*
 * All statements read one snapshot: a task that is handed out between two of them would have
 * neither targets nor facts about polls.
 */
static enum hearth_status read_facts(void *context, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_fact_read *read = context;
    memset(read->facts, 0, read->n * sizeof *read->facts);
    HEARTH_TRY(
        hearth_pg_begin(pg, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ret_fault, err));

    enum hearth_status status = read_all_facts(read, pg, ret_fault, err);
    hearth_pg_rollback(pg);

    return status;
}

enum hearth_status hearth_store_task_facts(const struct hearth_scope *scope,
                                           const struct hearth_task *tasks, size_t n,
                                           struct hearth_task_fact **ret, struct hearth_err *err)
{
    assert(tasks != NULL || n == 0);
    assert(scope->arena != NULL);
    HEARTH_TRY(hearth_store_check_open(scope->store, err));

    /* Allocate the answer and the parameters. */
    struct hearth_str *task_ids = hearth_arena_array(scope->arena, n, sizeof *task_ids);
    struct hearth_fact_read read = {.tasks = tasks,
                                    .n = n,
                                    .cancel = scope->cancel,
                                    .arena = scope->arena,
                                    .facts =
                                        hearth_arena_calloc(scope->arena, n, sizeof *read.facts)};
    if (task_ids == NULL || read.facts == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }

    for (size_t i = 0; i < n; i++) {
        task_ids[i] = tasks[i].task_id;
    }

    hearth_pg_params_init(&read.params, scope->arena);
    hearth_pg_param_text(&read.params, scope->tenant);
    hearth_pg_param_text_array(&read.params, task_ids, n);
    hearth_pg_param_i64(&read.params, hearth_clock_wall_ns() / HEARTH_NS_PER_MS);

    *ret = read.facts;

    return n == 0 ? HEARTH_OK : hearth_store_with_pg(scope, read_facts, &read, err);
}
