/*
 * test_row_mask.c -- stacks narrowed by rows of tables: each kind by an example, several at once,
 * and errors.
 */
#include "select/row_mask.h"
#include "synth_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* ---- a dictionary of four stacks ---- */

enum {
    MAIN,
    ADD,
    LIST,
    COPY,
    N_FUNCTIONS,
};

static struct hearth_str g_strings[] = {
    {"", 0},          {"main.main", 9},       {"main.(*Cart).Add", 16}, {"java.util.List.add", 18},
    {"memcpy", 6},    {"/src/main.go", 12},   {"/src/cart.go", 12},     {"List.java", 9},
    {"/bin/shop", 9}, {"/lib/libc.so.6", 14},
};
static struct hearth_mapping g_mappings[] = {{.filename = 8}, {.filename = 9}};
static struct hearth_function g_functions[N_FUNCTIONS] = {
    [MAIN] = {.name = 1, .filename = 5},
    [ADD] = {.name = 2, .filename = 6},
    [LIST] = {.name = 3, .filename = 7},
    [COPY] = {.name = 4},
};
static struct hearth_line g_lines[] = {{MAIN, 7}, {ADD, 1}, {MAIN, 9}, {LIST, 3}, {COPY, 0}};
static struct hearth_location g_locations[] = {
    {.mapping = 0, .first_line = 0, .n_lines = 1},               /* 0: main.main:7 */
    {.mapping = 0, .first_line = 1, .n_lines = 2},               /* 1: Cart.Add:1 in main.main:9 */
    {.mapping = HEARTH_NO_INDEX, .first_line = 3, .n_lines = 1}, /* 2: List.add:3 */
    {.mapping = 1, .first_line = 4, .n_lines = 1},               /* 3: memcpy */
    {.mapping = 1, .address = 0x4f0},                            /* 4: no lines */
};
static uint32_t g_stack_locs[] = {0, 3, 1, 4, 2};
static uint32_t g_stack_first[] = {0, 1, 3, 5, 5};

static struct hearth_dict make_dict(void)
{
    return (struct hearth_dict){
        .strings = g_strings,
        .mappings = g_mappings,
        .functions = g_functions,
        .lines = g_lines,
        .locations = g_locations,
        .stack_first = g_stack_first,
        .stack_locs = g_stack_locs,
        .n_strings = HEARTH_ARRAY_LEN(g_strings),
        .n_mappings = HEARTH_ARRAY_LEN(g_mappings),
        .n_functions = N_FUNCTIONS,
        .n_lines = HEARTH_ARRAY_LEN(g_lines),
        .n_locations = HEARTH_ARRAY_LEN(g_locations),
        .n_stacks = HEARTH_ARRAY_LEN(g_stack_first) - 1,
    };
}

/* Stacks: main.main; memcpy below Cart.Add and main.main; an address below List.add; no frames. */
static void assert_passing(const struct hearth_row_filter *rows, size_t n, const char *expected)
{
    const struct hearth_stack_filter filter = {.rows = rows, .n_rows = n};
    struct hearth_dict dict = make_dict();
    struct hearth_arena arena;
    struct hearth_row_mask mask;
    struct hearth_err err;
    const bool *passes;
    char got[5] = "";

    hearth_arena_init(&arena, 0);
    assert_int_equal(hearth_row_mask_init(&mask, &filter, &arena, &err), HEARTH_OK);
    for (int again = 0; again < 2; again++) { /* the second time, all names are known */
        assert_int_equal(hearth_row_mask_stacks(&mask, &dict, 4, NULL, &passes, &err), HEARTH_OK);
        for (size_t s = 0; s < 4; s++) {
            got[s] = passes == NULL || passes[s] ? '+' : '.';
        }
        assert_string_equal(got, expected);
    }

    hearth_row_mask_release(&mask);
    hearth_arena_release(&arena);
}

static void assert_names(enum hearth_top_kind kind, const char *name, const char *expected)
{
    const struct hearth_str text = hearth_str_c(name);
    const struct hearth_row_filter row = {.kind = kind, .names = &text, .n_names = 1};
    assert_passing(&row, 1, expected);
}

