/*
 * regex_re2.h -- the C face of RE2. Private to the query layer; the only header that C and C++
 * share here.
 *
 * Threads: a compiled regex is immutable; hearth_regex_matches, _occurs and _find are safe.
 */
#ifndef HEARTH_QUERY_REGEX_RE2_H
#define HEARTH_QUERY_REGEX_RE2_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hearth_regex;

/*
 * Compile: '.' matches newline, the match is anchored at both ends, nothing is captured.
 * NULL on failure; then *ret_msg (at most msg_bytes, NUL-terminated) says why, and is empty when
 * memory was refused.
 */
struct hearth_regex *hearth_regex_new(const char *pattern, size_t n_bytes, char *ret_msg,
                                      size_t msg_bytes);
void hearth_regex_free(struct hearth_regex *regex); /* NULL-safe */
bool hearth_regex_matches(const struct hearth_regex *regex, const char *value, size_t n_bytes);
/* The same without anchors. */
bool hearth_regex_occurs(const struct hearth_regex *regex, const char *value, size_t n_bytes);
/* Where, at or after `from`. */
bool hearth_regex_find(const struct hearth_regex *regex, const char *value, size_t n_bytes,
                       size_t from, size_t *ret_from, size_t *ret_to);

#ifdef __cplusplus
}
#endif

#endif
