/*
 * svc_task_traces.c -- hearth.v1.TaskService: requests that trace tasks recorded, and the stack
 * trace trees of their snapshots.
 */
#include "hearth/engine/network.h"
#include "hearth/engine/traces.h"
#include "hearth/pb/hearth/v1/tasks.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"
#include "tasks/components.h"

#define NS_PER_MS 1000000

static const char *const KINDS[] = {"LOCAL", "ENTRY", "EXIT", "PRODUCER", "CONSUMER"};
static const char *const LAYERS[] = {"UNKNOWN", "DATABASE", "RPC_FRAMEWORK", "HTTP",
                                     "MQ",      "CACHE",    "FAAS"};

/* Copy a constant of the program. */
static char *constant(struct hearth_rpc *rpc, const char *text)
{
    return hearth_rpc_text(rpc, hearth_str_c(text));
}

static char *layer_text(struct hearth_rpc *rpc, int32_t layer)
{
    bool is_known = layer >= 0 && (size_t)layer < HEARTH_ARRAY_LEN(LAYERS);
    return constant(rpc, LAYERS[is_known ? layer : 0]);
}

/* The id as text: raw bytes as hexadecimal digits, text unchanged. */
static char *id_text(struct hearth_rpc *rpc, struct hearth_str id, bool is_raw)
{
    static const char digits[] = "0123456789abcdef";

    if (!is_raw) {
        return hearth_rpc_text(rpc, id);
    }

    char *text = hearth_arena_array(&rpc->arena, 2 * id.n + 1, 1);
    for (size_t i = 0; i < id.n && text != NULL; i++) {
        text[2 * i] = digits[(unsigned char)id.p[i] >> 4];
        text[2 * i + 1] = digits[(unsigned char)id.p[i] & 15];
    }

    if (text != NULL) {
        text[2 * id.n] = '\0';
    }

    return text;
}

/*
 * Allocate and initialise n messages of one type, and the array of pointers of a repeated field. If
 * the arena is full, the array may be NULL or not filled: check arena.refused before using it.
 */
#define MAKE_ALL(rpc, n, type, init, ret_list)                                   \
    type *all_ = hearth_arena_array(&(rpc)->arena, (n), sizeof *all_);           \
    *(ret_list) = hearth_arena_array(&(rpc)->arena, (n), sizeof **(ret_list));   \
    for (size_t i_ = 0; i_ < (n) && all_ != NULL && *(ret_list) != NULL; i_++) { \
        init(&all_[i_]);                                                         \
        (*(ret_list))[i_] = &all_[i_];                                           \
    }

static Hearth__V1__SpanTag **make_tags(struct hearth_rpc *rpc, const struct hearth_span_tag *tags,
                                       size_t n)
{
    Hearth__V1__SpanTag **list;
    MAKE_ALL(rpc, n, Hearth__V1__SpanTag, hearth__v1__span_tag__init, &list)
    for (size_t i = 0; i < n && !rpc->arena.refused; i++) {
        list[i]->key = hearth_rpc_text(rpc, tags[i].key);
        list[i]->value = hearth_rpc_text(rpc, tags[i].value);
    }

    return list;
}

static Hearth__V1__SpanLog **make_logs(struct hearth_rpc *rpc, const struct hearth_span *span)
{
    Hearth__V1__SpanLog **list;
    MAKE_ALL(rpc, span->n_logs, Hearth__V1__SpanLog, hearth__v1__span_log__init, &list)
    for (size_t i = 0; i < span->n_logs && !rpc->arena.refused; i++) {
        list[i]->at_ms = span->logs[i].at_ns / NS_PER_MS;
        list[i]->data = make_tags(rpc, span->logs[i].tags, span->logs[i].n_tags);
        list[i]->n_data = span->logs[i].n_tags;
    }

    return list;
}

/* References across processes are left out: the answer describes one process. */
static Hearth__V1__SegmentSpanReference **
make_references(struct hearth_rpc *rpc, const struct hearth_span *span, size_t *ret_n)
{
    Hearth__V1__SegmentSpanReference **list;

    *ret_n = 0;
    MAKE_ALL(rpc, span->n_refs, Hearth__V1__SegmentSpanReference,
             hearth__v1__segment_span_reference__init, &list)
    for (size_t i = 0; i < span->n_refs && !rpc->arena.refused; i++) {
        const struct hearth_span_ref *ref = &span->refs[i];
        if (!ref->across_threads) {
            continue;
        }
        Hearth__V1__SegmentSpanReference *out = list[(*ret_n)++];
        out->trace_id = hearth_rpc_text(rpc, ref->trace_id);
        out->parent_segment_id = hearth_rpc_text(rpc, ref->segment_id);
        out->parent_span_id = (int32_t)ref->span_id;
        out->parent_service = hearth_rpc_text(rpc, ref->service);
        out->parent_instance = hearth_rpc_text(rpc, ref->instance);
        out->parent_endpoint = hearth_rpc_text(rpc, ref->endpoint);
        out->address = hearth_rpc_text(rpc, ref->address);
        out->type = constant(rpc, "CROSS_THREAD");
    }

    return list;
}

