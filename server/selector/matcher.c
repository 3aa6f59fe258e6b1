/*
 * matcher.c -- compile one matcher and test values against it.
 *
 * Most patterns of people and dashboards are literals, lists of literals, or a literal with ".*" at
 * an end (regex_classify.c); these become comparisons. All others use RE2, with limits on length
 * and memory.
 */
#include "hearth/selector/matcher.h"

#include "hearth/base/mem.h"

#include "regex_re2.h"
#include "selector_internal.h"

#include <assert.h>

/* Limits of patterns that need the engine: number per selector, bytes of each. */
#define MAX_ENGINES      64u
#define MAX_ENGINE_BYTES (16u * 1024u)

/* Binary search. */
static bool find_literal(const struct hearth_str *v, size_t n, struct hearth_str value)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = hearth_str_cmp(v[mid], value);
        if (order == 0) {
            return true;
        }
        if (order < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return false;
}

/*
 * Match a value that is not UTF-8. RE2 matches UTF-8 only, but '.' must match any byte, so each
 * malformed byte counts as U+FFFD. Stored values are UTF-8, so this copy is rare. False if memory
 * was refused.
 */
static bool regex_matches_repaired(const struct hearth_regex *regex, struct hearth_str value)
{
    char few[768] = "";
    char *text = value.n <= sizeof few / 3 ? few : hearth_mem_reallocarray(NULL, value.n, 3);

    if (text == NULL) {
        return false;
    }

    size_t n = 0;
    for (size_t i = 0; i < value.n;) {
        size_t len = hearth_selector_utf8_len(value.p + i, value.n - i);
        if (len == 0) {
            memcpy(text + n, "\xEF\xBF\xBD", 3);
            n += 3;
            i++;
        } else {
            memcpy(text + n, value.p + i, len);
            n += len;
            i += len;
        }
    }

    bool yes = hearth_regex_matches(regex, text, n);
    if (text != few) {
        hearth_mem_free(text);
    }

    return yes;
}

static bool matches_pattern(const struct hearth_matcher *matcher, struct hearth_str value)
{
    const struct hearth_str *literals = matcher->literals;

    switch (matcher->kind) {
    case HEARTH_MATCH_KIND_LITERAL:
        return hearth_str_eq(value, literals[0]);
    case HEARTH_MATCH_KIND_ALTERNATION:
        return find_literal(literals, matcher->n_literals, value);
    case HEARTH_MATCH_KIND_PREFIX:
        return hearth_str_starts(value, literals[0]);
    case HEARTH_MATCH_KIND_SUFFIX:
        return hearth_str_ends(value, literals[0]);
    case HEARTH_MATCH_KIND_CONTAINS:
        return value.n >= literals[0].n &&
               memmem(value.p, value.n, literals[0].p, literals[0].n) != NULL;
    case HEARTH_MATCH_KIND_ANY:
        return true;
    case HEARTH_MATCH_KIND_NOT_EMPTY:
        return value.n > 0;
    case HEARTH_MATCH_KIND_REGEX:
        break;
    }

    if (!hearth_str_utf8_valid(value)) {
        return regex_matches_repaired(matcher->regex, value);
    }

    return hearth_regex_matches(matcher->regex, value.p, value.n);
}

bool hearth_matcher_matches(const struct hearth_matcher *matcher, struct hearth_str value)
{
    assert(matcher != NULL);
    assert(matcher->kind != HEARTH_MATCH_KIND_REGEX || matcher->regex != NULL);

    bool negated = matcher->op == HEARTH_MATCH_NE || matcher->op == HEARTH_MATCH_NRE;
    return matches_pattern(matcher, value) != negated;
}

static enum hearth_status compile_engine(struct hearth_matcher *matcher, size_t n_engines,
                                         struct hearth_err *err)
{
    if (matcher->value.n > MAX_ENGINE_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "regular expression is longer than %u bytes", MAX_ENGINE_BYTES);
    }

    if (n_engines >= MAX_ENGINES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "more than %u regular expressions in one selector", MAX_ENGINES);
    }

    char why[256];
    matcher->regex = hearth_regex_new(matcher->value.p, matcher->value.n, why, sizeof why);
    if (matcher->regex == NULL) {
        if (why[0] == '\0') {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a regular expression");
        }
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "bad regular expression: %s", why);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_matcher_compile(struct hearth_matcher *matcher, size_t n_engines,
                                          struct hearth_arena *arena, struct hearth_err *err)
{
    assert(matcher != NULL && arena != NULL);

    matcher->regex = NULL;
    if (matcher->op == HEARTH_MATCH_EQ || matcher->op == HEARTH_MATCH_NE) {
        matcher->kind = HEARTH_MATCH_KIND_LITERAL;
        matcher->literals = hearth_arena_array(arena, 1, sizeof *matcher->literals);
        if (matcher->literals == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        matcher->literals[0] = matcher->value;
        matcher->n_literals = 1;
    } else {
        if (hearth_regex_classify(matcher->value, arena, &matcher->kind, &matcher->literals,
                                  &matcher->n_literals) != HEARTH_OK) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        if (matcher->kind == HEARTH_MATCH_KIND_REGEX) {
            HEARTH_TRY(compile_engine(matcher, n_engines, err));
        }
    }

    matcher->matches_empty = hearth_matcher_matches(matcher, HEARTH_STR(""));

    return HEARTH_OK;
}
