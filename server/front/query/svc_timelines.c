/* svc_timelines.c -- hearth.v1.QueryService: functions over time, and the values of a label. */
#include "handlers.h"
#include "query/selection.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

/* ---- FunctionTimeline ---- */

HEARTH_MAP_TYPES(point, struct hearth_function_point, Hearth__V1__FunctionPoint);
static const struct hearth_message_member point_members[] = {
    HEARTH_MAP(point, ts_ms, timestamp),
    HEARTH_MAP(point, self, self),
    HEARTH_MAP(point, total, total),
};
static const struct hearth_message_map point_map =
    HEARTH_MESSAGE_MAP(point, hearth__v1__function_point__descriptor);

HEARTH_MAP_TYPES(series, struct hearth_function_series, Hearth__V1__FunctionSeries);
static const struct hearth_message_member series_members[] = {
    HEARTH_MAP(series, function, function),
    HEARTH_MAP_LABELS(series, labels, labels),
    HEARTH_MAP_LIST(series, points, n_points, points, &point_map),
};
static const struct hearth_message_map series_map =
    HEARTH_MESSAGE_MAP(series, hearth__v1__function_series__descriptor);

HEARTH_UNARY(hearth_svc_function_timeline, Hearth__V1__FunctionTimelineRequest,
             Hearth__V1__FunctionTimelineResponse)
{
    struct hearth_rpc_selection selection;

    /* Read the request. */
    HEARTH_TRY(hearth_rpc_selection(rpc, in->selection, &selection));
    if (in->limit < 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "limit is %lld; 0 means all",
                           (long long)in->limit);
    }

    struct hearth_function_timeline_spec spec = {
        .merge = selection.merge,
        .functions = hearth_rpc_strs(rpc, in->functions, in->n_functions),
        .n_functions = in->n_functions,
        .step_seconds = in->step,
        .group_by = hearth_rpc_strs(rpc, in->group_by, in->n_group_by),
        .n_group_by = in->n_group_by,
        .limit = in->limit,
    };
    if (spec.functions == NULL || spec.group_by == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Query and answer. */
    struct hearth_function_series *series;
    size_t n;
    HEARTH_TRY(hearth_query_function_timeline(&selection.query, &spec, &series, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &series_map, series, n, out, series);
    out->aggregation = selection.aggregation;
    out->unit = selection.unit;

    return HEARTH_OK;
}

/* ---- LabelStats ---- */

HEARTH_MAP_TYPES(stat, struct hearth_label_stat, Hearth__V1__LabelStat);
static const struct hearth_message_member stat_members[] = {
    HEARTH_MAP(stat, value, value), HEARTH_MAP(stat, n_profiles, count),
    HEARTH_MAP(stat, sum, sum),     HEARTH_MAP(stat, mean, mean),
    HEARTH_MAP(stat, max, max),     HEARTH_MAP(stat, deviation, deviation),
    HEARTH_MAP(stat, min, min),     HEARTH_MAP(stat, n_series, series),
};
static const struct hearth_message_map stat_map =
    HEARTH_MESSAGE_MAP(stat, hearth__v1__label_stat__descriptor);

HEARTH_UNARY(hearth_svc_label_stats, Hearth__V1__LabelStatsRequest, Hearth__V1__LabelStatsResponse)
{
    struct hearth_rpc_selection selection;
    struct hearth_label_stat *stats = NULL;
    size_t n = 0;
    int64_t n_all = 0;

    /* Read the request. */
    HEARTH_TRY(hearth_rpc_selection(rpc, in->selection, &selection));
    const struct hearth_label_stats_spec spec = {.profile_type = selection.merge.profile_type,
                                                 .selector = selection.merge.selector,
                                                 .label = hearth_str_c(in->label),
                                                 .limit = in->limit};

    /* Query and answer. */
    HEARTH_TRY(hearth_query_label_stats(&selection.query, &spec, &stats, &n, &n_all, &rpc->err));
    HEARTH_RPC_LIST(rpc, &stat_map, stats, n, out, values);
    out->value_count = n_all;
    out->unit = selection.unit;

    return HEARTH_OK;
}
