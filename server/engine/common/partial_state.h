/*
 * partial_state.h -- what a call leaves out because a node is lost (private to the engine).
 *
 * Threads: belongs to its call.
 */
#ifndef HEARTH_ENGINE_PARTIAL_STATE_H
#define HEARTH_ENGINE_PARTIAL_STATE_H

#include "hearth/engine/partial.h"
#include "hearth/store/lost_nodes.h"

#define HEARTH_PARTIAL_NODES_BYTES    96
#define HEARTH_PARTIAL_SERVICES_BYTES 208

/* All zero at first. */
struct hearth_partial {
    struct hearth_node_set lost; /* whose services are left out */
    struct hearth_node_set read; /* of which services were read */
    int32_t *service_ids;        /* left out, ascending; in the arena of the call */
    size_t n_services, cap_services;

    /* For the note: names, as many as there is room for, separated by ", ". */
    char nodes[HEARTH_PARTIAL_NODES_BYTES], services[HEARTH_PARTIAL_SERVICES_BYTES];
    unsigned n_nodes, n_named_nodes;
    size_t n_named_services;
};

#endif
