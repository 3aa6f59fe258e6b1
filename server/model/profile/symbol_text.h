/*
 * symbol_text.h -- helpers to take names of functions apart (private to the model). A result
 * borrows from its argument.
 *
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_SYMBOL_TEXT_H
#define HEARTH_MODEL_SYMBOL_TEXT_H

#include "hearth/base/str.h"

#define NOWHERE SIZE_MAX /* no position */

static inline struct hearth_str cut_head(struct hearth_str s, size_t n)
{
    return hearth_str_n(s.p, n < s.n ? n : s.n);
}

static inline struct hearth_str cut_tail(struct hearth_str s, size_t from)
{
    return from < s.n ? hearth_str_n(s.p + from, s.n - from) : hearth_str_n("", 0);
}

static inline size_t find_last_char(struct hearth_str s, char c)
{
    size_t i = s.n;
    while (i > 0 && s.p[i - 1] != c) {
        i--;
    }
    return i == 0 ? NOWHERE : i - 1;
}

static inline size_t find_char(struct hearth_str s, char c)
{
    size_t at = hearth_str_find(s, c, 0);
    return at == s.n ? NOWHERE : at;
}

/* Position of the first occurrence of `what`, or NOWHERE. */
static inline size_t find_text(struct hearth_str s, const char *what)
{
    const char *at = s.n == 0 ? NULL : memmem(s.p, s.n, what, strlen(what));
    return at == NULL ? NOWHERE : (size_t)(at - s.p);
}

static inline size_t find_last_text(struct hearth_str s, const char *what)
{
    size_t n = strlen(what);
    for (size_t i = s.n; i >= n; i--) {
        if (memcmp(s.p + i - n, what, n) == 0) {
            return i - n;
        }
    }
    return NOWHERE;
}

static inline bool starts_with(struct hearth_str s, const char *prefix)
{
    return hearth_str_starts(s, hearth_str_c(prefix));
}

static inline bool ends_with(struct hearth_str s, const char *suffix)
{
    return hearth_str_ends(s, hearth_str_c(suffix));
}

static inline bool is_upper(struct hearth_str s)
{
    return s.n > 0 && s.p[0] >= 'A' && s.p[0] <= 'Z';
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline struct hearth_str no_part(void)
{
    return hearth_str_n("", 0);
}

static inline struct hearth_str cut_base_name(struct hearth_str path)
{
    size_t i = path.n;
    while (i > 0 && path.p[i - 1] != '/' && path.p[i - 1] != '\\') {
        i--;
    }
    return cut_tail(path, i);
}

#endif
