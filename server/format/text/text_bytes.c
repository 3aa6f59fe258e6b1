/* text_bytes.c -- converts UTF-16, which Windows shells write to redirected output, to UTF-8. */
#include "text/text_bytes.h"

#include <assert.h>

static bool is_big_endian(struct hearth_str bytes)
{
    return hearth_str_starts(bytes, HEARTH_STR("\xFE\xFF"));
}

bool hearth_text_is_utf16(struct hearth_str bytes)
{
    return is_big_endian(bytes) || hearth_str_starts(bytes, HEARTH_STR("\xFF\xFE"));
}

static uint32_t read_unit(struct hearth_str text, size_t i, bool big)
{
    assert(i + 1 < text.n);

    uint32_t first = (unsigned char)text.p[i], second = (unsigned char)text.p[i + 1];
    return big ? first << 8 | second : second << 8 | first;
}

bool hearth_text_to_utf8(struct hearth_str bytes, struct hearth_arena *arena,
                         struct hearth_str *ret)
{
    if (!hearth_text_is_utf16(bytes)) {
        size_t mark = hearth_str_starts(bytes, HEARTH_STR("\xEF\xBB\xBF")) ? 3 : 0;
        *ret = hearth_str_n(bytes.p + mark, bytes.n - mark);
        return true;
    }

    /* A code unit becomes at most three bytes, a surrogate pair four. */
    bool big = is_big_endian(bytes);
    struct hearth_str text = hearth_str_n(bytes.p + 2, bytes.n - 2);
    char *out = hearth_arena_array(arena, text.n / 2 + 1, 3);
    if (out == NULL) {
        return false;
    }

    size_t n = 0;
    for (size_t i = 0; i + 1 < text.n; i += 2) {
        uint32_t c = read_unit(text, i, big);
        if (c >= 0xD800 && c < 0xE000) {
            /* Half of a surrogate pair: valid only with the other half. */
            uint32_t low = c < 0xDC00 && i + 3 < text.n ? read_unit(text, i + 2, big) : 0;
            if (low >= 0xDC00 && low < 0xE000) {
                c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
                i += 2;
            } else {
                c = 0xFFFD;
            }
        }

        n += hearth_str_utf8_put(out + n, c);
    }

    assert(n <= text.n / 2 * 3);
    *ret = hearth_str_n(out, n);
    return true;
}
