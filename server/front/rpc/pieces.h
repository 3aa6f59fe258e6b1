/*
 * pieces.h -- the text of an answer, made piece by piece, so that a large one is never in memory as
 * a whole.
 *
 * A text of up to 1 MiB is made at once. Of a larger one, the first MiB is made at once; the
 * transport decides how the rest is made:
 *
 *   AS_SENT   while the answer is being sent;
 *   AS_GZIP   at once, but compressed, so that the data it is made from can be freed early;
 *   AT_ONCE   at once, because the transport must know the length first.
 *
 * Ownership: the holder of the struct owns the source. `release` is called once, at the end of the
 *            text or when the text is given up.
 * Threads:   not thread-safe; threads may use a source one after the other.
 */
#ifndef HEARTH_FRONT_PIECES_H
#define HEARTH_FRONT_PIECES_H

#include "hearth/base/buf.h"
#include "hearth/base/cancel.h"

#include <sys/types.h>

#define HEARTH_PIECES_WHOLE_BYTES  ((size_t)1 << 20) /* texts up to this are made at once */
#define HEARTH_PIECES_WINDOW_BYTES ((size_t)64 << 10)

/* The source of a text that is not complete. `more` is NULL if the text is complete, or not used.
 * */
struct hearth_pieces {
    /* Appends n_bytes or slightly more, or the rest; false at the end of the text. A failed
     * allocation is recorded in the buffer. */
    bool (*more)(void *context, size_t n_bytes, struct hearth_buf *out);
    void (*release)(void *context); /* may be NULL */
    void *context;
};

enum hearth_pieces_way {
    HEARTH_PIECES_AT_ONCE,
    HEARTH_PIECES_AS_SENT,
    HEARTH_PIECES_AS_GZIP,
};

/* Releases the source, if any. */
void hearth_pieces_release(struct hearth_pieces *pieces);

/*
 * Makes the part of the text that must be ready before the first byte is sent, and appends it to
 * `out`. With AS_SENT the rest of a large text stays in *pieces; otherwise the text is complete.
 *
 * pieces       must have a source
 * ret_is_gzip  true if `out` is a gzip member; never for a small text
 * Returns      OK; NO_MEMORY; CANCELLED or DEADLINE_EXCEEDED while compressing. On errors, *pieces
 *              is released.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_pieces_begin(struct hearth_pieces *pieces, enum hearth_pieces_way way,
                                       struct hearth_cancel *cancel, struct hearth_buf *out,
                                       bool *ret_is_gzip, struct hearth_err *err);

/*
 * Reads at most n bytes of a text begun with AS_SENT.
 *
 * window   `out` of hearth_pieces_begin, refilled when all of it was read
 * sent     number of bytes of window that were read, 0 at first
 * Returns  the number of bytes; 0 at the end; -1 if there was no memory for a piece: the answer
 *          cannot be completed
 */
ssize_t hearth_pieces_read(struct hearth_pieces *pieces, struct hearth_buf *window, size_t *sent,
                           char *to, size_t n);

#endif
