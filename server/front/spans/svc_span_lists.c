/*
 * svc_span_lists.c -- hearth.v1.TraceProfileService: counts of the spans of a selection, and
 * lists of its spans by value.
 */
#include "hearth/engine/span_profiles.h"
#include "hearth/pb/hearth/v1/traces.pb-c.h"

#include "handlers.h"
#include "query/selection.h"
#include "rpc/front_internal.h"
#include "spans/svc_spans.h"

/* ---- SpanCounts ---- */

static bool make_points(struct hearth_rpc *rpc, const struct hearth_span_count_series *in,
                        Hearth__V1__SpanCountSeries *out)
{
    Hearth__V1__SpanCountPoint **points =
        hearth_arena_array(&rpc->arena, in->n_points, sizeof *points);
    Hearth__V1__SpanCountPoint *bodies =
        hearth_arena_array(&rpc->arena, in->n_points, sizeof *bodies);
    if (points == NULL || bodies == NULL) {
        return false;
    }

    /* One message for each point. */
    for (size_t i = 0; i < in->n_points; i++) {
        hearth__v1__span_count_point__init(&bodies[i]);
        bodies[i].timestamp = in->points[i].ts_ms;
        bodies[i].span_count = in->points[i].n_spans;
        bodies[i].value = in->points[i].value;
        points[i] = &bodies[i];
    }

    out->n_points = in->n_points;
    out->points = points;

    return true;
}

