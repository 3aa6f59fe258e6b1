/*
 * dot.h -- a call graph as Graphviz text (private to the engine).
 *
 * Threads: pure functions.
 * Source:  the DOT language, graphviz.org/doc/info/lang.html.
 */
#ifndef HEARTH_ENGINE_DOT_H
#define HEARTH_ENGINE_DOT_H

#include "hearth/model/call_graph.h"
#include "hearth/model/profile_type.h"

/*
  * Appends a digraph. Nodes are n1, n2, ... with exact `self` and `total`; edges have an exact
  * `value`; labels show the same values for people, in the unit of the type. The buffer keeps
  * errors.
  */
void hearth_dot_write(const struct hearth_call_graph *graph, const struct hearth_profile_type *type,
                      struct hearth_buf *out);

#endif
