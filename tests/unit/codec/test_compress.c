/* test_compress.c -- limits, members, frames, and truncated or damaged streams. */
#include "hearth/base/mem.h"
#include "hearth/codec/compress.h"

#include <lz4frame.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)

static struct hearth_inflater *g_inflater;
static struct hearth_err g_err;

static int start(void **state)
{
    (void)state;
    g_inflater = hearth_inflater_new();
    return g_inflater == NULL ? -1 : 0;
}

static int stop(void **state)
{
    (void)state;
    hearth_inflater_free(g_inflater);
    hearth_inflater_free(NULL);
    return 0;
}

/* Text like that of a profile: repetitive, with variations. */
static struct hearth_buf sample_text(size_t n)
{
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    for (unsigned i = 0; text.n < n; i++) {
        hearth_buf_printf(&text, "main;worker%u;inflate;memcpy %u\n", i % 13,
                          i * 2654435761u % 1000);
    }

    text.n = n;

    return text;
}

static struct hearth_buf gzip_of(struct hearth_str in)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    assert_int_equal(hearth_gzip(in, 6, &out, &g_err), HEARTH_OK);
    return out;
}

static struct hearth_buf zstd_of(struct hearth_str in)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    assert_int_equal(hearth_zstd(in, 3, &out, &g_err), HEARTH_OK);
    return out;
}

/* A frame as Datadog's clients write it; Hearth itself compresses nothing by LZ4. */
static struct hearth_buf lz4_of(struct hearth_str in)
{
    const LZ4F_preferences_t preferences = {
        .frameInfo = {.contentChecksumFlag = LZ4F_contentChecksumEnabled, .contentSize = in.n},
    };
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    size_t bound = LZ4F_compressFrameBound(in.n, &preferences);
    char *to = hearth_buf_reserve(&out, bound);
    assert_non_null(to);
    size_t n = LZ4F_compressFrame(to, bound, in.n == 0 ? "" : in.p, in.n, &preferences);
    assert_false(LZ4F_isError(n));
    out.n = n;
    return out;
}

static struct hearth_buf pack(enum hearth_compression format, struct hearth_str in)
{
    return format == HEARTH_COMPRESSION_GZIP   ? gzip_of(in)
           : format == HEARTH_COMPRESSION_ZSTD ? zstd_of(in)
                                               : lz4_of(in);
}

static enum hearth_status inflate_into(struct hearth_buf *out, enum hearth_compression format,
                                       struct hearth_str in, size_t cap)
{
    return hearth_inflate(g_inflater, format, in, cap, out, &g_err);
}

static enum hearth_status try_inflate(enum hearth_compression format, struct hearth_str in,
                                      size_t cap)
{
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    enum hearth_status status = inflate_into(&out, format, in, cap);
    hearth_buf_release(&out);
    return status;
}

/* A frame of zstd and LZ4 without content. */
#define SKIPPABLE "\x50\x2a\x4d\x18\x02\0\0\0zz"

static void detects_compression_by_magic_bytes(void **state)
{
    (void)state;
    assert_int_equal(hearth_compression_detect(HEARTH_STR("\x1f\x8b\x08")),
                     HEARTH_COMPRESSION_GZIP);
    assert_int_equal(hearth_compression_detect(HEARTH_STR("\x28\xb5\x2f\xfd")),
                     HEARTH_COMPRESSION_ZSTD);
    assert_int_equal(hearth_compression_detect(HEARTH_STR("\x04\x22\x4d\x18")),
                     HEARTH_COMPRESSION_LZ4);
    assert_int_equal(hearth_compression_detect(HEARTH_STR("\x28\xb5\x2f")),
                     HEARTH_COMPRESSION_NONE);
    assert_int_equal(hearth_compression_detect(HEARTH_STR("\x78\x9c")), HEARTH_COMPRESSION_NONE);
    assert_int_equal(hearth_compression_detect(HEARTH_STR(SKIPPABLE "\x28\xb5\x2f\xfd")),
                     HEARTH_COMPRESSION_ZSTD);
    assert_int_equal(hearth_compression_detect(HEARTH_STR(SKIPPABLE SKIPPABLE "\x04\x22\x4d\x18")),
                     HEARTH_COMPRESSION_LZ4);
    assert_int_equal(hearth_compression_detect(HEARTH_STR(SKIPPABLE)), HEARTH_COMPRESSION_NONE);
    assert_int_equal(hearth_compression_detect(HEARTH_STR("\x5f\x2a\x4d\x18\xff\xff\xff\xff")),
                     HEARTH_COMPRESSION_NONE);
    assert_int_equal(hearth_compression_detect(hearth_str_n(NULL, 0)), HEARTH_COMPRESSION_NONE);
}

