/*
 * json_writer.h -- streaming JSON output into a hearth_buf.
 *
 * The writer sets the commas and checks the nesting (at most HEARTH_JSON_MAX_DEPTH levels); misuse,
 * such as a key outside an object, is a HEARTH_BUG. Invalid UTF-8 becomes U+FFFD; control
 * characters, U+2028 and U+2029 are escaped.
 *
 * Errors:  those of the buffer (sticky).
 * Threads: not thread-safe.
 */
#ifndef HEARTH_CODEC_JSON_WRITER_H
#define HEARTH_CODEC_JSON_WRITER_H

#include "hearth/base/buf.h"

#define HEARTH_JSON_MAX_DEPTH 128

struct hearth_json {
    struct hearth_buf *out;
    unsigned depth;
    bool after_key;
    bool first[HEARTH_JSON_MAX_DEPTH];
    bool is_object[HEARTH_JSON_MAX_DEPTH];
};

void hearth_json_init(struct hearth_json *json, struct hearth_buf *out);
void hearth_json_object(struct hearth_json *json); /* { */
void hearth_json_object_end(struct hearth_json *json);
void hearth_json_array(struct hearth_json *json); /* [ */
void hearth_json_array_end(struct hearth_json *json);
void hearth_json_key(struct hearth_json *json, struct hearth_str key);
void hearth_json_key_c(struct hearth_json *json, const char *key);
void hearth_json_string(struct hearth_json *json, struct hearth_str value);
void hearth_json_string_c(struct hearth_json *json, const char *value);
void hearth_json_i64(struct hearth_json *json, int64_t value); /* a number */
void hearth_json_i64_string(struct hearth_json *json,
                            int64_t value); /* "123": proto3 JSON's int64 */
void hearth_json_double(struct hearth_json *json,
                        double value); /* shortest form; NaN and infinities as strings */
void hearth_json_bool(struct hearth_json *json, bool value);
void hearth_json_null(struct hearth_json *json);

#endif
