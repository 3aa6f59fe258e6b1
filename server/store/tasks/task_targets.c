/*
 * task_targets.c -- reads the targets of tasks from deliveries, log entries and results (contract:
 * task_targets.h).
 */
#include "tasks/task_targets.h"

#include "tasks/task_rows.h"

#include <assert.h>

/* A flush of stack traces covers the time since the flush before, this long ago. */
#define FLUSH_PERIOD "5000"
/* The longest delay of the last flush of a network task, after its end. */
#define FLUSHED_AFTER "10000"

size_t hearth_fact_find_task(const struct hearth_fact_read *read, struct hearth_str task_id)
{
    size_t i = 0;
    while (i < read->n && !hearth_str_eq(read->tasks[i].task_id, task_id)) {
        i++;
    }

    return i;
}

enum hearth_status hearth_fact_fail_unknown_task(struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_INTERNAL, "facts of a task that was not requested");
}

enum target_source {
    SOURCE_DELIVERY = 0, /* the values up to 9 are those of enum hearth_task_event */
    SOURCE_RESULT = 10,
};

/*
 * Rows of the targets of each task, by task, target, source and time: deliveries, log entries and
 * results. Results are runs with their records and the time that they cover, files, snapshots by
 * the instance of their segment, and network flushes. By the indexes on task_id and the primary
 * keys of task_segment and network_sample. $4 to $6 are the instances of segments in span_group.
 */
static const char SQL_TARGETS[] =
    "SELECT r.task_id, r.target, r.what, r.at, r.last, r.n, r.covered, r.text,"
    " coalesce(p.name, ''), coalesce(i.name, '') FROM ("
    "  SELECT d.task_id, d.target, 0 AS what, min(d.delivered_at) AS at,"
    "  coalesce(max(d.confirmed_at), 0) AS last, 0::int8 AS n, 0::int8 AS covered,"
    "  (array_agg(d.agent_id ORDER BY d.delivered_at DESC))[1] AS text"
    "  FROM hearth_data.task_delivery d WHERE d.task_id = ANY ($2) GROUP BY d.task_id, d.target"
    " UNION ALL"
    "  SELECT l.task_id, CASE WHEN l.process_id <> '' THEN l.process_id ELSE l.instance END,"
    "  l.event::int4, l.at, l.last_at, 0::int8, 0::int8, l.message"
    "  FROM hearth_data.task_log l WHERE l.task_id = ANY ($2)"
    " UNION ALL"
    "  SELECT h.task_id, h.process_id, 10, min(h.start_at), max(h.end_at),"
    "  coalesce(sum(c.n), 0)::int8, coalesce(sum(h.end_at -"
    "  greatest(h.start_at, c.first_at - " FLUSH_PERIOD ")), 0)::int8, ''"
    "  FROM hearth_data.task_schedule h"
    "  JOIN hearth_data.tenant n ON n.tenant_id = h.tenant_id AND n.name = $1"
    "  CROSS JOIN LATERAL (SELECT sum(n_records) AS n, min(k.at) AS first_at"
    "   FROM hearth_data.task_stack_chunk k WHERE k.service_id = h.service_id"
    "   AND k.schedule_no = h.schedule_no) c"
    "  WHERE h.task_id = ANY ($2) GROUP BY h.task_id, h.process_id"
    " UNION ALL"
    "  SELECT u.task_id, u.instance, 10, min(u.received_at), max(u.received_at), count(*),"
    "  0::int8, '' FROM hearth_data.task_upload u"
    "  JOIN hearth_data.tenant n ON n.tenant_id = u.tenant_id AND n.name = $1"
    "  WHERE u.task_id = ANY ($2) GROUP BY u.task_id, u.instance"
    " UNION ALL"
    "  SELECT k.task_id, coalesce(g.instance, (SELECT instance FROM hearth_data.task_segment"
    "   WHERE service_id = k.service_id AND task_id = k.task_id"
    "   AND segment_key = k.segment_key LIMIT 1), ''), 10, min(k.first_at), max(k.last_at),"
    "  sum(k.n_snapshots)::int8, 0::int8, '' FROM " HEARTH_TASK_TABLES
    "  JOIN hearth_data.task_snapshot k ON k.task_id = t.task_id AND k.service_id = t.service_id"
    "  LEFT JOIN unnest($4::int4[], $5::int8[], $6::text[]) g (service_id, segment_key, instance)"
    "   ON g.service_id = k.service_id AND g.segment_key = k.segment_key"
    "  WHERE t.task_id = ANY ($2) GROUP BY 1, 2"
    " UNION ALL"
    "  SELECT t.task_id, CASE k.side WHEN 1 THEN k.source_id ELSE k.destination_id END, 10,"
    "  min(k.at), max(k.at), count(*), 0::int8, '' FROM " HEARTH_TASK_TABLES
    "  JOIN hearth_data.network_sample k ON k.service_id = t.service_id"
    "  AND k.instance = t.instance AND k.at >= t.start_at"
    "  AND k.at <= t.start_at + t.duration + " FLUSHED_AFTER
    "  WHERE t.kind = 3 AND t.task_id = ANY ($2) GROUP BY 1, 2"
    " ) r JOIN hearth_data.task t ON t.task_id = r.task_id"
    " LEFT JOIN hearth_data.process p"
    " ON t.kind <= 3 AND p.service_id = t.service_id AND p.process_id = r.target"
    " LEFT JOIN hearth_data.instance i ON i.instance_id = p.instance_id"
    " ORDER BY r.task_id COLLATE \"C\", r.target COLLATE \"C\", r.what, r.last";

