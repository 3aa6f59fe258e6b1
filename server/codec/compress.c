/*
 * compress.c -- inflates whole buffers up to a limit, and deflates them.
 *
 * gzip and zlib streams are inflated by libdeflate, which is 1.6 to 3.6 times faster than zlib but
 * needs an output buffer for the whole result. Its size is guessed from the gzip trailer, clamped
 * by the limit and by the largest expansion of deflate, and doubled if it was too small. If
 * libdeflate refuses a member, zlib inflates it instead: libdeflate reports only "bad data", while
 * zlib, which streams, distinguishes a truncated stream from a damaged one, knows the place, and
 * accepts some streams that libdeflate is too strict for. So the slow path is only taken for broken
 * input. zstd is always streamed: its frames need not declare their size.
 */
#include "hearth/codec/compress.h"

#include "hearth/base/mem.h"

#include "inflate_lz4.h"

#include <libdeflate.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <assert.h>
#include <pthread.h>

#define DEFLATE_MAX_RATIO 1032u      /* 258 bytes from two bits */
#define MIN_STEP_BYTES    512u       /* tiny streams are inflated in one step */
#define ZSTD_STEP_BYTES   (1u << 18) /* two blocks of the largest size */
/* A frame may use a window of up to 32 MiB (2^25); level 19 uses 8 MiB, level 22 would use 128. */
#define ZSTD_WINDOW_LOG      25
#define ZSTD_MAX_KEPT_BYTES  ((size_t)1 << 20)
#define SKIPPABLE_HEAD_BYTES 8          /* of a frame: magic bytes and size */
#define ZLIB_CHUNK_BYTES     (1u << 30) /* its counters have 32 bits */

struct hearth_inflater {
    struct libdeflate_decompressor *deflate;
    ZSTD_DCtx *zstd; /* created at first use */
    z_stream zlib;
    bool zlib_ready; /* zlib has been initialised */
};

/* The bytes after the skippable frames at their beginning, which zstd and LZ4 have in common. */
static struct hearth_str skip_frames(struct hearth_str bytes)
{
    const unsigned char *p = (const unsigned char *)bytes.p;
    size_t at = 0;

    while (bytes.n - at >= SKIPPABLE_HEAD_BYTES && (p[at] & 0xf0) == 0x50 &&
           memcmp(p + at + 1, "\x2a\x4d\x18", 3) == 0) {
        uint32_t n_bytes = (uint32_t)p[at + 7] << 24 | (uint32_t)p[at + 6] << 16 |
                           (uint32_t)p[at + 5] << 8 | p[at + 4];
        if (n_bytes > bytes.n - at - SKIPPABLE_HEAD_BYTES) {
            break;
        }
        at += SKIPPABLE_HEAD_BYTES + n_bytes;
    }

    return at == 0 ? bytes : hearth_str_n(bytes.p + at, bytes.n - at);
}

enum hearth_compression hearth_compression_detect(struct hearth_str bytes)
{
    bytes = skip_frames(bytes);
    if (hearth_str_starts(bytes, HEARTH_STR("\x1f\x8b"))) {
        return HEARTH_COMPRESSION_GZIP;
    }
    if (hearth_str_starts(bytes, HEARTH_STR("\x28\xb5\x2f\xfd"))) {
        return HEARTH_COMPRESSION_ZSTD;
    }
    if (hearth_str_starts(bytes, HEARTH_STR(INFLATE_LZ4_MAGIC))) {
        return HEARTH_COMPRESSION_LZ4;
    }

    return HEARTH_COMPRESSION_NONE;
}

static void set_libdeflate_allocator(void)
{
    libdeflate_set_memory_allocator(hearth_mem_alloc, hearth_mem_free);
}

static void prepare_libdeflate(void)
{
    static pthread_once_t g_once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&g_once, set_libdeflate_allocator);
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

static voidpf alloc_for_zlib(voidpf opaque, uInt n, uInt size)
{
    (void)opaque;
    return hearth_mem_calloc(n, size);
}

static void free_for_zlib(voidpf opaque, voidpf ptr)
{
    (void)opaque;
    hearth_mem_free(ptr);
}

static bool reset_zlib(struct hearth_inflater *inflater, int window_bits)
{
    if (inflater->zlib_ready) {
        return inflateReset2(&inflater->zlib, window_bits) == Z_OK;
    }

    inflater->zlib = (z_stream){.zalloc = alloc_for_zlib, .zfree = free_for_zlib};
    inflater->zlib_ready = inflateInit2(&inflater->zlib, window_bits) == Z_OK;

    return inflater->zlib_ready;
}

