/* test_profile_totals.c -- differences of profiles that count since the start of their process. */
#include "hearth/format/profile_builder.h"
#include "hearth/format/profile_totals.h"

#include "arena_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct hearth_err g_err;

/* A sample of a made profile: one frame, a label "bytes", alloc_space and inuse_space. */
struct row {
    const char *function;
    int64_t bytes, alloc, inuse;
};

static struct hearth_profile make_heap(const struct row *rows, size_t n, const char *second_type)
{
    struct hearth_profile_builder *b = hearth_profile_builder_new(&g_arena);
    struct hearth_profile profile;

    assert_non_null(b);
    (void)hearth_profile_builder_type(b, HEARTH_STR("alloc_space"), HEARTH_STR("bytes"));
    (void)hearth_profile_builder_type(b, hearth_str_c(second_type), HEARTH_STR("bytes"));
    uint32_t key = hearth_profile_builder_string(b, HEARTH_STR("bytes"));
    for (size_t i = 0; i < n; i++) {
        const struct hearth_function function = {
            .name = hearth_profile_builder_string(b, hearth_str_c(rows[i].function))};
        const struct hearth_line line = {hearth_profile_builder_function(b, &function), 7};
        const struct hearth_location where = {.mapping = HEARTH_NO_INDEX, .address = 16 + i};
        uint32_t location = hearth_profile_builder_location(b, &where, &line, 1);
        const struct hearth_sample_label label = {.key = key, .num = rows[i].bytes};
        const int64_t values[] = {rows[i].alloc, rows[i].inuse};
        assert_int_equal(
            hearth_profile_builder_labelled_sample(b, &location, 1, &label, 1, values, &g_err),
            HEARTH_OK);
    }

    assert_int_equal(hearth_profile_builder_finish(b, &profile, &g_err), HEARTH_OK);
    hearth_profile_builder_free(b);

    return profile;
}

static bool subtract(struct hearth_profile *later, const struct hearth_profile *earlier)
{
    struct hearth_profile_totals *totals = hearth_profile_totals_new(earlier);
    bool is_restarted;

    assert_non_null(totals);
    assert_int_equal(hearth_profile_subtract(later, totals, &is_restarted, &g_err), HEARTH_OK);
    hearth_profile_totals_free(totals);

    return is_restarted;
}

static void assert_values(const struct hearth_profile *profile, const int64_t *expected)
{
    for (size_t i = 0; i < (size_t)profile->n_samples * profile->n_types; i++) {
        assert_int_equal(profile->values[i], expected[i]);
    }
}

static void totals_become_differences_and_gauges_stay(void **state)
{
    (void)state;
    const struct row before[] = {{"f", 8, 100, 50}, {"g", 8, 30, 30}};
    const struct row after[] = {{"f", 8, 160, 20}, {"g", 8, 30, 10}, {"h", 8, 5, 5}};
    struct hearth_profile earlier = make_heap(before, 2, "inuse_space");
    struct hearth_profile later = make_heap(after, 3, "inuse_space");

    assert_true(hearth_profile_has_totals(&later));
    assert_false(subtract(&later, &earlier));
    assert_values(&later, (const int64_t[]){60, 20, 0, 10, 5, 5});
}

static void samples_of_different_sizes_are_different_samples(void **state)
{
    (void)state;
    const struct row before[] = {{"f", 8, 100, 0}};
    const struct row after[] = {{"f", 16, 40, 0}, {"f", 8, 100, 0}};
    struct hearth_profile earlier = make_heap(before, 1, "inuse_space");
    struct hearth_profile later = make_heap(after, 2, "inuse_space");

    /* The address tells them apart, too: give them the same one. */
    later.locations[1].address = later.locations[0].address;
    assert_false(subtract(&later, &earlier));
    assert_values(&later, (const int64_t[]){40, 0, 0, 0});
}

static void a_sample_that_occurs_twice_is_summed_first(void **state)
{
    (void)state;
    const struct row before[] = {{"f", 8, 100, 0}};
    const struct row after[] = {{"f", 8, 70, 1}, {"f", 8, 50, 2}};
    struct hearth_profile earlier = make_heap(before, 1, "inuse_space");
    struct hearth_profile later = make_heap(after, 2, "inuse_space");

    later.stack_locs[1] = later.stack_locs[0];
    assert_false(subtract(&later, &earlier));
    assert_values(&later, (const int64_t[]){20, 1, 0, 2});
}

static void a_lower_total_means_a_new_process(void **state)
{
    (void)state;
    const struct row before[] = {{"f", 8, 100, 50}, {"g", 8, 1000, 50}};
    const struct row after[] = {{"f", 8, 160, 20}, {"h", 8, 5, 5}};
    const struct row lower[] = {{"f", 8, 99, 20}, {"g", 8, 9999, 5}};
    struct hearth_profile earlier = make_heap(before, 2, "inuse_space");
    struct hearth_profile later = make_heap(after, 2, "inuse_space");

    /* A lower sum, although each sample that both have is higher. */
    assert_true(subtract(&later, &earlier));
    assert_values(&later, (const int64_t[]){160, 20, 5, 5});

    /* A single lower sample. */
    later = make_heap(lower, 2, "inuse_space");
    assert_true(subtract(&later, &earlier));
    assert_values(&later, (const int64_t[]){99, 20, 9999, 5});
}

static void other_sample_types_mean_a_new_process(void **state)
{
    (void)state;
    const struct row rows[] = {{"f", 8, 100, 50}};
    struct hearth_profile earlier = make_heap(rows, 1, "inuse_space");
    struct hearth_profile later = make_heap(rows, 1, "inuse_objects");

    assert_true(subtract(&later, &earlier));
    assert_values(&later, (const int64_t[]){100, 50});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_become_differences_and_gauges_stay),
        cmocka_unit_test(samples_of_different_sizes_are_different_samples),
        cmocka_unit_test(a_sample_that_occurs_twice_is_summed_first),
        cmocka_unit_test(a_lower_total_means_a_new_process),
        cmocka_unit_test(other_sample_types_mean_a_new_process),
    };

    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
