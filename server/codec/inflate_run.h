/*
 * inflate_run.h -- one call of hearth_inflate, shared by the decompressors (private to codec): its
 * output within the limit, and its errors.
 *
 * Threads: confined to the thread of the call.
 */
#ifndef HEARTH_CODEC_INFLATE_RUN_H
#define HEARTH_CODEC_INFLATE_RUN_H

#include "hearth/codec/compress.h"

struct inflate_run {
    struct hearth_inflater *inflater;
    const char *name; /* name of the format, for messages */
    struct hearth_str in;
    size_t in_pos;
    struct hearth_buf *out;
    size_t end_limit; /* out->n must not exceed this */
    struct hearth_err *err;
};

/*
 * The place where a decompressor may write: room in the buffer, or, at the limit, one extra byte
 * that shows whether there is more output.
 */
struct inflate_window {
    char *p;
    size_t n;
    bool beyond; /* p is the extra byte, not the buffer */
    char extra;
};

/* Opens a window of at most `wish` bytes; false without memory. */
bool inflate_open_window(struct inflate_run *run, size_t wish, struct inflate_window *window);

/* start: the length of the buffer before the call. */
enum hearth_status inflate_fail_limit(const struct inflate_run *run, size_t start);
enum hearth_status inflate_fail_memory(const struct inflate_run *run);
enum hearth_status inflate_fail_truncated(const struct inflate_run *run);
enum hearth_status inflate_fail_damaged(const struct inflate_run *run, const char *what);

#endif