static void names_are_those_of_the_rows_of_each_table(void **state)
{
    (void)state;
    assert_names(HEARTH_TOP_FUNCTION, "main.main", "++..");
    assert_names(HEARTH_TOP_FUNCTION, "libc.so.6+0x4f0", "..+.");
    assert_names(HEARTH_TOP_LINE, "main.main:9", ".+..");
    assert_names(HEARTH_TOP_LINE, "memcpy:0", ".+..");
    assert_names(HEARTH_TOP_FILE, "/src/cart.go", ".+..");
    assert_names(HEARTH_TOP_DIRECTORY, "/src", "++..");
    assert_names(HEARTH_TOP_CLASS, "main.Cart", ".+..");
    assert_names(HEARTH_TOP_CLASS, "java.util.List", "..+.");
    assert_names(HEARTH_TOP_PACKAGE, "main", "++..");
    assert_names(HEARTH_TOP_PACKAGE, "libc.so.6", ".++.");
    assert_names(HEARTH_TOP_MODULE, "/lib/libc.so.6", ".++.");
    assert_names(HEARTH_TOP_MODULE, "libc.so.6", "....");
}

static void the_empty_name_is_the_row_of_everything_unknown(void **state)
{
    (void)state;
    assert_names(HEARTH_TOP_FILE, "", ".++.");
    assert_names(HEARTH_TOP_CLASS, "", "+++.");
    assert_names(HEARTH_TOP_MODULE, "", "..+.");
    assert_names(HEARTH_TOP_PACKAGE, "", "....");
    assert_names(HEARTH_TOP_FUNCTION, "", "....");
}

static void exclusion_wins_and_a_stack_without_frames_has_no_rows(void **state)
{
    (void)state;
    static const struct hearth_str main_name[] = {{"main", 4}}, libc[] = {{"libc.so.6", 9}};
    assert_passing(&(struct hearth_row_filter){.kind = HEARTH_TOP_PACKAGE,
                                               .names = main_name,
                                               .n_names = 1,
                                               .without = libc,
                                               .n_without = 1},
                   1, "+...");
    assert_passing(
        &(struct hearth_row_filter){.kind = HEARTH_TOP_PACKAGE, .without = libc, .n_without = 1}, 1,
        "+..+");
}

static void expressions_are_searched_in_the_names_of_rows(void **state)
{
    (void)state;
    assert_passing(
        &(struct hearth_row_filter){.kind = HEARTH_TOP_FILE, .regex = HEARTH_STR("java$")}, 1,
        "..+.");
    assert_passing(&(struct hearth_row_filter){.kind = HEARTH_TOP_CLASS,
                                               .without_regex = HEARTH_STR("^(main|java)")},
                   1, "+..+");
    assert_passing(&(struct hearth_row_filter){.kind = HEARTH_TOP_CLASS, .regex = HEARTH_STR("^$")},
                   1, "+++.");
}

static void several_conditions_must_hold_each_by_any_frame(void **state)
{
    (void)state;
    static const struct hearth_str two[] = {{"main", 4}, {"java.util", 9}};
    const struct hearth_row_filter rows[] = {
        {.kind = HEARTH_TOP_PACKAGE, .names = two, .n_names = 2},
        {.kind = HEARTH_TOP_MODULE, .regex = HEARTH_STR("libc")},
        {.kind = HEARTH_TOP_CLASS, .without_regex = HEARTH_STR("Cart")},
    };
    assert_passing(rows, 1, "+++.");
    assert_passing(rows, 2, ".++.");
    assert_passing(rows, 3, "..+.");
}

static void conditions_on_threads_are_not_about_stacks(void **state)
{
    (void)state;
    const struct hearth_str name = HEARTH_STR("worker");
    assert_passing(
        &(struct hearth_row_filter){.kind = HEARTH_TOP_THREAD, .names = &name, .n_names = 1}, 1,
        "++++");
}

