/*
 * pb.h -- protobuf-c messages in arenas, and canonical proto3 JSON both ways.
 *
 * protobuf-c has no recursion limit and trusts counts. Therefore hearth_pb_unpack first walks the
 * wire form with the descriptor (depth at most HEARTH_PB_MAX_DEPTH, well-formed lengths), checks
 * that string fields are UTF-8 without NUL, and unpacks into the arena, whose limit bounds the
 * decoded form. In messages of OpenTelemetry invalid bytes become '?' instead, and so do `\u0000`
 * and unpaired surrogates in their JSON: the sender would drop all spans of a message that is
 * refused because of one.
 *
 * JSON (parse): field names in lowerCamelCase or as in the .proto file; enums by name or number;
 * unknown fields and unknown enum names are ignored; 64-bit integers as numbers or strings, above
 * INT64_MAX only as strings; bytes in base64 (both alphabets), ids of OpenTelemetry's messages also
 * as an even number of hexadecimal digits; null means absent; duplicate keys are refused, even if
 * they spell one field in two ways. Syntax errors name line and column, type errors the path of the
 * field. The parsed text is limited by the arena's limit, separately from the message.
 *
 * JSON (write): lowerCamelCase; default values are omitted; 64-bit integers as strings; enums as
 * names; bytes in standard base64, ids of OpenTelemetry in hexadecimal; maps as objects; members of
 * a oneof if they are set. Supported: every scalar, enum, message, repeated, oneof and map field.
 * Well-known types: Timestamp and Duration.
 *
 * Ownership: messages live in the arena (never call *_free_unpacked). Strings and bytes are copies.
 * Threads: pure.
 * Source: Protocol Buffers encoding; ProtoJSON format; OTLP, "JSON Protobuf Encoding"; protobuf-c
 *         1.4 descriptors.
 */
#ifndef HEARTH_CODEC_PB_H
#define HEARTH_CODEC_PB_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"

#define HEARTH_PB_MAX_DEPTH 64

struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;

/*
 * Returns OK; INVALID_ARGUMENT for bytes that are not such a message (the error says what is wrong,
 * and at which byte offset); NO_MEMORY if the arena's limit is reached.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_pb_unpack(const struct ProtobufCMessageDescriptor *descriptor,
                                    struct hearth_str wire, struct hearth_arena *arena,
                                    struct ProtobufCMessage **ret_message, struct hearth_err *err);

/* Append the wire form. */
void hearth_pb_pack(const struct ProtobufCMessage *message, struct hearth_buf *out);

/* `{}` is an empty message; an empty text is INVALID_ARGUMENT. */
HEARTH_MUST_CHECK
enum hearth_status hearth_pb_from_json(const struct ProtobufCMessageDescriptor *descriptor,
                                       struct hearth_str json, struct hearth_arena *arena,
                                       struct ProtobufCMessage **ret_message,
                                       struct hearth_err *err);

/* Append the JSON form. `out` fails if the nesting exceeds the limit. */
void hearth_pb_to_json(const struct ProtobufCMessage *message, struct hearth_buf *out);

/*
 * The same text in pieces, for texts that should not be in memory as a whole. The message must not
 * change meanwhile. The concatenated pieces are the text that hearth_pb_to_json writes.
 *
 * _new returns NULL if the arena refuses memory. The struct lives in the arena; _release frees the
 * memory that it holds elsewhere. _more appends at least n_bytes of the text, or the rest of it,
 * and less than HEARTH_PB_JSON_STEP_BYTES beyond n_bytes (not counting map keys, which are written
 * whole). It returns false at the end of the text; do not call it again after a failure of `out`.
 */
#define HEARTH_PB_JSON_STEP_BYTES 80000u

struct hearth_pb_json;
struct hearth_pb_json *hearth_pb_json_new(const struct ProtobufCMessage *message,
                                          struct hearth_arena *arena);
bool hearth_pb_json_more(struct hearth_pb_json *json, size_t n_bytes, struct hearth_buf *out);
void hearth_pb_json_release(struct hearth_pb_json *json);

#endif
