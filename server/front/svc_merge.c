/* svc_merge.c -- querier.v1: merged stack traces, pprof, and totals over time. */
#include "hearth/base/varint.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"

#include "front_internal.h"
#include "svc_querier.h"

/* Field numbers of what is written by hand around a packed profile. */
#define RESPONSE_PPROF_TAG ((5u << 3) | 2u) /* SelectMergeStacktracesResponse.pprof */
#define PPROF_PROFILE_TAG  ((1u << 3) | 2u) /* PprofProfile.profile */

static enum hearth_status not_offered(struct hearth_rpc *rpc, const char *what)
{
    return HEARTH_FAIL(&rpc->err, HEARTH_UNIMPLEMENTED, "%s is not offered yet", what);
}

static bool is_hex(const char *text, size_t n_digits)
{
    return strlen(text) == n_digits && strspn(text, "0123456789abcdefABCDEF") == n_digits;
}

static bool is_uuid(const char *text)
{
    if (strlen(text) != 36) {
        return false;
    }
    for (size_t i = 0; i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : strchr("0123456789abcdefABCDEF", text[i]) == NULL) {
            return false;
        }
    }
    return true;
}

static enum hearth_status
check_ids(struct hearth_rpc *rpc, const char *field, char *const *ids, size_t n, size_t n_digits)
{
    for (size_t i = 0; i < n; i++) {
        bool is_valid = n_digits == 0 ? is_uuid(ids[i]) : is_hex(ids[i], n_digits);
        if (!is_valid) {
            return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "%s \"%.64s\" is not %s", field,
                               ids[i],
                               n_digits == 0    ? "a UUID"
                               : n_digits == 16 ? "of 16 hex digits"
                                                : "of 32 hex digits");
        }
    }
    return n == 0 ? HEARTH_OK : not_offered(rpc, field);
}

/* call_site as views. go_pgo belongs to pprof alone and changes what it holds: not to be ignored
 * there. */
