/*
 * svc_task_traces.c -- hearth.v1.TaskService: requests that trace tasks recorded, and the stack
 * trace trees of their snapshots.
 */
#include "hearth/engine/network.h"
#include "hearth/engine/traces.h"
#include "hearth/pb/hearth/v1/tasks.pb-c.h"

#include "handlers.h"
#include "rpc/unary.h"
#include "tasks/components.h"
#include "tasks/shared_maps.h"

#include <stdio.h>

static const char *const KINDS[] = {"LOCAL", "ENTRY", "EXIT", "PRODUCER", "CONSUMER"};
static const char *const LAYERS[] = {"UNKNOWN", "DATABASE", "RPC_FRAMEWORK", "HTTP",
                                     "MQ",      "CACHE",    "FAAS"};
static const char *const REFERENCE_TYPES[] = {"CROSS_PROCESS", "CROSS_THREAD"};

/* ---- spans ---- */

HEARTH_MAP_TYPES(span_tag, struct hearth_span_tag, Hearth__V1__SpanTag);
static const struct hearth_message_member span_tag_members[] = {
    HEARTH_MAP(span_tag, key, key),
    HEARTH_MAP(span_tag, value, value),
};
static const struct hearth_message_map span_tag_map =
    HEARTH_MESSAGE_MAP(span_tag, hearth__v1__span_tag__descriptor);

HEARTH_MAP_TYPES(span_log, struct hearth_span_log, Hearth__V1__SpanLog);
static const struct hearth_message_member span_log_members[] = {
    HEARTH_MAP_MS(span_log, at_ns, at_ms),
    HEARTH_MAP_LIST(span_log, tags, n_tags, data, &span_tag_map),
};
static const struct hearth_message_map span_log_map =
    HEARTH_MESSAGE_MAP(span_log, hearth__v1__span_log__descriptor);

HEARTH_MAP_TYPES(reference, struct hearth_span_ref, Hearth__V1__SegmentSpanReference);
static const struct hearth_message_member reference_members[] = {
    HEARTH_MAP(reference, trace_id, trace_id),
    HEARTH_MAP(reference, segment_id, parent_segment_id),
    HEARTH_MAP(reference, span_id, parent_span_id),
    HEARTH_MAP(reference, service, parent_service),
    HEARTH_MAP(reference, instance, parent_instance),
    HEARTH_MAP(reference, endpoint, parent_endpoint),
    HEARTH_MAP(reference, address, address),
    HEARTH_MAP_NAME(reference, across_threads, type, REFERENCE_TYPES),
};
static const struct hearth_message_map reference_map =
    HEARTH_MESSAGE_MAP(reference, hearth__v1__segment_span_reference__descriptor);

/* References across processes are left out: the answer describes one process. */
static void fill_references(struct hearth_rpc *rpc, const struct hearth_span *span,
                            Hearth__V1__SegmentSpan *out)
{
    struct hearth_span_ref *kept = hearth_arena_array(&rpc->arena, span->n_refs, sizeof *kept);
    size_t n = 0;

    for (size_t i = 0; kept != NULL && i < span->n_refs; i++) {
        if (span->refs[i].across_threads) {
            kept[n++] = span->refs[i];
        }
    }

    HEARTH_RPC_LIST(rpc, &reference_map, kept, n, out, references);
}

static void fill_rest_of_span(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_span *span = from;
    Hearth__V1__SegmentSpan *out = message;

    out->span_id = (int32_t)span->span_id;
    out->parent_span_id = span->has_parent ? (int32_t)span->parent_id : -1;
    out->component = hearth_rpc_text(rpc, hearth_component_name(span->component));
    out->is_error = span->status == HEARTH_SPAN_ERROR;
    fill_references(rpc, span, out);
}

HEARTH_MAP_TYPES(span, struct hearth_span, Hearth__V1__SegmentSpan);
static const struct hearth_message_member span_members[] = {
    HEARTH_MAP_MS(span, start_ns, start_ms),
    HEARTH_MAP_MS(span, end_ns, end_ms),
    HEARTH_MAP(span, name, endpoint),
    HEARTH_MAP(span, peer, peer),
    HEARTH_MAP_NAME(span, kind, type, KINDS),
    HEARTH_MAP_NAME(span, layer, layer, LAYERS),
    HEARTH_MAP(span, component, component_id),
    HEARTH_MAP_LIST(span, tags, n_tags, tags, &span_tag_map),
    HEARTH_MAP_LIST(span, logs, n_logs, logs, &span_log_map),
};
static const struct hearth_message_map span_map =
    HEARTH_MESSAGE_MAP_AND(span, hearth__v1__segment_span__descriptor, fill_rest_of_span);

