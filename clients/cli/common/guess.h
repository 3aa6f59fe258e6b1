/*
 * guess.h -- "did you mean": the candidate that is nearest to a mistyped text.
 *
 * Ownership: texts and candidates are borrowed.
 * Threads:   pure.
 */
#ifndef HEARTH_CLIENTS_GUESS_H
#define HEARTH_CLIENTS_GUESS_H

#include "hearth/base/buf.h"

struct cli_guess {
    struct hearth_str text;
    struct hearth_str best; /* p is NULL: none is near */
    int distance;
};
void cli_guess_begin(struct cli_guess *guess, const char *text);
void cli_guess_try(struct cli_guess *guess, struct hearth_str candidate);
/* Appends "; did you mean X?" if a candidate is near. */
void cli_guess_say(const struct cli_guess *guess, struct hearth_buf *out);

#endif