static void fill_span(struct hearth_rpc *rpc, const struct hearth_kept_segment *segment,
                      const struct hearth_span *span, Hearth__V1__SegmentSpan *out)
{
    const struct hearth_span_group *group = &segment->group;

    out->segment_id = id_text(rpc, group->segment_id, group->is_raw);
    out->span_id = (int32_t)span->span_id;
    out->parent_span_id = span->has_parent ? (int32_t)span->parent_id : -1;
    out->service = hearth_rpc_text(rpc, group->service);
    out->instance = hearth_rpc_text(rpc, group->instance);
    out->start_ms = span->start_ns / NS_PER_MS;
    out->end_ms = span->end_ns / NS_PER_MS;
    out->endpoint = hearth_rpc_text(rpc, span->name);
    out->peer = hearth_rpc_text(rpc, span->peer);
    out->type = constant(rpc, KINDS[span->kind]);
    out->layer = layer_text(rpc, span->layer);
    out->component_id = span->component;
    out->component = hearth_rpc_text(rpc, hearth_component_name(span->component));
    out->is_error = span->status == HEARTH_SPAN_ERROR;
    out->references = make_references(rpc, span, &out->n_references);
    out->tags = make_tags(rpc, span->tags, span->n_tags);
    out->n_tags = span->n_tags;
    out->logs = make_logs(rpc, span);
    out->n_logs = span->n_logs;
    out->is_profiled = segment->is_profiled;
}

static void fill_request(struct hearth_rpc *rpc, const struct hearth_profiled_request *request,
                         Hearth__V1__ProfiledSegment *out)
{
    const struct hearth_span_group *first = &request->segments[0]->group;

    out->trace_id = id_text(rpc, first->trace_id, first->is_raw);
    out->instance = hearth_rpc_text(rpc, first->instance);
    out->endpoints = hearth_rpc_texts(rpc, request->endpoints, request->n_endpoints);
    out->n_endpoints = request->n_endpoints;
    out->start_ms = request->start_ms;
    out->duration_ms = request->duration_ms;

    size_t n = 0, at = 0;
    for (size_t i = 0; i < request->n_segments; i++) {
        n += request->segments[i]->n_spans;
    }

    MAKE_ALL(rpc, n, Hearth__V1__SegmentSpan, hearth__v1__segment_span__init, &out->spans)
    out->n_spans = n;

    for (size_t i = 0; i < request->n_segments; i++) {
        const struct hearth_kept_segment *segment = request->segments[i];
        for (size_t k = 0; k < segment->n_spans && !rpc->arena.refused; k++) {
            fill_span(rpc, segment, &segment->spans[k], out->spans[at++]);
        }
    }
}

/* ---- events that agents of the network attached ---- */

static void fill_event(struct hearth_rpc *rpc, const struct hearth_captured_event *event,
                       Hearth__V1__SpanAttachedEventInfo *out)
{
    out->event = hearth_rpc_text(rpc, event->event);
    out->start_ns = event->start_ns;
    out->end_ns = event->end_ns;
    MAKE_ALL(rpc, event->n_tags, Hearth__V1__SpanTag, hearth__v1__span_tag__init, &out->tags)
    for (size_t i = 0; i < event->n_tags && !rpc->arena.refused; i++) {
        out->tags[i]->key = hearth_rpc_text(rpc, event->tags[i].name);
        out->tags[i]->value = hearth_rpc_text(rpc, event->tags[i].value);
    }
    out->n_tags = event->n_tags;
}

/* Attach the events that name the span, in the order of the array. */
static void attach_to_span(struct hearth_rpc *rpc, const struct hearth_captured_event *events,
                           size_t n, const char *trace_id, Hearth__V1__SegmentSpan *span)
{
    struct hearth_str span_id =
        hearth_str_c(hearth_arena_printf(&rpc->arena, "%d", (int)span->span_id));
    const struct hearth_captured_event **own = hearth_arena_array(&rpc->arena, n, sizeof *own);
    size_t n_own = 0;

    for (size_t i = 0; i < n && own != NULL; i++) {
        if (hearth_str_eq_c(events[i].trace_id, trace_id) &&
            hearth_str_eq_c(events[i].segment_id, span->segment_id) &&
            hearth_str_eq(events[i].span_id, span_id)) {
            own[n_own++] = &events[i];
        }
    }

    MAKE_ALL(rpc, n_own, Hearth__V1__SpanAttachedEventInfo,
             hearth__v1__span_attached_event_info__init, &span->attached_events)
    for (size_t i = 0; i < n_own && !rpc->arena.refused; i++) {
        fill_event(rpc, own[i], span->attached_events[i]);
    }
    span->n_attached_events = n_own;
}

