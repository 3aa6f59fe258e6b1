/*
 * svc_network.c -- hearth.v1.NetworkService: topology, series and sampled requests of network
 * tasks, and the names of addresses.
 */
#include "hearth/engine/network.h"
#include "hearth/pb/hearth/v1/network.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"

static char *static_text(const char *text)
{
    return (char *)(uintptr_t)text; /* protobuf-c does not write to it */
}

static const char *detect_point(enum hearth_network_side side)
{
    return side == HEARTH_NETWORK_CLIENT ? "CLIENT" : "SERVER";
}

static char **static_texts(struct hearth_rpc *rpc, const char *const *texts, size_t n)
{
    char **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    for (size_t i = 0; list != NULL && i < n; i++) {
        list[i] = static_text(texts[i]);
    }

    return list;
}

/* ---- topology ---- */

static Hearth__V1__NetworkNode *make_node(struct hearth_rpc *rpc,
                                          const struct hearth_network_node *node)
{
    Hearth__V1__NetworkNode *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return NULL;
    }

    hearth__v1__network_node__init(out);
    out->process_id = hearth_rpc_text(rpc, node->process.process_id);
    out->name = hearth_rpc_text(rpc, node->process.name);
    out->service = hearth_rpc_text(rpc, node->process.service);
    out->instance = hearth_rpc_text(rpc, node->process.instance);
    out->detect_type = (Hearth__V1__DetectType)node->process.detect_type; /* equal numbers */
    out->addresses = hearth_rpc_texts(rpc, node->addresses, node->n_addresses);
    out->n_addresses = node->n_addresses;

    return rpc->arena.refused ? NULL : out;
}

static Hearth__V1__NetworkCall *make_call(struct hearth_rpc *rpc,
                                          const struct hearth_network_call *call)
{
    const char *points[2];
    size_t n_points = 0;
    Hearth__V1__NetworkCall *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return NULL;
    }

    hearth__v1__network_call__init(out);

    /* A side that has components is a detect point. */
    if (call->n_source_components > 0) {
        points[n_points++] = detect_point(HEARTH_NETWORK_CLIENT);
    }

    if (call->n_destination_components > 0) {
        points[n_points++] = detect_point(HEARTH_NETWORK_SERVER);
    }

    /* Fill the message. */
    out->call_id = hearth_rpc_text(rpc, call->call_id);
    out->source_id = hearth_rpc_text(rpc, call->source_id);
    out->destination_id = hearth_rpc_text(rpc, call->destination_id);
    out->source_components = static_texts(rpc, call->source_components, call->n_source_components);
    out->n_source_components = call->n_source_components;
    out->destination_components =
        static_texts(rpc, call->destination_components, call->n_destination_components);
    out->n_destination_components = call->n_destination_components;
    out->detect_points = static_texts(rpc, points, n_points);
    out->n_detect_points = n_points;

    return rpc->arena.refused ? NULL : out;
}

static enum hearth_status topology(struct hearth_rpc *rpc)
{
    const Hearth__V1__TopologyRequest *in = (const Hearth__V1__TopologyRequest *)rpc->request;
    struct hearth_query query = hearth_rpc_query(rpc, in->start_ms, in->end_ms);
    struct hearth_network_topology found;

    /* Query. */
    HEARTH_TRY(hearth_network_topology(&query, hearth_str_c(in->service),
                                       hearth_str_c(in->instance), &found, &rpc->err));