static const enum hearth_compression g_formats[] = {
    HEARTH_COMPRESSION_GZIP, HEARTH_COMPRESSION_ZSTD, HEARTH_COMPRESSION_LZ4};

static void round_trips_at_many_sizes_with_the_exact_limit(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 511, 512, 513, 100000, 1000003};
    for (size_t f = 0; f < HEARTH_ARRAY_LEN(g_formats); f++) {
        for (size_t i = 0; i < HEARTH_ARRAY_LEN(sizes); i++) {
            struct hearth_buf text = sample_text(sizes[i]);
            struct hearth_buf packed = pack(g_formats[f], hearth_buf_view(&text));
            struct hearth_buf out;

            hearth_buf_init(&out, 0);
            hearth_buf_cstr(&out, "before");
            assert_int_equal(inflate_into(&out, g_formats[f], hearth_buf_view(&packed), sizes[i]),
                             HEARTH_OK);
            assert_int_equal(out.n, 6 + sizes[i]);
            assert_true(hearth_str_eq(hearth_str_n(out.p + 6, sizes[i]), hearth_buf_view(&text)));
            if (sizes[i] > 0) {
                assert_int_equal(
                    inflate_into(&out, g_formats[f], hearth_buf_view(&packed), sizes[i] - 1),
                    HEARTH_RESOURCE_EXHAUSTED);
                assert_int_equal(out.n, 6 + sizes[i]);
            }

            hearth_buf_release(&out);
            hearth_buf_release(&packed);
            hearth_buf_release(&text);
        }
    }
}

static void plain_bodies_are_copied_up_to_the_limit(void **state)
{
    (void)state;
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    assert_int_equal(inflate_into(&out, HEARTH_COMPRESSION_NONE, HEARTH_STR("abc"), 3), HEARTH_OK);
    assert_true(hearth_str_eq_c(hearth_buf_view(&out), "abc"));
    assert_int_equal(inflate_into(&out, HEARTH_COMPRESSION_NONE, HEARTH_STR("abcd"), 3),
                     HEARTH_RESOURCE_EXHAUSTED);
    assert_string_equal(g_err.msg, "body of 4 bytes is larger than 3 bytes");
    hearth_buf_release(&out);
}

static void the_limit_of_the_buffer_applies_too(void **state)
{
    (void)state;
    struct hearth_buf text = sample_text(5000);
    for (size_t f = 0; f < HEARTH_ARRAY_LEN(g_formats); f++) {
        struct hearth_buf packed = pack(g_formats[f], hearth_buf_view(&text));
        struct hearth_buf out;

        hearth_buf_init(&out, 5000);
        assert_int_equal(inflate_into(&out, g_formats[f], hearth_buf_view(&packed), MIB),
                         HEARTH_OK);
        hearth_buf_reset(&out);
        hearth_buf_byte(&out, 'x');
        assert_int_equal(inflate_into(&out, g_formats[f], hearth_buf_view(&packed), MIB),
                         HEARTH_RESOURCE_EXHAUSTED);
        assert_int_equal(out.n, 1);
        assert_false(hearth_buf_failed(&out));
        hearth_buf_release(&out);
        hearth_buf_release(&packed);
    }

    hearth_buf_release(&text);
}

/*
 * Zeros in 64 members of 16 MiB each, or one zstd stream of 1 GiB: 1 GiB of output, limited to 8
 * MiB.
 */
static void a_bomb_stops_at_the_limit_and_uses_little_memory(void **state)
{
    (void)state;
    char *zeros = hearth_mem_zalloc(16 * MIB);
    assert_non_null(zeros);
    for (size_t f = 0; f < HEARTH_ARRAY_LEN(g_formats); f++) {
        struct hearth_buf member = pack(g_formats[f], hearth_str_n(zeros, 16 * MIB));
        struct hearth_buf bomb, out;

        hearth_buf_init(&bomb, 0);
        for (unsigned i = 0; i < 64; i++) {
            hearth_buf_str(&bomb, hearth_buf_view(&member));
        }

        hearth_buf_init(&out, 0);
        assert_int_equal(inflate_into(&out, g_formats[f], hearth_buf_view(&bomb), 8 * MIB),
                         HEARTH_RESOURCE_EXHAUSTED);
        assert_true(out.cap <= 8 * MIB);
        assert_int_equal(out.n, 0);
        hearth_buf_release(&out);
        hearth_buf_init(&out, 0);
        assert_int_equal(inflate_into(&out, g_formats[f], hearth_buf_view(&bomb), 20 * MIB),
                         HEARTH_RESOURCE_EXHAUSTED); /* in its second member */
        assert_true(out.cap <= 20 * MIB);
        hearth_buf_release(&out);
        hearth_buf_release(&bomb);
        hearth_buf_release(&member);
    }

    hearth_mem_free(zeros);
}

