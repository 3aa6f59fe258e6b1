/*
 * stack_line.h -- one line of collapsed stacks, told from lines of other text; private to this layer.
 *
 * Threads: pure.
 */
#ifndef HEARTH_FORMAT_STACK_LINE_H
#define HEARTH_FORMAT_STACK_LINE_H

#include "hearth/base/str.h"

enum hearth_line_kind {
    HEARTH_LINE_IGNORED,  /* blank, or a comment */
    HEARTH_LINE_STACK,    /* a stack trace with its value */
    HEARTH_LINE_DOUBTFUL, /* read as a stack trace, and just as well a line of prose or settings */
    HEARTH_LINE_OTHER,    /* without a value */
    HEARTH_LINE_FOREIGN,  /* begins as no stack trace does */
};

struct hearth_stack_line {
    struct hearth_str stack; /* "root;child;leaf" */
    int64_t value;           /* 1 in formats without values */
    const char *foreign;     /* of FOREIGN: "a line of a log" */
};

/*
 * A line that begins with '#' is a comment, unless a name follows at once and a ';' later: "#a;b 1". A
 * stack that begins with ';' is never doubtful or foreign. Without values no line is doubtful or other.
 */
enum hearth_line_kind hearth_stack_line_read(struct hearth_str line, bool has_values,
                                             struct hearth_stack_line *ret);

#endif
