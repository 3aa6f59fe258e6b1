/*
 * pattern.c -- RE2 without anchors; plain text is searched without the engine.
 */
#include "hearth/selector/pattern.h"

#include "hearth/base/mem.h"

#include "regex_re2.h"

#include <assert.h>

#define MAX_PATTERN_BYTES (16u * 1024u)

/* The literal's text follows the struct. */
struct hearth_pattern {
    struct hearth_regex *regex; /* NULL: search for the literal */
    struct hearth_str literal;
};

static bool is_plain_text(struct hearth_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (strchr("\\^$.[]|()?*+{}", text.p[i]) != NULL) {
            return false;
        }
    }
    return hearth_str_utf8_valid(text);
}

enum hearth_status hearth_pattern_new(struct hearth_str text, const char *field,
                                      struct hearth_pattern **ret_pattern, struct hearth_err *err)
{
    assert(field != NULL && ret_pattern != NULL);

    *ret_pattern = NULL;
    if (text.n > MAX_PATTERN_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%s: regular expression is longer than %u bytes", field,
                           MAX_PATTERN_BYTES);
    }

    struct hearth_pattern *pattern = hearth_mem_alloc(sizeof *pattern + text.n + 1);
    if (pattern == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a regular expression");
    }

    /* Copy the text, and compile it unless it is plain. */
    char *copy = (char *)(pattern + 1);
    memcpy(copy, text.n == 0 ? "" : text.p, text.n);
    copy[text.n] = '\0';
    *pattern = (struct hearth_pattern){.literal = hearth_str_n(copy, text.n)};
    if (!is_plain_text(text)) {
        char why[256];
        pattern->regex = hearth_regex_new(copy, text.n, why, sizeof why);
        if (pattern->regex == NULL) {
            hearth_pattern_free(pattern);
            return why[0] == '\0'
                       ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a regular expression")
                       : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s: bad regular expression: %s",
                                     field, why);
        }
    }

    *ret_pattern = pattern;

    return HEARTH_OK;
}

void hearth_pattern_free(struct hearth_pattern *pattern)
{
    if (pattern != NULL) {
        hearth_regex_free(pattern->regex);
        hearth_mem_free(pattern);
    }
}

bool hearth_pattern_occurs(const struct hearth_pattern *pattern, struct hearth_str text)
{
    assert(pattern != NULL);

    if (pattern->regex != NULL) {
        return hearth_regex_occurs(pattern->regex, text.p, text.n);
    }
    struct hearth_str wanted = pattern->literal;
    return wanted.n == 0 ||
           (text.n >= wanted.n && memmem(text.p, text.n, wanted.p, wanted.n) != NULL);
}

bool hearth_pattern_find(const struct hearth_pattern *pattern, struct hearth_str text, size_t from,
                         size_t *ret_from, size_t *ret_to)
{
    assert(pattern != NULL && from <= text.n);

    if (pattern->regex != NULL) {
        return hearth_regex_find(pattern->regex, text.p, text.n, from, ret_from, ret_to);
    }

    struct hearth_str wanted = pattern->literal;
    const char *found =
        wanted.n == 0 ? text.p + from : memmem(text.p + from, text.n - from, wanted.p, wanted.n);
    if (found == NULL) {
        return false;
    }

    *ret_from = (size_t)(found - text.p);
    *ret_to = *ret_from + wanted.n;

    return true;
}