static enum hearth_status read_stack_selector(struct hearth_rpc *rpc,
                                              const Types__V1__StackTraceSelector *in,
                                              bool is_pprof,
                                              const struct hearth_str **ret,
                                              size_t *ret_n)
{
    *ret = NULL;
    *ret_n = 0;
    if (in == NULL) {
        return HEARTH_OK;
    }
    if (in->go_pgo != NULL && is_pprof) {
        return not_offered(rpc, "stack_trace_selector.go_pgo");
    }
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

static enum hearth_status answer_flamegraph(struct hearth_rpc *rpc,
                                            const struct hearth_query *query,
                                            const struct hearth_merge_spec *spec,
                                            Querier__V1__SelectMergeStacktracesResponse *out)
{
    struct hearth_flamegraph graph = {0};
    HEARTH_TRY(hearth_query_flamegraph(query, spec, &graph, &rpc->err));
    Querier__V1__FlameGraph *flame = hearth_arena_alloc(&rpc->arena, sizeof *flame);
    char **names = hearth_arena_array(&rpc->arena, graph.n_names, sizeof *names);
    Querier__V1__Level **levels = hearth_arena_array(&rpc->arena, graph.n_levels, sizeof *levels);
    Querier__V1__Level *bodies = hearth_arena_array(&rpc->arena, graph.n_levels, sizeof *bodies);
    if (flame == NULL || names == NULL || levels == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }
    querier__v1__flame_graph__init(flame);
    for (size_t i = 0; i < graph.n_names; i++) {
        names[i] = hearth_rpc_text(rpc, graph.names[i]);
        if (names[i] == NULL) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }
    for (size_t i = 0; i < graph.n_levels; i++) {
        querier__v1__level__init(&bodies[i]);
        bodies[i].n_values = graph.levels[i].n;
        bodies[i].values = graph.levels[i].values;
        levels[i] = &bodies[i];
    }
    flame->n_names = graph.n_names;
    flame->names = names;
    flame->n_levels = graph.n_levels;
    flame->levels = levels;
    flame->total = graph.total;
    flame->max_self = graph.max_self;
    out->flamegraph = flame;
    rpc->answer = &out->base;
    return HEARTH_OK;
}

static enum hearth_status answer_tree(struct hearth_rpc *rpc,
                                      const struct hearth_query *query,
                                      const struct hearth_merge_spec *spec,
                                      Querier__V1__SelectMergeStacktracesResponse *out)
{
    struct hearth_buf tree;
    hearth_buf_init(&tree, 0);
    enum hearth_status status = hearth_query_tree(query, spec, &tree, &rpc->err);
    if (status == HEARTH_OK) {
        struct hearth_str copy = hearth_arena_str(&rpc->arena, hearth_buf_view(&tree));
        if (copy.p == NULL || hearth_buf_failed(&tree)) {
            status = HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        } else {
            out->tree = (ProtobufCBinaryData){copy.n, (uint8_t *)(uintptr_t)copy.p};
            rpc->answer = &out->base;
        }
    }
    hearth_buf_release(&tree);
    return status;
}

/* The profile is packed already: only its two envelopes are written around it. */
static enum hearth_status answer_pprof(struct hearth_rpc *rpc,
                                       const struct hearth_query *query,
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

static enum hearth_status merge_stacktraces(struct hearth_rpc *rpc)
{
    const Querier__V1__SelectMergeStacktracesRequest *in =
        (const Querier__V1__SelectMergeStacktracesRequest *)rpc->request;
    if (in->n_span_selector > 0 && in->n_trace_id_selector > 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "span_selector and trace_id_selector exclude each other");
    }
    HEARTH_TRY(check_ids(rpc, "profile_id_selector", in->profile_id_selector,
                         in->n_profile_id_selector, 0));
    HEARTH_TRY(
        check_ids(rpc, "trace_id_selector", in->trace_id_selector, in->n_trace_id_selector, 32));
    HEARTH_TRY(check_ids(rpc, "span_selector", in->span_selector, in->n_span_selector, 16));
    if (in->async != NULL &&
        in->async->type == QUERIER__V1__ASYNC_QUERY_TYPE__ASYNC_QUERY_TYPE_FORCE) {
        return HEARTH_FAIL(&rpc->err, HEARTH_UNIMPLEMENTED,
                           "async queries are disabled: ask without async");
    }
    if (in->format == QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_DOT) {
        return HEARTH_FAIL(&rpc->err, HEARTH_UNIMPLEMENTED,
                           "format PROFILE_FORMAT_DOT is not offered: PROFILE_FORMAT_FLAMEGRAPH, "
                           "PROFILE_FORMAT_TREE and PROFILE_FORMAT_PPROF are");
    }
    struct hearth_merge_spec spec = {
        .profile_type = hearth_str_c(in->profile_typeid),
        .selector = hearth_str_c(in->label_selector),
        .has_max_nodes = in->max_nodes_presence_case != 0,
        .max_nodes = in->max_nodes_presence_case != 0 ? in->max_nodes : 0,
    };
    bool is_pprof = in->format == QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_PPROF;
    HEARTH_TRY(read_stack_selector(rpc, in->stack_trace_selector, is_pprof, &spec.call_site,
                                   &spec.n_call_site));
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    if (is_pprof) {
        return answer_pprof(rpc, &query, &spec);
    }
    Querier__V1__SelectMergeStacktracesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }
    querier__v1__select_merge_stacktraces_response__init(out);
    /* Formats that we do not know are answered as flame graphs: newer clients look for that. */
    return in->format == QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_TREE
               ? answer_tree(rpc, &query, &spec, out)
               : answer_flamegraph(rpc, &query, &spec, out);
}

void hearth_svc_select_merge_stacktraces(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, merge_stacktraces(rpc));
}

