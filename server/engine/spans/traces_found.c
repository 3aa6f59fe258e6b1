/*
 * traces_found.c -- the requests that trace tasks found (contract: hearth/engine/traces.h).
 *
 * Snapshots name segments, and segments name traces. Other segments of a trace in the same instance
 * may be other threads of the same request. Everything is read by ids, without a range of time.
 */
#include "hearth/base/hash.h"
#include "hearth/codec/compress.h"
#include "hearth/engine/traces.h"
#include "hearth/store/store_spans.h"
#include "hearth/store/store_tasks.h"
#include "hearth/store/task_results.h"

#include "common/shown.h"
#include "select/query_internal.h"
#include "spans/span_stored.h"

#include <assert.h>
#include <stdlib.h>

#define MAX_NAMED_SEGMENTS 5 /* maximum number of segments named in a tip */

/* ---- segments ---- */

struct found_segments {
    const struct hearth_call *call;
    struct hearth_inflater *inflater;
    bool is_imported;
    struct hearth_str *profiled; /* ids of segments with snapshots or Go profiles */
    size_t n_profiled;
    struct hearth_idmap profiled_ids; /* index of each of these ids */
    struct hearth_kept_segment *segments;
    size_t n_segments;
};

static struct hearth_hash128 hash_text(struct hearth_str text)
{
    return hearth_hash128(text.p, text.n, 0);
}

static struct hearth_hash128 hash_trace_instance(const struct hearth_span_group *group)
{
    struct hearth_hash128 trace = hash_text(group->trace_id);
    return hearth_hash128(group->instance.p, group->instance.n,
                          hearth_hash_mix(trace.lo, (uint64_t)group->service_id));
}

/* Find the ids of segments with snapshots or Go profiles of the task, each once. */
static enum hearth_status find_profiled_ids(struct found_segments *found, struct hearth_str task_id,
                                            struct hearth_err *err)
{
    const struct hearth_call *call = found->call;
    struct hearth_segment_snapshots *snapshots;
    struct hearth_go_segment *profiles;
    size_t n_snapshots, n_profiles;

    /* Read both kinds. */
    HEARTH_TRY(hearth_store_segment_snapshots(HEARTH_CALL_SCOPE(call), &task_id, 1, &snapshots,
                                              &n_snapshots, err));
    const struct hearth_go_segment_filter of_task = {.task_id = task_id};
    HEARTH_TRY(
        hearth_store_go_segments(HEARTH_CALL_SCOPE(call), &of_task, &profiles, &n_profiles, err));
    found->profiled =
        hearth_arena_array(call->arena, n_snapshots + n_profiles, sizeof *found->profiled);
    if (found->profiled == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Keep each id once. */
    for (size_t i = 0; i < n_snapshots + n_profiles; i++) {
        struct hearth_str id =
            i < n_snapshots ? snapshots[i].segment_id : profiles[i - n_snapshots].segment_id;
        bool is_new = false;
        if (hearth_idmap_intern(&found->profiled_ids, hash_text(id), (uint32_t)found->n_profiled,
                                &is_new) == HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for %zu segments", i);
        }

        if (is_new) {
            found->profiled[found->n_profiled++] = id;
        }
    }

    return HEARTH_OK;
}

static enum hearth_status unpack_found_segment(struct found_segments *found,
                                               struct hearth_kept_segment *segment,
                                               struct hearth_err *err)
{
    struct hearth_arena *arena = found->call->arena;
    struct hearth_str plain;

    HEARTH_TRY(hearth_stored_unpack(arena, found->inflater, segment->group.spans, &plain, err));

    return hearth_spans_decode(plain, segment->group.start_ns, arena, &segment->spans,
                               &segment->n_spans, err);
}

static enum hearth_status take_found_segment(struct found_segments *found,
                                             const struct hearth_span_group *group,
                                             struct hearth_err *err)
{
    struct hearth_kept_segment *segment = &found->segments[found->n_segments++];

