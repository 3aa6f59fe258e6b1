/*
 * pb_json_write.c -- a protobuf-c message as canonical proto3 JSON.
 *
 * Written straight into the buffer: no tree, no allocation per element. Runs of integers (the
 * levels of a flame graph are one array of some 100,000 of them) are formatted in blocks under one
 * reservation.
 */
#include "hearth/base/base64.h"
#include "hearth/base/hash.h"
#include "hearth/codec/pb.h"

#include "json_text.h"
#include "pb_field.h"
#include "pb_time.h"

#define INTS_PER_BLOCK 256u
#define QUOTED_BYTES   (HEARTH_JSON_INT_BYTES + 3) /* quotes and comma */

static void write_message(struct hearth_buf *out, const ProtobufCMessage *message, unsigned depth);

static void write_name(struct hearth_buf *out, const char *name)
{
    hearth_buf_byte(out, '"');
    size_t pos = 0;
    for (char c = pb_json_name_next(name, &pos); c != '\0'; c = pb_json_name_next(name, &pos)) {
        hearth_buf_byte(out, (unsigned char)c);
    }
    hearth_buf_append(out, "\":", 2);
}

/* One integer of any type, quoted where JSON numbers are too narrow. Returns the end. */
static char *integer_text(char *to, ProtobufCType type, const void *value)
{
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    switch (type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        memcpy(&u32, value, sizeof u32);
        return hearth_json_text_u64(to, u32);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        memcpy(&u64, value, sizeof u64);
        *to++ = '"';
        to = hearth_json_text_u64(to, u64);
        *to++ = '"';
        return to;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        memcpy(&i64, value, sizeof i64);
        *to++ = '"';
        to = hearth_json_text_i64(to, i64);
        *to++ = '"';
        return to;
    default: /* int32, sint32, sfixed32, and enums without a name */
        memcpy(&i32, value, sizeof i32);
        return hearth_json_text_i64(to, i32);
    }
}

static bool is_integer(ProtobufCType type)
{
    return type != PROTOBUF_C_TYPE_FLOAT && type != PROTOBUF_C_TYPE_DOUBLE &&
           type != PROTOBUF_C_TYPE_BOOL && type != PROTOBUF_C_TYPE_ENUM &&
           type != PROTOBUF_C_TYPE_STRING && type != PROTOBUF_C_TYPE_BYTES &&
           type != PROTOBUF_C_TYPE_MESSAGE;
}

static void
write_integers(struct hearth_buf *out, ProtobufCType type, const char *values, size_t n_values)
{
    size_t size = pb_value_bytes(type);
    for (size_t done = 0; done < n_values;) {
        size_t n = n_values - done < INTS_PER_BLOCK ? n_values - done : INTS_PER_BLOCK;
        char text[INTS_PER_BLOCK * QUOTED_BYTES];
        char *to = text;
        for (size_t i = 0; i < n; i++) {
            if (done + i > 0) {
                *to++ = ',';
            }
            to = integer_text(to, type, values + (done + i) * size);
        }
        hearth_buf_append(out, text, (size_t)(to - text));
        done += n;
    }
}

static void write_enum(struct hearth_buf *out, const ProtobufCEnumDescriptor *descriptor, int value)
{
    const ProtobufCEnumValue *named = protobuf_c_enum_descriptor_get_value(descriptor, value);
    if (named != NULL) {
        hearth_json_text_string(out, hearth_str_c(named->name));
        return;
    }
    char text[QUOTED_BYTES];
    hearth_buf_append(out, text, (size_t)(integer_text(text, PROTOBUF_C_TYPE_ENUM, &value) - text));
}

