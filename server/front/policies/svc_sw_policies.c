/*
 * svc_sw_policies.c -- skywalking.v3.ContinuousProfilingService: agents query policies, and report
 * tasks that policies started.
 */
#include "hearth/engine/policies.h"
#include "hearth/pb/skywalking/v3/ebpf.pb-c.h"

#include "handlers.h"
#include "rpc/unary.h"
#include "tasks/sw_commands.h"

/* Answers at most one command, which contains all services whose policies differ. */
HEARTH_UNARY(hearth_svc_sw_query_policies, Skywalking__V3__ContinuousProfilingPolicyQuery,
             Skywalking__V3__Commands)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_policy_query *versions =
        hearth_arena_array(&rpc->arena, in->n_policies, sizeof versions[0]);
    if (versions == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* The versions that the agent has. */
    for (size_t i = 0; i < in->n_policies; i++) {
        versions[i] = (struct hearth_policy_query){hearth_str_c(in->policies[i]->servicename),
                                                   hearth_str_c(in->policies[i]->uuid)};
    }

    /* The command has a copy of the text. */
    struct hearth_buf json;
    hearth_buf_init(&json, 0);
    enum hearth_status status =
        hearth_policies_for_agent(&call, versions, in->n_policies, &json, &rpc->err);
    if (status == HEARTH_OK && json.n > 0) {
        struct hearth_command_arg arg = {"ServiceWithPolicyJSON", hearth_buf_view(&json)};
        status = hearth_sw_set_command(rpc, "ContinuousProfilingPolicyQuery", &arg, 1, out);
    }

    hearth_buf_release(&json);

    return status;
}

/* ---- reports ---- */

static struct hearth_policy_cause read_cause(const Skywalking__V3__ContinuousProfilingCause *in)
{
    struct hearth_policy_cause cause = {0}; /* without a monitor, which the engine refuses */
    if (in->type >= 0 && (int)in->type < HEARTH_MONITOR_END - 1) {
        cause.monitor = (enum hearth_monitor)((int)in->type + 1);
    }

    if (in->cause_case == SKYWALKING__V3__CONTINUOUS_PROFILING_CAUSE__CAUSE_SINGLE_VALUE) {
        cause.threshold = in->singlevalue->threshold;
        cause.current = in->singlevalue->current;
    } else if (in->cause_case == SKYWALKING__V3__CONTINUOUS_PROFILING_CAUSE__CAUSE_URI) {
        cause.threshold = in->uri->threshold;
        cause.current = in->uri->current;
        if (in->uri->uri_case == SKYWALKING__V3__CONTINUOUS_PROFILING_URICAUSE__URI_REGEX) {
            cause.uri_regex = hearth_str_c(in->uri->regex);
        } else if (in->uri->uri_case == SKYWALKING__V3__CONTINUOUS_PROFILING_URICAUSE__URI_PATH) {
            cause.uri_path = hearth_str_c(in->uri->path);
        }
    }

    return cause;
}

static enum hearth_status read_report(struct hearth_rpc *rpc,
                                      const Skywalking__V3__ContinuousProfilingReport *in,
                                      struct hearth_policy_report *ret)
{
    *ret = (struct hearth_policy_report){
        .layer = hearth_str_c(in->layer),
        .service = hearth_str_c(in->servicename),
        .instance = hearth_str_c(in->instancename),
        .process = hearth_str_c(in->processname),
        .duration_seconds = in->duration,
        .causes = hearth_arena_array(&rpc->arena, in->n_causes, sizeof ret->causes[0]),
        .n_causes = in->n_causes,
    };
    if (ret->causes == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < in->n_causes; i++) {
        ret->causes[i] = read_cause(in->causes[i]);
    }

    switch (in->target_task_case) {
    case SKYWALKING__V3__CONTINUOUS_PROFILING_REPORT__TARGET_TASK_ON_CPU:
        ret->kind = HEARTH_POLICY_ON_CPU;
        break;
    case SKYWALKING__V3__CONTINUOUS_PROFILING_REPORT__TARGET_TASK_OFF_CPU:
        ret->kind = HEARTH_POLICY_OFF_CPU;
        break;
    case SKYWALKING__V3__CONTINUOUS_PROFILING_REPORT__TARGET_TASK_NETWORK:
        ret->kind = HEARTH_POLICY_NETWORK;
        ret->n_uri_regexes = in->network->n_samplinguriregexes;
        ret->uri_regexes =
            hearth_rpc_strs(rpc, in->network->samplinguriregexes, ret->n_uri_regexes);
        break;
    default:
        break; /* the engine refuses a report without a kind */
    }

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

/* Answers one command or an error: agents use the first without checking that it exists. */
HEARTH_UNARY(hearth_svc_sw_report_profiling_task, Skywalking__V3__ContinuousProfilingReport,
             Skywalking__V3__Commands)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_policy_report report;
    struct hearth_command_arg arg = {.key = "TaskId"};

    HEARTH_TRY(read_report(rpc, in, &report));
    HEARTH_TRY(hearth_policies_report(&call, &report, &arg.value, &rpc->err));
    assert(arg.value.n > 0);

    return hearth_sw_set_command(rpc, "ContinuousProfilingReportTask", &arg, 1, out);
}
