/* test_demangle.c -- names of C++ and Rust, with and without parameters; limits; other names. */
#include "hearth/base/mem.h"
#include "hearth/codec/demangle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct hearth_arena g_arena;

static void check(const char *name, const char *simple, const char *full)
{
    struct hearth_str got;

    assert_true(hearth_demangle(hearth_str_c(name), HEARTH_DEMANGLE_SIMPLE, &g_arena, &got));
    if (!hearth_str_eq_c(got, simple)) {
        fail_msg("%s: got " HEARTH_STR_FMT ", expected %s", name, HEARTH_STR_ARG(got), simple);
    }
    assert_true(hearth_demangle(hearth_str_c(name), HEARTH_DEMANGLE_FULL, &g_arena, &got));
    if (!hearth_str_eq_c(got, full)) {
        fail_msg("%s: got " HEARTH_STR_FMT ", expected %s", name, HEARTH_STR_ARG(got), full);
    }
    assert_true(hearth_demangle(hearth_str_c(name), HEARTH_DEMANGLE_NONE, &g_arena, &got));
    assert_true(hearth_str_eq_c(got, name));
}

static void demangles_names_of_cpp(void **state)
{
    (void)state;
    check("_Z1fi", "f", "f(int)");
    check("_ZN3fooIiE3barIdEET_v", "foo<int>::bar<double>", "double foo<int>::bar<double>()");
    check("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()",
          "main::{lambda()#1}::operator()() const");
    check("_ZN12_GLOBAL__N_13fooEi", "(anonymous namespace)::foo",
          "(anonymous namespace)::foo(int)");
    check("_ZN3foo3barEv.cold", "foo::bar", "foo::bar() [clone .cold]");
}

static void demangles_names_of_rust_without_their_hash(void **state)
{
    (void)state;
    check("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place",
          "core::ptr::drop_in_place");
    check("_ZN50_$LT$T$u20$as$u20$core..convert..From$LT$U$GT$$GT$4from17h0123456789abcdefE",
          "<T as core::convert::From<U>>::from", "<T as core::convert::From<U>>::from");
    check("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar", "mycrate::foo::bar");
}

static void keeps_versions_and_accepts_an_underscore_in_front(void **state)
{
    (void)state;
    check("_ZNSt6thread4joinEv@plt", "std::thread::join@plt", "std::thread::join()@plt");
    check("_Z1fv@@LIB_1.0", "f@@LIB_1.0", "f()@@LIB_1.0");
    check("__ZN3foo3barEv", "foo::bar", "foo::bar()");
}

static void leaves_other_names_as_they_are(void **state)
{
    static const char *const names[] = {"",
                                        "main",
                                        "_",
                                        "_Z",
                                        "_R",
                                        "__Z",
                                        "_Znothing mangled",
                                        "_Z3foo_and_more",
                                        "_Z3foo (/lib/a.so)",
                                        "_RNonsense",
                                        "_Run",
                                        "_ZN3foo3bar",
                                        "_Z@plt",
                                        "___Z1fv",
                                        "java.lang.Thread.run"};

    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        check(names[i], names[i], names[i]);
    }
}

/* The pattern of the pack refers to the one before it at each level: 2^34 parts, without output. */
static void leaves_packs_of_patterns_that_double(void **state)
{
    (void)state;
    const char *name =
        "_Z1fDp1aIS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_"
        "IS_IS_IS_IS_IS_IS_IS_IiiES0_ES1_ES2_ES3_ES4_ES5_ES6_ES7_ES8_ES9_ESA_ESB_ESC_ESD_ESE_ESF_"
        "ESG_ESH_ESI_ESJ_ESK_ESL_ESM_ESN_ESO_ESP_ESQ_ESR_ESS_EST_ESU_ESV_ESW_ESX_E";
    check(name, name, name);

    /* An honest pack. */
    check("_Z1fIJidEEvDpT_", "f<int, double>", "void f<int, double>(int, double)");
}

/* Each argument of the function names the pair before it twice: 2^60 words, if printed. */
static void leaves_names_that_would_become_too_long(void **state)
{
    char name[2048] = "_Z1f";
    size_t n = strlen(name);
    struct hearth_str got;

    (void)state;
    n += (size_t)snprintf(name + n, sizeof name - n, "1AIiiE");
    for (int i = 0; i < 60; i++) {
        char id = (char)(i < 10 ? '0' + i : 'A' + i - 10);
        n += (size_t)snprintf(name + n, sizeof name - n, i < 36 ? "S_IS%c_S%c_E" : "i", id, id);
    }

    assert_true(hearth_demangle(hearth_str_n(name, n), HEARTH_DEMANGLE_FULL, &g_arena, &got));
    assert_true(got.p == name && got.n == n);

    /* A name of a megabyte is not looked at. */
    char *huge = hearth_mem_alloc(1 << 20);
    assert_non_null(huge);
    memset(huge, 'P', 1 << 20);
    memcpy(huge, "_Z1f", 4);
    assert_true(hearth_demangle(hearth_str_n(huge, 1 << 20), HEARTH_DEMANGLE_FULL, &g_arena, &got));
    assert_true(got.p == huge);
    assert_true(hearth_demangle(hearth_str_n(huge, 4096), HEARTH_DEMANGLE_FULL, &g_arena, &got));
    hearth_mem_free(huge);
}

static void reads_the_names_of_its_modes(void **state)
{
    enum hearth_demangle how = HEARTH_DEMANGLE_FULL;

    (void)state;
    assert_true(hearth_demangle_parse("none", &how) && how == HEARTH_DEMANGLE_NONE);
    assert_true(hearth_demangle_parse("simple", &how) && how == HEARTH_DEMANGLE_SIMPLE);
    assert_true(hearth_demangle_parse("full", &how) && how == HEARTH_DEMANGLE_FULL);
    assert_false(hearth_demangle_parse("", &how));
    assert_false(hearth_demangle_parse("Full", &how));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(demangles_names_of_cpp),
        cmocka_unit_test(demangles_names_of_rust_without_their_hash),
        cmocka_unit_test(keeps_versions_and_accepts_an_underscore_in_front),
        cmocka_unit_test(leaves_other_names_as_they_are),
        cmocka_unit_test(leaves_names_that_would_become_too_long),
        cmocka_unit_test(leaves_packs_of_patterns_that_double),
        cmocka_unit_test(reads_the_names_of_its_modes),
    };

    hearth_arena_init(&g_arena, 0);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hearth_arena_release(&g_arena);

    return failed;
}
