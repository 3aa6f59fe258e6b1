/*
 * call_graph.h -- which function calls which, and for how much: a function tree, drawn together.
 *
 * A node is a function (all nodes of the tree with its name), with self and total as in the exact
 * table of functions: a recursive one counts once per stack trace. An edge is a call from one shown
 * function to the next one that is shown below it, with the value of all stack traces that have it,
 * each counted once however often it has the call; it is indirect when in none of them the one
 * stands directly below the other.
 *
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_CALL_GRAPH_H
#define HEARTH_MODEL_CALL_GRAPH_H

#include "hearth/model/stacktree.h"

struct hearth_call_node {
    struct hearth_str name; /* the tree's text */
    int64_t self, total;
};

struct hearth_call_edge {
    uint32_t from, to; /* indices of nodes; the same for direct recursion */
    int64_t value;
    bool is_indirect;
};

struct hearth_call_graph {
    struct hearth_call_node *nodes; /* by total descending, then self, then name */
    size_t n_nodes, n_functions;    /* shown; of the tree */
    struct hearth_call_edge *edges; /* by value descending, then from, then to */
    size_t n_edges, n_calls;        /* shown; between the functions that are shown */
    int64_t total;                  /* of the tree */
};

/*
 * Of a sealed tree that is not truncated: the max_nodes functions of largest total, and the edges
 * between them of at least min_value. Arrays in arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_call_graph_make(const struct hearth_stacktree *tree, size_t max_nodes,
                                          int64_t min_value, struct hearth_arena *arena,
                                          struct hearth_call_graph *ret, struct hearth_err *err);

#endif
