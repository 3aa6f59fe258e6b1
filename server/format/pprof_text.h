/*
 * pprof_text.h -- the string table's texts made fit for use, and inputs that are not profiles told
 * apart; private to the pprof decoder.
 */
#ifndef HEARTH_FORMAT_PPROF_TEXT_H
#define HEARTH_FORMAT_PPROF_TEXT_H

#include "hearth/base/arena.h"
#include "hearth/format/pprof.h"

/*
 * Cut *text to the tail of max_bytes (0: no limit) on a character boundary and replace each run of
 * bytes that are not UTF-8, or are NUL, by one U+FFFD. The result borrows from *text where nothing
 * was replaced, else it is in arena. False when memory was refused.
 */
HEARTH_MUST_CHECK bool hearth_pprof_mend_text(struct hearth_str *text, uint32_t max_bytes,
                                              struct hearth_arena *arena,
                                              struct hearth_pprof_notes *notes);

/* What the input is when it is certainly something else ("a JFR recording"), or NULL. */
const char *hearth_pprof_recognise(struct hearth_str bytes);

/* For an input that did not decode: true when it begins like text. */
bool hearth_pprof_looks_like_text(struct hearth_str bytes);

#endif
