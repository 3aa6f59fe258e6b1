/* test_matcher.c -- the four operators, absent labels, and classified patterns against the engine.
 */
#include "hearth/base/mem.h"
#include "hearth/selector/matcher.h"
#include "hearth/selector/selector.h"

#include "regex_re2.h"
#include "selector_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void compile(struct hearth_selector *selector, enum hearth_match_op op,
                    struct hearth_str value, struct hearth_arena *arena)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_selector_init(selector);
    if (hearth_selector_add(selector, HEARTH_STR("l"), op, value, arena, &err) != HEARTH_OK) {
        fail_msg("%.*s: %s", (int)value.n, value.p, err.msg);
    }
}

static void patterns_without_need_of_the_engine_are_recognised(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        enum hearth_match_kind kind;
        size_t n_literals;
        const char *literals; /* joined by '|' */
    } cases[] = {
        {"", HEARTH_MATCH_KIND_LITERAL, 1, ""},
        {"abc", HEARTH_MATCH_KIND_LITERAL, 1, "abc"},
        {"^abc$", HEARTH_MATCH_KIND_LITERAL, 1, "abc"},
        {"a\\.b\\-c", HEARTH_MATCH_KIND_LITERAL, 1, "a.b-c"},
        {"(abc)", HEARTH_MATCH_KIND_LITERAL, 1, "abc"},
        {"a|b", HEARTH_MATCH_KIND_ALTERNATION, 2, "a|b"},
        {"b|a|b", HEARTH_MATCH_KIND_ALTERNATION, 2, "a|b"},
        {"^b$|^a$", HEARTH_MATCH_KIND_ALTERNATION, 2, "a|b"},
        {"a|", HEARTH_MATCH_KIND_ALTERNATION, 2, "|a"},
        {"|", HEARTH_MATCH_KIND_LITERAL, 1, ""},
        {"a(b|c)", HEARTH_MATCH_KIND_ALTERNATION, 2, "ab|ac"},
        {"a(?:b|c(d|))e", HEARTH_MATCH_KIND_ALTERNATION, 3, "abe|acde|ace"},
        {"(a|b)(c|d)", HEARTH_MATCH_KIND_ALTERNATION, 4, "ac|ad|bc|bd"},
        {"abc.*", HEARTH_MATCH_KIND_PREFIX, 1, "abc"},
        {"^abc.*$", HEARTH_MATCH_KIND_PREFIX, 1, "abc"},
        {".*abc", HEARTH_MATCH_KIND_SUFFIX, 1, "abc"},
        {".*\\.abc.*", HEARTH_MATCH_KIND_CONTAINS, 1, ".abc"},
        {".*", HEARTH_MATCH_KIND_ANY, 1, ""},
        {"^.*$", HEARTH_MATCH_KIND_ANY, 1, ""},
        {".+", HEARTH_MATCH_KIND_NOT_EMPTY, 1, ""},
        {"k\xc3\xb6ln.*", HEARTH_MATCH_KIND_PREFIX, 1, "k\xc3\xb6ln"},
        {"(?i)abc", HEARTH_MATCH_KIND_REGEX, 0, ""},
        {"abc.+", HEARTH_MATCH_KIND_REGEX, 0, ""},
        {"ab*", HEARTH_MATCH_KIND_REGEX, 0, ""},
        {"a{2}", HEARTH_MATCH_KIND_REGEX, 0, ""},
        {"(a|b)?", HEARTH_MATCH_KIND_REGEX, 0, ""},
        {"a|b.*", HEARTH_MATCH_KIND_REGEX, 0, ""},
        {".*a|b", HEARTH_MATCH_KIND_REGEX, 0, ""},
        {".*?", HEARTH_MATCH_KIND_REGEX, 0, ""},
        {"[ab]", HEARTH_MATCH_KIND_REGEX, 0, ""},
        {"\\d", HEARTH_MATCH_KIND_REGEX, 0, ""},
        {"a^b", HEARTH_MATCH_KIND_REGEX, 0, ""},
        {"a$b", HEARTH_MATCH_KIND_REGEX, 0, ""},
        {"(^a)", HEARTH_MATCH_KIND_REGEX, 0, ""},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_arena arena;
        struct hearth_selector selector;
        struct hearth_buf joined;
        hearth_arena_init(&arena, 0);
        hearth_buf_init(&joined, 0);
        compile(&selector, HEARTH_MATCH_RE, hearth_str_c(cases[i].pattern), &arena);
        const struct hearth_matcher *m = &selector.matchers[0];
        for (size_t k = 0; k < m->n_literals; k++) {
            hearth_buf_cstr(&joined, k == 0 ? "" : "|");
            hearth_buf_str(&joined, m->literals[k]);
        }
        if (m->kind != cases[i].kind || m->n_literals != cases[i].n_literals ||
            !hearth_str_eq_c(hearth_buf_view(&joined), cases[i].literals)) {
            fail_msg("%s: kind %d, %zu literals", cases[i].pattern, (int)m->kind, m->n_literals);
        }
        assert_int_equal(m->regex == NULL, m->kind != HEARTH_MATCH_KIND_REGEX);
        hearth_buf_release(&joined);
        hearth_selector_release(&selector);
        hearth_arena_release(&arena);
    }
}

