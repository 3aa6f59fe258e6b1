/*
 * inflate_lz4.c -- LZ4 frames, by liblz4.
 *
 * The decompressor is made for each stream and not kept: it holds the last blocks of its stream, up
 * to 8 MiB, and few clients send LZ4. liblz4 takes its memory from malloc.
 */
#include "inflate_lz4.h"

#include <assert.h>
#include <lz4frame.h>

#define STEP_BYTES        (1u << 18)
#define BELIEVED_RATIO    255u /* the largest expansion of LZ4 */
#define HAS_CONTENT_SIZE  0x08 /* a bit of the byte FLG */
#define FLG_AT            4u
#define CONTENT_SIZE_AT   6u
#define CONTENT_SIZE_ENDS 14u

uint64_t inflate_lz4_declared_bytes(struct hearth_str in)
{
    const unsigned char *p = (const unsigned char *)in.p;
    uint64_t n = 0;

    if (in.n < CONTENT_SIZE_ENDS || !hearth_str_starts(in, HEARTH_STR(INFLATE_LZ4_MAGIC)) ||
        (p[FLG_AT] & HAS_CONTENT_SIZE) == 0) {
        return 0;
    }

    for (size_t i = CONTENT_SIZE_ENDS; i-- > CONTENT_SIZE_AT;) {
        n = n << 8 | p[i];
    }

    return n;
}

static enum hearth_status fail_lz4(const struct inflate_run *run, size_t code)
{
    const char *name = LZ4F_getErrorName(code);

    return strcmp(name, "ERROR_allocation_failed") == 0 ? inflate_fail_memory(run)
                                                        : inflate_fail_damaged(run, name);
}

/* Inflates all frames, each output window as large as all output so far. */
static enum hearth_status inflate_lz4_frames(struct inflate_run *run, LZ4F_dctx *lz4, size_t start)
{
    uint64_t claimed = inflate_lz4_declared_bytes(run->in);
    size_t believed = run->in.n > SIZE_MAX / BELIEVED_RATIO ? SIZE_MAX : run->in.n * BELIEVED_RATIO;
    if (claimed > run->end_limit - start) {
        return inflate_fail_limit(run, start);
    }

    size_t wish = claimed > 0 && claimed <= believed ? (size_t)claimed : STEP_BYTES;
    size_t pending;
    do {
        struct inflate_window window;
        if (!inflate_open_window(run, wish, &window)) {
            return inflate_fail_memory(run);
        }

        size_t n_out = window.n, n_in = run->in.n - run->in_pos;
        pending = LZ4F_decompress(lz4, window.p, &n_out, run->in.p + run->in_pos, &n_in, NULL);
        if (LZ4F_isError(pending)) {
            return fail_lz4(run, pending);
        }
        if (window.beyond && n_out > 0) {
            return inflate_fail_limit(run, start);
        }

        run->in_pos += n_in;
        run->out->n += n_out;
        if (run->in_pos == run->in.n && pending != 0 && n_out < window.n) {
            return inflate_fail_truncated(run);
        }

        size_t so_far = run->out->n - start;
        wish = so_far < STEP_BYTES ? STEP_BYTES : so_far;
    } while (run->in_pos < run->in.n || pending != 0);

    return HEARTH_OK;
}

enum hearth_status inflate_lz4_stream(struct inflate_run *run, size_t start)
{
    LZ4F_dctx *lz4 = NULL;

    assert(run->in.n > 0 && run->in_pos == 0);
    if (LZ4F_isError(LZ4F_createDecompressionContext(&lz4, LZ4F_VERSION))) {
        return inflate_fail_memory(run);
    }

    enum hearth_status status = inflate_lz4_frames(run, lz4, start);
    (void)LZ4F_freeDecompressionContext(lz4);

    return status;
}
