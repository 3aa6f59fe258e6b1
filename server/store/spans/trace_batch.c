/*
 * trace_batch.c -- spans and snapshots of several items as one transaction (trace_writer.h).
 *
 *   services     from memory, else from the database, made when they are new
 *   instances    of agents, refreshed once a minute; that may fail (there are too many, or it takes too long): the spans are stored nevertheless
 *   leaves       of the days
 *   transaction  the services are locked, so that they stay; an INSERT of all groups; one of where their spans are, a row for each service;
 *                one of the snapshots of each tenant, those of a segment in one row
 *
 * ON CONFLICT DO NOTHING makes all of it repeatable, but for where spans are: said twice, or of groups that are not kept, it does no harm.
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"
#include "hearth/codec/compress.h"
#include "hearth/store/store_agents.h"

#include "pg/partitions.h"
#include "pg/pg.h"
#include "pg/session.h"
#include "pg/store_state.h"
#include "spans/trace_writer.h"

#include <stdlib.h>

#define LEAF_TRIES 3
/* Instances may wait for others of their tenant; spans of all tenants do not wait for these any longer. */
#define REFRESH_NS (3 * HEARTH_NS_PER_SEC)
#define ONLY       8 /* of the statement: if the service has a trace task */

/* Snapshots and segments of a request come when it has ended, which a task's end does not wait for. */
#define TASK_GRACE_MS "600000"

struct placed {
    int32_t service_id;
    const struct hearth_span_group *group;
};

/* One group as it is sent. */
struct batch {
    struct hearth_store *store;
    struct hearth_trace_names *names;
    struct hearth_trace_item *const *items;
    size_t n_items;
    struct hearth_cancel *cancel;
    struct hearth_arena arena;
    size_t n; /* groups */
    int32_t *service_ids, *n_spans, *kinds, *flags;
    int64_t *starts, *durations, *segment_keys, *trace_keys;
    struct hearth_str *trace_ids, *segment_ids, *instances, *endpoints, *spans;
    struct placed *placed; /* groups whose spans have ids */
    size_t n_placed;
    int64_t now_ms;
    struct hearth_cancel refreshing; /* instances are refreshed until its deadline */
};

/* ---- instances ---- */

