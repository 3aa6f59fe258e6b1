/* node_ranges.c -- the place of a service (contract: node_ranges.h). */
#include "pg/node_ranges.h"

static uint32_t rotate(uint32_t value, int n)
{
    return value << n | value >> (32 - n);
}

/*
 * Citus places a row by PostgreSQL's hash of its service_id, which is the same in all versions,
 * because hash partitions on disk depend on it: the final mix of Bob Jenkins' lookup3 (public
 * domain). Computed here, so that no push of a service needs a statement to be placed.
 */
static int32_t hash_service(int32_t service_id)
{
    uint32_t a = 0x9e3779b9u + 4 + 3923095, b = a, c = a;

    a += (uint32_t)service_id;
    c = (c ^ b) - rotate(b, 14);
    a = (a ^ c) - rotate(c, 11);
    b = (b ^ a) - rotate(a, 25);
    c = (c ^ b) - rotate(b, 16);
    a = (a ^ c) - rotate(c, 4);
    b = (b ^ a) - rotate(a, 14);
    c = (c ^ b) - rotate(b, 24);

    return (int32_t)c;
}

const struct hearth_node_range *hearth_node_find_range(const struct hearth_node_range *ranges,
                                                       size_t n, int32_t service_id)
{
    int32_t hash = hash_service(service_id);
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (ranges[mid].first_hash <= hash) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low == 0 ? NULL : &ranges[low - 1];
}

unsigned hearth_node_in_ranges(const struct hearth_node_range *ranges, size_t n, int32_t service_id)
{
    const struct hearth_node_range *range = hearth_node_find_range(ranges, n, service_id);

    return range == NULL ? 0 : range->node;
}
