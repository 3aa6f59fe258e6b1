/* svc_stats.c -- querier.v1: statistics of a tenant, and the rows that a query would read. */
#include "handlers.h"
#include "query/svc_querier.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

HEARTH_MAP_TYPES(stats, struct hearth_profile_stats, Types__V1__GetProfileStatsResponse);
static const struct hearth_message_member stats_members[] = {
    HEARTH_MAP(stats, any, data_ingested),
    HEARTH_MAP(stats, oldest_ms, oldest_profile_time),
    HEARTH_MAP(stats, newest_ms, newest_profile_time),
};
static const struct hearth_message_map stats_map =
    HEARTH_MESSAGE_MAP(stats, types__v1__get_profile_stats_response__descriptor);

HEARTH_UNARY(hearth_svc_get_profile_stats, Types__V1__GetProfileStatsRequest,
             Types__V1__GetProfileStatsResponse)
{
    struct hearth_query query = hearth_rpc_query(rpc, 0, 0);
    struct hearth_profile_stats stats;

    HEARTH_TRY(hearth_query_profile_stats(&query, &stats, &rpc->err));
    hearth_rpc_map_into(rpc, &stats_map, &stats, out);

    return HEARTH_OK;
}

/* A row of these sources is one profile; a row of the others is a block of many profiles. */
static bool holds_single_profiles(enum hearth_source source)
{
    return source == HEARTH_SOURCE_PROFILE || source == HEARTH_SOURCE_LATE;
}

/* The amount that a query reads from one source, counted in profiles or in blocks. */
struct scope {
    const char *component;
    int64_t n_components, n_series, n_profiles, n_blocks, n_bytes;
};

HEARTH_MAP_TYPES(scope, struct scope, Querier__V1__QueryScope);
static const struct hearth_message_member scope_members[] = {
    HEARTH_MAP(scope, component, component_type), HEARTH_MAP(scope, n_components, component_count),
    HEARTH_MAP(scope, n_series, series_count),    HEARTH_MAP(scope, n_profiles, profile_count),
    HEARTH_MAP(scope, n_blocks, block_count),     HEARTH_MAP(scope, n_bytes, profile_bytes),
};
static const struct hearth_message_map scope_map =
    HEARTH_MESSAGE_MAP(scope, querier__v1__query_scope__descriptor);

HEARTH_MAP_TYPES(impact, struct hearth_analysis, Querier__V1__QueryImpact);
static const struct hearth_message_member impact_members[] = {
    HEARTH_MAP(impact, n_bytes, total_bytes_in_time_range),
    HEARTH_MAP(impact, n_series, total_queried_series),
};
static const struct hearth_message_map impact_map =
    HEARTH_MESSAGE_MAP(impact, querier__v1__query_impact__descriptor);

HEARTH_UNARY(hearth_svc_analyze_query, Querier__V1__AnalyzeQueryRequest,
             Querier__V1__AnalyzeQueryResponse)
{
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_analysis analysis;
    struct scope scopes[HEARTH_N_SOURCES];
    size_t n = 0;

    HEARTH_TRY(hearth_query_analyze(&query, hearth_str_c(in->query), &analysis, &rpc->err));

    /* One scope for each source that the query reads. */
    for (int i = 0; i < HEARTH_N_SOURCES; i++) {
        const struct hearth_analyzed_source *read = &analysis.sources[i];
        bool is_single = holds_single_profiles((enum hearth_source)i);
        if (read->n_legs > 0) {
            scopes[n++] = (struct scope){
                .component = hearth_source_name((enum hearth_source)i),
                .n_components = read->n_legs,
                .n_series = read->n_series,
                .n_profiles = is_single ? read->n_rows : 0,
                .n_blocks = is_single ? 0 : read->n_rows,
                .n_bytes = read->n_bytes,
            };
        }
    }

    assert(n <= HEARTH_N_SOURCES);

    /* The scopes, and sums of all sources. */
    HEARTH_RPC_LIST(rpc, &scope_map, scopes, n, out, query_scopes);
    out->query_impact = hearth_rpc_map(rpc, &impact_map, &analysis);

    return HEARTH_OK;
}
