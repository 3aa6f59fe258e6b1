/*
 * fuzz_inflate.c -- compressed streams of every format under a cap.
 *
 * Byte 0: format (two bits; 0: by magic) and the cap (the rest). Never more than the cap comes out, a failure
 * leaves the buffer as it was, and what inflates does so again after both of our compressors. The same bytes as a
 * packed column, and packed ones come back.
 */
#include "hearth/base/mem.h"
#include "hearth/codec/compress.h"

/* Into an arena: the same bytes, or the same reason. */
static void inflate_in_arena(struct hearth_inflater *inflater, enum hearth_compression format,
                             struct hearth_str in, size_t cap, enum hearth_status expected,
                             struct hearth_str plain)
{
    struct hearth_arena arena;
    struct hearth_str again = {0};
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_arena_init(&arena, 0);
    enum hearth_status status =
        hearth_inflate_in_arena(inflater, format, in, cap, &arena, &again, &err);
    HEARTH_ASSERT(status == expected && (status != HEARTH_OK || hearth_str_eq(again, plain)));
    HEARTH_ASSERT(hearth_inflate_in_arena(NULL, format, in, cap, &arena, &again, &err) ==
                  HEARTH_NO_MEMORY);
    hearth_arena_release(&arena);
}

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

/* A buffer with a limit takes the whole compressed text or is refused; a failure leaves it empty. */
static void compress_into_limit(struct hearth_str plain, size_t limit)
{
    for (int is_zstd = 0; is_zstd < 2; is_zstd++) {
        struct hearth_buf out;
        struct hearth_err err = HEARTH_ERR_INIT;

        hearth_buf_init(&out, limit);
        enum hearth_status status =
            is_zstd != 0 ? hearth_zstd(plain, 1, &out, &err) : hearth_gzip(plain, 1, &out, &err);
        HEARTH_ASSERT(status == HEARTH_OK ? out.n <= limit : out.n == 0);
        HEARTH_ASSERT(status == HEARTH_OK || status == HEARTH_RESOURCE_EXHAUSTED);
        hearth_buf_release(&out);
    }
}

/* Refused memory is reported, and the next use of the same bytes has no trace of it. */
static void refuse_memory(enum hearth_compression format, struct hearth_str in, size_t cap)
{
    struct hearth_buf out;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_mem_fail_after(1);
    HEARTH_ASSERT(hearth_packer_new(1) == NULL);
    HEARTH_ASSERT(hearth_inflater_new() == NULL);
    HEARTH_ASSERT(hearth_zstd_tables_new() == NULL);
    hearth_mem_fail_after(0);

    struct hearth_inflater *inflater = hearth_inflater_new();
    HEARTH_ASSERT(inflater != NULL);
    hearth_buf_init(&out, 0);
    hearth_mem_fail_after(1);
    enum hearth_status status = hearth_inflate(inflater, format, in, cap, &out, &err);
    hearth_mem_fail_after(0);
    HEARTH_ASSERT(status == HEARTH_OK || (out.n == 0 && err.msg[0] != '\0'));
    hearth_buf_release(&out);
    hearth_inflater_free(inflater);
    hearth_packer_free(hearth_packer_new(1));
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

/* Tables that were used before make the same bytes as new ones. */
static void compress_by_kept_tables(struct hearth_str plain)
{
    static struct hearth_zstd_tables *g_tables;
    static unsigned g_uses;
    struct hearth_buf kept, fresh;
    struct hearth_err err = HEARTH_ERR_INIT;

    if (g_tables == NULL) {
        g_tables = hearth_zstd_tables_new();
        HEARTH_ASSERT(g_tables != NULL);
    }
    hearth_buf_init(&kept, 0);
    hearth_buf_init(&fresh, 0);
    HEARTH_ASSERT(hearth_zstd_by(g_tables, plain, 1, &kept, &err) == HEARTH_OK);
    HEARTH_ASSERT(hearth_zstd(plain, 1, &fresh, &err) == HEARTH_OK);
    HEARTH_ASSERT(hearth_str_eq(hearth_buf_view(&kept), hearth_buf_view(&fresh)));
    hearth_buf_release(&kept);
    hearth_buf_release(&fresh);
    if (++g_uses % 64 == 0) {
        hearth_zstd_tables_free(g_tables);
        g_tables = NULL;
    }
}

static void unpack(struct hearth_inflater *inflater, struct hearth_str in, size_t cap)
{
    static struct hearth_packer *g_packer; /* kept, as the inflater is */
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
        if (plain.n % 16 == 0) {
            compress_by_kept_tables(plain);
        }
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
        struct hearth_str plain = hearth_str_n(out.p + 6, out.n - 6);
        inflate_in_arena(g_inflater, format, in, cap, status, plain);
        require_round_trip(g_inflater, plain);
        compress_into_limit(plain, 1 + plain.n / 2);
    } else {
        HEARTH_ASSERT(out.n == 6 && !hearth_buf_failed(&out) && err.msg[0] != '\0');
        inflate_in_arena(g_inflater, format, in, cap, status, (struct hearth_str){0});
        HEARTH_ASSERT(status == HEARTH_INVALID_ARGUMENT || status == HEARTH_RESOURCE_EXHAUSTED);
    }
    /* What a stream declares is a hint for the reservation of memory, and may be wrong. */
    (void)hearth_inflated_bytes(format, in);
    HEARTH_ASSERT(hearth_inflated_bytes(HEARTH_COMPRESSION_NONE, in) == in.n);
    unpack(g_inflater, in, cap);
    refuse_memory(format, in, cap);
    hearth_buf_release(&out);
    return 0;
}