static enum hearth_status attach_events(struct hearth_rpc *rpc, const struct hearth_call *call,
                                        Hearth__V1__ListSegmentsResponse *out)
{
    struct hearth_str *ids = hearth_arena_array(&rpc->arena, out->n_segments, sizeof *ids);
    struct hearth_captured_event *events;
    size_t n = 0;

    for (size_t i = 0; i < out->n_segments && ids != NULL; i++) {
        ids[i] = hearth_str_c(out->segments[i]->trace_id);
    }

    if (rpc->arena.refused) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    HEARTH_TRY(hearth_network_attached(call, ids, out->n_segments, &events, &n, &rpc->err));

    for (size_t i = 0; i < out->n_segments && n > 0; i++) {
        for (size_t k = 0; k < out->segments[i]->n_spans && !rpc->arena.refused; k++) {
            attach_to_span(rpc, events, n, out->segments[i]->trace_id, out->segments[i]->spans[k]);
        }
    }

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

static enum hearth_status list_segments(struct hearth_rpc *rpc)
{
    const Hearth__V1__ListSegmentsRequest *in =
        (const Hearth__V1__ListSegmentsRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_profiled_requests found;

    HEARTH_TRY(hearth_traces_of_task(&call, hearth_str_c(in->task_id), &found, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__ListSegmentsResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__list_segments_response__init(out);
    MAKE_ALL(rpc, found.n, Hearth__V1__ProfiledSegment, hearth__v1__profiled_segment__init,
             &out->segments)
    for (size_t i = 0; i < found.n && !rpc->arena.refused; i++) {
        fill_request(rpc, &found.requests[i], out->segments[i]);
    }
    out->n_segments = found.n;
    out->tip = hearth_rpc_text(rpc, found.tip);
    rpc->answer = &out->base;

    if (rpc->arena.refused) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    return attach_events(rpc, &call, out);
}

void hearth_svc_task_segments(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, list_segments(rpc));
}

/* ---- analysis ---- */

static void fill_tree(struct hearth_rpc *rpc, const struct hearth_snapshot_tree *tree,
                      Hearth__V1__SnapshotTree *out)
{
    MAKE_ALL(rpc, tree->n_nodes, Hearth__V1__SnapshotElement, hearth__v1__snapshot_element__init,
             &out->elements)
    out->n_elements = tree->n_nodes;

    for (size_t i = 0; i < tree->n_nodes && !rpc->arena.refused; i++) {
        const struct hearth_snapshot_node *node = &tree->nodes[i];
        out->elements[i]->id = node->id;
        out->elements[i]->parent_id = node->parent_id;
        out->elements[i]->code_signature = hearth_rpc_text(rpc, node->code);
        out->elements[i]->duration_ms = node->duration_ms;
        out->elements[i]->duration_child_excluded_ms = node->duration_child_excluded_ms;
        out->elements[i]->count = node->count;
    }
}

static enum hearth_status analyze_segments(struct hearth_rpc *rpc)
{
    const Hearth__V1__AnalyzeSegmentsRequest *in =
        (const Hearth__V1__AnalyzeSegmentsRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_segment_range *ranges =
        hearth_arena_array(&rpc->arena, in->n_queries, sizeof *ranges);
    Hearth__V1__AnalyzeSegmentsResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (ranges == NULL || out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < in->n_queries; i++) {
        const Hearth__V1__TimeRange *range = in->queries[i]->range;
        ranges[i] = (struct hearth_segment_range){
            .segment_id = hearth_str_c(in->queries[i]->segment_id), .has_range = range != NULL};
        if (range != NULL) {
            ranges[i].start_ms = range->start_ms;
            ranges[i].end_ms = range->end_ms;
        }
    }

    struct hearth_snapshot_trees trees;
    struct hearth_str tip;

    HEARTH_TRY(hearth_traces_analyze(&call, ranges, in->n_queries, &trees, &tip, &rpc->err));
    hearth__v1__analyze_segments_response__init(out);
    MAKE_ALL(rpc, trees.n_trees, Hearth__V1__SnapshotTree, hearth__v1__snapshot_tree__init,
             &out->trees)
    for (size_t i = 0; i < trees.n_trees && !rpc->arena.refused; i++) {
        fill_tree(rpc, &trees.trees[i], out->trees[i]);
    }
    out->n_trees = trees.n_trees;
    out->tip = hearth_rpc_text(rpc, tip);
    rpc->answer = &out->base;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

void hearth_svc_task_analyze_segments(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, analyze_segments(rpc));
}
