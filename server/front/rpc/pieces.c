/* pieces.c -- see pieces.h. */
#include "rpc/pieces.h"

#include "hearth/base/budget.h"
#include "hearth/codec/compress.h"

#define GZIP_LEVEL 1 /* of zlib, which is two to four times slower than what packs small answers */

void hearth_pieces_release(struct hearth_pieces *pieces)
{
    if (pieces->more != NULL && pieces->release != NULL) {
        pieces->release(pieces->context);
    }
    pieces->more = NULL;
}

static void ask(struct hearth_pieces *pieces, size_t n_bytes, struct hearth_buf *out)
{
    if (!pieces->more(pieces->context, n_bytes, out)) {
        hearth_pieces_release(pieces);
    }
}

/* The first window is larger than the others. */
static void empty(struct hearth_buf *window)
{
    if (window->cap > 2 * HEARTH_PIECES_WINDOW_BYTES) {
        hearth_buf_release(window);
    }
    hearth_buf_reset(window);
}

static enum hearth_status check_buf(const struct hearth_buf *buf, struct hearth_err *err)
{
    if (!hearth_buf_failed(buf)) {
        return HEARTH_OK;
    }
    return buf->budget != NULL ? HEARTH_FAIL_BUDGET(err, buf->budget)
                               : HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the answer");
}

/* All that is left, behind the text that is there. */
static enum hearth_status compress(struct hearth_pieces *pieces, struct hearth_gzip_stream *gzip,
                                   struct hearth_cancel *cancel, struct hearth_buf *text,
                                   struct hearth_buf *out, struct hearth_err *err)
{
    for (;;) {
        hearth_gzip_stream_add(gzip, hearth_buf_view(text), out);
        HEARTH_TRY(check_buf(out, err));
        if (pieces->more == NULL) {
            break;
        }
        HEARTH_TRY(hearth_cancel_check(cancel, err));
        empty(text);
        ask(pieces, HEARTH_PIECES_WINDOW_BYTES, text);
        HEARTH_TRY(check_buf(text, err));
    }
    hearth_gzip_stream_end(gzip, out);
    return check_buf(out, err);
}

static enum hearth_status begin_gzip(struct hearth_pieces *pieces, struct hearth_cancel *cancel,
                                     struct hearth_buf *out, struct hearth_err *err)
{
    struct hearth_gzip_stream *gzip = hearth_gzip_stream_new(GZIP_LEVEL);
    if (gzip == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a compressor");
    }
    struct hearth_buf text = *out;
    hearth_buf_init(out, text.limit_bytes);
    out->budget = text.budget;
    enum hearth_status status = compress(pieces, gzip, cancel, &text, out, err);
    hearth_buf_release(&text);
    hearth_gzip_stream_free(gzip);
    return status;
}

enum hearth_status hearth_pieces_begin(struct hearth_pieces *pieces, enum hearth_pieces_way way,
                                       struct hearth_cancel *cancel, struct hearth_buf *out,
                                       bool *ret_is_gzip, struct hearth_err *err)
{
    *ret_is_gzip = false;
    ask(pieces, way == HEARTH_PIECES_AT_ONCE ? SIZE_MAX : HEARTH_PIECES_WHOLE_BYTES, out);
    enum hearth_status status = check_buf(out, err);
    if (status == HEARTH_OK && pieces->more != NULL && way == HEARTH_PIECES_AS_GZIP) {
        status = begin_gzip(pieces, cancel, out, err);
        *ret_is_gzip = status == HEARTH_OK;
    }
    if (status != HEARTH_OK) {
        hearth_pieces_release(pieces);
    }
    return status;
}

ssize_t hearth_pieces_read(struct hearth_pieces *pieces, struct hearth_buf *window, size_t *sent,
                           char *to, size_t n)
{
    if (*sent == window->n && pieces->more != NULL) {
        empty(window);
        *sent = 0;
        ask(pieces, HEARTH_PIECES_WINDOW_BYTES, window);
    }
    if (hearth_buf_failed(window)) {
        return -1;
    }
    n = n < window->n - *sent ? n : window->n - *sent;
    if (n > 0) {
        memcpy(to, window->p + *sent, n);
    }
    *sent += n;
    return (ssize_t)n;
}
