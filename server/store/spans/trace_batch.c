/*
 * trace_batch.c -- spans and snapshots of several items in one transaction (trace_writer.h):
 *
 *   before       ids of the services, which are created if they are new (trace_services.c);
 *                instances of agents are refreshed once a minute. If that fails (too many, or too
 *                slow), the spans are stored nevertheless; partitions of the days
 *   transaction  lock the services, so that they are not removed; insert all groups, then the
 *                associations of their spans, a row for each service; then the snapshots
 *                (trace_snapshots.c)
 *
 * Groups of services that another node of distributed tables owns are left out, and become parts,
 * which are stored on their node afterwards (trace_lanes.h).
 *
 * ON CONFLICT DO NOTHING makes the inserts repeatable. Associations have no key: repeated ones, and
 * those of groups that were dropped, do no harm. The commit waits for the synchronous standbys even
 * if all rows are repeated, because the standbys may lack them: the locks of services are in the
 * WAL, and for snapshots alone, a message is.
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"
#include "hearth/store/lost_nodes.h"
#include "hearth/store/store_agents.h"

#include "pg/pg_rows.h"
#include "pg/store_state.h"
#include "session/partitions.h"
#include "session/session.h"
#include "spans/span_group_rows.h"
#include "spans/trace_parts.h"
#include "spans/trace_writer.h"

#include <assert.h>
#include <stdlib.h>

#define MAX_ATTEMPTS 3 /* while partitions are dropped */
/*
 * Limit for refreshing instances, which waits for locks of their tenant; spans of all tenants wait
 * for it.
 */
#define REFRESH_NS (3 * HEARTH_NS_PER_SEC)
#define ONLY_PROFILED \
    8 /* flag until the insertion: drop the group unless its service has a trace task */

/*
 * A segment arrives when its request has ended, which may be after the end of the task: until then,
 * groups of the service are kept.
 */
#define TASK_GRACE_MS (10 * INT64_C(60000))

/* A group whose spans have ids. */
struct associated {
    int32_t service_id;
    const struct hearth_span_group *group;
};

/* The groups of a batch. */
struct groups {
    struct hearth_trace_batch *batch;
    struct hearth_trace_row *rows;
    struct hearth_trace_row *wanted;  /* those of them that are inserted; chosen by each attempt */
    struct hearth_trace_row *distant; /* those that another node owns; chosen by each attempt */
    struct associated *associated;
    size_t n, n_wanted, n_distant, n_associated, cap; /* cap: of the arrays */
    struct hearth_cancel refreshing; /* instances are refreshed until its deadline */
};

/* ---- instances ---- */

/* Refresh the agents' instances of an item that were not refreshed in this minute. */
static enum hearth_status refresh_instances(struct groups *groups,
                                            const struct hearth_trace_item *item,
                                            struct hearth_err *err)
{
    struct hearth_trace_batch *batch = groups->batch;
    struct hearth_instance *due = hearth_arena_calloc(&batch->arena, item->n_groups, sizeof *due);
    size_t n_due = 0;

    if (due == NULL) {
        return HEARTH_FAIL_ARENA(err, &batch->arena);
    }

    /* List them. Exporters of raw spans are no agents: they cannot be given a task. */
    struct hearth_idmap *refreshed = &batch->names->refreshed;
    if (refreshed->n >= HEARTH_TRACE_MAX_KNOWN) {
        hearth_idmap_reset(refreshed);
    }

    for (size_t i = 0;
         i < item->n_groups && hearth_clock_mono_ns() < groups->refreshing.deadline_mono_ns; i++) {
        const struct hearth_span_group *group = &item->groups[i];
        const struct hearth_str parts[] = {item->tenant, group->service, group->instance};
        bool is_new = false;
        if (group->instance.n == 0 || group->is_raw) {
            continue;
        }

        (void)hearth_idmap_intern(
            refreshed, hearth_trace_name_key(parts, 3, 1 + (uint64_t)batch->now_ms / 60000), 0,
            &is_new);
        if (is_new) {
            due[n_due++] = (struct hearth_instance){.service = group->service,
                                                    .name = group->instance,
                                                    .first_seen_ms = batch->now_ms,
                                                    .last_seen_ms = batch->now_ms};
        }
    }

    if (n_due == 0) {
        return HEARTH_OK;
    }

    /* Report them. */
    struct hearth_err reason = HEARTH_ERR_INIT;
    struct hearth_scope scope = {
        .store = batch->store, .tenant = item->tenant, .cancel = &groups->refreshing};
    struct hearth_agent_report report = {
        .instances = due,
        .n_instances = n_due,
        .max_instances = item->max_instances,
        .max_processes = item->max_processes,
    };
    if (hearth_store_report_agents(&scope, &report, &reason) != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_DEBUG, "store", "instances of segments were not refreshed", "reason",
                   reason.msg, NULL);
    }

    return HEARTH_OK;
}