    /* Make the answer in the arena. */
    Hearth__V1__TopologyResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__NetworkNode **nodes = hearth_arena_array(&rpc->arena, found.n_nodes, sizeof *nodes);
    Hearth__V1__NetworkCall **calls = hearth_arena_array(&rpc->arena, found.n_calls, sizeof *calls);
    if (out == NULL || nodes == NULL || calls == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__topology_response__init(out);
    for (size_t i = 0; i < found.n_nodes; i++) {
        nodes[i] = make_node(rpc, &found.nodes[i]);
    }

    for (size_t i = 0; i < found.n_calls; i++) {
        calls[i] = make_call(rpc, &found.calls[i]);
    }

    if (rpc->arena.refused) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Fill the answer. */
    out->nodes = nodes;
    out->n_nodes = found.n_nodes;
    out->calls = calls;
    out->n_calls = found.n_calls;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_network_topology(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, topology(rpc));
}

/* ---- series ---- */

static Hearth__V1__NetworkLine *make_line(struct hearth_rpc *rpc,
                                          const struct hearth_network_line *line)
{
    Hearth__V1__NetworkLine *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__NetworkPoint *points =
        hearth_arena_array(&rpc->arena, line->n_points, sizeof *points);
    Hearth__V1__NetworkPoint **list = hearth_arena_array(&rpc->arena, line->n_points, sizeof *list);
    if (out == NULL || points == NULL || list == NULL) {
        return NULL;
    }

    /* The metric and its side. */
    hearth__v1__network_line__init(out);
    out->call_id = hearth_rpc_text(rpc, line->call_id);
    out->metric = static_text(line->metric);
    out->detect_point = static_text(detect_point(line->side));
    out->unit = static_text(line->unit);
    out->code = hearth_rpc_text(rpc, line->code);
    out->percentile = line->percentile;

    /* One message for each point. */
    for (size_t i = 0; i < line->n_points; i++) {
        hearth__v1__network_point__init(&points[i]);
        points[i].at_ms = line->points[i].ts_ms;
        points[i].value = line->points[i].value;
        list[i] = &points[i];
    }

    out->points = list;
    out->n_points = line->n_points;

    return rpc->arena.refused ? NULL : out;
}

static enum hearth_status series(struct hearth_rpc *rpc)
{
    const Hearth__V1__NetworkSeriesRequest *in =
        (const Hearth__V1__NetworkSeriesRequest *)rpc->request;
    struct hearth_query query = hearth_rpc_query(rpc, in->start_ms, in->end_ms);
    const struct hearth_network_series_spec spec = {
        .service = hearth_str_c(in->service),
        .instance = hearth_str_c(in->instance),
        .call_id = hearth_str_c(in->call_id),
        .metrics = hearth_rpc_strs(rpc, in->metrics, in->n_metrics),
        .n_metrics = in->n_metrics,
    };
    if (spec.metrics == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Query. */
    struct hearth_network_line *lines;
    size_t n;
    HEARTH_TRY(hearth_network_series(&query, &spec, &lines, &n, &rpc->err));

    /* Make the answer in the arena. */
    Hearth__V1__NetworkSeriesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__NetworkLine **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    if (out == NULL || list == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__network_series_response__init(out);
    for (size_t i = 0; i < n; i++) {
        list[i] = make_line(rpc, &lines[i]);
        if (list[i] == NULL) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }

    /* Fill the answer. */
    out->lines = list;
    out->n_lines = n;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_network_series(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, series(rpc));
}

/* ---- sampled requests ---- */

static Hearth__V1__SampledRequest *make_request(struct hearth_rpc *rpc,
                                                const struct hearth_sampled_request *request)
{
    static const char *const reasons[] = {"", "slow", "status_4xx", "status_5xx"};
    Hearth__V1__SampledRequest *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return NULL;
    }

    /* Ids. */
    hearth__v1__sampled_request__init(out);
    out->request_id = hearth_rpc_text(rpc, request->request_id);
    out->call_id = hearth_arena_printf(&rpc->arena, "%.*s-%.*s", (int)request->source_id.n,
                                       request->source_id.p, (int)request->destination_id.n,
                                       request->destination_id.p);
    out->trace_id = hearth_rpc_text(rpc, request->trace_id);
    out->trace_provider =
        static_text(request->provider == HEARTH_TRACE_ZIPKIN ? "zipkin" : "skywalking");

    /* The request and its result. */
    out->uri = hearth_rpc_text(rpc, request->uri);
    out->reason = static_text(reasons[request->reason]);
    out->latency_ms = (double)request->latency_us / 1000;
    out->status = request->status;
    out->at_ms = request->at_ms;

    /* The side that sampled it. */
    out->component = static_text(hearth_network_component_name(request->component));
    out->is_ssl = request->is_ssl;
    out->detect_point = static_text(detect_point(request->side));
    out->service = hearth_rpc_text(rpc, request->service);
    out->instance = hearth_rpc_text(rpc, request->instance);
    out->event_count = request->n_events;

    return rpc->arena.refused ? NULL : out;
}

static enum hearth_status list_requests(struct hearth_rpc *rpc)
{
    const Hearth__V1__ListSampledRequestsRequest *in =
        (const Hearth__V1__ListSampledRequestsRequest *)rpc->request;
    struct hearth_query query = hearth_rpc_query(rpc, in->start_ms, in->end_ms);
    const struct hearth_network_requests_spec spec = {
        .service = hearth_str_c(in->service),
        .instance = hearth_str_c(in->instance),
        .trace_id = hearth_str_c(in->trace_id),
        .call_id = hearth_str_c(in->call_id),
        .reason = hearth_str_c(in->reason),
        .limit = in->limit,
    };

    /* Query. */
    struct hearth_sampled_request *requests;
    size_t n;

    HEARTH_TRY(hearth_network_requests(&query, &spec, &requests, &n, &rpc->err));

