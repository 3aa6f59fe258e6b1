/*
 * json_fields.h -- a small JSON object as a list of its texts, numbers and truths: {"a":1,"b":{"c":"d"}} is "a" and
 * "b.c". For what agents send as JSON inside of other messages.
 *
 * Arrays, nulls and what lies deeper are left out. At most HEARTH_JSON_FIELDS_BYTES of JSON, 1 MiB of memory while
 * parsing. Ownership: copies in the arena. Threads: pure.
 * Errors:  INVALID_ARGUMENT (not JSON, no object, too long), NO_MEMORY.
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
/* The first of that path and kind; NULL: there is none. */
const struct hearth_json_field *hearth_json_field_find(const struct hearth_json_field *fields,
                                                       size_t n, const char *path,
                                                       enum hearth_json_kind kind);

#endif
