/*
 * pb_field.h -- properties of fields, read from protobuf-c descriptors, for the JSON reader and
 * writer (private to codec).
 *
 * proto3 only: every field has the label NONE or REPEATED; presence is a pointer or the case of a
 * oneof.
 */
#ifndef HEARTH_CODEC_PB_FIELD_H
#define HEARTH_CODEC_PB_FIELD_H

#include "hearth/base/str.h"

#include <protobuf-c/protobuf-c.h>

enum pb_well_known {
    PB_ORDINARY,
    PB_TIMESTAMP,
    PB_DURATION,
};

/* Size of one value in the C struct. */
size_t pb_value_bytes(ProtobufCType type);
/* True for a repeated field of map entries; protobuf-c has no flag for it. */
bool pb_is_map(const ProtobufCFieldDescriptor *field);
enum pb_well_known pb_well_known(const ProtobufCMessageDescriptor *descriptor);
/*
 * True for messages of OpenTelemetry, whose invalid texts are repaired (pb.h): one of them must not
 * make an exporter lose all spans.
 */
bool pb_is_mended(const ProtobufCMessageDescriptor *descriptor);
/*
 * True for bytes that JSON writes in hexadecimal, as OpenTelemetry does for ids; other bytes are in
 * base64.
 */
bool pb_is_hex(const ProtobufCMessageDescriptor *descriptor, const ProtobufCFieldDescriptor *field);

/*
 * The next byte of the lowerCamelCase form of a field name; *pos starts at 0. Returns 0 at the end.
 */
char pb_json_name_next(const char *name, size_t *pos);
/* True if `key` is the lowerCamelCase form of `name`. */
bool pb_json_name_is(const char *name, struct hearth_str key);

static inline const ProtobufCMessageDescriptor *pb_message_of(const ProtobufCFieldDescriptor *field)
{
    return field->descriptor;
}

static inline bool pb_is_oneof(const ProtobufCFieldDescriptor *field)
{
    return (field->flags & (uint32_t)PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}

#endif