/* What one source knows of a target. */
struct target_row {
    struct hearth_str task_id, target;
    int32_t source; /* enum target_source, or enum hearth_task_event */
    int64_t at_ms, last_ms;
    int64_t n, covered_ms;
    struct hearth_str text; /* agent id of a delivery, message of a log entry */
    struct hearth_str process, instance;
};

#define TARGET(kind, member) HEARTH_COLUMN(kind, struct target_row, member)
static const struct hearth_column target_columns[] = {
    TARGET(TEXT, task_id), TARGET(TEXT, target),   TARGET(I32, source),     TARGET(I64, at_ms),
    TARGET(I64, last_ms),  TARGET(I64, n),         TARGET(I64, covered_ms), TARGET(TEXT, text),
    TARGET(TEXT, process), TARGET(TEXT, instance),
};
static const struct hearth_row_type target_rows =
    HEARTH_ROW_TYPE(target_columns, struct target_row);

static int64_t earliest_ms(int64_t known_ms, int64_t ms)
{
    return known_ms > 0 && known_ms < ms ? known_ms : ms;
}

static int64_t latest_ms(int64_t a_ms, int64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}

/* Adds what a row says to its target. Rows of a target are sorted by source and time. */
static void merge_target_row(struct hearth_task_target *target, const struct target_row *row)
{
    switch (row->source) {
    case SOURCE_DELIVERY:
        target->delivered_ms = row->at_ms;
        target->confirmed_ms = row->last_ms;
        target->agent_id = row->text;
        break;

    case HEARTH_TASK_NOTIFIED: /* imported tasks have no deliveries */
        target->delivered_ms = target->delivered_ms > 0 ? target->delivered_ms : row->at_ms;
        target->confirmed_ms = target->confirmed_ms > 0 ? target->confirmed_ms : row->last_ms;
        break;

    case HEARTH_TASK_FINISHED:
        target->finished_ms = row->last_ms;
        break;

    case HEARTH_TASK_TOO_LARGE:
        target->too_large_ms = row->last_ms;
        target->message = row->text;
        break;

    case HEARTH_TASK_FAILED:
        if (row->last_ms >= target->too_large_ms) {
            target->message = row->text;
        }

        target->failed_ms = row->last_ms;
        break;

    default:
        target->n_records += row->n;
        target->covered_ms += row->covered_ms;
        target->first_ms = earliest_ms(target->first_ms, row->at_ms);
        target->last_ms = latest_ms(target->last_ms, row->last_ms);
        break;
    }
}

