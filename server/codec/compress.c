/*
 * compress.c -- inflating whole buffers under a cap, and deflating.
 *
 * gzip and zlib go through libdeflate, which is 1.6 to 3.6 times faster than zlib but knows only
 * "all of it into this buffer": the size is guessed from the gzip trailer, clamped by the cap and
 * by what deflate can expand at most, and doubled when it was too small. Where libdeflate cannot
 * help, zlib takes over for that member: libdeflate says "bad data" for every stream it refuses,
 * and zlib, which streams, can tell a cut stream from a damaged one and where it broke (and would
 * accept what libdeflate is too strict for). So the slow way is walked for broken input only. zstd
 * is streamed always: its frames need not tell their size.
 */
#include "hearth/codec/compress.h"

#include "hearth/base/mem.h"

#include <libdeflate.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <pthread.h>

#define DEFLATE_MAX_RATIO 1032u      /* 258 bytes from two bits */
#define MIN_STEP_BYTES    512u       /* output of tiny streams in one go */
#define ZSTD_STEP_BYTES   (1u << 18) /* two blocks of the largest size */
/* A frame may ask for a window of up to 32 MiB (2^25); level 19 asks for 8, level 22 would for 128.
 */
#define ZSTD_WINDOW_LOG  25
#define ZLIB_CHUNK_BYTES (1u << 30) /* its counters have 32 bits */

struct hearth_inflater {
    struct libdeflate_decompressor *deflate;
    ZSTD_DCtx *zstd; /* made at first use */
    z_stream zlib;
    bool zlib_ready;
};

/* One call of hearth_inflate. */
struct run {
    struct hearth_inflater *inflater;
    const char *name; /* of the format, for messages */
    struct hearth_str in;
    size_t in_pos;
    struct hearth_buf *out;
    size_t end_limit; /* out->n may not pass this */
    struct hearth_err *err;
};

enum hearth_compression hearth_compression_detect(struct hearth_str bytes)
{
    if (hearth_str_starts(bytes, HEARTH_STR("\x1f\x8b"))) {
        return HEARTH_COMPRESSION_GZIP;
    }
    if (hearth_str_starts(bytes, HEARTH_STR("\x28\xb5\x2f\xfd"))) {
        return HEARTH_COMPRESSION_ZSTD;
    }
    return HEARTH_COMPRESSION_NONE;
}

static void set_deflate_allocator(void)
{
    libdeflate_set_memory_allocator(hearth_mem_alloc, hearth_mem_free);
}

static void prepare_libdeflate(void)
{
    static pthread_once_t g_once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&g_once, set_deflate_allocator);
}

struct hearth_inflater *hearth_inflater_new(void)
{
    prepare_libdeflate();
    struct hearth_inflater *inflater = hearth_mem_zalloc(sizeof *inflater);
    if (inflater == NULL) {
        return NULL;
    }
    inflater->deflate = libdeflate_alloc_decompressor();
    if (inflater->deflate == NULL) {
        hearth_mem_free(inflater);
        return NULL;
    }
    return inflater;
}

void hearth_inflater_free(struct hearth_inflater *inflater)
{
    if (inflater == NULL) {
        return;
    }
    libdeflate_free_decompressor(inflater->deflate);
    (void)ZSTD_freeDCtx(inflater->zstd);
    if (inflater->zlib_ready) {
        (void)inflateEnd(&inflater->zlib);
    }
    hearth_mem_free(inflater);
}

static enum hearth_status fail_memory(const struct run *run)
{
    return HEARTH_FAIL(run->err, HEARTH_NO_MEMORY, "no memory to inflate a %s stream", run->name);
}

static enum hearth_status fail_cap(const struct run *run, size_t start)
{
    return HEARTH_FAIL(run->err, HEARTH_RESOURCE_EXHAUSTED,
                       "%s stream of %zu bytes inflates to more than %zu bytes", run->name,
                       run->in.n, run->end_limit - start);
}

static enum hearth_status fail_cut(const struct run *run)
{
    return HEARTH_FAIL(run->err, HEARTH_INVALID_ARGUMENT,
                       "%s stream is cut: it ends after %zu bytes", run->name, run->in.n);
}

static enum hearth_status fail_damaged(const struct run *run, const char *what)
{
    return HEARTH_FAIL(run->err, HEARTH_INVALID_ARGUMENT,
                       "%s stream is damaged near byte %zu of %zu: %s", run->name, run->in_pos,
                       run->in.n, what);
}

/* Where a decompressor may write: the buffer, or at the cap one byte that shows whether more comes.
 */
struct window {
    char *p;
    size_t n;
    bool beyond; /* p is not in the buffer */
    char extra;
};

