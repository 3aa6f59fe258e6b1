/* svc_timelines.c -- hearth.v1.QueryService: functions over time, and the values of a label. */
#include "handlers.h"
#include "query/selection.h"
#include "rpc/front_internal.h"

/* ---- FunctionTimeline ---- */

static bool make_points(struct hearth_rpc *rpc, const struct hearth_function_series *in,
                        Hearth__V1__FunctionSeries *out)
{
    Hearth__V1__FunctionPoint **points =
        hearth_arena_array(&rpc->arena, in->n_points, sizeof *points);
    Hearth__V1__FunctionPoint *bodies =
        hearth_arena_array(&rpc->arena, in->n_points, sizeof *bodies);
    if (points == NULL || bodies == NULL) {
        return false;
    }

    /* One message for each point. */
    for (size_t i = 0; i < in->n_points; i++) {
        hearth__v1__function_point__init(&bodies[i]);
        bodies[i].timestamp = in->points[i].ts_ms;
        bodies[i].self = in->points[i].self;
        bodies[i].total = in->points[i].total;
        points[i] = &bodies[i];
    }

    out->n_points = in->n_points;
    out->points = points;

    return true;
}

static enum hearth_status answer_timeline(struct hearth_rpc *rpc,
                                          const struct hearth_rpc_selection *selection,
                                          const struct hearth_function_series *series, size_t n)
{
    Hearth__V1__FunctionTimelineResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__FunctionSeries **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    Hearth__V1__FunctionSeries *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    if (out == NULL || list == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__function_timeline_response__init(out);

    /* One message for each series. */
    for (size_t i = 0; i < n; i++) {
        hearth__v1__function_series__init(&bodies[i]);
        bodies[i].function = hearth_rpc_text(rpc, series[i].function);
        bodies[i].n_labels = series[i].labels.n;
        list[i] = &bodies[i];
        if (bodies[i].function == NULL ||
            !hearth_rpc_labels(rpc, &series[i].labels, &bodies[i].labels) ||
            !make_points(rpc, &series[i], &bodies[i])) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }

    /* Fill the answer. */
    out->n_series = n;
    out->series = list;
    out->aggregation = selection->aggregation;
    out->unit = selection->unit;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

static enum hearth_status function_timeline(struct hearth_rpc *rpc)
{
    const Hearth__V1__FunctionTimelineRequest *in =
        (const Hearth__V1__FunctionTimelineRequest *)rpc->request;
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

    return answer_timeline(rpc, &selection, series, n);
}

void hearth_svc_function_timeline(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, function_timeline(rpc));
}

/* ---- LabelStats ---- */

static enum hearth_status label_stats(struct hearth_rpc *rpc)
{
    const Hearth__V1__LabelStatsRequest *in = (const Hearth__V1__LabelStatsRequest *)rpc->request;
    struct hearth_rpc_selection selection;
    struct hearth_label_stat *stats = NULL;
    size_t n = 0;
    int64_t n_all = 0;

    /* Read the request, and query. */
    HEARTH_TRY(hearth_rpc_selection(rpc, in->selection, &selection));
    const struct hearth_label_stats_spec spec = {.profile_type = selection.merge.profile_type,
                                                 .selector = selection.merge.selector,
                                                 .label = hearth_str_c(in->label),
                                                 .limit = in->limit};
    HEARTH_TRY(hearth_query_label_stats(&selection.query, &spec, &stats, &n, &n_all, &rpc->err));

    /* Make the answer in the arena. */
    Hearth__V1__LabelStatsResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__LabelStat **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    Hearth__V1__LabelStat *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    if (out == NULL || list == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__label_stats_response__init(out);
    for (size_t i = 0; i < n; i++) {
        hearth__v1__label_stat__init(&bodies[i]);
        bodies[i].value = hearth_rpc_text(rpc, stats[i].value);
        bodies[i].count = stats[i].n_profiles;
        bodies[i].sum = stats[i].sum;
        bodies[i].mean = stats[i].mean;
        bodies[i].deviation = stats[i].deviation;
        bodies[i].max = stats[i].max;
        bodies[i].min = stats[i].min;
        bodies[i].series = stats[i].n_series;
        list[i] = &bodies[i];
    }

    /* Fill the answer. */
    out->n_values = n;
    out->values = list;
    out->value_count = n_all;
    out->unit = selection.unit;
    rpc->answer = &out->base;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

void hearth_svc_label_stats(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, label_stats(rpc));
}
