/* test_go_stacks.c -- generic names, and cut stacks joined to the ones that have their roots. */
#include "hearth/base/mem.h"
#include "hearth/model/go_stacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- names ---- */

static void assert_short(const char *name, const char *expected)
{
    char out[128];
    size_t n = 0;
    bool is_generic = hearth_go_name_shorten(hearth_str_c(name), out, &n);
    assert_int_equal(is_generic, hearth_go_name_is_generic(hearth_str_c(name)));
    if (expected == NULL) {
        assert_false(is_generic);
        return;
    }
    assert_true(is_generic);
    assert_true(n <= strlen(name));
    out[n] = '\0';
    assert_string_equal(out, expected);
}

static void shapes_become_three_dots(void **state)
{
    (void)state;
    assert_short("slices.Sort[go.shape.int]", "slices.Sort[...]");
    assert_short("a.(*Map[go.shape.string,go.shape.struct { x int }]).Get", "a.(*Map[...]).Get");
    assert_short("[go.shape.int]", "[...]");
}

static void everything_between_the_first_shape_and_the_last_bracket_goes(void **state)
{
    (void)state;
    assert_short("a.F[go.shape.[]uint8].func1", "a.F[...].func1");
    assert_short("a.F[go.shape.int].G[go.shape.string].func1", "a.F[...].func1");
    assert_short("a.F[int].G[go.shape.map[string]int]", "a.F[int].G[...]");
    assert_short("a[go.shapes]b[go.shape.x]c", "a[go.shapes]b[...]c");
}

static void other_names_stay(void **state)
{
    (void)state;
    static const char *const names[] = {"",
                                        "main.main",
                                        "a.F[...]",
                                        "a.F[int]",
                                        "[go.",
                                        "[go.shape",
                                        "x[go.shape.",
                                        "x[go.shape.int",
                                        "]x[go.shape.int",
                                        "std::vector<int>::operator[]"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        assert_short(names[i], NULL);
    }
}

static void only_cpu_and_heap_profiles_are_cut(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        uint32_t n;
    } types[] = {{"process_cpu:cpu:nanoseconds:cpu:nanoseconds", 64},
                 {"process_cpu:samples:count:cpu:nanoseconds", 64},
                 {"memory:alloc_space:bytes:space:bytes", 32},
                 {"memory:inuse_objects:count:space:bytes", 32},
                 {"goroutine:goroutine:count:goroutine:count", 0},
                 {"mutex:delay:nanoseconds:contentions:count", 0}};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(types); i++) {
        struct hearth_profile_type type;
        struct hearth_err err = HEARTH_ERR_INIT;
        assert_int_equal(hearth_profile_type_parse(hearth_str_c(types[i].id), &type, &err),
                         HEARTH_OK);
        assert_int_equal(hearth_go_max_frames(&type), types[i].n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_become_three_dots),
        cmocka_unit_test(everything_between_the_first_shape_and_the_last_bracket_goes),
        cmocka_unit_test(other_names_stay),
        cmocka_unit_test(only_cpu_and_heap_profiles_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
