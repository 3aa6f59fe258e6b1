/*
 * fuzz_selector.c -- any bytes as a selector: the error has a place in the text, the canonical text
 * parses back to the same matchers, and the caret is drawn for whatever offset. The same bytes as a
 * typed query: what is split off leaves a selector.
 */
#include "hearth/selector/selector.h"
#include "hearth/selector/typed_query.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition, const char *what)
{
    if (!condition) {
        (void)fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

static void compare(const struct hearth_selector *a, const struct hearth_selector *b)
{
    static const char *const values[] = {"", "a", "ab", "b", "foo", "a\nb", "\xff", "a\xff", "1"};
    require(a->n == b->n, "as many matchers");
    for (size_t i = 0; i < a->n; i++) {
        const struct hearth_matcher *left = &a->matchers[i], *right = &b->matchers[i];
        require(hearth_str_eq(left->name, right->name), "the same name");
        require(hearth_str_eq(left->value, right->value), "the same value");
        require(left->op == right->op && left->kind == right->kind, "the same kind");
        require(left->matches_empty == hearth_matcher_matches(left, hearth_str_n(NULL, 0)),
                "the empty value");
        for (size_t k = 0; k < HEARTH_ARRAY_LEN(values); k++) {
            struct hearth_str value = hearth_str_c(values[k]);
            require(hearth_matcher_matches(left, value) == hearth_matcher_matches(right, value),
                    "the same verdict");
        }
        if (left->op == HEARTH_MATCH_EQ) {
            require(hearth_matcher_matches(left, left->value), "a value equals itself");
        }
    }
}

/* A set of labels matches if each matcher does; a label that is missing is the empty text. */
static void match_labels(const struct hearth_selector *selector)
{
    static struct hearth_label pairs[] = {{HEARTH_STR("a"), HEARTH_STR("foo")},
                                          {HEARTH_STR("b"), HEARTH_STR("1")}};
    const struct hearth_labels labels = {pairs, 2};
    bool all = true;

    for (size_t i = 0; i < selector->n; i++) {
        const struct hearth_matcher *matcher = &selector->matchers[i];
        struct hearth_str value = hearth_str_eq_c(matcher->name, "a")   ? HEARTH_STR("foo")
                                  : hearth_str_eq_c(matcher->name, "b") ? HEARTH_STR("1")
                                                                        : HEARTH_STR("");
        all = all && hearth_matcher_matches(matcher, value);
    }
    require(hearth_selector_matches(selector, &labels) == all, "all matchers match, or not");
}

static void split_type(struct hearth_str input, size_t n_matchers, struct hearth_arena *arena)
{
    struct hearth_typed_query typed;
    struct hearth_selector rest;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_selector_init(&rest);
    if (hearth_typed_query_parse(input, arena, &typed, &err) != HEARTH_OK) {
        require(n_matchers >= 2, "only two types are refused");
    } else if (typed.selector.n <= 64 * 1024) {
        require(hearth_selector_parse(&rest, typed.selector, arena, NULL, &err) == HEARTH_OK,
                "the rest parses");
        require(typed.profile_type.n > 0 ? rest.n < n_matchers : rest.n == n_matchers,
                "nothing but the type is gone");
    }
    hearth_selector_release(&rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    struct hearth_selector selector, again;
    struct hearth_buf text;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t offset = size == 0 ? 0 : data[0];
    struct hearth_str input = hearth_str_n((const char *)data, size);
    hearth_arena_init(&arena, 64u << 20);
    hearth_selector_init(&selector);
    hearth_selector_init(&again);
    hearth_buf_init(&text, 0);
    enum hearth_status status = hearth_selector_parse(&selector, input, &arena, &offset, &err);
    if (status == HEARTH_OK) {
        hearth_selector_format(&selector, &text);
        struct hearth_str canonical = hearth_buf_view(&text);
        if (canonical.n <= 64 * 1024) { /* escapes may have made it longer than a selector may be */
            require(hearth_selector_parse(&again, canonical, &arena, NULL, &err) == HEARTH_OK,
                    "canonical text parses");
            compare(&selector, &again);
        }
        split_type(input, selector.n, &arena);
        match_labels(&selector);
    } else {
        char tail[40];
        (void)snprintf(tail, sizeof tail, "at offset %zu", offset);
        require(status == HEARTH_INVALID_ARGUMENT, "only bad input is refused");
        require(offset <= size, "the place is in the text");
        require(hearth_str_ends(hearth_str_c(err.msg), hearth_str_c(tail)),
                "the message names the place");
        require(selector.n == 0, "nothing is left of a refused text");
    }
    hearth_selector_caret(input, offset, &text);
    require(!hearth_buf_failed(&text), "the caret is drawn");
    hearth_selector_release(&selector);
    hearth_selector_release(&again);
    hearth_buf_release(&text);
    hearth_arena_release(&arena);
    return 0;
}
