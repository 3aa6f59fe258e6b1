/* jfr_cursor.c -- reads the numbers and texts of a chunk. */
#include "jfr/jfr_cursor.h"

#include <assert.h>
#include <endian.h>

#define MAX_UTF8_BYTES 3 /* of one UTF-16 code unit; a pair of two units has 4 */

uint64_t hearth_jfr_long_int(struct jfr_cursor *c)
{
    uint64_t value = 0;

    for (unsigned shift = 0; c->at < c->end; shift += 7) {
        uint64_t byte = *c->at++;
        if (shift == 56) { /* the ninth byte has no flag */
            return value | byte << 56;
        }
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            return value;
        }
    }

    return jfr_fail(c);
}

void hearth_jfr_skip_ints(struct jfr_cursor *c, uint64_t n)
{
    const uint64_t flags = UINT64_C(0x8080808080808080);

    /*
     * Eight bytes at a time, always from the beginning of an integer: those that end within them
     * have at most eight bytes, each of which has a flag.
     */
    while (n >= sizeof flags && (size_t)(c->end - c->at) >= sizeof flags) {
        uint64_t bytes, ends;
        memcpy(&bytes, c->at, sizeof bytes);
        ends = ~le64toh(bytes) & flags;
        if (ends == 0) {
            (void)jfr_int(c);
            n--;
            continue;
        }
        n -= (ends >> 7) * UINT64_C(0x0101010101010101) >> 56; /* the sum of the bytes */
        c->at += sizeof ends - (unsigned)__builtin_clzll(ends) / 8;
    }

    for (; n > 0 && !c->failed; n--) {
        (void)jfr_int(c);
    }
}

void hearth_jfr_skip_text(struct jfr_cursor *c)
{
    switch (jfr_byte(c)) {
    case JFR_TEXT_NULL:
    case JFR_TEXT_EMPTY:
        return;
    case JFR_TEXT_CONSTANT:
        (void)jfr_int(c);
        return;
    case JFR_TEXT_UTF8:
    case JFR_TEXT_LATIN1:
        jfr_skip(c, jfr_int(c));
        return;
    case JFR_TEXT_CHARS:
        for (uint64_t n = jfr_int(c); n > 0 && !c->failed; n--) {
            (void)jfr_int(c);
        }
        return;
    default:
        (void)jfr_fail(c);
    }
}

static bool is_high_half(uint32_t unit)
{
    return unit >= 0xD800 && unit < 0xDC00;
}

static bool is_low_half(uint32_t unit)
{
    return unit >= 0xDC00 && unit < 0xE000;
}

/* n UTF-16 code units as UTF-8; half a pair becomes U+FFFD. */
static struct hearth_str read_chars(struct jfr_cursor *c, uint64_t n, struct hearth_arena *arena)
{
    uint32_t high = 0; /* the first half of a pair; 0: none */

    /* A code unit has at least one byte, so the length is bounded before memory is allocated. */
    if (n > (uint64_t)(c->end - c->at)) {
        (void)jfr_fail(c);
        return HEARTH_STR("");
    }

    char *text = hearth_arena_array(arena, (size_t)n + 1, MAX_UTF8_BYTES);
    size_t n_bytes = 0;
    for (uint64_t i = 0; i < n && text != NULL; i++) {
        uint32_t unit = (uint32_t)jfr_int(c) & 0xFFFF;
        if (high != 0 && is_low_half(unit)) {
            n_bytes += hearth_str_utf8_put(text + n_bytes,
                                           0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00));
            high = 0;
            continue;
        }

        /* A pair has 4 bytes of UTF-8, which two units leave room for. */
        if (high != 0) {
            n_bytes += hearth_str_utf8_put(text + n_bytes, 0xFFFD);
        }
        high = is_high_half(unit) ? unit : 0;
        if (high == 0) {
            n_bytes += hearth_str_utf8_put(text + n_bytes, is_low_half(unit) ? 0xFFFD : unit);
        }
    }

    if (text != NULL && high != 0) {
        n_bytes += hearth_str_utf8_put(text + n_bytes, 0xFFFD);
    }

    return text == NULL ? HEARTH_STR("") : hearth_str_n(text, n_bytes);
}

static struct hearth_str read_bytes(struct jfr_cursor *c, uint64_t n)
{
    struct hearth_str bytes = hearth_str_n((const char *)c->at, (size_t)n);
    jfr_skip(c, n);
    return c->failed ? HEARTH_STR("") : bytes;
}

static struct hearth_str mend_latin1(struct hearth_str bytes, struct hearth_arena *arena)
{
    size_t i = 0, n = 0;
    while (i < bytes.n && (unsigned char)bytes.p[i] < 0x80) {
        i++;
    }
    if (i == bytes.n) {
        return bytes;
    }

    char *text = hearth_arena_array(arena, bytes.n, 2);
    for (i = 0; i < bytes.n && text != NULL; i++) {
        n += hearth_str_utf8_put(text + n, (unsigned char)bytes.p[i]);
    }

    return text == NULL ? HEARTH_STR("") : hearth_str_n(text, n);
}

enum jfr_text_kind hearth_jfr_text(struct jfr_cursor *c, struct hearth_arena *arena,
                                   struct hearth_str *ret, uint64_t *ret_constant)
{
    uint8_t kind = jfr_byte(c);

    assert(ret != NULL && ret_constant != NULL);
    *ret = HEARTH_STR("");
    *ret_constant = 0;

    switch (kind) {
    case JFR_TEXT_NULL:
    case JFR_TEXT_EMPTY:
        break;
    case JFR_TEXT_CONSTANT:
        *ret_constant = jfr_int(c);
        break;
    case JFR_TEXT_UTF8:
        *ret = read_bytes(c, jfr_int(c));
        break;
    case JFR_TEXT_LATIN1:
        *ret = mend_latin1(read_bytes(c, jfr_int(c)), arena);
        break;
    case JFR_TEXT_CHARS:
        *ret = read_chars(c, jfr_int(c), arena);
        break;
    default:
        (void)jfr_fail(c);
    }

    return c->failed ? JFR_TEXT_NULL : (enum jfr_text_kind)kind;
}
