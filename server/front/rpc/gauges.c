/* gauges.c -- sum or mean of a gauge: the tenant's setting, and the header that says so. */
#include "rpc/gauges.h"

#include "hearth/model/profile_type.h"

#include "rpc/front_internal.h"

#define HEADER "hearth-aggregation"

static bool has_aggregation_header(const struct hearth_rpc *rpc)
{
    for (size_t i = 0; i < rpc->n_headers; i++) {
        if (strcmp(rpc->headers[i].name, HEADER) == 0) {
            return true;
        }
    }
    return false;
}

enum hearth_gauge_aggregation hearth_rpc_gauge_aggregation(const struct hearth_rpc *rpc)
{
    enum hearth_gauge_aggregation all = HEARTH_GAUGES_UNSET;

    for (size_t i = 0; i < rpc->caller.tenants.n; i++) {
        enum hearth_gauge_aggregation own =
            hearth_query_gauge_aggregation(rpc->front->query, rpc->caller.tenants.v[i].tenant);
        if (i > 0 && own != all) {
            return HEARTH_GAUGES_UNSET;
        }
        all = own;
    }

    return all;
}

bool hearth_rpc_gauge_mean(struct hearth_rpc *rpc, const char *profile_type)
{
    struct hearth_profile_type type;
    struct hearth_err err = HEARTH_ERR_INIT;

    if (hearth_profile_type_parse(hearth_str_c(profile_type), &type, &err) != HEARTH_OK ||
        !hearth_profile_type_is_gauge(&type)) {
        return false;
    }

    bool mean = hearth_rpc_gauge_aggregation(rpc) == HEARTH_GAUGES_MEAN;
    if (!has_aggregation_header(rpc)) { /* a diff calls this for each of its two sides */
        hearth_rpc_add_header(rpc, HEADER, mean ? "mean" : "sum");
    }

    return mean;
}
