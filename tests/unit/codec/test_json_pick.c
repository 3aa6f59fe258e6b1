/* test_json_pick.c -- chosen members of JSON objects. */
#include "hearth/base/buf.h"
#include "hearth/base/mem.h"
#include "hearth/codec/json_pick.h"

#include "arena_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct hearth_err g_err;

static struct hearth_json_pick g_picks[3];

/* Picks the text "a", the text "b.c.d" and the array "e". */
static enum hearth_status pick_three(struct hearth_str json)
{
    g_picks[0] = (struct hearth_json_pick){.path = "a"};
    g_picks[1] = (struct hearth_json_pick){.path = "b.c.d"};
    g_picks[2] = (struct hearth_json_pick){.path = "e", .is_array = true};
    return hearth_json_pick(json, g_picks, 3, &g_arena, &g_err);
}

static void picks_members_at_any_level(void **state)
{
    (void)state;
    assert_int_equal(
        pick_three(HEARTH_STR("{\"x\":[1,{}],\"b\":{\"c\":{\"d\":\"\\u00e9\"},\"a\":1},"
                              "\"a\":\"\",\"e\":[\"one\",2,null,\"two\"]}")),
        HEARTH_OK);
    assert_true(g_picks[0].text.p != NULL && g_picks[0].text.n == 0);
    assert_true(hearth_str_eq_c(g_picks[1].text, "\xc3\xa9"));
    assert_int_equal(g_picks[2].n_items, 2);
    assert_true(hearth_str_eq_c(g_picks[2].items[1], "two"));
}

static void missing_members_are_absent(void **state)
{
    (void)state;
    static const char *const objects[] = {"{}", "{\"a\":null,\"b\":5,\"e\":null}",
                                          "{\"b\":{\"c\":\"d\"}}", "{\"b\":{\"c\":{}},\"e\":[]}"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(objects); i++) {
        assert_int_equal(pick_three(hearth_str_c(objects[i])), HEARTH_OK);
        assert_null(g_picks[0].text.p);
        assert_null(g_picks[1].text.p);
        assert_int_equal(g_picks[2].n_items, 0);
    }
}

static void refuses_members_of_another_type(void **state)
{
    (void)state;
    assert_int_equal(pick_three(HEARTH_STR("{\"a\":7}")), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(g_err.msg, "the member \"a\" is not a string");
    assert_int_equal(pick_three(HEARTH_STR("{\"e\":\"one\"}")), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(g_err.msg, "the member \"e\" is not an array");
    assert_int_equal(pick_three(HEARTH_STR("[]")), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(pick_three(HEARTH_STR("")), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(pick_three(HEARTH_STR("{\"a\":\"cut")), HEARTH_INVALID_ARGUMENT);
}

static void long_json_is_read_up_to_the_limit(void **state)
{
    (void)state;
    struct hearth_buf json;
    hearth_buf_init(&json, 0);
    hearth_buf_cstr(&json, "{\"endpoints\":{");
    for (unsigned i = 0; i < 20000; i++) {
        hearth_buf_printf(&json, "\"GET /orders/%u\":%u,", i, i);
    }
    hearth_buf_cstr(&json, "\"last\":1},\"a\":\"found\"}");
    assert_int_equal(pick_three(hearth_buf_view(&json)), HEARTH_OK);
    assert_true(hearth_str_eq_c(g_picks[0].text, "found"));

    while (json.n <= HEARTH_JSON_PICK_BYTES) {
        hearth_buf_cstr(&json, "                                ");
    }
    assert_int_equal(pick_three(hearth_buf_view(&json)), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(g_err.msg, "at most 1048576 bytes"));

    /* Small elements take many times their text. */
    hearth_buf_reset(&json);
    hearth_buf_cstr(&json, "{\"a\":[0");
    while (json.n < HEARTH_JSON_PICK_BYTES - 10) {
        hearth_buf_cstr(&json, ",[]");
    }
    hearth_buf_cstr(&json, "]}");
    assert_int_equal(pick_three(hearth_buf_view(&json)), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(g_err.msg, "memory limit of 16777216 bytes"));
    hearth_buf_release(&json);
}

static void every_refused_allocation_is_reported(void **state)
{
    (void)state;
    enum hearth_status status = HEARTH_NO_MEMORY;
    for (uint64_t nth = 1; status != HEARTH_OK; nth++) {
        hearth_arena_release(&g_arena);
        hearth_arena_init(&g_arena, 0);
        hearth_mem_fail_after(nth);
        status = pick_three(HEARTH_STR("{\"a\":\"x\",\"b\":{\"c\":{\"d\":\"y\"}},\"e\":[\"z\"]}"));
        hearth_mem_fail_after(0);
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        assert_true(nth < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_members_at_any_level),
        cmocka_unit_test(missing_members_are_absent),
        cmocka_unit_test(refuses_members_of_another_type),
        cmocka_unit_test(long_json_is_read_up_to_the_limit),
        cmocka_unit_test(every_refused_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
