/*
 * line_votes.h -- refuses a text that has not the format that it is read as (private to this
 * layer).
 *
 * A line that no rule explains refuses the text. Prose, logs and configuration files may consist of
 * lines that look like lines of a text format: so a text is also refused if most of its lines are
 * doubtful, which means that they look both like a stack trace and like other text.
 *
 * Threads: a value of its caller.
 */
#ifndef HEARTH_FORMAT_LINE_VOTES_H
#define HEARTH_FORMAT_LINE_VOTES_H

#include "hearth/base/status.h"

struct hearth_line_votes {
    uint64_t line; /* number of the current line, from 1 */
    uint64_t n_understood, n_doubtful;
    uint64_t first_line;     /* number of the first doubtful line; 0: none */
    struct hearth_str first; /* that line */
};

/*
 * INVALID_ARGUMENT, with the number and the text of a line that no rule explains. `form` completes
 * the sentence "the line is not".
 */
HEARTH_MUST_CHECK enum hearth_status hearth_line_refuse(uint64_t number, struct hearth_str line,
                                                        const char *form, struct hearth_err *err);
void hearth_line_votes_doubt(struct hearth_line_votes *votes, uint64_t number,
                             struct hearth_str line);
/*
 * INVALID_ARGUMENT, with the first doubtful line, if these lines are the majority. `form` completes
 * the sentence "lines are not".
 */
HEARTH_MUST_CHECK enum hearth_status hearth_line_votes_count(const struct hearth_line_votes *votes,
                                                             const char *form,
                                                             struct hearth_err *err);

/* A line as quoted in messages: without leading and trailing white space, at most 60 bytes. */
struct hearth_str hearth_line_quoted(struct hearth_str line);

#endif
