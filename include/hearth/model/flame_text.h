/*
 * flame_text.h -- a flame graph as plain text: an indented tree with values, shares and bars, in UTF-8.
 *
 *     1.20 s 100.00% ████████████████ total
 *     1.20 s 100.00% ████████████████ main
 *     300 ms  25.00% ████             ├ parse
 *     800 ms  66.67% ██████████▋      └ render
 *
 * A chain of only children stays in one column: depth shows where paths part.
 *
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_FLAME_TEXT_H
#define HEARTH_MODEL_FLAME_TEXT_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/model/stacktree.h"

struct hearth_flame_text {
    struct hearth_str unit; /* as in profile types */
    double
        min_percent; /* nodes with a smaller share of the total are left out, and counted below the tree */
    const char *option; /* that sets min_percent, for the line about them; NULL: none */
    int name_width;     /* longer names are cut, in columns */
};

/* Append it; a graph with total > 0. CORRUPT: levels that name what there is no name for. NO_MEMORY: the arena's. */
HEARTH_MUST_CHECK
enum hearth_status hearth_flame_text_write(const struct hearth_flamegraph *graph,
                                           const struct hearth_flame_text *how,
                                           struct hearth_arena *arena, struct hearth_buf *out,
                                           struct hearth_err *err);

#endif
