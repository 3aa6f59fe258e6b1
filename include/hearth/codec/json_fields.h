/*
 * json_fields.h -- reads a small JSON object as a list of its strings, numbers and booleans:
 * {"a":1,"b":{"c":"d"}} has the fields "a" and "b.c". For JSON that agents send inside other
 * messages.
 *
 * Arrays, nulls and values nested deeper are ignored.
 *
 * Limits:    HEARTH_JSON_FIELDS_BYTES of JSON, 1 MiB of memory while parsing.
 * Ownership: fields and texts are copies in the arena.
 * Threads:   pure.
 * Errors:    INVALID_ARGUMENT (not JSON, not an object, too long), NO_MEMORY.
 */
#ifndef HEARTH_CODEC_JSON_FIELDS_H
#define HEARTH_CODEC_JSON_FIELDS_H

#include "hearth/base/arena.h"

#define HEARTH_JSON_FIELDS_BYTES (64u << 10)

enum hearth_json_kind {
    HEARTH_JSON_TEXT,
    HEARTH_JSON_NUMBER,
    HEARTH_JSON_BOOL,
};

struct hearth_json_field {
    struct hearth_str path;
    enum hearth_json_kind kind;
    struct hearth_str text; /* UTF-8 without NUL */
    double number;
    bool flag;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_json_fields_read(struct hearth_str json, struct hearth_arena *arena,
                                           struct hearth_json_field **ret_fields, size_t *ret_n,
                                           struct hearth_err *err);
/* The first field with this path and kind, or NULL. */
const struct hearth_json_field *hearth_json_field_find(const struct hearth_json_field *fields,
                                                       size_t n, const char *path,
                                                       enum hearth_json_kind kind);

#endif
