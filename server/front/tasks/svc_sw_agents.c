/*
 * svc_sw_agents.c -- SkyWalking's agents report themselves and their processes: ManagementService,
 * EBPFProcessService.
 *
 * An agent that reported a process searches the answer for the entity that it sent, and forgets the
 * process for ever if it does not find it. The answer therefore contains the received entity
 * message itself, including fields that Hearth does not know.
 */
#include "hearth/engine/agents.h"
#include "hearth/model/entity_id.h"
#include "hearth/pb/skywalking/v3/ebpf.pb-c.h"
#include "hearth/pb/skywalking/v3/management.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"

static enum hearth_status take_properties(struct hearth_rpc *rpc,
                                          Skywalking__V3__KeyStringValuePair *const *pairs,
                                          size_t n, struct hearth_process *ret)
{
    struct hearth_property *properties = hearth_arena_array(&rpc->arena, n, sizeof *properties);
    if (properties == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < n; i++) {
        properties[i] =
            (struct hearth_property){hearth_str_c(pairs[i]->key), hearth_str_c(pairs[i]->value)};
    }

    ret->properties = properties;
    ret->n_properties = n;

    return HEARTH_OK;
}

/* ---- instances ---- */

static enum hearth_status properties_of_instance(struct hearth_rpc *rpc)
{
    const Skywalking__V3__InstanceProperties *in =
        (const Skywalking__V3__InstanceProperties *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_reported reported = {.process.service = hearth_str_c(in->service),
                                       .process.instance = hearth_str_c(in->serviceinstance),
                                       .process.layer = hearth_str_c(in->layer),
                                       .path = ""};

    HEARTH_TRY(take_properties(rpc, in->properties, in->n_properties, &reported.process));

    return hearth_agents_report_instance(&call, &reported, &rpc->err);
}

void hearth_svc_sw_instance_properties(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, properties_of_instance(rpc));
}

void hearth_svc_sw_instance_alive(struct hearth_rpc *rpc)
{
    const Skywalking__V3__InstancePingPkg *in =
        (const Skywalking__V3__InstancePingPkg *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_reported reported = {.process.service = hearth_str_c(in->service),
                                       .process.instance = hearth_str_c(in->serviceinstance),
                                       .process.layer = hearth_str_c(in->layer),
                                       .path = ""};

    hearth_rpc_end(rpc, hearth_agents_report_instance(&call, &reported, &rpc->err));
}

/* ---- processes ---- */

static enum hearth_status take_entity(struct hearth_rpc *rpc,
                                      const Skywalking__V3__EBPFProcessEntityMetadata *entity,
                                      struct hearth_reported *ret)
{
    if (entity == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "%s is missing", ret->path);
    }

    struct hearth_process *process = &ret->process;
    process->layer = hearth_str_c(entity->layer);
    process->service = hearth_str_c(entity->servicename);
    process->instance = hearth_str_c(entity->instancename);
    process->name = hearth_str_c(entity->processname);
    process->labels = hearth_rpc_strs(rpc, entity->labels, entity->n_labels);
    process->n_labels = entity->n_labels;
    ret->path = hearth_arena_printf(&rpc->arena, "%s.", ret->path);

    return process->labels == NULL || ret->path == NULL ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena)
                                                        : HEARTH_OK;
}

/* The fields that both kinds of processes have. */
struct metadata {
    const char *arm;
    enum hearth_detect_type detect_type;
    Skywalking__V3__EBPFProcessEntityMetadata *entity;
    int32_t pid;
    Skywalking__V3__KeyStringValuePair *const *properties;
    size_t n_properties;
};

static bool metadata_of(const Skywalking__V3__EBPFProcessProperties *in, struct metadata *ret)
{
    switch (in->metadata_case) {
    case SKYWALKING__V3__EBPFPROCESS_PROPERTIES__METADATA_HOST_PROCESS:
        *ret = (struct metadata){
            "hostProcess",        HEARTH_DETECT_HOST,          in->hostprocess->entity,
            in->hostprocess->pid, in->hostprocess->properties, in->hostprocess->n_properties};
        return true;
    case SKYWALKING__V3__EBPFPROCESS_PROPERTIES__METADATA_K8S_PROCESS:
        *ret = (struct metadata){
            "k8sProcess",        HEARTH_DETECT_KUBERNETES,   in->k8sprocess->entity,
            in->k8sprocess->pid, in->k8sprocess->properties, in->k8sprocess->n_properties};
        return true;
    default:
        return false;
    }
}

