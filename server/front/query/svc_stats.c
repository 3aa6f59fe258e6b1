/* svc_stats.c -- querier.v1: statistics of a tenant, and the rows that a query would read. */
#include "handlers.h"
#include "query/svc_querier.h"
#include "rpc/front_internal.h"

static enum hearth_status profile_stats(struct hearth_rpc *rpc)
{
    struct hearth_query query = hearth_rpc_query(rpc, 0, 0);
    struct hearth_profile_stats stats;

    HEARTH_TRY(hearth_query_profile_stats(&query, &stats, &rpc->err));

    /* Make the answer in the arena. */
    Types__V1__GetProfileStatsResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    types__v1__get_profile_stats_response__init(out);
    out->data_ingested = stats.any;
    out->oldest_profile_time = stats.oldest_ms;
    out->newest_profile_time = stats.newest_ms;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_get_profile_stats(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, profile_stats(rpc));
}

/* A row of these sources is one profile; a row of the others is a block of many profiles. */
static bool holds_single_profiles(enum hearth_source source)
{
    return source == HEARTH_SOURCE_PROFILE || source == HEARTH_SOURCE_LATE;
}

static bool fill_scopes(struct hearth_rpc *rpc, const struct hearth_analysis *analysis,
                        Querier__V1__AnalyzeQueryResponse *out)
{
    out->query_scopes =
        hearth_arena_array(&rpc->arena, HEARTH_N_SOURCES, sizeof out->query_scopes[0]);
    Querier__V1__QueryScope *bodies =
        hearth_arena_array(&rpc->arena, HEARTH_N_SOURCES, sizeof *bodies);
    if (out->query_scopes == NULL || bodies == NULL) {
        return false;
    }

    /* One scope for each source that the query reads. */
    for (int i = 0; i < HEARTH_N_SOURCES; i++) {
        enum hearth_source source = (enum hearth_source)i;
        const struct hearth_analyzed_source *read = &analysis->sources[i];
        if (read->n_legs == 0) {
            continue;
        }

        /* Count rows as profiles or as blocks. */
        Querier__V1__QueryScope *scope = &bodies[i];
        querier__v1__query_scope__init(scope);
        scope->component_type = hearth_rpc_text(rpc, hearth_str_c(hearth_source_name(source)));
        scope->component_count = (uint64_t)read->n_legs;
        scope->series_count = (uint64_t)read->n_series;
        *(holds_single_profiles(source) ? &scope->profile_count : &scope->block_count) =
            (uint64_t)read->n_rows;
        scope->profile_bytes = (uint64_t)read->n_bytes;
        out->query_scopes[out->n_query_scopes++] = scope;
    }

    return !rpc->arena.refused;
}

static enum hearth_status analyze(struct hearth_rpc *rpc)
{
    const Querier__V1__AnalyzeQueryRequest *in =
        (const Querier__V1__AnalyzeQueryRequest *)rpc->request;
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_analysis analysis;

    HEARTH_TRY(hearth_query_analyze(&query, hearth_str_c(in->query), &analysis, &rpc->err));

    /* Make the answer in the arena. */
    Querier__V1__AnalyzeQueryResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Querier__V1__QueryImpact *impact = hearth_arena_alloc(&rpc->arena, sizeof *impact);
    if (out == NULL || impact == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    querier__v1__analyze_query_response__init(out);
    querier__v1__query_impact__init(impact);
    if (!fill_scopes(rpc, &analysis, out)) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Sums of all sources. */
    impact->total_bytes_in_time_range = (uint64_t)analysis.n_bytes;
    impact->total_queried_series = (uint64_t)analysis.n_series;
    out->query_impact = impact;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_analyze_query(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, analyze(rpc));
}