static bool open_window(struct run *run, size_t wish, struct window *window)
{
    size_t room = run->end_limit - run->out->n;
    window->beyond = room == 0;
    if (room == 0) {
        window->p = &window->extra;
        window->n = 1;
        return true;
    }
    window->n = wish < room ? wish : room;
    window->p = hearth_buf_reserve(run->out, window->n);
    return window->p != NULL;
}

static voidpf zlib_alloc(voidpf opaque, uInt n, uInt size)
{
    (void)opaque;
    return hearth_mem_calloc(n, size);
}

static void zlib_free(voidpf opaque, voidpf ptr)
{
    (void)opaque;
    hearth_mem_free(ptr);
}

static bool reset_zlib(struct hearth_inflater *inflater, int window_bits)
{
    if (inflater->zlib_ready) {
        return inflateReset2(&inflater->zlib, window_bits) == Z_OK;
    }
    inflater->zlib = (z_stream){.zalloc = zlib_alloc, .zfree = zlib_free};
    inflater->zlib_ready = inflateInit2(&inflater->zlib, window_bits) == Z_OK;
    return inflater->zlib_ready;
}

/* One gzip member or zlib stream at in_pos by zlib. */
static enum hearth_status inflate_streaming(struct run *run, bool gzip, size_t start)
{
    z_stream *zlib = &run->inflater->zlib;
    if (!reset_zlib(run->inflater, gzip ? 15 + 16 : 15)) {
        return fail_memory(run);
    }
    for (;;) {
        struct window window;
        if (!open_window(run, 2 * (run->out->n - start) + ZSTD_STEP_BYTES, &window)) {
            return fail_memory(run);
        }
        size_t n_in = run->in.n - run->in_pos;
        n_in = n_in < ZLIB_CHUNK_BYTES ? n_in : ZLIB_CHUNK_BYTES;
        size_t n_out = window.n < ZLIB_CHUNK_BYTES ? window.n : ZLIB_CHUNK_BYTES;
        /* zlib.h has no const here; it only reads. */
        zlib->next_in = (Bytef *)(uintptr_t)(run->in.p + run->in_pos);
        zlib->avail_in = (uInt)n_in;
        zlib->next_out = (Bytef *)window.p;
        zlib->avail_out = (uInt)n_out;
        int rc = inflate(zlib, Z_NO_FLUSH);
        run->in_pos += n_in - zlib->avail_in;
        size_t got = n_out - zlib->avail_out;
        if (window.beyond && got > 0) {
            return fail_cap(run, start);
        }
        run->out->n += got;
        if (rc == Z_STREAM_END) {
            return HEARTH_OK;
        }
        if (rc == Z_MEM_ERROR) {
            return fail_memory(run);
        }
        if (rc == Z_NEED_DICT) {
            return fail_damaged(run, "it needs a preset dictionary");
        }
        if (rc != Z_OK && rc != Z_BUF_ERROR) {
            return fail_damaged(run, zlib->msg == NULL ? "invalid stream" : zlib->msg);
        }
        if (run->in_pos == run->in.n && zlib->avail_out > 0) {
            return fail_cut(run);
        }
    }
}

/* Output size of what lies at in_pos: the trailer's claim (that of the last member), kept
 * plausible. */
static size_t guess_size(const struct run *run, bool gzip)
{
    size_t n = run->in.n - run->in_pos;
    size_t most = n > SIZE_MAX / DEFLATE_MAX_RATIO ? SIZE_MAX : n * DEFLATE_MAX_RATIO;
    size_t guess = n > SIZE_MAX / 4 ? SIZE_MAX : n * 4;
    if (gzip && n >= 18) {
        const unsigned char *tail = (const unsigned char *)run->in.p + run->in.n - 4;
        guess =
            (size_t)tail[0] | (size_t)tail[1] << 8 | (size_t)tail[2] << 16 | (size_t)tail[3] << 24;
    }
    guess = guess < most ? guess : most;
    return guess < MIN_STEP_BYTES ? MIN_STEP_BYTES : guess;
}

/* One gzip member or zlib stream at in_pos. */
static enum hearth_status inflate_member(struct run *run, bool gzip, size_t start)
{
    size_t wish = guess_size(run, gzip);
    for (;;) {
        size_t room = run->end_limit - run->out->n;
        size_t n_out = wish < room ? wish : room;
        char *to = hearth_buf_reserve(run->out, n_out);
        if (to == NULL) {
            return fail_memory(run);
        }
        const char *from = run->in.p + run->in_pos;
        size_t n_in = run->in.n - run->in_pos, used = 0, got = 0;
        struct libdeflate_decompressor *d = run->inflater->deflate;
        enum libdeflate_result rc =
            gzip ? libdeflate_gzip_decompress_ex(d, from, n_in, to, n_out, &used, &got)
                 : libdeflate_zlib_decompress_ex(d, from, n_in, to, n_out, &used, &got);
        if (rc == LIBDEFLATE_SUCCESS) {
            run->in_pos += used;
            run->out->n += got;
            return HEARTH_OK;
        }
        if (rc != LIBDEFLATE_INSUFFICIENT_SPACE) {
            return inflate_streaming(run, gzip, start);
        }
        if (n_out == room) {
            return fail_cap(run, start);
        }
        wish = n_out > SIZE_MAX / 2 ? SIZE_MAX : n_out * 2;
    }
}

