/*
 * svc_processes.c -- hearth.v1.ProcessService: services, instances and processes that agents
 * reported.
 */
#include "hearth/engine/agents.h"
#include "hearth/pb/hearth/v1/processes.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"

/* ---- services ---- */

static Hearth__V1__ReportedService *make_service(struct hearth_rpc *rpc,
                                                 const struct hearth_reported_service *service)
{
    Hearth__V1__ReportedService *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return NULL;
    }

    hearth__v1__reported_service__init(out);
    out->service = hearth_rpc_text(rpc, service->name);
    out->layer = hearth_rpc_text(rpc, service->layer);
    out->first_seen_ms = service->first_seen_ms;
    out->last_seen_ms = service->last_seen_ms;
    out->instance_count = service->n_instances;
    out->process_count = service->n_processes;
    out->labels = hearth_rpc_texts(rpc, service->labels, service->n_labels);
    out->n_labels = service->n_labels;

    return rpc->arena.refused ? NULL : out;
}

static enum hearth_status list_services(struct hearth_rpc *rpc)
{
    const Hearth__V1__ListServicesRequest *in =
        (const Hearth__V1__ListServicesRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_reported_service *services;
    size_t n;

    HEARTH_TRY(hearth_agents_services(&call, in->seen_after_ms, &services, &n, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__ListServicesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__ReportedService **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    if (out == NULL || list == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__list_services_response__init(out);

    for (size_t i = 0; i < n; i++) {
        list[i] = make_service(rpc, &services[i]);
        if (list[i] == NULL) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }

    out->services = list;
    out->n_services = n;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_list_services(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, list_services(rpc));
}

/* ---- instances ---- */

static Hearth__V1__Property **make_properties(struct hearth_rpc *rpc,
                                              const struct hearth_property *properties, size_t n)
{
    Hearth__V1__Property **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    for (size_t i = 0; list != NULL && i < n; i++) {
        list[i] = hearth_arena_alloc(&rpc->arena, sizeof *list[i]);
        if (list[i] == NULL) {
            return NULL;
        }

        hearth__v1__property__init(list[i]);
        list[i]->name = hearth_rpc_text(rpc, properties[i].name);
        list[i]->value = hearth_rpc_text(rpc, properties[i].value);
    }

    return list;
}

static Hearth__V1__ReportedInstance *make_instance(struct hearth_rpc *rpc,
                                                   const struct hearth_instance *instance)
{
    Hearth__V1__ReportedInstance *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return NULL;
    }

    hearth__v1__reported_instance__init(out);
    out->service = hearth_rpc_text(rpc, instance->service);
    out->instance = hearth_rpc_text(rpc, instance->name);
    out->layer = hearth_rpc_text(rpc, instance->layer);
    out->properties = make_properties(rpc, instance->properties, instance->n_properties);
    out->n_properties = instance->n_properties;
    out->first_seen_ms = instance->first_seen_ms;
    out->last_seen_ms = instance->last_seen_ms;

    return rpc->arena.refused ? NULL : out;
}

static enum hearth_status list_instances(struct hearth_rpc *rpc)
{
    const Hearth__V1__ListInstancesRequest *in =
        (const Hearth__V1__ListInstancesRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_instance *instances;
    size_t n;

    HEARTH_TRY(hearth_agents_instances(&call, hearth_str_c(in->service), in->seen_after_ms,
                                       &instances, &n, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__ListInstancesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__ReportedInstance **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    if (out == NULL || list == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__list_instances_response__init(out);

    for (size_t i = 0; i < n; i++) {
        list[i] = make_instance(rpc, &instances[i]);
        if (list[i] == NULL) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }

    out->instances = list;
    out->n_instances = n;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_list_instances(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, list_instances(rpc));
}

/* ---- processes ---- */

static Hearth__V1__Process *make_process(struct hearth_rpc *rpc,
                                         const struct hearth_process *process)
{
    Hearth__V1__Process *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return NULL;
    }

    hearth__v1__process__init(out);
    out->process_id = hearth_rpc_text(rpc, process->process_id);
    out->service = hearth_rpc_text(rpc, process->service);
    out->instance = hearth_rpc_text(rpc, process->instance);
    out->name = hearth_rpc_text(rpc, process->name);
    out->detect_type = (Hearth__V1__DetectType)process->detect_type; /* the same numbers */
    out->agent_id = hearth_rpc_text(rpc, process->agent_id);
    out->labels = hearth_rpc_texts(rpc, process->labels, process->n_labels);
    out->n_labels = process->n_labels;
    out->properties = make_properties(rpc, process->properties, process->n_properties);
    out->n_properties = process->n_properties;
    out->can_be_profiled = process->can_be_profiled;
    out->first_seen_ms = process->first_seen_ms;
    out->last_seen_ms = process->last_seen_ms;

    return rpc->arena.refused ? NULL : out;
}

static enum hearth_status list_processes(struct hearth_rpc *rpc)
{
    const Hearth__V1__ListProcessesRequest *in =
        (const Hearth__V1__ListProcessesRequest *)rpc->request;
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

    /* Build the answer in the request's arena. */
    Hearth__V1__ListProcessesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__Process **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    if (out == NULL || list == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__list_processes_response__init(out);

    for (size_t i = 0; i < n; i++) {
        list[i] = make_process(rpc, &processes[i]);
        if (list[i] == NULL) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }

    out->processes = list;
    out->n_processes = n;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_list_processes(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, list_processes(rpc));
}

static enum hearth_status get_process(struct hearth_rpc *rpc)
{
    const Hearth__V1__GetProcessRequest *in = (const Hearth__V1__GetProcessRequest *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_process process;

    HEARTH_TRY(hearth_agents_process(&call, hearth_str_c(in->process_id), &process, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__GetProcessResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__get_process_response__init(out);
    out->process = make_process(rpc, &process);
    if (out->process == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_get_process(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, get_process(rpc));
}
