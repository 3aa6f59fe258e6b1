/*
 * svc_span_lists.c -- hearth.v1.TraceProfileService: counts of the spans of a selection, and
 * lists of its spans by value.
 */
#include "hearth/engine/span_profiles.h"
#include "hearth/pb/hearth/v1/traces.pb-c.h"

#include "handlers.h"
#include "query/selection.h"
#include "rpc/unary.h"
#include "spans/svc_spans.h"

/* ---- SpanCounts ---- */

HEARTH_MAP_TYPES(point, struct hearth_span_count_point, Hearth__V1__SpanCountPoint);
static const struct hearth_message_member point_members[] = {
    HEARTH_MAP(point, ts_ms, timestamp),
    HEARTH_MAP(point, n_spans, span_count),
    HEARTH_MAP(point, value, value),
};
static const struct hearth_message_map point_map =
    HEARTH_MESSAGE_MAP(point, hearth__v1__span_count_point__descriptor);

HEARTH_MAP_TYPES(series, struct hearth_span_count_series, Hearth__V1__SpanCountSeries);
static const struct hearth_message_member series_members[] = {
    HEARTH_MAP_LABELS(series, labels, labels),
    HEARTH_MAP_LIST(series, points, n_points, points, &point_map),
    HEARTH_MAP(series, n_spans, span_count),
};
static const struct hearth_message_map series_map =
    HEARTH_MESSAGE_MAP(series, hearth__v1__span_count_series__descriptor);

HEARTH_UNARY(hearth_svc_span_counts, Hearth__V1__SpanCountsRequest, Hearth__V1__SpanCountsResponse)
{
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
    HEARTH_RPC_LIST(rpc, &series_map, series, n, out, series);
    out->unit = selection.unit;

    return HEARTH_OK;
}

/* ---- ListSpans, TopSpans ---- */

static void fill_row_stored(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_span_row *row = from;
    Hearth__V1__SpanRow *out = message;

    if (row->stored != NULL) {
        out->stored = hearth_rpc_map(rpc, &hearth_stored_span_map, row->stored);
    }
}

HEARTH_MAP_TYPES(row, struct hearth_span_row, Hearth__V1__SpanRow);
static const struct hearth_message_member row_members[] = {
    HEARTH_MAP_SPAN_ID(row, span_id, span_id),
    HEARTH_MAP(row, trace, trace_id),
    HEARTH_MAP_SPAN_ID(row, local_root_id, local_root_id),
    HEARTH_MAP(row, name, name),
    HEARTH_MAP(row, endpoint, endpoint),
    HEARTH_MAP(row, service, service),
    HEARTH_MAP(row, value, value),
    HEARTH_MAP(row, n_profiles, profile_count),
    HEARTH_MAP(row, first_ns, first_ns),
    HEARTH_MAP(row, last_ns, last_ns),
    HEARTH_MAP(row, n_spans, span_count),
};
static const struct hearth_message_map row_map =
    HEARTH_MESSAGE_MAP_AND(row, hearth__v1__span_row__descriptor, fill_row_stored);

HEARTH_MAP_TYPES(rows, struct hearth_span_rows, Hearth__V1__SpansResponse);
static const struct hearth_message_member rows_members[] = {
    HEARTH_MAP_LIST(rows, rows, n_rows, rows, &row_map),
    HEARTH_MAP(rows, n_all, row_count),
    HEARTH_MAP(rows, total, total),
    HEARTH_MAP(rows, unlabelled, unlabelled),
};
static const struct hearth_message_map rows_map =
    HEARTH_MESSAGE_MAP(rows, hearth__v1__spans_response__descriptor);

static enum hearth_status answer_span_rows(struct hearth_rpc *rpc,
                                           const Hearth__V1__Selection *requested,
                                           struct hearth_span_rows_spec spec,
                                           Hearth__V1__SpansResponse *out)
{
    struct hearth_rpc_selection selection;
    struct hearth_span_rows found;

    /* Read the selection. */
    HEARTH_TRY(hearth_rpc_selection(rpc, requested, &selection));
    spec.merge = selection.merge;

    /* Query and answer. */
    HEARTH_TRY(hearth_query_span_rows(&selection.query, &spec, &found, &rpc->err));
    hearth_rpc_map_into(rpc, &rows_map, &found, out);
    out->unit = selection.unit;

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_list_spans, Hearth__V1__ListSpansRequest, Hearth__V1__SpansResponse)
{
    /* The bars of a chart have whole milliseconds, so the list of a bar has them, too. */
    const struct hearth_span_rows_spec spec = {
        .by = HEARTH_SPANS_BY_SPAN, .whole_ms = true, .limit = in->limit, .offset = in->offset};

    return answer_span_rows(rpc, in->selection, spec, out);
}

HEARTH_UNARY(hearth_svc_top_spans, Hearth__V1__TopSpansRequest, Hearth__V1__SpansResponse)
{
    static const enum hearth_spans_by kinds[] = {
        [HEARTH__V1__SPANS_BY__SPANS_BY_UNSPECIFIED] = HEARTH_SPANS_BY_SPAN,
        [HEARTH__V1__SPANS_BY__SPANS_BY_SPAN] = HEARTH_SPANS_BY_SPAN,
        [HEARTH__V1__SPANS_BY__SPANS_BY_TRACE] = HEARTH_SPANS_BY_TRACE,
        [HEARTH__V1__SPANS_BY__SPANS_BY_LOCAL_ROOT] = HEARTH_SPANS_BY_LOCAL_ROOT,
        [HEARTH__V1__SPANS_BY__SPANS_BY_ENDPOINT] = HEARTH_SPANS_BY_ENDPOINT,
        [HEARTH__V1__SPANS_BY__SPANS_BY_SPAN_NAME] = HEARTH_SPANS_BY_NAME,
    };

    /* Numbers of the request are hostile. */
    if ((unsigned)in->by >= HEARTH_ARRAY_LEN(kinds)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "by %d is not known", (int)in->by);
    }

    const struct hearth_span_rows_spec spec = {
        .by = kinds[in->by], .limit = in->limit, .offset = in->offset};

    return answer_span_rows(rpc, in->selection, spec, out);
}
