/*
 * flame_text.h -- a flame graph as plain text: an indented tree with values, shares and bars,
 * UTF-8.
 *
 *     1.20 s 100.00% ████████████████ total
 *     1.20 s 100.00% ████████████████  main
 *     1.20 s 100.00% ████████████████  run
 *     800 ms  66.67% ██████████▋       ├ render
 *     300 ms  25.00% ████              └ parse
 *
 * The heaviest child of a node stands first, children of one weight by name. A name without a mark
 * is the only child of the one above it, with the same value: a chain of these is indented once,
 * not at each step, so that deep stack traces fit a screen.
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
    /* Nodes with a smaller share of the total are omitted; a line below the tree counts them. */
    double min_percent;
    const char *option; /* name of the option that sets min_percent, for that line; may be NULL */
    int name_width;     /* names are cut to this many columns */
};

/*
 * Append the text of a graph with total > 0. CORRUPT if a level refers to a missing name;
 * NO_MEMORY if the arena refuses memory (failures of `out` stick to it).
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_flame_text_write(const struct hearth_flamegraph *graph,
                                           const struct hearth_flame_text *how,
                                           struct hearth_arena *arena, struct hearth_buf *out,
                                           struct hearth_err *err);

#endif
