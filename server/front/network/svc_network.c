/*
 * svc_network.c -- hearth.v1.NetworkService: topology, series and sampled requests of network
 * tasks, and the names of addresses.
 */
#include "hearth/engine/network.h"
#include "hearth/pb/hearth/v1/network.pb-c.h"

#include "handlers.h"
#include "rpc/unary.h"
#include "tasks/shared_maps.h"

/* By enum hearth_network_side, hearth_sampled_reason and hearth_trace_provider. */
static const char *const SIDES[] = {"SERVER", "CLIENT", "SERVER"};
static const char *const REASONS[] = {"", "slow", "status_4xx", "status_5xx"};
static const char *const PROVIDERS[] = {"skywalking", "skywalking", "zipkin"};

static char *borrow_text(const char *text)
{
    return (char *)(uintptr_t)text; /* protobuf-c does not write to it */
}

static char **borrow_texts(struct hearth_rpc *rpc, const char *const *texts, size_t n)
{
    char **list = hearth_arena_array(&rpc->arena, n, sizeof *list);

    for (size_t i = 0; list != NULL && i < n; i++) {
        list[i] = borrow_text(texts[i]);
    }

    return list;
}

/* ---- topology ---- */

HEARTH_MAP_TYPES(node, struct hearth_network_node, Hearth__V1__NetworkNode);
static const struct hearth_message_member node_members[] = {
    HEARTH_MAP(node, process.process_id, process_id),
    HEARTH_MAP(node, process.name, name),
    HEARTH_MAP(node, process.service, service),
    HEARTH_MAP(node, process.instance, instance),
    HEARTH_MAP(node, process.detect_type, detect_type), /* the same numbers */
    HEARTH_MAP_TEXTS(node, addresses, n_addresses, addresses),
};
static const struct hearth_message_map node_map =
    HEARTH_MESSAGE_MAP(node, hearth__v1__network_node__descriptor);

static void fill_components(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_network_call *call = from;
    Hearth__V1__NetworkCall *out = message;
    size_t n_sources = call->n_source_components, n_destinations = call->n_destination_components;
    const char *points[2];
    size_t n_points = 0;
    assert(n_sources <= HEARTH_NETWORK_MAX_COMPONENTS);
    assert(n_destinations <= HEARTH_NETWORK_MAX_COMPONENTS);

    /* A side that has components is a detect point. */
    if (n_sources > 0) {
        points[n_points++] = SIDES[HEARTH_NETWORK_CLIENT];
    }

    if (n_destinations > 0) {
        points[n_points++] = SIDES[HEARTH_NETWORK_SERVER];
    }

    out->source_components = borrow_texts(rpc, call->source_components, n_sources);
    out->n_source_components = n_sources;
    out->destination_components = borrow_texts(rpc, call->destination_components, n_destinations);
    out->n_destination_components = n_destinations;
    out->detect_points = borrow_texts(rpc, points, n_points);
    out->n_detect_points = n_points;
}

HEARTH_MAP_TYPES(call, struct hearth_network_call, Hearth__V1__NetworkCall);
static const struct hearth_message_member call_members[] = {
    HEARTH_MAP(call, call_id, call_id),
    HEARTH_MAP(call, source_id, source_id),
    HEARTH_MAP(call, destination_id, destination_id),
};
static const struct hearth_message_map call_map =
    HEARTH_MESSAGE_MAP_AND(call, hearth__v1__network_call__descriptor, fill_components);

HEARTH_MAP_TYPES(topology, struct hearth_network_topology, Hearth__V1__TopologyResponse);
static const struct hearth_message_member topology_members[] = {
    HEARTH_MAP_LIST(topology, nodes, n_nodes, nodes, &node_map),
    HEARTH_MAP_LIST(topology, calls, n_calls, calls, &call_map),
};
static const struct hearth_message_map topology_map =
    HEARTH_MESSAGE_MAP(topology, hearth__v1__topology_response__descriptor);

HEARTH_UNARY(hearth_svc_network_topology, Hearth__V1__TopologyRequest, Hearth__V1__TopologyResponse)
{
    struct hearth_query query = hearth_rpc_query(rpc, in->start_ms, in->end_ms);
    struct hearth_network_topology found;

    HEARTH_TRY(hearth_network_topology(&query, hearth_str_c(in->service),
                                       hearth_str_c(in->instance), &found, &rpc->err));
    hearth_rpc_map_into(rpc, &topology_map, &found, out);

    return HEARTH_OK;
}

/* ---- series ---- */

HEARTH_MAP_TYPES(point, struct hearth_point, Hearth__V1__NetworkPoint);
static const struct hearth_message_member point_members[] = {
    HEARTH_MAP(point, ts_ms, at_ms),
    HEARTH_MAP(point, value, value),
};
static const struct hearth_message_map point_map =
    HEARTH_MESSAGE_MAP(point, hearth__v1__network_point__descriptor);

HEARTH_MAP_TYPES(line, struct hearth_network_line, Hearth__V1__NetworkLine);
static const struct hearth_message_member line_members[] = {
    HEARTH_MAP(line, call_id, call_id),
    HEARTH_MAP(line, metric, metric),
    HEARTH_MAP_NAME(line, side, detect_point, SIDES),
    HEARTH_MAP(line, unit, unit),
    HEARTH_MAP(line, code, code),
    HEARTH_MAP(line, percentile, percentile),
    HEARTH_MAP_LIST(line, points, n_points, points, &point_map),
};
static const struct hearth_message_map line_map =
    HEARTH_MESSAGE_MAP(line, hearth__v1__network_line__descriptor);

