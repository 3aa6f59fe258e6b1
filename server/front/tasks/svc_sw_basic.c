/*
 * svc_sw_basic.c -- what SkyWalking's agents send and ask that profiling has no use for: accepted, so that they go on,
 * and not kept. Their answers are empty: no commands.
 */
#include "hearth/base/metrics.h"
#include "hearth/pb/skywalking/v3/management.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"

/* There is no configuration for agents: nothing has ever changed. */
void hearth_svc_sw_fetch_configurations(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, HEARTH_OK);
}

void hearth_svc_sw_jvm_metrics(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, HEARTH_OK);
}

void hearth_svc_sw_access_log(struct hearth_rpc *rpc)
{
    if (rpc->request == NULL) {
        hearth_rpc_end(rpc, HEARTH_OK);
        return;
    }
    hearth_rpc_next(rpc);
}

void hearth_svc_sw_events(struct hearth_rpc *rpc)
{
    const Skywalking__V3__Event *event = (const Skywalking__V3__Event *)rpc->request;
    if (event == NULL) {
        hearth_rpc_end(rpc, HEARTH_OK);
        return;
    }
    bool is_error = event->type == SKYWALKING__V3__TYPE__Error;
    hearth_metric_add_label(HEARTH_M_AGENT_EVENTS,
                            is_error ? HEARTH_STR("error") : HEARTH_STR("normal"), 1);
    hearth_rpc_next(rpc);
}