/* Those of an item that were not refreshed in this minute. */
static enum hearth_status
refresh_instances(struct batch *batch, const struct hearth_trace_item *item, struct hearth_err *err)
{
    struct hearth_instance *due = hearth_arena_calloc(&batch->arena, item->n_groups, sizeof *due);
    size_t n_due = 0;

    if (due == NULL) {
        return HEARTH_FAIL_ARENA(err, &batch->arena);
    }

    struct hearth_idmap *refreshed = &batch->names->refreshed;
    if (refreshed->n >= HEARTH_TRACE_MAX_KNOWN) {
        hearth_idmap_reset(refreshed);
    }

    for (size_t i = 0;
         i < item->n_groups && hearth_clock_mono_ns() < batch->refreshing.deadline_mono_ns; i++) {
        const struct hearth_span_group *group = &item->groups[i];
        const struct hearth_str parts[] = {item->tenant, group->service, group->instance};
        bool is_new = false;
        if (group->instance.n == 0 || group->is_raw) {
            continue; /* who exports spans is no agent that could be given a task */
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

    struct hearth_err reason = HEARTH_ERR_INIT;
    struct hearth_scope scope = {
        .store = batch->store, .tenant = item->tenant, .cancel = &batch->refreshing};
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

static bool make_columns(struct batch *batch)
{
    for (size_t i = 0; i < batch->n_items; i++) {
        batch->n += batch->items[i]->n_groups;
    }

    struct hearth_arena *arena = &batch->arena;
    batch->service_ids = hearth_arena_array(arena, batch->n, sizeof *batch->service_ids);
    batch->n_spans = hearth_arena_array(arena, batch->n, sizeof *batch->n_spans);
    batch->kinds = hearth_arena_array(arena, batch->n, sizeof *batch->kinds);
    batch->flags = hearth_arena_array(arena, batch->n, sizeof *batch->flags);
    batch->starts = hearth_arena_array(arena, batch->n, sizeof *batch->starts);
    batch->durations = hearth_arena_array(arena, batch->n, sizeof *batch->durations);
    batch->segment_keys = hearth_arena_array(arena, batch->n, sizeof *batch->segment_keys);
    batch->trace_keys = hearth_arena_array(arena, batch->n, sizeof *batch->trace_keys);
    batch->trace_ids = hearth_arena_array(arena, batch->n, sizeof *batch->trace_ids);
    batch->segment_ids = hearth_arena_array(arena, batch->n, sizeof *batch->segment_ids);
    batch->instances = hearth_arena_array(arena, batch->n, sizeof *batch->instances);
    batch->endpoints = hearth_arena_array(arena, batch->n, sizeof *batch->endpoints);
    batch->spans = hearth_arena_array(arena, batch->n, sizeof *batch->spans);
    batch->placed = hearth_arena_array(arena, batch->n, sizeof *batch->placed);

    return !arena->refused;
}

static void put_group(struct batch *batch, size_t at, const struct hearth_trace_item *item,
                      const struct hearth_span_group *group, int32_t service_id)
{
    batch->service_ids[at] = service_id;
    batch->n_spans[at] = group->n_spans;
    batch->kinds[at] = (int32_t)group->kind;
    batch->flags[at] = (group->is_raw ? HEARTH_GROUP_RAW : 0) |
                       (group->has_error ? HEARTH_GROUP_ERRORS : 0) |
                       (group->is_cut ? HEARTH_GROUP_CUT : 0) | (item->only_profiled ? ONLY : 0);
    batch->starts[at] = group->start_ns;
    batch->durations[at] = group->end_ns - group->start_ns;
    batch->segment_keys[at] = hearth_trace_key(group->segment_id, group->is_raw);
    batch->trace_keys[at] = hearth_trace_key(group->trace_id, group->is_raw);
    batch->trace_ids[at] = group->trace_id;
    batch->segment_ids[at] = group->segment_id;
    batch->instances[at] = group->instance;
    batch->endpoints[at] = group->endpoint;
    batch->spans[at] = group->spans;
    if (group->n_span_ids > 0) {
        batch->placed[batch->n_placed++] = (struct placed){service_id, group};
    }
}

static enum hearth_status fill_columns(struct batch *batch, struct hearth_err *err)
{
    size_t at = 0;

    for (size_t i = 0; i < batch->n_items; i++) {
        const struct hearth_trace_item *item = batch->items[i];
        HEARTH_TRY(hearth_trace_services_know(batch->store, batch->names, item, batch->cancel,
                                              &batch->arena, err));
        for (size_t k = 0; k < item->n_groups; k++) {
            int32_t service_id;
            HEARTH_TRY(hearth_trace_service_of(batch->store, batch->names, item->tenant,
                                               item->groups[k].service, batch->cancel, &service_id,
                                               err));
            put_group(batch, at++, item, &item->groups[k], service_id);
        }

        HEARTH_TRY(refresh_instances(batch, item, err));
    }

    return HEARTH_OK;
}

/* ---- the transaction ---- */

static enum hearth_status ensure_leaves(struct batch *batch, struct hearth_pg *pg,
                                        struct hearth_err *err)
{
    for (size_t i = 0; i < batch->n; i++) {
        HEARTH_TRY(hearth_partitions_ensure(batch->store, pg, HEARTH_LEAF_SPAN_GROUP,
                                            hearth_day_of(batch->starts[i]), err));
    }
    return HEARTH_OK;
}

static void forget_leaves(struct batch *batch)
{
    for (size_t i = 0; i < batch->n; i++) {
        hearth_partitions_forget(batch->store, hearth_day_of(batch->starts[i]));
    }
}

static int compare_ids(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

/* Nobody removes the services meanwhile. One that was removed before is not known any more: once again. */
static enum hearth_status lock_services(struct batch *batch, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    int32_t *ids = hearth_arena_array(&batch->arena, batch->n, sizeof *ids);
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(err, &batch->arena);
    }

    memcpy(ids, batch->service_ids, batch->n * sizeof *ids);
    qsort(ids, batch->n, sizeof *ids, compare_ids);
    size_t n = 0;
    for (size_t i = 0; i < batch->n; i++) {
        if (n == 0 || ids[n - 1] != ids[i]) {
            ids[n++] = ids[i];
        }
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &batch->arena);
    hearth_pg_param_i32_array(&params, ids, n);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT FROM hearth_data.service WHERE service_id = ANY ($1)"
                              " ORDER BY service_id FOR KEY SHARE",
                              &params, batch->cancel, &result, ret_fault, err));
    bool all_there = (size_t)PQntuples(result) == n;
    PQclear(result);
    if (!all_there) {
        hearth_idmap_reset(&batch->names->services);
        hearth_idmap_reset(&batch->names->refreshed);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "a service was removed just now; retry");
    }

    return HEARTH_OK;
}

