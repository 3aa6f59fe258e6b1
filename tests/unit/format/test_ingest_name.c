/* test_ingest_name.c -- names of uploads: every rule and every mistake. */
#include "hearth/format/ingest_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* "app" or "app|key=value|..." for a valid name, otherwise the error message. */
static void assert_name(const char *text, const char *want)
{
    struct hearth_arena arena;
    struct hearth_ingest_name name;
    struct hearth_err err = HEARTH_ERR_INIT;
    char got[1024];

    hearth_arena_init(&arena, 0);
    enum hearth_status status = hearth_ingest_name_parse(hearth_str_c(text), &arena, &name, &err);
    if (status == HEARTH_OK) {
        int n = snprintf(got, sizeof got, HEARTH_STR_FMT, HEARTH_STR_ARG(name.app));
        for (size_t i = 0; i < name.n_labels; i++) {
            n +=
                snprintf(got + n, sizeof got - (size_t)n, "|" HEARTH_STR_FMT "=" HEARTH_STR_FMT,
                         HEARTH_STR_ARG(name.labels[i].name), HEARTH_STR_ARG(name.labels[i].value));
        }
    } else {
        assert_int_equal(status, HEARTH_INVALID_ARGUMENT);
        (void)snprintf(got, sizeof got, "%s", err.msg);
    }

    assert_string_equal(got, want);
    hearth_arena_release(&arena);
}

static void braces_and_labels_are_optional(void **state)
{
    (void)state;
    assert_name("app", "app");
    assert_name("  my-app_1.cpu/x ", "my-app_1.cpu/x");
    assert_name("app{}", "app");
    assert_name("app{ }", "app");
    assert_name("app{a=b}", "app|a=b");
    assert_name("app{a=b,c.d_1=e}", "app|a=b|c.d_1=e");
    assert_name("app{a=b,}", "app|a=b");
}

static void blanks_around_each_part_are_ignored(void **state)
{
    (void)state;
    assert_name(" app { a = b , c=\td e\n} ", "app|a=b|c=d e");
}

static void one_pair_of_double_quotes_around_a_value_is_removed(void **state)
{
    (void)state;
    assert_name("app{a=\"b\",c=\" d \"}", "app|a=b|c= d ");
    assert_name("app{a=\"\"b\"\"}", "app|a=\"b\"");
    assert_name("app{a=\"\"}", "app|a=");
    assert_name("app{a=\"}", "app|a=\"");
    assert_name("app{a=\"b}", "app|a=\"b");
    assert_name("app{a=b\"}", "app|a=b\"");
    assert_name("app{a=\\\"b}", "app|a=\\\"b");
}

static void a_value_is_anything_up_to_a_comma_or_brace(void **state)
{
    (void)state;
    assert_name("app{a==b=,c={;:\xc3\xa9%}", "app|a==b=|c={;:\xc3\xa9%");
    assert_name("app{a=}", "app|a=");
}

static void the_last_value_of_a_key_is_used(void **state)
{
    (void)state;
    assert_name("app{a=1,b=2,a=3}", "app|a=3|b=2");
}

static void text_after_the_brace_is_ignored(void **state)
{
    (void)state;
    assert_name("app{a=1},b=2} and more", "app|a=1");
}

static void accepts_names_that_pyroscope_accepts(void **state)
{
    (void)state;
    assert_name("app{", "app");
    assert_name("app{a=b", "app|a=b");
    assert_name("app{a=b,", "app|a=b");
    assert_name("app{a=b,c", "app|a=b|c=");
    assert_name("app{a}", "app|a=");
    assert_name("app{a,b=c}", "app|a=|b=c");
    assert_name("app{,}", "app");
    assert_name("app{a=b,,c=d}", "app|a=b|c=d");
    assert_name("app{__name__=c}", "app|__name__=c");
}

static void broken_rules_are_named(void **state)
{
    (void)state;
    assert_name("", "bad name, the application name before \"{\" is empty");
    assert_name(" {a=b}", "bad name, the application name before \"{\" is empty");
    assert_name("a b", "bad name, the application name \"a b\" has a character other than letters, "
                       "digits and _ . - / at byte 1");
    assert_name("app}", "bad name, the application name \"app}\" has a character other than "
                        "letters, digits and _ . - / at byte 3");
    assert_name("app{=b}", "bad name, a label has an empty key");
    assert_name("app{=", "bad name, a label has an empty key");
    assert_name("app{a-b=c}", "bad name, the key \"a-b\" has a character other than letters, "
                              "digits, _ and . at byte 1");
    assert_name("app{a=\xff}", "bad name, it is not UTF-8");
}

static void a_name_has_at_most_256_labels(void **state)
{
    (void)state;
    char text[8192];
    for (int n = 256; n <= 257; n++) {
        int at = snprintf(text, sizeof text, "app{");
        for (int i = 0; i < n; i++) {
            at += snprintf(text + at, sizeof text - (size_t)at, "k%d=v,", i);
        }
        (void)snprintf(text + at, sizeof text - (size_t)at, "}");
        struct hearth_arena arena;
        struct hearth_ingest_name name;
        hearth_arena_init(&arena, 0);
        assert_int_equal(hearth_ingest_name_parse(hearth_str_c(text), &arena, &name, NULL),
                         n == 256 ? HEARTH_OK : HEARTH_INVALID_ARGUMENT);
        hearth_arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(braces_and_labels_are_optional),
        cmocka_unit_test(blanks_around_each_part_are_ignored),
        cmocka_unit_test(one_pair_of_double_quotes_around_a_value_is_removed),
        cmocka_unit_test(a_value_is_anything_up_to_a_comma_or_brace),
        cmocka_unit_test(the_last_value_of_a_key_is_used),
        cmocka_unit_test(text_after_the_brace_is_ignored),
        cmocka_unit_test(accepts_names_that_pyroscope_accepts),
        cmocka_unit_test(broken_rules_are_named),
        cmocka_unit_test(a_name_has_at_most_256_labels),
    };

    return cmocka_run_group_tests_name("ingest_name", tests, NULL, NULL);
}
