/* test_upload_events.c -- names and types of a task's pprof by its event. */
#include "small_profile.h"
#include "tasks/task_uploads_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void names_and_types_are_those_of_the_event(void **state)
{
    (void)state;
    static const struct {
        const char *event, *name;
        uint32_t n_types;
        int64_t first; /* value that stays in front */
    } cases[] = {{"heap", "memory", 1, 2}, {"allocs", "allocs", 1, 1}, {"", "memory", 2, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct small heap;
        small_init(&heap, (const char *const[]){"alloc_space", "inuse_space"}, 2);
        small_add(&heap, 'a', 0, 1, 2);
        small_add(&heap, 'b', 0, 3, 4);
        hearth_upload_keep_types(&heap.p, hearth_str_c(cases[i].event));
        assert_int_equal(heap.p.n_types, cases[i].n_types);
        assert_int_equal(heap.values[0], cases[i].first);
        assert_int_equal(heap.values[1], cases[i].first + (cases[i].n_types == 1 ? 2 : 1));
        assert_true(hearth_str_eq_c(hearth_upload_name(&heap.p, hearth_str_c(cases[i].event)),
                                    cases[i].name));
    }
    struct small block;
    small_init(&block, (const char *const[]){"contentions", "delay"}, 2);
    assert_true(hearth_str_eq_c(hearth_upload_name(&block.p, HEARTH_STR("block")), "block"));
    assert_true(hearth_str_eq_c(hearth_upload_name(&block.p, HEARTH_STR("mutex")), "mutex"));
    hearth_upload_keep_types(&block.p, HEARTH_STR("heap")); /* nothing that heap would keep */
    assert_int_equal(block.p.n_types, 2);
}

static void only_types_that_go_counts_from_the_start_are_cumulative(void **state)
{
    (void)state;
    assert_true(hearth_upload_is_cumulative(HEARTH_STR("allocs"), HEARTH_STR("alloc_objects")));
    assert_false(hearth_upload_is_cumulative(HEARTH_STR("heap"), HEARTH_STR("inuse_objects")));
    assert_false(hearth_upload_is_cumulative(HEARTH_STR("cpu"), HEARTH_STR("delay")));
    assert_false(hearth_upload_is_cumulative(HEARTH_STR(""), HEARTH_STR("contentions")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_types_are_those_of_the_event),
        cmocka_unit_test(only_types_that_go_counts_from_the_start_are_cumulative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
