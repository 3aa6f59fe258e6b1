/* test_profile_builder.c -- interning, sums, limits. */
#include "hearth/base/mem.h"
#include "hearth/format/profile_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct fixture {
    struct hearth_arena arena;
    struct hearth_profile_builder *b;
};

static void fixture_init(struct fixture *f)
{
    hearth_arena_init(&f->arena, 0);
    f->b = hearth_profile_builder_new(&f->arena);
    assert_non_null(f->b);
}

static void fixture_release(struct fixture *f)
{
    hearth_profile_builder_free(f->b);
    hearth_arena_release(&f->arena);
}

static struct hearth_profile finish(struct fixture *f)
{
    struct hearth_profile profile;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_profile_builder_finish(f->b, &profile, &err), HEARTH_OK);
    return profile;
}

static uint32_t named(struct hearth_profile_builder *b, const char *name, int64_t line_number)
{
    struct hearth_function function = {.name =
                                           hearth_profile_builder_string(b, hearth_str_c(name))};
    struct hearth_line line = {hearth_profile_builder_function(b, &function), line_number};
    struct hearth_location location = {.mapping = HEARTH_NO_INDEX};
    return hearth_profile_builder_location(b, &location, &line, 1);
}

static void an_empty_profile_has_the_empty_string(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(hearth_profile_builder_string(f.b, HEARTH_STR("")), 0);
    struct hearth_profile p = finish(&f);
    assert_int_equal(p.n_strings, 1);
    assert_int_equal(p.strings[0].n, 0);
    assert_int_equal(p.n_samples, 0);
    assert_int_equal(p.stack_first[0], 0);
    assert_int_equal(p.label_first[0], 0);
    fixture_release(&f);
}

static void equal_content_gets_equal_indices(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    char text[] = "libc.so";
    struct hearth_mapping m = {.start = 1,
                               .filename = hearth_profile_builder_string(f.b, hearth_str_c(text))};
    text[0] = 'X'; /* texts are copies */
    assert_int_equal(m.filename, hearth_profile_builder_string(f.b, HEARTH_STR("libc.so")));
    uint32_t first = hearth_profile_builder_mapping(f.b, &m);
    assert_int_equal(hearth_profile_builder_mapping(f.b, &m), first);
    m.has_inline_frames = true;
    assert_int_not_equal(hearth_profile_builder_mapping(f.b, &m), first);

    struct hearth_function fn = {.name = m.filename, .start_line = 3};
    uint32_t function = hearth_profile_builder_function(f.b, &fn);
    assert_int_equal(hearth_profile_builder_function(f.b, &fn), function);
    fn.start_line = 4;
    uint32_t function2 = hearth_profile_builder_function(f.b, &fn);
    assert_int_not_equal(function2, function);

    struct hearth_line lines[] = {{function, 1}, {function2, 2}};
    struct hearth_location l = {.mapping = first, .address = 0x10};
    uint32_t location = hearth_profile_builder_location(f.b, &l, lines, 2);
    assert_int_equal(hearth_profile_builder_location(f.b, &l, lines, 2), location);
    assert_int_not_equal(hearth_profile_builder_location(f.b, &l, lines, 1), location);
    lines[1].line = 3;
    assert_int_not_equal(hearth_profile_builder_location(f.b, &l, lines, 2), location);
    l.is_folded = true;
    lines[1].line = 2;
    assert_int_not_equal(hearth_profile_builder_location(f.b, &l, lines, 2), location);
    struct hearth_profile p = finish(&f);
    assert_int_equal(p.n_locations, 4);
    assert_int_equal(p.n_lines, 7);
    assert_int_equal(p.locations[location].n_lines, 2);
    assert_int_equal(p.lines[p.locations[location].first_line + 1].function, function2);
    assert_true(hearth_str_eq_c(p.strings[p.mappings[first].filename], "libc.so"));
    fixture_release(&f);
}

static void equal_stacks_sum_their_values(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(hearth_profile_builder_type(f.b, HEARTH_STR("samples"), HEARTH_STR("count")),
                     0);
    assert_int_equal(hearth_profile_builder_type(f.b, HEARTH_STR("cpu"), HEARTH_STR("ns")), 1);
    assert_int_equal(hearth_profile_builder_type(f.b, HEARTH_STR("samples"), HEARTH_STR("count")),
                     0);
    uint32_t a = named(f.b, "a", 0), b = named(f.b, "b", 0);
    const uint32_t ab[] = {a, b}, ba[] = {b, a};
    const int64_t v1[] = {1, 10}, v2[] = {2, 20}, v3[] = {4, 40};
    assert_int_equal(hearth_profile_builder_sample(f.b, ab, 2, v1, NULL), HEARTH_OK);
    assert_int_equal(hearth_profile_builder_sample(f.b, ba, 2, v2, NULL), HEARTH_OK);
    assert_int_equal(hearth_profile_builder_sample(f.b, ab, 2, v3, NULL), HEARTH_OK);
    assert_int_equal(hearth_profile_builder_sample(f.b, ab, 1, v3, NULL), HEARTH_OK);
    assert_int_equal(hearth_profile_builder_sample(f.b, NULL, 0, v1, NULL), HEARTH_OK);
    struct hearth_profile p = finish(&f);
    assert_int_equal(p.n_samples, 4);
    assert_int_equal(p.n_types, 2);
    const int64_t want[] = {5, 50, 2, 20, 4, 40, 1, 10};
    assert_memory_equal(p.values, want, sizeof want);
    const uint32_t first[] = {0, 2, 4, 5, 5};
    assert_memory_equal(p.stack_first, first, sizeof first);
    const uint32_t locs[] = {a, b, b, a, a};
    assert_memory_equal(p.stack_locs, locs, sizeof locs);
    assert_int_equal(p.label_first[4], 0);
    fixture_release(&f);
}

