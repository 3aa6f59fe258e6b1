/*
 * task_archive_traces.c -- export and import of the segments and snapshots of trace tasks
 * (contract: task_archive_traces.h).
 */
#include "tasks/task_archive_traces.h"

#include "hearth/codec/compress.h"
#include "hearth/engine/traces.h"
#include "hearth/store/store_agents.h"

#include "select/query_internal.h"

#include <assert.h>
#include <inttypes.h>

#define MAX_ID_BYTES 512
#define MAX_TIME     (INT64_MAX / 2)
#define BATCH        200 /* rows stored per transaction */

/* ---- export ---- */

static enum hearth_status fail_segment_memory(struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for segments of a task");
}

static enum hearth_status export_segment(const struct hearth_kept_segment *segment,
                                         struct hearth_buf *out, struct hearth_err *err)
{
    const struct hearth_span_group *group = &segment->group;
    struct hearth_buf plain;

    /* Encode the spans. */
    hearth_buf_init(&plain, 0);
    hearth_spans_encode(segment->spans, segment->n_spans, group->start_ns, &plain);
    const struct hearth_archive_segment archived = {
        .service = group->service,
        .instance = group->instance,
        .endpoint = group->endpoint,
        .trace_id = group->trace_id,
        .segment_id = group->segment_id,
        .start_ns = group->start_ns,
        .end_ns = group->end_ns,
        .kind = (int64_t)group->kind,
        .flags = (group->is_raw ? HEARTH_GROUP_RAW : 0) |
                 (group->has_error ? HEARTH_GROUP_ERRORS : 0) |
                 (group->is_cut ? HEARTH_GROUP_CUT : 0),
        .spans = hearth_buf_view(&plain),
    };

    /* Append the record. */
    hearth_archive_put_segment(&archived, out);
    enum hearth_status status = hearth_buf_failed(&plain) ? fail_segment_memory(err) : HEARTH_OK;
    hearth_buf_release(&plain);

    return status;
}

static enum hearth_status export_snapshot_run(const struct hearth_call *call,
                                              const struct hearth_snapshot_run *run,
                                              struct hearth_inflater *inflater,
                                              struct hearth_buf *out, struct hearth_err *err)
{
    struct hearth_buf scratch;
    struct hearth_str plain;
    size_t max = call->arena->limit_bytes > 0 ? call->arena->limit_bytes : SIZE_MAX;

    hearth_buf_init(&scratch, 0);
    scratch.budget = call->arena->budget;
    enum hearth_status status = hearth_unpack(inflater, run->snapshots, max, &scratch, &plain, err);
    if (status == HEARTH_OK) {
        const struct hearth_archive_snapshots archived = {run->segment_id, plain};
        hearth_archive_put_snapshots(&archived, out);
    }

    hearth_buf_release(&scratch);

    return status;
}

/*
 * Export all stored snapshots of the segments, also those that the task did not request: an
 * analysis uses them too.
 */
static enum hearth_status export_snapshots(const struct hearth_call *call,
                                           struct hearth_str task_id, struct hearth_buf *out,
                                           struct hearth_err *err)
{
    struct hearth_segment_snapshots *segments;
    struct hearth_snapshot_run *runs;
    size_t n, n_runs;

    /* Find the segments of the task. */
    HEARTH_TRY(
        hearth_store_segment_snapshots(HEARTH_CALL_SCOPE(call), &task_id, 1, &segments, &n, err));
    struct hearth_str *ids = hearth_arena_array(call->arena, n, sizeof *ids);
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    for (size_t i = 0; i < n; i++) {
        ids[i] = segments[i].segment_id;
    }

    /* Read all their snapshots. */
    HEARTH_TRY(hearth_store_snapshot_runs(HEARTH_CALL_SCOPE(call), ids, n, &runs, &n_runs, err));
    struct hearth_inflater *inflater = hearth_inflater_new();
    enum hearth_status status = inflater == NULL ? fail_segment_memory(err) : HEARTH_OK;
    for (size_t i = 0; i < n_runs && status == HEARTH_OK && !hearth_buf_failed(out); i++) {
        status = export_snapshot_run(call, &runs[i], inflater, out, err);
    }

    hearth_inflater_free(inflater);

    return status;
}

enum hearth_status hearth_archive_export_traces(const struct hearth_call *call,
                                                const struct hearth_task *task,
                                                struct hearth_buf *out, struct hearth_err *err)
{
    if (task->kind != HEARTH_TASK_TRACE) {
        return HEARTH_OK;
    }

    struct hearth_profiled_requests found;
    HEARTH_TRY(hearth_traces_of_task(call, task->task_id, &found, err));
    for (size_t i = 0; i < found.n; i++) {
        const struct hearth_profiled_request *request = &found.requests[i];
        for (size_t k = 0; k < request->n_segments && !hearth_buf_failed(out); k++) {
            HEARTH_TRY(export_segment(request->segments[k], out, err));
        }
    }