/* ---- rows ---- */

static bool make_group_arrays(struct groups *groups)
{
    struct hearth_trace_batch *batch = groups->batch;

    for (size_t i = 0; i < batch->n_items; i++) {
        groups->cap += batch->items[i]->n_groups;
    }

    groups->rows = hearth_arena_array(&batch->arena, groups->cap, sizeof *groups->rows);
    groups->wanted = hearth_arena_array(&batch->arena, groups->cap, sizeof *groups->wanted);
    groups->distant = hearth_arena_array(&batch->arena, groups->cap, sizeof *groups->distant);
    groups->associated = hearth_arena_array(&batch->arena, groups->cap, sizeof *groups->associated);

    return !batch->arena.refused;
}

static void add_group_row(struct groups *groups, struct hearth_trace_item *item,
                          const struct hearth_span_group *group, int32_t service_id)
{
    assert(groups->n < groups->cap);

    groups->rows[groups->n++] = (struct hearth_trace_row){
        .service_id = service_id,
        .start_ns = group->start_ns,
        .segment_key = hearth_trace_key(group->segment_id, group->is_raw),
        .trace_key = hearth_trace_key(group->trace_id, group->is_raw),
        .duration_ns = group->end_ns - group->start_ns,
        .n_spans = group->n_spans,
        .kind = (int32_t)group->kind,
        .flags = hearth_span_group_flags_of(group) | (item->only_profiled ? ONLY_PROFILED : 0),
        .trace_id = group->trace_id,
        .segment_id = group->segment_id,
        .instance = group->instance,
        .endpoint = group->endpoint,
        .spans = group->spans,
        .item = item,
    };

    if (group->n_span_ids > 0) {
        groups->associated[groups->n_associated++] = (struct associated){service_id, group};
    }
}

static enum hearth_status make_group_rows(struct groups *groups, struct hearth_err *err)
{
    struct hearth_trace_batch *batch = groups->batch;

    if (!make_group_arrays(groups)) {
        return HEARTH_FAIL_ARENA(err, &batch->arena);
    }

    for (size_t i = 0; i < batch->n_items; i++) {
        struct hearth_trace_item *item = batch->items[i];
        const struct hearth_scope scope = {.store = batch->store,
                                           .tenant = item->tenant,
                                           .cancel = batch->cancel,
                                           .arena = &batch->arena};
        HEARTH_TRY(hearth_trace_services_learn(&scope, batch->names, item, err));

        for (size_t k = 0; k < item->n_groups; k++) {
            int32_t service_id;
            HEARTH_TRY(hearth_trace_service_find(&scope, batch->names, item->groups[k].service,
                                                 &service_id, err));
            add_group_row(groups, item, &item->groups[k], service_id);
        }

        HEARTH_TRY(refresh_instances(groups, item, err));
    }

    return HEARTH_OK;
}

/* ---- partitions ---- */

/* The nodes of distributed tables that are known now see to the leaves of their groups. */
static bool is_distant(const struct groups *groups, const struct hearth_trace_row *row)
{
    return hearth_store_node_of(groups->batch->store, row->service_id) != 0;
}

static enum hearth_status ensure_group_leaves(const struct groups *groups, struct hearth_pg *pg,
                                              struct hearth_err *err)
{
    for (size_t i = 0; i < groups->n; i++) {
        if (is_distant(groups, &groups->rows[i])) {
            continue;
        }
        HEARTH_TRY(hearth_partitions_ensure(groups->batch->store, pg, HEARTH_LEAF_SPAN_GROUP,
                                            hearth_day_of(groups->rows[i].start_ns), err));
    }

    return HEARTH_OK;
}

static void forget_group_leaves(const struct groups *groups)
{
    for (size_t i = 0; i < groups->n; i++) {
        hearth_partitions_forget(groups->batch->store, hearth_day_of(groups->rows[i].start_ns));
    }
}

/* ---- groups ---- */

