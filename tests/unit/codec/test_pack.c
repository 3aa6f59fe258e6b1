/*
 * test_pack.c -- packed bytes are unpacked unchanged, frames are used if they save enough, damage
 * is reported.
 */
#include "hearth/base/mem.h"
#include "hearth/codec/compress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct hearth_inflater *g_inflater;
static struct hearth_packer *g_packer;
static struct hearth_err g_err;

static int start(void **state)
{
    (void)state;
    g_inflater = hearth_inflater_new();
    g_packer = hearth_packer_new(1);
    return g_inflater == NULL || g_packer == NULL ? -1 : 0;
}

static int stop(void **state)
{
    (void)state;
    hearth_inflater_free(g_inflater);
    hearth_packer_free(g_packer);
    hearth_packer_free(NULL);
    return 0;
}

/* Random values: 8 bits are noise, 2 bits can be halved. */
static struct hearth_buf noise(size_t n, unsigned bits)
{
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    uint64_t rng = 7;
    for (size_t i = 0; i < n; i++) {
        rng = rng * 6364136223846793005ull + 1442695040888963407ull;
        hearth_buf_byte(&out, (unsigned char)(rng >> (64 - bits)));
    }

    return out;
}

static void packed_bytes_are_unpacked_at_every_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 15, 16, 17, 63, 64, 255, 256, 1000, 70000, 300000};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(sizes); i++) {
        for (unsigned bits = 0; bits <= 8; bits += 2) {
            struct hearth_buf in = noise(sizes[i], bits == 0 ? 1 : bits), out, scratch;

            hearth_buf_init(&out, 0);
            hearth_buf_init(&scratch, 0);
            hearth_buf_cstr(&out, "before");
            hearth_buf_cstr(&scratch, "kept");
            assert_int_equal(hearth_pack(g_packer, hearth_buf_view(&in), &out, &g_err), HEARTH_OK);
            assert_memory_equal(out.p, "before", 6);
            assert_true(out.n <= 6 + 1 + sizes[i]);
            struct hearth_str packed = hearth_str_n(out.p + 6, out.n - 6), view;
            assert_int_equal(hearth_unpack(g_inflater, packed, sizes[i], &scratch, &view, &g_err),
                             HEARTH_OK);
            assert_true(hearth_str_eq(view, hearth_buf_view(&in)));
            assert_memory_equal(scratch.p, "kept", 4);
            if (sizes[i] > 0) {
                size_t before = scratch.n;
                assert_int_equal(
                    hearth_unpack(g_inflater, packed, sizes[i] - 1, &scratch, &view, &g_err),
                    HEARTH_RESOURCE_EXHAUSTED);
                assert_int_equal(scratch.n, before);
            }

            hearth_buf_release(&in);
            hearth_buf_release(&out);
            hearth_buf_release(&scratch);
        }
    }
}

static void bytes_stay_plain_if_a_frame_saves_too_little(void **state)
{
    (void)state;
    struct hearth_buf plain = noise(1000, 8), dense = noise(1000, 2), out, scratch;
    struct hearth_buf little = noise(1000, 6); /* a quarter can be saved */
    hearth_buf_init(&out, 0);
    hearth_buf_init(&scratch, 0);
    struct hearth_str view;
    assert_int_equal(hearth_pack(g_packer, hearth_buf_view(&plain), &out, &g_err), HEARTH_OK);
    assert_int_equal(out.n, 1001);
    assert_int_equal(out.p[0], 0);
    assert_int_equal(
        hearth_unpack(g_inflater, hearth_buf_view(&out), 1000, &scratch, &view, &g_err), HEARTH_OK);
    assert_ptr_equal(view.p, out.p + 1); /* borrowed, not copied */
    hearth_buf_reset(&out);
    assert_int_equal(hearth_pack(g_packer, hearth_buf_view(&dense), &out, &g_err), HEARTH_OK);
    assert_int_equal(out.p[0], 1);
    assert_true(out.n < 600);
    hearth_buf_reset(&out);
    assert_int_equal(hearth_pack(g_packer, hearth_buf_view(&little), &out, &g_err), HEARTH_OK);
    assert_int_equal(out.n, 1001);
    hearth_buf_release(&little);
    hearth_buf_release(&plain);
    hearth_buf_release(&dense);
    hearth_buf_release(&out);
    hearth_buf_release(&scratch);
}

static void a_frame_that_declares_too_much_is_refused_without_allocation(void **state)
{
    (void)state;

    /* Magic, one segment with a content size of 8 bytes: 2^40; then an empty last block. */
    struct hearth_str bomb = hearth_str_n("\x01\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\1\0\0\x01\0\0", 17);
    struct hearth_buf scratch;
    hearth_buf_init(&scratch, 0);
    struct hearth_str view;
    assert_int_equal(hearth_unpack(g_inflater, bomb, 1u << 20, &scratch, &view, &g_err),
                     HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(scratch.cap, 0);
    hearth_buf_release(&scratch);
}

static void damage_is_reported_at_every_place(void **state)
{
    (void)state;
    struct hearth_buf in = noise(3000, 3), out, scratch;
    hearth_buf_init(&out, 0);
    hearth_buf_init(&scratch, 0);
    struct hearth_str view;
    assert_int_equal(hearth_pack(g_packer, hearth_buf_view(&in), &out, &g_err), HEARTH_OK);
    for (size_t n = 0; n < out.n; n++) {
        assert_int_equal(
            hearth_unpack(g_inflater, hearth_str_n(out.p, n), 1u << 20, &scratch, &view, &g_err),
            HEARTH_CORRUPT);
        assert_int_equal(g_err.status, HEARTH_CORRUPT);
        assert_int_equal(scratch.n, 0);
    }

    out.p[0] = 2;
    assert_int_equal(
        hearth_unpack(g_inflater, hearth_buf_view(&out), 1u << 20, &scratch, &view, &g_err),
        HEARTH_CORRUPT);
    hearth_buf_release(&in);
    hearth_buf_release(&out);
    hearth_buf_release(&scratch);
}

static void refused_memory_leaves_the_buffer_as_it_was(void **state)
{
    (void)state;
    struct hearth_buf in = noise(3000, 3), out;
    hearth_buf_init(&out, 100);
    hearth_buf_cstr(&out, "x");
    assert_int_equal(hearth_pack(g_packer, hearth_buf_view(&in), &out, &g_err), HEARTH_NO_MEMORY);
    assert_int_equal(out.n, 1);
    hearth_mem_fail_after(1);
    struct hearth_packer *none = hearth_packer_new(1);
    hearth_mem_fail_after(0);
    assert_null(none);
    hearth_buf_release(&in);
    hearth_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_bytes_are_unpacked_at_every_size),
        cmocka_unit_test(bytes_stay_plain_if_a_frame_saves_too_little),
        cmocka_unit_test(a_frame_that_declares_too_much_is_refused_without_allocation),
        cmocka_unit_test(damage_is_reported_at_every_place),
        cmocka_unit_test(refused_memory_leaves_the_buffer_as_it_was),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