    return export_snapshots(call, task->task_id, out, err);
}

/* ---- import: checks ---- */

enum hearth_status hearth_archive_refuse(struct hearth_err *err, const char *reason)
{
    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the archive cannot be imported: %s", reason);
}

/* Corrupt bytes are the caller's mistake here, not the database's. */
static enum hearth_status hide_corruption(enum hearth_status status)
{
    return status == HEARTH_CORRUPT ? HEARTH_INVALID_ARGUMENT : status;
}

static bool are_valid_tags(const struct hearth_span_tag *tags, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!hearth_str_utf8_valid(tags[i].key) || !hearth_str_utf8_valid(tags[i].value)) {
            return false;
        }
    }

    return true;
}

static bool are_valid_span_texts(const struct hearth_span *span)
{
    bool are = hearth_str_utf8_valid(span->name) && hearth_str_utf8_valid(span->peer) &&
               are_valid_tags(span->tags, span->n_tags);

    for (size_t i = 0; i < span->n_refs && are; i++) {
        const struct hearth_span_ref *ref = &span->refs[i];
        are = hearth_str_utf8_valid(ref->trace_id) && hearth_str_utf8_valid(ref->segment_id) &&
              hearth_str_utf8_valid(ref->service) && hearth_str_utf8_valid(ref->instance) &&
              hearth_str_utf8_valid(ref->endpoint) && hearth_str_utf8_valid(ref->address);
    }

    for (size_t i = 0; i < span->n_logs && are; i++) {
        are = are_valid_tags(span->logs[i].tags, span->logs[i].n_tags);
    }

    return are;
}

static bool is_archive_id(struct hearth_str id, bool is_raw)
{
    return id.n > 0 && id.n <= MAX_ID_BYTES && (is_raw || hearth_str_utf8_valid(id));
}

static enum hearth_status check_archive_segment(const struct hearth_archive_segment *s,
                                                struct hearth_err *err)
{
    bool is_raw = (s->flags & HEARTH_GROUP_RAW) != 0;

    if (!is_archive_id(s->trace_id, is_raw) || !is_archive_id(s->segment_id, is_raw)) {
        return hearth_archive_refuse(
            err, "the id of a segment or trace is empty, too long or not UTF-8");
    }

    if (s->service.n == 0 || s->service.n > HEARTH_AGENT_NAME_BYTES ||
        s->instance.n > HEARTH_AGENT_NAME_BYTES) {
        return hearth_archive_refuse(err, "a segment has no service, or a name that is too long");
    }

    if (s->start_ns < 0 || s->end_ns < s->start_ns || s->end_ns > MAX_TIME || s->kind < 0 ||
        s->kind >= HEARTH_N_SPAN_KINDS || s->flags < 0 ||
        s->flags > (HEARTH_GROUP_RAW | HEARTH_GROUP_ERRORS | HEARTH_GROUP_CUT)) {
        return hearth_archive_refuse(err, "a number of a segment is out of range");
    }

    return HEARTH_OK;
}

static enum hearth_status pack_records(const struct hearth_call *call, struct hearth_str plain,
                                       struct hearth_str *ret, struct hearth_err *err)
{
    struct hearth_buf packed;

    hearth_buf_init(&packed, 0);
    enum hearth_status status = hearth_pack_text(plain, &packed, err);
    if (status == HEARTH_OK) {
        *ret = hearth_arena_str(call->arena, hearth_buf_view(&packed));
        status =
            ret->p == NULL ? (enum hearth_status)HEARTH_FAIL_ARENA(err, call->arena) : HEARTH_OK;
    }

    hearth_buf_release(&packed);

    return status;
}

static enum hearth_status read_archive_segment(const struct hearth_call *call,
                                               const struct hearth_archive_segment *s,
                                               struct hearth_span_group *ret,
                                               struct hearth_err *err)
{
    struct hearth_span *spans;
    size_t n;

    /* Check and decode the segment. */
    HEARTH_TRY(check_archive_segment(s, err));
    HEARTH_TRY(
        hide_corruption(hearth_spans_decode(s->spans, s->start_ns, call->arena, &spans, &n, err)));
    if (n == 0 || n > INT32_MAX) {
        return hearth_archive_refuse(err, "a segment has no spans");
    }

    for (size_t i = 0; i < n; i++) {
        if (!are_valid_span_texts(&spans[i])) {
            return hearth_archive_refuse(err, "a text of a span is not UTF-8");
        }
    }

    /* Make its row. */
    *ret = (struct hearth_span_group){
        .service = s->service,
        .instance = s->instance,
        .trace_id = s->trace_id,
        .segment_id = s->segment_id,
        .is_raw = (s->flags & HEARTH_GROUP_RAW) != 0,
        .start_ns = s->start_ns,
        .end_ns = s->end_ns,
        .endpoint = s->endpoint,
        .kind = (enum hearth_span_kind)s->kind,
        .has_error = (s->flags & HEARTH_GROUP_ERRORS) != 0,
        .is_cut = (s->flags & HEARTH_GROUP_CUT) != 0,
        .n_spans = (int32_t)n,
    };

