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
#include "rpc/message_map.h"
#include "rpc/unary.h"

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

static struct hearth_reported read_instance(const char *service, const char *instance,
                                            const char *layer)
{
    return (struct hearth_reported){
        .process.service = hearth_str_c(service),
        .process.instance = hearth_str_c(instance),
        .process.layer = hearth_str_c(layer),
        .path = "",
    };
}

HEARTH_UNARY(hearth_svc_sw_instance_properties, Skywalking__V3__InstanceProperties,
             Skywalking__V3__Commands)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_reported reported = read_instance(in->service, in->serviceinstance, in->layer);

    HEARTH_TRY(take_properties(rpc, in->properties, in->n_properties, &reported.process));

    return hearth_agents_report_instance(&call, &reported, &rpc->err);
}

HEARTH_UNARY(hearth_svc_sw_instance_alive, Skywalking__V3__InstancePingPkg,
             Skywalking__V3__Commands)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_reported reported = read_instance(in->service, in->serviceinstance, in->layer);

    return hearth_agents_report_instance(&call, &reported, &rpc->err);
}

/* ---- processes ---- */

static enum hearth_status take_entity(struct hearth_rpc *rpc,
                                      const Skywalking__V3__EBPFProcessEntityMetadata *entity,
                                      struct hearth_reported *ret)
{
    struct hearth_process *process = &ret->process;
    assert(ret->path != NULL);

    if (entity == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "%s is missing", ret->path);
    }

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

/* The fields of either arm of a reported process. */
struct agent_process {
    const char *arm;
    enum hearth_detect_type detect_type;
    Skywalking__V3__EBPFProcessEntityMetadata *entity;
    int32_t pid;
    Skywalking__V3__KeyStringValuePair *const *properties;
    size_t n_properties;
    struct hearth_str id; /* answers only */
};

static bool read_arm(const Skywalking__V3__EBPFProcessProperties *in, struct agent_process *ret)
{
    switch (in->metadata_case) {
    case SKYWALKING__V3__EBPFPROCESS_PROPERTIES__METADATA_HOST_PROCESS:
        *ret = (struct agent_process){
            .arm = "hostProcess",
            .detect_type = HEARTH_DETECT_HOST,
            .entity = in->hostprocess->entity,
            .pid = in->hostprocess->pid,
            .properties = in->hostprocess->properties,
            .n_properties = in->hostprocess->n_properties,
        };
        return true;

    case SKYWALKING__V3__EBPFPROCESS_PROPERTIES__METADATA_K8S_PROCESS:
        *ret = (struct agent_process){
            .arm = "k8sProcess",
            .detect_type = HEARTH_DETECT_KUBERNETES,
            .entity = in->k8sprocess->entity,
            .pid = in->k8sprocess->pid,
            .properties = in->k8sprocess->properties,
            .n_properties = in->k8sprocess->n_properties,
        };
        return true;

    default:
        return false;
    }
}

static enum hearth_status take_process(struct hearth_rpc *rpc,
                                       const Skywalking__V3__EBPFProcessReportList *in, size_t i,
                                       struct agent_process *process, struct hearth_reported *ret)
{
    assert(i < in->n_processes);
    if (!read_arm(in->processes[i], process)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "processes[%zu] has neither hostProcess nor k8sProcess", i);
    }

    /* The entity names the process. */
    *ret = (struct hearth_reported){
        .process.agent_id = hearth_str_c(in->ebpfagentid),
        .process.detect_type = process->detect_type,
        .path = hearth_arena_printf(&rpc->arena, "processes[%zu].%s.entity", i, process->arm),
    };
    if (ret->path == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    HEARTH_TRY(take_entity(rpc, process->entity, ret));

    /* The pid is not stored; the answer repeats it. */
    if (process->pid <= 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "processes[%zu].%s.pid is %d: a process has a number above 0", i,
                           process->arm, (int)process->pid);
    }

    return take_properties(rpc, process->properties, process->n_properties, &ret->process);
}