static enum hearth_status merge_profile(struct hearth_rpc *rpc)
{
    const Querier__V1__SelectMergeProfileRequest *in =
        (const Querier__V1__SelectMergeProfileRequest *)rpc->request;
    HEARTH_TRY(check_ids(rpc, "profile_id_selector", in->profile_id_selector,
                         in->n_profile_id_selector, 0));
    HEARTH_TRY(
        check_ids(rpc, "trace_id_selector", in->trace_id_selector, in->n_trace_id_selector, 32));
    struct hearth_merge_spec spec = {
        .profile_type = hearth_str_c(in->profile_typeid),
        .selector = hearth_str_c(in->label_selector),
        .has_max_nodes = in->max_nodes_presence_case != 0,
        .max_nodes = in->max_nodes_presence_case != 0 ? in->max_nodes : 0,
    };
    HEARTH_TRY(read_stack_selector(rpc, in->stack_trace_selector, true, &spec.call_site,
                                   &spec.n_call_site));
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    rpc->is_packed = true;
    return hearth_query_pprof(&query, &spec, &rpc->packed, &rpc->err);
}

void hearth_svc_select_merge_profile(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, merge_profile(rpc));
}

/* ---- series over time ---- */

static bool
make_points(struct hearth_rpc *rpc, const struct hearth_timeseries *in, Types__V1__Series *out)
{
    Types__V1__Point **points = hearth_arena_array(&rpc->arena, in->n_points, sizeof *points);
    Types__V1__Point *bodies = hearth_arena_array(&rpc->arena, in->n_points, sizeof *bodies);
    if (points == NULL || bodies == NULL) {
        return false;
    }
    for (size_t i = 0; i < in->n_points; i++) {
        types__v1__point__init(&bodies[i]);
        bodies[i].timestamp = in->points[i].ts_ms;
        bodies[i].value = in->points[i].value;
        points[i] = &bodies[i];
    }
    out->n_points = in->n_points;
    out->points = points;
    return true;
}

static enum hearth_status
answer_series(struct hearth_rpc *rpc, const struct hearth_timeseries *series, size_t n)
{
    Querier__V1__SelectSeriesResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Types__V1__Series **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    Types__V1__Series *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    if (out == NULL || list == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }
    querier__v1__select_series_response__init(out);
    for (size_t i = 0; i < n; i++) {
        types__v1__series__init(&bodies[i]);
        bodies[i].n_labels = series[i].labels.n;
        list[i] = &bodies[i];
        if (!hearth_rpc_labels(rpc, &series[i].labels, &bodies[i].labels) ||
            !make_points(rpc, &series[i], &bodies[i])) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }
    out->n_series = n;
    out->series = list;
    rpc->answer = &out->base;
    return HEARTH_OK;
}

static enum hearth_status select_series(struct hearth_rpc *rpc)
{
    const Querier__V1__SelectSeriesRequest *in =
        (const Querier__V1__SelectSeriesRequest *)rpc->request;
    if (in->exemplar_type == TYPES__V1__EXEMPLAR_TYPE__EXEMPLAR_TYPE_INDIVIDUAL ||
        in->exemplar_type == TYPES__V1__EXEMPLAR_TYPE__EXEMPLAR_TYPE_SPAN) {
        return not_offered(rpc, "exemplar_type other than EXEMPLAR_TYPE_NONE");
    }
    struct hearth_timeseries_spec spec = {
        .profile_type = hearth_str_c(in->profile_typeid),
        .selector = hearth_str_c(in->label_selector),
        .group_by = hearth_rpc_strs(rpc, in->group_by, in->n_group_by),
        .n_group_by = in->n_group_by,
        .step_seconds = in->step,
        .average =
            in->aggregation_presence_case != 0 &&
            in->aggregation ==
                TYPES__V1__TIME_SERIES_AGGREGATION_TYPE__TIME_SERIES_AGGREGATION_TYPE_AVERAGE,
        .limit = in->limit_presence_case != 0 && in->limit > 0 ? in->limit : 0,
    };
    if (spec.group_by == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }
    HEARTH_TRY(read_stack_selector(rpc, in->stack_trace_selector, false, &spec.call_site,
                                   &spec.n_call_site));
    struct hearth_query query = hearth_rpc_query(rpc, in->start, in->end);
    struct hearth_timeseries *series;
    size_t n;
    HEARTH_TRY(hearth_query_timeseries(&query, &spec, &series, &n, &rpc->err));
    return answer_series(rpc, series, n);
}

void hearth_svc_select_series(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, select_series(rpc));
}
