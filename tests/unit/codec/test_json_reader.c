/* test_json_reader.c -- JSON value by value: what is read, what is a fault, and where. */
#include "hearth/codec/json_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static enum hearth_status skip_all(struct hearth_str text, struct hearth_err *err)
{
    struct hearth_json_reader r;

    hearth_json_reader_init(&r, text);
    hearth_json_reader_skip(&r);

    return hearth_json_reader_end(&r, err);
}

static void reads_members_and_elements_in_order(void **state)
{
    (void)state;
    struct hearth_json_reader r;
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_str key;
    int64_t sum = 0;
    size_t n_skipped = 0;

    hearth_arena_init(&arena, 0);
    hearth_json_reader_init(&r,
                            HEARTH_STR(" {\"n\" : [1, 2,\n3e0], \"name\":\"a\\nb\",\"x\":{\"y\":"
                                       "[true, null, {}, []]}, \"t\": 0.5 } "));
    hearth_json_reader_object(&r);
    while (hearth_json_reader_member(&r, &key)) {
        if (hearth_str_eq_c(key, "n")) {
            hearth_json_reader_array(&r);
            while (hearth_json_reader_element(&r)) {
                sum += hearth_json_reader_i64(&r);
            }
        } else if (hearth_str_eq_c(key, "name")) {
            assert_true(hearth_str_eq_c(hearth_json_reader_text(&r, &arena), "a\nb"));
        } else if (hearth_str_eq_c(key, "t")) {
            assert_int_equal(hearth_json_reader_scaled(&r, 1000), 500);
        } else {
            hearth_json_reader_skip(&r);
            n_skipped++;
        }
    }

    assert_int_equal(hearth_json_reader_end(&r, &err), HEARTH_OK);
    assert_int_equal(sum, 6);
    assert_int_equal(n_skipped, 1);
    hearth_arena_release(&arena);
}

static void tells_the_type_of_the_next_value(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        char type;
    } cases[] = {
        {"{", '{'},     {" [", '['},   {"\"a", '"'}, {"-1", '0'}, {"7", '0'}, {"true", 'b'},
        {"false", 'b'}, {"null", 'n'}, {"", 0},      {"]", 0},    {"x", 0},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_json_reader r;
        hearth_json_reader_init(&r, hearth_str_c(cases[i].text));
        assert_int_equal(hearth_json_reader_peek(&r), cases[i].type);
    }
}

static void accepts_valid_json(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "0",
        "-1.5e+3",
        "\"\"",
        "\"\\\"\"",
        "true",
        " null ",
        "[]",
        "{}",
        "[[],{}]",
        "{\"a\":{\"a\":[1]}}",
        "\t\r\n[ 1 , 2 ]",
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_err err = HEARTH_ERR_INIT;
        if (skip_all(hearth_str_c(cases[i]), &err) != HEARTH_OK) {
            fail_msg("%s: %s", cases[i], err.msg);
        }
    }
}

static void names_the_byte_of_a_fault(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "at byte 0: the JSON text ends where a value is expected"},
        {"[1 2]", "at byte 3: '2' where ',' or ']' is expected"},
        {"[1,]", "at byte 3: ']' where a value is expected"},
        {"[,1]", "at byte 1: ',' where a value is expected"},
        {"{\"a\" 1}", "at byte 5: '1' where ':' is expected"},
        {"{\"a\":1,}", "at byte 7: '}' where a key is expected"},
        {"{a:1}", "at byte 1: 'a' where a key is expected"},
        {"[1}", "at byte 2: '}' where ',' or ']' is expected"},
        {"[1", "at byte 2: the JSON text ends where ',' or ']' is expected"},
        {"\"a", "at byte 2: the JSON text ends within a string"},
        {"\"a\\", "at byte 3: the JSON text ends within a string"},
        {"\"a\nb\"", "at byte 2: the byte 0x0a where the end of a string is expected"},
        {"nil", "at byte 0: 'n' where a value is expected"},
        {"01", "at byte 0: not a number of JSON"},
        {"1 1", "at byte 2: '1' where the end of the JSON text is expected"},
        {"\xff", "at byte 0: the byte 0xff where a value is expected"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_err err = HEARTH_ERR_INIT;
        assert_int_equal(skip_all(hearth_str_c(cases[i].text), &err), HEARTH_INVALID_ARGUMENT);
        assert_string_equal(err.msg, cases[i].why);
    }
}

static void refuses_values_of_another_type(void **state)
{
    (void)state;
    struct hearth_json_reader r;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_json_reader_init(&r, HEARTH_STR("\"text\""));
    hearth_json_reader_array(&r);
    assert_false(hearth_json_reader_element(&r));
    assert_int_equal(hearth_json_reader_end(&r, &err), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(err.msg, "at byte 0: '\"' where an array is expected");

    hearth_json_reader_init(&r, HEARTH_STR("1.5"));
    assert_int_equal(hearth_json_reader_i64(&r), 0);
    assert_int_equal(hearth_json_reader_status(&r, &err), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(err.msg, "at byte 3: the number that ends here is no integer of 64 bits");
}

static void keeps_the_first_fault(void **state)
{
    (void)state;
    struct hearth_json_reader r;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_json_reader_init(&r, HEARTH_STR("[1"));
    hearth_json_reader_fail(&r, "sample %d is odd", 4);
    hearth_json_reader_fail(&r, "later");
    assert_int_equal(hearth_json_reader_peek(&r), 0);
    assert_int_equal(hearth_json_reader_end(&r, &err), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(err.msg, "at byte 0: sample 4 is odd");
}

static void reads_a_value_again_with_a_copy(void **state)
{
    (void)state;
    struct hearth_json_reader r, copy;

    hearth_json_reader_init(&r, HEARTH_STR("[1,2]"));
    hearth_json_reader_array(&r);
    assert_true(hearth_json_reader_element(&r));
    copy = r;
    assert_int_equal(hearth_json_reader_i64(&r), 1);
    assert_int_equal(hearth_json_reader_i64(&copy), 1);
    assert_true(hearth_json_reader_element(&copy));
    assert_int_equal(hearth_json_reader_i64(&copy), 2);
}

static void limits_the_depth_of_a_million_brackets(void **state)
{
    (void)state;
    size_t n = 1000000;
    char *brackets = malloc(n);
    struct hearth_err err = HEARTH_ERR_INIT;

    assert_non_null(brackets);
    memset(brackets, '[', n);
    assert_int_equal(skip_all(hearth_str_n(brackets, n), &err), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(err.msg, "at byte 1025: nested deeper than 1024 levels");
    free(brackets);
}

static void reports_a_refused_allocation(void **state)
{
    (void)state;
    struct hearth_json_reader r;
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_arena_init(&arena, 1);
    hearth_json_reader_init(&r, HEARTH_STR("\"a\\nbcdefghijklmnopqrstuvwxyz\""));
    (void)hearth_json_reader_text(&r, &arena);
    assert_int_equal(hearth_json_reader_end(&r, &err), HEARTH_NO_MEMORY);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_members_and_elements_in_order),
        cmocka_unit_test(tells_the_type_of_the_next_value),
        cmocka_unit_test(accepts_valid_json),
        cmocka_unit_test(names_the_byte_of_a_fault),
        cmocka_unit_test(refuses_values_of_another_type),
        cmocka_unit_test(keeps_the_first_fault),
        cmocka_unit_test(reads_a_value_again_with_a_copy),
        cmocka_unit_test(limits_the_depth_of_a_million_brackets),
        cmocka_unit_test(reports_a_refused_allocation),
    };

    return cmocka_run_group_tests_name("json_reader", tests, NULL, NULL);
}
