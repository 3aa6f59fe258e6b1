/*
 * redact.h -- secrets out of what was captured, before it is stored.
 *
 * A rule is a name, or /expression/:
 *   name         of a header, a field of JSON, XML, YAML, a form or a query: its value goes. Case, '-' and '_' do not
 *                count, and %XX, %25XX, \uXXXX and &quot; are read as what they mean. A field "value" behind a field "name" or
 *                "key" that says the name goes, too. Values in quotes end where the quotes do,
 *                also where JSON stands in JSON; arrays and objects go as a whole; headers with their continuation lines
 *   /expression/ RE2, anywhere: what it matches goes
 * In doubt more goes than less: a value that does not end goes to the end. What goes becomes HEARTH_REDACTED.
 *
 * It is text that is looked at, not its meaning: what is compressed, encrypted or encoded otherwise is not found.
 *
 * Ownership: the caller frees. Threads: immutable once made.
 * Errors:    INVALID_ARGUMENT (a rule, named), NO_MEMORY.
 */
#ifndef HEARTH_ENGINE_REDACT_H
#define HEARTH_ENGINE_REDACT_H

#include "hearth/base/buf.h"

#define HEARTH_REDACTED "[redacted]"

struct hearth_redactor;

HEARTH_MUST_CHECK
enum hearth_status hearth_redactor_new(const char *const *rules, /* NULL-terminated; NULL: none */
                                       struct hearth_redactor **ret, struct hearth_err *err);
void hearth_redactor_free(struct hearth_redactor *redactor); /* NULL-safe */

/* The name of a value that is known to be one: of a tag; its last word (http.header.cookie, headers[Cookie]). */
bool hearth_redact_is_name(const struct hearth_redactor *redactor, struct hearth_str name);
/* Append the text without secrets; returns how many went. A failed buffer must not be used. */
size_t hearth_redact(const struct hearth_redactor *redactor, struct hearth_str text,
                     struct hearth_buf *out);

#endif
