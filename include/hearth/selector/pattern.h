/*
 * pattern.h -- a regular expression looked for anywhere in a text: searches over function names.
 *
 * RE2's, '.' matches newline; unlike a matcher's (matcher.h) it is not anchored.
 *
 * Limits:  16 KiB of text, 1 MiB compiled and cached.
 * Threads: immutable after compilation; hearth_pattern_occurs is safe.
 */
#ifndef HEARTH_QUERY_PATTERN_H
#define HEARTH_QUERY_PATTERN_H

#include "hearth/base/status.h"
#include "hearth/base/str.h"

struct hearth_pattern;

/* INVALID_ARGUMENT begins with `field`, the name of what the caller can mend; NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_pattern_new(struct hearth_str text, const char *field,
                                      struct hearth_pattern **ret_pattern, struct hearth_err *err);
void hearth_pattern_free(struct hearth_pattern *pattern); /* NULL-safe */

bool hearth_pattern_occurs(const struct hearth_pattern *pattern, struct hearth_str text);
/* The first match at or after `from`, which is within the text; it may be empty. */
bool hearth_pattern_find(const struct hearth_pattern *pattern, struct hearth_str text, size_t from,
                         size_t *ret_from, size_t *ret_to);

#endif