static void a_sum_beyond_64_bits_changes_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    (void)hearth_profile_builder_type(f.b, HEARTH_STR("a"), HEARTH_STR("u"));
    (void)hearth_profile_builder_type(f.b, HEARTH_STR("big"), HEARTH_STR("u"));
    uint32_t loc = named(f.b, "f", 0);
    const int64_t v1[] = {1, INT64_MAX}, v2[] = {1, 1};
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_profile_builder_sample(f.b, &loc, 1, v1, &err), HEARTH_OK);
    assert_int_equal(hearth_profile_builder_sample(f.b, &loc, 1, v2, &err), HEARTH_OUT_OF_RANGE);
    assert_non_null(strstr(err.msg, "\"big\""));
    struct hearth_profile p = finish(&f);
    assert_int_equal(p.values[0], 1);
    assert_true(p.values[1] == INT64_MAX);
    fixture_release(&f);
}

static void texts_are_repaired_and_shared(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    uint32_t good = hearth_profile_builder_string(f.b, HEARTH_STR("a\xEF\xBF\xBD"));
    assert_int_equal(hearth_profile_builder_string(f.b, HEARTH_STR("a\xff")), good);
    assert_int_equal(hearth_profile_builder_string(f.b, hearth_str_n("a\0", 2)), good);
    assert_int_equal(hearth_profile_builder_string(f.b, HEARTH_STR("a\xff")), good);
    uint32_t next = hearth_profile_builder_string(f.b, HEARTH_STR("b"));
    assert_int_equal(next, good + 1);
    struct hearth_profile p = finish(&f);
    assert_int_equal(p.n_strings, 3);
    fixture_release(&f);
}

static enum hearth_status build_much(struct hearth_arena *arena, uint32_t n)
{
    struct hearth_profile_builder *b = hearth_profile_builder_new(arena);
    if (b == NULL) {
        return HEARTH_NO_MEMORY;
    }

    enum hearth_status status = HEARTH_OK;
    const int64_t value = 1;
    char text[24];
    if (hearth_profile_builder_type(b, HEARTH_STR("a"), HEARTH_STR("b")) == HEARTH_NO_INDEX) {
        status = HEARTH_NO_MEMORY;
    }

    for (uint32_t i = 0; i < n && status == HEARTH_OK; i++) {
        (void)snprintf(text, sizeof text, "f%u%s", i, i % 7 == 0 ? "\xff" : "");
        struct hearth_mapping mapping = {.start = i};
        uint32_t loc = hearth_profile_builder_mapping(b, &mapping);
        if (loc != HEARTH_NO_INDEX) {
            struct hearth_function fn = {.name =
                                             hearth_profile_builder_string(b, hearth_str_c(text))};
            struct hearth_line line = {.function = fn.name == HEARTH_NO_INDEX
                                                       ? HEARTH_NO_INDEX
                                                       : hearth_profile_builder_function(b, &fn)};
            struct hearth_location location = {.mapping = loc};
            loc = line.function == HEARTH_NO_INDEX
                      ? HEARTH_NO_INDEX
                      : hearth_profile_builder_location(b, &location, &line, 1);
        }

        status = loc == HEARTH_NO_INDEX ? HEARTH_NO_MEMORY
                                        : hearth_profile_builder_sample(b, &loc, 1, &value, NULL);
    }

    struct hearth_profile profile = {0};
    if (status == HEARTH_OK) {
        status = hearth_profile_builder_finish(b, &profile, NULL);
    }

    if (status == HEARTH_OK) {
        assert_int_equal(profile.n_samples, n);
        assert_int_equal(profile.n_functions, n);
    }

    hearth_profile_builder_free(b);

    return status;
}

static void every_refused_allocation_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    enum hearth_status status = HEARTH_NO_MEMORY;
    uint64_t nth = 0;
    while (status != HEARTH_OK) {
        struct hearth_arena arena;
        hearth_arena_init(&arena, 0);
        hearth_mem_fail_after(++nth);
        status = build_much(&arena, 200);
        hearth_mem_fail_after(0);
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        hearth_arena_release(&arena);
        assert_true(nth < 1000);
    }

    assert_true(nth > 20);
}

static void respects_the_byte_limit_of_its_arena(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, (size_t)1 << 20);
    assert_int_equal(build_much(&arena, 1000), HEARTH_OK);
    hearth_arena_reset(&arena);
    assert_int_equal(build_much(&arena, 1000000), HEARTH_NO_MEMORY);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_profile_has_the_empty_string),
        cmocka_unit_test(equal_content_gets_equal_indices),
        cmocka_unit_test(equal_stacks_sum_their_values),
        cmocka_unit_test(a_sum_beyond_64_bits_changes_nothing),
        cmocka_unit_test(texts_are_repaired_and_shared),
        cmocka_unit_test(every_refused_allocation_is_reported_and_nothing_leaks),
        cmocka_unit_test(respects_the_byte_limit_of_its_arena),
    };

    return cmocka_run_group_tests_name("profile_builder", tests, NULL, NULL);
}
