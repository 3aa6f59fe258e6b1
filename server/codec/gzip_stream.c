/*
 * gzip_stream.c -- one gzip member from pieces of input, by zlib: libdeflate needs the whole input.
 */
#include "hearth/base/mem.h"
#include "hearth/codec/compress.h"

#include <zlib.h>

#include <assert.h>

#define GZIP_WINDOW_BITS (15 + 16)
#define ROOM_BYTES       (32u << 10)
#define CHUNK_BYTES      (1u << 30) /* zlib's counters have 32 bits */

struct hearth_gzip_stream {
    z_stream zlib;
};

static voidpf alloc_for_stream(voidpf opaque, uInt n, uInt size)
{
    (void)opaque;
    return hearth_mem_calloc(n, size);
}

static void free_for_stream(voidpf opaque, voidpf ptr)
{
    (void)opaque;
    hearth_mem_free(ptr);
}

struct hearth_gzip_stream *hearth_gzip_stream_new(int level)
{
    assert(level >= 1 && level <= 9);

    struct hearth_gzip_stream *stream = hearth_mem_zalloc(sizeof *stream);
    if (stream == NULL) {
        return NULL;
    }

    stream->zlib.zalloc = alloc_for_stream;
    stream->zlib.zfree = free_for_stream;
    if (deflateInit2(&stream->zlib, level, Z_DEFLATED, GZIP_WINDOW_BITS, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        hearth_mem_free(stream);
        return NULL;
    }

    return stream;
}

void hearth_gzip_stream_free(struct hearth_gzip_stream *stream)
{
    if (stream != NULL) {
        (void)deflateEnd(&stream->zlib);
        hearth_mem_free(stream);
    }
}

/* Deflate all input in zlib->next_in; with Z_FINISH also end the member. */
static void deflate_input(z_stream *zlib, int flush, struct hearth_buf *out)
{
    int rc;

    do {
        char *to = hearth_buf_reserve(out, ROOM_BYTES);
        if (to == NULL) {
            return;
        }
        zlib->next_out = (Bytef *)to;
        zlib->avail_out = ROOM_BYTES;
        rc = deflate(zlib, flush);
        HEARTH_ASSERT(rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR);
        out->n += ROOM_BYTES - zlib->avail_out;
    } while (zlib->avail_out == 0 || (flush == Z_FINISH && rc != Z_STREAM_END));
}

void hearth_gzip_stream_add(struct hearth_gzip_stream *stream, struct hearth_str in,
                            struct hearth_buf *out)
{
    while (in.n > 0 && !hearth_buf_failed(out)) {
        size_t n = in.n < CHUNK_BYTES ? in.n : CHUNK_BYTES;
        /* The type has no const, but zlib only reads the input. */
        stream->zlib.next_in = (Bytef *)(uintptr_t)in.p;
        stream->zlib.avail_in = (uInt)n;
        deflate_input(&stream->zlib, Z_NO_FLUSH, out);
        assert(out->failed || stream->zlib.avail_in == 0);
        in = hearth_str_n(in.p + n, in.n - n);
    }
}

void hearth_gzip_stream_end(struct hearth_gzip_stream *stream, struct hearth_buf *out)
{
    assert(stream != NULL);

    stream->zlib.avail_in = 0;
    deflate_input(&stream->zlib, Z_FINISH, out);
}
