/* json_writer.c -- the streaming writer: sets commas, and checks nesting and use. */
#include "hearth/codec/json_writer.h"

#include "json_text.h"

#include <assert.h>

void hearth_json_init(struct hearth_json *json, struct hearth_buf *out)
{
    assert(out != NULL);

    json->out = out;
    json->depth = 0;
    json->after_key = false;
}

/*
 * Append the comma before the next value, if any. At the outermost level the caller separates
 * values.
 */
static void begin_json_value(struct hearth_json *json)
{
    if (json->depth == 0) {
        return;
    }

    unsigned top = json->depth - 1;
    if (json->is_object[top]) {
        HEARTH_ASSERT(json->after_key);
        json->after_key = false;
        return;
    }

    if (!json->first[top]) {
        hearth_buf_byte(json->out, ',');
    }

    json->first[top] = false;
}

static void open_level(struct hearth_json *json, bool is_object)
{
    begin_json_value(json);
    HEARTH_ASSERT(json->depth < HEARTH_JSON_MAX_DEPTH);
    json->is_object[json->depth] = is_object;
    json->first[json->depth] = true;
    json->depth++;
    hearth_buf_byte(json->out, is_object ? '{' : '[');
}

static void close_level(struct hearth_json *json, bool is_object)
{
    HEARTH_ASSERT(json->depth > 0 && json->is_object[json->depth - 1] == is_object);
    HEARTH_ASSERT(!json->after_key);
    json->depth--;
    hearth_buf_byte(json->out, is_object ? '}' : ']');
}

void hearth_json_object(struct hearth_json *json)
{
    open_level(json, true);
}

void hearth_json_object_end(struct hearth_json *json)
{
    close_level(json, true);
}

void hearth_json_array(struct hearth_json *json)
{
    open_level(json, false);
}

void hearth_json_array_end(struct hearth_json *json)
{
    close_level(json, false);
}

void hearth_json_key(struct hearth_json *json, struct hearth_str key)
{
    HEARTH_ASSERT(json->depth > 0 && json->is_object[json->depth - 1] && !json->after_key);
    if (!json->first[json->depth - 1]) {
        hearth_buf_byte(json->out, ',');
    }

    json->first[json->depth - 1] = false;
    json->after_key = true;
    hearth_json_text_string(json->out, key);
    hearth_buf_byte(json->out, ':');
}

void hearth_json_key_c(struct hearth_json *json, const char *key)
{
    hearth_json_key(json, hearth_str_c(key));
}

void hearth_json_string(struct hearth_json *json, struct hearth_str value)
{
    begin_json_value(json);
    hearth_json_text_string(json->out, value);
}

void hearth_json_string_c(struct hearth_json *json, const char *value)
{
    hearth_json_string(json, hearth_str_c(value));
}

void hearth_json_i64(struct hearth_json *json, int64_t value)
{
    char text[HEARTH_JSON_INT_BYTES];
    begin_json_value(json);
    hearth_buf_append(json->out, text, (size_t)(hearth_json_text_i64(text, value) - text));
}

void hearth_json_i64_string(struct hearth_json *json, int64_t value)
{
    char text[HEARTH_JSON_INT_BYTES + 2] = {'"'};
    begin_json_value(json);
    char *end = hearth_json_text_i64(text + 1, value);
    *end++ = '"';
    hearth_buf_append(json->out, text, (size_t)(end - text));
}

void hearth_json_double(struct hearth_json *json, double value)
{
    begin_json_value(json);
    hearth_json_text_double(json->out, value);
}

void hearth_json_bool(struct hearth_json *json, bool value)
{
    begin_json_value(json);
    hearth_buf_cstr(json->out, value ? "true" : "false");
}

void hearth_json_null(struct hearth_json *json)
{
    begin_json_value(json);
    hearth_buf_cstr(json->out, "null");
}
