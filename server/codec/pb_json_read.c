/*
 * pb_json_read.c -- proto3 JSON into a protobuf-c message in an arena.
 *
 * The text is parsed into a jansson tree (json_tree.h limits it), which is then read along the
 * descriptor. Strings and bytes are copied into the arena; the tree is freed before the function
 * returns.
 */
#include "hearth/base/base64.h"
#include "hearth/codec/pb.h"

#include "json_tree.h"
#include "pb_field.h"
#include "pb_json_scalar.h"
#include "pb_time.h"

#include <assert.h>
#include <stdio.h>

#define MAX_FIELDS 256u /* fields of one message type; ours have some 14 */

/* The path of the current value, for error messages: a list in stack frames, innermost first. */
struct json_path {
    const struct json_path *up;
    const char *name; /* field name or map key; NULL for an element of an array */
    size_t index;
};

struct message_reader {
    struct hearth_arena *arena;
    struct hearth_err *err;
    bool is_hex; /* the current field is an id in hexadecimal: pb_is_hex */
};

/* A value, and where it is. */
struct json_value {
    json_t *json;
    const struct json_path *path; /* NULL: the whole text */
    unsigned depth;               /* of messages; 1 for the whole text */
};

static enum hearth_status read_json_message(struct message_reader *reader,
                                            const ProtobufCMessageDescriptor *descriptor,
                                            const struct json_value *value,
                                            ProtobufCMessage **ret_message);

static void put_path(struct hearth_buf *out, const struct json_path *path)
{
    if (path == NULL) {
        return;
    }

    put_path(out, path->up);
    if (path->name == NULL) {
        hearth_buf_printf(out, "[%zu]", path->index);
    } else {
        hearth_buf_printf(out, "%s%.64s", out->n == 0 ? "" : ".", path->name);
    }
}

static enum hearth_status fail_value(struct message_reader *reader, const struct json_path *path,
                                     const char *expected)
{
    struct hearth_buf where;

    hearth_buf_init(&where, 0);
    put_path(&where, path);
    enum hearth_status status = HEARTH_FAIL(reader->err, HEARTH_INVALID_ARGUMENT,
                                            "invalid JSON: " HEARTH_STR_FMT ": expected %s",
                                            HEARTH_STR_ARG(hearth_buf_view(&where)), expected);
    hearth_buf_release(&where);

    return status;
}

static enum hearth_status read_string(struct message_reader *reader, struct hearth_str text,
                                      void *to)
{
    char *copy = hearth_arena_strndup(reader->arena, text.p, text.n);
    memcpy(to, &copy, sizeof copy);
    return copy == NULL ? HEARTH_FAIL_ARENA(reader->err, reader->arena) : HEARTH_OK;
}

