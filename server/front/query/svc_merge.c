/* svc_merge.c -- querier.v1: merged stack traces, pprof, and totals over time. */
#include "hearth/base/varint.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"

#include "handlers.h"
#include "query/svc_querier.h"
#include "rpc/front_internal.h"
#include "rpc/gauges.h"

/* Tags of the two envelopes that answer_pprof writes around a packed profile. */
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

/* ---- flame graphs ---- */

enum hearth_status hearth_rpc_flamegraph(struct hearth_rpc *rpc,
                                         const struct hearth_flamegraph *graph,
                                         Querier__V1__FlameGraph **ret)
{
    Querier__V1__FlameGraph *flame = hearth_arena_alloc(&rpc->arena, sizeof *flame);
    char **names = hearth_arena_array(&rpc->arena, graph->n_names, sizeof *names);
    Querier__V1__Level **levels = hearth_arena_array(&rpc->arena, graph->n_levels, sizeof *levels);
    Querier__V1__Level *bodies = hearth_arena_array(&rpc->arena, graph->n_levels, sizeof *bodies);
    if (flame == NULL || names == NULL || levels == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Names are copied; values are borrowed from the graph. */
    querier__v1__flame_graph__init(flame);
    for (size_t i = 0; i < graph->n_names; i++) {
        names[i] = hearth_rpc_text(rpc, graph->names[i]);
        if (names[i] == NULL) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }

    for (size_t i = 0; i < graph->n_levels; i++) {
        querier__v1__level__init(&bodies[i]);
        bodies[i].n_values = graph->levels[i].n;
        bodies[i].values = graph->levels[i].values;
        levels[i] = &bodies[i];
    }

    /* Fill the message. */
    flame->n_names = graph->n_names;
    flame->names = names;
    flame->n_levels = graph->n_levels;
    flame->levels = levels;
    flame->total = graph->total;
    flame->max_self = graph->max_self;
    *ret = flame;

    return HEARTH_OK;
}

static enum hearth_status answer_flamegraph(struct hearth_rpc *rpc,
                                            const struct hearth_query *query,
                                            const struct hearth_merge_spec *spec,
                                            Querier__V1__SelectMergeStacktracesResponse *out)
{
    struct hearth_flamegraph graph = {0};
    HEARTH_TRY(hearth_query_flamegraph(query, spec, &graph, &rpc->err));
    return hearth_rpc_flamegraph(rpc, &graph, &out->flamegraph);
}

static enum hearth_status answer_tree(struct hearth_rpc *rpc, const struct hearth_query *query,
                                      const struct hearth_merge_spec *spec,
                                      Querier__V1__SelectMergeStacktracesResponse *out)
{
    struct hearth_buf tree;

    hearth_buf_init(&tree, 0);

    /* The tree is copied to the arena, which the answer borrows from. */
    enum hearth_status status = hearth_query_tree(query, spec, &tree, &rpc->err);
    if (status == HEARTH_OK) {
        struct hearth_str copy = hearth_arena_str(&rpc->arena, hearth_buf_view(&tree));
        if (copy.p == NULL || hearth_buf_failed(&tree)) {
            status = HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        } else {
            out->tree = (ProtobufCBinaryData){copy.n, (uint8_t *)(uintptr_t)copy.p};
        }
    }

    hearth_buf_release(&tree);

    return status;
}

/* The profile is packed already: only its two envelopes are written around it. */
static enum hearth_status answer_pprof(struct hearth_rpc *rpc, const struct hearth_query *query,
                                       const struct hearth_merge_spec *spec)
{
    struct hearth_buf profile, head;

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
    }

    hearth_buf_release(&head);
    hearth_buf_release(&profile);

    return status;
}

