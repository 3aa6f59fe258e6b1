/* svc_querier.c -- querier.v1: profile types, labels and series that exist. */
#include "query/svc_querier.h"

#include "hearth/pb/querier/v1/querier.pb-c.h"

#include "handlers.h"
#include "query/packed_series.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

/* ---- profile types ---- */

struct listed_type {
    struct hearth_str id;
    struct hearth_profile_type parts;
};

HEARTH_MAP_TYPES(type, struct listed_type, Types__V1__ProfileType);
static const struct hearth_message_member type_members[] = {
    HEARTH_MAP(type, id, id),
    HEARTH_MAP(type, parts.name, name),
    HEARTH_MAP(type, parts.sample_type, sample_type),
    HEARTH_MAP(type, parts.sample_unit, sample_unit),
    HEARTH_MAP(type, parts.period_type, period_type),
    HEARTH_MAP(type, parts.period_unit, period_unit),
};
static const struct hearth_message_map type_map =
    HEARTH_MESSAGE_MAP(type, types__v1__profile_type__descriptor);

HEARTH_UNARY(hearth_svc_profile_types, Querier__V1__ProfileTypesRequest,
             Querier__V1__ProfileTypesResponse)
{
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_str *ids;
    size_t n_ids, n = 0;

    HEARTH_TRY(hearth_query_profile_types(&query, &ids, &n_ids, &rpc->err));
    struct listed_type *types = hearth_arena_array(&rpc->arena, n_ids, sizeof *types);
    if (types == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* A stored type that cannot be parsed is left out: the list does not fail because of it. */
    for (size_t i = 0; i < n_ids; i++) {
        types[n].id = ids[i];
        n += hearth_profile_type_parse(ids[i], &types[n].parts, NULL) == HEARTH_OK;
    }

    assert(n <= n_ids);
    HEARTH_RPC_LIST(rpc, &type_map, types, n, out, profile_types);

    return HEARTH_OK;
}

/* ---- labels ---- */

HEARTH_UNARY(hearth_svc_label_names, Types__V1__LabelNamesRequest, Types__V1__LabelNamesResponse)
{
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    const struct hearth_label_request request = {
        .selectors = hearth_rpc_strs(rpc, in->matchers, in->n_matchers),
        .n_selectors = in->n_matchers,
        .legacy_only = !rpc->utf8_label_names,
    };
    struct hearth_str *names;
    size_t n;

    if (request.selectors == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    HEARTH_TRY(hearth_query_label_names(&query, &request, &names, &n, &rpc->err));
    out->names = hearth_rpc_texts(rpc, names, n);
    out->n_names = n;

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_label_values, Types__V1__LabelValuesRequest, Types__V1__LabelValuesResponse)
{
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    const struct hearth_label_request request = {
        .selectors = hearth_rpc_strs(rpc, in->matchers, in->n_matchers),
        .n_selectors = in->n_matchers,
    };
    struct hearth_str *values;
    size_t n;

    if (request.selectors == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    HEARTH_TRY(hearth_query_label_values(&query, hearth_str_c(in->name), &request, &values, &n,
                                         &rpc->err));
    out->names = hearth_rpc_texts(rpc, values, n);
    out->n_names = n;

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_series, Querier__V1__SeriesRequest, Querier__V1__SeriesResponse)
{
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    const struct hearth_label_request request = {
        .selectors = hearth_rpc_strs(rpc, in->matchers, in->n_matchers),
        .n_selectors = in->n_matchers,
        .names = hearth_rpc_strs(rpc, in->label_names, in->n_label_names),
        .n_names = in->n_label_names,
        .legacy_only = !rpc->utf8_label_names,
    };
    struct hearth_labels *sets;
    size_t n;

    if (request.selectors == NULL || request.names == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    HEARTH_TRY(hearth_query_series(&query, &request, &sets, &n, &rpc->err));
    if (rpc->codec == HEARTH_RPC_JSON) {
        HEARTH_RPC_LIST(rpc, &hearth_labels_map, sets, n, out, labels_set);
    } else {
        hearth_pack_label_sets(&rpc->packed, sets, n);
        rpc->is_packed = true;
    }

    return HEARTH_OK;
}