static enum hearth_status insert_groups(struct batch *batch, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_pg_params params;

    hearth_pg_params_init(&params, &batch->arena);
    hearth_pg_param_i32_array(&params, batch->service_ids, batch->n);
    hearth_pg_param_i64_array(&params, batch->starts, batch->n);
    hearth_pg_param_i64_array(&params, batch->segment_keys, batch->n);
    hearth_pg_param_i64_array(&params, batch->trace_keys, batch->n);
    hearth_pg_param_i64_array(&params, batch->durations, batch->n);
    hearth_pg_param_i32_array(&params, batch->n_spans, batch->n);
    hearth_pg_param_i32_array(&params, batch->kinds, batch->n);
    hearth_pg_param_i32_array(&params, batch->flags, batch->n);
    hearth_pg_param_bytes_array(&params, batch->trace_ids, batch->n);
    hearth_pg_param_bytes_array(&params, batch->segment_ids, batch->n);
    hearth_pg_param_text_array(&params, batch->instances, batch->n);
    hearth_pg_param_text_array(&params, batch->endpoints, batch->n);
    hearth_pg_param_bytes_array(&params, batch->spans, batch->n);
    hearth_pg_param_i64(&params, batch->now_ms);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "INSERT INTO hearth_data.span_group (service_id, start_at, segment_key, trace_key,"
        " duration, n_spans, kind, flags, trace_id, segment_id, instance, endpoint, spans)"
        " SELECT r.service_id, r.start_at, r.segment_key, r.trace_key, r.duration, r.n_spans,"
        " r.kind, r.flags & 7, r.trace_id, r.segment_id, r.instance, r.endpoint, r.spans"
        " FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS"
        " r (service_id, start_at, segment_key, trace_key, duration, n_spans, kind, flags,"
        " trace_id, segment_id, instance, endpoint, spans)"
        " WHERE r.flags < 8 OR r.service_id IN (SELECT t.service_id FROM hearth_data.task t"
        " WHERE t.kind = 4 AND t.start_at <= $14 AND t.start_at + t.duration + " TASK_GRACE_MS
        " >= $14) ON CONFLICT DO NOTHING",
        &params, batch->cancel, &result, ret_fault, err));
    int64_t n_stored = 0;
    (void)hearth_str_to_i64(hearth_str_c(PQcmdTuples(result)), &n_stored);
    PQclear(result);
    hearth_metric_add(HEARTH_M_SEGMENTS_STORED, n_stored);

    return HEARTH_OK;
}

static int compare_placed(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    return (a->service_id > b->service_id) - (a->service_id < b->service_id);
}

static size_t put_associations(struct batch *batch, const struct placed *placed,
                               struct hearth_buf *out)
{
    const struct hearth_span_group *group = placed->group;
    struct hearth_association *all =
        hearth_arena_array(&batch->arena, group->n_span_ids, sizeof *all);

    for (size_t i = 0; all != NULL && i < group->n_span_ids; i++) {
        all[i] = (struct hearth_association){.key = hearth_span_key(group->span_ids[i]),
                                             .of = HEARTH_OF_STORED_SPAN};
    }

    hearth_associations_put_fresh(all, all == NULL ? 0 : group->n_span_ids, 0, group->start_ns,
                                  out);

    return group->n_span_ids;
}

