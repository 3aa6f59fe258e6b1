/*
 * pb.h -- protobuf-c messages in arenas, and canonical proto3 JSON both ways.
 *
 * protobuf-c has no recursion limit and trusts counts: hearth_pb_unpack first walks the wire form
 * with the descriptor (depth <= HEARTH_PB_MAX_DEPTH, well-formed lengths), checks that string
 * fields are UTF-8 without NUL, and unpacks into the arena, whose limit bounds the decoded form.
 * In messages of OpenTelemetry such bytes become '?' instead, as `\u0000` and halves of surrogate
 * pairs do in their JSON: the sender would drop all spans of a message that is refused for one.
 *
 * JSON (parse): lowerCamelCase and original field names; enums by name or number; unknown fields
 * and unknown enum names are ignored; 64-bit integers as numbers or strings; bytes in base64 (both
 * alphabets), ids of OpenTelemetry's messages also as an even number of hexadecimal digits; null means absent; duplicate keys are refused, also when they spell one field in
 * two ways. Errors of syntax name line and column, errors of type the path of the field. Integers
 * above INT64_MAX must be strings. The parsed text is held to the arena's limit as well, apart from
 * the message.
 *
 * JSON (write): lowerCamelCase; default values omitted; 64-bit integers as strings; enums as names;
 * bytes in standard base64, ids of OpenTelemetry in hexadecimal; maps as objects; members of a oneof when set.
 * Supported: every scalar, enum, message, repeated, oneof and map field. Well-known types:
 * Timestamp and Duration.
 *
 * Ownership: messages live in the arena (never call *_free_unpacked). Strings and bytes are copies.
 * Threads: pure.
 * Source: Protocol Buffers encoding; ProtoJSON format; OTLP, "JSON Protobuf Encoding"; protobuf-c 1.4 descriptors.
 */
#ifndef HEARTH_CODEC_PB_H
#define HEARTH_CODEC_PB_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"

#define HEARTH_PB_MAX_DEPTH 64

struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;

/*
 * Returns OK; INVALID_ARGUMENT for bytes that are not such a message (the message says what is
 * wrong at which byte offset); NO_MEMORY when the arena's limit is reached.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_pb_unpack(const struct ProtobufCMessageDescriptor *descriptor,
                                    struct hearth_str wire, struct hearth_arena *arena,
                                    struct ProtobufCMessage **ret_message, struct hearth_err *err);

/* Append the wire form. */
void hearth_pb_pack(const struct ProtobufCMessage *message, struct hearth_buf *out);

/* `{}` is an empty message; zero bytes are INVALID_ARGUMENT. */
HEARTH_MUST_CHECK
enum hearth_status hearth_pb_from_json(const struct ProtobufCMessageDescriptor *descriptor,
                                       struct hearth_str json, struct hearth_arena *arena,
                                       struct ProtobufCMessage **ret_message,
                                       struct hearth_err *err);

/* Append the JSON form. Fails (sticky in `out`) on nesting beyond the limit. */
void hearth_pb_to_json(const struct ProtobufCMessage *message, struct hearth_buf *out);

/*
 * The same text in pieces, for texts that should not be in memory whole. The message must stay as it
 * is meanwhile. Pieces in order are the text that hearth_pb_to_json writes.
 *
 * hearth_pb_json_more appends n_bytes or more of it: less than HEARTH_PB_JSON_STEP_BYTES more (map
 * keys aside, which are written whole), or what is left. False: that was the end; after a failure
 * of `out` there is nothing more to ask for.
 * It lives in the arena; release frees what it holds besides. NULL: the arena refused.
 */
#define HEARTH_PB_JSON_STEP_BYTES 80000u

struct hearth_pb_json;
struct hearth_pb_json *hearth_pb_json_new(const struct ProtobufCMessage *message,
                                          struct hearth_arena *arena);
bool hearth_pb_json_more(struct hearth_pb_json *json, size_t n_bytes, struct hearth_buf *out);
void hearth_pb_json_release(struct hearth_pb_json *json);

#endif
