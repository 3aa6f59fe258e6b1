/*
 * line_votes.h -- whether a text is of the format that it is read as: its lines vote; private to this
 * layer.
 *
 * Prose, logs and configuration files hold single lines that look like those of a text format. So a
 * text is refused when more of its lines are skipped than understood. Lines that look like a stack
 * trace and like other text (doubtful ones) count with the skipped.
 *
 * Threads: a value of its caller.
 */
#ifndef HEARTH_FORMAT_LINE_VOTES_H
#define HEARTH_FORMAT_LINE_VOTES_H

#include "hearth/base/status.h"

struct hearth_line_votes {
    uint64_t line; /* number of the line that is read; from 1 */
    uint64_t n_understood, n_doubtful, n_skipped;
    uint64_t first_line; /* the first that is doubtful or skipped; 0: none */
    struct hearth_str first;
};

void hearth_line_votes_skip(struct hearth_line_votes *votes, uint64_t number,
                            struct hearth_str line);
void hearth_line_votes_doubt(struct hearth_line_votes *votes, uint64_t number,
                             struct hearth_str line);
/* INVALID_ARGUMENT with the first such line when they are the majority. `form` completes "are not". */
HEARTH_MUST_CHECK enum hearth_status hearth_line_votes_count(const struct hearth_line_votes *votes,
                                                             const char *form,
                                                             struct hearth_err *err);

/* A line as messages quote it: without white space around it, at most 60 bytes. */
struct hearth_str hearth_line_quoted(struct hearth_str line);

#endif
