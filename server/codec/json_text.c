/* json_text.c -- JSON strings and numbers as text. */
#include "json_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Length of the well-formed multi-byte character at p, which has n bytes; 0 if there is none. */
static size_t measure_character(const char *p, size_t n)
{
    for (size_t k = 2; k <= 4 && k <= n; k++) {
        if (hearth_str_utf8_valid(hearth_str_n(p, k))) {
            return k;
        }
    }

    return 0;
}

static void put_control(struct hearth_buf *out, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    static const char short_forms[] = "\bb\ff\nn\rr\tt";
    char esc[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
    size_t n = 6;

    for (size_t i = 0; i + 1 < sizeof short_forms; i += 2) {
        if ((unsigned char)short_forms[i] == c) {
            esc[1] = short_forms[i + 1];
            n = 2;
        }
    }

    hearth_buf_append(out, esc, n);
}

/*
 * Append the character, or a replacement for the invalid byte, at p; returns the number of input
 * bytes used.
 */
static size_t put_wide(struct hearth_buf *out, const char *p, size_t n)
{
    size_t k = measure_character(p, n);
    if (k == 0) {
        hearth_buf_cstr(out, "\xef\xbf\xbd");
        return 1;
    }

    /* U+2028 and U+2029 are line ends in old JavaScript. */
    if (k == 3 && memcmp(p, "\xe2\x80", 2) == 0 && ((unsigned char)p[2] & 0xfe) == 0xa8) {
        hearth_buf_cstr(out, (unsigned char)p[2] == 0xa8 ? "\\u2028" : "\\u2029");
    } else {
        hearth_buf_append(out, p, k);
    }

    return k;
}

void hearth_json_text_characters(struct hearth_buf *out, struct hearth_str value)
{
    size_t done = 0;
    for (size_t i = 0; i < value.n;) {
        unsigned char c = (unsigned char)value.p[i];
        if (HEARTH_LIKELY(c >= 0x20 && c < 0x80 && c != '"' && c != '\\')) {
            i++;
            continue;
        }

        /* The plain characters so far, then the escaped one. */
        hearth_buf_append(out, value.p + done, i - done);
        if (c == '"' || c == '\\') {
            hearth_buf_append(out, (const char[]){'\\', value.p[i]}, 2);
            i++;
        } else if (c < 0x20) {
            put_control(out, c);
            i++;
        } else {
            i += put_wide(out, value.p + i, value.n - i);
        }

        done = i;
    }

    if (done < value.n) {
        hearth_buf_append(out, value.p + done, value.n - done);
    }
}

void hearth_json_text_string(struct hearth_buf *out, struct hearth_str value)
{
    hearth_buf_byte(out, '"');
    hearth_json_text_characters(out, value);
    hearth_buf_byte(out, '"');
}

char *hearth_json_text_u64(char *to, uint64_t value)
{
    char digits[HEARTH_JSON_INT_BYTES];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    size_t n = sizeof digits - at;
    memcpy(to, digits + at, n);

    return to + n;
}

char *hearth_json_text_i64(char *to, int64_t value)
{
    if (value >= 0) {
        return hearth_json_text_u64(to, (uint64_t)value);
    }
    *to++ = '-';
    return hearth_json_text_u64(to, 0 - (uint64_t)value);
}

/*
 * Append values that need no search for the shortest digits: NaN, infinities, integers. False: not
 * one of them.
 */
static bool put_simple_number(struct hearth_buf *out, double value)
{
    if (isnan(value)) {
        hearth_buf_cstr(out, "\"NaN\"");
    } else if (isinf(value)) {
        hearth_buf_cstr(out, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    } else if (value > -1e15 && value < 1e15 && floor(value) == value) {
        if (value == 0 && signbit(value)) { /* "-0" would be read as the integer 0 */
            hearth_buf_cstr(out, "-0.0");
            return true;
        }
        char text[HEARTH_JSON_INT_BYTES];
        char *end = hearth_json_text_i64(text, (int64_t)value);
        hearth_buf_append(out, text, (size_t)(end - text));
    } else {
        return false;
    }

    return true;
}

void hearth_json_text_double(struct hearth_buf *out, double value)
{
    if (put_simple_number(out, value)) {
        return;
    }

    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }

    hearth_buf_cstr(out, text);
}

/*
 * Appends a value between 1e-4 and 1, such as a share, in the digits of the general way below but
 * without the C library, which takes a microsecond. A number of at most nine digits and a power of
 * ten are exact as doubles, so their quotient is what a reader makes of the text. False: the
 * general way must be taken.
 */
static bool put_small_float(struct hearth_buf *out, float value)
{
    static const double powers[] = {1e0, 1e1, 1e2, 1e3,  1e4,  1e5,  1e6,
                                    1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13};
    double size = fabs((double)value);
    if (!(size >= 1e-4 && size < 1)) {
        return false;
    }

    /* Find how many zeros follow the point, and the fewest digits that are enough. */
    unsigned n_zeros = size >= 1e-1 ? 0 : size >= 1e-2 ? 1 : size >= 1e-3 ? 2 : 3, n_digits = 6;
    double number = rint(size * powers[n_zeros + n_digits]);
    while ((float)(number / powers[n_zeros + n_digits]) != (float)size) {
        if (++n_digits > 9) {
            return false;
        }
        number = rint(size * powers[n_zeros + n_digits]);
    }

    /* The digits after the point begin with zeros. A number that was rounded to 1 has none. */
    if (number >= powers[n_digits]) {
        return false;
    }
    uint64_t digits = (uint64_t)number;
    for (; digits % 10 == 0; n_digits--) {
        digits /= 10;
    }

    char text[32] = "0.000", *end = hearth_json_text_u64(text + 2 + n_zeros, digits);
    HEARTH_ASSERT((size_t)(end - text) == 2 + n_zeros + n_digits);
    hearth_buf_cstr(out, value < 0 ? "-" : "");
    hearth_buf_append(out, text, (size_t)(end - text));
    return true;
}

void hearth_json_text_float(struct hearth_buf *out, float value)
{
    if (put_simple_number(out, (double)value) || put_small_float(out, value)) {
        return;
    }

    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if ((float)strtod(text, NULL) == value) { /* as our reader converts it */
            break;
        }
    }

    hearth_buf_cstr(out, text);
}