static void a_false_size_in_the_trailer_needs_no_extra_memory(void **state)
{
    (void)state;
    struct hearth_buf text = sample_text(2000);
    struct hearth_buf packed = gzip_of(hearth_buf_view(&text));
    memset(packed.p + packed.n - 4, 0xff, 4);
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    assert_int_equal(
        inflate_into(&out, HEARTH_COMPRESSION_GZIP, hearth_buf_view(&packed), (size_t)1 << 32),
        HEARTH_INVALID_ARGUMENT);
    assert_true(out.cap < MIB * 2);
    hearth_buf_release(&out);

    /* the declared size is too small: the guess grows, the check fails */
    memset(packed.p + packed.n - 4, 0, 4);
    assert_int_equal(try_inflate(HEARTH_COMPRESSION_GZIP, hearth_buf_view(&packed), MIB),
                     HEARTH_INVALID_ARGUMENT);
    hearth_buf_release(&packed);
    hearth_buf_release(&text);
}

/* The last trailer has the size of the last member only. */
static void concatenated_members_and_frames_are_one_body(void **state)
{
    (void)state;
    struct hearth_buf text = sample_text(300000);
    for (size_t f = 0; f < HEARTH_ARRAY_LEN(g_formats); f++) {
        struct hearth_buf packed;

        hearth_buf_init(&packed, 0);
        static const size_t cuts[] = {0, 200000, 200000, 299999, 300000};
        for (size_t i = 0; i + 1 < HEARTH_ARRAY_LEN(cuts); i++) {
            struct hearth_buf part =
                pack(g_formats[f], hearth_str_n(text.p + cuts[i], cuts[i + 1] - cuts[i]));
            hearth_buf_str(&packed, hearth_buf_view(&part));
            hearth_buf_release(&part);
        }

        struct hearth_buf out;
        hearth_buf_init(&out, 0);
        assert_int_equal(inflate_into(&out, g_formats[f], hearth_buf_view(&packed), 300000),
                         HEARTH_OK);
        assert_true(hearth_str_eq(hearth_buf_view(&out), hearth_buf_view(&text)));
        assert_int_equal(try_inflate(g_formats[f], hearth_buf_view(&packed), 299999),
                         HEARTH_RESOURCE_EXHAUSTED);
        hearth_buf_release(&out);
        hearth_buf_release(&packed);
    }

    hearth_buf_release(&text);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    struct hearth_buf text = sample_text(3000);
    for (size_t f = 0; f < HEARTH_ARRAY_LEN(g_formats); f++) {
        struct hearth_buf packed = pack(g_formats[f], hearth_buf_view(&text));
        for (size_t n = 0; n < packed.n; n++) {
            char *exact = hearth_mem_alloc(n); /* so that ASan sees a read past the end */
            assert_non_null(exact);
            if (n > 0) {
                memcpy(exact, packed.p, n);
            }
            assert_int_equal(try_inflate(g_formats[f], hearth_str_n(exact, n), MIB),
                             HEARTH_INVALID_ARGUMENT);
            hearth_mem_free(exact);
        }

        assert_non_null(strstr(g_err.msg, "stream is truncated"));
        hearth_buf_release(&packed);
    }

    hearth_buf_release(&text);
}

static void every_flipped_bit_is_noticed_or_harmless(void **state)
{
    (void)state;
    struct hearth_buf text = sample_text(600);
    for (size_t f = 0; f < HEARTH_ARRAY_LEN(g_formats); f++) {
        struct hearth_buf packed = pack(g_formats[f], hearth_buf_view(&text));
        size_t n_refused = 0;
        for (size_t bit = 0; bit < packed.n * 8; bit++) {
            struct hearth_buf out;
            hearth_buf_init(&out, 0);
            packed.p[bit / 8] = (char)(packed.p[bit / 8] ^ (1 << bit % 8));
            enum hearth_status status =
                inflate_into(&out, g_formats[f], hearth_buf_view(&packed), MIB);
            packed.p[bit / 8] = (char)(packed.p[bit / 8] ^ (1 << bit % 8));
            if (status == HEARTH_OK) { /* time stamp and system: bits that are ignored */
                assert_true(hearth_str_eq(hearth_buf_view(&out), hearth_buf_view(&text)));
            }
            n_refused += status != HEARTH_OK;
            hearth_buf_release(&out);
        }

        assert_true(n_refused > packed.n * 7);
        hearth_buf_release(&packed);
    }

    hearth_buf_release(&text);
}