/* One value that is not a default to be left out. `depth` is that of the message around it. */
static void write_value(struct hearth_buf *out,
                        const ProtobufCFieldDescriptor *field,
                        const void *value,
                        unsigned depth)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *text;
        memcpy(&text, value, sizeof text);
        hearth_json_text_string(out, hearth_str_c(text));
        return;
    }
    case PROTOBUF_C_TYPE_BYTES: {
        ProtobufCBinaryData bytes;
        memcpy(&bytes, value, sizeof bytes);
        hearth_buf_byte(out, '"');
        hearth_base64_encode(hearth_str_n((const char *)bytes.data, bytes.len), out);
        hearth_buf_byte(out, '"');
        return;
    }
    case PROTOBUF_C_TYPE_MESSAGE: {
        const ProtobufCMessage *message;
        memcpy(&message, value, sizeof message);
        write_message(out, message, depth + 1);
        return;
    }
    case PROTOBUF_C_TYPE_BOOL: {
        protobuf_c_boolean flag;
        memcpy(&flag, value, sizeof flag);
        hearth_buf_cstr(out, flag ? "true" : "false");
        return;
    }
    case PROTOBUF_C_TYPE_ENUM: {
        int number;
        memcpy(&number, value, sizeof number);
        write_enum(out, field->descriptor, number);
        return;
    }
    case PROTOBUF_C_TYPE_DOUBLE: {
        double number;
        memcpy(&number, value, sizeof number);
        hearth_json_text_double(out, number);
        return;
    }
    case PROTOBUF_C_TYPE_FLOAT: {
        float number;
        memcpy(&number, value, sizeof number);
        hearth_json_text_float(out, number);
        return;
    }
    default:
        write_integers(out, field->type, value, 1);
    }
}

/* Map keys are strings in JSON whatever their type. */
static void
write_map_key(struct hearth_buf *out, const ProtobufCFieldDescriptor *field, const void *value)
{
    size_t before = out->n;
    write_value(out, field, value, 0);
    if (!hearth_buf_failed(out) && out->p[before] != '"') {
        char bare[QUOTED_BYTES];
        size_t n = out->n - before;
        HEARTH_ASSERT(n < sizeof bare);
        memcpy(bare, out->p + before, n);
        out->n = before;
        hearth_buf_byte(out, '"');
        hearth_buf_append(out, bare, n);
        hearth_buf_byte(out, '"');
    }
}

static struct hearth_hash128 map_key_hash(const ProtobufCFieldDescriptor *field, const void *value)
{
    uint64_t seed = hearth_hash_process_seed();
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text;
        memcpy(&text, value, sizeof text);
        return hearth_hash128(text, strlen(text), seed);
    }
    return hearth_hash128(value, pb_value_bytes(field->type), seed);
}

/* The wire may repeat a key: the last entry counts, and JSON gets one member per key. */
static void write_map(struct hearth_buf *out,
                      const ProtobufCFieldDescriptor *field,
                      ProtobufCMessage *const *entries,
                      size_t n_entries,
                      unsigned depth)
{
    const ProtobufCFieldDescriptor *key = &pb_message_of(field)->fields[0];
    const ProtobufCFieldDescriptor *value = &pb_message_of(field)->fields[1];
    depth++; /* an entry is a message on the wire */
    struct hearth_idmap last;
    hearth_idmap_init(&last);
    for (size_t i = n_entries; i-- > 0 && !hearth_buf_failed(out);) {
        bool inserted;
        struct hearth_hash128 hash = map_key_hash(key, (const char *)entries[i] + key->offset);
        out->failed = i >= UINT32_MAX - 1 ||
                      hearth_idmap_intern(&last, hash, (uint32_t)i, &inserted) == HEARTH_IDMAP_NONE;
    }
    hearth_buf_byte(out, '{');
    bool first = true;
    for (size_t i = 0; i < n_entries && !hearth_buf_failed(out); i++) {
        const char *entry = (const char *)entries[i];
        if (hearth_idmap_find(&last, map_key_hash(key, entry + key->offset)) != i) {
            continue;
        }
        if (!first) {
            hearth_buf_byte(out, ',');
        }
        first = false;
        write_map_key(out, key, entry + key->offset);
        hearth_buf_byte(out, ':');
        const ProtobufCMessage *nested;
        memcpy(&nested, entry + value->offset, sizeof nested);
        if (value->type == PROTOBUF_C_TYPE_MESSAGE && nested == NULL) {
            hearth_buf_append(out, "{}", 2); /* an entry whose value was left out on the wire */
        } else {
            write_value(out, value, entry + value->offset, depth);
        }
    }
    hearth_buf_byte(out, '}');
    hearth_idmap_release(&last);
}

