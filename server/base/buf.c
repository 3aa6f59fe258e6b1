/*
 * buf.c -- growable byte buffer with a sticky error.
 *
 * cap never exceeds the limit, so that the fast path is one comparison. One byte more than cap is
 * allocated, for the NUL that vsnprintf writes.
 */
#include "hearth/base/buf.h"

#include "hearth/base/budget.h"
#include "hearth/base/mem.h"
#include "hearth/base/varint.h"

#include <assert.h>
#include <stdio.h>

void hearth_buf_init(struct hearth_buf *buf, size_t limit_bytes)
{
    *buf = (struct hearth_buf){.limit_bytes = limit_bytes};
}

void hearth_buf_release(struct hearth_buf *buf)
{
    struct hearth_budget *budget = buf->budget;
    hearth_budget_give(budget, buf->cap);
    hearth_mem_free(buf->p);
    hearth_buf_init(buf, buf->limit_bytes);
    buf->budget = budget;
}

void hearth_buf_reset(struct hearth_buf *buf)
{
    buf->n = 0;
    buf->failed = false;
}

/*
 * Doubles the capacity, but not beyond the limit; if that is not enough, allocates exactly what is
 * needed.
 */
static bool grow_buf(struct hearth_buf *buf, size_t more)
{
    size_t want;
    if (__builtin_add_overflow(buf->n, more, &want) || want == SIZE_MAX ||
        (buf->limit_bytes != 0 && want > buf->limit_bytes)) {
        return false;
    }

    size_t cap = buf->cap < 32 ? 32 : buf->cap > SIZE_MAX / 2 - 1 ? want : buf->cap * 2;
    cap = cap < want ? want : cap;
    cap = buf->limit_bytes != 0 && cap > buf->limit_bytes ? buf->limit_bytes : cap;
    if (!hearth_budget_take(buf->budget, cap - buf->cap)) {
        return false;
    }

    char *p = hearth_mem_realloc(buf->p, cap + 1);
    if (p == NULL) {
        hearth_budget_give(buf->budget, cap - buf->cap);
        return false;
    }

    buf->p = p;
    buf->cap = cap;

    return true;
}

char *hearth_buf_reserve(struct hearth_buf *buf, size_t more)
{
    if (HEARTH_UNLIKELY(buf->failed)) {
        return NULL;
    }

    if (HEARTH_UNLIKELY(buf->p == NULL || buf->cap - buf->n < more) && !grow_buf(buf, more)) {
        buf->failed = true;
        return NULL;
    }

    return buf->p + buf->n;
}

void hearth_buf_append(struct hearth_buf *buf, const void *p, size_t n)
{
    char *at = n == 0 ? NULL : hearth_buf_reserve(buf, n);
    if (at != NULL) {
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
    buf->failed = buf->failed || n < 0;
    char *at = hearth_buf_reserve(buf, n < 0 ? 0 : (size_t)n);
    if (at != NULL) { /* the NUL may use the byte after cap */
        (void)vsnprintf(at, (size_t)n + 1, fmt, again);
        buf->n += (size_t)n;
    }

    va_end(again);
}

void hearth_buf_varint(struct hearth_buf *buf, uint64_t value)
{
    uint8_t bytes[10];
    hearth_buf_append(buf, bytes, hearth_varint_write(bytes, value));
}

char *hearth_buf_take(struct hearth_buf *buf, size_t *ret_n)
{
    assert(ret_n != NULL);

    char *p = buf->p;
    *ret_n = buf->n;
    hearth_buf_init(buf, buf->limit_bytes);
    return p;
}
