/*
 * pb_json_write.c -- a protobuf-c message as canonical proto3 JSON, at once or in pieces.
 *
 * A state machine walks the message and keeps its position in a stack of frames, one for each
 * message that is being written. So any part of the text can be made at a time, without recursion.
 * It writes directly into the buffer, without a tree and without an allocation per element. Runs of
 * integers (the levels of a flame graph are one array of some 100,000) are formatted in blocks with
 * one reservation each, long texts and bytes in parts.
 */
#include "hearth/base/base64.h"
#include "hearth/base/hash.h"
#include "hearth/codec/pb.h"

#include "json_text.h"
#include "pb_field.h"
#include "pb_time.h"

#include <assert.h>

#define INTS_PER_BLOCK 256u
#define QUOTED_BYTES   (HEARTH_JSON_INT_BYTES + 3) /* quotes and comma */
#define PART_BYTES     12288u /* part of a text or of bytes; a multiple of 3, for base64 */

/* A message that is being written. */
struct frame {
    const ProtobufCMessage *message;
    unsigned depth; /* nesting level; map entries count as a level */
    /* index of the next field, or of the field whose values are being written */
    unsigned field;
    bool has_members; /* a member has been written: the next one needs a comma */
    /* state: writing the values of a repeated field; otherwise between fields */
    bool in_values;
    /* in_values: a map entry has been written: the next one needs a comma */
    bool has_values;
    size_t next_value;        /* in_values: index of the next value */
    struct hearth_idmap last; /* in_values, for a map: key to the last entry with this key */
};

struct hearth_pb_json {
    const ProtobufCMessage *root; /* the message, until writing begins; then NULL */
    /* rest of the text or bytes being written; p is NULL if there is none */
    struct hearth_str part;
    bool part_is_bytes;
    unsigned n_frames; /* 0 after the start: the text is complete */
    struct frame frames[HEARTH_PB_MAX_DEPTH];
};

static void write_member_name(struct hearth_buf *out, const char *name)
{
    hearth_buf_byte(out, '"');
    size_t pos = 0;
    for (char c = pb_json_name_next(name, &pos); c != '\0'; c = pb_json_name_next(name, &pos)) {
        hearth_buf_byte(out, (unsigned char)c);
    }

    hearth_buf_append(out, "\":", 2);
}

/* Write one integer of any type to `to`, 64-bit ones in quotes. Returns the end. */
static char *write_integer(char *to, ProtobufCType type, const void *value)
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

/* Append a block of integers of a list, starting with the i-th, and return their number. */
static size_t write_integers(struct hearth_buf *out, ProtobufCType type, const char *values,
                             size_t n_values, size_t i)
{
    size_t size = pb_value_bytes(type);
    size_t n = n_values - i < INTS_PER_BLOCK ? n_values - i : INTS_PER_BLOCK;
    char text[INTS_PER_BLOCK * QUOTED_BYTES];
    char *to = text;
    for (size_t k = i; k < i + n; k++) {
        if (k > 0) {
            *to++ = ',';
        }
        to = write_integer(to, type, values + k * size);
    }

    hearth_buf_append(out, text, (size_t)(to - text));

    return n;
}

