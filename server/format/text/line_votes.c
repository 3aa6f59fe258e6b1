/*
 * line_votes.c -- counts lines by how well they fit a format, and refuses a text that does not fit.
 */
#include "text/line_votes.h"

#include <assert.h>
#include <inttypes.h>

#define MAX_QUOTED_BYTES 60u

void hearth_line_votes_doubt(struct hearth_line_votes *votes, uint64_t number,
                             struct hearth_str line)
{
    votes->n_doubtful++;
    if (votes->first_line == 0 || number < votes->first_line) {
        votes->first_line = number;
        votes->first = line;
    }
}

struct hearth_str hearth_line_quoted(struct hearth_str line)
{
    line = hearth_str_trim(line);
    return hearth_str_n(line.p, line.n > MAX_QUOTED_BYTES ? MAX_QUOTED_BYTES : line.n);
}

enum hearth_status hearth_line_refuse(uint64_t number, struct hearth_str line, const char *form,
                                      struct hearth_err *err)
{
    assert(form != NULL);

    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                       "line %" PRIu64 " is not %s: \"" HEARTH_STR_FMT "\"", number, form,
                       HEARTH_STR_ARG(hearth_line_quoted(line)));
}

enum hearth_status hearth_line_votes_count(const struct hearth_line_votes *votes, const char *form,
                                           struct hearth_err *err)
{
    assert(form != NULL);

    uint64_t n_lines = votes->n_doubtful + votes->n_understood;
    if (votes->n_doubtful <= votes->n_understood) {
        return HEARTH_OK;
    }
    if (n_lines == 1) {
        return hearth_line_refuse(votes->first_line, votes->first, form, err);
    }

    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                       "%" PRIu64 " of %" PRIu64 " lines are not %s; the first is line %" PRIu64
                       ", \"" HEARTH_STR_FMT "\"",
                       votes->n_doubtful, n_lines, form, votes->first_line,
                       HEARTH_STR_ARG(hearth_line_quoted(votes->first)));
}
