/*
 * pprof_wire.h -- reads the protobuf fields of a profile (private to the pprof decoder).
 *
 * A cursor walks one message. Readers that fail return false and set `why`; `p` is then the
 * position of the fault. Only the hot paths are inline: varints of one and two bytes, and the step
 * to the next field.
 *
 * Source: Protocol Buffers encoding, "Message structure".
 */
#ifndef HEARTH_FORMAT_PPROF_WIRE_H
#define HEARTH_FORMAT_PPROF_WIRE_H

#include "hearth/base/compiler.h"

#include <string.h>

#define PPROF_INT(field) ((uint64_t)(field) << 3) /* tag of an integer field */
#define PPROF_LEN(field) \
    ((uint64_t)(field) << 3 | 2u) /* tag of a message, string or packed field */

struct pprof_cursor {
    const uint8_t *p, *end;
    const char *why; /* fault; NULL if there is none so far */
};

struct pprof_varint {
    uint64_t value;
    const uint8_t *next; /* NULL: truncated, or more than 64 bits */
};

/* Eight bytes as a little-endian number. */
HEARTH_ALWAYS_INLINE uint64_t pprof_load8(const uint8_t *p)
{
    uint64_t w;

    memcpy(&w, p, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w;
}

/* Read a varint of any length; not inline. */
struct pprof_varint hearth_pprof_varint(const uint8_t *p, const uint8_t *end);

/*
 * Skip the field whose tag was just read and which the caller does not decode. Fields 1 to n_known
 * are decoded by the caller: they are passed only if their wire type is wrong, which is refused.
 */
struct pprof_cursor hearth_pprof_skip(struct pprof_cursor c, uint64_t tag, uint32_t n_known);

HEARTH_ALWAYS_INLINE bool pprof_int(struct pprof_cursor *c, uint64_t *ret)
{
    const uint8_t *p = c->p;
    if (HEARTH_LIKELY(c->end - p >= 2)) {
        if (p[0] < 0x80) {
            *ret = p[0];
            c->p = p + 1;
            return true;
        }
        if (p[1] < 0x80) {
            *ret = (p[0] & 0x7fu) | (uint64_t)p[1] << 7;
            c->p = p + 2;
            return true;
        }
    }

    struct pprof_varint v = hearth_pprof_varint(p, c->end);
    if (HEARTH_UNLIKELY(v.next == NULL)) {
        c->why = "varint is cut off or longer than 64 bits";
        return false;
    }

    *ret = v.value;
    c->p = v.next;

    return true;
}

/*
 * The same for numbers of unpredictable length, such as line numbers: has no branch between one
 * byte and two, which would often be mispredicted.
 */
HEARTH_ALWAYS_INLINE bool pprof_random_int(struct pprof_cursor *c, uint64_t *ret)
{
    const uint8_t *p = c->p;
    if (HEARTH_LIKELY(c->end - p >= 2 && (p[0] & p[1] & 0x80) == 0)) {
        uint64_t is_long = p[0] >> 7;
        *ret = (p[0] & 0x7fu) | ((uint64_t)p[1] << 7 & (0 - is_long));
        c->p = p + 1 + is_long;
        return true;
    }

    return pprof_int(c, ret);
}

/*
 * A varint of at most eight bytes, read from one word: no branch depends on its length. Eight bytes
 * from *p on must be readable, also beyond the end of the message. False if it is longer; *p and
 * *ret are then unchanged.
 */
HEARTH_ALWAYS_INLINE bool pprof_word_int(const uint8_t **p, uint64_t *ret)
{
    uint64_t w = pprof_load8(*p);
    uint64_t stop = ~w & 0x8080808080808080u;
    if (HEARTH_UNLIKELY(stop == 0)) {
        return false;
    }

    /* Keep the bytes up to the first without the top bit, then close the gaps between sevens. */
    *p += ((unsigned)__builtin_ctzll(stop) >> 3) + 1;
    w &= (stop ^ (stop - 1)) & 0x7f7f7f7f7f7f7f7fu;
    w = (w & 0x007f007f007f007fu) | (w & 0x7f007f007f007f00u) >> 1;
    w = (w & 0x00003fff00003fffu) | (w & 0x3fff00003fff0000u) >> 2;
    *ret = (w & 0x0fffffffu) | (w & 0x0fffffff00000000u) >> 4;

    return true;
}

HEARTH_ALWAYS_INLINE bool pprof_int64(struct pprof_cursor *c, int64_t *ret)
{
    uint64_t value;
    if (!pprof_int(c, &value)) {
        return false;
    }

    *ret = (int64_t)value;
    return true;
}

HEARTH_ALWAYS_INLINE bool pprof_bool(struct pprof_cursor *c, bool *ret)
{
    uint64_t value;
    if (!pprof_int(c, &value)) {
        return false;
    }

    *ret = value != 0;
    return true;
}

/*
 * A string index; a value of more than 32 bits becomes UINT32_MAX, which is beyond every string
 * table.
 */
HEARTH_ALWAYS_INLINE bool pprof_string_index(struct pprof_cursor *c, uint32_t *ret)
{
    uint64_t value;
    if (!pprof_int(c, &value)) {
        return false;
    }

    *ret = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
    return true;
}

/* The payload of a length-delimited field as its own cursor; `c` moves past it. */
HEARTH_ALWAYS_INLINE bool pprof_payload(struct pprof_cursor *c, struct pprof_cursor *ret)
{
    uint64_t n;
    if (!pprof_int(c, &n)) {
        return false;
    }

    if (HEARTH_UNLIKELY(n > (uint64_t)(c->end - c->p))) {
        c->why = "field reaches beyond the end of its message";
        return false;
    }

    *ret = (struct pprof_cursor){c->p, c->p + n, NULL};
    c->p += n;

    return true;
}

/* Read the next tag. False at the end of the message (why is NULL) and for a damaged tag. */
HEARTH_ALWAYS_INLINE bool pprof_next(struct pprof_cursor *c, uint64_t *ret_tag)
{
    return c->p < c->end && pprof_int(c, ret_tag);
}

#endif
