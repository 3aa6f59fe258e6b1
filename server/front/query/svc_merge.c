/* svc_merge.c -- querier.v1: merged stack traces, pprof, and totals over time. */
#include "hearth/base/varint.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"

#include "handlers.h"
#include "query/packed_series.h"
#include "query/query_maps.h"
#include "query/svc_querier.h"
#include "rpc/gauges.h"
#include "rpc/unary.h"

/* Tags of the two envelopes that answer_merged_pprof writes around a packed profile. */
#define RESPONSE_PPROF_TAG ((5u << 3) | 2u) /* SelectMergeStacktracesResponse.pprof */
#define PPROF_PROFILE_TAG  ((1u << 3) | 2u) /* PprofProfile.profile */

/*
 * Reads call_site as texts that borrow from the request. go_pgo is copied to *pgo; it is ignored
 * if pgo is NULL, as for formats other than pprof.
 */
static enum hearth_status read_stack_selector(struct hearth_rpc *rpc,
                                              const Types__V1__StackTraceSelector *in,
                                              struct hearth_merge_spec *pgo,
                                              const struct hearth_str **ret, size_t *ret_n)
{
    *ret = NULL;
    *ret_n = 0;
    if (in == NULL) {
        return HEARTH_OK;
    }

    if (in->go_pgo != NULL && pgo != NULL) {
        pgo->go_pgo = true;
        pgo->keep_locations = in->go_pgo->keep_locations;
        pgo->aggregate_callees = in->go_pgo->aggregate_callees;
    }

    /* Read the call site. */
    assert(in->n_call_site == 0 || in->call_site != NULL);
    struct hearth_str *names = hearth_arena_array(&rpc->arena, in->n_call_site, sizeof *names);
    if (names == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < in->n_call_site; i++) {
        names[i] = hearth_str_c(in->call_site[i]->name);
    }

    *ret = names;
    *ret_n = in->n_call_site;

    return HEARTH_OK;
}

/* ---- formats of merged stack traces ---- */

static enum hearth_status answer_merged_flamegraph(struct hearth_rpc *rpc,
                                                   const struct hearth_query *query,
                                                   const struct hearth_merge_spec *spec,
                                                   Querier__V1__SelectMergeStacktracesResponse *out)
{
    struct hearth_flamegraph graph = {0};

    HEARTH_TRY(hearth_query_flamegraph(query, spec, &graph, &rpc->err));
    out->flamegraph = hearth_rpc_map(rpc, &hearth_flamegraph_map, &graph);

    return HEARTH_OK;
}

static enum hearth_status answer_merged_tree(struct hearth_rpc *rpc,
                                             const struct hearth_query *query,
                                             const struct hearth_merge_spec *spec,
                                             Querier__V1__SelectMergeStacktracesResponse *out)
{
    struct hearth_buf tree;

    hearth_buf_init(&tree, 0);

    /* The tree is copied to the arena, which the answer borrows from. */
    enum hearth_status status = hearth_query_tree(query, spec, &tree, &rpc->err);
    if (status == HEARTH_OK) {
        assert(!hearth_buf_failed(&tree)); /* the engine has checked it */
        struct hearth_str copy = hearth_arena_str(&rpc->arena, hearth_buf_view(&tree));
        out->tree = (ProtobufCBinaryData){copy.n, (uint8_t *)(uintptr_t)copy.p};
    }

    hearth_buf_release(&tree);

    return status;
}

/* The profile is packed already: only its two envelopes are written around it. */
static enum hearth_status answer_merged_pprof(struct hearth_rpc *rpc,
                                              const struct hearth_query *query,
                                              const struct hearth_merge_spec *spec)
{
    struct hearth_buf profile, head;

    assert(rpc->packed.n == 0);
    hearth_buf_init(&profile, 0);
    hearth_buf_init(&head, 0);
    enum hearth_status status = hearth_query_pprof(query, spec, &profile, &rpc->err);
    if (status == HEARTH_OK) {
        hearth_buf_varint(&head, PPROF_PROFILE_TAG);
        hearth_buf_varint(&head, profile.n);
        hearth_buf_varint(&rpc->packed, RESPONSE_PPROF_TAG);
        hearth_buf_varint(&rpc->packed, head.n + profile.n);
        hearth_buf_str(&rpc->packed, hearth_buf_view(&head));
        hearth_buf_str(&rpc->packed, hearth_buf_view(&profile));
        rpc->is_packed = true;

        /* A part that is missing from the envelope makes the whole answer unreadable. */
        rpc->packed.failed = rpc->packed.failed || hearth_buf_failed(&head);
    }

    hearth_buf_release(&head);
    hearth_buf_release(&profile);

    return status;
}

