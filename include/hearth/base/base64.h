/*
 * base64.h -- encodes with the standard alphabet and padding; decodes the standard and the URL-safe
 * alphabet, with or without padding.
 *
 * Threads:   pure.
 * Source:    RFC 4648 sections 4 and 5.
 */
#ifndef HEARTH_BASE_BASE64_H
#define HEARTH_BASE_BASE64_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"

/* Append the encoded form; a failure is the buffer's. */
void hearth_base64_encode(struct hearth_str in, struct hearth_buf *out);
/*
 * The decoded bytes are in `arena`. Returns false for an invalid character, length or padding, and
 * if memory is refused.
 */
HEARTH_MUST_CHECK bool hearth_base64_decode(struct hearth_str in, struct hearth_arena *arena,
                                            struct hearth_str *ret);

#endif