static int hex_digit_value(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

/*
 * False if the text is not hexadecimal: producers that do not know this rule of OpenTelemetry write
 * ids in base64.
 */
static bool decode_hex(struct hearth_str text, struct hearth_arena *arena,
                       struct hearth_str *ret_bytes)
{
    for (size_t i = 0; i < text.n; i++) {
        if (hex_digit_value(text.p[i]) < 0) {
            return false;
        }
    }

    char *bytes = text.n % 2 != 0 ? NULL : hearth_arena_alloc(arena, text.n / 2 + 1);
    for (size_t i = 0; i < text.n && bytes != NULL; i += 2) {
        bytes[i / 2] = (char)(hex_digit_value(text.p[i]) << 4 | hex_digit_value(text.p[i + 1]));
    }

    *ret_bytes = hearth_str_n(bytes, bytes == NULL ? 0 : text.n / 2);
    return bytes != NULL;
}

static enum hearth_status read_bytes(struct message_reader *reader, const json_t *json,
                                     const struct json_path *path, void *to)
{
    struct hearth_str text = hearth_str_n(json_string_value(json), json_string_length(json));
    struct hearth_str bytes;
    bool refused_before = reader->arena->refused;

    reader->arena->refused = false;
    bool ok =
        json_is_string(json) && ((reader->is_hex && decode_hex(text, reader->arena, &bytes)) ||
                                 hearth_base64_decode(text, reader->arena, &bytes));
    bool refused = reader->arena->refused;
    reader->arena->refused = refused || refused_before;
    if (refused) {
        return HEARTH_FAIL_ARENA(reader->err, reader->arena);
    }

    if (!ok) {
        return fail_value(reader, path,
                          reader->is_hex ? "an id in hexadecimal digits" : "bytes in base64");
    }

    ProtobufCBinaryData data = {bytes.n, (uint8_t *)(uintptr_t)bytes.p};
    memcpy(to, &data, sizeof data);

    return HEARTH_OK;
}

/* *ret_known becomes false for an unknown name: such a value is treated as absent. */
static enum hearth_status read_enum(struct message_reader *reader,
                                    const ProtobufCEnumDescriptor *descriptor,
                                    const struct json_value *value, void *to, bool *ret_known)
{
    if (!json_is_string(value->json)) {
        const char *wrong = pb_scalar_from_json(PROTOBUF_C_TYPE_INT32, value->json, to);
        return wrong == NULL ? HEARTH_OK
                             : fail_value(reader, value->path, "the name or number of an enum");
    }

    const ProtobufCEnumValue *found =
        protobuf_c_enum_descriptor_get_value_by_name(descriptor, json_string_value(value->json));
    *ret_known = found != NULL;
    if (found != NULL) {
        memcpy(to, &found->value, sizeof found->value);
    }

    return HEARTH_OK;
}

/* Read one value into the bytes at `to`. *ret_known is set as in read_enum, otherwise unchanged. */
static enum hearth_status read_value(struct message_reader *reader,
                                     const ProtobufCFieldDescriptor *field,
                                     const struct json_value *value, void *to, bool *ret_known)
{
    json_t *json = value->json;

    if (field->type == PROTOBUF_C_TYPE_STRING) {
        if (!json_is_string(json)) {
            return fail_value(reader, value->path, "a string");
        }
        return read_string(reader, hearth_str_n(json_string_value(json), json_string_length(json)),
                           to);
    }

    if (field->type == PROTOBUF_C_TYPE_BYTES) {
        return read_bytes(reader, json, value->path, to);
    }
    if (field->type == PROTOBUF_C_TYPE_ENUM) {
        return read_enum(reader, field->descriptor, value, to, ret_known);
    }

    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        ProtobufCMessage *message = NULL;
        const struct json_value nested = {json, value->path, value->depth + 1};
        HEARTH_TRY(read_json_message(reader, field->descriptor, &nested, &message));
        memcpy(to, &message, sizeof message);
        return HEARTH_OK;
    }

    const char *wrong = pb_scalar_from_json(field->type, json, to);

    return wrong == NULL ? HEARTH_OK : fail_value(reader, value->path, wrong);
}

static void store_array(char *message, const ProtobufCFieldDescriptor *field, const void *values,
                        size_t n)
{
    memcpy(message + field->quantifier_offset, &n, sizeof n);
    memcpy(message + field->offset, &values, sizeof values);
}

static enum hearth_status read_repeated(struct message_reader *reader,
                                        const ProtobufCFieldDescriptor *field,
                                        const struct json_value *array, char *message)
{
    if (!json_is_array(array->json)) {
        return fail_value(reader, array->path, "an array");
    }

    size_t n = json_array_size(array->json), n_known = 0, size = pb_value_bytes(field->type);
    if (n == 0) {
        return HEARTH_OK;
    }

    char *values = hearth_arena_array(reader->arena, n, size);
    if (values == NULL) {
        return HEARTH_FAIL_ARENA(reader->err, reader->arena);
    }

    for (size_t i = 0; i < n; i++) {
        const struct json_path path = {array->path, NULL, i};
        const struct json_value element = {json_array_get(array->json, i), &path, array->depth};
        bool known = true;
        HEARTH_TRY(read_value(reader, field, &element, values + n_known * size, &known));
        n_known += known; /* an unknown enum name is overwritten by the next value */
    }

    store_array(message, field, values, n_known);

    return HEARTH_OK;
}

static ProtobufCMessage *new_message(struct message_reader *reader,
                                     const ProtobufCMessageDescriptor *descriptor)
{
    ProtobufCMessage *message = hearth_arena_zalloc(reader->arena, descriptor->sizeof_message);
    if (message != NULL) {
        protobuf_c_message_init(descriptor, message);
    }
    return message;
}

/* The key of the entry is the last name of the value's path. */
static enum hearth_status read_map_entry(struct message_reader *reader,
                                         const ProtobufCMessageDescriptor *descriptor,
                                         const struct json_value *value, ProtobufCMessage *entry,
                                         bool *ret_known)
{
    const ProtobufCFieldDescriptor *key_field = &descriptor->fields[0];
    const ProtobufCFieldDescriptor *value_field = &descriptor->fields[1];
    char *base = (char *)entry;
    struct hearth_str text = hearth_str_c(value->path->name);

    if (key_field->type == PROTOBUF_C_TYPE_STRING) {
        HEARTH_TRY(read_string(reader, text, base + key_field->offset));
    } else {
        const char *wrong = pb_scalar_from_key(key_field->type, text, base + key_field->offset);
        if (wrong != NULL) {
            return fail_value(reader, value->path, wrong);
        }
    }

    /* The entry itself is a message. */
    const struct json_value nested = {value->json, value->path, value->depth + 1};
    return read_value(reader, value_field, &nested, base + value_field->offset, ret_known);
}

