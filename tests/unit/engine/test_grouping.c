/* test_grouping.c -- what series may be grouped by. */
#include "select/grouping.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static enum hearth_status group_by(size_t n, struct hearth_grouping *ret, struct hearth_err *err)
{
    struct hearth_arena arena;
    struct hearth_str names[HEARTH_MAX_GROUP_BY + 1];
    hearth_arena_init(&arena, 0);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        names[i] = HEARTH_STR("pod");
    }
    *ret = (struct hearth_grouping){.group_by = names, .n_group_by = n, .arena = &arena};
    enum hearth_status status = hearth_grouping_make(ret, NULL, err);
    hearth_arena_release(&arena);
    return status;
}

static void too_many_grouping_labels_are_refused_before_series_are_read(void **state)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_grouping grouping;
    (void)state;
    assert_int_equal(group_by(HEARTH_MAX_GROUP_BY, &grouping, &err), HEARTH_OK);
    assert_int_equal(grouping.n, 0);
    assert_int_equal(group_by(HEARTH_MAX_GROUP_BY + 1, &grouping, &err), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(err.msg, "group_by: 101 labels, at most 100");
}

static void the_hit_of_a_row_is_found_in_any_order_of_rows(void **state)
{
    static const struct hearth_series_hit hits[] = {
        {.service_id = 1, .series_id = 9}, {.service_id = 1, .series_id = 10, .column = 1},
        {.service_id = 2, .series_id = 3}, {.service_id = 2, .series_id = 3, .column = 2},
        {.service_id = 2, .series_id = 8}, {.service_id = 7, .series_id = 1},
    };
    const uint32_t n = HEARTH_ARRAY_LEN(hits);
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    (void)state;
    hearth_arena_init(&arena, 0);
    struct hearth_grouping grouping = {.hits = hits, .n_hits = n, .arena = &arena};
    assert_int_equal(hearth_grouping_make(&grouping, NULL, &err), HEARTH_OK);
    assert_int_equal(grouping.n, 1);
    for (uint32_t first = 0; first < n; first++) {
        for (uint32_t second = 0; second < n; second++) {
            const struct hearth_series_hit *a = &hits[first], *b = &hits[second];
            assert_int_equal(hearth_grouping_hit(&grouping, a->service_id, a->series_id, a->column),
                             first);
            assert_int_equal(hearth_grouping_hit(&grouping, b->service_id, b->series_id, b->column),
                             second);
        }
    }
    assert_int_equal(hearth_grouping_hit(&grouping, 1, 10, 0), HEARTH_IDMAP_NONE);
    assert_int_equal(hearth_grouping_hit(&grouping, 2, 9, 0), HEARTH_IDMAP_NONE);
    assert_int_equal(hearth_grouping_hit(&grouping, 7, 1, 1), HEARTH_IDMAP_NONE);
    hearth_arena_release(&arena);
}

static void without_hits_no_row_has_a_hit(void **state)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    (void)state;
    hearth_arena_init(&arena, 0);
    struct hearth_grouping grouping = {.arena = &arena};
    assert_int_equal(hearth_grouping_make(&grouping, NULL, &err), HEARTH_OK);
    assert_int_equal(hearth_grouping_hit(&grouping, 1, 1, 0), HEARTH_IDMAP_NONE);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_many_grouping_labels_are_refused_before_series_are_read),
        cmocka_unit_test(the_hit_of_a_row_is_found_in_any_order_of_rows),
        cmocka_unit_test(without_hits_no_row_has_a_hit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
