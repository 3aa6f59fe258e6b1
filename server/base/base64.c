/* base64.c -- RFC 4648: encodes with the standard alphabet, decodes both alphabets. */
#include "hearth/base/base64.h"

#include <assert.h>

static const char g_digits[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void hearth_base64_encode(struct hearth_str in, struct hearth_buf *out)
{
    assert(in.p != NULL || in.n == 0);

    const unsigned char *from = (const unsigned char *)in.p;

    if (in.n > SIZE_MAX / 2) {
        out->failed = true;
        return;
    }

    size_t n_out = (in.n + 2) / 3 * 4;
    char *to = hearth_buf_reserve(out, n_out);
    if (to == NULL || n_out == 0) {
        return;
    }

    size_t i = 0;
    for (; in.n - i >= 3; i += 3) {
        uint32_t bits = (uint32_t)from[i] << 16 | (uint32_t)from[i + 1] << 8 | from[i + 2];
        *to++ = g_digits[bits >> 18];
        *to++ = g_digits[bits >> 12 & 63];
        *to++ = g_digits[bits >> 6 & 63];
        *to++ = g_digits[bits & 63];
    }

    /* One or two bytes are left: two or three digits and padding. */
    if (i < in.n) {
        bool two = in.n - i == 2;
        uint32_t bits = (uint32_t)from[i] << 16 | (two ? (uint32_t)from[i + 1] << 8 : 0);
        *to++ = g_digits[bits >> 18];
        *to++ = g_digits[bits >> 12 & 63];
        *to++ = two ? g_digits[bits >> 6 & 63] : '=';
        *to++ = '=';
    }

    out->n += n_out;
}

/* The value of one digit of either alphabet; 64 for any other byte. */
static uint32_t digit_value(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return (uint32_t)(c - 'A');
    }
    if (c >= 'a' && c <= 'z') {
        return (uint32_t)(c - 'a') + 26;
    }
    if (c >= '0' && c <= '9') {
        return (uint32_t)(c - '0') + 52;
    }
    if (c == '+' || c == '-') {
        return 62;
    }

    return c == '/' || c == '_' ? 63 : 64;
}

/* Remove "=" or "=="; false if the padding does not complete a group of four digits. */
static bool remove_padding(struct hearth_str *in)
{
    size_t n = in->n;
    while (n > 0 && in->n - n < 2 && in->p[n - 1] == '=') {
        n--;
    }

    if (n != in->n && in->n % 4 != 0) {
        return false;
    }

    in->n = n;

    return n % 4 != 1;
}

bool hearth_base64_decode(struct hearth_str in, struct hearth_arena *arena, struct hearth_str *ret)
{
    if (!remove_padding(&in)) {
        return false;
    }

    size_t n_out = in.n / 4 * 3 + (in.n % 4 == 0 ? 0 : in.n % 4 - 1);
    char *out = hearth_arena_alloc(arena, n_out);
    if (out == NULL) {
        return false;
    }

    /* Bits after the last whole byte are ignored, as in other common decoders. */
    uint32_t bits = 0;
    unsigned n_bits = 0;
    size_t n = 0;
    for (size_t i = 0; i < in.n; i++) {
        uint32_t value = digit_value(in.p[i]);
        if (value == 64) {
            return false;
        }
        bits = bits << 6 | value;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[n++] = (char)(unsigned char)(bits >> n_bits);
        }
    }

    assert(n == n_out);
    *ret = hearth_str_n(out, n);
    return true;
}
