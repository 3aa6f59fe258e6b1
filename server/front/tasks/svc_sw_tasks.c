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
#include "rpc/unary.h"
#include "tasks/sw_commands.h"

HEARTH_UNARY(hearth_svc_sw_ebpf_tasks, Skywalking__V3__EBPFProfilingTaskQuery,
             Skywalking__V3__Commands)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_command *commands;
    size_t n;

    HEARTH_TRY(hearth_tasks_ask_agent(&call, hearth_str_c(in->roverinstanceid),
                                      in->latestupdatetime, &commands, &n, &rpc->err));
    hearth_sw_set_commands(rpc, commands, n, out);

    return HEARTH_OK;
}

static enum hearth_status answer_instance(struct hearth_rpc *rpc, enum hearth_task_kind kind,
                                          const char *service, const char *instance,
                                          int64_t cursor_ms, Skywalking__V3__Commands *out)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_command *commands;
    size_t n;

    HEARTH_TRY(hearth_tasks_ask_instance(&call, kind, hearth_str_c(service), hearth_str_c(instance),
                                         cursor_ms, &commands, &n, &rpc->err));
    hearth_sw_set_commands(rpc, commands, n, out);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_sw_trace_tasks, Skywalking__V3__ProfileTaskCommandQuery,
             Skywalking__V3__Commands)
{
    return answer_instance(rpc, HEARTH_TASK_TRACE, in->service, in->serviceinstance,
                           in->lastcommandtime, out);
}

HEARTH_UNARY(hearth_svc_sw_async_tasks, Skywalking__V10__AsyncProfilerTaskCommandQuery,
             Skywalking__V3__Commands)
{
    return answer_instance(rpc, HEARTH_TASK_ASYNC_PROFILER, in->service, in->serviceinstance,
                           in->lastcommandtime, out);
}

HEARTH_UNARY(hearth_svc_sw_pprof_tasks, Skywalking__V10__PprofTaskCommandQuery,
             Skywalking__V3__Commands)
{
    return answer_instance(rpc, HEARTH_TASK_PPROF, in->service, in->serviceinstance,
                           in->lastcommandtime, out);
}

HEARTH_UNARY(hearth_svc_sw_trace_finished, Skywalking__V3__ProfileTaskFinishReport,
             Skywalking__V3__Commands)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    return hearth_tasks_finished(&call, hearth_str_c(in->taskid), hearth_str_c(in->serviceinstance),
                                 &rpc->err);
}