static enum hearth_status inflate_deflated(struct run *run, bool gzip, size_t start)
{
    do {
        HEARTH_TRY(inflate_member(run, gzip, start));
    } while (gzip && run->in_pos < run->in.n);
    if (run->in_pos < run->in.n) {
        return fail_damaged(run, "bytes behind the end of the stream");
    }
    return HEARTH_OK;
}

static bool reset_zstd(struct hearth_inflater *inflater)
{
    if (inflater->zstd == NULL) {
        inflater->zstd = ZSTD_createDCtx();
        if (inflater->zstd == NULL) {
            return false;
        }
    }
    size_t rc = ZSTD_DCtx_reset(inflater->zstd, ZSTD_reset_session_and_parameters);
    return !ZSTD_isError(rc) && !ZSTD_isError(ZSTD_DCtx_setParameter(
                                    inflater->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG));
}

static enum hearth_status fail_zstd(const struct run *run, size_t rc)
{
    switch (ZSTD_getErrorCode(rc)) {
    case ZSTD_error_memory_allocation:
        return fail_memory(run);
    case ZSTD_error_frameParameter_windowTooLarge:
        return HEARTH_FAIL(run->err, HEARTH_RESOURCE_EXHAUSTED,
                           "zstd stream asks for a window of more than %u bytes",
                           1u << ZSTD_WINDOW_LOG);
    default:
        return fail_damaged(run, ZSTD_getErrorName(rc));
    }
}

/*
 * A single frame that says how long it is, straight to where it belongs: half the time of a stream for
 * a kilobyte. False: nothing was done, and the stream finds out what is the matter.
 */
static bool inflate_zstd_at_once(struct run *run, size_t n_out)
{
    char *to = hearth_buf_reserve(run->out, n_out);
    size_t n =
        to == NULL ? 0 : ZSTD_decompressDCtx(run->inflater->zstd, to, n_out, run->in.p, run->in.n);
    if (n != n_out) {
        return false;
    }
    run->out->n += n;
    run->in_pos = run->in.n;
    return true;
}

static enum hearth_status inflate_zstd(struct run *run, size_t start)
{
    if (!reset_zstd(run->inflater)) {
        return fail_memory(run);
    }
    ZSTD_inBuffer in = {run->in.p, run->in.n, 0};
    unsigned long long claimed = ZSTD_getFrameContentSize(run->in.p, run->in.n);
    bool known = claimed != ZSTD_CONTENTSIZE_UNKNOWN && claimed != ZSTD_CONTENTSIZE_ERROR;
    if (known && claimed > run->end_limit - start) {
        return fail_cap(run, start);
    }
    /* A claim is believed as far as ordinary text could fulfil it; one step then holds the whole
     * frame. */
    size_t believed = run->in.n > SIZE_MAX / 64 ? SIZE_MAX : run->in.n * 64;
    bool whole = known && claimed <= believed;
    if (whole && claimed > 0 && inflate_zstd_at_once(run, (size_t)claimed)) {
        return HEARTH_OK;
    }
    size_t wish = whole ? (size_t)claimed : ZSTD_STEP_BYTES;
    wish = wish < MIN_STEP_BYTES ? MIN_STEP_BYTES : wish;
    size_t pending;
    do {
        struct window window;
        if (!open_window(run, wish, &window)) {
            return fail_memory(run);
        }
        ZSTD_outBuffer out = {window.p, window.n, 0};
        pending = ZSTD_decompressStream(run->inflater->zstd, &out, &in);
        run->in_pos = in.pos;
        if (ZSTD_isError(pending)) {
            return fail_zstd(run, pending);
        }
        if (window.beyond && out.pos > 0) {
            return fail_cap(run, start);
        }
        run->out->n += window.beyond ? 0 : out.pos;
        if (in.pos == in.size && pending != 0 && out.pos < out.size) {
            return fail_cut(run);
        }
        size_t so_far = run->out->n - start;
        wish = so_far < ZSTD_STEP_BYTES ? ZSTD_STEP_BYTES : so_far;
    } while (in.pos < in.size || pending != 0);
    return HEARTH_OK;
}