static int compare_service_ids(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

/* Whether a service has a trace task. rows: services in ascending order, 1 if they have one. */
static bool has_trace_task(const PGresult *rows, int32_t service_id)
{
    int from = 0, to = PQntuples(rows);

    while (from < to) {
        int middle = from + (to - from) / 2;
        if (hearth_pg_i32(rows, middle, 0) < service_id) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }

    return from < PQntuples(rows) && hearth_pg_i32(rows, from, 0) == service_id &&
           hearth_pg_i32(rows, from, 1) != 0;
}

/* Choose all groups but those that are kept for trace tasks only and whose service has none. */
static void choose_wanted(struct groups *groups, const PGresult *rows)
{
    groups->n_wanted = groups->n_distant = 0;
    for (size_t i = 0; i < groups->n; i++) {
        struct hearth_trace_row row = groups->rows[i];
        if ((row.flags & ONLY_PROFILED) == 0 || has_trace_task(rows, row.service_id)) {
            row.flags &= ~ONLY_PROFILED;
            if (is_distant(groups, &row)) {
                groups->distant[groups->n_distant++] = row;
            } else {
                groups->wanted[groups->n_wanted++] = row;
            }
        }
    }
}

/*
 * Lock the services until the end of the transaction, and choose the groups to insert. If a
 * service was removed before, forget all names: the next attempt finds them again.
 *
 * A service has a trace task (kind 4) if one runs, or ended within TASK_GRACE_MS; by the index
 * task_service.
 */
static enum hearth_status lock_span_services(struct groups *groups, struct hearth_pg *pg,
                                             enum hearth_pg_fault *ret_fault,
                                             struct hearth_err *err)
{
    struct hearth_trace_batch *batch = groups->batch;
    int32_t *ids = hearth_arena_array(&batch->arena, groups->n, sizeof *ids);
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(err, &batch->arena);
    }

    /* Each once, in the order of locks. */
    int32_t any_only_profiled = 0;
    for (size_t i = 0; i < groups->n; i++) {
        ids[i] = groups->rows[i].service_id;
        any_only_profiled |= groups->rows[i].flags & ONLY_PROFILED;
    }

    qsort(ids, groups->n, sizeof *ids, compare_service_ids);
    size_t n = 0;
    for (size_t i = 0; i < groups->n; i++) {
        if (n == 0 || ids[n - 1] != ids[i]) {
            ids[n++] = ids[i];
        }
    }

    /* Lock them. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &batch->arena);
    hearth_pg_param_i32_array(&params, ids, n);
    hearth_pg_param_i64(&params, batch->now_ms);
    hearth_pg_param_i64(&params, TASK_GRACE_MS);
    hearth_pg_param_i32(&params, any_only_profiled);

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT s.service_id, ($4 <> 0 AND EXISTS (SELECT FROM hearth_data.task t WHERE"
        " t.service_id = s.service_id AND t.kind = 4 AND t.start_at <= $2 AND"
        " t.start_at + t.duration + $3 >= $2))::int4 FROM hearth_data.service s WHERE s.service_id"
        " = ANY ($1) ORDER BY s.service_id FOR KEY SHARE OF s",
        &params, batch->cancel, &result, ret_fault, err));
    bool have_all = (size_t)PQntuples(result) == n;
    if (have_all) {
        choose_wanted(groups, result);
    }
    PQclear(result);
    if (!have_all) {
        hearth_idmap_reset(&batch->names->services);
        hearth_idmap_reset(&batch->names->refreshed);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "a service was removed just now; retry");
    }

    return HEARTH_OK;
}

/* ---- associations ---- */

static int compare_associated(const void *left, const void *right)
{
    const struct associated *a = left, *b = right;
    return (a->service_id > b->service_id) - (a->service_id < b->service_id);
}

/* Append the ids of a group's spans; a refusal of memory is kept in the arena. */
static void put_span_ids(struct hearth_arena *arena, const struct hearth_span_group *group,
                         struct hearth_buf *out)
{
    struct hearth_association *all = hearth_arena_array(arena, group->n_span_ids, sizeof *all);
    if (all == NULL) {
        return;
    }

    for (size_t i = 0; i < group->n_span_ids; i++) {
        all[i] = (struct hearth_association){.key = hearth_span_key(group->span_ids[i]),
                                             .of = HEARTH_OF_STORED_SPAN};
    }

    hearth_associations_put_fresh(all, group->n_span_ids, 0, group->start_ns, out);
}

/* The associations of one service: a row of span_fresh, as a parameter. */
struct fresh_row {
    int32_t service_id, n_associations;
    struct hearth_str associations;
};

#define FRESH_ROW(kind, member) HEARTH_COLUMN(kind, struct fresh_row, member)
static const struct hearth_column fresh_row_columns[] = {
    FRESH_ROW(I32, service_id), FRESH_ROW(I32, n_associations), FRESH_ROW(BYTES, associations)};
static const struct hearth_row_type fresh_row_type =
    HEARTH_ROW_TYPE(fresh_row_columns, struct fresh_row);

/* Make a row for each service. Returns their number; a refusal is kept in `out` or in the arena. */
static size_t make_fresh_rows(struct groups *groups, struct fresh_row *rows, struct hearth_buf *out)
{
    struct hearth_arena *arena = &groups->batch->arena;
    size_t n = 0;

    qsort(groups->associated, groups->n_associated, sizeof *groups->associated, compare_associated);
    for (size_t i = 0; i < groups->n_associated && !arena->refused; n++) {
        size_t n_here = 0;
        int32_t service_id = groups->associated[i].service_id;
        hearth_buf_reset(out);
        for (; i < groups->n_associated && groups->associated[i].service_id == service_id; i++) {
            put_span_ids(arena, groups->associated[i].group, out);
            n_here += groups->associated[i].group->n_span_ids;
        }

        rows[n] = (struct fresh_row){service_id, (int32_t)n_here,
                                     hearth_arena_str(arena, hearth_buf_view(out))};
    }

    return n;
}

/* Insert, for each id of a span, in which group it is. */
static enum hearth_status insert_associations(struct groups *groups, struct hearth_pg *pg,
                                              enum hearth_pg_fault *ret_fault,
                                              struct hearth_err *err)
{
    struct hearth_trace_batch *batch = groups->batch;
    struct fresh_row *rows = hearth_arena_array(&batch->arena, groups->n_associated, sizeof *rows);
    if (rows == NULL) {
        return HEARTH_FAIL_ARENA(err, &batch->arena);
    }

    /* Make the rows. */
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    size_t n = make_fresh_rows(groups, rows, &out), n_all = 0;
    bool failed = hearth_buf_failed(&out) || batch->arena.refused;
    hearth_buf_release(&out);
    if (failed) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the ids of spans");
    }

    for (size_t i = 0; i < n; i++) {
        n_all += (size_t)rows[i].n_associations;
    }

    /* Insert them. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &batch->arena);
    hearth_pg_param_rows(&params, &fresh_row_type, rows, n);
    HEARTH_TRY(hearth_pg_exec(pg,
                              "INSERT INTO hearth_data.span_fresh (service_id, n_associations,"
                              " associations) SELECT * FROM unnest($1, $2, $3)",
                              &params, batch->cancel, NULL, ret_fault, err));
    hearth_metric_add(HEARTH_M_SPAN_ASSOCIATIONS, (int64_t)n_all);

    return HEARTH_OK;
}

/* ---- the transaction ---- */

static enum hearth_status run_batch_transaction(struct groups *groups, struct hearth_pg *pg,
                                                enum hearth_pg_fault *ret_fault,
                                                struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_script(pg, "BEGIN ISOLATION LEVEL READ COMMITTED", ret_fault, err));

    if (groups->n > 0) {
        HEARTH_TRY(lock_span_services(groups, pg, ret_fault, err));
    }

    if (groups->n_wanted > 0) {
        HEARTH_TRY(hearth_trace_rows_insert(groups->wanted, groups->n_wanted, pg,
                                            &groups->batch->arena, groups->batch->cancel, ret_fault,
                                            err));
    }

    if (groups->n_associated > 0) {
        HEARTH_TRY(insert_associations(groups, pg, ret_fault, err));
    }

    HEARTH_TRY(hearth_trace_snapshots_insert(groups->batch, pg, ret_fault, err));

    return hearth_pg_script(pg, groups->n > 0 ? "COMMIT" : HEARTH_SQL_SETTLE "; COMMIT", ret_fault,
                            err);
}