static void sums_of_stacks_that_do_not_pass_become_0(void **state)
{
    (void)state;
    const struct hearth_str name = HEARTH_STR("main.Cart");
    const struct hearth_row_filter row = {.kind = HEARTH_TOP_CLASS, .names = &name, .n_names = 1};
    const struct hearth_stack_filter filter = {.rows = &row, .n_rows = 1};
    int64_t acc[] = {5, 7, 0, -1};
    const struct hearth_dict_sums sums = {.bound = 4, .acc = acc};
    struct hearth_dict dict = make_dict();
    struct hearth_arena arena;
    struct hearth_row_mask mask;
    struct hearth_err err;

    hearth_arena_init(&arena, 0);
    assert_int_equal(hearth_row_mask_init(&mask, &filter, &arena, &err), HEARTH_OK);
    assert_int_equal(hearth_row_mask_clear(&mask, &dict, &sums, &err), HEARTH_OK);
    assert_int_equal(acc[0] + acc[2] + acc[3], 0);
    assert_int_equal(acc[1], 7);
    hearth_row_mask_release(&mask);
    hearth_arena_release(&arena);
}

/* ---- errors ---- */

static void assert_refused(const struct hearth_stack_filter *filter, size_t limit_bytes,
                           enum hearth_status expected, const char *part)
{
    struct hearth_arena arena;
    struct hearth_row_mask mask;
    struct hearth_err err;

    hearth_arena_init(&arena, limit_bytes);
    assert_int_equal(hearth_row_mask_init(&mask, filter, &arena, &err), expected);
    if (strstr(err.msg, part) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\"", err.msg, part);
    }
    hearth_row_mask_release(&mask);
    hearth_arena_release(&arena);
}

static void a_bad_condition_is_named_with_its_field(void **state)
{
    (void)state;
    static struct hearth_row_filter rows[HEARTH_ROW_FILTERS_MAX + 1];
    const struct hearth_str name = HEARTH_STR("x");
    rows[1].regex = HEARTH_STR("(");
    assert_refused(&(struct hearth_stack_filter){.rows = rows, .n_rows = 2}, 0,
                   HEARTH_INVALID_ARGUMENT, "stacks.rows[1].regex: ");
    rows[1] = (struct hearth_row_filter){.without_regex = HEARTH_STR("a**")};
    assert_refused(&(struct hearth_stack_filter){.rows = rows, .n_rows = 2}, 0,
                   HEARTH_INVALID_ARGUMENT, "stacks.rows[1].without_regex: ");
    assert_refused(&(struct hearth_stack_filter){.rows = rows, .n_rows = 17}, 0,
                   HEARTH_INVALID_ARGUMENT, "stacks.rows: 17 conditions, at most 16");
    rows[0] = (struct hearth_row_filter){.names = &name, .n_names = 1};
    assert_refused(&(struct hearth_stack_filter){.rows = rows, .n_rows = 1}, 8, HEARTH_NO_MEMORY,
                   "filter of rows");
}

static void a_dictionary_that_does_not_fit_fails_with_no_memory(void **state)
{
    (void)state;
    const struct hearth_row_filter row = {.kind = HEARTH_TOP_LINE, .regex = HEARTH_STR(":7$")};
    const struct hearth_stack_filter filter = {.rows = &row, .n_rows = 1};
    bool refused = false, fits = false;

    for (size_t limit = 16; limit < 100000; limit = limit * 5 / 4) {
        struct hearth_dict dict = make_dict();
        struct hearth_arena arena;
        struct hearth_row_mask mask;
        struct hearth_err err;
        const bool *passes;
        hearth_arena_init(&arena, limit);
        assert_int_equal(hearth_row_mask_init(&mask, &filter, &arena, &err), HEARTH_OK);
        enum hearth_status status = hearth_row_mask_stacks(&mask, &dict, 4, NULL, &passes, &err);
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        refused = refused || status == HEARTH_NO_MEMORY;
        fits = fits || (status == HEARTH_OK && passes[0] && !passes[1]);
        hearth_row_mask_release(&mask);
        hearth_arena_release(&arena);
    }

    assert_true(refused && fits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_those_of_the_rows_of_each_table),
        cmocka_unit_test(the_empty_name_is_the_row_of_everything_unknown),
        cmocka_unit_test(exclusion_wins_and_a_stack_without_frames_has_no_rows),
        cmocka_unit_test(expressions_are_searched_in_the_names_of_rows),
        cmocka_unit_test(several_conditions_must_hold_each_by_any_frame),
        cmocka_unit_test(conditions_on_threads_are_not_about_stacks),
        cmocka_unit_test(sums_of_stacks_that_do_not_pass_become_0),
        cmocka_unit_test(a_bad_condition_is_named_with_its_field),
        cmocka_unit_test(a_dictionary_that_does_not_fit_fails_with_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