static void write_repeated(struct hearth_buf *out,
                           const ProtobufCFieldDescriptor *field,
                           const char *values,
                           size_t n_values,
                           unsigned depth)
{
    hearth_buf_byte(out, '[');
    if (is_integer(field->type)) {
        write_integers(out, field->type, values, n_values);
    } else {
        size_t size = pb_value_bytes(field->type);
        for (size_t i = 0; i < n_values && !hearth_buf_failed(out); i++) {
            if (i > 0) {
                hearth_buf_byte(out, ',');
            }
            write_value(out, field, values + i * size, depth);
        }
    }
    hearth_buf_byte(out, ']');
}

/* Left out: proto3 defaults, messages that are not there, members of a oneof that are not chosen.
 */
static bool is_absent(const ProtobufCFieldDescriptor *field, const char *message)
{
    const char *value = message + field->offset;
    if (pb_is_oneof(field)) {
        uint32_t chosen;
        memcpy(&chosen, message + field->quantifier_offset, sizeof chosen);
        return chosen != field->id;
    }
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text;
        memcpy(&text, value, sizeof text);
        return text == NULL || *text == '\0';
    }
    if (field->type == PROTOBUF_C_TYPE_BYTES) {
        ProtobufCBinaryData bytes;
        memcpy(&bytes, value, sizeof bytes);
        return bytes.len == 0;
    }
    if (field->type == PROTOBUF_C_TYPE_DOUBLE) {
        double number;
        memcpy(&number, value, sizeof number);
        return number == 0; /* -0 too, as protobuf-c leaves it out of the wire form */
    }
    if (field->type == PROTOBUF_C_TYPE_FLOAT) {
        float number;
        memcpy(&number, value, sizeof number);
        return number == 0;
    }
    static const char zero[8];
    return memcmp(value, zero, pb_value_bytes(field->type)) == 0;
}

static void write_well_known(struct hearth_buf *out, const ProtobufCMessage *message, bool duration)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    const char *base = (const char *)message;
    struct pb_time time;
    memcpy(&time.seconds, base + descriptor->fields[0].offset, sizeof time.seconds);
    memcpy(&time.nanos, base + descriptor->fields[1].offset, sizeof time.nanos);
    bool ok = duration ? pb_duration_write(time, out) : pb_timestamp_write(time, out);
    out->failed = out->failed || !ok;
}

static void write_field(struct hearth_buf *out,
                        const ProtobufCFieldDescriptor *field,
                        const char *message,
                        unsigned depth)
{
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        write_value(out, field, message + field->offset, depth);
        return;
    }
    size_t n;
    const char *values;
    memcpy(&n, message + field->quantifier_offset, sizeof n);
    memcpy(&values, message + field->offset, sizeof values);
    if (pb_is_map(field)) {
        write_map(out, field, (ProtobufCMessage *const *)(const void *)values, n, depth);
    } else {
        write_repeated(out, field, values, n, depth);
    }
}

static void write_message(struct hearth_buf *out, const ProtobufCMessage *message, unsigned depth)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    if (depth > HEARTH_PB_MAX_DEPTH) {
        out->failed = true;
        return;
    }
    enum pb_well_known known = pb_well_known(descriptor);
    if (known != PB_ORDINARY) {
        write_well_known(out, message, known == PB_DURATION);
        return;
    }
    const char *base = (const char *)message;
    bool first = true;
    hearth_buf_byte(out, '{');
    for (unsigned i = 0; i < descriptor->n_fields && !hearth_buf_failed(out); i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        size_t n = 1;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            memcpy(&n, base + field->quantifier_offset, sizeof n);
        } else if (is_absent(field, base)) {
            n = 0;
        }
        if (n == 0) {
            continue;
        }
        if (!first) {
            hearth_buf_byte(out, ',');
        }
        first = false;
        write_name(out, field->name);
        write_field(out, field, base, depth);
    }
    hearth_buf_byte(out, '}');
}

void hearth_pb_to_json(const struct ProtobufCMessage *message, struct hearth_buf *out)
{
    write_message(out, message, 1);
}
