/*
 * gauges.h -- what is done with many profiles of a gauge (memory in use, goroutines), and saying so.
 *
 * Threads: pure.
 * Source:  docs/reference/api-querier.md, "Gauges".
 */
#ifndef HEARTH_FRONT_GAUGES_H
#define HEARTH_FRONT_GAUGES_H

#include "rpc/rpc.h"

/*
 * Of querier.v1: true when the request's tenant wants means and the type is a gauge. An answer about a
 * gauge gets the header `hearth-aggregation: sum` or `mean`; a type that cannot be parsed is nobody's gauge.
 */
bool hearth_rpc_gauge_mean(struct hearth_rpc *rpc, const char *profile_type);

#endif
