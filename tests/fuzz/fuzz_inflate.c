/*
 * fuzz_inflate.c -- compressed streams of every format under a cap.
 *
 * Byte 0: format (two bits; 0: by magic) and the cap (the rest). Never more than the cap comes out, a failure
 * leaves the buffer as it was, and what inflates does so again after both of our compressors. The same bytes as a
 * packed column, and packed ones come back.
 */
#include "hearth/codec/compress.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_round_trip(struct hearth_inflater *inflater, struct hearth_str plain)
{
    struct hearth_buf packed, again;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_buf_init(&packed, 0);
    hearth_buf_init(&again, 0);
    HEARTH_ASSERT(hearth_gzip(plain, 1, &packed, &err) == HEARTH_OK);
    HEARTH_ASSERT(hearth_inflate(inflater, HEARTH_COMPRESSION_GZIP, hearth_buf_view(&packed),
                                 plain.n, &again, &err) == HEARTH_OK);
    HEARTH_ASSERT(hearth_str_eq(plain, hearth_buf_view(&again)));
    hearth_buf_reset(&packed);
    hearth_buf_reset(&again);
    HEARTH_ASSERT(hearth_zstd(plain, 1, &packed, &err) == HEARTH_OK);
    HEARTH_ASSERT(hearth_inflate(inflater, HEARTH_COMPRESSION_ZSTD, hearth_buf_view(&packed),
                                 plain.n, &again, &err) == HEARTH_OK);
    HEARTH_ASSERT(hearth_str_eq(plain, hearth_buf_view(&again)));
    hearth_buf_release(&packed);
    hearth_buf_release(&again);
}

static void require_unpacked(struct hearth_inflater *inflater, struct hearth_str plain,
                             struct hearth_buf *packed)
{
    struct hearth_buf scratch;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_str again;

    hearth_buf_init(&scratch, 0);
    HEARTH_ASSERT(hearth_unpack(inflater, hearth_buf_view(packed), plain.n, &scratch, &again,
                                &err) == HEARTH_OK);
    HEARTH_ASSERT(hearth_str_eq(plain, again));
    hearth_buf_release(&scratch);
    hearth_buf_release(packed);
}

static void unpack(struct hearth_inflater *inflater, struct hearth_str in, size_t cap)
{
    static struct hearth_packer *g_packer;
    struct hearth_buf packed, scratch;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_str plain;

    if (g_packer == NULL) {
        g_packer = hearth_packer_new(1);
        HEARTH_ASSERT(g_packer != NULL);
    }
    hearth_buf_init(&packed, 0);
    hearth_buf_init(&scratch, 0);
    if (hearth_unpack(inflater, in, cap, &scratch, &plain, &err) == HEARTH_OK) {
        HEARTH_ASSERT(plain.n <= cap);
        HEARTH_ASSERT(hearth_pack(g_packer, plain, &packed, &err) == HEARTH_OK);
        require_unpacked(inflater, plain, &packed);
        hearth_buf_init(&packed, 0);
        HEARTH_ASSERT(hearth_pack_text(plain, &packed, &err) == HEARTH_OK);
        require_unpacked(inflater, plain, &packed);
    } else {
        HEARTH_ASSERT(err.msg[0] != '\0');
    }
    hearth_buf_release(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hearth_inflater
        *g_inflater; /* kept: a broken stream must not hurt the next one */
    if (g_inflater == NULL) {
        g_inflater = hearth_inflater_new();
        HEARTH_ASSERT(g_inflater != NULL);
    }
    if (size == 0) {
        return 0;
    }
    struct hearth_buf out;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_buf_init(&out, 0);
    hearth_buf_cstr(&out, "before");
    size_t cap = (size_t)1 << (data[0] >> 2) % 20;
    struct hearth_str in = hearth_str_n((const char *)data + 1, size - 1);
    enum hearth_compression format = (enum hearth_compression)(data[0] & 3);
    format = format == HEARTH_COMPRESSION_NONE ? hearth_compression_detect(in) : format;
    enum hearth_status status = hearth_inflate(g_inflater, format, in, cap, &out, &err);
    if (status == HEARTH_OK) {
        HEARTH_ASSERT(out.n >= 6 && out.n - 6 <= cap);
        require_round_trip(g_inflater, hearth_str_n(out.p + 6, out.n - 6));
    } else {
        HEARTH_ASSERT(out.n == 6 && !hearth_buf_failed(&out) && err.msg[0] != '\0');
        HEARTH_ASSERT(status == HEARTH_INVALID_ARGUMENT || status == HEARTH_RESOURCE_EXHAUSTED);
    }
    unpack(g_inflater, in, cap);
    hearth_buf_release(&out);
    return 0;
}
