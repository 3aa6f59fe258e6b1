/* test_varint.c -- LEB128 and zigzag at their edges. */
#include "hearth/base/varint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const uint64_t g_edges[] = {0,
                                   1,
                                   127,
                                   128,
                                   16383,
                                   16384,
                                   UINT32_MAX,
                                   (UINT64_C(1) << 56) - 1,
                                   UINT64_C(1) << 56,
                                   (UINT64_C(1) << 63) - 1,
                                   UINT64_C(1) << 63,
                                   UINT64_MAX};

static void written_numbers_are_read_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_edges); i++) {
        uint8_t bytes[10];
        size_t n = hearth_varint_write(bytes, g_edges[i]);
        assert_int_equal(n, hearth_varint_size(g_edges[i]));
        const uint8_t *cur = bytes;
        uint64_t value = 42;
        assert_true(hearth_varint_read(&cur, bytes + n, &value));
        assert_true(value == g_edges[i]);
        assert_ptr_equal(cur, bytes + n);
    }
}

static void refuses_a_truncated_varint_without_moving_the_cursor(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_edges); i++) {
        uint8_t bytes[10];
        size_t n = hearth_varint_write(bytes, g_edges[i]);
        const uint8_t *cur = bytes;
        uint64_t value = 42;
        assert_false(hearth_varint_read(&cur, bytes + n - 1, &value));
        assert_ptr_equal(cur, bytes);
        assert_true(value == 42);
    }
}

static void refuses_more_than_64_bits(void **state)
{
    (void)state;
    static const uint8_t eleven[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                     0x80, 0x80, 0x80, 0x80, 0x00};
    static const uint8_t bit_64[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    uint64_t value;
    const uint8_t *cur = eleven;
    assert_false(hearth_varint_read(&cur, eleven + sizeof eleven, &value));
    cur = bit_64;
    assert_false(hearth_varint_read(&cur, bit_64 + sizeof bit_64, &value));
    assert_ptr_equal(cur, bit_64);
}

static void accepts_padded_zeros(void **state)
{
    (void)state;
    static const uint8_t padded[] = {0x81, 0x80, 0x00, 0x55};
    const uint8_t *cur = padded;
    uint64_t value;
    assert_true(hearth_varint_read(&cur, padded + sizeof padded, &value));
    assert_int_equal(value, 1);
    assert_ptr_equal(cur, padded + 3);
}

static void zigzag_orders_by_magnitude(void **state)
{
    (void)state;
    assert_int_equal(hearth_zigzag(0), 0);
    assert_int_equal(hearth_zigzag(-1), 1);
    assert_int_equal(hearth_zigzag(1), 2);
    assert_true(hearth_zigzag(INT64_MAX) == UINT64_MAX - 1);
    assert_true(hearth_zigzag(INT64_MIN) == UINT64_MAX);
    static const int64_t values[] = {0, -1, 1, 1234567, -7654321, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(values); i++) {
        assert_true(hearth_unzigzag(hearth_zigzag(values[i])) == values[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_numbers_are_read_back),
        cmocka_unit_test(refuses_a_truncated_varint_without_moving_the_cursor),
        cmocka_unit_test(refuses_more_than_64_bits),
        cmocka_unit_test(accepts_padded_zeros),
        cmocka_unit_test(zigzag_orders_by_magnitude),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
