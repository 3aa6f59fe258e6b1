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

/* A fraction counts these parts of one: as many digits as the largest factor can bring forward. */
#define HEARTH_FRACTION_ONE UINT64_C(10000000000)
#define HEARTH_FACTOR_MAX   INT64_C(1000000000)

struct hearth_stack_line {
    struct hearth_str stack; /* "root;child;leaf" */
    int64_t value;           /* without its fraction; 1 in formats without values */
    uint64_t fraction;       /* of the value, below HEARTH_FRACTION_ONE */
    const char *foreign;     /* FOREIGN: the kind of text, such as "a line of a log" */
};

/*
 * A line that begins with '#' is a comment, unless a name follows immediately and a ';' later:
 * "#a;b 1". A stack that begins with ';' is never DOUBTFUL or FOREIGN. Without values no line is
 * DOUBTFUL or OTHER.
 */
enum hearth_line_kind hearth_stack_line_read(struct hearth_str line, bool has_values,
                                             struct hearth_stack_line *ret);
/*
 * The value with its fraction times the factor, 1 to HEARTH_FACTOR_MAX, rounded half up. False if
 * it needs more than 63 bits.
 */
bool hearth_stack_line_scale(const struct hearth_stack_line *line, int64_t factor, int64_t *ret);

#endif
