/*
 * varint.h -- unsigned LEB128 and zigzag, bounds-checked.
 *
 * Threads:   pure.
 * Source:    Protocol Buffers encoding, "Base 128 Varints".
 */
#ifndef HEARTH_BASE_VARINT_H
#define HEARTH_BASE_VARINT_H

#include "hearth/base/compiler.h"

/*
 * Read one varint (at most 10 bytes) at *cur and move *cur past it. Returns false if the input ends
 * at `end` or the value has more than 64 bits; *cur is then unchanged.
 */
HEARTH_MUST_CHECK HEARTH_ALWAYS_INLINE bool hearth_varint_read(const uint8_t **cur,
                                                               const uint8_t *end, uint64_t *ret)
{
    const uint8_t *p = *cur;
    if (HEARTH_LIKELY(p < end && *p < 0x80)) {
        *ret = *p;
        *cur = p + 1;
        return true;
    }
    uint64_t value = 0;
    for (unsigned shift = 0; p < end && shift < 64; shift += 7, p++) {
        uint64_t bits = *p & 0x7fu;
        if (shift == 63 && bits > 1) {
            return false;
        }
        value |= bits << shift;
        if (*p < 0x80) {
            *ret = value;
            *cur = p + 1;
            return true;
        }
    }
    return false;
}

/* Write one varint; `out` has room for 10 bytes. Returns the number of bytes written. */
HEARTH_ALWAYS_INLINE size_t hearth_varint_write(uint8_t *out, uint64_t value)
{
    size_t n = 0;
    while (value >= 0x80) {
        out[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (uint8_t)value;
    return n;
}

/* Bytes that hearth_varint_write needs for `value`. */
static inline size_t hearth_varint_size(uint64_t value)
{
    return value == 0 ? 1 : ((size_t)(64 - __builtin_clzll(value)) + 6) / 7;
}

static inline uint64_t hearth_zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t hearth_unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

#endif
