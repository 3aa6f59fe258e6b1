/*
 * gauges.h -- whether profiles of a gauge (memory in use, goroutines) are summed or averaged.
 *
 * Threads: pure.
 * Source:  docs/reference/api-querier.md, "Gauges".
 */
#ifndef HEARTH_FRONT_GAUGES_H
#define HEARTH_FRONT_GAUGES_H

#include "hearth/engine/query.h"

#include "rpc/rpc.h"

/* The setting of the tenant; of several tenants, theirs if it is the same, otherwise UNSET. */
enum hearth_gauge_aggregation hearth_rpc_gauge_aggregation(const struct hearth_rpc *rpc);

/*
 * For querier.v1: true if the profile type is a gauge and the tenant's setting is the mean. Adds
 * the header `hearth-aggregation: sum` or `mean` if the type is a gauge. A type that cannot be
 * parsed is not a gauge.
 */
bool hearth_rpc_gauge_mean(struct hearth_rpc *rpc, const char *profile_type);

#endif