static enum hearth_status answer_merged_dot(struct hearth_rpc *rpc,
                                            const struct hearth_query *query,
                                            const struct hearth_merge_spec *spec,
                                            Querier__V1__SelectMergeStacktracesResponse *out)
{
    struct hearth_buf dot;

    hearth_buf_init(&dot, 0);
    enum hearth_status status = hearth_rpc_dot(rpc, query, spec, &dot);
    if (status == HEARTH_OK) {
        assert(!hearth_buf_failed(&dot)); /* the engine has checked it */
        out->dot = hearth_rpc_text(rpc, hearth_buf_view(&dot));
    }

    hearth_buf_release(&dot);

    return status;
}

enum hearth_status hearth_rpc_merge_spec(struct hearth_rpc *rpc,
                                         const Querier__V1__SelectMergeStacktracesRequest *in,
                                         bool is_pprof, struct hearth_merge_spec *ret)
{
    assert(in != NULL && ret != NULL);
    if (in->n_span_selector > 0 && in->n_trace_id_selector > 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "span_selector and trace_id_selector exclude each other");
    }

    /* Read the scalar fields. */
    struct hearth_merge_spec spec = {
        .profile_type = hearth_str_c(in->profile_typeid),
        .selector = hearth_str_c(in->label_selector),
        .mean = hearth_rpc_gauge_mean(rpc, in->profile_typeid),
        .empty_names = true,
        .go_stacks = HEARTH_GO_OF_TENANT,
        .has_max_nodes = in->max_nodes_presence_case != 0,
        .max_nodes = in->max_nodes_presence_case != 0 ? in->max_nodes : 0,
    };

    /* Read the filters. */
    HEARTH_TRY(hearth_rpc_profile_filter(
        rpc,
        (struct hearth_rpc_ids){"profile_id_selector", in->profile_id_selector,
                                in->n_profile_id_selector, false},
        (struct hearth_rpc_ids){"span_selector", in->span_selector, in->n_span_selector, false},
        (struct hearth_rpc_ids){"trace_id_selector", in->trace_id_selector, in->n_trace_id_selector,
                                false},
        &spec.profiles));
    HEARTH_TRY(read_stack_selector(rpc, in->stack_trace_selector, is_pprof ? &spec : NULL,
                                   &spec.stacks.call_site, &spec.stacks.n_call_site));
    *ret = spec;

    return HEARTH_OK;
}

enum hearth_status hearth_rpc_dot(struct hearth_rpc *rpc, const struct hearth_query *query,
                                  const struct hearth_merge_spec *spec, struct hearth_buf *out)
{
    assert(query != NULL && spec != NULL && out != NULL);

    int64_t n = spec->has_max_nodes ? spec->max_nodes : 0;
    return hearth_query_dot(query, spec, n, out, &rpc->err);
}

enum hearth_status hearth_rpc_merge(struct hearth_rpc *rpc, const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec,
                                    Querier__V1__ProfileFormat format,
                                    Querier__V1__SelectMergeStacktracesResponse *out)
{
    assert(query != NULL && spec != NULL && out != NULL);

    switch (format) {
    case QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_PPROF:
        return answer_merged_pprof(rpc, query, spec);
    case QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_TREE:
        return answer_merged_tree(rpc, query, spec, out);
    case QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_DOT:
        return answer_merged_dot(rpc, query, spec, out);
    default: /* unknown formats, too: newer clients then expect a flame graph */
        return answer_merged_flamegraph(rpc, query, spec, out);
    }
}

/* ---- methods ---- */

HEARTH_UNARY(hearth_svc_select_merge_stacktraces, Querier__V1__SelectMergeStacktracesRequest,
             Querier__V1__SelectMergeStacktracesResponse)
{
    bool is_pprof = in->format == QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_PPROF;
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_merge_spec spec;

    HEARTH_TRY(hearth_rpc_merge_spec(rpc, in, is_pprof, &spec));

    return hearth_rpc_merge(rpc, &query, &spec, in->format, out);
}