static void errors_name_the_fault_and_its_place(void **state)
{
    (void)state;
    struct hearth_buf text = sample_text(100000);
    struct hearth_buf packed = gzip_of(hearth_buf_view(&text));
    size_t n = packed.n;
    assert_int_equal(try_inflate(HEARTH_COMPRESSION_GZIP, hearth_str_n(packed.p, n - 1), MIB),
                     HEARTH_INVALID_ARGUMENT);
    char want[100];
    (void)snprintf(want, sizeof want, "gzip stream is truncated: it ends after %zu bytes", n - 1);
    assert_string_equal(g_err.msg, want);
    packed.p[n - 6] = (char)~packed.p[n - 6];
    assert_int_equal(try_inflate(HEARTH_COMPRESSION_GZIP, hearth_buf_view(&packed), MIB),
                     HEARTH_INVALID_ARGUMENT);
    (void)snprintf(want, sizeof want, "of %zu: incorrect data check", n);
    assert_non_null(strstr(g_err.msg, want));
    packed.p[n - 6] = (char)~packed.p[n - 6];
    hearth_buf_cstr(&packed, "junk");
    assert_int_equal(try_inflate(HEARTH_COMPRESSION_GZIP, hearth_buf_view(&packed), MIB),
                     HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(g_err.msg, "gzip stream is damaged near byte"));
    assert_int_equal(try_inflate(HEARTH_COMPRESSION_GZIP, HEARTH_STR(""), MIB),
                     HEARTH_INVALID_ARGUMENT);
    assert_string_equal(g_err.msg, "gzip stream is empty");
    assert_int_equal(try_inflate(HEARTH_COMPRESSION_GZIP, HEARTH_STR("plain"), MIB),
                     HEARTH_INVALID_ARGUMENT);
    hearth_buf_release(&packed);
    hearth_buf_release(&text);
}

