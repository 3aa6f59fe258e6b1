/*
 * pb_field.h -- reading a protobuf-c descriptor, for the JSON reader and writer. Private to codec.
 *
 * proto3 only: every field has label NONE or REPEATED, presence is a pointer or the case of a
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

/* Bytes of one value in the C structure. */
size_t pb_value_bytes(ProtobufCType type);
/* A repeated field of map entries (protobuf-c has no flag for it). */
bool pb_is_map(const ProtobufCFieldDescriptor *field);
enum pb_well_known pb_well_known(const ProtobufCMessageDescriptor *descriptor);
/*
 * A message of OpenTelemetry's: one bad text is not to lose all spans of an exporter, so texts are mended (pb.h).
 */
bool pb_is_mended(const ProtobufCMessageDescriptor *descriptor);
/* Bytes that are hexadecimal digits in JSON, as OpenTelemetry has it for ids; others are base64. */
bool pb_is_hex(const ProtobufCMessageDescriptor *descriptor, const ProtobufCFieldDescriptor *field);

/* lowerCamelCase of a field name, byte by byte: the next byte at *pos, or 0 at the end. */
char pb_json_name_next(const char *name, size_t *pos);
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