/*
 * Adds the target of a task that a policy started: its agent runs it already. free_room: place for
 * a first target of the task; NULL if it has targets, which have room for one more.
 */
static void add_triggered_target(struct hearth_fact_read *read, size_t at,
                                 struct hearth_task_target *free_room)
{
    assert(at < read->n);

    /* Find the target. */
    const struct hearth_task *task = &read->tasks[at];
    struct hearth_task_fact *fact = &read->facts[at];
    struct hearth_str name = task->process_id.n > 0 ? task->process_id : task->instance;

    size_t i = 0;
    while (i < fact->n_targets && !hearth_str_eq(fact->targets[i].target, name)) {
        i++;
    }

    /* Add it, if it has no results. */
    if (i == fact->n_targets) {
        if (i == 0) {
            fact->targets = free_room;
        }

        fact->targets[fact->n_targets++] = (struct hearth_task_target){
            .target = name, .instance = task->instance, .process = task->process};
    }

    fact->targets[i].delivered_ms = task->created_ms;
    fact->targets[i].confirmed_ms = task->created_ms;
}

/* Adds a target to tasks[at], at `free_room`, the place after its other targets. */
static struct hearth_task_target *add_target(struct hearth_fact_read *read, size_t at,
                                             struct hearth_task_target *free_room,
                                             const struct target_row *row)
{
    assert(at < read->n);

    struct hearth_task_fact *fact = &read->facts[at];
    if (fact->n_targets == 0) {
        fact->targets = free_room;
    }

    assert(&fact->targets[fact->n_targets] == free_room);

    struct hearth_task_target *target = &fact->targets[fact->n_targets++];
    *target = (struct hearth_task_target){
        .target = row->target, .process = row->process, .instance = row->instance};
    if (read->tasks[at].kind > HEARTH_TASK_NETWORK) {
        target->instance = target->target;
    }

    return target;
}

/*
 * Makes the targets of all tasks from rows, which are sorted by task and target. The targets are in
 * one array, with room for one triggered target after the targets of each task.
 */
static enum hearth_status take_targets(struct hearth_fact_read *read, const struct target_row *rows,
                                       size_t n_rows, struct hearth_err *err)
{
    struct hearth_task_target *room =
        hearth_arena_array(read->arena, n_rows + read->n, sizeof *room);
    if (room == NULL) {
        return HEARTH_FAIL_ARENA(err, read->arena);
    }

    /* Add the targets of the rows. */
    struct hearth_task_target *target = NULL;
    size_t n_room = 0, at = read->n;
    for (size_t i = 0; i < n_rows; i++) {
        if (at == read->n || !hearth_str_eq(read->tasks[at].task_id, rows[i].task_id)) {
            n_room += at < read->n;
            at = hearth_fact_find_task(read, rows[i].task_id);
            target = NULL;
        }

        if (at == read->n) {
            return hearth_fact_fail_unknown_task(err);
        }

        if (target == NULL || !hearth_str_eq(target->target, rows[i].target)) {
            target = add_target(read, at, &room[n_room], &rows[i]);
            n_room++;
        }

        merge_target_row(target, &rows[i]);
    }

    n_room += at < read->n;

    /* Add the targets of tasks that policies started. */
    for (size_t i = 0; i < read->n; i++) {
        if (read->tasks[i].origin == HEARTH_TASK_BY_POLICY) {
            bool is_first = read->facts[i].n_targets == 0;
            add_triggered_target(read, i, is_first ? &room[n_room] : NULL);
            n_room += is_first;
        }
    }

    assert(n_room <= n_rows + read->n);

    return HEARTH_OK;
}

/* A segment, and the instance that recorded it. */
struct segment_instance {
    int32_t service_id;
    int64_t segment_key;
    struct hearth_str instance;
};