static enum hearth_status answer_counts(struct hearth_rpc *rpc,
                                        const struct hearth_rpc_selection *selection,
                                        const struct hearth_span_count_series *series, size_t n)
{
    Hearth__V1__SpanCountsResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__SpanCountSeries **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    Hearth__V1__SpanCountSeries *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    if (out == NULL || list == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__span_counts_response__init(out);

    /* One message for each series. */
    for (size_t i = 0; i < n; i++) {
        hearth__v1__span_count_series__init(&bodies[i]);
        bodies[i].n_labels = series[i].labels.n;
        bodies[i].span_count = series[i].n_spans;
        list[i] = &bodies[i];
        if (!hearth_rpc_labels(rpc, &series[i].labels, &bodies[i].labels) ||
            !make_points(rpc, &series[i], &bodies[i])) {
            return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        }
    }

    /* Fill the answer. */
    out->n_series = n;
    out->series = list;
    out->unit = selection->unit;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

static enum hearth_status span_counts(struct hearth_rpc *rpc)
{
    const Hearth__V1__SpanCountsRequest *in = (const Hearth__V1__SpanCountsRequest *)rpc->request;
    struct hearth_rpc_selection selection;
    struct hearth_span_count_series *series;
    size_t n;

    /* Read the request. */
    HEARTH_TRY(hearth_rpc_selection(rpc, in->selection, &selection));
    const struct hearth_span_counts_spec spec = {
        .merge = selection.merge,
        .step_seconds = in->step,
        .group_by = hearth_rpc_strs(rpc, in->group_by, in->n_group_by),
        .n_group_by = in->n_group_by,
        .limit = in->limit,
    };
    if (spec.group_by == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Query and answer. */
    HEARTH_TRY(hearth_query_span_counts(&selection.query, &spec, &series, &n, &rpc->err));

    return answer_counts(rpc, &selection, series, n);
}

void hearth_svc_span_counts(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, span_counts(rpc));
}

/* ---- ListSpans, TopSpans ---- */

static void make_row(struct hearth_rpc *rpc, const struct hearth_span_row *in,
                     Hearth__V1__SpanRow *out)
{
    hearth__v1__span_row__init(out);

    /* Ids and names. */
    out->span_id = hearth_rpc_span_text(rpc, in->span_id);
    out->trace_id = hearth_rpc_trace_text(rpc, in->trace);
    out->local_root_id = hearth_rpc_span_text(rpc, in->local_root_id);
    out->name = hearth_rpc_text(rpc, in->name);
    out->endpoint = hearth_rpc_text(rpc, in->endpoint);
    out->service = hearth_rpc_text(rpc, in->service);

    /* Value and counts. */
    out->value = in->value;
    out->profile_count = in->n_profiles;
    out->first_ns = in->first_ns;
    out->last_ns = in->last_ns;
    out->span_count = in->n_spans;
    if (in->stored != NULL) {
        out->stored = hearth_rpc_stored_span(rpc, in->stored);
    }
}

static enum hearth_status span_rows(struct hearth_rpc *rpc, const Hearth__V1__Selection *asked,
                                    struct hearth_span_rows_spec spec)
{
    struct hearth_rpc_selection selection;
    struct hearth_span_rows found;

    /* Read the selection, and query. */
    HEARTH_TRY(hearth_rpc_selection(rpc, asked, &selection));
    spec.merge = selection.merge;
    HEARTH_TRY(hearth_query_span_rows(&selection.query, &spec, &found, &rpc->err));

    /* Make the answer in the arena. */
    Hearth__V1__SpansResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__SpanRow **list = hearth_arena_array(&rpc->arena, found.n_rows, sizeof *list);
    Hearth__V1__SpanRow *bodies = hearth_arena_array(&rpc->arena, found.n_rows, sizeof *bodies);
    if (out == NULL || list == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__spans_response__init(out);
    for (size_t i = 0; i < found.n_rows; i++) {
        make_row(rpc, &found.rows[i], &bodies[i]);
        list[i] = &bodies[i];
    }

    /* Fill the answer. */
    out->n_rows = found.n_rows;
    out->rows = list;
    out->row_count = found.n_all;
    out->total = found.total;
    out->unlabelled = found.unlabelled;
    out->unit = selection.unit;
    rpc->answer = &out->base;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

void hearth_svc_list_spans(struct hearth_rpc *rpc)
{
    const Hearth__V1__ListSpansRequest *in = (const Hearth__V1__ListSpansRequest *)rpc->request;

    /* The bars of a chart have whole milliseconds, so the list of a bar has them, too. */
    const struct hearth_span_rows_spec spec = {
        .by = HEARTH_SPANS_BY_SPAN, .whole_ms = true, .limit = in->limit, .offset = in->offset};
    hearth_rpc_end(rpc, span_rows(rpc, in->selection, spec));
}

static enum hearth_status top_spans(struct hearth_rpc *rpc)
{
    static const enum hearth_spans_by kinds[] = {
        [HEARTH__V1__SPANS_BY__SPANS_BY_UNSPECIFIED] = HEARTH_SPANS_BY_SPAN,
        [HEARTH__V1__SPANS_BY__SPANS_BY_SPAN] = HEARTH_SPANS_BY_SPAN,
        [HEARTH__V1__SPANS_BY__SPANS_BY_TRACE] = HEARTH_SPANS_BY_TRACE,
        [HEARTH__V1__SPANS_BY__SPANS_BY_LOCAL_ROOT] = HEARTH_SPANS_BY_LOCAL_ROOT,
        [HEARTH__V1__SPANS_BY__SPANS_BY_ENDPOINT] = HEARTH_SPANS_BY_ENDPOINT,
        [HEARTH__V1__SPANS_BY__SPANS_BY_SPAN_NAME] = HEARTH_SPANS_BY_NAME,
    };
    const Hearth__V1__TopSpansRequest *in = (const Hearth__V1__TopSpansRequest *)rpc->request;

    if ((unsigned)in->by >= sizeof kinds / sizeof kinds[0]) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "by is %d, which is none of SpansBy",
                           (int)in->by);
    }

    return span_rows(rpc, in->selection,
                     (struct hearth_span_rows_spec){
                         .by = kinds[in->by], .limit = in->limit, .offset = in->offset});
}

void hearth_svc_top_spans(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, top_spans(rpc));
}
