/*
 * pprof_text.h -- truncates and repairs strings, and recognises input that is not a profile
 * (private to this layer).
 */
#ifndef HEARTH_FORMAT_PPROF_TEXT_H
#define HEARTH_FORMAT_PPROF_TEXT_H

#include "hearth/base/arena.h"
#include "hearth/format/pprof.h"

/*
 * Truncate *text to its last max_bytes (0: no limit), at a character boundary, and replace each run
 * of bytes that are not UTF-8, or are NUL, by one U+FFFD. The result borrows from *text if nothing
 * was replaced, otherwise it is in the arena. Returns false if memory is refused.
 */
HEARTH_MUST_CHECK bool hearth_pprof_mend_text(struct hearth_str *text, uint32_t max_bytes,
                                              struct hearth_arena *arena,
                                              struct hearth_pprof_notes *notes);

/*
 * The name of the input's format if it is certainly not pprof ("a JFR recording"), otherwise NULL.
 */
const char *hearth_pprof_recognise(struct hearth_str bytes);

/* For input that could not be decoded: true if its first bytes are text. */
bool hearth_pprof_looks_like_text(struct hearth_str bytes);

#endif
