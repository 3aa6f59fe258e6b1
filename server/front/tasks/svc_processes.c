/*
 * svc_processes.c -- hearth.v1.ProcessService: services, instances and processes that agents
 * reported.
 */
#include "hearth/engine/agents.h"
#include "hearth/pb/hearth/v1/processes.pb-c.h"

#include "handlers.h"
#include "rpc/unary.h"
#include "tasks/shared_maps.h"

/* ---- messages ---- */

HEARTH_MAP_TYPES(property, struct hearth_property, Hearth__V1__Property);
static const struct hearth_message_member property_members[] = {
    HEARTH_MAP(property, name, name),
    HEARTH_MAP(property, value, value),
};
const struct hearth_message_map hearth_property_map =
    HEARTH_MESSAGE_MAP(property, hearth__v1__property__descriptor);

HEARTH_MAP_TYPES(service, struct hearth_reported_service, Hearth__V1__ReportedService);
static const struct hearth_message_member service_members[] = {
    HEARTH_MAP(service, name, service),
    HEARTH_MAP(service, layer, layer),
    HEARTH_MAP(service, first_seen_ms, first_seen_ms),
    HEARTH_MAP(service, last_seen_ms, last_seen_ms),
    HEARTH_MAP(service, n_instances, instance_count),
    HEARTH_MAP(service, n_processes, process_count),
    HEARTH_MAP_TEXTS(service, labels, n_labels, labels),
};
static const struct hearth_message_map service_map =
    HEARTH_MESSAGE_MAP(service, hearth__v1__reported_service__descriptor);

HEARTH_MAP_TYPES(instance, struct hearth_instance, Hearth__V1__ReportedInstance);
static const struct hearth_message_member instance_members[] = {
    HEARTH_MAP(instance, service, service),
    HEARTH_MAP(instance, name, instance),
    HEARTH_MAP(instance, layer, layer),
    HEARTH_MAP(instance, first_seen_ms, first_seen_ms),
    HEARTH_MAP(instance, last_seen_ms, last_seen_ms),
    HEARTH_MAP_LIST(instance, properties, n_properties, properties, &hearth_property_map),
};
static const struct hearth_message_map instance_map =
    HEARTH_MESSAGE_MAP(instance, hearth__v1__reported_instance__descriptor);

HEARTH_MAP_TYPES(process, struct hearth_process, Hearth__V1__Process);
static const struct hearth_message_member process_members[] = {
    HEARTH_MAP(process, process_id, process_id),
    HEARTH_MAP(process, service, service),
    HEARTH_MAP(process, instance, instance),
    HEARTH_MAP(process, name, name),
    HEARTH_MAP(process, detect_type, detect_type), /* the same numbers */
    HEARTH_MAP(process, agent_id, agent_id),
    HEARTH_MAP(process, can_be_profiled, can_be_profiled),
    HEARTH_MAP(process, first_seen_ms, first_seen_ms),
    HEARTH_MAP(process, last_seen_ms, last_seen_ms),
    HEARTH_MAP_TEXTS(process, labels, n_labels, labels),
    HEARTH_MAP_LIST(process, properties, n_properties, properties, &hearth_property_map),
};
const struct hearth_message_map hearth_process_map =
    HEARTH_MESSAGE_MAP(process, hearth__v1__process__descriptor);

/* ---- methods ---- */

HEARTH_UNARY(hearth_svc_list_services, Hearth__V1__ListServicesRequest,
             Hearth__V1__ListServicesResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_reported_service *services;
    size_t n;

    HEARTH_TRY(hearth_agents_services(&call, in->seen_after_ms, &services, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &service_map, services, n, out, services);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_list_instances, Hearth__V1__ListInstancesRequest,
             Hearth__V1__ListInstancesResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_instance *instances;
    size_t n;

    HEARTH_TRY(hearth_agents_instances(&call, hearth_str_c(in->service), in->seen_after_ms,
                                       &instances, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &instance_map, instances, n, out, instances);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_list_processes, Hearth__V1__ListProcessesRequest,
             Hearth__V1__ListProcessesResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    const struct hearth_process_filter filter = {
        .service = hearth_str_c(in->service),
        .instance = hearth_str_c(in->instance),
        .labels = hearth_rpc_strs(rpc, in->labels, in->n_labels),
        .n_labels = in->n_labels,
        .seen_after_ms = in->start_ms,
        .seen_before_ms = in->end_ms,
        .without_virtual = in->without_virtual,
    };
    struct hearth_process *processes;
    size_t n;

    if (filter.labels == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    HEARTH_TRY(hearth_agents_processes(&call, &filter, &processes, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &hearth_process_map, processes, n, out, processes);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_get_process, Hearth__V1__GetProcessRequest, Hearth__V1__GetProcessResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_process process;

    HEARTH_TRY(hearth_agents_process(&call, hearth_str_c(in->process_id), &process, &rpc->err));
    out->process = hearth_rpc_map(rpc, &hearth_process_map, &process);

    return HEARTH_OK;
}
