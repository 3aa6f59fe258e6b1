/* test_buf.c -- exact limits and the sticky error. */
#include "hearth/base/buf.h"
#include "hearth/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void collects_all_appended_pieces(void **state)
{
    (void)state;
    struct hearth_buf buf;
    hearth_buf_init(&buf, 0);
    hearth_buf_append(&buf, NULL, 0);
    hearth_buf_str(&buf, HEARTH_STR("ab"));
    hearth_buf_cstr(&buf, "cd");
    hearth_buf_byte(&buf, 'e');
    hearth_buf_printf(&buf, "%d-%s", 7, "x");
    hearth_buf_varint(&buf, 300);
    assert_false(hearth_buf_failed(&buf));
    assert_true(hearth_str_eq(hearth_buf_view(&buf), HEARTH_STR("abcde7-x\xac\x02")));
    hearth_buf_release(&buf);
}

static void grows_to_any_size(void **state)
{
    (void)state;
    struct hearth_buf buf;
    hearth_buf_init(&buf, 0);
    for (unsigned i = 0; i < 100000; i++) {
        hearth_buf_printf(&buf, "%05u", i);
    }

    assert_int_equal(buf.n, 500000);
    assert_memory_equal(buf.p + 5 * 99999, "99999", 5);
    hearth_buf_release(&buf);
}

/* At every limit, an append that fits exactly is accepted, and one byte more is refused. */
static void keeps_its_limit_to_the_byte(void **state)
{
    (void)state;
    for (size_t limit = 1; limit < 200; limit++) {
        struct hearth_buf buf;

        hearth_buf_init(&buf, limit);
        for (size_t i = 0; i < limit; i++) {
            hearth_buf_byte(&buf, 'x');
        }

        assert_false(hearth_buf_failed(&buf));
        hearth_buf_byte(&buf, 'y');
        assert_true(hearth_buf_failed(&buf));
        assert_int_equal(buf.n, limit);
        hearth_buf_reset(&buf);
        hearth_buf_printf(&buf, "%0*d", (int)limit, 0);
        assert_false(hearth_buf_failed(&buf));
        assert_int_equal(buf.n, limit);
        hearth_buf_printf(&buf, "z");
        assert_true(hearth_buf_failed(&buf));
        hearth_buf_release(&buf);
    }
}

static void a_small_varint_fits_the_last_byte(void **state)
{
    (void)state;
    struct hearth_buf buf;
    hearth_buf_init(&buf, 2);
    hearth_buf_varint(&buf, 1);
    hearth_buf_varint(&buf, 127);
    assert_false(hearth_buf_failed(&buf));
    hearth_buf_release(&buf);
}

static void the_error_sticks_until_reset(void **state)
{
    (void)state;
    struct hearth_buf buf;
    hearth_buf_init(&buf, 4);
    hearth_buf_cstr(&buf, "abc");
    hearth_buf_cstr(&buf, "too long");
    hearth_buf_cstr(&buf, "d");
    assert_null(hearth_buf_reserve(&buf, 0));
    assert_true(hearth_str_eq_c(hearth_buf_view(&buf), "abc"));
    hearth_buf_reset(&buf);
    hearth_buf_cstr(&buf, "abcd");
    assert_true(hearth_str_eq_c(hearth_buf_view(&buf), "abcd"));
    hearth_buf_release(&buf);
}

static void refuses_sizes_that_overflow(void **state)
{
    (void)state;
    struct hearth_buf buf;
    hearth_buf_init(&buf, 0);
    hearth_buf_byte(&buf, 'a');
    assert_null(hearth_buf_reserve(&buf, SIZE_MAX));
    hearth_buf_reset(&buf);
    assert_null(hearth_buf_reserve(&buf, SIZE_MAX - 1));
    hearth_buf_release(&buf);
}

static void a_refused_allocation_leaves_the_contents(void **state)
{
    (void)state;
    struct hearth_buf buf;
    hearth_buf_init(&buf, 0);
    hearth_buf_cstr(&buf, "kept");
    hearth_mem_fail_after(1);
    char *room = hearth_buf_reserve(&buf, 1 << 20);
    hearth_mem_fail_after(0);
    assert_null(room);
    assert_true(hearth_buf_failed(&buf));
    assert_true(hearth_str_eq_c(hearth_buf_view(&buf), "kept"));
    hearth_buf_release(&buf);
}

static void take_gives_the_bytes_to_the_caller(void **state)
{
    (void)state;
    struct hearth_buf buf;
    hearth_buf_init(&buf, 0);
    hearth_buf_cstr(&buf, "mine");
    size_t n;
    char *p = hearth_buf_take(&buf, &n);
    assert_int_equal(n, 4);
    assert_memory_equal(p, "mine", 4);
    assert_int_equal(buf.n, 0);
    assert_null(buf.p);
    hearth_mem_free(p);
    hearth_buf_release(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collects_all_appended_pieces),
        cmocka_unit_test(grows_to_any_size),
        cmocka_unit_test(keeps_its_limit_to_the_byte),
        cmocka_unit_test(a_small_varint_fits_the_last_byte),
        cmocka_unit_test(the_error_sticks_until_reset),
        cmocka_unit_test(refuses_sizes_that_overflow),
        cmocka_unit_test(a_refused_allocation_leaves_the_contents),
        cmocka_unit_test(take_gives_the_bytes_to_the_caller),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