/* In which group each span is, a row for each service. */
static enum hearth_status insert_associations(struct batch *batch, struct hearth_pg *pg,
                                              enum hearth_pg_fault *ret_fault,
                                              struct hearth_err *err)
{
    int32_t *ids = hearth_arena_array(&batch->arena, batch->n_placed, sizeof *ids);
    int32_t *counts = hearth_arena_array(&batch->arena, batch->n_placed, sizeof *counts);
    struct hearth_str *packed = hearth_arena_array(&batch->arena, batch->n_placed, sizeof *packed);
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    size_t n = 0, n_all = 0;
    qsort(batch->placed, batch->n_placed, sizeof *batch->placed, compare_placed);
    for (size_t i = 0; i < batch->n_placed && !batch->arena.refused; n++) {
        size_t n_here = 0;
        hearth_buf_reset(&out);
        ids[n] = batch->placed[i].service_id;
        for (; i < batch->n_placed && batch->placed[i].service_id == ids[n]; i++) {
            n_here += put_associations(batch, &batch->placed[i], &out);
        }

        counts[n] = (int32_t)n_here;
        packed[n] = hearth_arena_str(&batch->arena, hearth_buf_view(&out));
        n_all += n_here;
    }

    bool failed = hearth_buf_failed(&out) || batch->arena.refused;
    hearth_buf_release(&out);
    if (failed) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the ids of spans");
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &batch->arena);
    hearth_pg_param_i32_array(&params, ids, n);
    hearth_pg_param_i32_array(&params, counts, n);
    hearth_pg_param_bytes_array(&params, packed, n);
    HEARTH_TRY(hearth_pg_exec(pg,
                              "INSERT INTO hearth_data.span_fresh (service_id, n_associations,"
                              " associations) SELECT * FROM unnest($1, $2, $3)",
                              &params, batch->cancel, NULL, ret_fault, err));
    hearth_metric_add(HEARTH_M_SPAN_ASSOCIATIONS, (int64_t)n_all);

    return HEARTH_OK;
}

/* Of one tenant: the arrays of the statement. */
struct runs {
    struct hearth_str *task_ids, *segment_ids, *packed;
    int64_t *keys, *contents, *first_at, *last_at;
    int32_t *first, *last, *counts;
    size_t n;
};

static bool make_runs(struct hearth_arena *arena, size_t n, struct runs *ret)
{
    ret->task_ids = hearth_arena_array(arena, n, sizeof *ret->task_ids);
    ret->segment_ids = hearth_arena_array(arena, n, sizeof *ret->segment_ids);
    ret->packed = hearth_arena_array(arena, n, sizeof *ret->packed);
    ret->keys = hearth_arena_array(arena, n, sizeof *ret->keys);
    ret->contents = hearth_arena_array(arena, n, sizeof *ret->contents);
    ret->first_at = hearth_arena_array(arena, n, sizeof *ret->first_at);
    ret->last_at = hearth_arena_array(arena, n, sizeof *ret->last_at);
    ret->first = hearth_arena_array(arena, n, sizeof *ret->first);
    ret->last = hearth_arena_array(arena, n, sizeof *ret->last);
    ret->counts = hearth_arena_array(arena, n, sizeof *ret->counts);

    return !arena->refused;
}

/* Snapshots of one task and segment, by number. */
static enum hearth_status put_run(struct batch *batch,
                                  const struct hearth_task_snapshot *const *all, size_t n,
                                  struct runs *runs, struct hearth_err *err)
{
    struct hearth_snapshot *snapshots = hearth_arena_array(&batch->arena, n, sizeof *snapshots);
    if (snapshots == NULL) {
        return HEARTH_FAIL_ARENA(err, &batch->arena);
    }

    size_t at = runs->n, n_kept = 0;
    int64_t first_ms = INT64_MAX, last_ms = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        const struct hearth_snapshot *it = &all[i]->snapshot;
        if (n_kept > 0 && snapshots[n_kept - 1].sequence == it->sequence) {
            continue;
        }

