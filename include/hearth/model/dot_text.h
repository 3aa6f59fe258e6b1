/*
 * dot_text.h -- a call graph as Graphviz text.
 *
 * Threads: pure.
 * Source:  the DOT language, graphviz.org/doc/info/lang.html.
 */
#ifndef HEARTH_MODEL_DOT_TEXT_H
#define HEARTH_MODEL_DOT_TEXT_H

#include "hearth/model/call_graph.h"

/* The functions that a picture shows unless its reader chooses another number. */
#define HEARTH_DOT_FUNCTIONS 100

/*
 * The graph for a picture of a sealed tree that is not truncated: the functions with the largest
 * totals, and the calls that are no smaller than those of a flame graph of 512 nodes, or of
 * max_functions if that is more. max_functions < 1: all functions. Arrays in arena. NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_dot_select(const struct hearth_stacktree *tree, int64_t max_functions,
                                     struct hearth_arena *arena, struct hearth_call_graph *ret,
                                     struct hearth_err *err);
/*
 * Append a digraph. Nodes are n1, n2, ... with exact `self` and `total`; edges have an exact
 * `value`; labels show the same values for people, in the unit of the profile type. The buffer
 * keeps errors.
 */
void hearth_dot_write(const struct hearth_call_graph *graph, struct hearth_str title,
                      struct hearth_str unit, struct hearth_buf *out);

#endif