static enum hearth_status read_map(struct message_reader *reader,
                                   const ProtobufCFieldDescriptor *field,
                                   const struct json_value *object, char *message)
{
    if (!json_is_object(object->json)) {
        return fail_value(reader, object->path, "an object");
    }

    size_t n = json_object_size(object->json), n_known = 0;
    ProtobufCMessage **entries = hearth_arena_array(reader->arena, n, sizeof entries[0]);
    if (entries == NULL) {
        return HEARTH_FAIL_ARENA(reader->err, reader->arena);
    }

    const char *key;
    json_t *json;
    json_object_foreach(object->json, key, json)
    {
        const struct json_path path = {object->path, key, 0};
        const struct json_value value = {json, &path, object->depth};
        bool known = true;
        ProtobufCMessage *entry = new_message(reader, field->descriptor);
        if (entry == NULL) {
            return HEARTH_FAIL_ARENA(reader->err, reader->arena);
        }
        HEARTH_TRY(read_map_entry(reader, field->descriptor, &value, entry, &known));
        entries[n_known] = entry;
        n_known += known;
    }

    if (n_known > 0) {
        store_array(message, field, entries, n_known);
    }

    return HEARTH_OK;
}

static enum hearth_status read_singular(struct message_reader *reader,
                                        const ProtobufCFieldDescriptor *field,
                                        const struct json_value *value, char *message)
{
    uint32_t chosen;
    if (pb_is_oneof(field)) {
        memcpy(&chosen, message + field->quantifier_offset, sizeof chosen);
        if (chosen != 0) {
            return fail_value(reader, value->path, "one member of the oneof only");
        }
    }

    bool known = true;
    HEARTH_TRY(read_value(reader, field, value, message + field->offset, &known));
    if (pb_is_oneof(field) && known) {
        chosen = field->id;
        memcpy(message + field->quantifier_offset, &chosen, sizeof chosen);
    }

    return HEARTH_OK;
}

static enum hearth_status read_well_known(struct message_reader *reader, ProtobufCMessage *message,
                                          const struct json_value *value, bool duration)
{
    const json_t *json = value->json;
    struct hearth_str text = hearth_str_n(json_string_value(json), json_string_length(json));
    struct pb_time time;
    if (!json_is_string(json) ||
        !(duration ? pb_duration_parse(text, &time) : pb_timestamp_parse(text, &time))) {
        return fail_value(reader, value->path,
                          duration ? "a duration such as \"1.5s\"" : "an RFC 3339 time");
    }

    char *base = (char *)message;
    memcpy(base + message->descriptor->fields[0].offset, &time.seconds, sizeof time.seconds);
    memcpy(base + message->descriptor->fields[1].offset, &time.nanos, sizeof time.nanos);

    return HEARTH_OK;
}

/* The index of the field with this name, in either spelling; n_fields if there is none. */
static unsigned find_field(const ProtobufCMessageDescriptor *descriptor, const char *key)
{
    unsigned i = 0;
    struct hearth_str text = hearth_str_c(key);
    while (i < descriptor->n_fields && strcmp(descriptor->fields[i].name, key) != 0 &&
           !pb_json_name_is(descriptor->fields[i].name, text)) {
        i++;
    }

    return i;
}

static enum hearth_status read_members(struct message_reader *reader, ProtobufCMessage *message,
                                       const struct json_value *object)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    bool seen[MAX_FIELDS] = {false};

    HEARTH_ASSERT(descriptor->n_fields <= MAX_FIELDS);
    const char *key;
    json_t *json;
    json_object_foreach(object->json, key, json)
    {
        unsigned i = find_field(descriptor, key);
        if (i == descriptor->n_fields) {
            continue;
        }
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        const struct json_path path = {object->path, key, 0};
        const struct json_value member = {json, &path, object->depth};
        if (seen[i]) {
            return fail_value(reader, &path, "one spelling of the field only");
        }
        seen[i] = true;

        /* null means absent, for fields of all types. */
        if (json_is_null(json)) {
            continue;
        }

        char *base = (char *)message;
        reader->is_hex = pb_is_hex(descriptor, field);
        if (pb_is_map(field)) {
            HEARTH_TRY(read_map(reader, field, &member, base));
        } else if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            HEARTH_TRY(read_repeated(reader, field, &member, base));
        } else {
            HEARTH_TRY(read_singular(reader, field, &member, base));
        }
    }

    return HEARTH_OK;
}

