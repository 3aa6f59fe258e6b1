/*
 * json_text.h -- JSON values as text, for the two writers of this layer. No commas, no nesting.
 * Private to codec. Errors are those of the buffer.
 */
#ifndef HEARTH_CODEC_JSON_TEXT_H
#define HEARTH_CODEC_JSON_TEXT_H

#include "hearth/base/buf.h"

#define HEARTH_JSON_INT_BYTES 20 /* of the longest 64-bit integer, sign included */

/* Quoted and escaped; invalid UTF-8 becomes U+FFFD. */
void hearth_json_text_string(struct hearth_buf *out, struct hearth_str value);
/* The same without the quotes: a part of a string, which cuts no character in two. */
void hearth_json_text_characters(struct hearth_buf *out, struct hearth_str value);
/* Digits into `to`, which has room for HEARTH_JSON_INT_BYTES; returns the end. */
char *hearth_json_text_u64(char *to, uint64_t value);
char *hearth_json_text_i64(char *to, int64_t value);
/* The shortest form that reads back as the same value; "NaN", "Infinity", "-Infinity" quoted. */
void hearth_json_text_double(struct hearth_buf *out, double value);
void hearth_json_text_float(struct hearth_buf *out, float value);

#endif