static enum hearth_status take_process(struct hearth_rpc *rpc,
                                       const Skywalking__V3__EBPFProcessReportList *in, size_t i,
                                       struct hearth_reported *ret)
{
    struct metadata metadata;
    if (!metadata_of(in->processes[i], &metadata)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "processes[%zu] has neither hostProcess nor k8sProcess", i);
    }

    *ret = (struct hearth_reported){
        .process.agent_id = hearth_str_c(in->ebpfagentid),
        .process.detect_type = metadata.detect_type,
        .path = hearth_arena_printf(&rpc->arena, "processes[%zu].%s.entity", i, metadata.arm),
    };
    if (ret->path == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    HEARTH_TRY(take_entity(rpc, metadata.entity, ret));
    if (metadata.pid <= 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "processes[%zu].%s.pid is %d: a process has a number above 0", i,
                           metadata.arm, (int)metadata.pid);
    }

    return take_properties(rpc, metadata.properties, metadata.n_properties, &ret->process);
}

/* Answer with the received entity, in the same arm of the oneof. */
static Skywalking__V3__EBPFProcessDownstream *
make_downstream(struct hearth_rpc *rpc, const Skywalking__V3__EBPFProcessProperties *in)
{
    struct metadata metadata;
    bool known = metadata_of(in, &metadata);

    HEARTH_ASSERT(known); /* take_process checked it before */

    struct hearth_entity_hash id;
    Skywalking__V3__EBPFProcessDownstream *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL || !hearth_process_public_id(hearth_str_c(metadata.entity->servicename),
                                                 hearth_str_c(metadata.entity->instancename),
                                                 hearth_str_c(metadata.entity->processname), &id)) {
        return NULL;
    }

    skywalking__v3__ebpfprocess_downstream__init(out);
    out->processid = hearth_rpc_text(rpc, hearth_str_c(id.text));

    if (metadata.detect_type == HEARTH_DETECT_HOST) {
        out->process_case = SKYWALKING__V3__EBPFPROCESS_DOWNSTREAM__PROCESS_HOST_PROCESS;
        out->hostprocess = hearth_arena_alloc(&rpc->arena, sizeof *out->hostprocess);
        if (out->hostprocess != NULL) {
            skywalking__v3__ebpfhost_process_downstream__init(out->hostprocess);
            out->hostprocess->pid = metadata.pid;
            out->hostprocess->entitymetadata = metadata.entity;
        }
    } else {
        out->process_case = SKYWALKING__V3__EBPFPROCESS_DOWNSTREAM__PROCESS_K8S_PROCESS;
        out->k8sprocess = hearth_arena_alloc(&rpc->arena, sizeof *out->k8sprocess);
        if (out->k8sprocess != NULL) {
            skywalking__v3__ebpfkubernetes_process_downstream__init(out->k8sprocess);
            out->k8sprocess->pid = metadata.pid;
            out->k8sprocess->entitymetadata = metadata.entity;
        }
    }

    return rpc->arena.refused ? NULL : out;
}

static enum hearth_status report_processes(struct hearth_rpc *rpc)
{
    const Skywalking__V3__EBPFProcessReportList *in =
        (const Skywalking__V3__EBPFProcessReportList *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    size_t n = in->n_processes;
    struct hearth_reported *reported = hearth_arena_array(&rpc->arena, n, sizeof *reported);
    Skywalking__V3__EBPFReportProcessDownstream *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Skywalking__V3__EBPFProcessDownstream **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    if (reported == NULL || out == NULL || list == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(take_process(rpc, in, i, &reported[i]));
    }

    HEARTH_TRY(hearth_agents_report_processes(&call, reported, n, &rpc->err));
    skywalking__v3__ebpfreport_process_downstream__init(out);

    for (size_t i = 0; i < n; i++) {
        list[i] = make_downstream(rpc, in->processes[i]);
        if (list[i] == NULL) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }

    out->processes = list;
    out->n_processes = n;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_sw_report_processes(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, report_processes(rpc));
}

static enum hearth_status processes_alive(struct hearth_rpc *rpc)
{
    const Skywalking__V3__EBPFProcessPingPkgList *in =
        (const Skywalking__V3__EBPFProcessPingPkgList *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_reported *reported =
        hearth_arena_array(&rpc->arena, in->n_processes, sizeof *reported);
    if (reported == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < in->n_processes; i++) {
        const Skywalking__V3__EBPFProcessPingPkg *ping = in->processes[i];
        reported[i] = (struct hearth_reported){
            .process.agent_id = hearth_str_c(in->ebpfagentid),
            .path = hearth_arena_printf(&rpc->arena, "processes[%zu].entityMetadata", i),
        };
        if (reported[i].path == NULL) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }

        HEARTH_TRY(take_entity(rpc, ping->entitymetadata, &reported[i]));
        HEARTH_TRY(
            take_properties(rpc, ping->properties, ping->n_properties, &reported[i].process));
    }

    return hearth_agents_report_processes(&call, reported, in->n_processes, &rpc->err);
}

void hearth_svc_sw_processes_alive(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, processes_alive(rpc));
}
