/* svc_selections.c -- hearth.v1: merged stack traces, diffs and totals over time of a Selection. */
#include "handlers.h"
#include "query/noise_answer.h"
#include "query/query_maps.h"
#include "query/selection.h"
#include "rpc/unary.h"

/*
 * Tags of the fields that follow a packed pprof. The other fields of MergeResponse have the numbers
 * of SelectMergeStacktracesResponse.
 */
#define RESPONSE_AGGREGATION_TAG ((6u << 3) | 0u)
#define RESPONSE_UNIT_TAG        ((7u << 3) | 2u)

HEARTH_UNARY(hearth_svc_merge, Hearth__V1__MergeRequest, Hearth__V1__MergeResponse)
{
    struct hearth_rpc_selection selection;

    /* Read the request. */
    HEARTH_TRY(hearth_rpc_selection(rpc, in->selection, &selection));
    selection.merge.has_max_nodes = in->max_nodes != 0;
    selection.merge.max_nodes = in->max_nodes;
    HEARTH_TRY(hearth_rpc_go_stacks(rpc, in->go_stacks, &selection.merge.go_stacks));
    if (selection.merge.go_stacks == HEARTH_GO_REPAIRED &&
        in->format == QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_PPROF) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "go_stacks: pprof has stacks as they are stored");
    }

    if (in->go_pgo != NULL) {
        selection.merge.go_pgo = true;
        selection.merge.keep_locations = in->go_pgo->keep_locations;
        selection.merge.aggregate_callees = in->go_pgo->aggregate_callees;
    }

    /* Query. */
    Querier__V1__SelectMergeStacktracesResponse merged;
    querier__v1__select_merge_stacktraces_response__init(&merged);
    HEARTH_TRY(hearth_rpc_merge(rpc, &selection.query, &selection.merge, in->format, &merged));

    assert(rpc->is_packed == (in->format == QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_PPROF));

    /* A packed pprof gets the two remaining fields appended. */
    if (rpc->is_packed) {
        struct hearth_str unit = hearth_str_c(selection.unit);
        hearth_buf_varint(&rpc->packed, RESPONSE_AGGREGATION_TAG);
        hearth_buf_varint(&rpc->packed, (uint64_t)selection.aggregation);
        hearth_buf_varint(&rpc->packed, RESPONSE_UNIT_TAG);
        hearth_buf_varint(&rpc->packed, unit.n);
        hearth_buf_str(&rpc->packed, unit);
        return HEARTH_OK;
    }

    /* Otherwise move the fields to the answer of this method. */
    out->flamegraph = merged.flamegraph;
    out->tree = merged.tree;
    out->dot = merged.dot;
    out->aggregation = selection.aggregation;
    out->unit = selection.unit;

    return HEARTH_OK;
}

static enum hearth_status read_selected_side(struct hearth_rpc *rpc, const char *name,
                                             const Hearth__V1__Selection *in, int64_t max_nodes,
                                             struct hearth_rpc_selection *ret)
{
    enum hearth_status status = hearth_rpc_selection(rpc, in, ret);

    assert(name != NULL);
    if (status != HEARTH_OK) {
        hearth_err_prefix(&rpc->err, "%s", name);
        return status;
    }

    ret->merge.has_max_nodes = max_nodes != 0;
    ret->merge.max_nodes = max_nodes;

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_diff_selections, Hearth__V1__DiffRequest, Hearth__V1__DiffResponse)
{
    struct hearth_rpc_selection left, right;
    struct hearth_flame_diff graph = {0};
    struct hearth_diff_noise noise;
    struct hearth_explanation plan = {0};

    /* Read both sides. */
    HEARTH_TRY(read_selected_side(rpc, "left", in->left, in->max_nodes, &left));
    HEARTH_TRY(read_selected_side(rpc, "right", in->right, in->max_nodes, &right));

    /* Both sides are stored or repaired alike. */
    HEARTH_TRY(hearth_rpc_go_stacks(rpc, in->go_stacks, &left.merge.go_stacks));
    right.merge.go_stacks = left.merge.go_stacks;

    /* Values of different kinds cannot be compared. */
    if (left.aggregation != right.aggregation || strcmp(left.unit, right.unit) != 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "left and right differ in unit or aggregation: nothing to compare");
    }

    left.query.plan = right.query.plan = in->explain ? &plan : NULL;
    HEARTH_TRY(hearth_query_diff(&left.query, &left.merge, &right.query, &right.merge,
                                 in->noise ? &noise : NULL, &graph, &rpc->err));
    if (in->explain) {
        out->plan = hearth_rpc_map(rpc, &hearth_explanation_map, &plan);
        return HEARTH_OK;
    }

    /* Fill the answer. */
    out->flamegraph = hearth_rpc_map(rpc, &hearth_flame_diff_map, &graph);
    out->aggregation = left.aggregation;
    out->unit = left.unit;
    out->noise = in->noise ? hearth_rpc_diff_noise(rpc, &graph, &noise) : NULL;

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_timeline, Hearth__V1__TimelineRequest, Hearth__V1__TimelineResponse)
{
    struct hearth_rpc_selection selection;

    /* Read the request. */
    HEARTH_TRY(hearth_rpc_selection(rpc, in->selection, &selection));
    if (!hearth_profile_filter_is_empty(&selection.merge.profiles)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "selection.profile_ids, span_ids and trace_ids cannot filter a "
                           "timeline: use Merge or FunctionTimeline");
    }

    if (in->limit < 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "limit %lld is negative",
                           (long long)in->limit);
    }

    struct hearth_timeseries_spec spec = {
        .profile_type = selection.merge.profile_type,
        .selector = selection.merge.selector,
        .stacks = selection.merge.stacks,
        .group_by = hearth_rpc_strs(rpc, in->group_by, in->n_group_by),
        .n_group_by = in->n_group_by,
        .step_seconds = in->step,
        .average = in->average || selection.merge.mean,
        .limit = in->limit,
        .exemplars = in->exemplars,
    };
    if (spec.group_by == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Query. */
    struct hearth_timeseries *series;
    size_t n;
    HEARTH_TRY(hearth_query_timeseries(&selection.query, &spec, &series, &n, &rpc->err));

    /* Fill the answer. */
    HEARTH_RPC_LIST(rpc, &hearth_timeseries_map, series, n, out, series);
    out->aggregation = spec.average ? HEARTH__V1__AGGREGATION__AGGREGATION_MEAN
                                    : HEARTH__V1__AGGREGATION__AGGREGATION_SUM;
    out->unit = selection.unit;

    return HEARTH_OK;
}
