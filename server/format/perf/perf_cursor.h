/*
 * perf_cursor.h -- reads the little-endian numbers and texts of a recording (private to the reader
 * of perf.data).
 *
 * Faults are sticky: a read beyond the end sets `failed` and returns 0, so that callers check once
 * per record. No read can leave the bytes.
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_FORMAT_PERF_CURSOR_H
#define HEARTH_FORMAT_PERF_CURSOR_H

#include "hearth/base/arena.h"
#include "hearth/base/compiler.h"
#include "hearth/base/str.h"

#include <string.h>

struct perf_cursor {
    const uint8_t *at, *end;
    bool failed;
};

static inline struct perf_cursor perf_cursor_at(struct hearth_str bytes)
{
    const uint8_t *p = (const uint8_t *)bytes.p;

    return (struct perf_cursor){p, p == NULL ? NULL : p + bytes.n, false};
}

static inline size_t perf_left(const struct perf_cursor *c)
{
    return (size_t)(c->end - c->at);
}

static inline void perf_skip(struct perf_cursor *c, uint64_t n)
{
    if (n <= perf_left(c)) {
        c->at += n;
    } else {
        c->failed = true;
        c->at = c->end;
    }
}

/* An unsigned number of n bytes, 1 to 8. */
HEARTH_ALWAYS_INLINE uint64_t perf_number(struct perf_cursor *c, size_t n)
{
    const uint8_t *from = c->at;
    uint64_t value = 0;

    perf_skip(c, n);
    if (HEARTH_UNLIKELY(c->failed)) {
        return 0;
    }
    for (size_t i = n; i > 0; i--) {
        value = value << 8 | from[i - 1];
    }

    return value;
}

HEARTH_ALWAYS_INLINE uint16_t perf_u16(struct perf_cursor *c)
{
    return (uint16_t)perf_number(c, 2);
}

HEARTH_ALWAYS_INLINE uint32_t perf_u32(struct perf_cursor *c)
{
    return (uint32_t)perf_number(c, 4);
}

HEARTH_ALWAYS_INLINE uint64_t perf_u64(struct perf_cursor *c)
{
    return perf_number(c, 8);
}

/* The next n bytes; empty after a fault. */
static inline struct hearth_str perf_bytes(struct perf_cursor *c, uint64_t n)
{
    const uint8_t *from = c->at;

    perf_skip(c, n);

    return c->failed ? hearth_str_n("", 0) : hearth_str_n((const char *)from, (size_t)n);
}

/* A build id as hexadecimal digits, in the arena; .p is NULL if memory is refused. */
static inline struct hearth_str perf_hex(struct hearth_str bytes, struct hearth_arena *arena)
{
    char *text = hearth_arena_alloc(arena, 2 * bytes.n + 1);

    for (size_t i = 0; text != NULL && i < bytes.n; i++) {
        text[2 * i] = "0123456789abcdef"[(uint8_t)bytes.p[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[bytes.p[i] & 15];
    }

    return hearth_str_n(text, text == NULL ? 0 : 2 * bytes.n);
}

/* The text in the next n bytes, which ends at its first NUL, if any. */
static inline struct hearth_str perf_text(struct perf_cursor *c, uint64_t n)
{
    struct hearth_str bytes = perf_bytes(c, n);
    const char *nul = bytes.n == 0 ? NULL : memchr(bytes.p, 0, bytes.n);

    return nul == NULL ? bytes : hearth_str_n(bytes.p, (size_t)(nul - bytes.p));
}

#endif