    return pack_records(call, s->spans, &ret->spans, err);
}

static enum hearth_status read_archive_run(const struct hearth_call *call,
                                           const struct hearth_archive_snapshots *s,
                                           struct hearth_snapshot_run *ret, struct hearth_err *err)
{
    struct hearth_snapshot *snapshots;
    size_t n;

    if (!is_archive_id(s->segment_id, false)) {
        return hearth_archive_refuse(err, "snapshots of a segment whose id is empty or too long");
    }

    /* Decode the snapshots. */
    HEARTH_TRY(
        hide_corruption(hearth_snapshots_decode(s->bytes, 0, call->arena, &snapshots, &n, err)));
    if (n == 0 || n > INT32_MAX) {
        return hearth_archive_refuse(err, "a segment has an empty record of snapshots");
    }

    *ret = (struct hearth_snapshot_run){
        .segment_id = s->segment_id,
        .n_snapshots = (int32_t)n,
        .first_sequence = INT32_MAX,
        .first_ms = INT64_MAX,
    };

    /* Check each of them, and find the first and last. */
    for (size_t i = 0; i < n; i++) {
        const struct hearth_snapshot *one = &snapshots[i];
        if (one->sequence < 0 || one->at_ms <= 0 || one->at_ms > MAX_TIME / HEARTH_NS_PER_MS) {
            return hearth_archive_refuse(err,
                                         "the number or the time of a snapshot is out of range");
        }
        for (uint32_t k = 0; k < one->n_frames; k++) {
            if (!hearth_str_utf8_valid(one->frames[k])) {
                return hearth_archive_refuse(err, "a frame of a snapshot is not UTF-8");
            }
        }

        ret->first_sequence =
            one->sequence < ret->first_sequence ? one->sequence : ret->first_sequence;
        ret->last_sequence =
            one->sequence > ret->last_sequence ? one->sequence : ret->last_sequence;
        ret->first_ms = one->at_ms < ret->first_ms ? one->at_ms : ret->first_ms;
        ret->last_ms = one->at_ms > ret->last_ms ? one->at_ms : ret->last_ms;
    }

    return pack_records(call, s->bytes, &ret->snapshots, err);
}

enum hearth_status hearth_archive_read_traces(const struct hearth_call *call,
                                              const struct hearth_task_archive *a,
                                              struct hearth_archive_traces *ret,
                                              struct hearth_err *err)
{
    assert(call != NULL && ret != NULL);

    *ret = (struct hearth_archive_traces){
        .groups = hearth_arena_array(call->arena, a->n_segments, sizeof *ret->groups),
        .runs = hearth_arena_array(call->arena, a->n_snapshots, sizeof *ret->runs),
        .n_groups = a->n_segments,
        .n_runs = a->n_snapshots,
    };

    /* Only trace tasks may have segments. */
    if (ret->groups == NULL || ret->runs == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    if (a->task.numbers[HEARTH_ARCHIVE_KIND] != HEARTH_TASK_TRACE &&
        a->n_segments + a->n_snapshots > 0) {
        return hearth_archive_refuse(err, "it has segments, but its task is no trace task");
    }

    /* Read all segments and snapshots. */
    for (size_t i = 0; i < a->n_segments; i++) {
        HEARTH_TRY(read_archive_segment(call, &a->segments[i], &ret->groups[i], err));
    }

    for (size_t i = 0; i < a->n_snapshots; i++) {
        HEARTH_TRY(read_archive_run(call, &a->snapshots[i], &ret->runs[i], err));
        ret->n_snapshots += ret->runs[i].n_snapshots;
    }

    return HEARTH_OK;
}

/* ---- import: storing ---- */

static size_t limit_batch(size_t n, size_t from)
{
    return from >= n ? 0 : n - from < BATCH ? n - from : BATCH;
}

enum hearth_status hearth_archive_store_traces(const struct hearth_call *call,
                                               const struct hearth_archive_traces *t,
                                               const struct hearth_task *task,
                                               struct hearth_err *err)
{
    for (size_t from = 0; from < t->n_groups || from < t->n_runs; from += BATCH) {
        size_t n_groups = limit_batch(t->n_groups, from), n_runs = limit_batch(t->n_runs, from);
        const struct hearth_imported_traces traces = {
            .task_id = task->task_id,
            .service_id = task->service_id,
            .groups = n_groups > 0 ? &t->groups[from] : NULL,
            .n_groups = n_groups,
            .runs = n_runs > 0 ? &t->runs[from] : NULL,
            .n_runs = n_runs,
        };
        HEARTH_TRY(hearth_store_imported_put(HEARTH_CALL_SCOPE(call), &traces, err));
    }

    return HEARTH_OK;
}
