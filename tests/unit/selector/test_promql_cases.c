/* test_promql_cases.c -- the public cases of Prometheus' own tests, if the shared data is
 * available. */
#include "hearth/selector/selector.h"

#include "mini_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct lines {
    struct hearth_arena arena;
    struct hearth_str text;
    size_t at;
};

/* Skips the test with a message if the file is missing. */
static void open_lines(struct lines *lines, const char *name)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/promql/%s", HEARTH_SHARED_DATA, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        print_message("no %s: not tested\n", path);
        skip();
    }
    hearth_arena_init(&lines->arena, 0);
    char *text = hearth_arena_alloc(&lines->arena, 1 << 20);
    lines->text = hearth_str_n(text, fread(text, 1, 1 << 20, file));
    lines->at = 0;
    (void)fclose(file);
}

static const struct mini_json *next_line(struct lines *lines)
{
    while (lines->at < lines->text.n) {
        size_t end = hearth_str_find(lines->text, '\n', lines->at);
        struct hearth_str line =
            hearth_str_trim(hearth_str_n(lines->text.p + lines->at, end - lines->at));
        lines->at = end + 1;
        if (line.n > 0) {
            const struct mini_json *v = mini_json_parse(line, &lines->arena);
            if (v == NULL) {
                fail_msg("not JSON: %.*s", (int)line.n, line.p);
            }
            return v;
        }
    }
    return NULL;
}

static const struct mini_json *member(const struct mini_json *object, const char *key)
{
    const struct mini_json *v = mini_json_get(object, key);
    if (v == NULL) {
        fail_msg("no member %s", key);
    }
    return v;
}

static struct hearth_str decode_base64(struct lines *lines, struct hearth_str text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = hearth_arena_alloc(&lines->arena, text.n + 1);
    size_t n = 0;
    uint32_t bits = 0, n_bits = 0;
    for (size_t i = 0; i < text.n && text.p[i] != '='; i++) {
        const char *digit = strchr(digits, text.p[i]);
        assert_non_null(digit);
        bits = bits << 6 | (uint32_t)(digit - digits);
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[n++] = (char)(unsigned char)(bits >> n_bits);
        }
    }
    return hearth_str_n(out, n);
}

static enum hearth_match_op op_of(struct hearth_str text)
{
    static const char *const ops[] = {"=", "!=", "=~", "!~"};
    for (size_t i = 0; i < 4; i++) {
        if (hearth_str_eq_c(text, ops[i])) {
            return (enum hearth_match_op)i;
        }
    }
    fail_msg("no such operator");
    return HEARTH_MATCH_EQ;
}

/* In the expected matchers the name before the braces is last; the order is irrelevant. */
static bool has_matcher(const struct hearth_selector *selector, const struct mini_json *want)
{
    const struct mini_json *name = want->first, *op = name->next, *value = op->next;
    for (size_t i = 0; i < selector->n; i++) {
        const struct hearth_matcher *m = &selector->matchers[i];
        if (hearth_str_eq(m->name, name->text) && m->op == op_of(op->text) &&
            hearth_str_eq(m->value, value->text)) {
            return true;
        }
    }
    return false;
}

/* Errors there only because no matcher refuses the empty value; here they select every series that
 * matches. */
static bool is_valid_here(const struct mini_json *test)
{
    const struct mini_json *why = mini_json_get(test, "upstream_error");
    return why != NULL &&
           hearth_str_eq_c(why->text,
                           "vector selector must contain at least one non-empty matcher");
}

