/* svc_changes.c -- hearth.v1.QueryService: what changed beyond noise in any service. */
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "handlers.h"
#include "query/query_maps.h"
#include "rpc/gauges.h"
#include "rpc/unary.h"

#define DEFAULT_CHANGES 100

HEARTH_MAP_TYPES(row, struct hearth_service_change, Hearth__V1__ServiceChange);
static const struct hearth_message_member row_members[] = {
    HEARTH_MAP(row, service, service),
    HEARTH_MAP(row, profile_type, profile_type),
    HEARTH_MAP(row, unit, unit),
    HEARTH_MAP(row, totals[0], left_total),
    HEARTH_MAP(row, totals[1], right_total),
    HEARTH_MAP_ONE(row, self, function, &hearth_function_change_map),
    HEARTH_MAP(row, cost, cost),
    HEARTH_MAP_ONE(row, total, total, &hearth_total_change_map),
    HEARTH_MAP(row, of_total, of_total),
};
static const struct hearth_message_map row_map =
    HEARTH_MESSAGE_MAP(row, hearth__v1__service_change__descriptor);

HEARTH_UNARY(hearth_svc_changes, Hearth__V1__ChangesRequest, Hearth__V1__ChangesResponse)
{
    struct hearth_query base = hearth_rpc_query(rpc, in->base_start, in->base_end);
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_changes changes;
    struct hearth_explanation plan = {.is_summed = true};

    if (in->limit < 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "limit %lld is negative",
                           (long long)in->limit);
    }

    const struct hearth_changes_spec spec = {
        .selector = hearth_str_c(in->label_selector),
        .profile_type = hearth_str_c(in->profile_type),
        .mean = hearth_rpc_gauge_aggregation(rpc) != HEARTH_GAUGES_SUM,
        .limit = in->limit == 0 ? DEFAULT_CHANGES : in->limit,
    };

    base.plan = query.plan = in->explain ? &plan : NULL;
    HEARTH_TRY(hearth_query_changes(&base, &query, &spec, &changes, &rpc->err));
    if (in->explain) {
        out->plan = hearth_rpc_map(rpc, &hearth_explanation_map, &plan);
        return HEARTH_OK;
    }
    HEARTH_RPC_LIST(rpc, &row_map, changes.rows, changes.n_rows, out, changes);
    out->change_count = changes.n_changed;
    out->judged_functions = changes.n_judged;
    out->judged_totals = changes.n_judged_totals;
    out->compared = changes.n_compared;
    out->unjudged = changes.n_unjudged;
    out->one_sided = changes.n_one_sided;
    out->left_out = changes.n_left_out;

    return HEARTH_OK;
}
