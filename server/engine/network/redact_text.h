/*
 * redact_text.h -- words and values in captured texts (private to redact.c).
 *
 * Texts may be JSON, also within JSON, XML, YAML, forms, URL queries and headers. A word has
 * letters, digits, - and _; %XX, %25XX, \uXXXX and entities of quotes are decoded. All functions
 * look ahead by a bounded number of bytes, or move forward, so a text takes linear time.
 *
 * Threads: pure.
 */
#ifndef HEARTH_ENGINE_REDACT_TEXT_H
#define HEARTH_ENGINE_REDACT_TEXT_H

#include "hearth/base/str.h"

#define HEARTH_REDACT_NAME_BYTES 128u /* the longest name, without separators */

struct hearth_redact_span {
    size_t from, to; /* from == to: no value */
};

static inline char hearth_redact_fold_case(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/*
 * Whether c is ignored in names: accessToken, access_token, Access-Token and --access-token are one
 * name.
 */
static inline bool hearth_redact_is_separator(char c)
{
    return c == '_' || c == '-';
}

static inline bool hearth_redact_is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/*
 * Read the character at `at`, which must be within the text, and the number of bytes that encode
 * it. A character that is not ASCII becomes 0x7f.
 */
char hearth_redact_read_char(struct hearth_str text, size_t at, size_t *ret_n);
/*
 * Read a word from `at` in lower case and without separators, and return its end. *ret_n is its
 * length; 0: it is longer than any name.
 */
size_t hearth_redact_read_word(struct hearth_str text, size_t at,
                               char word[HEARTH_REDACT_NAME_BYTES], size_t *ret_n);
/* Find the value of the name in [from, at). A value without an end extends to the end of text. */
struct hearth_redact_span hearth_redact_find_value(struct hearth_str text, size_t from, size_t at);

#endif