/* Inflate one gzip member or zlib stream at in_pos by zlib. */
static enum hearth_status inflate_with_zlib(struct inflate_run *run, bool gzip, size_t start)
{
    z_stream *zlib = &run->inflater->zlib;

    if (!reset_zlib(run->inflater, gzip ? 15 + 16 : 15)) {
        return inflate_fail_memory(run);
    }

    for (;;) {
        struct inflate_window window;
        if (!inflate_open_window(run, 2 * (run->out->n - start) + ZSTD_STEP_BYTES, &window)) {
            return inflate_fail_memory(run);
        }
        /* zlib counts with 32 bits: feed large input in chunks. */
        size_t n_in = run->in.n - run->in_pos;
        n_in = n_in < ZLIB_CHUNK_BYTES ? n_in : ZLIB_CHUNK_BYTES;
        size_t n_out = window.n < ZLIB_CHUNK_BYTES ? window.n : ZLIB_CHUNK_BYTES;
        /* The type has no const, but zlib only reads the input. */
        zlib->next_in = (Bytef *)(uintptr_t)(run->in.p + run->in_pos);
        zlib->avail_in = (uInt)n_in;
        zlib->next_out = (Bytef *)window.p;
        zlib->avail_out = (uInt)n_out;

        int rc = inflate(zlib, Z_NO_FLUSH);

        run->in_pos += n_in - zlib->avail_in;
        size_t got = n_out - zlib->avail_out;
        if (window.beyond && got > 0) {
            return inflate_fail_limit(run, start);
        }

        run->out->n += got;

        /* The end, an error, or the input ended before the stream. */
        if (rc == Z_STREAM_END) {
            return HEARTH_OK;
        }
        if (rc == Z_MEM_ERROR) {
            return inflate_fail_memory(run);
        }
        if (rc == Z_NEED_DICT) {
            return inflate_fail_damaged(run, "it needs a preset dictionary");
        }
        if (rc != Z_OK && rc != Z_BUF_ERROR) {
            return inflate_fail_damaged(run, zlib->msg == NULL ? "invalid stream" : zlib->msg);
        }
        if (run->in_pos == run->in.n && zlib->avail_out > 0) {
            return inflate_fail_truncated(run);
        }
    }
}

/*
 * An estimate of the inflated size of the member at in_pos: the size in the trailer, which is that
 * of the last member, limited to what deflate can expand.
 */
static size_t guess_size(const struct inflate_run *run, bool gzip)
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

/*
 * Inflate one gzip member or zlib stream at in_pos: by libdeflate, and by zlib if that refuses it.
 */
static enum hearth_status inflate_member(struct inflate_run *run, bool gzip, size_t start)
{
    size_t wish = guess_size(run, gzip);

    for (;;) {
        size_t room = run->end_limit - run->out->n;
        size_t n_out = wish < room ? wish : room;
        char *to = hearth_buf_reserve(run->out, n_out);
        if (to == NULL) {
            return inflate_fail_memory(run);
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
            return inflate_with_zlib(run, gzip, start);
        }
        if (n_out == room) {
            return inflate_fail_limit(run, start);
        }

        wish = n_out > SIZE_MAX / 2 ? SIZE_MAX : n_out * 2;
    }
}

