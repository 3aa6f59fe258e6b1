/*
 * json_text.h -- JSON values as text, for the two writers of this layer; without commas and nesting
 * (private to codec). Errors are those of the buffer.
 */
#ifndef HEARTH_CODEC_JSON_TEXT_H
#define HEARTH_CODEC_JSON_TEXT_H

#include "hearth/base/buf.h"

#define HEARTH_JSON_INT_BYTES 20 /* length of the longest 64-bit integer, with its sign */

/* Quoted and escaped; invalid UTF-8 becomes U+FFFD. */
void hearth_json_text_string(struct hearth_buf *out, struct hearth_str value);
/* The same without the quotes, for a part of a string. The part must not end inside a character. */
void hearth_json_text_characters(struct hearth_buf *out, struct hearth_str value);
/* Write the digits to `to`, which has room for HEARTH_JSON_INT_BYTES; returns the end. */
char *hearth_json_text_u64(char *to, uint64_t value);
char *hearth_json_text_i64(char *to, int64_t value);
/*
 * The shortest form that is read back as the same value; "NaN", "Infinity" and "-Infinity" are
 * quoted.
 */
void hearth_json_text_double(struct hearth_buf *out, double value);
void hearth_json_text_float(struct hearth_buf *out, float value);

#endif
