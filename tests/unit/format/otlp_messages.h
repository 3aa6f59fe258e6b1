/*
 * otlp_messages.h -- messages of OpenTelemetry's protocol for tests, as nested expressions:
 * MESSAGE(2, INT(1, 5), LIST(2, 1, 2)) is field 2, a message with an integer and a packed list.
 *
 * Ownership: bytes live in g_messages, which the test releases.
 */
#ifndef TEST_OTLP_MESSAGES_H
#define TEST_OTLP_MESSAGES_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"

static struct hearth_arena g_messages;

static struct hearth_str keep_bytes(struct hearth_buf *buf)
{
    struct hearth_str kept = hearth_arena_str(&g_messages, hearth_buf_view(buf));
    hearth_buf_release(buf);
    return kept;
}

static inline struct hearth_str make_int(uint32_t field, uint64_t value)
{
    struct hearth_buf buf;
    hearth_buf_init(&buf, 0);
    hearth_buf_varint(&buf, (uint64_t)field << 3);
    hearth_buf_varint(&buf, value);
    return keep_bytes(&buf);
}

static inline struct hearth_str make_fixed64(uint32_t field, uint64_t value)
{
    struct hearth_buf buf;
    hearth_buf_init(&buf, 0);
    hearth_buf_varint(&buf, (uint64_t)field << 3 | 1);
    hearth_buf_append(&buf, &value, sizeof value);
    return keep_bytes(&buf);
}

static inline struct hearth_str make_bytes(uint32_t field, struct hearth_str bytes)
{
    struct hearth_buf buf;
    hearth_buf_init(&buf, 0);
    hearth_buf_varint(&buf, (uint64_t)field << 3 | 2);
    hearth_buf_varint(&buf, bytes.n);
    hearth_buf_str(&buf, bytes);
    return keep_bytes(&buf);
}

static inline struct hearth_str join_parts(const struct hearth_str *parts, size_t n)
{
    struct hearth_buf buf;
    hearth_buf_init(&buf, 0);
    for (size_t i = 0; i < n; i++) {
        hearth_buf_str(&buf, parts[i]);
    }
    return keep_bytes(&buf);
}

static inline struct hearth_str make_list(uint32_t field, const uint64_t *values, size_t n)
{
    struct hearth_buf buf;
    hearth_buf_init(&buf, 0);
    for (size_t i = 0; i < n; i++) {
        hearth_buf_varint(&buf, values[i]);
    }
    return make_bytes(field, keep_bytes(&buf));
}

#define INT(field, value)   make_int((field), (uint64_t)(value))
#define FIXED(field, value) make_fixed64((field), (value))
#define TEXT(field, text)   make_bytes((field), hearth_str_c(text))
#define BYTES(field, text)  make_bytes((field), HEARTH_STR(text))
#define JOIN(...)                                        \
    join_parts((const struct hearth_str[]){__VA_ARGS__}, \
               sizeof((const struct hearth_str[]){__VA_ARGS__}) / sizeof(struct hearth_str))
#define MESSAGE(field, ...) make_bytes((field), JOIN(__VA_ARGS__))
#define LIST(field, ...)                                \
    make_list((field), (const uint64_t[]){__VA_ARGS__}, \
              sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

#endif
