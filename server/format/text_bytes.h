/*
 * text_bytes.h -- the text formats' input as UTF-8; private to this layer.
 *
 * Threads: pure.
 */
#ifndef HEARTH_FORMAT_TEXT_BYTES_H
#define HEARTH_FORMAT_TEXT_BYTES_H

#include "hearth/base/arena.h"

/* True when the bytes begin with the byte order mark of UTF-16, in either order. */
HEARTH_MUST_CHECK bool hearth_text_is_utf16(struct hearth_str bytes);

/*
 * UTF-16 with a byte order mark is converted, in arena; lone surrogates become U+FFFD, half a unit at
 * the end is dropped. Any other text is returned as it is, without a byte order mark of UTF-8.
 * False when memory was refused.
 */
HEARTH_MUST_CHECK bool hearth_text_to_utf8(struct hearth_str bytes, struct hearth_arena *arena,
                                           struct hearth_str *ret);

#endif
