/*
 * selector.c -- parses a selector and compiles its matchers: the entry points and the parser's
 * actions.
 *
 * The text is copied into the arena, followed by a NUL (the lexer's sentinel), so that names and
 * strings without escapes can point into the copy.
 */
#include "hearth/selector/selector.h"

#include "hearth/model/labels.h"

#include "regex_re2.h"
#include "selector_internal.h"

#include <assert.h>

void hearth_selector_init(struct hearth_selector *selector)
{
    assert(selector != NULL);

    *selector = (struct hearth_selector){0};
}

/* Remove the matchers from index `keep` on. */
static void drop_matchers(struct hearth_selector *selector, size_t keep)
{
    while (selector->n > keep) {
        hearth_regex_free(selector->matchers[--selector->n].regex);
    }
}

void hearth_selector_release(struct hearth_selector *selector)
{
    assert(selector != NULL);

    drop_matchers(selector, 0);
    hearth_selector_init(selector);
}

/* Compile and append a matcher. Name and value are valid UTF-8 and live as long as the selector. */
static enum hearth_status append_matcher(struct hearth_selector *selector, struct hearth_str name,
                                         enum hearth_match_op op, struct hearth_str value,
                                         struct hearth_arena *arena, struct hearth_err *err)
{
    assert(selector->n <= selector->cap);

    if (selector->n >= HEARTH_SELECTOR_MAX_MATCHERS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "more than %u matchers in one selector",
                           HEARTH_SELECTOR_MAX_MATCHERS);
    }

    if (selector->n == selector->cap) {
        size_t cap = selector->cap == 0 ? 8 : selector->cap * 2;
        struct hearth_matcher *grown = hearth_arena_array(arena, cap, sizeof *grown);
        if (grown == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        if (selector->n > 0) {
            memcpy(grown, selector->matchers, selector->n * sizeof *grown);
        }
        selector->matchers = grown;
        selector->cap = cap;
    }

    /* The engine's limit counts the patterns that are compiled already. */
    size_t n_engines = 0;
    for (size_t i = 0; i < selector->n; i++) {
        n_engines += selector->matchers[i].regex != NULL;
    }

    struct hearth_matcher *matcher = &selector->matchers[selector->n];
    *matcher = (struct hearth_matcher){.op = op, .name = name, .value = value};
    HEARTH_TRY(hearth_matcher_compile(matcher, n_engines, arena, err));
    selector->n++;

    return HEARTH_OK;
}

enum hearth_status hearth_selector_add(struct hearth_selector *selector, struct hearth_str name,
                                       enum hearth_match_op op, struct hearth_str value,
                                       struct hearth_arena *arena, struct hearth_err *err)
{
    assert(selector != NULL && arena != NULL);

    if (name.n == 0 || !hearth_str_utf8_valid(name)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "label name is empty or not UTF-8 text");
    }

    if (!hearth_str_utf8_valid(value)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "value of label \"" HEARTH_STR_FMT "\" is not UTF-8 text",
                           HEARTH_STR_ARG(name));
    }

    struct hearth_str own_name = hearth_arena_str(arena, name);
    struct hearth_str own_value = hearth_arena_str(arena, value);
    if (own_name.p == NULL || own_value.p == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    return append_matcher(selector, own_name, op, own_value, arena, err);
}

/* Append a matcher for the parser; an error of the matcher is reported at `at`. */
static void append_parsed(struct hearth_selector_ctx *ctx, const char *at, struct hearth_str name,
                          enum hearth_match_op op, struct hearth_str value)
{
    struct hearth_err why = HEARTH_ERR_INIT;
    enum hearth_status status = append_matcher(ctx->selector, name, op, value, ctx->arena, &why);
    if (status == HEARTH_INVALID_ARGUMENT) {
        hearth_selector_fail(ctx, at, "%s", why.msg);
    } else if (status != HEARTH_OK) {
        ctx->status = HEARTH_FAIL(ctx->err, status, "%s", why.msg);
    }
}

/* True if the metric name before the list, if any, leaves room for another one; else an error. */
static bool check_metric_free(struct hearth_selector_ctx *ctx, const char *at,
                              struct hearth_str value)
{
    if (ctx->metric.p == NULL) {
        return true;
    }
    hearth_selector_fail(ctx, at, "the metric name is set twice, by \"%.*s\" and by \"%.*s\"",
                         ctx->metric.n > 64 ? 64 : (int)ctx->metric.n, ctx->metric.p,
                         value.n > 64 ? 64 : (int)value.n, value.n == 0 ? "" : value.p);
    return false;
}

