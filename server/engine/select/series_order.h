/*
 * series_order.h -- the order of the series in an answer (private to the engine).
 *
 * Threads: pure.
 */
#ifndef HEARTH_ENGINE_SERIES_ORDER_H
#define HEARTH_ENGINE_SERIES_ORDER_H

#include "hearth/engine/query.h"

/* The place of a series in the answer. */
struct hearth_ranked_series {
    uint64_t key;   /* the sort's own */
    uint32_t group; /* the series is made[group] */
};

/*
 * Sort n series by their sums, the largest first, then by labels. spare: [n], for the sort. The
 * caller sets the groups, which are distinct; made is borrowed during the call.
 */
void hearth_series_order(struct hearth_ranked_series *ranked, struct hearth_ranked_series *spare,
                         size_t n, struct hearth_timeseries *made);

#endif
