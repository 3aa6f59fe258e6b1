/*
 * all_types.h -- hand-made descriptors of what our own .proto files do not have yet: every scalar
 * type, repeated and single, maps, the well-known times, and a message that contains itself.
 *
 *   message AllTypes {
 *     <type> one_<type> = 1..15; AllTypes child = 18;
 *     repeated <type> many_<type> = 21..35; repeated AllTypes children = 38;
 *     map<string, int64> by_name = 40; map<int32, AllTypes> by_number = 41; map<bool, string>
 * by_flag = 42; google.protobuf.Timestamp at = 43; google.protobuf.Duration took = 44; oneof choice
 * { string text = 45; sint32 number = 46; }
 *   }
 */
#ifndef HEARTH_TEST_ALL_TYPES_H
#define HEARTH_TEST_ALL_TYPES_H

#include <protobuf-c/protobuf-c.h>

#include <string.h>

#define SCALARS(S)                        \
    S(1, int32, INT32, int32_t)           \
    S(2, sint32, SINT32, int32_t)         \
    S(3, sfixed32, SFIXED32, int32_t)     \
    S(4, int64, INT64, int64_t)           \
    S(5, sint64, SINT64, int64_t)         \
    S(6, sfixed64, SFIXED64, int64_t)     \
    S(7, uint32, UINT32, uint32_t)        \
    S(8, fixed32, FIXED32, uint32_t)      \
    S(9, uint64, UINT64, uint64_t)        \
    S(10, fixed64, FIXED64, uint64_t)     \
    S(11, float, FLOAT, float)            \
    S(12, double, DOUBLE, double)         \
    S(13, bool, BOOL, protobuf_c_boolean) \
    S(14, string, STRING, char *)         \
    S(15, bytes, BYTES, ProtobufCBinaryData)

struct map_entry {
    ProtobufCMessage base;
    union { /* of one type each; which one, the descriptor says */
        char *text;
        int32_t number;
        protobuf_c_boolean flag;
    } key;
    union {
        int64_t number;
        char *text;
        struct all_types *nested;
    } value;
};

struct time_message {
    ProtobufCMessage base;
    int64_t seconds;
    int32_t nanos;
};

struct all_types {
    ProtobufCMessage base;
#define S(id, name, TYPE, ctype) ctype one_##name;
    SCALARS(S)
#undef S
    struct all_types *child;
#define S(id, name, TYPE, ctype) \
    size_t n_many_##name;        \
    ctype *many_##name;
    SCALARS(S)
#undef S
    size_t n_children;
    struct all_types **children;
    size_t n_by_name, n_by_number, n_by_flag;
    struct map_entry **by_name, **by_number, **by_flag;
    struct time_message *at, *took;
    uint32_t choice_case;
    union {
        char *text;
        int32_t number;
    };
};

extern const ProtobufCMessageDescriptor all_types_descriptor;

/* What protoc-c generates for each type: zero, and text that is empty instead of NULL. */
static void init_message(ProtobufCMessage *message, const ProtobufCMessageDescriptor *descriptor)
{
    memset(message, 0, descriptor->sizeof_message);
    message->descriptor = descriptor;
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        if (field->type == PROTOBUF_C_TYPE_STRING && field->label == PROTOBUF_C_LABEL_NONE &&
            field->flags == 0) {
            const char *empty = protobuf_c_empty_string;
            memcpy((char *)message + field->offset, &empty, sizeof empty);
        }
    }
}

#define INIT_OF(DESCRIPTOR)                                  \
    extern const ProtobufCMessageDescriptor DESCRIPTOR;      \
    static void DESCRIPTOR##_init(ProtobufCMessage *message) \
    {                                                        \
        init_message(message, &DESCRIPTOR);                  \
    }

INIT_OF(all_types_descriptor)
INIT_OF(ByNameEntry_descriptor)
INIT_OF(ByNumberEntry_descriptor)
INIT_OF(ByFlagEntry_descriptor)
INIT_OF(Timestamp_descriptor)
INIT_OF(Duration_descriptor)

#define ENTRY(TYPE_NAME, KEY, KEY_MEMBER, VALUE, VALUE_MEMBER, NESTED) \
    static const ProtobufCFieldDescriptor TYPE_NAME##_fields[2] = {    \
        {.name = "key",                                                \
         .id = 1,                                                      \
         .label = PROTOBUF_C_LABEL_NONE,                               \
         .type = PROTOBUF_C_TYPE_##KEY,                                \
         .offset = offsetof(struct map_entry, KEY_MEMBER)},            \
        {.name = "value",                                              \
         .id = 2,                                                      \
         .label = PROTOBUF_C_LABEL_NONE,                               \
         .type = PROTOBUF_C_TYPE_##VALUE,                              \
         .offset = offsetof(struct map_entry, VALUE_MEMBER),           \
         .descriptor = (NESTED)},                                      \
    };                                                                 \
    const ProtobufCMessageDescriptor TYPE_NAME##_descriptor = {        \
        .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,                 \
        .name = "test.AllTypes." #TYPE_NAME,                           \
        .short_name = #TYPE_NAME,                                      \
        .sizeof_message = sizeof(struct map_entry),                    \
        .n_fields = 2,                                                 \
        .fields = TYPE_NAME##_fields,                                  \
        .n_field_ranges = 1,                                           \
        .message_init = TYPE_NAME##_descriptor_init,                   \
        .field_ranges = g_two_fields,                                  \
    }

