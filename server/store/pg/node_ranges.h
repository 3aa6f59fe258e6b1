/*
 * node_ranges.h -- which node owns a service, by the ranges of hashes into which Citus divides all
 * services (private to the store).
 *
 * Threads: pure.
 */
#ifndef HEARTH_STORE_NODE_RANGES_H
#define HEARTH_STORE_NODE_RANGES_H

#include <stddef.h>
#include <stdint.h>

/* The first hash of a range, which reaches to the next one, and the number of its node: nodes.h. */
struct hearth_node_range {
    int32_t first_hash;
    unsigned node;
};

/* Return the range of a service; NULL: none, such as in an empty list. ranges: sorted. */
const struct hearth_node_range *hearth_node_find_range(const struct hearth_node_range *ranges,
                                                       size_t n, int32_t service_id);
/* Return the owner of a service; node 0 owns what no range has. */
unsigned hearth_node_in_ranges(const struct hearth_node_range *ranges, size_t n,
                               int32_t service_id);

#endif
