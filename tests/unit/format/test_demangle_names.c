/* test_demangle_names.c -- functions of a profile get readable names and keep the mangled ones. */
#include "hearth/format/demangle_names.h"
#include "hearth/format/profile_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct hearth_arena g_arena;
static struct hearth_err g_err;

/* A profile with these functions; the system name of the second is "kept". */
static struct hearth_profile make_profile(const char *const *names, size_t n)
{
    struct hearth_profile_builder *b = hearth_profile_builder_new(&g_arena);
    struct hearth_profile profile;

    assert_non_null(b);
    for (size_t i = 0; i < n; i++) {
        struct hearth_function function = {
            .name = hearth_profile_builder_string(b, hearth_str_c(names[i])),
            .start_line = (int64_t)i,
        };
        if (i == 1) {
            function.system_name = hearth_profile_builder_string(b, HEARTH_STR("kept"));
        }
        (void)hearth_profile_builder_function(b, &function);
    }

    assert_int_equal(hearth_profile_builder_finish(b, &profile, &g_err), HEARTH_OK);
    hearth_profile_builder_free(b);

    return profile;
}

static bool has_names(const struct hearth_profile *p, uint32_t function, const char *name,
                      const char *system_name)
{
    const struct hearth_function *f = &p->functions[function];

    return hearth_str_eq_c(p->strings[f->name], name) &&
           hearth_str_eq_c(p->strings[f->system_name], system_name);
}

static void keeps_the_mangled_name_as_system_name(void **state)
{
    static const char *const names[] = {"_Z1fi", "_Z1gv", "main", "_Z1fi", "_Zbad"};
    struct hearth_profile profile = make_profile(names, 5);
    const struct hearth_profile before = profile;

    (void)state;
    assert_int_equal(hearth_profile_demangle(&profile, HEARTH_DEMANGLE_FULL, &g_arena, &g_err),
                     HEARTH_OK);
    assert_true(has_names(&profile, 0, "f(int)", "_Z1fi"));
    assert_true(has_names(&profile, 1, "g()", "kept"));
    assert_true(has_names(&profile, 2, "main", ""));
    assert_true(has_names(&profile, 3, "f(int)", "_Z1fi"));
    assert_true(has_names(&profile, 4, "_Zbad", ""));

    /* Equal names are one string; the arrays that the decoder made are unchanged. */
    assert_int_equal(profile.functions[0].name, profile.functions[3].name);
    assert_int_equal(profile.n_strings, before.n_strings + 2);
    assert_true(has_names(&before, 0, "_Z1fi", ""));
}

static void changes_nothing_without_mangled_names_or_if_switched_off(void **state)
{
    static const char *const names[] = {"main", "_start", "_Z1fi"};
    struct hearth_profile plain = make_profile(names, 2), mangled = make_profile(names, 3);
    const struct hearth_str *strings = plain.strings, *of_mangled = mangled.strings;

    (void)state;
    assert_int_equal(hearth_profile_demangle(&plain, HEARTH_DEMANGLE_FULL, &g_arena, &g_err),
                     HEARTH_OK);
    assert_ptr_equal(plain.strings, strings);
    assert_int_equal(hearth_profile_demangle(&mangled, HEARTH_DEMANGLE_NONE, &g_arena, &g_err),
                     HEARTH_OK);
    assert_ptr_equal(mangled.strings, of_mangled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_mangled_name_as_system_name),
        cmocka_unit_test(changes_nothing_without_mangled_names_or_if_switched_off),
    };

    hearth_arena_init(&g_arena, 0);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hearth_arena_release(&g_arena);

    return failed;
}