/* ---- requests ---- */

/* The id as text: raw bytes as hexadecimal digits, text unchanged. */
static char *make_text_of_id(struct hearth_rpc *rpc, struct hearth_str id, bool is_raw)
{
    static const char digits[] = "0123456789abcdef";

    if (!is_raw) {
        return hearth_rpc_text(rpc, id);
    }

    char *text = hearth_arena_array(&rpc->arena, 2 * id.n + 1, 1);
    if (text == NULL) {
        return NULL;
    }

    for (size_t i = 0; i < id.n; i++) {
        text[2 * i] = digits[(unsigned char)id.p[i] >> 4];
        text[2 * i + 1] = digits[(unsigned char)id.p[i] & 15];
    }

    text[2 * id.n] = '\0';

    return text;
}

/* Adds the spans of a segment; `out` has room for them. */
static void add_spans(struct hearth_rpc *rpc, const struct hearth_kept_segment *segment,
                      Hearth__V1__ProfiledSegment *out)
{
    const struct hearth_span_group *group = &segment->group;

    for (size_t i = 0; i < segment->n_spans; i++) {
        Hearth__V1__SegmentSpan *span = hearth_rpc_map(rpc, &span_map, &segment->spans[i]);
        if (span == NULL) {
            return;
        }

        span->segment_id = make_text_of_id(rpc, group->segment_id, group->is_raw);
        span->service = hearth_rpc_text(rpc, group->service);
        span->instance = hearth_rpc_text(rpc, group->instance);
        span->is_profiled = segment->is_profiled;
        out->spans[out->n_spans++] = span;
    }
}

static void fill_request_spans(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_profiled_request *request = from;
    Hearth__V1__ProfiledSegment *out = message;
    size_t n = 0;
    assert(request->n_segments > 0);

    /* All segments of a request have the same trace and instance. */
    const struct hearth_span_group *first = &request->segments[0]->group;
    out->trace_id = make_text_of_id(rpc, first->trace_id, first->is_raw);
    out->instance = hearth_rpc_text(rpc, first->instance);

    /* One list of the spans of all segments. */
    for (size_t i = 0; i < request->n_segments; i++) {
        n += request->segments[i]->n_spans;
    }

    out->spans = hearth_arena_array(&rpc->arena, n, sizeof *out->spans);

    for (size_t i = 0; out->spans != NULL && i < request->n_segments; i++) {
        add_spans(rpc, request->segments[i], out);
    }
}

HEARTH_MAP_TYPES(request, struct hearth_profiled_request, Hearth__V1__ProfiledSegment);
static const struct hearth_message_member request_members[] = {
    HEARTH_MAP_TEXTS(request, endpoints, n_endpoints, endpoints),
    HEARTH_MAP(request, start_ms, start_ms),
    HEARTH_MAP(request, duration_ms, duration_ms),
};
static const struct hearth_message_map request_map =
    HEARTH_MESSAGE_MAP_AND(request, hearth__v1__profiled_segment__descriptor, fill_request_spans);

/* ---- events that agents of the network attached ---- */

HEARTH_MAP_TYPES(event_tag, struct hearth_property, Hearth__V1__SpanTag);
static const struct hearth_message_member event_tag_members[] = {
    HEARTH_MAP(event_tag, name, key),
    HEARTH_MAP(event_tag, value, value),
};
static const struct hearth_message_map event_tag_map =
    HEARTH_MESSAGE_MAP(event_tag, hearth__v1__span_tag__descriptor);

HEARTH_MAP_TYPES(event, struct hearth_captured_event, Hearth__V1__SpanAttachedEventInfo);
static const struct hearth_message_member event_members[] = {
    HEARTH_MAP(event, event, event),
    HEARTH_MAP(event, start_ns, start_ns),
    HEARTH_MAP(event, end_ns, end_ns),
    HEARTH_MAP_LIST(event, tags, n_tags, tags, &event_tag_map),
};
const struct hearth_message_map hearth_captured_event_map =
    HEARTH_MESSAGE_MAP(event, hearth__v1__span_attached_event_info__descriptor);

