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
    hearth_grouping_release(ret);
    hearth_arena_release(&arena);
    return status;
}

static void more_labels_than_any_series_has_are_refused_before_series_are_looked_at(void **state)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_grouping grouping;
    (void)state;
    assert_int_equal(group_by(HEARTH_MAX_GROUP_BY, &grouping, &err), HEARTH_OK);
    assert_int_equal(grouping.n, 0);
    assert_int_equal(group_by(HEARTH_MAX_GROUP_BY + 1, &grouping, &err), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(err.msg, "group_by: 101 labels, at most 100");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_labels_than_any_series_has_are_refused_before_series_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