        snapshots[n_kept++] = *it;
        first_ms = it->at_ms < first_ms ? it->at_ms : first_ms;
        last_ms = it->at_ms > last_ms ? it->at_ms : last_ms;
    }

    struct hearth_buf plain, packed;
    hearth_buf_init(&plain, 0);
    hearth_buf_init(&packed, 0);
    hearth_snapshots_encode(snapshots, n_kept, &plain);
    enum hearth_status status;
    if (hearth_buf_failed(&plain)) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for %zu snapshots", n_kept);
    } else {
        status = hearth_pack_text(hearth_buf_view(&plain), &packed, err);
    }

    if (status == HEARTH_OK) {
        runs->packed[at] = hearth_arena_str(&batch->arena, hearth_buf_view(&packed));
        status = runs->packed[at].p == NULL ? HEARTH_FAIL_ARENA(err, &batch->arena) : HEARTH_OK;
    }

    hearth_buf_release(&plain);
    hearth_buf_release(&packed);
    HEARTH_TRY(status);
    runs->task_ids[at] = all[0]->task_id;
    runs->segment_ids[at] = all[0]->segment_id;
    runs->keys[at] = hearth_trace_key(all[0]->segment_id, false);
    runs->contents[at] = (int64_t)hearth_hash64(runs->packed[at].p, runs->packed[at].n, 0);
    runs->first_at[at] = first_ms;
    runs->last_at[at] = last_ms;
    runs->first[at] = snapshots[0].sequence;
    runs->last[at] = snapshots[n_kept - 1].sequence;
    runs->counts[at] = (int32_t)n_kept;
    runs->n++;

    return HEARTH_OK;
}

static int compare_segments(const struct hearth_task_snapshot *a,
                            const struct hearth_task_snapshot *b)
{
    int order = hearth_str_cmp(a->task_id, b->task_id);
    return order != 0 ? order : hearth_str_cmp(a->segment_id, b->segment_id);
}

static int compare_snapshots(const void *left, const void *right)
{
    const struct hearth_task_snapshot *a = *(const struct hearth_task_snapshot *const *)left;
    const struct hearth_task_snapshot *b = *(const struct hearth_task_snapshot *const *)right;
    int order = compare_segments(a, b);

    return order != 0 ? order
                      : (a->snapshot.sequence > b->snapshot.sequence) -
                            (a->snapshot.sequence < b->snapshot.sequence);
}

/* Everything of the tenant of item `first`, which is the first of it, in as few runs as it has segments. */
static enum hearth_status gather_runs(struct batch *batch, size_t first, struct runs *runs,
                                      struct hearth_err *err)
{
    struct hearth_str tenant = batch->items[first]->tenant;
    size_t n = 0, at = 0;

    for (size_t i = first; i < batch->n_items; i++) {
        n += hearth_str_eq(batch->items[i]->tenant, tenant) ? batch->items[i]->n_snapshots : 0;
    }

    const struct hearth_task_snapshot **all = hearth_arena_array(&batch->arena, n, sizeof *all);
    if (all == NULL || !make_runs(&batch->arena, n, runs)) {
        return HEARTH_FAIL_ARENA(err, &batch->arena);
    }

    for (size_t i = first; i < batch->n_items; i++) {
        const struct hearth_trace_item *item = batch->items[i];
        for (size_t k = 0; hearth_str_eq(item->tenant, tenant) && k < item->n_snapshots; k++) {
            all[at++] = &item->snapshots[k];
        }
    }

    qsort(all, n, sizeof *all, compare_snapshots);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && compare_segments(all[from], all[to]) == 0;) {
            to++;
        }

        HEARTH_TRY(put_run(batch, &all[from], to - from, runs, err));
    }

    return HEARTH_OK;
}