void hearth_selector_on_metric(struct hearth_selector_ctx *ctx, struct hearth_selector_token name)
{
    ctx->metric = hearth_str_n(name.p, name.n);
    append_parsed(ctx, name.p, HEARTH_STR(HEARTH_LABEL_NAME), HEARTH_MATCH_EQ, ctx->metric);
}

static bool unquote_name(struct hearth_selector_ctx *ctx, struct hearth_selector_token token,
                         struct hearth_str *ret_name)
{
    *ret_name = hearth_str_n(token.p, token.n);

    char c = token.p[0];
    if ((c == '"' || c == '\'' || c == '`') && !hearth_selector_unquote(ctx, token, ret_name)) {
        return false;
    }

    if (ret_name->n == 0) {
        hearth_selector_fail(ctx, token.p, "a name is empty");
        return false;
    }

    return true;
}

void hearth_selector_on_quoted_metric(struct hearth_selector_ctx *ctx,
                                      struct hearth_selector_token name)
{
    struct hearth_str text;
    if (ctx->status == HEARTH_OK && unquote_name(ctx, name, &text) &&
        check_metric_free(ctx, name.p, text)) {
        append_parsed(ctx, name.p, HEARTH_STR(HEARTH_LABEL_NAME), HEARTH_MATCH_EQ, text);
    }
}

void hearth_selector_on_matcher(struct hearth_selector_ctx *ctx, struct hearth_selector_token name,
                                enum hearth_match_op op, struct hearth_selector_token value)
{
    struct hearth_str label, text;

    if (ctx->status != HEARTH_OK || !unquote_name(ctx, name, &label) ||
        !hearth_selector_unquote(ctx, value, &text)) {
        return;
    }

    if (!hearth_str_eq(label, HEARTH_STR(HEARTH_LABEL_NAME)) ||
        check_metric_free(ctx, name.p, text)) {
        bool is_regex = op == HEARTH_MATCH_RE || op == HEARTH_MATCH_NRE;
        append_parsed(ctx, is_regex ? value.p : name.p, label, op, text);
    }
}

/* Refuse bytes that the lexer must not see; the error is at the first of them. */
static bool check_bytes(struct hearth_selector_ctx *ctx)
{
    const char *p = (const char *)ctx->lexer.start, *end = (const char *)ctx->lexer.limit;

    if ((size_t)(end - p) > HEARTH_SELECTOR_MAX_BYTES) {
        hearth_selector_fail(ctx, p + HEARTH_SELECTOR_MAX_BYTES,
                             "the selector is longer than %u bytes", HEARTH_SELECTOR_MAX_BYTES);
        return false;
    }

    while (p < end) {
        size_t len = hearth_selector_utf8_len(p, (size_t)(end - p));
        if (len == 0 || *p == '\0') {
            hearth_selector_fail(ctx, p,
                                 len == 0 ? "the selector is not valid UTF-8"
                                          : "the selector holds a NUL byte");
            return false;
        }
        p += len;
    }

    return true;
}

enum hearth_status hearth_selector_parse(struct hearth_selector *selector, struct hearth_str text,
                                         struct hearth_arena *arena, size_t *ret_offset,
                                         struct hearth_err *err)
{
    assert(selector != NULL && arena != NULL);

    struct hearth_selector_ctx ctx = {.selector = selector, .arena = arena, .err = err};
    size_t n_before = selector->n;

    /* One byte over the limit suffices to notice it. */
    size_t n = text.n > HEARTH_SELECTOR_MAX_BYTES ? HEARTH_SELECTOR_MAX_BYTES + 1 : text.n;
    const char *copy = hearth_arena_strndup(arena, text.p, n);
    if (copy == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Parse. */
    ctx.lexer.start = ctx.lexer.cursor = (const unsigned char *)copy;
    ctx.lexer.limit = ctx.lexer.start + n;
    if (check_bytes(&ctx)) {
        hearth_selector_run(&ctx);
    }

    /* After an error the selector is as before. */
    if (ctx.status != HEARTH_OK) {
        drop_matchers(selector, n_before);
        if (ret_offset != NULL) {
            *ret_offset = ctx.offset;
        }
    }

    return ctx.status;
}

bool hearth_selector_matches(const struct hearth_selector *selector,
                             const struct hearth_labels *labels)
{
    assert(selector != NULL && labels != NULL);

    for (size_t i = 0; i < selector->n; i++) {
        const struct hearth_matcher *matcher = &selector->matchers[i];
        struct hearth_str value = hearth_labels_get(labels, matcher->name);
        if (!hearth_matcher_matches(matcher, value.p == NULL ? HEARTH_STR("") : value)) {
            return false;
        }
    }

    return true;
}
