/* svc_limits.c -- hearth.v1.AdminService: limits and settings of a single tenant. */
#include "hearth/engine/admin.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"

/* ---- limits ---- */

static char *text_of(struct hearth_rpc *rpc, const struct hearth_limit *limit, int64_t value)
{
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    hearth_limit_format(limit, value, &text);

    char *copy = hearth_rpc_text(rpc, hearth_buf_view(&text));

    hearth_buf_release(&text);

    return copy;
}

static enum hearth_status answer_limits(struct hearth_rpc *rpc)
{
    struct hearth_admin_limit *limits;
    size_t n;

    HEARTH_TRY(hearth_admin_limits(rpc->front->admin, hearth_query_server_limits(rpc->front->query),
                                   hearth_rpc_tenant(rpc), &rpc->arena, &limits, &n, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__Limits *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__Limit **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    Hearth__V1__Limit *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    if (out == NULL || list == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__limits__init(out);

    for (size_t i = 0; i < n; i++) {
        hearth__v1__limit__init(&bodies[i]);
        bodies[i].name = hearth_rpc_text(rpc, hearth_str_c(limits[i].limit->name));
        bodies[i].value = text_of(rpc, limits[i].limit, limits[i].value);
        bodies[i].server_value = text_of(rpc, limits[i].limit, limits[i].server);
        bodies[i].is_own = limits[i].is_own;
        bodies[i].number = limits[i].value;
        list[i] = &bodies[i];
    }

    out->n_limits = n;
    out->limits = list;
    rpc->answer = &out->base;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

void hearth_svc_admin_get_limits(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, answer_limits(rpc));
}

static enum hearth_status set_limits(struct hearth_rpc *rpc)
{
    const Hearth__V1__SetLimitsRequest *in = (const Hearth__V1__SetLimitsRequest *)rpc->request;
    struct hearth_admin_limit_change *changes =
        hearth_arena_array(&rpc->arena, in->n_changes, sizeof *changes);
    if (changes == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < in->n_changes; i++) {
        changes[i] = (struct hearth_admin_limit_change){hearth_str_c(in->changes[i]->name),
                                                        hearth_str_c(in->changes[i]->value)};
    }

    HEARTH_TRY(hearth_admin_limits_set(rpc->front->admin, hearth_rpc_tenant(rpc), changes,
                                       in->n_changes, &rpc->arena, &rpc->err));

    return answer_limits(rpc);
}

void hearth_svc_admin_set_limits(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, set_limits(rpc));
}

/* ---- settings ---- */

static enum hearth_status answer_settings(struct hearth_rpc *rpc)
{
    Hearth__V1__TenantSettings *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__tenant_settings__init(out);

    switch (hearth_query_gauge_aggregation(rpc->front->query, hearth_rpc_tenant(rpc))) {
    case HEARTH_GAUGES_UNSET:
        break;
    case HEARTH_GAUGES_SUM:
        out->gauge_aggregation = HEARTH__V1__AGGREGATION__AGGREGATION_SUM;
        break;
    case HEARTH_GAUGES_MEAN:
        out->gauge_aggregation = HEARTH__V1__AGGREGATION__AGGREGATION_MEAN;
        break;
    }

    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_admin_get_tenant_settings(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, answer_settings(rpc));
}

static enum hearth_status set_settings(struct hearth_rpc *rpc)
{
    const Hearth__V1__TenantSettings *in = (const Hearth__V1__TenantSettings *)rpc->request;
    enum hearth_gauge_aggregation aggregation;

    switch (in->gauge_aggregation) {
    case HEARTH__V1__AGGREGATION__AGGREGATION_UNSPECIFIED:
        aggregation = HEARTH_GAUGES_UNSET;
        break;
    case HEARTH__V1__AGGREGATION__AGGREGATION_SUM:
        aggregation = HEARTH_GAUGES_SUM;
        break;
    case HEARTH__V1__AGGREGATION__AGGREGATION_MEAN:
        aggregation = HEARTH_GAUGES_MEAN;
        break;
    default:
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "gauge_aggregation is %d; there are sum (1), mean (2) and neither (0)",
                           (int)in->gauge_aggregation);
    }

    HEARTH_TRY(
        hearth_admin_gauges_set(rpc->front->admin, hearth_rpc_tenant(rpc), aggregation, &rpc->err));

    return answer_settings(rpc);
}

void hearth_svc_admin_set_tenant_settings(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, set_settings(rpc));
}
