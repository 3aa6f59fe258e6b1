/*
 * str.h -- a borrowed piece of text or bytes: pointer and length, not necessarily NUL-terminated.
 *
 * Strings are passed as `struct hearth_str` by value; NUL-terminated char * is only used with C
 * libraries.
 *
 * Threads: pure.
 */
#ifndef HEARTH_BASE_STR_H
#define HEARTH_BASE_STR_H

#include "hearth/base/compiler.h"

#include <string.h>

struct hearth_str {
    const char *p;
    size_t n;
};

#define HEARTH_STR(literal) ((struct hearth_str){"" literal, sizeof(literal) - 1})
#define HEARTH_STR_FMT      "%.*s"
/* For "%.*s": at most 256 bytes, so that messages stay short. */
#define HEARTH_STR_ARG(s) (int)((s).n > 256 ? 256 : (s).n), ((s).n ? (s).p : "")

static inline struct hearth_str hearth_str_c(const char *c)
{
    return (struct hearth_str){c, c ? strlen(c) : 0};
}

static inline struct hearth_str hearth_str_n(const char *p, size_t n)
{
    return (struct hearth_str){p, n};
}

static inline bool hearth_str_eq(struct hearth_str a, struct hearth_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool hearth_str_eq_c(struct hearth_str a, const char *c)
{
    return hearth_str_eq(a, hearth_str_c(c));
}

/*
 * Compares bytes; of two strings with a common prefix the shorter one is less. Returns <0, 0 or >0.
 */
int hearth_str_cmp(struct hearth_str a, struct hearth_str b);
bool hearth_str_starts(struct hearth_str s, struct hearth_str prefix);
bool hearth_str_ends(struct hearth_str s, struct hearth_str suffix);
bool hearth_str_eq_nocase(struct hearth_str a, struct hearth_str b); /* ASCII */
/* Compares in a time that does not depend on the secret, not even on its length. */
bool hearth_str_eq_secret(struct hearth_str given, struct hearth_str secret);
/* Index of the first `c` at or after `from`; s.n if there is none. */
size_t hearth_str_find(struct hearth_str s, char c, size_t from);
struct hearth_str hearth_str_trim(struct hearth_str s); /* ASCII white space, both ends */
/* True when s is well-formed UTF-8 (no surrogates, no overlong forms) without NUL. */
bool hearth_str_utf8_valid(struct hearth_str s);
/* Replace, in place, each NUL and each byte that is not part of a well-formed character by '?'. */
void hearth_str_utf8_mend(char *text, size_t n);
/* Writes a character up to U+10FFFF, which takes one to four bytes; returns their number. */
size_t hearth_str_utf8_put(char *out, uint32_t c);

/* Parse the whole string as a decimal number; false for empty text, other bytes, or overflow. */
bool hearth_str_to_i64(struct hearth_str s, int64_t *ret);
bool hearth_str_to_u64(struct hearth_str s, uint64_t *ret);
/* Finite decimals of at most 63 bytes; very small values may round to 0. */
bool hearth_str_to_double(struct hearth_str s, double *ret);
/* 1 to 16 hexadecimal digits in either case, nothing else. */
bool hearth_str_hex_to_u64(struct hearth_str s, uint64_t *ret);

#endif