#define SEGMENT(kind, member) HEARTH_COLUMN(kind, struct segment_instance, member)
static const struct hearth_column segment_key_columns[] = {SEGMENT(I32, service_id),
                                                           SEGMENT(I64, segment_key)};
static const struct hearth_row_type segment_key_rows =
    HEARTH_ROW_TYPE(segment_key_columns, struct segment_instance);
static const struct hearth_column segment_instance_columns[] = {
    SEGMENT(I32, service_id), SEGMENT(I64, segment_key), SEGMENT(TEXT, instance)};
static const struct hearth_row_type segment_instance_rows =
    HEARTH_ROW_TYPE(segment_instance_columns, struct segment_instance);

/*
 * Reads the instances of the segments with snapshots of the tasks, as far as the segments are
 * stored: by the indexes task_snapshot_task and span_group_segment.
 */
static enum hearth_status read_segment_instances(struct hearth_fact_read *read,
                                                 struct hearth_pg *pg,
                                                 struct segment_instance **ret, size_t *ret_n,
                                                 enum hearth_pg_fault *ret_fault,
                                                 struct hearth_err *err)
{
    struct hearth_pg_query query = {
        "SELECT DISTINCT k.service_id, k.segment_key FROM " HEARTH_TASK_TABLES
        " JOIN hearth_data.task_snapshot k ON k.task_id = t.task_id AND k.service_id ="
        " t.service_id WHERE t.task_id = ANY ($2)",
        &read->params, &segment_key_rows, read->cancel, read->arena};
    struct segment_instance *segments;
    size_t n;
    *ret_n = 0;
    HEARTH_TRY(hearth_pg_select(pg, &query, &segments, &n, ret_fault, err));
    if (n == 0) {
        return HEARTH_OK;
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, read->arena);
    hearth_pg_param_rows(&params, &segment_key_rows, segments, n);
    query.sql =
        "SELECT g.service_id, g.segment_key, min(g.instance) FROM unnest($1::int4[], $2::int8[])"
        " u (service_id, segment_key) JOIN hearth_data.span_group g ON g.segment_key ="
        " u.segment_key AND g.service_id = u.service_id WHERE g.flags & 1 = 0"
        " GROUP BY g.service_id, g.segment_key";
    query.params = &params;
    query.type = &segment_instance_rows;

    return hearth_pg_select(pg, &query, ret, ret_n, ret_fault, err);
}

static bool asks_for_trace_task(const struct hearth_fact_read *read)
{
    bool any = false;
    for (size_t i = 0; i < read->n; i++) {
        any = any || read->tasks[i].kind == HEARTH_TASK_TRACE;
    }

    return any;
}

enum hearth_status hearth_fact_read_targets(struct hearth_fact_read *read, struct hearth_pg *pg,
                                            enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct target_row *rows;
    struct segment_instance *segments = NULL;
    size_t n, n_segments = 0;
    if (asks_for_trace_task(read)) {
        HEARTH_TRY(read_segment_instances(read, pg, &segments, &n_segments, ret_fault, err));
    }

    struct hearth_pg_params params = read->params;
    hearth_pg_param_rows(&params, &segment_instance_rows, segments, n_segments);
    const struct hearth_pg_query query = {SQL_TARGETS, &params, &target_rows, read->cancel,
                                          read->arena};
    HEARTH_TRY(hearth_pg_select(pg, &query, &rows, &n, ret_fault, err));

    return take_targets(read, rows, n, err);
}

void hearth_fact_assign_unnamed_results(struct hearth_task_fact *fact)
{
    if (fact->n_targets != 2 || fact->targets[0].target.n > 0) {
        return;
    }

    const struct hearth_task_target *unnamed = &fact->targets[0];
    struct hearth_task_target *only = &fact->targets[1];
    only->n_records += unnamed->n_records;
    only->first_ms = earliest_ms(only->first_ms, unnamed->first_ms);
    only->last_ms = latest_ms(only->last_ms, unnamed->last_ms);
    fact->targets++;
    fact->n_targets--;
}