/* Again if a partition was dropped after it had been seen. */
static enum hearth_status write_batch_on(void *context, struct hearth_pg *pg,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct groups *groups = context;

    for (int i = 1;; i++) {
        HEARTH_TRY(ensure_group_leaves(groups, pg, err));
        enum hearth_status status = run_batch_transaction(groups, pg, ret_fault, err);
        if (status == HEARTH_OK) {
            return HEARTH_OK;
        }

        hearth_pg_rollback(pg);
        if (*ret_fault != HEARTH_PG_FAULT_MISSING_TABLE || i == MAX_ATTEMPTS) {
            return status;
        }

        forget_group_leaves(groups);
    }
}

enum hearth_status hearth_trace_batch_store(struct hearth_trace_batch *batch,
                                            struct hearth_err *err)
{
    assert(batch->store != NULL && batch->names != NULL && batch->cancel != NULL);
    assert(batch->n_items > 0);

    batch->now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    hearth_arena_init(&batch->arena, 0);
    struct groups groups = {.batch = batch};
    hearth_cancel_init(&groups.refreshing, hearth_clock_mono_ns() + REFRESH_NS);

    enum hearth_status status = make_group_rows(&groups, err);
    if (status == HEARTH_OK) {
        status = hearth_store_as_owner(batch->store, batch->cancel, write_batch_on, &groups, err);
    }

    if (status == HEARTH_OK) {
        status = hearth_trace_parts_make(batch->store, groups.distant, groups.n_distant,
                                         &batch->parts, err);
    }

    hearth_arena_release(&batch->arena);

    return status;
}
