/*
 * pieces.h -- the text of an answer, made piece by piece, so that a large one is never in memory
 * whole.
 *
 * Small texts are made at once, as all others are. Of a large one only the first megabyte is; how the
 * rest is made depends on what the transport can do: it asks for it while it sends; it wants all of
 * it compressed, which keeps what the text is made from no longer than the work takes; or it needs
 * the length first.
 *
 * Ownership: a source belongs to who holds the struct; `release` is called once, by whoever sees its
 *            end or gives it up.
 * Threads:   not thread-safe; a source may be asked by one thread after the other.
 */
#ifndef HEARTH_FRONT_PIECES_H
#define HEARTH_FRONT_PIECES_H

#include "hearth/base/buf.h"
#include "hearth/base/cancel.h"

#include <sys/types.h>

#define HEARTH_PIECES_WHOLE_BYTES  ((size_t)1 << 20) /* texts up to this are made at once */
#define HEARTH_PIECES_WINDOW_BYTES ((size_t)64 << 10)

/* A text that is not made yet. `more` NULL: there is none, or no more. */
struct hearth_pieces {
    /* Appends n_bytes or a little more, or what is left; false: that was the end. Errors are the buffer's. */
    bool (*more)(void *context, size_t n_bytes, struct hearth_buf *out);
    void (*release)(void *context); /* NULL: nothing to do */
    void *context;
};

enum hearth_pieces_way {
    HEARTH_PIECES_AT_ONCE,
    HEARTH_PIECES_AS_SENT,
    HEARTH_PIECES_AS_GZIP,
};

void hearth_pieces_release(struct hearth_pieces *pieces);

/*
 * Make what must be made before the first byte is sent, into the empty `out`. With AS_SENT the rest is
 * left in *pieces; else nothing is. *ret_is_gzip: `out` is a gzip member; a small text never is.
 *
 * Returns  OK; NO_MEMORY; CANCELLED or DEADLINE_EXCEEDED while compressing. Then *pieces is released.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_pieces_begin(struct hearth_pieces *pieces, enum hearth_pieces_way way,
                                       struct hearth_cancel *cancel, struct hearth_buf *out,
                                       bool *ret_is_gzip, struct hearth_err *err);

/*
 * The next bytes of what begin began, n at most: window is its `out`, *sent what was read of that.
 * 0: the end. -1: there was no memory for a piece, and the answer has no end.
 */
ssize_t hearth_pieces_read(struct hearth_pieces *pieces, struct hearth_buf *window, size_t *sent,
                           char *to, size_t n);

#endif
