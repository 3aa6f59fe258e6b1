/*
 * call_graph.h -- which function calls which, and at what cost: a function tree merged into a
 * graph.
 *
 * A node is a function: all tree nodes with its name. Its self and total are those of the exact
 * table of functions, so a recursive function counts once per stack trace. An edge is a call from a
 * shown function to the next shown function below it. Its value is the sum over all stack traces
 * that contain the call; a stack trace counts once, however often it contains the call. An edge is
 * indirect if no stack trace has its two functions next to each other.
 *
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_CALL_GRAPH_H
#define HEARTH_MODEL_CALL_GRAPH_H

#include "hearth/model/stacktree.h"

struct hearth_call_node {
    struct hearth_str name; /* borrowed from the tree */
    int64_t self, total;
};

struct hearth_call_edge {
    uint32_t from, to; /* indices of nodes; equal for direct recursion */
    int64_t value;
    bool is_indirect;
};

struct hearth_call_graph {
    struct hearth_call_node *nodes; /* sorted by total descending, then self, then name */
    size_t n_nodes;                 /* shown nodes */
    size_t n_functions;             /* functions of the tree, shown or not */
    struct hearth_call_edge *edges; /* sorted by value descending, then from, then to */
    size_t n_edges;                 /* shown edges */
    size_t n_calls;                 /* edges between shown functions, of any value */
    int64_t total;                  /* total of the tree */
};

/*
 * Make the graph of a sealed tree that is not truncated: the max_nodes functions with the largest
 * totals, and the edges between them with a value of at least min_value. Arrays in arena.
 * NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_graph_make(const struct hearth_stacktree *tree, size_t max_nodes,
                                          int64_t min_value, struct hearth_arena *arena,
                                          struct hearth_call_graph *ret, struct hearth_err *err);

#endif
