/*
 * jfr_cursor.h -- reads the numbers and texts of a chunk (private to the JFR reader).
 *
 * Faults are sticky: a read beyond the end sets `failed`, returns 0 and leaves the cursor at the
 * end, so that callers check once per event or table. No read can leave the bytes.
 *
 * Threads: not thread-safe.
 * Source:  OpenJDK's Flight Recorder, file format 2.0: compressed integers have 1 to 9 bytes of 7
 *          bits, least significant first; the ninth byte has 8 bits. Floating point numbers and the
 *          chunk header are big-endian.
 */
#ifndef HEARTH_FORMAT_JFR_CURSOR_H
#define HEARTH_FORMAT_JFR_CURSOR_H

#include "hearth/base/arena.h"
#include "hearth/base/compiler.h"
#include "hearth/base/str.h"

#include <string.h>

struct jfr_cursor {
    const uint8_t *at, *end;
    bool failed;
};

/* The first byte of a text. */
enum jfr_text_kind {
    JFR_TEXT_NULL = 0,
    JFR_TEXT_EMPTY = 1,
    JFR_TEXT_CONSTANT = 2, /* a key of the pool of java.lang.String */
    JFR_TEXT_UTF8 = 3,
    JFR_TEXT_CHARS = 4, /* UTF-16 code units, each a compressed integer */
    JFR_TEXT_LATIN1 = 5,
};

HEARTH_ALWAYS_INLINE uint64_t jfr_fail(struct jfr_cursor *c)
{
    c->failed = true;
    c->at = c->end;
    return 0;
}

HEARTH_ALWAYS_INLINE uint8_t jfr_byte(struct jfr_cursor *c)
{
    return HEARTH_LIKELY(c->at < c->end) ? *c->at++ : (uint8_t)jfr_fail(c);
}

HEARTH_ALWAYS_INLINE void jfr_skip(struct jfr_cursor *c, uint64_t n)
{
    if (HEARTH_LIKELY(n <= (uint64_t)(c->end - c->at))) {
        c->at += n;
    } else {
        (void)jfr_fail(c);
    }
}

/* A compressed integer of more than one byte. */
uint64_t hearth_jfr_long_int(struct jfr_cursor *c);

HEARTH_ALWAYS_INLINE uint64_t jfr_int(struct jfr_cursor *c)
{
    if (HEARTH_LIKELY(c->at < c->end && *c->at < 0x80)) {
        return *c->at++;
    }
    return hearth_jfr_long_int(c);
}

/* Moves past n compressed integers. */
void hearth_jfr_skip_ints(struct jfr_cursor *c, uint64_t n);

/* An unsigned number of n bytes, at most 8, most significant first. */
static inline uint64_t jfr_big_endian(struct jfr_cursor *c, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        value = value << 8 | jfr_byte(c);
    }
    return value;
}

/* Moves past a text. */
void hearth_jfr_skip_text(struct jfr_cursor *c);

/*
 * Reads a text as UTF-8. Latin-1 beyond ASCII and UTF-16 are converted in the arena, other texts
 * borrow from the bytes. *ret_constant: the key, if the text is a constant; *ret is then empty.
 * Returns JFR_TEXT_NULL after a fault.
 */
enum jfr_text_kind hearth_jfr_text(struct jfr_cursor *c, struct hearth_arena *arena,
                                   struct hearth_str *ret, uint64_t *ret_constant);

#endif
