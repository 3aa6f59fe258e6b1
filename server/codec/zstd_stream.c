/* zstd_stream.c -- inflates a zstd stream whose pieces arrive one by one and may lack an end. */
#include "hearth/base/mem.h"
#include "hearth/codec/compress.h"

#include <zstd.h>

#include <assert.h>

#define MAX_WINDOW_LOG 25 /* as in compress.c */
#define STEP_BYTES     (1u << 17)

struct hearth_unzstd_stream {
    ZSTD_DCtx *context;
};

struct hearth_unzstd_stream *hearth_unzstd_stream_new(void)
{
    struct hearth_unzstd_stream *stream = hearth_mem_zalloc(sizeof *stream);
    if (stream == NULL) {
        return NULL;
    }

    stream->context = ZSTD_createDCtx();
    if (stream->context == NULL || ZSTD_isError(ZSTD_DCtx_setParameter(
                                       stream->context, ZSTD_d_windowLogMax, MAX_WINDOW_LOG))) {
        hearth_unzstd_stream_free(stream);
        return NULL;
    }

    return stream;
}

void hearth_unzstd_stream_free(struct hearth_unzstd_stream *stream)
{
    if (stream == NULL) {
        return;
    }

    (void)ZSTD_freeDCtx(stream->context);
    hearth_mem_free(stream);
}

enum hearth_status hearth_unzstd_stream_add(struct hearth_unzstd_stream *stream,
                                            struct hearth_str in, struct hearth_buf *out,
                                            struct hearth_err *err)
{
    ZSTD_inBuffer from = {in.p, in.n, 0};
    bool is_full = true;

    assert(stream != NULL && out != NULL);

    /* All input is read, and a step that did not fill its room has left nothing behind. */
    while (from.pos < from.size || is_full) {
        char *room = hearth_buf_reserve(out, STEP_BYTES);
        if (room == NULL) {
            bool is_limit = out->limit_bytes > 0 && out->limit_bytes - out->n < STEP_BYTES;
            return HEARTH_FAIL(err, is_limit ? HEARTH_RESOURCE_EXHAUSTED : HEARTH_NO_MEMORY,
                               "no memory for what the zstd stream inflates to beyond %zu bytes",
                               out->n);
        }

        ZSTD_outBuffer to = {room, STEP_BYTES, 0};
        size_t rc = ZSTD_decompressStream(stream->context, &to, &from);
        if (ZSTD_isError(rc)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "damaged zstd stream: %s",
                               ZSTD_getErrorName(rc));
        }

        out->n += to.pos;
        is_full = to.pos == to.size;
    }

    return HEARTH_OK;
}