static enum hearth_status copy_plain(struct run *run, size_t start)
{
    if (run->in.n > run->end_limit - start) {
        return HEARTH_FAIL(run->err, HEARTH_RESOURCE_EXHAUSTED,
                           "body of %zu bytes is larger than %zu bytes", run->in.n,
                           run->end_limit - start);
    }
    hearth_buf_str(run->out, run->in);
    return hearth_buf_failed(run->out) ? fail_memory(run) : HEARTH_OK;
}

enum hearth_status hearth_inflate(struct hearth_inflater *inflater, enum hearth_compression format,
                                  struct hearth_str in, size_t max_bytes, struct hearth_buf *out,
                                  struct hearth_err *err)
{
    static const char *const names[] = {"plain", "gzip", "zlib", "zstd"};
    size_t start = out->n;
    struct run run = {
        .inflater = inflater, .name = names[format], .in = in, .out = out, .err = err};
    if (out->failed) {
        return fail_memory(&run);
    }
    size_t room = out->limit_bytes == 0 ? SIZE_MAX - start : out->limit_bytes - start;
    run.end_limit = start + (max_bytes < room ? max_bytes : room);
    size_t limit_before = out->limit_bytes;
    out->limit_bytes = run.end_limit; /* so that doubling stops at the cap, too */
    enum hearth_status status;
    if (format == HEARTH_COMPRESSION_NONE) {
        status = copy_plain(&run, start);
    } else if (in.n == 0) {
        status = HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s stream is empty", run.name);
    } else if (format == HEARTH_COMPRESSION_ZSTD) {
        status = inflate_zstd(&run, start);
    } else {
        status = inflate_deflated(&run, format == HEARTH_COMPRESSION_GZIP, start);
    }
    out->limit_bytes = limit_before;
    if (status != HEARTH_OK) {
        out->n = start;
        out->failed = false;
    }
    return status;
}

uint64_t hearth_inflated_bytes(enum hearth_compression format, struct hearth_str in)
{
    if (format == HEARTH_COMPRESSION_NONE) {
        return in.n;
    }
    if (format == HEARTH_COMPRESSION_GZIP && in.n >= 18) {
        const unsigned char *end = (const unsigned char *)in.p + in.n;
        return end[-4] | (uint64_t)end[-3] << 8 | (uint64_t)end[-2] << 16 | (uint64_t)end[-1] << 24;
    }
    if (format == HEARTH_COMPRESSION_ZSTD) {
        unsigned long long n = ZSTD_getFrameContentSize(in.p, in.n);
        return n == ZSTD_CONTENTSIZE_UNKNOWN || n == ZSTD_CONTENTSIZE_ERROR ? 0 : n;
    }
    return 0;
}

/* Room for what `bound` promises to suffice, or for as much as the buffer's limit leaves. */
static char *reserve_bound(struct hearth_buf *out, size_t bound, size_t *ret_room)
{
    size_t room = out->limit_bytes == 0 ? bound : out->limit_bytes - out->n;
    *ret_room = bound < room ? bound : room;
    return hearth_buf_reserve(out, *ret_room);
}

static enum hearth_status fail_output(const struct hearth_buf *out, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                       "compressed bytes do not fit the limit of %zu bytes", out->limit_bytes);
}

enum hearth_status hearth_gzip(struct hearth_str in, int level, struct hearth_buf *out,
                               struct hearth_err *err)
{
    prepare_libdeflate();
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
    size_t room = 0;
    char *to =
        c == NULL ? NULL : reserve_bound(out, libdeflate_gzip_compress_bound(c, in.n), &room);
    if (to == NULL) {
        libdeflate_free_compressor(c);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to gzip %zu bytes", in.n);
    }
    size_t n = libdeflate_gzip_compress(c, in.n == 0 ? "" : in.p, in.n, to, room);
    libdeflate_free_compressor(c);
    if (n == 0) {
        return fail_output(out, err);
    }
    out->n += n;
    return HEARTH_OK;
}

enum hearth_status hearth_zstd(struct hearth_str in, int level, struct hearth_buf *out,
                               struct hearth_err *err)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    size_t room = 0;
    char *to = c == NULL ? NULL : reserve_bound(out, ZSTD_compressBound(in.n), &room);
    if (to == NULL) {
        (void)ZSTD_freeCCtx(c);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to compress %zu bytes", in.n);
    }
    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level);
    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    size_t n = ZSTD_compress2(c, to, room, in.p, in.n);
    (void)ZSTD_freeCCtx(c);
    if (ZSTD_isError(n)) {
        bool full = ZSTD_getErrorCode(n) == ZSTD_error_dstSize_tooSmall;
        if (full) {
            return fail_output(out, err);
        }
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "zstd: %s", ZSTD_getErrorName(n));
    }
    out->n += n;
    return HEARTH_OK;
}
