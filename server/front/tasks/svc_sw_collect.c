/*
 * svc_sw_collect.c -- skywalking.v3.EBPFProfilingService: stack traces that agents send for their
 * tasks.
 */
#include "hearth/engine/task_stacks.h"
#include "hearth/pb/skywalking/v3/ebpf.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"

#include <assert.h>

static void free_intake(void *session)
{
    hearth_task_intake_free(session);
}

static enum hearth_status open_intake(struct hearth_rpc *rpc)
{
    struct hearth_task_intake *intake;
    assert(rpc->session == NULL);

    const struct hearth_call call = hearth_rpc_call(rpc);
    HEARTH_TRY(hearth_task_intake_new(rpc->front->ingest, &call, rpc->front->options.push_memory,
                                      &intake, &rpc->err));
    rpc->session = intake;
    rpc->free_session = free_intake;

    return HEARTH_OK;
}

static enum hearth_status read_symbols(struct hearth_rpc *rpc,
                                       const Skywalking__V3__EBPFProfilingStackMetadata *stack,
                                       const struct hearth_str **ret, size_t *ret_n)
{
    *ret = hearth_rpc_strs(rpc, stack->stacksymbols, stack->n_stacksymbols);
    *ret_n = stack->n_stacksymbols;

    return *ret == NULL ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

/* If a type occurs several times, its last stack is used. */
static enum hearth_status read_stacks(struct hearth_rpc *rpc,
                                      Skywalking__V3__EBPFProfilingStackMetadata *const *stacks,
                                      size_t n, struct hearth_task_datum *datum)
{
    for (size_t i = 0; i < n; i++) {
        switch (stacks[i]->stacktype) {
        case SKYWALKING__V3__EBPFPROFILING_STACK_TYPE__PROCESS_KERNEL_SPACE:
            datum->has_kernel = true;
            datum->kernel_id = stacks[i]->stackid;
            HEARTH_TRY(read_symbols(rpc, stacks[i], &datum->kernel, &datum->n_kernel));
            break;
        case SKYWALKING__V3__EBPFPROFILING_STACK_TYPE__PROCESS_USER_SPACE:
            datum->has_user = true;
            datum->user_id = stacks[i]->stackid;
            HEARTH_TRY(read_symbols(rpc, stacks[i], &datum->user, &datum->n_user));
            break;
        default:
            return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "stackType %d is not known",
                               (int)stacks[i]->stacktype);
        }
    }

    return HEARTH_OK;
}

static enum hearth_status take_datum(struct hearth_rpc *rpc,
                                     const Skywalking__V3__EBPFProfilingData *in)
{
    struct hearth_task_intake *intake = rpc->session;
    struct hearth_task_datum datum = {0};
    assert(intake != NULL);

    /* The task of this message and of those after it. */
    if (in->task != NULL) {
        const struct hearth_task_metadata metadata = {
            .task_id = hearth_str_c(in->task->taskid),
            .process_id = hearth_str_c(in->task->processid),
            .start_ms = in->task->profilingstarttime,
            .at_ms = in->task->currenttime,
        };
        HEARTH_TRY(hearth_task_intake_metadata(intake, &metadata, &rpc->err));
    }

    /* One stack trace. */
    switch (in->profiling_case) {
    case SKYWALKING__V3__EBPFPROFILING_DATA__PROFILING_ON_CPU:
        HEARTH_TRY(read_stacks(rpc, in->oncpu->stacks, in->oncpu->n_stacks, &datum));
        datum.count = in->oncpu->dumpcount;
        return hearth_task_intake_add(intake, HEARTH_STACKS_ON_CPU, &datum, &rpc->cancel,
                                      &rpc->err);
    case SKYWALKING__V3__EBPFPROFILING_DATA__PROFILING_OFF_CPU:
        HEARTH_TRY(read_stacks(rpc, in->offcpu->stacks, in->offcpu->n_stacks, &datum));
        datum.count = in->offcpu->switchcount;
        datum.duration_ns = in->offcpu->duration;
        return hearth_task_intake_add(intake, HEARTH_STACKS_OFF_CPU, &datum, &rpc->cancel,
                                      &rpc->err);
    default:
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "profiling data are neither onCPU nor offCPU");
    }
}

/* Streams without a message are usual: an agent opens a stream every 5 s while it has a task. */
void hearth_svc_sw_collect_stacks(struct hearth_rpc *rpc)
{
    const Skywalking__V3__EBPFProfilingData *in =
        (const Skywalking__V3__EBPFProfilingData *)rpc->request;
    enum hearth_status status = rpc->session == NULL ? open_intake(rpc) : HEARTH_OK;

    /* Data are stored in batches, the last of them at the end of the stream. */
    if (status == HEARTH_OK) {
        status = in == NULL ? hearth_task_intake_write(rpc->session, &rpc->cancel, &rpc->err)
                            : take_datum(rpc, in);
    }

    /* The agent's retries would be refused too, so the refusal is reported in the task. */
    if (status == HEARTH_INVALID_ARGUMENT) {
        hearth_task_intake_refused(rpc->session, &rpc->err, &rpc->cancel);
    }

    hearth_rpc_finish_run(rpc, status);
}
