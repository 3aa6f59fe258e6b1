/*
 * str.h -- a borrowed piece of text or bytes: pointer and length, no terminator promised.
 *
 * `struct hearth_str` by value is *the* string parameter; char * with NUL only at C-library
 * borders.
 * Threads:   pure functions.
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

/* Byte order; shorter first on a tie. <0, 0, >0. */
int hearth_str_cmp(struct hearth_str a, struct hearth_str b);
bool hearth_str_starts(struct hearth_str s, struct hearth_str prefix);
bool hearth_str_ends(struct hearth_str s, struct hearth_str suffix);
bool hearth_str_eq_nocase(struct hearth_str a, struct hearth_str b); /* ASCII */
/* How long it takes says nothing about the secret, not even how long it is. */
bool hearth_str_eq_secret(struct hearth_str given, struct hearth_str secret);
/* Index of the first `c` at or after `from`, or s.n. */
size_t hearth_str_find(struct hearth_str s, char c, size_t from);
struct hearth_str hearth_str_trim(struct hearth_str s); /* ASCII white space, both ends */
/* True when s is well-formed UTF-8 (no surrogates, no overlong forms) without NUL. */
bool hearth_str_utf8_valid(struct hearth_str s);
/* In place: every NUL, and every byte that belongs to no well-formed character, becomes '?'. */
void hearth_str_utf8_mend(char *text, size_t n);

/* Whole-string decimal parsing; false on empty text, other bytes, or overflow. */
bool hearth_str_to_i64(struct hearth_str s, int64_t *ret);
bool hearth_str_to_u64(struct hearth_str s, uint64_t *ret);
/* Finite decimals of at most 63 bytes; tiny ones may round to 0. */
bool hearth_str_to_double(struct hearth_str s, double *ret);
/* Hex digits only (either case), 1 to 16 of them. */
bool hearth_str_hex_to_u64(struct hearth_str s, uint64_t *ret);

#endif
