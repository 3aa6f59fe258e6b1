/*
 * redact.h -- removal of secrets from captured data before they are stored.
 *
 * A rule is a name or /expression/:
 *   name          of a header, or of a field of JSON, XML, YAML, a form or a URL query: its value
 *                 is removed. Case, '-' and '_' are ignored, and %XX, %25XX, \uXXXX and &quot; are
 *                 decoded. With * at its beginning, names that end with it match too; with * at its
 *                 end, names that begin with it. A field "value" or "val" after a field "name" or
 *                 "key" with the name is removed too. Values in quotes end with the quotes, also
 *                 in JSON within JSON; arrays and objects are removed as a whole, headers with
 *                 their continuation lines.
 *   /expression/  RE2, anywhere: each match is removed.
 *
 * In doubt, too much is removed rather than too little: a value without an end extends to the end
 * of the text. Removed text becomes HEARTH_REDACTED.
 *
 * Only the text is examined, not its meaning: secrets in compressed, encrypted or otherwise encoded
 * data are not found.
 *
 * Ownership: the caller frees. Threads: immutable once made.
 * Errors:    INVALID_ARGUMENT (names the rule), NO_MEMORY.
 */
#ifndef HEARTH_ENGINE_REDACT_H
#define HEARTH_ENGINE_REDACT_H

#include "hearth/base/buf.h"

#define HEARTH_REDACTED "[redacted]"

struct hearth_redactor;

HEARTH_MUST_CHECK
enum hearth_status
hearth_redactor_new(const char *const *rules, /* NULL-terminated; NULL: no rules */
                    struct hearth_redactor **ret, struct hearth_err *err);
void hearth_redactor_free(struct hearth_redactor *redactor); /* NULL-safe */

/*
 * Whether the last word of a tag's name is a name of a rule (http.header.cookie, headers[Cookie]).
 */
bool hearth_redact_is_name(const struct hearth_redactor *redactor, struct hearth_str name);
/*
 * Append the text without secrets; returns the number of removed ones. A failed buffer must not be
 * used.
 */
size_t hearth_redact(const struct hearth_redactor *redactor, struct hearth_str text,
                     struct hearth_buf *out);

#endif