static enum hearth_status insert_runs(struct batch *batch, const struct hearth_trace_item *item,
                                      const struct runs *runs, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_pg_params params;

    hearth_pg_params_init(&params, &batch->arena);
    hearth_pg_param_text(&params, item->tenant);
    hearth_pg_param_text_array(&params, runs->task_ids, runs->n);
    hearth_pg_param_text_array(&params, runs->segment_ids, runs->n);
    hearth_pg_param_i64_array(&params, runs->keys, runs->n);
    hearth_pg_param_i32_array(&params, runs->first, runs->n);
    hearth_pg_param_i32_array(&params, runs->last, runs->n);
    hearth_pg_param_i32_array(&params, runs->counts, runs->n);
    hearth_pg_param_i64_array(&params, runs->first_at, runs->n);
    hearth_pg_param_i64_array(&params, runs->last_at, runs->n);
    hearth_pg_param_i64_array(&params, runs->contents, runs->n);
    hearth_pg_param_bytes_array(&params, runs->packed, runs->n);
    hearth_pg_param_i64(&params, batch->now_ms);
    hearth_pg_param_i64(&params, item->max_snapshots);

    return hearth_pg_exec(
        pg,
        "INSERT INTO hearth_data.task_snapshot (service_id, task_id, segment_id, segment_key,"
        " first_sequence, last_sequence, n_snapshots, first_at, last_at, content, snapshots,"
        " received_at) SELECT t.service_id, r.*, $12 FROM unnest($2, $3, $4, $5, $6, $7, $8, $9,"
        " $10, $11) AS r (task_id, segment_id, segment_key, first_sequence, last_sequence,"
        " n_snapshots, first_at, last_at, content, snapshots) JOIN hearth_data.task t ON t.task_id"
        " = r.task_id JOIN hearth_data.service s ON s.service_id = t.service_id JOIN"
        " hearth_data.tenant n ON n.tenant_id = s.tenant_id AND n.name = $1 WHERE $13 = 0 OR"
        " (SELECT coalesce(sum(o.n_snapshots), 0) FROM hearth_data.task_snapshot o WHERE"
        " o.service_id = t.service_id AND o.task_id = r.task_id AND o.segment_key ="
        " r.segment_key) < $13 ON CONFLICT DO NOTHING",
        &params, batch->cancel, NULL, ret_fault, err);
}

/* Of each tenant with its first item's limit. */
static enum hearth_status write_runs(struct batch *batch, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    for (size_t i = 0; i < batch->n_items; i++) {
        bool is_first = batch->items[i]->n_snapshots > 0;
        for (size_t k = 0; k < i && is_first; k++) {
            is_first = batch->items[k]->n_snapshots == 0 ||
                       !hearth_str_eq(batch->items[k]->tenant, batch->items[i]->tenant);
        }

        if (is_first) {
            struct runs runs = {0};
            HEARTH_TRY(gather_runs(batch, i, &runs, err));
            HEARTH_TRY(insert_runs(batch, batch->items[i], &runs, pg, ret_fault, err));
        }
    }

    return HEARTH_OK;
}

static enum hearth_status write_all(struct batch *batch, struct hearth_pg *pg,
                                    enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_script(pg, "BEGIN ISOLATION LEVEL READ COMMITTED", ret_fault, err));
    if (batch->n > 0) {
        HEARTH_TRY(lock_services(batch, pg, ret_fault, err));
        HEARTH_TRY(insert_groups(batch, pg, ret_fault, err));
    }

    if (batch->n_placed > 0) {
        HEARTH_TRY(insert_associations(batch, pg, ret_fault, err));
    }

    HEARTH_TRY(write_runs(batch, pg, ret_fault, err));

    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

static enum hearth_status write_batch(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct batch *batch = context;

    for (int i = 1;; i++) {
        HEARTH_TRY(ensure_leaves(batch, pg, err));
        enum hearth_status status = write_all(batch, pg, ret_fault, err);
        if (status == HEARTH_OK) {
            return HEARTH_OK;
        }

        hearth_pg_rollback(pg);
        if (*ret_fault != HEARTH_PG_FAULT_MISSING_TABLE || i == LEAF_TRIES) {
            return status;
        }

        forget_leaves(batch);
    }
}

enum hearth_status hearth_trace_batch_store(struct hearth_store *store,
                                            struct hearth_trace_names *names,
                                            struct hearth_trace_item *const *items, size_t n_items,
                                            struct hearth_cancel *cancel, struct hearth_err *err)
{
    struct batch batch = {.store = store,
                          .names = names,
                          .items = items,
                          .n_items = n_items,
                          .cancel = cancel,
                          .now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS};

    hearth_arena_init(&batch.arena, 0);
    hearth_cancel_init(&batch.refreshing, hearth_clock_mono_ns() + REFRESH_NS);
    enum hearth_status status =
        make_columns(&batch) ? HEARTH_OK : HEARTH_FAIL_ARENA(err, &batch.arena);
    if (status == HEARTH_OK) {
        status = fill_columns(&batch, err);
    }

    if (status == HEARTH_OK) {
        status = hearth_store_with_pg(store, cancel, write_batch, &batch, err);
    }

    hearth_arena_release(&batch.arena);

    return status;
}
