/* test_components.c -- names of components. */
#include "tasks/components.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct {
    int32_t id;
    const char *name;
} COMPONENTS[] = {
#define C(id, name) {id, name},
#include "tasks/components.def"
#undef C
};

/* The search needs a table sorted by id. */
static void each_component_of_the_list_has_its_name(void **state)
{
    (void)state;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(COMPONENTS); i++) {
        assert_true(i == 0 || COMPONENTS[i - 1].id < COMPONENTS[i].id);
        assert_true(hearth_str_eq_c(hearth_component_name(COMPONENTS[i].id), COMPONENTS[i].name));
    }
}

static void other_numbers_have_no_name(void **state)
{
    (void)state;

    assert_int_equal(hearth_component_name(0).n, 0);
    assert_int_equal(hearth_component_name(-1).n, 0);
    assert_int_equal(hearth_component_name(INT32_MAX).n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_component_of_the_list_has_its_name),
        cmocka_unit_test(other_numbers_have_no_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