    segment->group = *group;
    segment->is_profiled =
        hearth_idmap_find(&found->profiled_ids, hash_text(group->segment_id)) != HEARTH_IDMAP_NONE;

    return unpack_found_segment(found, segment, err);
}

/* Find the segments of an imported task. */
static enum hearth_status find_imported_segments(struct found_segments *found,
                                                 struct hearth_str task_id, struct hearth_err *err)
{
    const struct hearth_call *call = found->call;
    struct hearth_span_group *groups;
    size_t n;

    HEARTH_TRY(hearth_store_imported_groups(HEARTH_CALL_SCOPE(call), task_id, &groups, &n, err));
    found->segments = hearth_arena_calloc(call->arena, n, sizeof *found->segments);
    if (found->segments == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(take_found_segment(found, &groups[i], err));
    }

    return HEARTH_OK;
}

/* Find the segments with snapshots, then all segments of their traces in the same instances. */
static enum hearth_status find_trace_segments(struct found_segments *found, struct hearth_err *err)
{
    const struct hearth_call *call = found->call;
    struct hearth_arena *arena = call->arena;
    struct hearth_span_group *groups;
    size_t n;
    struct hearth_span_query by_id = {.segment_ids = found->profiled,
                                      .n_segment_ids = found->n_profiled};

    if (found->n_profiled == 0) {
        return HEARTH_OK;
    }

    /* Find the segments with snapshots. */
    HEARTH_TRY(hearth_store_span_groups(&(const struct hearth_scope){.store = call->engine->store,
                                                                     .tenant = call->tenant,
                                                                     .cancel = call->cancel,
                                                                     .arena = arena},
                                        &by_id, &groups, &n, err));
    struct hearth_str *traces = hearth_arena_array(arena, n, sizeof *traces);
    if (traces == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Note their traces and instances. */
    struct hearth_idmap places, seen;
    hearth_idmap_init(&places);
    hearth_idmap_init(&seen);
    size_t n_traces = 0;
    bool is_new = false;
    for (size_t i = 0; i < n; i++) {
        if (groups[i].is_raw) {
            continue; /* OpenTelemetry's: not a segment of an agent */
        }

        (void)hearth_idmap_intern(&places, hash_trace_instance(&groups[i]), 0, &is_new);
        (void)hearth_idmap_intern(&seen, hash_text(groups[i].trace_id), 0, &is_new);
        if (is_new) {
            traces[n_traces++] = groups[i].trace_id;
        }
    }

    /* Read the traces. */
    struct hearth_span_query by_trace = {.trace_ids = traces, .n_trace_ids = n_traces};
    enum hearth_status status = HEARTH_OK;
    if (n_traces > 0) {
        status = hearth_store_span_groups(&(const struct hearth_scope){.store = call->engine->store,
                                                                       .tenant = call->tenant,
                                                                       .cancel = call->cancel,
                                                                       .arena = arena},
                                          &by_trace, &groups, &n, err);
    }

    /* Keep the segments of these instances. */
    if (status == HEARTH_OK) {
        found->segments = hearth_arena_calloc(arena, n, sizeof *found->segments);
        status = found->segments == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
    }

    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        if (!groups[i].is_raw &&
            hearth_idmap_find(&places, hash_trace_instance(&groups[i])) != HEARTH_IDMAP_NONE) {
            status = take_found_segment(found, &groups[i], err);
        }
    }

    hearth_idmap_release(&places);
    hearth_idmap_release(&seen);

    return status;
}

/* ---- requests ---- */

static bool has_request_endpoint(const struct hearth_profiled_request *request,
                                 struct hearth_str name)
{
    for (size_t i = 0; i < request->n_endpoints; i++) {
        if (hearth_str_eq(request->endpoints[i], name)) {
            return true;
        }
    }

    return false;
}

/*
 * Make a request. all: the segments given to the model, in the order of `kept`. False if memory was
 * refused.
 */
static bool make_profiled_request(const struct hearth_request *from,
                                  const struct hearth_request_segment *all,
                                  const struct hearth_kept_segment *kept,
                                  struct hearth_arena *arena, struct hearth_profiled_request *ret)
{
    assert(from->n_segments > 0);

