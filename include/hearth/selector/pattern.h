/*
 * pattern.h -- a regular expression searched anywhere in a text, for searches over function names.
 *
 * RE2's syntax, '.' matches newline; not anchored, unlike a matcher (matcher.h).
 *
 * Limits:  16 KiB of text, 1 MiB compiled and cached.
 * Threads: immutable after compilation; hearth_pattern_occurs and _find are safe.
 */
#ifndef HEARTH_SELECTOR_PATTERN_H
#define HEARTH_SELECTOR_PATTERN_H

#include "hearth/base/status.h"
#include "hearth/base/str.h"

struct hearth_pattern;

/* INVALID_ARGUMENT; its message begins with `field`, the name of the client's field. NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_pattern_new(struct hearth_str text, const char *field,
                                      struct hearth_pattern **ret_pattern, struct hearth_err *err);
void hearth_pattern_free(struct hearth_pattern *pattern); /* NULL-safe */

/* True if the pattern matches anywhere in the text. */
bool hearth_pattern_occurs(const struct hearth_pattern *pattern, struct hearth_str text);
/* The first match at or after `from` (from <= text.n); the match may be empty. */
bool hearth_pattern_find(const struct hearth_pattern *pattern, struct hearth_str text, size_t from,
                         size_t *ret_from, size_t *ret_to);

#endif
