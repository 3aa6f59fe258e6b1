/*
 * pb_json_scalar.c -- numbers and booleans from JSON. ProtoJSON allows integers as numbers or
 * strings, in any notation with an integral value (1e3, "5.0").
 */
#include "pb_json_scalar.h"

#include <assert.h>
#include <float.h>
#include <math.h>

static struct hearth_str view_string(const json_t *json)
{
    return hearth_str_n(json_string_value(json), json_string_length(json));
}

/* Split an integral double in [-2^63, 2^64) into sign and magnitude; false for other values. */
static bool split_integral(double value, bool *ret_negative, uint64_t *ret_magnitude)
{
    if (!(value >= -0x1p63 && value < 0x1p64) || trunc(value) != value) {
        return false;
    }

    *ret_negative = value < 0;
    *ret_magnitude = (uint64_t)(value < 0 ? -value : value);
    return true;
}

static bool parse_integer(struct hearth_str text, bool *ret_negative, uint64_t *ret_magnitude)
{
    bool negative = text.n > 0 && text.p[0] == '-';
    struct hearth_str digits = negative ? hearth_str_n(text.p + 1, text.n - 1) : text;
    if (hearth_str_to_u64(digits, ret_magnitude)) {
        *ret_negative = negative && *ret_magnitude != 0;
        return true;
    }

    double value;
    bool fractional = hearth_str_find(text, '.', 0) < text.n ||
                      hearth_str_find(text, 'e', 0) < text.n ||
                      hearth_str_find(text, 'E', 0) < text.n;

    return fractional && hearth_str_to_double(text, &value) &&
           split_integral(value, ret_negative, ret_magnitude);
}

static bool read_integer(const json_t *json, bool *ret_negative, uint64_t *ret_magnitude)
{
    if (json_is_integer(json)) {
        int64_t value = json_integer_value(json);
        *ret_negative = value < 0;
        *ret_magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        return true;
    }

    if (json_is_real(json)) {
        return split_integral(json_real_value(json), ret_negative, ret_magnitude);
    }

    return json_is_string(json) && parse_integer(view_string(json), ret_negative, ret_magnitude);
}

static const char *store_integer(ProtobufCType type, bool negative, uint64_t magnitude, void *to)
{
    uint64_t bits = negative ? 0 - magnitude : magnitude;
    uint32_t low = (uint32_t)bits;

    switch (type) {
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        memcpy(to, &bits, sizeof bits);
        return negative ? "an unsigned 64-bit integer" : NULL;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        memcpy(to, &low, sizeof low);
        return negative || magnitude > UINT32_MAX ? "an unsigned 32-bit integer" : NULL;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        memcpy(to, &bits, sizeof bits);
        return magnitude > (uint64_t)INT64_MAX + negative ? "a 64-bit integer" : NULL;
    default:
        memcpy(to, &low, sizeof low);
        return magnitude > (uint64_t)INT32_MAX + negative ? "a 32-bit integer" : NULL;
    }
}

static bool parse_double(struct hearth_str text, double *ret)
{
    if (hearth_str_eq_c(text, "NaN")) {
        *ret = (double)NAN;
    } else if (hearth_str_eq_c(text, "Infinity")) {
        *ret = (double)INFINITY;
    } else if (hearth_str_eq_c(text, "-Infinity")) {
        *ret = -(double)INFINITY;
    } else {
        return hearth_str_to_double(text, ret);
    }

    return true;
}

static const char *read_real(ProtobufCType type, const json_t *json, void *to)
{
    double value;
    if (json_is_number(json)) {
        value = json_number_value(json);
    } else if (!json_is_string(json) || !parse_double(view_string(json), &value)) {
        return "a number";
    }

    if (type == PROTOBUF_C_TYPE_DOUBLE) {
        memcpy(to, &value, sizeof value);
        return NULL;
    }

    /*
     * A double up to half a unit above the largest float is rounded to that float: the 9 digits
     * that we write for it are read as such a double.
     */
    if (isfinite(value) && fabs(value) >= (double)FLT_MAX * (1 + 0x1p-25)) {
        return "a number in the range of a float";
    }

    float narrow = (float)value;
    memcpy(to, &narrow, sizeof narrow);

    return NULL;
}

const char *pb_scalar_from_json(ProtobufCType type, const json_t *json, void *to)
{
    assert(type != PROTOBUF_C_TYPE_STRING && type != PROTOBUF_C_TYPE_BYTES &&
           type != PROTOBUF_C_TYPE_MESSAGE);

    if (type == PROTOBUF_C_TYPE_FLOAT || type == PROTOBUF_C_TYPE_DOUBLE) {
        return read_real(type, json, to);
    }

    if (type == PROTOBUF_C_TYPE_BOOL) {
        protobuf_c_boolean flag = json_is_true(json);
        memcpy(to, &flag, sizeof flag);
        return json_is_boolean(json) ? NULL : "true or false";
    }

    bool negative = false;
    uint64_t magnitude = 0;
    if (!read_integer(json, &negative, &magnitude)) {
        return "an integer";
    }

    return store_integer(type, negative, magnitude, to);
}

/*
 * Whether the text is the only one that is written for its integer: 0, 12, -3. Otherwise keys of an
 * object with different texts, "1" and "01", would be equal keys of the map.
 */
static bool is_written_integer(struct hearth_str text)
{
    size_t first = hearth_str_starts(text, HEARTH_STR("-")) ? 1 : 0, i = first;

    while (i < text.n && text.p[i] >= '0' && text.p[i] <= '9') {
        i++;
    }

    return i == text.n && i > first && (text.p[first] != '0' || text.n == 1);
}

const char *pb_scalar_from_key(ProtobufCType type, struct hearth_str key, void *to)
{
    assert(type != PROTOBUF_C_TYPE_STRING && to != NULL);

    if (type == PROTOBUF_C_TYPE_BOOL) {
        protobuf_c_boolean flag = hearth_str_eq_c(key, "true");
        memcpy(to, &flag, sizeof flag);
        return flag || hearth_str_eq_c(key, "false") ? NULL : "\"true\" or \"false\"";
    }

    bool negative = false;
    uint64_t magnitude = 0;
    if (!is_written_integer(key) || !parse_integer(key, &negative, &magnitude)) {
        return "an integer";
    }

    return store_integer(type, negative, magnitude, to);
}
