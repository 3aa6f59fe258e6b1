/* pieces.c -- makes the pieces of a text, compresses them, hands them to the transport. */
#include "rpc/pieces.h"

#include "hearth/base/budget.h"
#include "hearth/codec/compress.h"

#include <assert.h>

/* zlib is two to four times slower than libdeflate, which compresses small answers. */
#define GZIP_LEVEL 1

void hearth_pieces_release(struct hearth_pieces *pieces)
{
    if (pieces->more != NULL && pieces->release != NULL) {
        pieces->release(pieces->context);
    }
    pieces->more = NULL;
}

static void make_piece(struct hearth_pieces *pieces, size_t n_bytes, struct hearth_buf *out)
{
    assert(pieces->more != NULL);
    if (!pieces->more(pieces->context, n_bytes, out)) {
        hearth_pieces_release(pieces);
    }
}

/* The first window is larger than the others: its memory is not kept. */
static void empty_window(struct hearth_buf *window)
{
    if (window->cap > 2 * HEARTH_PIECES_WINDOW_BYTES) {
        hearth_buf_release(window);
    }
    hearth_buf_reset(window);
}

static enum hearth_status check_piece(const struct hearth_buf *buf, struct hearth_err *err)
{
    if (!hearth_buf_failed(buf)) {
        return HEARTH_OK;
    }
    return buf->budget != NULL ? HEARTH_FAIL_BUDGET(err, buf->budget)
                               : HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the answer");
}

/* Compresses `text`, the beginning, and then all remaining pieces. */
static enum hearth_status compress_pieces(struct hearth_pieces *pieces,
                                          struct hearth_gzip_stream *gzip,
                                          struct hearth_cancel *cancel, struct hearth_buf *text,
                                          struct hearth_buf *out, struct hearth_err *err)
{
    for (;;) {
        hearth_gzip_stream_add(gzip, hearth_buf_view(text), out);
        HEARTH_TRY(check_piece(out, err));
        if (pieces->more == NULL) {
            break;
        }
        HEARTH_TRY(hearth_cancel_check(cancel, err));
        empty_window(text);
        make_piece(pieces, HEARTH_PIECES_WINDOW_BYTES, text);
        HEARTH_TRY(check_piece(text, err));
    }

    hearth_gzip_stream_end(gzip, out);

    return check_piece(out, err);
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
    enum hearth_status status = compress_pieces(pieces, gzip, cancel, &text, out, err);
    hearth_buf_release(&text);
    hearth_gzip_stream_free(gzip);

    return status;
}

enum hearth_status hearth_pieces_begin(struct hearth_pieces *pieces, enum hearth_pieces_way way,
                                       struct hearth_cancel *cancel, struct hearth_buf *out,
                                       bool *ret_is_gzip, struct hearth_err *err)
{
    assert(pieces->more != NULL && out != NULL);
    *ret_is_gzip = false;
    make_piece(pieces, way == HEARTH_PIECES_AT_ONCE ? SIZE_MAX : HEARTH_PIECES_WHOLE_BYTES, out);
    enum hearth_status status = check_piece(out, err);
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
    assert(*sent <= window->n);
    if (*sent == window->n && pieces->more != NULL) {
        empty_window(window);
        *sent = 0;
        make_piece(pieces, HEARTH_PIECES_WINDOW_BYTES, window);
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