    /* Make the answer in the arena. */
    Hearth__V1__ListSampledRequestsResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__SampledRequest **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    if (out == NULL || list == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__list_sampled_requests_response__init(out);
    for (size_t i = 0; i < n; i++) {
        list[i] = make_request(rpc, &requests[i]);
        if (list[i] == NULL) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }

    /* Fill the answer. */
    out->requests = list;
    out->n_requests = n;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_network_requests(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, list_requests(rpc));
}

static Hearth__V1__SpanAttachedEventInfo *make_event(struct hearth_rpc *rpc,
                                                     const struct hearth_captured_event *event)
{
    Hearth__V1__SpanAttachedEventInfo *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__SpanTag *tags = hearth_arena_array(&rpc->arena, event->n_tags, sizeof *tags);
    Hearth__V1__SpanTag **list = hearth_arena_array(&rpc->arena, event->n_tags, sizeof *list);
    if (out == NULL || tags == NULL || list == NULL) {
        return NULL;
    }

    hearth__v1__span_attached_event_info__init(out);
    out->event = hearth_rpc_text(rpc, event->event);
    out->start_ns = event->start_ns;
    out->end_ns = event->end_ns;

    /* One message for each tag. */
    for (size_t i = 0; i < event->n_tags; i++) {
        hearth__v1__span_tag__init(&tags[i]);
        tags[i].key = hearth_rpc_text(rpc, event->tags[i].name);
        tags[i].value = hearth_rpc_text(rpc, event->tags[i].value);
        list[i] = &tags[i];
    }

    out->tags = list;
    out->n_tags = event->n_tags;

    return rpc->arena.refused ? NULL : out;
}

static enum hearth_status get_request(struct hearth_rpc *rpc)
{
    const Hearth__V1__GetSampledRequestRequest *in =
        (const Hearth__V1__GetSampledRequestRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_sampled_request request;
    struct hearth_captured_event *events;
    struct hearth_str *notes;
    size_t n, n_notes;

    /* Query. */
    HEARTH_TRY(hearth_network_request(&call, hearth_str_c(in->request_id), &request, &events, &n,
                                      &notes, &n_notes, &rpc->err));

    /* Make the answer in the arena. */
    Hearth__V1__GetSampledRequestResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__SpanAttachedEventInfo **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    if (out == NULL || list == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__get_sampled_request_response__init(out);
    out->request = make_request(rpc, &request);
    for (size_t i = 0; i < n; i++) {
        list[i] = make_event(rpc, &events[i]);
    }

    out->events = list;
    out->n_events = n;
    out->notes = hearth_rpc_texts(rpc, notes, n_notes);
    out->n_notes = n_notes;
    if (rpc->arena.refused) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_network_request(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, get_request(rpc));
}

/* ---- addresses ---- */

static enum hearth_status make_addresses(struct hearth_rpc *rpc, const struct hearth_call *call,
                                         Hearth__V1__AddressName ***ret, size_t *ret_n)
{
    struct hearth_network_address *addresses;
    size_t n;

    /* Query. */
    HEARTH_TRY(hearth_network_addresses(call, &addresses, &n, &rpc->err));

    /* One message for each address. */
    Hearth__V1__AddressName *names = hearth_arena_array(&rpc->arena, n, sizeof *names);
    Hearth__V1__AddressName **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    if (names == NULL || list == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < n; i++) {
        hearth__v1__address_name__init(&names[i]);
        names[i].address = hearth_rpc_text(rpc, addresses[i].address);
        names[i].name = hearth_rpc_text(rpc, addresses[i].name);
        names[i].is_configured = addresses[i].is_configured;
        list[i] = &names[i];
    }

    *ret = list;
    *ret_n = n;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

static enum hearth_status list_addresses(struct hearth_rpc *rpc)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    Hearth__V1__ListAddressesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__list_addresses_response__init(out);
    HEARTH_TRY(make_addresses(rpc, &call, &out->addresses, &out->n_addresses));
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_network_addresses(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, list_addresses(rpc));
}

static enum hearth_status set_addresses(struct hearth_rpc *rpc)
{
    const Hearth__V1__SetAddressesRequest *in =
        (const Hearth__V1__SetAddressesRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_address_name *names =
        hearth_arena_array(&rpc->arena, in->n_addresses, sizeof *names);
    Hearth__V1__SetAddressesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (names == NULL || out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Names borrow from the request. */
    for (size_t i = 0; i < in->n_addresses; i++) {
        names[i] = (struct hearth_address_name){hearth_str_c(in->addresses[i]->address),
                                                hearth_str_c(in->addresses[i]->name)};
    }

    /* Store them. */
    HEARTH_TRY(hearth_network_addresses_set(&call, names, in->n_addresses, &rpc->err));

    /* Answer with all addresses, as they are now. */
    hearth__v1__set_addresses_response__init(out);
    HEARTH_TRY(make_addresses(rpc, &call, &out->addresses, &out->n_addresses));
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_network_addresses_set(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, set_addresses(rpc));
}
