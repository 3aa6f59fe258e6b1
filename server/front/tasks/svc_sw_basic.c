/*
 * svc_sw_basic.c -- messages of SkyWalking's agents that profiling does not use. They are accepted,
 * so that the agents continue, and not stored. The answers are empty: they contain no commands.
 */
#include "hearth/base/metrics.h"
#include "hearth/pb/skywalking/v3/management.pb-c.h"

#include "handlers.h"
#include "rpc/unary.h"

/* Hearth has no configuration for agents, so no change is ever reported. */
HEARTH_UNARY(hearth_svc_sw_fetch_configurations, Skywalking__V3__ConfigurationSyncRequest,
             Skywalking__V3__Commands)
{
    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_sw_jvm_metrics, Skywalking__V3__JVMMetricCollection,
             Skywalking__V3__Commands)
{
    return HEARTH_OK;
}

void hearth_svc_sw_access_log(struct hearth_rpc *rpc)
{
    hearth_rpc_finish_run(rpc, HEARTH_OK);
}

void hearth_svc_sw_events(struct hearth_rpc *rpc)
{
    const Skywalking__V3__Event *event = (const Skywalking__V3__Event *)rpc->request;

    if (event != NULL) {
        bool is_error = event->type == SKYWALKING__V3__TYPE__Error;
        hearth_metric_add_label(HEARTH_M_AGENT_EVENTS,
                                is_error ? HEARTH_STR("error") : HEARTH_STR("normal"), 1);
    }

    hearth_rpc_finish_run(rpc, HEARTH_OK);
}
