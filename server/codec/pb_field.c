/* pb_field.c -- properties of fields and messages, read from their descriptors. */
#include "pb_field.h"

size_t pb_value_bytes(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_ENUM:
        break;
    }

    return 4;
}

char pb_json_name_next(const char *name, size_t *pos)
{
    bool upper = false;
    while (name[*pos] == '_') {
        upper = true;
        (*pos)++;
    }

    char c = name[*pos];
    if (c == '\0') {
        return '\0';
    }

    (*pos)++;

    return upper && c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
}

bool pb_json_name_is(const char *name, struct hearth_str key)
{
    size_t pos = 0;
    for (size_t i = 0; i < key.n; i++) {
        if (key.p[i] == '\0' || pb_json_name_next(name, &pos) != key.p[i]) {
            return false;
        }
    }

    return pb_json_name_next(name, &pos) == '\0';
}

/* protoc names the entry message of the field "some_tags" "SomeTagsEntry". */
static bool is_entry_name(const char *short_name, const char *field_name)
{
    size_t pos = 0;
    char c = pb_json_name_next(field_name, &pos);

    c = c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
    for (; c != '\0'; c = pb_json_name_next(field_name, &pos)) {
        if (*short_name++ != c) {
            return false;
        }
    }

    return strcmp(short_name, "Entry") == 0;
}

bool pb_is_map(const ProtobufCFieldDescriptor *field)
{
    if (field->label != PROTOBUF_C_LABEL_REPEATED || field->type != PROTOBUF_C_TYPE_MESSAGE) {
        return false;
    }

    const ProtobufCMessageDescriptor *entry = pb_message_of(field);

    return entry->n_fields == 2 && entry->fields[0].id == 1 && entry->fields[1].id == 2 &&
           strcmp(entry->fields[0].name, "key") == 0 &&
           strcmp(entry->fields[1].name, "value") == 0 &&
           is_entry_name(entry->short_name, field->name);
}

enum pb_well_known pb_well_known(const ProtobufCMessageDescriptor *descriptor)
{
    static const char prefix[] = "google.protobuf.";
    if (strncmp(descriptor->name, prefix, sizeof prefix - 1) != 0) {
        return PB_ORDINARY;
    }

    const char *name = descriptor->name + sizeof prefix - 1;

    return strcmp(name, "Timestamp") == 0  ? PB_TIMESTAMP
           : strcmp(name, "Duration") == 0 ? PB_DURATION
                                           : PB_ORDINARY;
}

bool pb_is_mended(const ProtobufCMessageDescriptor *descriptor)
{
    static const char package[] = "opentelemetry.proto.";
    return descriptor->package_name != NULL &&
           strncmp(descriptor->package_name, package, sizeof package - 1) == 0;
}

bool pb_is_hex(const ProtobufCMessageDescriptor *descriptor, const ProtobufCFieldDescriptor *field)
{
    if (field->type != PROTOBUF_C_TYPE_BYTES || !pb_is_mended(descriptor)) {
        return false;
    }
    size_t n = strlen(field->name);
    return n > 3 && strcmp(field->name + n - 3, "_id") == 0;
}