/* The answer has the flame graph and the tree of SelectMergeStacktraces. */
HEARTH_UNARY(hearth_svc_select_merge_span_profile, Querier__V1__SelectMergeSpanProfileRequest,
             Querier__V1__SelectMergeSpanProfileResponse)
{
    struct hearth_merge_spec spec = {
        .profile_type = hearth_str_c(in->profile_typeid),
        .selector = hearth_str_c(in->label_selector),
        .mean = hearth_rpc_gauge_mean(rpc, in->profile_typeid),
        .empty_names = true,
        .go_stacks = HEARTH_GO_OF_TENANT,
        .has_max_nodes = in->max_nodes_presence_case != 0,
        .max_nodes = in->max_nodes_presence_case != 0 ? in->max_nodes : 0,
    };

    /* Spans are the only filter. */
    HEARTH_TRY(hearth_rpc_profile_filter(
        rpc, (struct hearth_rpc_ids){0},
        (struct hearth_rpc_ids){"span_selector", in->span_selector, in->n_span_selector, false},
        (struct hearth_rpc_ids){0}, &spec.profiles));

    /* Query: a tree if it is wanted, otherwise a flame graph. */
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    Querier__V1__SelectMergeStacktracesResponse merged;
    querier__v1__select_merge_stacktraces_response__init(&merged);
    HEARTH_TRY(in->format == QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_TREE
                   ? answer_merged_tree(rpc, &query, &spec, &merged)
                   : answer_merged_flamegraph(rpc, &query, &spec, &merged));

    /* Move the fields to the answer of this method. */
    out->flamegraph = merged.flamegraph;
    out->tree = merged.tree;

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_select_merge_profile, Querier__V1__SelectMergeProfileRequest,
             Google__V1__Profile)
{
    struct hearth_merge_spec spec = {
        .profile_type = hearth_str_c(in->profile_typeid),
        .selector = hearth_str_c(in->label_selector),
        .mean = hearth_rpc_gauge_mean(rpc, in->profile_typeid),
        .has_max_nodes = in->max_nodes_presence_case != 0,
        .max_nodes = in->max_nodes_presence_case != 0 ? in->max_nodes : 0,
    };

    /* Read the filters. */
    HEARTH_TRY(hearth_rpc_profile_filter(
        rpc,
        (struct hearth_rpc_ids){"profile_id_selector", in->profile_id_selector,
                                in->n_profile_id_selector, false},
        (struct hearth_rpc_ids){0},
        (struct hearth_rpc_ids){"trace_id_selector", in->trace_id_selector, in->n_trace_id_selector,
                                false},
        &spec.profiles));
    HEARTH_TRY(read_stack_selector(rpc, in->stack_trace_selector, &spec, &spec.stacks.call_site,
                                   &spec.stacks.n_call_site));

    /* The profile itself is the answer. */
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    rpc->is_packed = true;

    return hearth_query_pprof(&query, &spec, &rpc->packed, &rpc->err);
}

/* ---- series over time ---- */

HEARTH_UNARY(hearth_svc_select_series, Querier__V1__SelectSeriesRequest,
             Querier__V1__SelectSeriesResponse)
{
    struct hearth_timeseries_spec spec = {
        .profile_type = hearth_str_c(in->profile_typeid),
        .selector = hearth_str_c(in->label_selector),
        .group_by = hearth_rpc_strs(rpc, in->group_by, in->n_group_by),
        .n_group_by = in->n_group_by,
        .step_seconds = in->step,
        .average =
            hearth_rpc_gauge_mean(rpc, in->profile_typeid) ||
            (in->aggregation_presence_case != 0 &&
             in->aggregation ==
                 TYPES__V1__TIME_SERIES_AGGREGATION_TYPE__TIME_SERIES_AGGREGATION_TYPE_AVERAGE),
        .limit = in->limit_presence_case != 0 && in->limit > 0 ? in->limit : 0,
        .exemplars = in->exemplar_type == TYPES__V1__EXEMPLAR_TYPE__EXEMPLAR_TYPE_INDIVIDUAL,
        .span_exemplars = in->exemplar_type == TYPES__V1__EXEMPLAR_TYPE__EXEMPLAR_TYPE_SPAN,
    };

    if (spec.group_by == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Read the call site, and query. */
    HEARTH_TRY(read_stack_selector(rpc, in->stack_trace_selector, NULL, &spec.stacks.call_site,
                                   &spec.stacks.n_call_site));
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_timeseries *series;
    size_t n;
    HEARTH_TRY(hearth_query_timeseries(&query, &spec, &series, &n, &rpc->err));
    if (rpc->codec == HEARTH_RPC_JSON || spec.exemplars || spec.span_exemplars) {
        HEARTH_RPC_LIST(rpc, &hearth_timeseries_map, series, n, out, series);
    } else {
        hearth_pack_timeseries(&rpc->packed, series, n);
        rpc->is_packed = true;
    }

    return HEARTH_OK;
}
