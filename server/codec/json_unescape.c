/* json_unescape.c -- escapes of JSON strings as UTF-8. */
#include "json_unescape.h"

#define REPLACEMENT_CHARACTER 0xFFFDu

/* The value of four hexadecimal digits at `at`; UINT32_MAX if other bytes are there. */
static uint32_t read_hex4(struct hearth_str text, size_t at)
{
    uint64_t value;

    if (at + 4 > text.n || !hearth_str_hex_to_u64(hearth_str_n(text.p + at, 4), &value)) {
        return UINT32_MAX;
    }

    return (uint32_t)value;
}

/* The character of \uXXXX, whose digits begin at *at, and of the pair that it may begin. */
static uint32_t take_escaped_character(struct hearth_str text, size_t *at)
{
    uint32_t c = read_hex4(text, *at);

    if (c == UINT32_MAX) {
        return c;
    }

    *at += 4;
    bool is_pair = c >= 0xD800 && c < 0xDC00 && *at + 6 <= text.n && text.p[*at] == '\\' &&
                   text.p[*at + 1] == 'u';
    uint32_t low = is_pair ? read_hex4(text, *at + 2) : UINT32_MAX;
    if (low >= 0xDC00 && low < 0xE000) {
        *at += 6;
        return 0x10000u + ((c - 0xD800u) << 10) + (low - 0xDC00u);
    }

    return c == 0 || (c >= 0xD800 && c < 0xE000) ? REPLACEMENT_CHARACTER : c;
}

size_t json_unescape(struct hearth_str text, char *out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    size_t n = 0;

    for (size_t i = 0; i < text.n;) {
        if (text.p[i] != '\\') {
            out[n++] = text.p[i++];
            continue;
        }

        char c = i + 1 < text.n ? text.p[i + 1] : '\0';
        const char *name = c == '\0' ? NULL : strchr(names, c);
        i += 2;
        if (name != NULL) {
            out[n++] = values[name - names];
            continue;
        }

        uint32_t character = c == 'u' ? take_escaped_character(text, &i) : UINT32_MAX;
        if (character == UINT32_MAX) {
            return SIZE_MAX;
        }
        n += hearth_str_utf8_put(out + n, character);
    }

    return n;
}
