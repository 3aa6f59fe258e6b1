/*
 * query_maps.h -- maps (rpc/message_map.h) of the messages that several query methods answer with.
 *
 * Threads: constants.
 */
#ifndef HEARTH_FRONT_QUERY_MAPS_H
#define HEARTH_FRONT_QUERY_MAPS_H

#include "rpc/message_map.h"

/* struct hearth_flamegraph to querier.v1.FlameGraph; values are borrowed. */
extern const struct hearth_message_map hearth_flamegraph_map;
/* struct hearth_flame_diff to querier.v1.FlameGraphDiff; values are borrowed. */
extern const struct hearth_message_map hearth_flame_diff_map;
/* struct hearth_timeseries to types.v1.Series. */
extern const struct hearth_message_map hearth_timeseries_map;
/* struct hearth_exemplar to types.v1.Exemplar. */
extern const struct hearth_message_map hearth_exemplar_map;
/* struct hearth_top_row to hearth.v1.TopRow. */
extern const struct hearth_message_map hearth_top_row_map;
/* struct hearth_function_change to hearth.v1.FunctionChange. */
extern const struct hearth_message_map hearth_function_change_map;
/* struct hearth_function_change to hearth.v1.TotalChange. */
extern const struct hearth_message_map hearth_total_change_map;
/* struct hearth_explanation to hearth.v1.ExplainResponse. */
extern const struct hearth_message_map hearth_explanation_map;

#endif
