/* test_selector.c -- limits, several texts in one selector, ownership: cases without a
 * golden line. */
#include "hearth/base/mem.h"
#include "hearth/selector/selector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct fixture {
    struct hearth_arena arena;
    struct hearth_selector selector;
    struct hearth_err err;
    struct hearth_buf text;
    size_t offset;
};

static int set_up(void **state)
{
    static struct fixture f;
    f = (struct fixture){0};
    hearth_arena_init(&f.arena, 0);
    hearth_selector_init(&f.selector);
    hearth_buf_init(&f.text, 0);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    hearth_selector_release(&f->selector);
    hearth_arena_release(&f->arena);
    hearth_buf_release(&f->text);
    return 0;
}

static enum hearth_status parse(struct fixture *f, struct hearth_str text)
{
    return hearth_selector_parse(&f->selector, text, &f->arena, &f->offset, &f->err);
}

static void assert_formats(struct fixture *f, const char *want)
{
    hearth_buf_reset(&f->text);
    hearth_selector_format(&f->selector, &f->text);
    hearth_buf_byte(&f->text, 0);
    assert_string_equal(f->text.p, want);
}

static void several_texts_are_joined_by_and(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(parse(f, HEARTH_STR("{a=\"1\"}")), HEARTH_OK);
    assert_int_equal(parse(f, HEARTH_STR("{}")), HEARTH_OK);
    assert_int_equal(parse(f, HEARTH_STR("cpu{a=~\"(?i)x\"}")), HEARTH_OK);
    assert_formats(f, "{a=\"1\", __name__=\"cpu\", a=~\"(?i)x\"}");
}

