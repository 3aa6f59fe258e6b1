/* test_json_table.c -- objects of objects as cells. */
#include "hearth/base/mem.h"
#include "hearth/codec/json_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct hearth_arena g_arena;
static struct hearth_json_cell *g_cells;
static size_t g_n;
static struct hearth_err g_err;

static int start(void **state)
{
    (void)state;
    hearth_arena_init(&g_arena, 0);
    g_n = 77;
    return 0;
}

static int stop(void **state)
{
    (void)state;
    hearth_arena_release(&g_arena);
    return 0;
}

static enum hearth_status read_text(const char *json)
{
    return hearth_json_table_read(hearth_str_c(json), &g_arena, &g_cells, &g_n, &g_err);
}

static void assert_cell(size_t i, const char *row, const char *column, const char *text)
{
    assert_true(i < g_n);
    assert_true(hearth_str_eq_c(g_cells[i].row, row));
    assert_true(hearth_str_eq_c(g_cells[i].column, column));
    assert_true(hearth_str_eq_c(g_cells[i].text, text));
}

static void returns_the_strings_of_every_row(void **state)
{
    (void)state;
    assert_int_equal(read_text("{\"a\":{\"x\":\"1\",\"n\":5,\"y\":\"\\u00e9\"},\"b\":{},\"c\":null,"
                               "\"d\":{\"x\":\"2\",\"deep\":{\"x\":\"no\"},\"is\":true}}"),
                     HEARTH_OK);
    assert_int_equal(g_n, 3);
    assert_cell(0, "a", "x", "1");
    assert_cell(1, "a", "y", "\xc3\xa9");
    assert_cell(2, "d", "x", "2");
    assert_int_equal(read_text("{}"), HEARTH_OK);
    assert_int_equal(g_n, 0);
}

static void refuses_anything_but_an_object_of_objects(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "[]",
        "{",
        "{\"a\":1}",
        "\"a\"",
        "{\"a\":\"b\"}",
        "{\"a\":[]}",
        "{\"a\":{\"b\":\"\\u0000\"}}",
        "{\"a\":{},\"a\":{}}",
        "{\"a\":{\"b\":{\"c\":{\"d\":{}}}}}",
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(wrong); i++) {
        g_err.msg[0] = '\0';
        assert_int_equal(read_text(wrong[i]), HEARTH_INVALID_ARGUMENT);
        assert_true(g_err.msg[0] != '\0');
        assert_int_equal(g_n, 77);
    }
}

static void refuses_more_than_its_limit(void **state)
{
    (void)state;
    char *json = test_malloc(HEARTH_JSON_TABLE_BYTES + 2);
    memset(json, ' ', HEARTH_JSON_TABLE_BYTES + 1);
    json[HEARTH_JSON_TABLE_BYTES + 1] = '\0';
    memcpy(json, "{}", 2);
    assert_int_equal(read_text(json), HEARTH_INVALID_ARGUMENT);
    json[HEARTH_JSON_TABLE_BYTES] = '\0';
    assert_int_equal(read_text(json), HEARTH_OK);
    test_free(json);
}

static void every_refused_allocation_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    enum hearth_status status = HEARTH_NO_MEMORY;
    for (uint64_t nth = 1; status != HEARTH_OK; nth++) {
        hearth_mem_fail_after(nth);
        status = read_text("{\"a\":{\"x\":\"1\"},\"b\":{\"x\":\"2\"}}");
        hearth_mem_fail_after(0);
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        hearth_arena_release(&g_arena);
        hearth_arena_init(&g_arena, 0);
        assert_true(nth < 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(returns_the_strings_of_every_row, start, stop),
        cmocka_unit_test_setup_teardown(refuses_anything_but_an_object_of_objects, start, stop),
        cmocka_unit_test_setup_teardown(refuses_more_than_its_limit, start, stop),
        cmocka_unit_test_setup_teardown(every_refused_allocation_is_reported_and_nothing_leaks,
                                        start, stop),
    };

    return cmocka_run_group_tests_name("json_table", tests, NULL, NULL);
}
