/* buf.c -- growable byte buffer with a sticky error. */
#include "hearth/base/buf.h"

#include "hearth/base/mem.h"

#include <stdio.h>

void hearth_buf_init(struct hearth_buf *buf, size_t limit_bytes)
{
    *buf = (struct hearth_buf){.limit_bytes = limit_bytes};
}

void hearth_buf_release(struct hearth_buf *buf)
{
    hearth_mem_free(buf->p);
    hearth_buf_init(buf, buf->limit_bytes);
}

void hearth_buf_reset(struct hearth_buf *buf)
{
    buf->n = 0;
    buf->failed = false;
}

char *hearth_buf_reserve(struct hearth_buf *buf, size_t more)
{
    if (HEARTH_UNLIKELY(buf->failed)) {
        return NULL;
    }
    if (HEARTH_LIKELY(buf->cap - buf->n >= more)) {
        return buf->p + buf->n;
    }
    size_t want;
    if (__builtin_add_overflow(buf->n, more, &want) ||
        (buf->limit_bytes != 0 && want > buf->limit_bytes) ||
        !hearth_mem_grow(&buf->p, &buf->cap, want, 1)) {
        buf->failed = true;
        return NULL;
    }
    return buf->p + buf->n;
}

void hearth_buf_append(struct hearth_buf *buf, const void *p, size_t n)
{
    char *at = hearth_buf_reserve(buf, n);
    if (at != NULL && n > 0) {
        memcpy(at, p, n);
        buf->n += n;
    }
}

void hearth_buf_str(struct hearth_buf *buf, struct hearth_str s)
{
    hearth_buf_append(buf, s.p, s.n);
}

void hearth_buf_cstr(struct hearth_buf *buf, const char *s)
{
    hearth_buf_append(buf, s, strlen(s));
}

void hearth_buf_byte(struct hearth_buf *buf, unsigned char byte)
{
    char *at = hearth_buf_reserve(buf, 1);
    if (at != NULL) {
        *at = (char)byte;
        buf->n++;
    }
}

void hearth_buf_printf(struct hearth_buf *buf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *at = n < 0 ? NULL : hearth_buf_reserve(buf, (size_t)n + 1);
    if (at != NULL) {
        (void)vsnprintf(at, (size_t)n + 1, fmt, again);
        buf->n += (size_t)n;
    }
    va_end(again);
}

void hearth_buf_varint(struct hearth_buf *buf, uint64_t value)
{
    char *at = hearth_buf_reserve(buf, 10);
    if (at == NULL) {
        return;
    }
    size_t n = 0;
    while (value >= 0x80) {
        at[n++] = (char)(unsigned char)(value | 0x80);
        value >>= 7;
    }
    at[n++] = (char)(unsigned char)value;
    buf->n += n;
}

char *hearth_buf_take(struct hearth_buf *buf, size_t *ret_n)
{
    char *p = buf->p;
    *ret_n = buf->n;
    hearth_buf_init(buf, buf->limit_bytes);
    return p;
}
