/*
 * text_bytes.h -- converts the input of text formats to UTF-8 (private to this layer).
 *
 * Threads: pure.
 */
#ifndef HEARTH_FORMAT_TEXT_BYTES_H
#define HEARTH_FORMAT_TEXT_BYTES_H

#include "hearth/base/arena.h"

/* True if the bytes begin with a byte order mark of UTF-16, in either order. */
HEARTH_MUST_CHECK bool hearth_text_is_utf16(struct hearth_str bytes);

/*
 * UTF-16 with a byte order mark is converted; the result is in the arena. Unpaired surrogates
 * become U+FFFD; an odd byte at the end is dropped. Any other text is returned unchanged, without a
 * byte order mark of UTF-8. Returns false if memory is refused.
 */
HEARTH_MUST_CHECK bool hearth_text_to_utf8(struct hearth_str bytes, struct hearth_arena *arena,
                                           struct hearth_str *ret);

#endif