/* Attaches the events that name the span, in the order of the array. */
static void attach_to_span(struct hearth_rpc *rpc, const struct hearth_captured_event *events,
                           size_t n, const char *trace_id, Hearth__V1__SegmentSpan *span)
{
    char span_id[16];
    Hearth__V1__SpanAttachedEventInfo **own = hearth_arena_array(&rpc->arena, n, sizeof *own);
    assert(trace_id != NULL && span->segment_id != NULL);

    (void)snprintf(span_id, sizeof span_id, "%d", (int)span->span_id);
    span->attached_events = own;

    for (size_t i = 0; own != NULL && i < n; i++) {
        if (hearth_str_eq_c(events[i].trace_id, trace_id) &&
            hearth_str_eq_c(events[i].segment_id, span->segment_id) &&
            hearth_str_eq_c(events[i].span_id, span_id)) {
            own[span->n_attached_events++] =
                hearth_rpc_map(rpc, &hearth_captured_event_map, &events[i]);
        }
    }
}

static enum hearth_status attach_events(struct hearth_rpc *rpc, const struct hearth_call *call,
                                        Hearth__V1__ListSegmentsResponse *out)
{
    struct hearth_str *ids = hearth_arena_array(&rpc->arena, out->n_segments, sizeof *ids);
    struct hearth_captured_event *events;
    size_t n = 0;

    /* Ids are read here, so all of them must be there. */
    if (rpc->arena.refused) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < out->n_segments; i++) {
        ids[i] = hearth_str_c(out->segments[i]->trace_id);
    }

    HEARTH_TRY(hearth_network_attached(call, ids, out->n_segments, &events, &n, &rpc->err));

    for (size_t i = 0; i < out->n_segments && n > 0; i++) {
        for (size_t k = 0; k < out->segments[i]->n_spans && !rpc->arena.refused; k++) {
            attach_to_span(rpc, events, n, out->segments[i]->trace_id, out->segments[i]->spans[k]);
        }
    }

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_task_segments, Hearth__V1__ListSegmentsRequest,
             Hearth__V1__ListSegmentsResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_profiled_requests found;

    HEARTH_TRY(hearth_traces_of_task(&call, hearth_str_c(in->task_id), &found, &rpc->err));
    HEARTH_RPC_LIST(rpc, &request_map, found.requests, found.n, out, segments);
    out->tip = hearth_rpc_text(rpc, found.tip);

    return attach_events(rpc, &call, out);
}

/* ---- analysis ---- */

HEARTH_MAP_TYPES(node, struct hearth_snapshot_node, Hearth__V1__SnapshotElement);
static const struct hearth_message_member node_members[] = {
    HEARTH_MAP(node, id, id),
    HEARTH_MAP(node, parent_id, parent_id),
    HEARTH_MAP(node, code, code_signature),
    HEARTH_MAP(node, duration_ms, duration_ms),
    HEARTH_MAP(node, duration_child_excluded_ms, duration_child_excluded_ms),
    HEARTH_MAP(node, count, count),
};
static const struct hearth_message_map node_map =
    HEARTH_MESSAGE_MAP(node, hearth__v1__snapshot_element__descriptor);

HEARTH_MAP_TYPES(tree, struct hearth_snapshot_tree, Hearth__V1__SnapshotTree);
static const struct hearth_message_member tree_members[] = {
    HEARTH_MAP_LIST(tree, nodes, n_nodes, elements, &node_map),
};
static const struct hearth_message_map tree_map =
    HEARTH_MESSAGE_MAP(tree, hearth__v1__snapshot_tree__descriptor);

HEARTH_UNARY(hearth_svc_task_analyze_segments, Hearth__V1__AnalyzeSegmentsRequest,
             Hearth__V1__AnalyzeSegmentsResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_segment_range *ranges =
        hearth_arena_array(&rpc->arena, in->n_queries, sizeof *ranges);
    struct hearth_snapshot_trees trees;
    struct hearth_str tip;

    if (ranges == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Read the parts of segments. */
    for (size_t i = 0; i < in->n_queries; i++) {
        const Hearth__V1__TimeRange *range = in->queries[i]->range;
        ranges[i] = (struct hearth_segment_range){
            .segment_id = hearth_str_c(in->queries[i]->segment_id), .has_range = range != NULL};
        if (range != NULL) {
            ranges[i].start_ms = range->start_ms;
            ranges[i].end_ms = range->end_ms;
        }
    }

    /* Analyse. */
    HEARTH_TRY(hearth_traces_analyze(&call, ranges, in->n_queries, &trees, &tip, &rpc->err));
    HEARTH_RPC_LIST(rpc, &tree_map, trees.trees, trees.n_trees, out, trees);
    out->tip = hearth_rpc_text(rpc, tip);

    return HEARTH_OK;
}