    *ret = (struct hearth_profiled_request){.n_segments = from->n_segments};
    ret->segments = hearth_arena_array(arena, from->n_segments, sizeof *ret->segments);
    ret->endpoints = hearth_arena_array(arena, from->n_segments, sizeof *ret->endpoints);
    if (ret->segments == NULL || ret->endpoints == NULL) {
        return false;
    }

    /* Find the request's times and endpoints. */
    int64_t start_ns = INT64_MAX, end_ns = INT64_MIN;
    for (size_t i = 0; i < from->n_segments; i++) {
        const struct hearth_kept_segment *segment = &kept[from->segments[i] - all];
        ret->segments[i] = segment;
        start_ns = segment->group.start_ns < start_ns ? segment->group.start_ns : start_ns;
        end_ns = segment->group.end_ns > end_ns ? segment->group.end_ns : end_ns;

        if (!has_request_endpoint(ret, segment->group.endpoint)) {
            ret->endpoints[ret->n_endpoints++] = segment->group.endpoint;
        }
    }

    ret->start_ms = start_ns / HEARTH_NS_PER_MS;
    ret->duration_ms = (end_ns - start_ns) / HEARTH_NS_PER_MS;

    return true;
}

static int compare_profiled_requests(const void *left, const void *right)
{
    const struct hearth_profiled_request *a = left, *b = right;

    if (a->start_ms != b->start_ms) {
        return a->start_ms > b->start_ms ? -1 : 1;
    }
    return hearth_str_cmp(a->segments[0]->group.segment_id, b->segments[0]->group.segment_id);
}

static enum hearth_status make_profiled_requests(struct found_segments *found,
                                                 struct hearth_profiled_requests *ret,
                                                 struct hearth_err *err)
{
    struct hearth_arena *arena = found->call->arena;
    struct hearth_request_segment *all = hearth_arena_array(arena, found->n_segments, sizeof *all);

