/* otlp_values.c -- attributes as texts (otlp_values.h); values other than strings as JSON. */
#include "spans/otlp_values.h"

#include "hearth/base/base64.h"
#include "hearth/codec/json_writer.h"

#include <assert.h>

#define IS(value, name) \
    ((value)->value_case == OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##name)

static void write_base64(struct hearth_json *json, const ProtobufCBinaryData *bytes)
{
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    hearth_base64_encode(hearth_str_n((const char *)bytes->data, bytes->len), &text);
    hearth_json_string(json, hearth_buf_view(&text));
    json->out->failed = json->out->failed || hearth_buf_failed(&text);
    hearth_buf_release(&text);
}

/* Writes a value as JSON. Recursion is bounded by the depth that messages may have. */
static void write_value(struct hearth_json *json,
                        const Opentelemetry__Proto__Common__V1__AnyValue *value)
{
    if (value == NULL) {
        hearth_json_null(json);
    } else if (IS(value, STRING_VALUE)) {
        hearth_json_string_c(json, value->string_value);
    } else if (IS(value, BOOL_VALUE)) {
        hearth_json_bool(json, value->bool_value);
    } else if (IS(value, INT_VALUE)) {
        hearth_json_i64(json, value->int_value);
    } else if (IS(value, DOUBLE_VALUE)) {
        hearth_json_double(json, value->double_value);
    } else if (IS(value, BYTES_VALUE)) {
        write_base64(json, &value->bytes_value);
    } else if (IS(value, ARRAY_VALUE)) {
        hearth_json_array(json);
        for (size_t i = 0; i < value->array_value->n_values; i++) {
            write_value(json, value->array_value->values[i]);
        }

        hearth_json_array_end(json);
    } else if (IS(value, KVLIST_VALUE)) {
        hearth_json_object(json);
        for (size_t i = 0; i < value->kvlist_value->n_values; i++) {
            hearth_json_key_c(json, value->kvlist_value->values[i]->key);
            write_value(json, value->kvlist_value->values[i]->value);
        }

        hearth_json_object_end(json);
    } else {
        hearth_json_null(json);
    }
}

/* A JSON string without its quotes; other texts as they are. */
static struct hearth_str unquoted(struct hearth_str text)
{
    bool is_quoted = text.n >= 2 && text.p[0] == '"';
    return is_quoted ? hearth_str_n(text.p + 1, text.n - 2) : text;
}

struct hearth_str hearth_otlp_text(const Opentelemetry__Proto__Common__V1__AnyValue *value,
                                   struct hearth_arena *arena)
{
    struct hearth_str none = hearth_str_n(NULL, 0);

    assert(arena != NULL);
    if (value == NULL || IS(value, _NOT_SET) || IS(value, STRING_VALUE_STRINDEX)) {
        return none;
    }

    if (IS(value, STRING_VALUE)) {
        return hearth_str_c(value->string_value);
    }

    /* Write other values as JSON, and copy the text to the arena. */
    struct hearth_buf text;
    struct hearth_json json;
    hearth_buf_init(&text, arena->limit_bytes);
    hearth_json_init(&json, &text);
    write_value(&json, value);
    struct hearth_str copy = none;
    if (hearth_buf_failed(&text)) {
        arena->refused = true;
    } else { /* quoted texts are base64, NaN or infinities, which have no escapes */
        copy = hearth_arena_str(arena, unquoted(hearth_buf_view(&text)));
    }

    hearth_buf_release(&text);

    return copy;
}

struct hearth_str
hearth_otlp_attribute(Opentelemetry__Proto__Common__V1__KeyValue *const *attributes, size_t n,
                      struct hearth_str name, struct hearth_arena *arena)
{
    assert(n == 0 || attributes != NULL);

    for (size_t i = 0; i < n; i++) {
        if (hearth_str_eq_c(name, attributes[i]->key)) {
            struct hearth_str text = hearth_otlp_text(attributes[i]->value, arena);
            if (text.n > 0) {
                return text;
            }
        }
    }

    return hearth_str_n(NULL, 0);
}