static enum hearth_status inflate_deflated(struct inflate_run *run, bool gzip, size_t start)
{
    do {
        HEARTH_TRY(inflate_member(run, gzip, start));
    } while (gzip && run->in_pos < run->in.n);
    if (run->in_pos < run->in.n) {
        return inflate_fail_damaged(run, "bytes after the end of the stream");
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

static enum hearth_status fail_zstd(const struct inflate_run *run, size_t rc)
{
    switch (ZSTD_getErrorCode(rc)) {
    case ZSTD_error_memory_allocation:
        return inflate_fail_memory(run);
    case ZSTD_error_frameParameter_windowTooLarge:
        return HEARTH_FAIL(run->err, HEARTH_RESOURCE_EXHAUSTED,
                           "zstd stream needs a window of more than %u bytes",
                           1u << ZSTD_WINDOW_LOG);
    default:
        return inflate_fail_damaged(run, ZSTD_getErrorName(rc));
    }
}

/*
 * Inflate a single frame with a declared size directly into the buffer: for a kilobyte this takes
 * half the time of streaming. Returns false without any effect if that fails; streaming then finds
 * the reason.
 */
static bool inflate_zstd_frame(struct inflate_run *run, size_t n_out)
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

/* The size that the frame at in_pos declares; UINT64_MAX if it declares none. */
static enum hearth_status open_zstd_frame(const struct inflate_run *run, size_t start,
                                          uint64_t *ret_declared)
{
    uint64_t declared = ZSTD_getFrameContentSize(run->in.p + run->in_pos, run->in.n - run->in_pos);

    if (declared == ZSTD_CONTENTSIZE_UNKNOWN || declared == ZSTD_CONTENTSIZE_ERROR) {
        declared = UINT64_MAX;
    } else if (declared > run->end_limit - run->out->n) {
        return inflate_fail_limit(run, start);
    }

    *ret_declared = declared;

    return HEARTH_OK;
}

static enum hearth_status inflate_zstd_stream(struct inflate_run *run, size_t start)
{
    uint64_t declared = 0;
    size_t frame_start = start, pending;

    if (!reset_zstd(run->inflater)) {
        return inflate_fail_memory(run);
    }
    HEARTH_TRY(open_zstd_frame(run, start, &declared));

    /* Trust a declared size up to a plausible ratio: then one step has room for the whole frame. */
    size_t believed = run->in.n > SIZE_MAX / 64 ? SIZE_MAX : run->in.n * 64;
    bool whole = declared <= believed;
    if (whole && declared > 0 && inflate_zstd_frame(run, (size_t)declared)) {
        return HEARTH_OK;
    }

    /* Otherwise in steps, each as large as all output so far. */
    ZSTD_inBuffer in = {run->in.p, run->in.n, 0};
    size_t wish = whole ? (size_t)declared : ZSTD_STEP_BYTES;
    wish = wish < MIN_STEP_BYTES ? MIN_STEP_BYTES : wish;
    do {
        struct inflate_window window;
        if (!inflate_open_window(run, wish, &window)) {
            return inflate_fail_memory(run);
        }

        ZSTD_outBuffer out = {window.p, window.n, 0};
        pending = ZSTD_decompressStream(run->inflater->zstd, &out, &in);
        run->in_pos = in.pos;
        if (ZSTD_isError(pending)) {
            return fail_zstd(run, pending);
        }
        /* libzstd finds this, too, unless it still has the larger buffer of another stream. */
        if (run->out->n - frame_start + out.pos > declared) {
            return inflate_fail_damaged(run, "the frame is larger than it declares");
        }
        if (window.beyond && out.pos > 0) {
            return inflate_fail_limit(run, start);
        }

        run->out->n += window.beyond ? 0 : out.pos;
        if (in.pos == in.size && pending != 0 && out.pos < out.size) {
            return inflate_fail_truncated(run);
        }

        if (pending == 0 && in.pos < in.size) {
            frame_start = run->out->n;
            HEARTH_TRY(open_zstd_frame(run, start, &declared));
        }
        size_t so_far = run->out->n - start;
        wish = so_far < ZSTD_STEP_BYTES ? ZSTD_STEP_BYTES : so_far;
    } while (in.pos < in.size || pending != 0);

    return HEARTH_OK;
}

static enum hearth_status copy_plain_bytes(struct inflate_run *run, size_t start)
{
    if (run->in.n > run->end_limit - start) {
        return HEARTH_FAIL(run->err, HEARTH_RESOURCE_EXHAUSTED,
                           "body of %zu bytes is larger than %zu bytes", run->in.n,
                           run->end_limit - start);
    }

    hearth_buf_str(run->out, run->in);

    return hearth_buf_failed(run->out) ? inflate_fail_memory(run) : HEARTH_OK;
}

enum hearth_status hearth_inflate(struct hearth_inflater *inflater, enum hearth_compression format,
                                  struct hearth_str in, size_t max_bytes, struct hearth_buf *out,
                                  struct hearth_err *err)
{
    static const char *const names[] = {"plain", "gzip", "zlib", "zstd", "lz4"};

    size_t start = out->n;
    struct inflate_run run = {
        .inflater = inflater, .name = names[format], .in = in, .out = out, .err = err};
    if (out->failed) {
        return inflate_fail_memory(&run);
    }

    /* The output ends at max_bytes or at the buffer's own limit, whichever comes first. */
    size_t room = out->limit_bytes == 0 ? SIZE_MAX - start : out->limit_bytes - start;
    run.end_limit = start + (max_bytes < room ? max_bytes : room);
    size_t limit_before = out->limit_bytes;
    out->limit_bytes = run.end_limit; /* so that the buffer does not grow beyond it either */
    enum hearth_status status;
    if (format == HEARTH_COMPRESSION_NONE) {
        status = copy_plain_bytes(&run, start);
    } else if (in.n == 0) {
        status = HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s stream is empty", run.name);
    } else if (format == HEARTH_COMPRESSION_ZSTD) {
        status = inflate_zstd_stream(&run, start);
    } else if (format == HEARTH_COMPRESSION_LZ4) {
        status = inflate_lz4_stream(&run, start);
    } else {
        status = inflate_deflated(&run, format == HEARTH_COMPRESSION_GZIP, start);
    }

    /* A failure leaves the buffer as it was. */
    out->limit_bytes = limit_before;
    if (status != HEARTH_OK) {
        out->n = start;
        out->failed = false;
    }

    return status;
}

enum hearth_status hearth_inflate_in_arena(struct hearth_inflater *inflater,
                                           enum hearth_compression format, struct hearth_str in,
                                           size_t max_bytes, struct hearth_arena *arena,
                                           struct hearth_str *ret, struct hearth_err *err)
{
    assert(arena != NULL && ret != NULL);

    if (inflater == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a decompressor");
    }

    struct hearth_buf plain;
    hearth_buf_init(&plain, 0);
    plain.budget = arena->budget;
    enum hearth_status status = hearth_inflate(inflater, format, in, max_bytes, &plain, err);
    if (status == HEARTH_OK) {
        struct hearth_str copy = hearth_arena_str(arena, hearth_buf_view(&plain));
        *ret = copy.p == NULL ? *ret : copy;
        status = copy.p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
    }
    hearth_buf_release(&plain);

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

    if (format == HEARTH_COMPRESSION_LZ4) {
        return inflate_lz4_declared_bytes(in);
    }

    return 0;
}

/*
 * Room for `bound` bytes, which are sufficient in any case, or for all that the buffer's limit
 * leaves.
 */
static char *reserve_bound(struct hearth_buf *out, size_t bound, size_t *ret_room)
{
    assert(out->limit_bytes == 0 || out->n <= out->limit_bytes);

    size_t room = out->limit_bytes == 0 ? bound : out->limit_bytes - out->n;
    *ret_room = bound < room ? bound : room;
    return hearth_buf_reserve(out, *ret_room);
}

static enum hearth_status fail_output(const struct hearth_buf *out, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                       "the compressed bytes exceed the limit of %zu bytes", out->limit_bytes);
}

enum hearth_status hearth_gzip(struct hearth_str in, int level, struct hearth_buf *out,
                               struct hearth_err *err)
{
    assert(level >= 1 && level <= 9);

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

struct hearth_zstd_tables {
    ZSTD_CCtx *zstd; /* NULL: none are kept */
};

struct hearth_zstd_tables *hearth_zstd_tables_new(void)
{
    return hearth_mem_zalloc(sizeof(struct hearth_zstd_tables));
}

void hearth_zstd_tables_free(struct hearth_zstd_tables *tables)
{
    if (tables != NULL) {
        (void)ZSTD_freeCCtx(tables->zstd);
        hearth_mem_free(tables);
    }
}

/* Kept tables, ready for another input, or new ones; NULL without memory. */
static ZSTD_CCtx *take_zstd(struct hearth_zstd_tables *tables)
{
    ZSTD_CCtx *c = tables == NULL ? NULL : tables->zstd;
    if (c == NULL) {
        return ZSTD_createCCtx();
    }

    tables->zstd = NULL;
    (void)ZSTD_CCtx_reset(c, ZSTD_reset_session_and_parameters);
    return c;
}

static void give_zstd(struct hearth_zstd_tables *tables, ZSTD_CCtx *c)
{
    if (tables != NULL && ZSTD_sizeof_CCtx(c) <= ZSTD_MAX_KEPT_BYTES) {
        tables->zstd = c;
    } else {
        (void)ZSTD_freeCCtx(c);
    }
}

enum hearth_status hearth_zstd_by(struct hearth_zstd_tables *tables, struct hearth_str in,
                                  int level, struct hearth_buf *out, struct hearth_err *err)
{
    assert(level >= 1 && level <= 19);

    ZSTD_CCtx *c = take_zstd(tables);
    size_t room = 0;
    char *to = c == NULL ? NULL : reserve_bound(out, ZSTD_compressBound(in.n), &room);
    if (to == NULL) {
        (void)ZSTD_freeCCtx(c);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to compress %zu bytes", in.n);
    }

    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level);
    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    size_t n = ZSTD_compress2(c, to, room, in.p, in.n);
    give_zstd(tables, c);
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

enum hearth_status hearth_zstd(struct hearth_str in, int level, struct hearth_buf *out,
                               struct hearth_err *err)
{
    return hearth_zstd_by(NULL, in, level, out, err);
}