static enum hearth_status answer_dot(struct hearth_rpc *rpc, const struct hearth_query *query,
                                     const struct hearth_merge_spec *spec,
                                     Querier__V1__SelectMergeStacktracesResponse *out)
{
    struct hearth_buf dot;

    hearth_buf_init(&dot, 0);
    enum hearth_status status = hearth_rpc_dot(rpc, query, spec, &dot);
    if (status == HEARTH_OK) {
        out->dot = hearth_rpc_text(rpc, hearth_buf_view(&dot));
        status = out->dot != NULL ? HEARTH_OK : HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth_buf_release(&dot);

    return status;
}

enum hearth_status hearth_rpc_merge_spec(struct hearth_rpc *rpc,
                                         const Querier__V1__SelectMergeStacktracesRequest *in,
                                         bool is_pprof, struct hearth_merge_spec *ret)
{
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

enum hearth_status hearth_rpc_merge(struct hearth_rpc *rpc, const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec,
                                    Querier__V1__ProfileFormat format,
                                    Querier__V1__SelectMergeStacktracesResponse *out)
{
    switch (format) {
    case QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_PPROF:
        return answer_pprof(rpc, query, spec);
    case QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_TREE:
        return answer_tree(rpc, query, spec, out);
    case QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_DOT:
        return answer_dot(rpc, query, spec, out);
    default: /* unknown formats, too: newer clients then expect a flame graph */
        return answer_flamegraph(rpc, query, spec, out);
    }
}

static enum hearth_status merge_stacktraces(struct hearth_rpc *rpc)
{
    const Querier__V1__SelectMergeStacktracesRequest *in =
        (const Querier__V1__SelectMergeStacktracesRequest *)rpc->request;
    bool is_pprof = in->format == QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_PPROF;
    struct hearth_merge_spec spec;

    /* Read the request. */
    HEARTH_TRY(hearth_rpc_merge_spec(rpc, in, is_pprof, &spec));
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);

    /* Answer in the format of the request. */
    Querier__V1__SelectMergeStacktracesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    querier__v1__select_merge_stacktraces_response__init(out);
    rpc->answer = &out->base;

    return hearth_rpc_merge(rpc, &query, &spec, in->format, out);
}

void hearth_svc_select_merge_stacktraces(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, merge_stacktraces(rpc));
}

/* The answer has the flame graph and the tree of SelectMergeStacktraces. */
static enum hearth_status merge_span_profile(struct hearth_rpc *rpc)
{
    const Querier__V1__SelectMergeSpanProfileRequest *in =
        (const Querier__V1__SelectMergeSpanProfileRequest *)rpc->request;
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
                   ? answer_tree(rpc, &query, &spec, &merged)
                   : answer_flamegraph(rpc, &query, &spec, &merged));

    /* Move the fields to the answer of this method. */
    Querier__V1__SelectMergeSpanProfileResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    querier__v1__select_merge_span_profile_response__init(out);
    out->flamegraph = merged.flamegraph;
    out->tree = merged.tree;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_select_merge_span_profile(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, merge_span_profile(rpc));
}

static enum hearth_status merge_profile(struct hearth_rpc *rpc)
{
    const Querier__V1__SelectMergeProfileRequest *in =
        (const Querier__V1__SelectMergeProfileRequest *)rpc->request;
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

void hearth_svc_select_merge_profile(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, merge_profile(rpc));
}

/* ---- series over time ---- */

static bool make_points(struct hearth_rpc *rpc, const struct hearth_timeseries *in,
                        Types__V1__Series *out)
{
    Types__V1__Point **points = hearth_arena_array(&rpc->arena, in->n_points, sizeof *points);
    Types__V1__Point *bodies = hearth_arena_array(&rpc->arena, in->n_points, sizeof *bodies);
    if (points == NULL || bodies == NULL) {
        return false;
    }

    /* A point has at most one exemplar. */
    for (size_t i = 0; i < in->n_points; i++) {
        types__v1__point__init(&bodies[i]);
        bodies[i].timestamp = in->points[i].ts_ms;
        bodies[i].value = in->points[i].value;
        points[i] = &bodies[i];
        if (in->exemplars != NULL && in->exemplars[i].has_profile) {
            bodies[i].n_exemplars = 1;
            if (!hearth_rpc_exemplars(rpc, &in->exemplars[i], 1, &bodies[i].exemplars)) {
                return false;
            }
        }
    }

    out->n_points = in->n_points;
    out->points = points;

    return true;
}

enum hearth_status hearth_rpc_series(struct hearth_rpc *rpc, const struct hearth_timeseries *series,
                                     size_t n, Types__V1__Series ***ret)
{
    Types__V1__Series **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    Types__V1__Series *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    if (list == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    for (size_t i = 0; i < n; i++) {
        types__v1__series__init(&bodies[i]);
        bodies[i].n_labels = series[i].labels.n;
        list[i] = &bodies[i];
        if (!hearth_rpc_labels(rpc, &series[i].labels, &bodies[i].labels) ||
            !make_points(rpc, &series[i], &bodies[i])) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }

    *ret = list;

    return HEARTH_OK;
}

static enum hearth_status select_series(struct hearth_rpc *rpc)
{
    const Querier__V1__SelectSeriesRequest *in =
        (const Querier__V1__SelectSeriesRequest *)rpc->request;
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

    /* Make the answer in the arena. */
    Querier__V1__SelectSeriesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    querier__v1__select_series_response__init(out);
    out->n_series = n;
    rpc->answer = &out->base;

    return hearth_rpc_series(rpc, series, n, &out->series);
}

void hearth_svc_select_series(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, select_series(rpc));
}
