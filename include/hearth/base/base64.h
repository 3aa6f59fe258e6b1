/*
 * base64.h -- standard alphabet out; standard and URL-safe, padded or not, in.
 * Threads:   pure.
 * Source:    RFC 4648 sections 4 and 5.
 */
#ifndef HEARTH_BASE_BASE64_H
#define HEARTH_BASE_BASE64_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"

void hearth_base64_encode(struct hearth_str in, struct hearth_buf *out);
/* Decoded bytes in arena; false on a wrong character, length or padding. */
HEARTH_MUST_CHECK bool hearth_base64_decode(struct hearth_str in, struct hearth_arena *arena,
                                            struct hearth_str *ret);

#endif