static void a_failed_text_leaves_the_selector_as_it_was(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(parse(f, HEARTH_STR("{a=~\"(?i)x\"}")), HEARTH_OK);
    assert_int_equal(parse(f, HEARTH_STR("{b=~\"(?i)y\", c}")), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(f->offset, 14);
    assert_formats(f, "{a=~\"(?i)x\"}");
}

static void the_added_matcher_is_copied(void **state)
{
    struct fixture *f = *state;
    char name[] = "a", value[] = "xyz";
    assert_int_equal(hearth_selector_add(&f->selector, hearth_str_c(name), HEARTH_MATCH_RE,
                                         hearth_str_c(value), &f->arena, &f->err),
                     HEARTH_OK);
    name[0] = value[0] = '?';
    assert_formats(f, "{a=~\"xyz\"}");
}

static void refuses_to_add_names_and_values_that_no_text_can_contain(void **state)
{
    struct fixture *f = *state;
    static const struct {
        struct hearth_str name, value;
    } bad[] = {
        {{"", 0}, {"x", 1}},   {{"a\0b", 3}, {"x", 1}},  {{"\xff", 1}, {"x", 1}},
        {{"a", 1}, {"\0", 1}}, {{"a", 1}, {"x\xc3", 2}},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        assert_int_equal(hearth_selector_add(&f->selector, bad[i].name, HEARTH_MATCH_EQ,
                                             bad[i].value, &f->arena, &f->err),
                         HEARTH_INVALID_ARGUMENT);
    }
    assert_int_equal(f->selector.n, 0);
}

static void a_nul_byte_is_refused_at_its_offset(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(parse(f, HEARTH_STR("{a=\"b\0c\"}")), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(f->offset, 5);
    assert_string_equal(f->err.msg, "the selector holds a NUL byte, at offset 5");
    assert_int_equal(parse(f, hearth_str_n("foo\0", 4)), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(f->offset, 3);
}

static void strings_may_not_cross_lines_unless_raw(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(parse(f, HEARTH_STR("{a=\"b\nc\"}")), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(f->offset, 3);
    assert_int_equal(parse(f, HEARTH_STR("{a=\"b\\\nc\"}")), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(f->offset, 3);
    assert_int_equal(parse(f, HEARTH_STR("{a=`b\nc`}")), HEARTH_OK);
    assert_formats(f, "{a=\"b\\nc\"}");
}

static void comments_end_with_the_line(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(parse(f, HEARTH_STR("# first\nfoo # name\r\n{ # list\n a=\"b#\" # }\n}#")),
                     HEARTH_OK);
    assert_formats(f, "{__name__=\"foo\", a=\"b#\"}");
}

static void the_longest_text_is_64_kib(void **state)
{
    struct fixture *f = *state;
    size_t n = 64 * 1024;
    char *text = hearth_mem_alloc(n + 1);
    memset(text, ' ', n + 1);
    memcpy(text, "{a=\"b\"}", 7);
    assert_int_equal(parse(f, hearth_str_n(text, n)), HEARTH_OK);
    assert_int_equal(parse(f, hearth_str_n(text, n + 1)), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(f->offset, n);
    assert_string_equal(f->err.msg, "the selector is longer than 65536 bytes, at offset 65536");
    hearth_mem_free(text);
}

static void the_201st_matcher_is_refused_at_its_offset(void **state)
{
    struct fixture *f = *state;
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, "{");
    for (int i = 0; i < 200; i++) {
        hearth_buf_cstr(&text, "a=\"b\",");
    }
    hearth_buf_cstr(&text, "}");
    assert_int_equal(parse(f, hearth_buf_view(&text)), HEARTH_OK);
    assert_int_equal(f->selector.n, 200);
    hearth_selector_release(&f->selector);
    text.n--;
    hearth_buf_cstr(&text, "c=\"d\"}");
    assert_int_equal(parse(f, hearth_buf_view(&text)), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(f->offset, 1 + 200 * 6);
    assert_string_equal(f->err.msg, "more than 200 matchers in one selector, at offset 1201");
    assert_int_equal(f->selector.n, 0);
    hearth_buf_release(&text);
}

static void patterns_that_need_the_engine_are_limited_in_number_and_length(void **state)
{
    struct fixture *f = *state;
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, "{");
    for (int i = 0; i < 65; i++) {
        hearth_buf_cstr(&text, "a=~\"x+\",");
    }
    hearth_buf_cstr(&text, "}");
    assert_int_equal(parse(f, hearth_buf_view(&text)), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(f->err.msg,
                        "more than 64 regular expressions in one selector, at offset 516");
    hearth_buf_reset(&text);
    hearth_buf_cstr(&text, "{a=~\"x+");
    for (int i = 0; i < 16 * 1024 - 1; i++) {
        hearth_buf_byte(&text, 'y');
    }
    hearth_buf_cstr(&text, "\"}");
    assert_int_equal(parse(f, hearth_buf_view(&text)), HEARTH_INVALID_ARGUMENT);
    assert_string_equal(f->err.msg, "regular expression is longer than 16384 bytes, at offset 4");
    hearth_buf_release(&text);
}

static void a_long_list_of_literals_needs_no_engine(void **state)
{
    struct fixture *f = *state;
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, "{a=~\"x");
    for (int i = 0; i < 5000; i++) {
        hearth_buf_printf(&text, "|pod-%d", i);
    }
    hearth_buf_cstr(&text, "\"}");
    assert_int_equal(parse(f, hearth_buf_view(&text)), HEARTH_OK);
    assert_int_equal(f->selector.matchers[0].kind, HEARTH_MATCH_KIND_ALTERNATION);
    assert_int_equal(f->selector.matchers[0].n_literals, 5001);
    assert_true(hearth_matcher_matches(&f->selector.matchers[0], HEARTH_STR("pod-4999")));
    assert_false(hearth_matcher_matches(&f->selector.matchers[0], HEARTH_STR("pod-5000")));
    hearth_buf_release(&text);
}

static void the_caret_survives_any_text_and_offset(void **state)
{
    struct fixture *f = *state;
    hearth_selector_caret(hearth_str_n(NULL, 0), 7, &f->text);
    assert_true(hearth_str_eq(hearth_buf_view(&f->text), HEARTH_STR("\n^\n")));
    hearth_buf_reset(&f->text);
    hearth_selector_caret(hearth_str_n("a\nb\xff\0c", 6), 4, &f->text);
    assert_true(hearth_str_eq(hearth_buf_view(&f->text), HEARTH_STR("a b? c\n    ^\n")));
    hearth_buf_reset(&f->text);
    hearth_selector_caret(HEARTH_STR("ab"), 99, &f->text);
    assert_true(hearth_str_eq(hearth_buf_view(&f->text), HEARTH_STR("ab\n  ^\n")));
}

static void refused_memory_is_reported(void **state)
{
    struct fixture *f = *state;
    struct hearth_str text =
        HEARTH_STR("cpu{a=\"\\x41\", b=~\"x(y|z)(1|2)\", c=~\"(?i)d\", e=~\"f\\\\.g.*\", h=\"i\", "
                   "j=\"k\", l=\"m\", n=\"o\", p=\"q\", r=\"s\"}");
    size_t limit = 0, refused = 0;
    enum hearth_status status;
    do {
        struct hearth_arena arena;
        hearth_arena_init(&arena, ++limit);
        status = hearth_selector_parse(&f->selector, text, &arena, NULL, &f->err);
        if (status != HEARTH_OK) {
            assert_int_equal(status, HEARTH_NO_MEMORY);
            assert_int_equal(f->selector.n, 0);
            refused++;
        }
        hearth_selector_release(&f->selector);
        hearth_arena_release(&arena);
    } while (status != HEARTH_OK);
    assert_true(refused > 100);
}

static void a_label_set_matches_if_all_matchers_do(void **state)
{
    static const struct {
        const char *text;
        bool matches;
    } cases[] = {{"{}", true},           {"{a=\"1\"}", true},   {"{a=\"1\", b=\"3\"}", false},
                 {"{c=\"\"}", true},     {"{c!=\"x\"}", true},  {"{c=~\".+\"}", false},
                 {"{b=~\"1|2\"}", true}, {"{a!~\"1\"}", false}, {"{a=\"\"}", false}};
    struct hearth_label v[] = {{HEARTH_STR("a"), HEARTH_STR("1")},
                               {HEARTH_STR("b"), HEARTH_STR("2")}};
    const struct hearth_labels labels = {v, 2};
    (void)state;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_selector selector;
        struct hearth_arena arena;
        hearth_arena_init(&arena, 0);
        hearth_selector_init(&selector);
        assert_int_equal(
            hearth_selector_parse(&selector, hearth_str_c(cases[i].text), &arena, NULL, NULL),
            HEARTH_OK);
        assert_int_equal(hearth_selector_matches(&selector, &labels), cases[i].matches);
        hearth_selector_release(&selector);
        hearth_arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(several_texts_are_joined_by_and, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failed_text_leaves_the_selector_as_it_was, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_added_matcher_is_copied, set_up, tear_down),
        cmocka_unit_test(a_label_set_matches_if_all_matchers_do),
        cmocka_unit_test_setup_teardown(refuses_to_add_names_and_values_that_no_text_can_contain,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_nul_byte_is_refused_at_its_offset, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strings_may_not_cross_lines_unless_raw, set_up, tear_down),
        cmocka_unit_test_setup_teardown(comments_end_with_the_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_longest_text_is_64_kib, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_201st_matcher_is_refused_at_its_offset, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            patterns_that_need_the_engine_are_limited_in_number_and_length, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_list_of_literals_needs_no_engine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_caret_survives_any_text_and_offset, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused_memory_is_reported, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