static void an_absent_label_is_the_empty_value(void **state)
{
    (void)state;
    static const struct {
        enum hearth_match_op op;
        const char *value;
        bool matches_empty;
    } cases[] = {
        {HEARTH_MATCH_EQ, "", true},     {HEARTH_MATCH_EQ, "x", false},
        {HEARTH_MATCH_NE, "", false},    {HEARTH_MATCH_NE, "x", true},
        {HEARTH_MATCH_RE, ".*", true},   {HEARTH_MATCH_RE, ".+", false},
        {HEARTH_MATCH_RE, "a|", true},   {HEARTH_MATCH_RE, "x*", true},
        {HEARTH_MATCH_NRE, ".+", true},  {HEARTH_MATCH_NRE, ".*", false},
        {HEARTH_MATCH_NRE, "x.*", true}, {HEARTH_MATCH_NRE, "(?i)x", true},
        {HEARTH_MATCH_RE, ".*x", false}, {HEARTH_MATCH_RE, ".*x.*", false},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_arena arena;
        struct hearth_selector selector;
        hearth_arena_init(&arena, 0);
        compile(&selector, cases[i].op, hearth_str_c(cases[i].value), &arena);
        assert_int_equal(selector.matchers[0].matches_empty, cases[i].matches_empty);
        assert_int_equal(hearth_matcher_matches(&selector.matchers[0], hearth_str_n(NULL, 0)),
                         cases[i].matches_empty);
        hearth_selector_release(&selector);
        hearth_arena_release(&arena);
    }
}

static void values_with_newlines_or_malformed_text_are_matched_completely(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        struct hearth_str value;
        bool yes;
    } cases[] = {
        {"a.c", {"a\nc", 3}, true},    {"(?-s)a.c", {"a\nc", 3}, false}, {"a", {"a\n", 2}, false},
        {"a.", {"a\xff", 2}, true},    {"a..", {"a\xff", 2}, false},     {"a.b", {"a\0b", 3}, true},
        {"..", {"\xe2\x82", 2}, true}, {".{300}x?", {NULL, 0}, false},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_arena arena;
        struct hearth_selector selector;
        hearth_arena_init(&arena, 0);
        compile(&selector, HEARTH_MATCH_RE, hearth_str_c(cases[i].pattern), &arena);
        assert_int_equal(hearth_matcher_matches(&selector.matchers[0], cases[i].value),
                         cases[i].yes);
        hearth_selector_release(&selector);
        hearth_arena_release(&arena);
    }
    struct hearth_arena arena;
    struct hearth_selector selector;
    char broken[2000];
    memset(broken, 0xFF, sizeof broken);
    hearth_arena_init(&arena, 0);
    compile(&selector, HEARTH_MATCH_RE, HEARTH_STR("(..)+"), &arena);
    assert_true(hearth_matcher_matches(&selector.matchers[0], hearth_str_n(broken, 2000)));
    assert_false(hearth_matcher_matches(&selector.matchers[0], hearth_str_n(broken, 1999)));
    hearth_selector_release(&selector);
    hearth_arena_release(&arena);
}

static uint64_t g_random;

static uint32_t random_below(uint32_t n)
{
    g_random = g_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(g_random >> 33) % n;
}

/* Patterns and values of few letters, so that they often match. */
static void random_pattern(struct hearth_buf *out)
{
    static const char *const pieces[] = {"a",     "b",    "ab",  "\\.", ".",   ".*",  ".+",
                                         "|",     "(",    ")",   "^",   "$",   "?",   "*",
                                         "{",     "\\-",  "(?:", "\\~", "\\/", "\\:", "\xc3\xb6",
                                         "(a|b)", "(|a)", "\\$", "}",   "]",   "\\d"};
    for (uint32_t n = random_below(8); n > 0; n--) {
        hearth_buf_cstr(out, pieces[random_below(HEARTH_ARRAY_LEN(pieces))]);
    }
}

