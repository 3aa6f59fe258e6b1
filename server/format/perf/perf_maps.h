/*
 * perf_maps.h -- which file is mapped where in an address space (private to the reader of
 * perf.data).
 *
 * A child begins with the maps of its parent, in constant time: both share nodes until one of them
 * changes its maps. Adding and finding take logarithmic time; a map where nothing was mapped takes
 * one node of 48 bytes.
 *
 * Ownership: nodes live in the arena.
 * Threads:   not thread-safe.
 */
#ifndef HEARTH_FORMAT_PERF_MAPS_H
#define HEARTH_FORMAT_PERF_MAPS_H

#include "hearth/base/arena.h"

#define PERF_NO_PLACE UINT32_MAX

struct perf_map {
    uint64_t start, end, offset; /* [start, end) has the bytes of the file from offset on */
    uint32_t object;             /* index of the file */
    uint32_t place;              /* index of the range in the file, or PERF_NO_PLACE */
};

struct perf_map_node;

/* Zero-initialised. */
struct perf_maps {
    uint32_t root;  /* number of a node; 0: there are no maps */
    uint32_t owner; /* nodes of other owners are shared */
};

/* All nodes, and the shape of trees. Zero-initialised, but for arena and max_nodes. */
struct perf_map_pool {
    struct hearth_arena *arena;
    uint32_t max_nodes;            /* 0: no limit */
    struct perf_map_node **blocks; /* of nodes, which stay where they are */
    size_t n_blocks, cap_blocks;
    uint32_t n_owners, n_nodes; /* also copies of shared nodes */
    bool is_full;               /* a node was refused by max_nodes */
    uint64_t n_visits;          /* of nodes: the work so far */
};

/*
 * Replaces what was mapped in the range of `map`, which is not empty. False: max_nodes is reached,
 * or there is no memory.
 */
HEARTH_MUST_CHECK
bool hearth_perf_maps_add(struct perf_map_pool *pool, struct perf_maps *maps,
                          const struct perf_map *map);
/* Gives *child the maps of *parent. */
void hearth_perf_maps_share(struct perf_maps *parent, struct perf_maps *child);
/* The map that contains an address, or NULL; valid until the maps change. */
struct perf_map *hearth_perf_maps_find(const struct perf_map_pool *pool,
                                       const struct perf_maps *maps, uint64_t address);

#endif
