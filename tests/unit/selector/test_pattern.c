/* test_pattern.c -- regular expressions searched anywhere in a text. */
#include "hearth/selector/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bool occurs(const char *pattern, const char *text)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_pattern *p;
    if (hearth_pattern_new(hearth_str_c(pattern), "search", &p, &err) != HEARTH_OK) {
        fail_msg("%s: %s", pattern, err.msg);
    }
    bool yes = hearth_pattern_occurs(p, hearth_str_c(text));
    hearth_pattern_free(p);
    return yes;
}

static void plain_text_is_found_anywhere(void **state)
{
    (void)state;
    assert_true(occurs("read", "read"));
    assert_true(occurs("ea", "read"));
    assert_true(occurs("", ""));
    assert_true(occurs("", "read"));
    assert_false(occurs("reads", "read"));
    assert_false(occurs("R", "read"));
    assert_true(occurs("é", "café"));
}

static void patterns_are_anchored_only_where_they_have_anchors(void **state)
{
    (void)state;
    assert_true(occurs("r.*d", "a read b"));
    assert_false(occurs("^r.*d$", "a read b"));
    assert_true(occurs("^r.*d$", "read"));
    assert_true(occurs("a.b", "a\nb"));
    assert_true(occurs("(?i)READ", "read"));
    assert_true(occurs("std::vector<int>", "std::vector<int>::at"));
    assert_true(occurs("\\(\\*T\\)", "pkg.(*T).M"));
    assert_false(occurs("x+", ""));
}

static void assert_refused(struct hearth_str pattern, const char *message)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_pattern *p;
    assert_int_equal(hearth_pattern_new(pattern, "search", &p, &err), HEARTH_INVALID_ARGUMENT);
    assert_null(p);
    assert_string_equal(err.msg, message);
}

static void an_error_of_compilation_names_the_field(void **state)
{
    (void)state;
    static char long_text[16 * 1024 + 1];
    memset(long_text, 'a', sizeof long_text);
    assert_refused(HEARTH_STR("("), "search: bad regular expression: missing ): (");
    assert_refused(HEARTH_STR("a(?!b)"),
                   "search: bad regular expression: invalid perl operator: (?! (RE2 has no "
                   "look-around)");
    assert_refused(hearth_str_n(long_text, sizeof long_text),
                   "search: regular expression is longer than 16384 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_is_found_anywhere),
        cmocka_unit_test(patterns_are_anchored_only_where_they_have_anchors),
        cmocka_unit_test(an_error_of_compilation_names_the_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