static void parses_every_upstream_selector_as_prometheus_does(void **state)
{
    (void)state;
    struct lines lines;
    open_lines(&lines, "prometheus-vector-selectors.jsonl");
    size_t n_valid = 0, n_invalid = 0, n_ours = 0;
    for (const struct mini_json *test = next_line(&lines); test != NULL; test = next_line(&lines)) {
        const struct mini_json *raw = mini_json_get(test, "input_base64");
        struct hearth_str input =
            raw == NULL ? member(test, "input")->text : decode_base64(&lines, raw->text);
        struct hearth_selector selector;
        struct hearth_err err = HEARTH_ERR_INIT;
        hearth_selector_init(&selector);
        bool ok = hearth_selector_parse(&selector, input, &lines.arena, NULL, &err) == HEARTH_OK;
        if (ok != (member(test, "ok")->truth || is_valid_here(test))) {
            fail_msg("%.*s: %s", (int)input.n, input.p, ok ? "accepted" : err.msg);
        }
        const struct mini_json *matchers = mini_json_get(test, "matchers");
        if (matchers != NULL) {
            assert_int_equal(selector.n, matchers->n);
            for (const struct mini_json *m = matchers->first; m != NULL; m = m->next) {
                if (!has_matcher(&selector, m)) {
                    fail_msg("%.*s: a matcher differs", (int)input.n, input.p);
                }
            }
        }
        n_valid += member(test, "ok")->truth;
        n_invalid += !ok;
        n_ours += is_valid_here(test);
        hearth_selector_release(&selector);
    }
    print_message("%zu valid, %zu invalid, %zu valid only here\n", n_valid, n_invalid, n_ours);
    assert_true(n_valid > 0 && n_invalid > 0 && n_ours > 0);
    hearth_arena_release(&lines.arena);
}

static bool matches(struct lines *lines, enum hearth_match_op op, struct hearth_str pattern,
                    const struct hearth_str *values, size_t n_values, bool *ret_yes)
{
    struct hearth_selector selector;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_selector_init(&selector);
    if (hearth_selector_add(&selector, HEARTH_STR("l"), op, pattern, &lines->arena, &err) !=
        HEARTH_OK) {
        print_error("%.*s: %s\n", (int)pattern.n, pattern.p, err.msg);
        return false;
    }
    for (size_t i = 0; i < n_values; i++) {
        ret_yes[i] = hearth_matcher_matches(&selector.matchers[0], values[i]);
    }
    hearth_selector_release(&selector);
    return true;
}

static void decides_every_upstream_matcher_as_prometheus_does(void **state)
{
    (void)state;
    struct lines lines;
    open_lines(&lines, "prometheus-matcher-semantics.jsonl");
    size_t n = 0;
    for (const struct mini_json *test = next_line(&lines); test != NULL; test = next_line(&lines)) {
        bool yes;
        assert_true(matches(&lines, op_of(member(test, "op")->text),
                            member(test, "matcher_value")->text, &member(test, "value")->text, 1,
                            &yes));
        assert_int_equal(yes, member(test, "match")->truth);
        n++;
    }
    assert_true(n > 0);
    hearth_arena_release(&lines.arena);
}

static void matches_every_upstream_regex_as_prometheus_does(void **state)
{
    (void)state;
    struct lines lines;
    open_lines(&lines, "prometheus-regexes-vs-values.jsonl");
    const struct mini_json *first = next_line(&lines);
    const struct mini_json *encoded = member(first, "values_base64");
    size_t n_values = encoded->n, n_regexes = 0;
    struct hearth_str *values = hearth_arena_calloc(&lines.arena, n_values, sizeof *values);
    bool *yes = hearth_arena_calloc(&lines.arena, n_values, sizeof *yes);
    bool *want = hearth_arena_calloc(&lines.arena, n_values, sizeof *want);
    size_t n = 0;
    for (const struct mini_json *v = encoded->first; v != NULL; v = v->next) {
        values[n++] = decode_base64(&lines, v->text);
    }
    for (const struct mini_json *test = next_line(&lines); test != NULL; test = next_line(&lines)) {
        struct hearth_str regex = member(test, "regex")->text;
        memset(want, 0, n_values);
        for (const struct mini_json *i = member(test, "matches_value_indexes")->first; i != NULL;
             i = i->next) {
            want[(size_t)i->number] = true;
        }
        assert_true(matches(&lines, HEARTH_MATCH_RE, regex, values, n_values, yes));
        for (size_t i = 0; i < n_values; i++) {
            if (yes[i] != want[i]) {
                fail_msg("%.60s: value %zu", regex.p, i);
            }
        }
        n_regexes++;
    }
    print_message("%zu regexes on %zu values\n", n_regexes, n_values);
    assert_true(n_regexes > 0 && n_values > 0);
    hearth_arena_release(&lines.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_every_upstream_selector_as_prometheus_does),
        cmocka_unit_test(decides_every_upstream_matcher_as_prometheus_does),
        cmocka_unit_test(matches_every_upstream_regex_as_prometheus_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
