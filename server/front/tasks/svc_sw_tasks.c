/*
 * svc_sw_tasks.c -- SkyWalking's agents query tasks: tasks of processes (EBPFProfilingService), and
 * tasks of one kind (ProfileTask, AsyncProfilerTask, PprofTask). They also report that a trace task
 * is finished.
 */
#include "hearth/engine/tasks.h"
#include "hearth/pb/skywalking/v10/async_profiler.pb-c.h"
#include "hearth/pb/skywalking/v10/pprof.pb-c.h"
#include "hearth/pb/skywalking/v3/ebpf.pb-c.h"
#include "hearth/pb/skywalking/v3/profile.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"

static Skywalking__V3__Command *make_command(struct hearth_rpc *rpc,
                                             const struct hearth_command *command)
{
    struct hearth_arena *arena = &rpc->arena;
    Skywalking__V3__Command *out = hearth_arena_alloc(arena, sizeof *out);
    Skywalking__V3__KeyStringValuePair *pairs =
        hearth_arena_array(arena, command->n_args, sizeof *pairs);
    Skywalking__V3__KeyStringValuePair **args =
        hearth_arena_array(arena, command->n_args, sizeof *args);
    if (out == NULL || pairs == NULL || args == NULL) {
        return NULL;
    }

    for (size_t i = 0; i < command->n_args; i++) {
        skywalking__v3__key_string_value_pair__init(&pairs[i]);
        pairs[i].key = hearth_rpc_text(rpc, hearth_str_c(command->args[i].key));
        pairs[i].value = hearth_rpc_text(rpc, command->args[i].value);
        args[i] = &pairs[i];
    }

    skywalking__v3__command__init(out);
    out->command = hearth_rpc_text(rpc, hearth_str_c(command->name));
    out->args = args;
    out->n_args = command->n_args;

    return out;
}

static enum hearth_status answer(struct hearth_rpc *rpc, const struct hearth_command *commands,
                                 size_t n)
{
    Skywalking__V3__Commands *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Skywalking__V3__Command **all = hearth_arena_array(&rpc->arena, n, sizeof *all);
    if (out == NULL || all == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    skywalking__v3__commands__init(out);

    for (size_t i = 0; i < n; i++) {
        all[i] = make_command(rpc, &commands[i]);
    }

    if (rpc->arena.refused) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    out->commands = all;
    out->n_commands = n;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

static enum hearth_status ask_agent(struct hearth_rpc *rpc)
{
    const Skywalking__V3__EBPFProfilingTaskQuery *in =
        (const Skywalking__V3__EBPFProfilingTaskQuery *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_command *commands;
    size_t n;

    HEARTH_TRY(hearth_tasks_ask_agent(&call, hearth_str_c(in->roverinstanceid),
                                      in->latestupdatetime, &commands, &n, &rpc->err));

    return answer(rpc, commands, n);
}

void hearth_svc_sw_ebpf_tasks(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, ask_agent(rpc));
}

static enum hearth_status ask_instance(struct hearth_rpc *rpc, enum hearth_task_kind kind,
                                       const char *service, const char *instance, int64_t cursor_ms)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_command *commands;
    size_t n;

    HEARTH_TRY(hearth_tasks_ask_instance(&call, kind, hearth_str_c(service), hearth_str_c(instance),
                                         cursor_ms, &commands, &n, &rpc->err));

    return answer(rpc, commands, n);
}

void hearth_svc_sw_trace_tasks(struct hearth_rpc *rpc)
{
    const Skywalking__V3__ProfileTaskCommandQuery *in =
        (const Skywalking__V3__ProfileTaskCommandQuery *)rpc->request;
    hearth_rpc_end(rpc, ask_instance(rpc, HEARTH_TASK_TRACE, in->service, in->serviceinstance,
                                     in->lastcommandtime));
}

void hearth_svc_sw_async_tasks(struct hearth_rpc *rpc)
{
    const Skywalking__V10__AsyncProfilerTaskCommandQuery *in =
        (const Skywalking__V10__AsyncProfilerTaskCommandQuery *)rpc->request;
    hearth_rpc_end(rpc, ask_instance(rpc, HEARTH_TASK_ASYNC_PROFILER, in->service,
                                     in->serviceinstance, in->lastcommandtime));
}

void hearth_svc_sw_pprof_tasks(struct hearth_rpc *rpc)
{
    const Skywalking__V10__PprofTaskCommandQuery *in =
        (const Skywalking__V10__PprofTaskCommandQuery *)rpc->request;
    hearth_rpc_end(rpc, ask_instance(rpc, HEARTH_TASK_PPROF, in->service, in->serviceinstance,
                                     in->lastcommandtime));
}

void hearth_svc_sw_trace_finished(struct hearth_rpc *rpc)
{
    const Skywalking__V3__ProfileTaskFinishReport *in =
        (const Skywalking__V3__ProfileTaskFinishReport *)rpc->request;
    struct hearth_call call = hearth_rpc_call(rpc);
    hearth_rpc_end(rpc, hearth_tasks_finished(&call, hearth_str_c(in->taskid),
                                              hearth_str_c(in->serviceinstance), &rpc->err));
}
