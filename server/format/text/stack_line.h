/*
 * stack_line.h -- recognises a line of collapsed stacks among lines of other texts (private to this
 * layer).
 *
 * Threads: pure.
 */
#ifndef HEARTH_FORMAT_STACK_LINE_H
#define HEARTH_FORMAT_STACK_LINE_H

#include "hearth/base/str.h"

enum hearth_line_kind {
    HEARTH_LINE_IGNORED,  /* blank, or a comment */
    HEARTH_LINE_STACK,    /* a stack trace with its value */
    HEARTH_LINE_DOUBTFUL, /* a stack trace, but perhaps a line of prose or settings */
    HEARTH_LINE_OTHER,    /* a line without a value */
    HEARTH_LINE_FOREIGN,  /* begins in a way that no stack trace does */
};

struct hearth_stack_line {
    struct hearth_str stack; /* "root;child;leaf" */
    int64_t value;           /* 1 in formats without values */
    const char *foreign;     /* FOREIGN: the kind of text, such as "a line of a log" */
};

/*
 * A line that begins with '#' is a comment, unless a name follows immediately and a ';' later:
 * "#a;b 1". A stack that begins with ';' is never DOUBTFUL or FOREIGN. Without values no line is
 * DOUBTFUL or OTHER.
 */
enum hearth_line_kind hearth_stack_line_read(struct hearth_str line, bool has_values,
                                             struct hearth_stack_line *ret);

#endif