static enum hearth_status read_json_message(struct message_reader *reader,
                                            const ProtobufCMessageDescriptor *descriptor,
                                            const struct json_value *value,
                                            ProtobufCMessage **ret_message)
{
    assert(value->json != NULL && ret_message != NULL);

    if (value->depth > HEARTH_PB_MAX_DEPTH) {
        return HEARTH_FAIL(reader->err, HEARTH_INVALID_ARGUMENT,
                           "invalid JSON: messages are nested deeper than %d", HEARTH_PB_MAX_DEPTH);
    }

    ProtobufCMessage *message = new_message(reader, descriptor);
    if (message == NULL) {
        return HEARTH_FAIL_ARENA(reader->err, reader->arena);
    }

    enum pb_well_known known = pb_well_known(descriptor);
    if (known != PB_ORDINARY) {
        HEARTH_TRY(read_well_known(reader, message, value, known == PB_DURATION));
    } else if (!json_is_object(value->json)) {
        return fail_value(reader, value->path, "an object");
    } else {
        HEARTH_TRY(read_members(reader, message, value));
    }

    *ret_message = message;
    return HEARTH_OK;
}

/* ---- repair of texts of OpenTelemetry ---- */

static bool read_code_unit(const char *digits, unsigned *ret)
{
    *ret = 0;
    for (unsigned i = 0; i < 4; i++) {
        int digit = hex_digit_value(digits[i]);
        if (digit < 0) {
            return false;
        }
        *ret = *ret << 4 | (unsigned)digit;
    }

    return true;
}

/* True if an escaped low surrogate, the second half of a pair, is at `at`. */
static bool is_low_half(struct hearth_str text, size_t at)
{
    unsigned unit;
    return at + 6 <= text.n && text.p[at] == '\\' && text.p[at + 1] == 'u' &&
           read_code_unit(text.p + at + 2, &unit) && unit >= 0xdc00 && unit <= 0xdfff;
}

/*
 * Count escapes of NUL and of unpaired surrogates. If there is a copy of the text, replace them
 * there by the escape of '?'.
 */
static size_t repair_escapes(struct hearth_str text, char *copy)
{
    size_t n_bad = 0;
    for (size_t i = 0; i + 6 <= text.n; i++) {
        unsigned unit;

        if (text.p[i] != '\\') {
            continue;
        }

        if (text.p[i + 1] != 'u' || !read_code_unit(text.p + i + 2, &unit)) {
            i++;
        } else if (unit >= 0xd800 && unit <= 0xdbff && is_low_half(text, i + 6)) {
            i += 11;
        } else {
            bool is_bad = unit == 0 || (unit >= 0xd800 && unit <= 0xdfff);
            if (is_bad && copy != NULL) {
                memcpy(copy + i + 2, "003f", 4);
            }
            n_bad += is_bad;
            i += 5;
        }
    }

    return n_bad;
}

/* If there is something to repair, *text becomes a repaired copy. */
static enum hearth_status repair_text(struct hearth_str *text, struct hearth_arena *arena,
                                      struct hearth_err *err)
{
    if (hearth_str_utf8_valid(*text) && repair_escapes(*text, NULL) == 0) {
        return HEARTH_OK;
    }

    char *copy = hearth_arena_strndup(arena, text->p, text->n);
    if (copy == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    hearth_str_utf8_mend(copy, text->n);
    *text = hearth_str_n(copy, text->n);
    (void)repair_escapes(*text, copy);

    return HEARTH_OK;
}

enum hearth_status hearth_pb_from_json(const struct ProtobufCMessageDescriptor *descriptor,
                                       struct hearth_str json, struct hearth_arena *arena,
                                       struct ProtobufCMessage **ret_message,
                                       struct hearth_err *err)
{
    assert(descriptor != NULL && ret_message != NULL);

    json_t *tree = NULL;
    if (pb_is_mended(descriptor)) {
        HEARTH_TRY(repair_text(&json, arena, err));
    }

    /* The tree may use as much memory as is left for the message; the two are not added. */
    size_t left = arena->limit_bytes == 0 ? 0 : arena->limit_bytes - arena->used_bytes;
    if (arena->limit_bytes != 0 && left == 0) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Each level of messages is an object, with an array or a map around it. */
    enum hearth_status status = json_tree_parse(json, 2 * HEARTH_PB_MAX_DEPTH, left, &tree, err);
    /* the tree has the arena's limit */
    arena->refused = arena->refused || status == HEARTH_NO_MEMORY;
    HEARTH_TRY(status);
    struct message_reader reader = {.arena = arena, .err = err};
    const struct json_value whole = {tree, NULL, 1};
    status = read_json_message(&reader, descriptor, &whole, ret_message);
    json_tree_free(tree);

    return status;
}