static void write_enum(struct hearth_buf *out, const ProtobufCEnumDescriptor *descriptor, int value)
{
    const ProtobufCEnumValue *named = protobuf_c_enum_descriptor_get_value(descriptor, value);
    if (named != NULL) {
        hearth_json_text_string(out, hearth_str_c(named->name));
        return;
    }

    char text[QUOTED_BYTES];
    hearth_buf_append(out, text,
                      (size_t)(write_integer(text, PROTOBUF_C_TYPE_ENUM, &value) - text));
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

static void begin_message(struct hearth_pb_json *json, const ProtobufCMessage *message,
                          unsigned depth, struct hearth_buf *out)
{
    if (depth > HEARTH_PB_MAX_DEPTH) {
        out->failed = true;
        return;
    }

    enum pb_well_known known = pb_well_known(message->descriptor);
    if (known != PB_ORDINARY) {
        write_well_known(out, message, known == PB_DURATION);
        return;
    }

    assert(json->n_frames < HEARTH_PB_MAX_DEPTH);
    struct frame *frame = &json->frames[json->n_frames++]; /* `last` is set with in_values */
    frame->message = message;
    frame->depth = depth;
    frame->field = 0;
    frame->has_members = false;
    frame->in_values = false;
    hearth_buf_byte(out, '{');
}

static void begin_text(struct hearth_pb_json *json, struct hearth_str text, struct hearth_buf *out)
{
    if (text.n <= PART_BYTES) {
        hearth_json_text_string(out, text);
        return;
    }

    json->part = text;
    json->part_is_bytes = false;
    hearth_buf_byte(out, '"');
}

static void write_hex(struct hearth_buf *out, struct hearth_str bytes)
{
    static const char digits[] = "0123456789abcdef";

    hearth_buf_byte(out, '"');
    for (size_t i = 0; i < bytes.n; i++) {
        unsigned char byte = (unsigned char)bytes.p[i];
        const char pair[] = {digits[byte >> 4], digits[byte & 15]};
        hearth_buf_append(out, pair, sizeof pair);
    }

    hearth_buf_byte(out, '"');
}

static void begin_bytes(struct hearth_pb_json *json, struct hearth_str bytes,
                        struct hearth_buf *out)
{
    hearth_buf_byte(out, '"');
    if (bytes.n <= PART_BYTES) {
        hearth_base64_encode(bytes, out);
        hearth_buf_byte(out, '"');
        return;
    }

    json->part = bytes;
    json->part_is_bytes = true;
}

/*
 * The length of the next part of a text, which must not end inside a character: its end is moved to
 * a first byte.
 */
static size_t find_part_end(struct hearth_str text)
{
    assert(text.n > PART_BYTES);

    size_t n = PART_BYTES;
    for (unsigned back = 0; back < 4; back++) {
        if (((unsigned char)text.p[n - back] & 0xc0) != 0x80) {
            return n - back;
        }
    }

    return n;
}

static void write_part(struct hearth_pb_json *json, struct hearth_buf *out)
{
    assert(json->part.p != NULL);

    struct hearth_str part = json->part;
    bool is_last = part.n <= PART_BYTES;
    if (!is_last) {
        part.n = json->part_is_bytes ? PART_BYTES : find_part_end(part);
    }

    if (json->part_is_bytes) {
        hearth_base64_encode(part, out);
    } else {
        hearth_json_text_characters(out, part);
    }

    if (is_last) {
        json->part = hearth_str_n(NULL, 0);
        hearth_buf_byte(out, '"');
    } else {
        json->part = hearth_str_n(part.p + part.n, json->part.n - part.n);
    }
}

/* Write one value, or begin to write it. `depth` is the level of the message that contains it. */
static void begin_value(struct hearth_pb_json *json, const ProtobufCFieldDescriptor *field,
                        const void *value, unsigned depth, struct hearth_buf *out)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *text;
        memcpy(&text, value, sizeof text);
        begin_text(json, hearth_str_c(text), out);
        return;
    }
    case PROTOBUF_C_TYPE_BYTES: {
        ProtobufCBinaryData bytes;
        memcpy(&bytes, value, sizeof bytes);
        struct hearth_str text = hearth_str_n((const char *)bytes.data, bytes.len);
        const struct frame *frame = &json->frames[json->n_frames - 1];
        if (pb_is_hex(frame->message->descriptor, field)) {
            write_hex(out, text); /* ids are short: no parts */
        } else {
            begin_bytes(json, text, out);
        }
        return;
    }
    case PROTOBUF_C_TYPE_MESSAGE: {
        const ProtobufCMessage *message;
        memcpy(&message, value, sizeof message);
        begin_message(json, message, depth + 1, out);
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
        (void)write_integers(out, field->type, value, 1, 0);
    }
}

/*
 * True for fields that are omitted: proto3 defaults, absent messages, members of a oneof that are
 * not set.
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
        return number == 0; /* also -0, which protobuf-c omits from the wire form */
    }

    if (field->type == PROTOBUF_C_TYPE_FLOAT) {
        float number;
        memcpy(&number, value, sizeof number);
        return number == 0;
    }

    static const char zero[8];

    return memcmp(value, zero, pb_value_bytes(field->type)) == 0;
}

/* ---- maps ---- */