static void inflates_zlib_streams(void **state)
{
    (void)state;

    /* "hello hello hello", as zlib writes it at level 9. */
    static const char hello[] = "\x78\xda\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x90\x00\x3a\x2e\x06\x7d";
    struct hearth_str whole = hearth_str_n(hello, sizeof hello - 1);
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    assert_int_equal(inflate_into(&out, HEARTH_COMPRESSION_ZLIB, whole, 17), HEARTH_OK);
    assert_true(hearth_str_eq_c(hearth_buf_view(&out), "hello hello hello"));
    assert_int_equal(inflate_into(&out, HEARTH_COMPRESSION_ZLIB, whole, 16),
                     HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(
        inflate_into(&out, HEARTH_COMPRESSION_ZLIB, hearth_str_n(hello, sizeof hello), 99),
        HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(g_err.msg, "bytes after the end of the stream"));
    hearth_buf_release(&out);

    /* The same with the flag for a preset dictionary. */
    assert_int_equal(
        try_inflate(HEARTH_COMPRESSION_ZLIB, HEARTH_STR("\x78\xbb\1\2\3\4\xcb\x48"), 99),
        HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(g_err.msg, "preset dictionary"));
}

static void refuses_a_zstd_window_beyond_32_mib(void **state)
{
    (void)state;

    /*
     * Frame header without content size; window descriptor 0x80: 2^26 bytes. Then an empty last
     * block.
     */
    assert_int_equal(try_inflate(HEARTH_COMPRESSION_ZSTD,
                                 HEARTH_STR("\x28\xb5\x2f\xfd\x00\x80\x01\x00\x00"), MIB),
                     HEARTH_RESOURCE_EXHAUSTED);
    assert_string_equal(g_err.msg, "zstd stream needs a window of more than 33554432 bytes");
    assert_int_equal(try_inflate(HEARTH_COMPRESSION_ZSTD,
                                 HEARTH_STR("\x28\xb5\x2f\xfd\x00\x78\x01\x00\x00"), MIB),
                     HEARTH_OK);
}

/* libzstd finds it by the room in a buffer, which it keeps from one stream to the next. */
static void a_zstd_frame_larger_than_it_declares_is_damaged_whatever_came_before(void **state)
{
    (void)state;
    /* It declares 517 bytes; its first block repeats one byte 131,072 times. */
    const struct hearth_str large =
        HEARTH_STR("\x28\xb5\x2f\xfd\x44\x58\x05\x01\x02\x00\x10\x00\x33");
    struct hearth_buf zeros, packed, first = zstd_of(HEARTH_STR("abc")), second, out;
    struct hearth_inflater *inflater = hearth_inflater_new();
    hearth_buf_init(&zeros, 0);
    hearth_buf_init(&second, 0);
    hearth_buf_init(&out, 0);
    memset(hearth_buf_reserve(&zeros, 3 * MIB), 0, 3 * MIB);
    zeros.n = 3 * MIB;
    packed = zstd_of(hearth_buf_view(&zeros));
    hearth_buf_str(&second, hearth_buf_view(&first));
    hearth_buf_str(&second, large);

    const struct hearth_str streams[] = {large, hearth_buf_view(&second), hearth_buf_view(&packed),
                                         large, hearth_buf_view(&second)};
    const size_t caps[] = {4096, MIB, 3 * MIB, 4096, MIB};
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        assert_int_equal(
            hearth_inflate(inflater, HEARTH_COMPRESSION_ZSTD, streams[i], caps[i], &out, &g_err),
            i == 2 ? HEARTH_OK : HEARTH_INVALID_ARGUMENT);
    }
    assert_non_null(strstr(g_err.msg, "the frame is larger than it declares"));

    /* A later frame that declares more than there is room for is refused before it is read. */
    const struct hearth_str cut = hearth_str_n(second.p, second.n - 2);
    assert_int_equal(hearth_inflate(inflater, HEARTH_COMPRESSION_ZSTD, cut, 100, &out, &g_err),
                     HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(out.n, 3 * MIB);

    hearth_inflater_free(inflater);
    hearth_buf_release(&out);
    hearth_buf_release(&second);
    hearth_buf_release(&first);
    hearth_buf_release(&packed);
    hearth_buf_release(&zeros);
}

static void skippable_zstd_frames_are_skipped(void **state)
{
    (void)state;
    struct hearth_buf packed = zstd_of(HEARTH_STR("abc")), both, out;
    hearth_buf_init(&both, 0);
    hearth_buf_append(&both, SKIPPABLE, 10);
    hearth_buf_str(&both, hearth_buf_view(&packed));
    hearth_buf_init(&out, 0);
    assert_int_equal(inflate_into(&out, HEARTH_COMPRESSION_ZSTD, hearth_buf_view(&both), 3),
                     HEARTH_OK);
    assert_true(hearth_str_eq_c(hearth_buf_view(&out), "abc"));
    hearth_buf_release(&out);
    hearth_buf_release(&both);
    hearth_buf_release(&packed);
}

static void lz4_frames_of_every_kind_are_inflated(void **state)
{
    (void)state;
    struct hearth_buf text = sample_text(9 * MIB), packed, out;
    static const LZ4F_blockSizeID_t sizes[] = {LZ4F_max64KB, LZ4F_max4MB};
    for (size_t i = 0; i < 4; i++) {
        const LZ4F_preferences_t preferences = {
            .frameInfo = {.blockSizeID = sizes[i % 2],
                          .blockMode = i < 2 ? LZ4F_blockLinked : LZ4F_blockIndependent,
                          .blockChecksumFlag = LZ4F_blockChecksumEnabled},
        };
        hearth_buf_init(&packed, 0);
        hearth_buf_init(&out, 0);
        size_t bound = LZ4F_compressFrameBound(text.n, &preferences);
        packed.n = LZ4F_compressFrame(hearth_buf_reserve(&packed, bound), bound, text.p, text.n,
                                      &preferences);
        assert_int_equal(hearth_inflated_bytes(HEARTH_COMPRESSION_LZ4, hearth_buf_view(&packed)),
                         0);
        assert_int_equal(
            inflate_into(&out, HEARTH_COMPRESSION_LZ4, hearth_buf_view(&packed), text.n),
            HEARTH_OK);
        assert_true(hearth_str_eq(hearth_buf_view(&out), hearth_buf_view(&text)));
        assert_int_equal(try_inflate(HEARTH_COMPRESSION_LZ4, hearth_buf_view(&packed), text.n - 1),
                         HEARTH_RESOURCE_EXHAUSTED);
        hearth_buf_release(&out);
        hearth_buf_release(&packed);
    }

    hearth_buf_release(&text);
}

static void errors_name_the_fault_of_an_lz4_frame(void **state)
{
    (void)state;
    struct hearth_buf text = sample_text(1000);
    struct hearth_buf packed = lz4_of(hearth_buf_view(&text));
    assert_int_equal(try_inflate(HEARTH_COMPRESSION_LZ4, hearth_str_n(packed.p, 20), MIB),
                     HEARTH_INVALID_ARGUMENT);
    assert_string_equal(g_err.msg, "lz4 stream is truncated: it ends after 20 bytes");
    packed.p[packed.n - 1] = (char)~packed.p[packed.n - 1];
    assert_int_equal(try_inflate(HEARTH_COMPRESSION_LZ4, hearth_buf_view(&packed), MIB),
                     HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(g_err.msg, "ERROR_contentChecksum_invalid"));

    /* The size in the header is believed only so far as the bytes can expand. */
    packed.p[10] = 1;
    assert_int_equal(try_inflate(HEARTH_COMPRESSION_LZ4, hearth_buf_view(&packed), MIB),
                     HEARTH_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(g_err.msg, "inflates to more than 1048576 bytes"));
    hearth_buf_release(&packed);
    hearth_buf_release(&text);
}

static void a_damaged_stream_does_not_affect_the_next_one(void **state)
{
    (void)state;
    for (size_t f = 0; f < HEARTH_ARRAY_LEN(g_formats); f++) {
        struct hearth_buf packed = pack(g_formats[f], HEARTH_STR("next"));
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(try_inflate(g_formats[f], hearth_str_n(packed.p, packed.n - 2), MIB),
                             HEARTH_INVALID_ARGUMENT);
            assert_int_equal(try_inflate(g_formats[f], hearth_buf_view(&packed), 4), HEARTH_OK);
        }
        hearth_buf_release(&packed);
    }
}

