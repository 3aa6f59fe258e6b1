/*
 * regex_re2.h -- a C interface to RE2. Private to the selector layer; the only header that C and
 * C++ share here.
 *
 * Threads: a compiled regex is immutable; hearth_regex_matches, _occurs and _find are safe.
 */
#ifndef HEARTH_SELECTOR_REGEX_RE2_H
#define HEARTH_SELECTOR_REGEX_RE2_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hearth_regex;

/*
 * Compile: '.' matches newline, nothing is captured. NULL on failure; ret_msg (at most msg_bytes,
 * NUL-terminated) is then the reason, or empty if memory was refused.
 */
struct hearth_regex *hearth_regex_new(const char *pattern, size_t n_bytes, char *ret_msg,
                                      size_t msg_bytes);
void hearth_regex_free(struct hearth_regex *regex); /* NULL-safe */
/* Match the whole value (anchored at both ends). */
bool hearth_regex_matches(const struct hearth_regex *regex, const char *value, size_t n_bytes);
/* Match anywhere in the value. */
bool hearth_regex_occurs(const struct hearth_regex *regex, const char *value, size_t n_bytes);
/* Find the first match at or after `from`, from <= n_bytes. */
bool hearth_regex_find(const struct hearth_regex *regex, const char *value, size_t n_bytes,
                       size_t from, size_t *ret_from, size_t *ret_to);

#ifdef __cplusplus
}
#endif

#endif
