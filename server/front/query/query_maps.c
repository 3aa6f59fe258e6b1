/* query_maps.c -- maps of the messages that several query methods answer with. */
#include "query/query_maps.h"

#include "hearth/engine/query.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"
#include "hearth/pb/types/v1/types.pb-c.h"

#include "rpc/messages.h"
#include "rpc/rpc.h"

#include <assert.h>

/* ---- flame graphs ---- */

HEARTH_MAP_TYPES(level, struct hearth_flame_level, Querier__V1__Level);
static const struct hearth_message_member level_members[] = {
    HEARTH_MAP_NUMBERS(level, values, n, values),
};
static const struct hearth_message_map level_map =
    HEARTH_MESSAGE_MAP(level, querier__v1__level__descriptor);

HEARTH_MAP_TYPES(graph, struct hearth_flamegraph, Querier__V1__FlameGraph);
static const struct hearth_message_member graph_members[] = {
    HEARTH_MAP_TEXTS(graph, names, n_names, names),
    HEARTH_MAP_LIST(graph, levels, n_levels, levels, &level_map),
    HEARTH_MAP(graph, total, total),
    HEARTH_MAP(graph, max_self, max_self),
};
const struct hearth_message_map hearth_flamegraph_map =
    HEARTH_MESSAGE_MAP(graph, querier__v1__flame_graph__descriptor);

HEARTH_MAP_TYPES(diff, struct hearth_flame_diff, Querier__V1__FlameGraphDiff);
static const struct hearth_message_member diff_members[] = {
    HEARTH_MAP_TEXTS(diff, names, n_names, names),
    HEARTH_MAP_LIST(diff, levels, n_levels, levels, &level_map),
    HEARTH_MAP(diff, total, total),
    HEARTH_MAP(diff, max_self, max_self),
    HEARTH_MAP(diff, left_total, leftticks),
    HEARTH_MAP(diff, right_total, rightticks),
};
const struct hearth_message_map hearth_flame_diff_map =
    HEARTH_MESSAGE_MAP(diff, querier__v1__flame_graph_diff__descriptor);

/* ---- series over time ---- */

HEARTH_MAP_TYPES(exemplar, struct hearth_exemplar, Types__V1__Exemplar);
static const struct hearth_message_member exemplar_members[] = {
    HEARTH_MAP(exemplar, ts_ms, timestamp),    HEARTH_MAP(exemplar, value, value),
    HEARTH_MAP(exemplar, profile, profile_id), HEARTH_MAP_SPAN_ID(exemplar, span_id, span_id),
    HEARTH_MAP(exemplar, trace, trace_id),     HEARTH_MAP_LABELS(exemplar, labels, labels),
};
const struct hearth_message_map hearth_exemplar_map =
    HEARTH_MESSAGE_MAP(exemplar, types__v1__exemplar__descriptor);

/* Written by hand: an answer may have millions of points, of which few have an exemplar. */
static void fill_series_points(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_timeseries *in = from;
    Types__V1__Series *out = message;
    Types__V1__Point **points = hearth_arena_array(&rpc->arena, in->n_points, sizeof *points);
    Types__V1__Point *bodies = hearth_arena_array(&rpc->arena, in->n_points, sizeof *bodies);
    if (points == NULL || bodies == NULL) {
        return;
    }

    assert(in->n_points == 0 || in->points != NULL);

    /* A point has at most one exemplar. */
    for (size_t i = 0; i < in->n_points; i++) {
        types__v1__point__init(&bodies[i]);
        bodies[i].timestamp = in->points[i].ts_ms;
        bodies[i].value = in->points[i].value;
        points[i] = &bodies[i];
        if (in->exemplars != NULL && in->exemplars[i].has_profile) {
            HEARTH_RPC_LIST(rpc, &hearth_exemplar_map, &in->exemplars[i], 1, &bodies[i], exemplars);
        }
    }

    out->n_points = in->n_points;
    out->points = points;
}

HEARTH_MAP_TYPES(series, struct hearth_timeseries, Types__V1__Series);
static const struct hearth_message_member series_members[] = {
    HEARTH_MAP_LABELS(series, labels, labels),
};
const struct hearth_message_map hearth_timeseries_map =
    HEARTH_MESSAGE_MAP_AND(series, types__v1__series__descriptor, fill_series_points);

/* ---- tables ---- */

HEARTH_MAP_TYPES(row, struct hearth_top_row, Hearth__V1__TopRow);
static const struct hearth_message_member row_members[] = {
    HEARTH_MAP(row, name, name),
    HEARTH_MAP(row, file, file),
    HEARTH_MAP(row, module, module),
    HEARTH_MAP(row, line, line),
    HEARTH_MAP(row, self, self),
    HEARTH_MAP(row, total, total),
    HEARTH_MAP(row, start_line, start_line),
};
const struct hearth_message_map hearth_top_row_map =
    HEARTH_MESSAGE_MAP(row, hearth__v1__top_row__descriptor);

HEARTH_MAP_TYPES(change, struct hearth_function_change, Hearth__V1__FunctionChange);
static const struct hearth_message_member change_members[] = {
    HEARTH_MAP(change, name, name),
    HEARTH_MAP(change, values[0], left_self),
    HEARTH_MAP(change, values[1], right_self),
    HEARTH_MAP(change, share.change, change),
    HEARTH_MAP(change, share.low, low),
    HEARTH_MAP(change, share.high, high),
    HEARTH_MAP(change, share.q, q),
};
const struct hearth_message_map hearth_function_change_map =
    HEARTH_MESSAGE_MAP(change, hearth__v1__function_change__descriptor);

HEARTH_MAP_TYPES(total, struct hearth_function_change, Hearth__V1__TotalChange);
static const struct hearth_message_member total_members[] = {
    HEARTH_MAP(total, name, name),
    HEARTH_MAP(total, values[0], left_total),
    HEARTH_MAP(total, values[1], right_total),
    HEARTH_MAP(total, share.change, change),
    HEARTH_MAP(total, share.low, low),
    HEARTH_MAP(total, share.high, high),
    HEARTH_MAP(total, share.q, q),
};
const struct hearth_message_map hearth_total_change_map =
    HEARTH_MESSAGE_MAP(total, hearth__v1__total_change__descriptor);
