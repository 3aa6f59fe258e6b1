/*
 * wire_text.h -- protobuf bytes written as text, so that tests and golden files can be read.
 *
 *   3:17        field 3, a varint (decimal, 0x..., or negative)
 *   3{ ... }    field 3, a message
 *   3[1 2 300]  field 3, packed varints
 *   3'text'     field 3, a string or bytes; \xNN for any byte
 *   !0a02ff     these bytes as they are
 *   # comment   to the end of the line
 */
#ifndef HEARTH_TESTS_WIRE_TEXT_H
#define HEARTH_TESTS_WIRE_TEXT_H

#include "hearth/base/buf.h"

#include <ctype.h>
#include <stdlib.h>

static inline const char *wire_text_blank(const char *p)
{
    for (;;) {
        while (isspace((unsigned char)*p)) {
            p++;
        }
        if (*p != '#') {
            return p;
        }
        while (*p != '\0' && *p != '\n') {
            p++;
        }
    }
}

static inline uint64_t wire_text_number(const char **p)
{
    char *end;
    uint64_t value = **p == '-' ? (uint64_t)strtoll(*p, &end, 0) : strtoull(*p, &end, 0);
    HEARTH_ASSERT(end != *p);
    *p = end;
    return value;
}

static inline unsigned char wire_text_hex(const char **p)
{
    char digits[3] = {(*p)[0], (*p)[1], '\0'};
    char *end;
    unsigned long value = strtoul(digits, &end, 16);
    HEARTH_ASSERT(end == digits + 2);
    *p += 2;
    return (unsigned char)value;
}

static inline const char *wire_text_quoted(const char *p, struct hearth_buf *out)
{
    while (*p != '\'') {
        HEARTH_ASSERT(*p != '\0');
        if (p[0] == '\\' && p[1] == 'x') {
            p += 2;
            hearth_buf_byte(out, wire_text_hex(&p));
        } else {
            hearth_buf_byte(out, (unsigned char)*p++);
        }
    }
    return p + 1;
}

/* Append the fields up to `close` (or the end, for '\0'); the position behind. A mistake aborts. */
static inline const char *wire_text_fields(const char *p, char close, struct hearth_buf *out)
{
    for (p = wire_text_blank(p); *p != close; p = wire_text_blank(p)) {
        if (*p == '!') {
            for (p++; isxdigit((unsigned char)*p);) {
                hearth_buf_byte(out, wire_text_hex(&p));
            }
            continue;
        }
        uint64_t field = wire_text_number(&p);
        char form = *p++;
        if (form == ':') {
            hearth_buf_varint(out, field << 3);
            hearth_buf_varint(out, wire_text_number(&p));
            continue;
        }
        struct hearth_buf payload;
        hearth_buf_init(&payload, 0);
        if (form == '{') {
            p = wire_text_fields(p, '}', &payload);
        } else if (form == '\'') {
            p = wire_text_quoted(p, &payload);
        } else {
            HEARTH_ASSERT(form == '[');
            for (p = wire_text_blank(p); *p != ']'; p = wire_text_blank(p)) {
                hearth_buf_varint(&payload, wire_text_number(&p));
            }
            p++;
        }
        hearth_buf_varint(out, field << 3 | 2);
        hearth_buf_varint(out, payload.n);
        hearth_buf_str(out, hearth_buf_view(&payload));
        hearth_buf_release(&payload);
    }
    return close == '\0' ? p : p + 1;
}

static inline void wire_text(const char *text, struct hearth_buf *out)
{
    (void)wire_text_fields(text, '\0', out);
    HEARTH_ASSERT(!hearth_buf_failed(out));
}

#endif
