/* svc_limits.c -- hearth.v1.AdminService: limits and settings of a single tenant. */
#include "hearth/engine/admin.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/message_map.h"
#include "rpc/messages.h"
#include "rpc/unary.h"

/* ---- limits ---- */

/* A value as the option is written; NULL, and the arena refuses, when there is no memory. */
static char *make_limit_text(struct hearth_rpc *rpc, const struct hearth_limit *limit,
                             int64_t value)
{
    struct hearth_buf text;

    assert(limit != NULL);
    hearth_buf_init(&text, 0);
    hearth_limit_format(limit, value, &text);
    rpc->arena.refused = rpc->arena.refused || hearth_buf_failed(&text);
    char *copy = hearth_rpc_text(rpc, hearth_buf_view(&text));
    hearth_buf_release(&text);

    return copy;
}

static void fill_limit_texts(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_admin_limit *limit = from;
    Hearth__V1__Limit *out = message;

    assert(limit->limit != NULL);
    out->name = hearth_rpc_text(rpc, hearth_str_c(limit->limit->name));
    out->value = make_limit_text(rpc, limit->limit, limit->value);
    out->server_value = make_limit_text(rpc, limit->limit, limit->server);
    if (rpc->front->options.option_help != NULL) {
        out->help =
            hearth_rpc_text(rpc, hearth_str_c(rpc->front->options.option_help(limit->limit->name)));
    }
}

HEARTH_MAP_TYPES(limit, struct hearth_admin_limit, Hearth__V1__Limit);
static const struct hearth_message_member limit_members[] = {
    HEARTH_MAP(limit, is_own, is_own),
    HEARTH_MAP(limit, value, number),
};
static const struct hearth_message_map limit_map =
    HEARTH_MESSAGE_MAP_AND(limit, hearth__v1__limit__descriptor, fill_limit_texts);

static enum hearth_status answer_limits(struct hearth_rpc *rpc, Hearth__V1__Limits *out)
{
    struct hearth_admin_limit *limits;
    size_t n;

    HEARTH_TRY(hearth_admin_limits(rpc->front->admin, hearth_query_server_limits(rpc->front->query),
                                   hearth_rpc_tenant(rpc), &rpc->arena, &limits, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &limit_map, limits, n, out, limits);

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_admin_get_limits, Hearth__V1__GetLimitsRequest, Hearth__V1__Limits)
{
    return answer_limits(rpc, out);
}

HEARTH_UNARY(hearth_svc_admin_set_limits, Hearth__V1__SetLimitsRequest, Hearth__V1__Limits)
{
    const struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_admin_limit_change *changes =
        hearth_arena_array(&rpc->arena, in->n_changes, sizeof *changes);
    if (changes == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < in->n_changes; i++) {
        changes[i] = (struct hearth_admin_limit_change){hearth_str_c(in->changes[i]->name),
                                                        hearth_str_c(in->changes[i]->value)};
    }

    HEARTH_TRY(hearth_admin_limits_set(&call, changes, in->n_changes, &rpc->err));

    return answer_limits(rpc, out);
}

/* ---- settings ---- */

static void answer_settings(struct hearth_rpc *rpc, Hearth__V1__TenantSettings *out)
{
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
}

HEARTH_UNARY(hearth_svc_admin_get_tenant_settings, Hearth__V1__GetTenantSettingsRequest,
             Hearth__V1__TenantSettings)
{
    answer_settings(rpc, out);
    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_admin_set_tenant_settings, Hearth__V1__TenantSettings,
             Hearth__V1__TenantSettings)
{
    const struct hearth_call call = hearth_rpc_call(rpc);
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
                           "gauge_aggregation is %d; it must be 1 (sum), 2 (mean) or 0 (unset)",
                           (int)in->gauge_aggregation);
    }

    HEARTH_TRY(hearth_admin_gauges_set(&call, aggregation, &rpc->err));

    answer_settings(rpc, out);

    return HEARTH_OK;
}