HEARTH_UNARY(hearth_svc_network_series, Hearth__V1__NetworkSeriesRequest,
             Hearth__V1__NetworkSeriesResponse)
{
    struct hearth_query query = hearth_rpc_query(rpc, in->start_ms, in->end_ms);
    const struct hearth_network_series_spec spec = {
        .service = hearth_str_c(in->service),
        .instance = hearth_str_c(in->instance),
        .call_id = hearth_str_c(in->call_id),
        .metrics = hearth_rpc_strs(rpc, in->metrics, in->n_metrics),
        .n_metrics = in->n_metrics,
    };
    struct hearth_network_line *lines;
    size_t n;

    if (spec.metrics == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    HEARTH_TRY(hearth_network_series(&query, &spec, &lines, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &line_map, lines, n, out, lines);

    return HEARTH_OK;
}

/* ---- sampled requests ---- */

static void fill_rest_of_request(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_sampled_request *request = from;
    Hearth__V1__SampledRequest *out = message;

    out->call_id = hearth_arena_printf(&rpc->arena, "%.*s-%.*s", (int)request->source_id.n,
                                       request->source_id.p, (int)request->destination_id.n,
                                       request->destination_id.p);
    out->latency_ms = (double)request->latency_us / 1000;
    out->component = borrow_text(hearth_network_component_name(request->component));
}

HEARTH_MAP_TYPES(request, struct hearth_sampled_request, Hearth__V1__SampledRequest);
static const struct hearth_message_member request_members[] = {
    HEARTH_MAP(request, request_id, request_id),
    HEARTH_MAP(request, trace_id, trace_id),
    HEARTH_MAP_NAME(request, provider, trace_provider, PROVIDERS),
    HEARTH_MAP(request, uri, uri),
    HEARTH_MAP_NAME(request, reason, reason, REASONS),
    HEARTH_MAP(request, status, status),
    HEARTH_MAP(request, at_ms, at_ms),
    HEARTH_MAP(request, is_ssl, is_ssl),
    HEARTH_MAP_NAME(request, side, detect_point, SIDES), /* the side that sampled it */
    HEARTH_MAP(request, service, service),
    HEARTH_MAP(request, instance, instance),
    HEARTH_MAP(request, n_events, event_count),
};
static const struct hearth_message_map request_map =
    HEARTH_MESSAGE_MAP_AND(request, hearth__v1__sampled_request__descriptor, fill_rest_of_request);

HEARTH_UNARY(hearth_svc_network_requests, Hearth__V1__ListSampledRequestsRequest,
             Hearth__V1__ListSampledRequestsResponse)
{
    struct hearth_query query = hearth_rpc_query(rpc, in->start_ms, in->end_ms);
    const struct hearth_network_requests_spec spec = {
        .service = hearth_str_c(in->service),
        .instance = hearth_str_c(in->instance),
        .trace_id = hearth_str_c(in->trace_id),
        .call_id = hearth_str_c(in->call_id),
        .reason = hearth_str_c(in->reason),
        .limit = in->limit,
    };
    struct hearth_sampled_request *requests;
    size_t n;

    HEARTH_TRY(hearth_network_requests(&query, &spec, &requests, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &request_map, requests, n, out, requests);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_network_request, Hearth__V1__GetSampledRequestRequest,
             Hearth__V1__GetSampledRequestResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_sampled_request request;
    struct hearth_captured_event *events;
    struct hearth_str *notes;
    size_t n, n_notes;

    HEARTH_TRY(hearth_network_request(&call, hearth_str_c(in->request_id), &request, &events, &n,
                                      &notes, &n_notes, &rpc->err));
    out->request = hearth_rpc_map(rpc, &request_map, &request);
    HEARTH_RPC_LIST(rpc, &hearth_captured_event_map, events, n, out, events);
    out->notes = hearth_rpc_texts(rpc, notes, n_notes);
    out->n_notes = n_notes;

    return HEARTH_OK;
}

/* ---- addresses ---- */

HEARTH_MAP_TYPES(address, struct hearth_network_address, Hearth__V1__AddressName);
static const struct hearth_message_member address_members[] = {
    HEARTH_MAP(address, address, address),
    HEARTH_MAP(address, name, name),
    HEARTH_MAP(address, is_configured, is_configured),
};
static const struct hearth_message_map address_map =
    HEARTH_MESSAGE_MAP(address, hearth__v1__address_name__descriptor);

/* All addresses, as they are now. */
static enum hearth_status make_addresses(struct hearth_rpc *rpc, const struct hearth_call *call,
                                         Hearth__V1__AddressName ***ret, size_t *ret_n)
{
    struct hearth_network_address *addresses;
    size_t n;

    HEARTH_TRY(hearth_network_addresses(call, &addresses, &n, &rpc->err));
    hearth_rpc_map_list(rpc, &address_map, addresses, n, ret, ret_n);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_network_addresses, Hearth__V1__ListAddressesRequest,
             Hearth__V1__ListAddressesResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    return make_addresses(rpc, &call, &out->addresses, &out->n_addresses);
}

HEARTH_UNARY(hearth_svc_network_addresses_set, Hearth__V1__SetAddressesRequest,
             Hearth__V1__SetAddressesResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_address_name *names =
        hearth_arena_array(&rpc->arena, in->n_addresses, sizeof *names);
    if (names == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Names borrow from the request. */
    for (size_t i = 0; i < in->n_addresses; i++) {
        names[i] = (struct hearth_address_name){hearth_str_c(in->addresses[i]->address),
                                                hearth_str_c(in->addresses[i]->name)};
    }

    HEARTH_TRY(hearth_network_addresses_set(&call, names, in->n_addresses, &rpc->err));

    return make_addresses(rpc, &call, &out->addresses, &out->n_addresses);
}
