/*
 * buf.h -- a growable byte buffer with a limit and a sticky error.
 *
 * Appends return nothing. After the first refusal (limit or memory) the contents no longer change
 * and hearth_buf_failed() is true: check once, at the end.
 *
 * Ownership: contents belong to the buffer; hearth_buf_take gives them away (free with
 *            hearth_mem_free).
 * Threads:   not thread-safe.
 */
#ifndef HEARTH_BASE_BUF_H
#define HEARTH_BASE_BUF_H

#include "hearth/base/status.h"
#include "hearth/base/str.h"

struct hearth_budget;

struct hearth_buf {
    char *p;
    size_t n, cap;
    size_t limit_bytes; /* 0: no limit */
    bool failed;
    /* NULL: no budget; set after init. Bytes given away by hearth_buf_take stay charged to it. */
    struct hearth_budget *budget;
};

void hearth_buf_init(struct hearth_buf *buf, size_t limit_bytes);
void hearth_buf_release(struct hearth_buf *buf);
void hearth_buf_reset(struct hearth_buf *buf); /* empties it, clears the error, keeps memory */
/*
 * Make room for `more` bytes after the end; NULL if refused. Write there, then add the bytes
 * written to buf->n.
 */
char *hearth_buf_reserve(struct hearth_buf *buf, size_t more);
void hearth_buf_append(struct hearth_buf *buf, const void *p, size_t n);
void hearth_buf_str(struct hearth_buf *buf, struct hearth_str s);
void hearth_buf_cstr(struct hearth_buf *buf, const char *s);
void hearth_buf_byte(struct hearth_buf *buf, unsigned char byte);
void hearth_buf_printf(struct hearth_buf *buf, const char *fmt, ...) HEARTH_PRINTF(2, 3);
void hearth_buf_varint(struct hearth_buf *buf, uint64_t value); /* unsigned LEB128 */
/* Give the bytes to the caller; the buffer is empty afterwards. */
char *hearth_buf_take(struct hearth_buf *buf, size_t *ret_n);
static inline bool hearth_buf_failed(const struct hearth_buf *buf)
{
    return buf->failed;
}
static inline struct hearth_str hearth_buf_view(const struct hearth_buf *buf)
{
    return (struct hearth_str){buf->p, buf->n};
}

#endif
