/*
 * inflate_lz4.h -- LZ4 frames for hearth_inflate (private to codec).
 *
 * Threads: confined to the thread of the call.
 * Source:  LZ4 Frame Format 1.6.2.
 */
#ifndef HEARTH_CODEC_INFLATE_LZ4_H
#define HEARTH_CODEC_INFLATE_LZ4_H

#include "inflate_run.h"

#define INFLATE_LZ4_MAGIC "\x04\x22\x4d\x18"

/* The content size in the header of the first frame; 0: it declares none. */
uint64_t inflate_lz4_declared_bytes(struct hearth_str in);

/* Inflates the whole input, which is not empty: one or more frames. The statuses of hearth_inflate.
 * start: the length of the buffer before the call. */
HEARTH_MUST_CHECK
enum hearth_status inflate_lz4_stream(struct inflate_run *run, size_t start);

#endif