/* The engine must have accepted the process, whose names have a limited length then. */
static enum hearth_status make_process_id(struct hearth_rpc *rpc, struct agent_process *process)
{
    const Skywalking__V3__EBPFProcessEntityMetadata *entity = process->entity;
    struct hearth_entity_hash id;
    assert(entity != NULL);

    if (!hearth_process_public_id(hearth_str_c(entity->servicename),
                                  hearth_str_c(entity->instancename),
                                  hearth_str_c(entity->processname), &id)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for the id of a process");
    }

    process->id = hearth_arena_str(&rpc->arena, hearth_str_c(id.text));

    return HEARTH_OK;
}

/* ---- the answer: the received entities, each in the arm in which it was received ---- */

HEARTH_MAP_TYPES(host_process, struct agent_process, Skywalking__V3__EBPFHostProcessDownstream);
static const struct hearth_message_member host_process_members[] = {
    HEARTH_MAP(host_process, pid, pid),
};
static const struct hearth_message_map host_process_map =
    HEARTH_MESSAGE_MAP(host_process, skywalking__v3__ebpfhost_process_downstream__descriptor);

HEARTH_MAP_TYPES(k8s_process, struct agent_process,
                 Skywalking__V3__EBPFKubernetesProcessDownstream);
static const struct hearth_message_member k8s_process_members[] = {
    HEARTH_MAP(k8s_process, pid, pid),
};
static const struct hearth_message_map k8s_process_map =
    HEARTH_MESSAGE_MAP(k8s_process, skywalking__v3__ebpfkubernetes_process_downstream__descriptor);

static void fill_process_arm(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct agent_process *process = from;
    Skywalking__V3__EBPFProcessDownstream *out = message;

    if (process->detect_type == HEARTH_DETECT_HOST) {
        out->process_case = SKYWALKING__V3__EBPFPROCESS_DOWNSTREAM__PROCESS_HOST_PROCESS;
        out->hostprocess = hearth_rpc_map(rpc, &host_process_map, process);
        if (out->hostprocess != NULL) {
            out->hostprocess->entitymetadata = process->entity;
        }
    } else {
        out->process_case = SKYWALKING__V3__EBPFPROCESS_DOWNSTREAM__PROCESS_K8S_PROCESS;
        out->k8sprocess = hearth_rpc_map(rpc, &k8s_process_map, process);
        if (out->k8sprocess != NULL) {
            out->k8sprocess->entitymetadata = process->entity;
        }
    }
}

HEARTH_MAP_TYPES(agent_process, struct agent_process, Skywalking__V3__EBPFProcessDownstream);
static const struct hearth_message_member agent_process_members[] = {
    HEARTH_MAP(agent_process, id, processid),
};
static const struct hearth_message_map agent_process_map = HEARTH_MESSAGE_MAP_AND(
    agent_process, skywalking__v3__ebpfprocess_downstream__descriptor, fill_process_arm);

HEARTH_UNARY(hearth_svc_sw_report_processes, Skywalking__V3__EBPFProcessReportList,
             Skywalking__V3__EBPFReportProcessDownstream)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    size_t n = in->n_processes;
    struct hearth_reported *reported = hearth_arena_array(&rpc->arena, n, sizeof *reported);
    struct agent_process *processes = hearth_arena_array(&rpc->arena, n, sizeof *processes);
    if (reported == NULL || processes == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Store all of them, or none. */
    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(take_process(rpc, in, i, &processes[i], &reported[i]));
    }

    HEARTH_TRY(hearth_agents_report_processes(&call, reported, n, &rpc->err));

    /* Answer each of them. */
    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(make_process_id(rpc, &processes[i]));
    }

    HEARTH_RPC_LIST(rpc, &agent_process_map, processes, n, out, processes);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_sw_processes_alive, Skywalking__V3__EBPFProcessPingPkgList,
             Skywalking__V3__Commands)
{
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
