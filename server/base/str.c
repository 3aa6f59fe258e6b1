/* str.c -- comparisons and whole-string number parsing over counted text. */
#include "hearth/base/str.h"

#include <assert.h>
#include <float.h>
#include <stdlib.h>

int hearth_str_cmp(struct hearth_str a, struct hearth_str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n == 0 ? 0 : memcmp(a.p, b.p, n);
    if (order != 0) {
        return order;
    }

    return a.n < b.n ? -1 : a.n > b.n;
}

bool hearth_str_starts(struct hearth_str s, struct hearth_str prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

bool hearth_str_ends(struct hearth_str s, struct hearth_str suffix)
{
    return s.n >= suffix.n &&
           (suffix.n == 0 || memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

static unsigned char to_lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

bool hearth_str_eq_nocase(struct hearth_str a, struct hearth_str b)
{
    if (a.n != b.n) {
        return false;
    }

    for (size_t i = 0; i < a.n; i++) {
        if (to_lower(a.p[i]) != to_lower(b.p[i])) {
            return false;
        }
    }

    return true;
}

bool hearth_str_eq_secret(struct hearth_str given, struct hearth_str secret)
{
    /* volatile: the compiler must not end the loop early. */
    volatile unsigned char differs = given.n != secret.n;
    for (size_t i = 0; i < given.n; i++) {
        const char *against = i < secret.n ? secret.p + i : given.p + i;
        differs |= (unsigned char)(given.p[i] ^ *against);
    }

    return differs == 0;
}

size_t hearth_str_find(struct hearth_str s, char c, size_t from)
{
    if (from >= s.n) {
        return s.n;
    }
    const char *at = memchr(s.p + from, c, s.n - from);
    return at == NULL ? s.n : (size_t)(at - s.p);
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct hearth_str hearth_str_trim(struct hearth_str s)
{
    while (s.n > 0 && is_space(s.p[0])) {
        s.p++;
        s.n--;
    }

    while (s.n > 0 && is_space(s.p[s.n - 1])) {
        s.n--;
    }

    return s;
}

bool hearth_str_utf8_valid(struct hearth_str s)
{
    if (s.n == 0) {
        return true;
    }

    const unsigned char *p = (const unsigned char *)s.p;
    const unsigned char *end = p + s.n;
    while (p < end) {
        /* Eight ASCII bytes at a time; NUL bytes take the slow path. */
        if (end - p >= 8) {
            uint64_t w;
            memcpy(&w, p, 8);
            bool ascii = (w & 0x8080808080808080ull) == 0;
            bool has_nul = ((w - 0x0101010101010101ull) & ~w & 0x8080808080808080ull) != 0;
            if (ascii && !has_nul) {
                p += 8;
                continue;
            }
        }

        unsigned char c = *p;
        size_t more;
        unsigned char low = 0x80, high = 0xBF;
        if (c < 0x80) {
            if (c == 0) {
                return false;
            }
            p++;
            continue;
        }

        /* The number of continuation bytes, and the range of the first one (RFC 3629). */
        if (c >= 0xC2 && c <= 0xDF) {
            more = 1;
        } else if (c >= 0xE0 && c <= 0xEF) {
            more = 2;
            low = c == 0xE0 ? 0xA0 : 0x80;
            high = c == 0xED ? 0x9F : 0xBF;
        } else if (c >= 0xF0 && c <= 0xF4) {
            more = 3;
            low = c == 0xF0 ? 0x90 : 0x80;
            high = c == 0xF4 ? 0x8F : 0xBF;
        } else {
            return false;
        }

        if ((size_t)(end - p) <= more || p[1] < low || p[1] > high) {
            return false;
        }

        for (size_t i = 2; i <= more; i++) {
            if ((p[i] & 0xC0) != 0x80) {
                return false;
            }
        }

        p += more + 1;
    }

    return true;
}

void hearth_str_utf8_mend(char *text, size_t n)
{
    for (size_t i = 0, k; i < n; i += k) {
        k = 1;
        while (k <= 4 && k <= n - i && !hearth_str_utf8_valid(hearth_str_n(text + i, k))) {
            k++;
        }
        if (k > 4 || k > n - i) {
            text[i] = '?';
            k = 1;
        }
    }
}

size_t hearth_str_utf8_put(char *out, uint32_t c)
{
    assert(out != NULL && c <= 0x10FFFF);

    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }

    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }

    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }

    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));

    return 4;
}

bool hearth_str_to_u64(struct hearth_str s, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(s.p[i] - '0'), &value)) {
            return false;
        }
    }

    if (s.n == 0) {
        return false;
    }

    *ret = value;
    return true;
}

bool hearth_str_to_i64(struct hearth_str s, int64_t *ret)
{
    bool negative = s.n > 0 && s.p[0] == '-';
    if (negative) {
        s.p++;
        s.n--;
    }

    uint64_t magnitude;
    if (!hearth_str_to_u64(s, &magnitude) || magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        return false;
    }

    *ret = (int64_t)(negative ? 0 - magnitude : magnitude);
    return true;
}

bool hearth_str_to_double(struct hearth_str s, double *ret)
{
    char text[64];
    if (s.n == 0 || s.n >= sizeof text) {
        return false;
    }

    /* strtod also accepts white space, hexadecimal, "inf" and "nan": refuse them here. */
    for (size_t i = 0; i < s.n; i++) {
        if (!(s.p[i] >= '0' && s.p[i] <= '9') && strchr("+-.eE", s.p[i]) == NULL) {
            return false;
        }
    }

    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    char *end;
    double value = strtod(text, &end);
    if (end != text + s.n || value > DBL_MAX || value < -DBL_MAX) {
        return false;
    }

    *ret = value;
    return true;
}

/*
 * The value of a hexadecimal digit plus 1; 0: not a digit. A table, since a profile of spans has
 * hundreds of ids.
 */
static const uint8_t hex_digits[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

bool hearth_str_hex_to_u64(struct hearth_str s, uint64_t *ret)
{
    if (s.n == 0 || s.n > 16) {
        return false;
    }

    uint64_t value = 0;
    unsigned wrong = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned digit = hex_digits[(unsigned char)s.p[i]] - 1u; /* all bits set: not a digit */
        wrong |= digit;
        value = value << 4 | (digit & 15);
    }

    if (wrong > 15) {
        return false;
    }

    *ret = value;
    return true;
}
