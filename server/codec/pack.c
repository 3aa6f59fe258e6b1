/*
 * pack.c -- columns, plain or as a zstd frame if that is much shorter.
 *
 * The compressor's tables are reused between calls: creating them takes longer than compressing a
 * small column. Only long matches are searched. Columns contain runs and hardly any other
 * repetition; the matches that level 1 finds besides are accidental, enlarge the frame by up to a
 * tenth, double the time of packing and add half to that of unpacking. So the gain comes from
 * Huffman codes.
 *
 * Frames have no checksum: PostgreSQL can check its pages, and readers of columns check every byte.
 */
#include "hearth/base/mem.h"
#include "hearth/codec/compress.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <assert.h>

enum {
    PLAIN = 0,
    FRAME = 1,
};

/* The frame header would outweigh the gain for shorter input. */
#define MIN_FRAME_INPUT 16u
/* Shorter texts have too little repetition. */
#define MIN_TEXT_INPUT 128u
#define TEXT_LEVEL     3
/*
 * The bytes that a frame must save. Unpacking takes longer than merging, so the values of a full
 * block, which a frame shortens by a sixth, stay plain.
 */
#define MIN_SAVED(n) ((n) / 3)

struct hearth_packer {
    ZSTD_CCtx *zstd;
};

/*
 * Few matches, but still Huffman codes: the parameter for that has a stable number, though no
 * stable name. A library without it uses its own choice.
 */
static void look_for_runs_only(ZSTD_CCtx *zstd)
{
    if (!ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_experimentalParam5, 1))) {
        (void)ZSTD_CCtx_setParameter(zstd, ZSTD_c_targetLength, 64);
    }
    (void)ZSTD_CCtx_setParameter(zstd, ZSTD_c_minMatch, 7);
    (void)ZSTD_CCtx_setParameter(zstd, ZSTD_c_hashLog, 6);
}

struct hearth_packer *hearth_packer_new(int level)
{
    struct hearth_packer *packer = hearth_mem_zalloc(sizeof *packer);
    if (packer == NULL) {
        return NULL;
    }

    packer->zstd = ZSTD_createCCtx();
    if (packer->zstd == NULL ||
        ZSTD_isError(ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel, level))) {
        hearth_packer_free(packer);
        return NULL;
    }

    look_for_runs_only(packer->zstd);

    return packer;
}

void hearth_packer_free(struct hearth_packer *packer)
{
    if (packer != NULL) {
        (void)ZSTD_freeCCtx(packer->zstd);
        hearth_mem_free(packer);
    }
}

enum hearth_status hearth_pack(struct hearth_packer *packer, struct hearth_str in,
                               struct hearth_buf *out, struct hearth_err *err)
{
    assert(packer != NULL);

    char *to = in.n == SIZE_MAX ? NULL : hearth_buf_reserve(out, in.n + 1);
    if (to == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to pack %zu bytes", in.n);
    }

    if (in.n >= MIN_FRAME_INPUT) {
        /* A frame that does not fit into less space is not used. */
        size_t n = ZSTD_compress2(packer->zstd, to + 1, in.n - MIN_SAVED(in.n), in.p, in.n);
        if (!ZSTD_isError(n)) {
            to[0] = FRAME;
            out->n += 1 + n;
            return HEARTH_OK;
        }
        if (ZSTD_getErrorCode(n) != ZSTD_error_dstSize_tooSmall) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "zstd: %s", ZSTD_getErrorName(n));
        }
    }

    to[0] = PLAIN;
    if (in.n > 0) {
        memcpy(to + 1, in.p, in.n);
    }

    out->n += 1 + in.n;

    return HEARTH_OK;
}

enum hearth_status hearth_pack_text(struct hearth_str in, struct hearth_buf *out,
                                    struct hearth_err *err)
{
    size_t start = out->n;

    if (in.n >= MIN_TEXT_INPUT) {
        hearth_buf_byte(out, FRAME);
        HEARTH_TRY(hearth_zstd(in, TEXT_LEVEL, out, err));
        if (out->n - start <= in.n - in.n / 8) {
            return HEARTH_OK;
        }
        out->n = start;
    }

    hearth_buf_byte(out, PLAIN);
    hearth_buf_str(out, in);

    return hearth_buf_failed(out)
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to pack %zu bytes", in.n)
               : HEARTH_OK;
}

enum hearth_status hearth_unpack(struct hearth_inflater *inflater, struct hearth_str in,
                                 size_t max_bytes, struct hearth_buf *scratch,
                                 struct hearth_str *ret_view, struct hearth_err *err)
{
    assert(inflater != NULL && ret_view != NULL);

    if (in.n == 0 || (in.p[0] != PLAIN && in.p[0] != FRAME)) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "packed bytes are damaged: %zu bytes, form %d",
                           in.n, in.n == 0 ? -1 : (unsigned char)in.p[0]);
    }

    struct hearth_str rest = hearth_str_n(in.p + 1, in.n - 1);
    if (in.p[0] == PLAIN) {
        if (rest.n > max_bytes) {
            return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                               "packed bytes hold %zu bytes, more than %zu", rest.n, max_bytes);
        }
        *ret_view = rest;
        return HEARTH_OK;
    }

    size_t start = scratch->n;
    enum hearth_status status =
        hearth_inflate(inflater, HEARTH_COMPRESSION_ZSTD, rest, max_bytes, scratch, err);

    /* Stored bytes are damaged: that is not the fault of a request. */
    if (status == HEARTH_INVALID_ARGUMENT) {
        status = HEARTH_CORRUPT;
        if (err != NULL) {
            err->status = status;
        }
        hearth_err_prefix(err, "packed bytes");
    }

    if (status == HEARTH_OK) {
        *ret_view = hearth_str_n(scratch->p + start, scratch->n - start);
    }

    return status;
}
