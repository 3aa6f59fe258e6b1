/* test_jfr_cursor.c -- passing over many integers at once ends where reading them one by one does. */
#include "jfr/jfr_cursor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N_BYTES 100

static uint32_t g_seed = 7;

static uint32_t draw(uint32_t n)
{
    g_seed = g_seed * 1103515245u + 12345u;
    return (g_seed >> 16) % n;
}

/* Compares both ways over the n bytes, from each offset and for each number of integers. */
static void compare(const uint8_t *bytes, size_t n)
{
    for (size_t at = 0; at <= n; at++) {
        struct jfr_cursor slow = {bytes + at, bytes + n, false};
        for (uint64_t count = 0; count <= n + 1; count++) {
            struct jfr_cursor fast = {bytes + at, bytes + n, false};
            hearth_jfr_skip_ints(&fast, count);
            assert_ptr_equal(fast.at, slow.at);
            assert_int_equal(fast.failed, slow.failed);
            (void)jfr_int(&slow);
        }
    }
}

static void ends_where_single_reads_end(void **state)
{
    (void)state;
    uint8_t bytes[N_BYTES];

    /* One byte in `often` ends an integer: from all of them to hardly any. */
    for (uint32_t often = 1; often <= 12; often++) {
        for (int round = 0; round < 20; round++) {
            for (size_t i = 0; i < N_BYTES; i++) {
                bytes[i] = (uint8_t)(draw(128) | (draw(often) == 0 ? 0 : 0x80));
            }
            compare(bytes, N_BYTES - draw(20));
        }
    }
}

static void passes_over_integers_of_nine_bytes(void **state)
{
    (void)state;
    uint8_t bytes[N_BYTES];

    memset(bytes, 0xff, sizeof bytes);
    compare(bytes, sizeof bytes);
}

static void fails_at_the_end_however_many_are_asked_for(void **state)
{
    (void)state;
    static const uint8_t bytes[N_BYTES];
    struct jfr_cursor c = {bytes, bytes + N_BYTES, false};

    hearth_jfr_skip_ints(&c, UINT64_MAX);
    assert_true(c.failed);
    assert_ptr_equal(c.at, bytes + N_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_where_single_reads_end),
        cmocka_unit_test(passes_over_integers_of_nine_bytes),
        cmocka_unit_test(fails_at_the_end_however_many_are_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