/* Keys of all types are strings in JSON. They are short and therefore written in one piece. */
static void write_map_key(struct hearth_buf *out, const ProtobufCFieldDescriptor *key,
                          const char *value)
{
    if (key->type == PROTOBUF_C_TYPE_STRING) {
        const char *text;
        memcpy(&text, value, sizeof text);
        hearth_json_text_string(out, hearth_str_c(text));
    } else if (key->type == PROTOBUF_C_TYPE_BOOL) {
        protobuf_c_boolean flag;
        memcpy(&flag, value, sizeof flag);
        hearth_buf_cstr(out, flag ? "\"true\"" : "\"false\"");
    } else {
        char text[QUOTED_BYTES];
        size_t n = (size_t)(write_integer(text, key->type, value) - text);
        bool is_quoted = text[0] == '"';
        hearth_buf_cstr(out, is_quoted ? "" : "\"");
        hearth_buf_append(out, text, n);
        hearth_buf_cstr(out, is_quoted ? "" : "\"");
    }

    hearth_buf_byte(out, ':');
}

static struct hearth_hash128 hash_map_key(const ProtobufCFieldDescriptor *field, const void *value)
{
    uint64_t seed = hearth_hash_process_seed();

    if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text;
        memcpy(&text, value, sizeof text);
        return hearth_hash128(text, strlen(text), seed);
    }

    return hearth_hash128(value, pb_value_bytes(field->type), seed);
}

/*
 * The wire form may repeat a key: only its last entry is valid, and JSON has one member per key.
 * False if memory is refused.
 */
static bool find_last_entries(struct hearth_idmap *last, const ProtobufCFieldDescriptor *key,
                              ProtobufCMessage *const *entries, size_t n)
{
    hearth_idmap_init(last);
    for (size_t i = n; i-- > 0;) {
        bool inserted;
        struct hearth_hash128 hash = hash_map_key(key, (const char *)entries[i] + key->offset);
        if (i >= UINT32_MAX - 1 ||
            hearth_idmap_intern(last, hash, (uint32_t)i, &inserted) == HEARTH_IDMAP_NONE) {
            return false;
        }
    }

    return true;
}

/* Write the entry of a map that precedes frame->next_value, unless a later one has its key. */
static void write_entry(struct hearth_pb_json *json, struct frame *frame,
                        const ProtobufCFieldDescriptor *field, ProtobufCMessage *const *entries,
                        struct hearth_buf *out)
{
    assert(frame->next_value > 0);

    size_t i = frame->next_value - 1;
    const ProtobufCFieldDescriptor *key = &pb_message_of(field)->fields[0];
    const ProtobufCFieldDescriptor *value = &pb_message_of(field)->fields[1];
    const char *entry = (const char *)entries[i];
    if (hearth_idmap_find(&frame->last, hash_map_key(key, entry + key->offset)) != i) {
        return;
    }
    if (frame->has_values) {
        hearth_buf_byte(out, ',');
    }

    frame->has_values = true;
    write_map_key(out, key, entry + key->offset);
    const ProtobufCMessage *nested;
    memcpy(&nested, entry + value->offset, sizeof nested);
    if (value->type == PROTOBUF_C_TYPE_MESSAGE && nested == NULL) {
        hearth_buf_append(out, "{}", 2); /* the wire form has no value for this entry */
    } else {
        /* The entry itself is a message, one level deeper. */
        begin_value(json, value, entry + value->offset, frame->depth + 1, out);
    }
}

/* ---- the state machine ---- */

static void begin_values(struct frame *frame, const ProtobufCFieldDescriptor *field,
                         const char *values, size_t n, struct hearth_buf *out)
{
    frame->in_values = true;
    frame->has_values = false;
    frame->next_value = 0;
    if (!pb_is_map(field)) {
        hearth_buf_byte(out, '[');
        return;
    }

    hearth_buf_byte(out, '{');
    if (!find_last_entries(&frame->last, &pb_message_of(field)->fields[0],
                           (ProtobufCMessage *const *)(const void *)values, n)) {
        out->failed = true;
    }
}

static void end_values(struct frame *frame, const ProtobufCFieldDescriptor *field,
                       struct hearth_buf *out)
{
    assert(frame->in_values);

    frame->in_values = false;
    frame->field++;
    if (pb_is_map(field)) {
        hearth_idmap_release(&frame->last);
        hearth_buf_byte(out, '}');
    } else {
        hearth_buf_byte(out, ']');
    }
}