static void compressors_respect_the_limit_of_their_buffer(void **state)
{
    (void)state;
    struct hearth_buf text = sample_text(10000), out;
    hearth_buf_init(&out, 100);
    assert_int_equal(hearth_gzip(hearth_buf_view(&text), 1, &out, &g_err),
                     HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(hearth_zstd(hearth_buf_view(&text), 1, &out, &g_err),
                     HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(out.n, 0);
    hearth_buf_release(&out);
    hearth_buf_init(&out, 9000); /* less than the bound, more than needed */
    assert_int_equal(hearth_gzip(hearth_buf_view(&text), 9, &out, &g_err), HEARTH_OK);
    hearth_buf_release(&out);
    hearth_buf_release(&text);
}

/* Large inputs make large tables, which are not kept; an error leaves tables that can be used. */
static void kept_tables_compress_as_new_ones_do(void **state)
{
    (void)state;
    static const size_t sizes[] = {1000, 3 * MIB, 0, 70000, 20};
    struct hearth_zstd_tables *tables = hearth_zstd_tables_new();
    struct hearth_buf text = sample_text(3 * MIB), small;
    assert_non_null(tables);
    hearth_buf_init(&small, 100);

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(sizes); i++) {
        for (int level = 1; level <= 19; level += 9) {
            struct hearth_str in = hearth_str_n(text.p, sizes[i]);
            struct hearth_buf fresh, kept;
            hearth_buf_init(&fresh, 0);
            hearth_buf_init(&kept, 0);
            assert_int_equal(hearth_zstd(in, level, &fresh, &g_err), HEARTH_OK);
            assert_int_equal(hearth_zstd_by(tables, in, level, &kept, &g_err), HEARTH_OK);
            assert_true(hearth_str_eq(hearth_buf_view(&fresh), hearth_buf_view(&kept)));
            hearth_buf_release(&fresh);
            hearth_buf_release(&kept);
        }
        if (sizes[i] > 100) {
            assert_int_equal(
                hearth_zstd_by(tables, hearth_str_n(text.p, sizes[i]), 3, &small, &g_err),
                HEARTH_RESOURCE_EXHAUSTED);
        }
        hearth_buf_reset(&small);
    }

    hearth_zstd_tables_free(tables);
    hearth_buf_release(&small);
    hearth_buf_release(&text);
}

static void reports_refused_memory_at_every_step(void **state)
{
    (void)state;
    struct hearth_buf text = sample_text(5000);
    struct hearth_buf packed = gzip_of(hearth_buf_view(&text));
    size_t n_refused = 0;
    for (uint64_t nth = 1;; nth++) {
        struct hearth_buf out;

        hearth_buf_init(&out, 0);
        hearth_mem_fail_after(nth);
        struct hearth_inflater *inflater = hearth_inflater_new();
        enum hearth_status status =
            inflater == NULL
                ? HEARTH_NO_MEMORY
                : hearth_inflate(inflater, HEARTH_COMPRESSION_GZIP,
                                 hearth_str_n(packed.p, packed.n - 1), MIB, &out, &g_err);
        hearth_mem_fail_after(0);
        hearth_inflater_free(inflater);
        assert_int_equal(out.n, 0);
        hearth_buf_release(&out);

        /* the stream is truncated: all allocations have succeeded */
        if (status == HEARTH_INVALID_ARGUMENT) {
            break;
        }

        assert_int_equal(status, HEARTH_NO_MEMORY);
        n_refused++;
    }

    assert_true(n_refused >= 4);
    hearth_buf_release(&packed);
    hearth_buf_release(&text);
}

static void a_stream_of_pieces_is_one_member(void **state)
{
    (void)state;
    struct hearth_buf text = sample_text(3 * MIB);
    static const size_t steps[] = {777, 65536, 5 * MIB};
    for (size_t k = 0; k < HEARTH_ARRAY_LEN(steps); k++) {
        struct hearth_buf packed, again;

        hearth_buf_init(&packed, 0);
        hearth_buf_init(&again, 0);
        struct hearth_gzip_stream *stream = hearth_gzip_stream_new(1);
        assert_non_null(stream);
        for (size_t at = 0; at < text.n; at += steps[k]) {
            size_t n = text.n - at < steps[k] ? text.n - at : steps[k];
            hearth_gzip_stream_add(stream, hearth_str_n(text.p + at, n), &packed);
        }

        hearth_gzip_stream_end(stream, &packed);
        hearth_gzip_stream_free(stream);
        assert_false(hearth_buf_failed(&packed));
        assert_true(packed.n < text.n / 2);
        assert_int_equal(hearth_inflate(g_inflater, HEARTH_COMPRESSION_GZIP,
                                        hearth_buf_view(&packed), text.n, &again, &g_err),
                         HEARTH_OK);
        assert_int_equal(again.n, text.n);
        assert_memory_equal(again.p, text.p, text.n);
        hearth_buf_release(&again);
        hearth_buf_release(&packed);
    }

    hearth_buf_release(&text);
}

static void a_stream_without_input_is_an_empty_member(void **state)
{
    (void)state;
    struct hearth_buf packed, again;
    hearth_buf_init(&packed, 0);
    hearth_buf_init(&again, 0);
    struct hearth_gzip_stream *stream = hearth_gzip_stream_new(1);
    hearth_gzip_stream_end(stream, &packed);
    hearth_gzip_stream_free(stream);
    hearth_gzip_stream_free(NULL);
    assert_int_equal(hearth_inflate(g_inflater, HEARTH_COMPRESSION_GZIP, hearth_buf_view(&packed),
                                    1, &again, &g_err),
                     HEARTH_OK);
    assert_int_equal(again.n, 0);
    hearth_buf_release(&again);
    hearth_buf_release(&packed);
}

static void a_stream_fails_if_its_buffer_does(void **state)
{
    (void)state;
    struct hearth_buf text = sample_text(3 * MIB), packed;
    hearth_buf_init(&packed, 40000);
    struct hearth_gzip_stream *stream = hearth_gzip_stream_new(1);
    hearth_gzip_stream_add(stream, hearth_buf_view(&text), &packed);
    assert_true(hearth_buf_failed(&packed));
    hearth_gzip_stream_end(stream, &packed);
    assert_true(hearth_buf_failed(&packed));
    hearth_gzip_stream_free(stream);
    hearth_buf_release(&packed);
    hearth_buf_release(&text);
}

static void sizes_are_known_if_the_format_declares_them(void **state)
{
    (void)state;
    struct hearth_str text = HEARTH_STR("some text, some text, some text");
    assert_int_equal(hearth_inflated_bytes(HEARTH_COMPRESSION_NONE, text), text.n);
    assert_int_equal(hearth_inflated_bytes(HEARTH_COMPRESSION_ZLIB, text), 0);
    assert_int_equal(hearth_inflated_bytes(HEARTH_COMPRESSION_GZIP, hearth_str_n(text.p, 17)), 0);
    assert_int_equal(hearth_inflated_bytes(HEARTH_COMPRESSION_ZSTD, text), 0);
    assert_int_equal(hearth_inflated_bytes(HEARTH_COMPRESSION_ZSTD, HEARTH_STR("")), 0);
    assert_int_equal(hearth_inflated_bytes(HEARTH_COMPRESSION_LZ4, text), 0);
    struct hearth_buf gzip = gzip_of(text), zstd = zstd_of(text), lz4 = lz4_of(text);
    assert_int_equal(hearth_inflated_bytes(HEARTH_COMPRESSION_GZIP, hearth_buf_view(&gzip)),
                     text.n);
    assert_int_equal(hearth_inflated_bytes(HEARTH_COMPRESSION_ZSTD, hearth_buf_view(&zstd)),
                     text.n);
    assert_int_equal(hearth_inflated_bytes(HEARTH_COMPRESSION_LZ4, hearth_buf_view(&lz4)), text.n);
    assert_int_equal(hearth_inflated_bytes(HEARTH_COMPRESSION_LZ4, hearth_str_n(lz4.p, 13)), 0);
    hearth_buf_release(&gzip);
    hearth_buf_release(&zstd);
    hearth_buf_release(&lz4);
}

static void a_zstd_stream_is_read_in_pieces_and_may_lack_its_end(void **state)
{
    struct hearth_buf text = sample_text(3 * MIB), packed = zstd_of(hearth_buf_view(&text)), out;
    size_t n_half = packed.n / 2;

    (void)state;
    hearth_buf_init(&out, 4 * MIB);
    struct hearth_unzstd_stream *stream = hearth_unzstd_stream_new();
    assert_non_null(stream);
    for (size_t at = 0; at < n_half; at += 1000) {
        struct hearth_str piece = {packed.p + at, n_half - at < 1000 ? n_half - at : 1000};
        assert_int_equal(hearth_unzstd_stream_add(stream, piece, &out, &g_err), HEARTH_OK);
    }
    assert_true(out.n > 0 && out.n < text.n);
    assert_memory_equal(out.p, text.p, out.n);

    struct hearth_str rest = {packed.p + n_half, packed.n - n_half};
    assert_int_equal(hearth_unzstd_stream_add(stream, rest, &out, &g_err), HEARTH_OK);
    assert_true(hearth_str_eq(hearth_buf_view(&out), hearth_buf_view(&text)));

    /* The next frame meets the limit of the buffer; other bytes are damage. */
    assert_int_equal(hearth_unzstd_stream_add(stream, hearth_buf_view(&packed), &out, &g_err),
                     HEARTH_RESOURCE_EXHAUSTED);
    hearth_unzstd_stream_free(stream);
    stream = hearth_unzstd_stream_new();
    hearth_buf_reset(&out);
    assert_int_equal(hearth_unzstd_stream_add(stream, hearth_buf_view(&text), &out, &g_err),
                     HEARTH_INVALID_ARGUMENT);
    hearth_unzstd_stream_free(stream);
    hearth_unzstd_stream_free(NULL);
    hearth_buf_release(&text);
    hearth_buf_release(&packed);
    hearth_buf_release(&out);
}

static void bytes_in_an_arena_count_against_its_limit(void **state)
{
    (void)state;
    struct hearth_buf text = sample_text(MIB);
    struct hearth_buf packed = gzip_of(hearth_buf_view(&text));
    struct hearth_str in = hearth_buf_view(&packed), out = {0};
    struct hearth_arena arena;

    hearth_arena_init(&arena, 2 * MIB);
    assert_int_equal(hearth_inflate_in_arena(g_inflater, HEARTH_COMPRESSION_GZIP, in, text.n,
                                             &arena, &out, &g_err),
                     HEARTH_OK);
    assert_true(hearth_str_eq(out, hearth_buf_view(&text)));

    /* A failure leaves the result alone, be it the limit of bytes, the arena's, or no inflater. */
    struct hearth_str before = out;
    assert_int_equal(hearth_inflate_in_arena(g_inflater, HEARTH_COMPRESSION_GZIP, in, text.n - 1,
                                             &arena, &out, &g_err),
                     HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(hearth_inflate_in_arena(g_inflater, HEARTH_COMPRESSION_GZIP, in, text.n,
                                             &arena, &out, &g_err),
                     HEARTH_NO_MEMORY);
    assert_int_equal(
        hearth_inflate_in_arena(NULL, HEARTH_COMPRESSION_GZIP, in, text.n, &arena, &out, &g_err),
        HEARTH_NO_MEMORY);
    assert_ptr_equal(out.p, before.p);

    hearth_arena_release(&arena);
    hearth_buf_release(&text);
    hearth_buf_release(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detects_compression_by_magic_bytes),
        cmocka_unit_test(round_trips_at_many_sizes_with_the_exact_limit),
        cmocka_unit_test(plain_bodies_are_copied_up_to_the_limit),
        cmocka_unit_test(the_limit_of_the_buffer_applies_too),
        cmocka_unit_test(a_bomb_stops_at_the_limit_and_uses_little_memory),
        cmocka_unit_test(a_false_size_in_the_trailer_needs_no_extra_memory),
        cmocka_unit_test(concatenated_members_and_frames_are_one_body),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(every_flipped_bit_is_noticed_or_harmless),
        cmocka_unit_test(errors_name_the_fault_and_its_place),
        cmocka_unit_test(inflates_zlib_streams),
        cmocka_unit_test(refuses_a_zstd_window_beyond_32_mib),
        cmocka_unit_test(a_zstd_frame_larger_than_it_declares_is_damaged_whatever_came_before),
        cmocka_unit_test(skippable_zstd_frames_are_skipped),
        cmocka_unit_test(lz4_frames_of_every_kind_are_inflated),
        cmocka_unit_test(errors_name_the_fault_of_an_lz4_frame),
        cmocka_unit_test(a_damaged_stream_does_not_affect_the_next_one),
        cmocka_unit_test(compressors_respect_the_limit_of_their_buffer),
        cmocka_unit_test(kept_tables_compress_as_new_ones_do),
        cmocka_unit_test(reports_refused_memory_at_every_step),
        cmocka_unit_test(a_stream_of_pieces_is_one_member),
        cmocka_unit_test(sizes_are_known_if_the_format_declares_them),
        cmocka_unit_test(a_stream_without_input_is_an_empty_member),
        cmocka_unit_test(a_stream_fails_if_its_buffer_does),
        cmocka_unit_test(a_zstd_stream_is_read_in_pieces_and_may_lack_its_end),
        cmocka_unit_test(bytes_in_an_arena_count_against_its_limit),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
