/*
 * selector.h -- the selector language: name{a="b", c=~"d.*"}, parsed and compiled.
 *
 * PromQL's vector selector: an optional metric name (may contain ':') and an optional list in
 * braces with an optional trailing comma, at least one of both. `{}` matches everything; the empty
 * text is an error. A list may also have angle brackets, <a="b">, in pairs. Names are identifiers
 * or quoted UTF-8; a lone quoted string is the metric name. Strings: '...' and "..." with Go
 * escapes, `...` raw. Comments from # to the end of the line. Grammar and all error messages:
 * grammar/README.md.
 *
 * Limits:    text <= 64 KiB; <= 200 matchers; <= 64 regexes that need the engine (matcher.h), each
 *            <= 16 KiB and of bounded compiled size.
 * Errors:    INVALID_ARGUMENT; the message ends with `at offset N` (bytes, 0-based); *ret_offset
 *            is N. NO_MEMORY. After a failed parse the selector is unchanged.
 *
 * Ownership: matchers live in the arena; compiled regexes do not, so release the selector.
 * Threads:   parsing is pure; a parsed selector is immutable.
 * Source:    Prometheus documentation, "Time series selectors"; RE2 syntax.
 */
#ifndef HEARTH_SELECTOR_SELECTOR_H
#define HEARTH_SELECTOR_SELECTOR_H

#include "hearth/model/labels.h"
#include "hearth/selector/matcher.h"

struct hearth_selector {
    struct hearth_matcher *matchers; /* joined by AND; the metric name is a matcher on __name__ */
    size_t n, cap;
};

void hearth_selector_init(struct hearth_selector *selector);
void hearth_selector_release(struct hearth_selector *selector);

/*
 * Parse `text` and append its matchers (several texts are thus joined by AND). ret_offset may be
 * NULL.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_selector_parse(struct hearth_selector *selector, struct hearth_str text,
                                         struct hearth_arena *arena, size_t *ret_offset,
                                         struct hearth_err *err);
/* Compile and append one matcher (for conditions that the server adds). */
HEARTH_MUST_CHECK
enum hearth_status hearth_selector_add(struct hearth_selector *selector, struct hearth_str name,
                                       enum hearth_match_op op, struct hearth_str value,
                                       struct hearth_arena *arena, struct hearth_err *err);
/* Whether a label set matches: all matchers must. An absent label counts as the empty text. */
bool hearth_selector_matches(const struct hearth_selector *selector,
                             const struct hearth_labels *labels);
/* Append the canonical text, always in braces: {a="b", c!~"d"}. It parses to the same selector. */
void hearth_selector_format(const struct hearth_selector *selector, struct hearth_buf *out);
/* Append two lines for people: the text (one line, tabs as spaces), a caret under byte `offset`. */
void hearth_selector_caret(struct hearth_str text, size_t offset, struct hearth_buf *out);

#endif