static void write_values(struct hearth_pb_json *json, struct frame *frame, struct hearth_buf *out)
{
    const ProtobufCFieldDescriptor *field = &frame->message->descriptor->fields[frame->field];
    const char *base = (const char *)frame->message, *values;
    size_t n, i = frame->next_value;

    memcpy(&n, base + field->quantifier_offset, sizeof n);
    memcpy(&values, base + field->offset, sizeof values);
    assert(frame->in_values && i <= n);
    if (i == n) {
        end_values(frame, field, out);
        return;
    }

    if (is_integer(field->type)) {
        frame->next_value += write_integers(out, field->type, values, n, i);
        return;
    }

    frame->next_value++;
    if (pb_is_map(field)) {
        write_entry(json, frame, field, (ProtobufCMessage *const *)(const void *)values, out);
        return;
    }

    if (i > 0) {
        hearth_buf_byte(out, ',');
    }

    begin_value(json, field, values + i * pb_value_bytes(field->type), frame->depth, out);
}

static void write_member(struct hearth_pb_json *json, struct frame *frame, struct hearth_buf *out)
{
    const ProtobufCMessageDescriptor *descriptor = frame->message->descriptor;
    const char *base = (const char *)frame->message, *values = NULL;
    const ProtobufCFieldDescriptor *field = NULL;
    size_t n = 0;
    /* The next field that is not omitted; n is the number of its values. */
    for (; frame->field < descriptor->n_fields && n == 0; frame->field++) {
        field = &descriptor->fields[frame->field];
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            memcpy(&n, base + field->quantifier_offset, sizeof n);
        } else {
            n = !is_absent(field, base);
        }
    }

    /* No field is left: end the message. */
    if (n == 0) {
        json->n_frames--;
        hearth_buf_byte(out, '}');
        return;
    }

    /* Its name, and its value or the start of its values. */
    if (frame->has_members) {
        hearth_buf_byte(out, ',');
    }

    frame->has_members = true;
    write_member_name(out, field->name);
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        begin_value(json, field, base + field->offset, frame->depth, out);
        return;
    }

    /* The loop went past the field: stay on it until end_values. */
    frame->field--;
    memcpy(&values, base + field->offset, sizeof values);
    begin_values(frame, field, values, n, out);
}

static void begin_json(struct hearth_pb_json *json, const ProtobufCMessage *message)
{
    assert(message != NULL);

    json->root = message;
    json->part = hearth_str_n(NULL, 0);
    json->n_frames = 0;
}

struct hearth_pb_json *hearth_pb_json_new(const struct ProtobufCMessage *message,
                                          struct hearth_arena *arena)
{
    struct hearth_pb_json *json = hearth_arena_alloc(arena, sizeof *json);
    if (json != NULL) {
        begin_json(json, message);
    }
    return json;
}

void hearth_pb_json_release(struct hearth_pb_json *json)
{
    for (unsigned i = 0; i < json->n_frames; i++) {
        struct frame *frame = &json->frames[i];
        if (frame->in_values && pb_is_map(&frame->message->descriptor->fields[frame->field])) {
            hearth_idmap_release(&frame->last);
        }
    }

    json->n_frames = 0;
}

bool hearth_pb_json_more(struct hearth_pb_json *json, size_t n_bytes, struct hearth_buf *out)
{
    size_t from = out->n;

    if (json->root != NULL) {
        begin_message(json, json->root, 1, out);
        json->root = NULL;
    }

    /* Each step writes one value, a block of integers, or a part of a text. */
    while (json->n_frames > 0 && !out->failed && out->n - from < n_bytes) {
        struct frame *frame = &json->frames[json->n_frames - 1];
        if (HEARTH_UNLIKELY(json->part.p != NULL)) {
            write_part(json, out);
        } else if (frame->in_values) {
            write_values(json, frame, out);
        } else {
            write_member(json, frame, out);
        }
    }

    return json->n_frames > 0;
}

void hearth_pb_to_json(const struct ProtobufCMessage *message, struct hearth_buf *out)
{
    struct hearth_pb_json json;
    begin_json(&json, message);
    (void)hearth_pb_json_more(&json, SIZE_MAX, out);
    hearth_pb_json_release(&json);
}