    if (all == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Make the segments of the model. */
    for (size_t i = 0; i < found->n_segments; i++) {
        const struct hearth_kept_segment *segment = &found->segments[i];
        all[i] = (struct hearth_request_segment){.trace_id = segment->group.trace_id,
                                                 .segment_id = segment->group.segment_id,
                                                 .instance = segment->group.instance,
                                                 .service_id = segment->group.service_id,
                                                 .spans = segment->spans,
                                                 .n_spans = segment->n_spans,
                                                 .is_profiled = segment->is_profiled};
    }

    /* Group them into requests. */
    struct hearth_request *requests;
    HEARTH_TRY(hearth_requests_make(all, found->n_segments, arena, &requests, &ret->n, err));
    ret->requests = hearth_arena_array(arena, ret->n, sizeof *ret->requests);
    if (ret->requests == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < ret->n; i++) {
        if (!make_profiled_request(&requests[i], all, found->segments, arena, &ret->requests[i])) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    /* Sort them, newest first. */
    qsort(ret->requests, ret->n, sizeof *ret->requests, compare_profiled_requests);

    return HEARTH_OK;
}

/* Find the latest message about refused data of the task; empty: nothing was refused. */
static enum hearth_status find_task_refusal(const struct found_segments *found,
                                            struct hearth_str task_id, struct hearth_str *ret,
                                            struct hearth_err *err)
{
    const struct hearth_call *call = found->call;
    struct hearth_task_log *log;
    size_t n;
    int64_t last_ms = 0;

    *ret = HEARTH_STR("");

    /* Find the latest refusal. */
    HEARTH_TRY(hearth_store_task_logs(HEARTH_CALL_SCOPE(call), &task_id, 1, &log, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (log[i].event == HEARTH_TASK_FAILED && log[i].last_at_ms >= last_ms) {
            last_ms = log[i].last_at_ms;
            *ret = log[i].message;
        }
    }

    return HEARTH_OK;
}

/* Say which profiled segments are missing; their snapshots can still be analysed by id. */
static enum hearth_status describe_missing(struct found_segments *found, struct hearth_str task_id,
                                           struct hearth_str *ret, struct hearth_err *err)
{
    struct hearth_arena *arena = found->call->arena;
    struct hearth_str refusal;

    HEARTH_TRY(find_task_refusal(found, task_id, &refusal, err));

    /* Note which segments were found. */
    struct hearth_idmap there;
    struct hearth_buf text;
    hearth_idmap_init(&there);
    hearth_buf_init(&text, 0);
    bool is_new = false;
    size_t n_missing = 0;
    for (size_t i = 0; i < found->n_segments; i++) {
        (void)hearth_idmap_intern(&there, hash_text(found->segments[i].group.segment_id), 0,
                                  &is_new);
    }

    /* Name the others. */
    for (size_t i = 0; i < found->n_profiled; i++) {
        struct hearth_str id = found->profiled[i];
        if (hearth_idmap_find(&there, hash_text(id)) == HEARTH_IDMAP_NONE &&
            n_missing++ < MAX_NAMED_SEGMENTS) {
            hearth_buf_printf(&text, "%s" HEARTH_STR_FMT, n_missing == 1 ? "" : ", ",
                              HEARTH_STR_ARG(id));
        }
    }

    hearth_idmap_release(&there);

    /* Choose the reason. */
    const char *why = refusal.n > 0
                          ? hearth_arena_strndup(arena, refusal.p, refusal.n)
                          : "their requests have not ended, they are older than retain-spans, or "
                            "agent-segments-keep leaves them out";

    if (found->n_profiled == 0) {
        *ret = refusal.n == 0 ? HEARTH_STR("Data not found")
                              : hearth_str_c(hearth_arena_printf(arena, "Data not found: %s", why));
    } else if (n_missing > 0 && why != NULL) {
        *ret = hearth_str_c(hearth_arena_printf(
            arena,
            "%zu of %zu profiled segments are not there: %s. Their snapshots can be analysed "
            "nevertheless: %.*s%s",
            n_missing, found->n_profiled, why, (int)text.n, text.n == 0 ? "" : text.p,
            n_missing > MAX_NAMED_SEGMENTS ? ", .." : ""));
    }

    hearth_buf_release(&text);

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

static enum hearth_status find_task_requests(struct found_segments *found,
                                             struct hearth_str task_id,
                                             struct hearth_profiled_requests *ret,
                                             struct hearth_err *err)
{
    HEARTH_TRY(find_profiled_ids(found, task_id, err));
    HEARTH_TRY(found->is_imported ? find_imported_segments(found, task_id, err)
                                  : find_trace_segments(found, err));
    HEARTH_TRY(make_profiled_requests(found, ret, err));

    return describe_missing(found, task_id, &ret->tip, err);
}

enum hearth_status hearth_traces_of_task(const struct hearth_call *call, struct hearth_str task_id,
                                         struct hearth_profiled_requests *ret,
                                         struct hearth_err *err)
{
    assert(call != NULL && ret != NULL);

    *ret = (struct hearth_profiled_requests){0};
    struct hearth_task task;

    /* Only trace tasks have segments. */
    HEARTH_TRY(hearth_call_find_task(call, task_id, &task, err));
    if (task.kind != HEARTH_TASK_TRACE) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "task \"" HEARTH_STR_FMT "\" is not a trace task: it has no segments",
                           HEARTH_STR_ARG(task_id));
    }

    struct found_segments found = {.call = call,
                                   .inflater = hearth_inflater_new(),
                                   .is_imported = task.origin == HEARTH_TASK_IMPORTED};

    /* Find the requests. */
    hearth_idmap_init(&found.profiled_ids);
    enum hearth_status status;
    if (found.inflater == NULL) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a decompressor");
    } else {
        status = find_task_requests(&found, task_id, ret, err);
    }

    hearth_idmap_release(&found.profiled_ids);
    hearth_inflater_free(found.inflater);

    return status;
}