static const ProtobufCIntRange g_two_fields[] = {{1, 0}, {0, 2}};

ENTRY(ByNameEntry, STRING, key.text, INT64, value.number, NULL);
ENTRY(ByNumberEntry, INT32, key.number, MESSAGE, value.nested, &all_types_descriptor);
ENTRY(ByFlagEntry, BOOL, key.flag, STRING, value.text, NULL);

static const ProtobufCFieldDescriptor g_time_fields[2] = {
    {.name = "seconds",
     .id = 1,
     .label = PROTOBUF_C_LABEL_NONE,
     .type = PROTOBUF_C_TYPE_INT64,
     .offset = offsetof(struct time_message, seconds)},
    {.name = "nanos",
     .id = 2,
     .label = PROTOBUF_C_LABEL_NONE,
     .type = PROTOBUF_C_TYPE_INT32,
     .offset = offsetof(struct time_message, nanos)},
};
#define TIME_TYPE(TYPE_NAME)                                    \
    const ProtobufCMessageDescriptor TYPE_NAME##_descriptor = { \
        .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,          \
        .name = "google.protobuf." #TYPE_NAME,                  \
        .short_name = #TYPE_NAME,                               \
        .sizeof_message = sizeof(struct time_message),          \
        .n_fields = 2,                                          \
        .fields = g_time_fields,                                \
        .n_field_ranges = 1,                                    \
        .message_init = TYPE_NAME##_descriptor_init,            \
        .field_ranges = g_two_fields,                           \
    }
TIME_TYPE(Timestamp);
TIME_TYPE(Duration);

#define REPEATED_OF(ID, NAME, TYPE, MEMBER, DESCRIPTOR)                          \
    {                                                                            \
        .name = NAME, .id = (ID), .label = PROTOBUF_C_LABEL_REPEATED,            \
        .type = PROTOBUF_C_TYPE_##TYPE,                                          \
        .quantifier_offset = offsetof(struct all_types, n_##MEMBER),             \
        .offset = offsetof(struct all_types, MEMBER), .descriptor = (DESCRIPTOR) \
    }
#define MESSAGE_OF(ID, NAME, MEMBER, DESCRIPTOR)                                                   \
    {                                                                                              \
        .name = NAME, .id = (ID), .label = PROTOBUF_C_LABEL_NONE, .type = PROTOBUF_C_TYPE_MESSAGE, \
        .offset = offsetof(struct all_types, MEMBER), .descriptor = (DESCRIPTOR)                   \
    }
#define ONEOF_OF(ID, NAME, TYPE, MEMBER)                                                          \
    {                                                                                             \
        .name = NAME, .id = (ID), .label = PROTOBUF_C_LABEL_NONE, .type = PROTOBUF_C_TYPE_##TYPE, \
        .quantifier_offset = offsetof(struct all_types, choice_case),                             \
        .offset = offsetof(struct all_types, MEMBER), .flags = PROTOBUF_C_FIELD_FLAG_ONEOF        \
    }

static const ProtobufCFieldDescriptor g_all_fields[] = {
#define S(ID, NAME, TYPE, ctype)     \
    {.name = "one_" #NAME,           \
     .id = (ID),                     \
     .label = PROTOBUF_C_LABEL_NONE, \
     .type = PROTOBUF_C_TYPE_##TYPE, \
     .offset = offsetof(struct all_types, one_##NAME)},
    SCALARS(S)
#undef S
        MESSAGE_OF(18, "child", child, &all_types_descriptor),
#define S(ID, NAME, TYPE, ctype) REPEATED_OF(20 + (ID), "many_" #NAME, TYPE, many_##NAME, NULL),
    SCALARS(S)
#undef S
        REPEATED_OF(38, "children", MESSAGE, children, &all_types_descriptor),
    REPEATED_OF(40, "by_name", MESSAGE, by_name, &ByNameEntry_descriptor),
    REPEATED_OF(41, "by_number", MESSAGE, by_number, &ByNumberEntry_descriptor),
    REPEATED_OF(42, "by_flag", MESSAGE, by_flag, &ByFlagEntry_descriptor),
    MESSAGE_OF(43, "at", at, &Timestamp_descriptor),
    MESSAGE_OF(44, "took", took, &Duration_descriptor),
    ONEOF_OF(45, "text", STRING, text),
    ONEOF_OF(46, "number", SINT32, number),
};
#define N_ALL_FIELDS (sizeof g_all_fields / sizeof g_all_fields[0])

static const ProtobufCIntRange g_all_ranges[] = {{1, 0},   {18, 15}, {21, 16},
                                                 {38, 31}, {40, 32}, {0, 39}};

const ProtobufCMessageDescriptor all_types_descriptor = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "test.AllTypes",
    .short_name = "AllTypes",
    .sizeof_message = sizeof(struct all_types),
    .n_fields = N_ALL_FIELDS,
    .fields = g_all_fields,
    .n_field_ranges = 5,
    .field_ranges = g_all_ranges,
    .message_init = all_types_descriptor_init,
};

#endif