static void random_value(struct hearth_buf *out)
{
    static const char *const pieces[] = {"a",        "b", "ab", ".", "-", "\n", "$",
                                         "\xc3\xb6", "~", "/",  ":", "}", "1"};
    for (uint32_t n = random_below(6); n > 0; n--) {
        hearth_buf_cstr(out, pieces[random_below(HEARTH_ARRAY_LEN(pieces))]);
    }
}

static void classified_patterns_agree_with_the_engine(void **state)
{
    (void)state;
    g_random = 20261120;
    print_message("seed %llu\n", (unsigned long long)g_random);
    struct hearth_buf pattern, value;
    hearth_buf_init(&pattern, 0);
    hearth_buf_init(&value, 0);
    size_t n_classified = 0, n_yes = 0;
    for (int round = 0; round < 60000; round++) {
        struct hearth_arena arena;
        enum hearth_match_kind kind;
        struct hearth_str *literals;
        size_t n_literals;
        hearth_arena_init(&arena, 0);
        hearth_buf_reset(&pattern);
        random_pattern(&pattern);
        struct hearth_str text = hearth_buf_view(&pattern);
        assert_int_equal(hearth_regex_classify(text, &arena, &kind, &literals, &n_literals),
                         HEARTH_OK);
        if (kind != HEARTH_MATCH_KIND_REGEX) {
            char why[256];
            struct hearth_regex *regex =
                hearth_regex_new(text.n == 0 ? "" : text.p, text.n, why, sizeof why);
            if (regex == NULL) {
                fail_msg("%.*s was classified but is not valid: %s", (int)text.n, text.p, why);
            }
            struct hearth_matcher matcher = {.op = HEARTH_MATCH_RE,
                                             .kind = kind,
                                             .literals = literals,
                                             .n_literals = n_literals};
            for (int i = 0; i < 30; i++) {
                hearth_buf_reset(&value);
                random_value(&value);
                struct hearth_str v = hearth_buf_view(&value);
                if (i < (int)n_literals) { /* literals found by the classifier must match too */
                    v = literals[i];
                }
                bool want = hearth_regex_matches(regex, v.n == 0 ? "" : v.p, v.n);
                if (hearth_matcher_matches(&matcher, v) != want) {
                    fail_msg("%.*s on %.*s", (int)text.n, text.p, (int)v.n, v.p);
                }
                n_yes += want;
            }
            hearth_regex_free(regex);
            n_classified++;
        }
        hearth_arena_release(&arena);
    }
    print_message("%zu patterns classified, %zu matches\n", n_classified, n_yes);
    assert_true(n_classified > 5000 && n_yes > 5000);
    hearth_buf_release(&pattern);
    hearth_buf_release(&value);
}

/* Short patterns that would multiply out to huge lists. */
static void products_are_bounded(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_selector selector;
    struct hearth_buf pattern;
    hearth_buf_init(&pattern, 0);
    for (int i = 0; i < 30; i++) {
        hearth_buf_cstr(&pattern, "(a|b|c)");
    }
    hearth_arena_init(&arena, 0);
    compile(&selector, HEARTH_MATCH_RE, hearth_buf_view(&pattern), &arena);
    assert_int_equal(selector.matchers[0].kind, HEARTH_MATCH_KIND_REGEX);
    assert_true(arena.used_bytes < (1u << 20));
    hearth_selector_release(&selector);
    hearth_buf_reset(&pattern);
    hearth_buf_cstr(&pattern, "(a|b)");
    for (int i = 0; i < 3000; i++) {
        hearth_buf_cstr(&pattern, "x(y)");
    }
    compile(&selector, HEARTH_MATCH_RE, hearth_buf_view(&pattern), &arena);
    assert_true(arena.used_bytes < (4u << 20));
    assert_int_equal(selector.matchers[0].kind, HEARTH_MATCH_KIND_REGEX);
    hearth_selector_release(&selector);
    hearth_arena_release(&arena);
    hearth_buf_release(&pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_without_need_of_the_engine_are_recognised),
        cmocka_unit_test(an_absent_label_is_the_empty_value),
        cmocka_unit_test(values_with_newlines_or_malformed_text_are_matched_completely),
        cmocka_unit_test(classified_patterns_agree_with_the_engine),
        cmocka_unit_test(products_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
