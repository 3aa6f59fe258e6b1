/*
 * connect.h -- unary calls of the Connect protocol: headers, bodies, errors. Pure functions over
 * header texts and bytes.
 *
 * Threads:   pure.
 * Source:    Connect protocol, "Unary requests"; docs/reference/api-transports.md, "Connect".
 */
#ifndef HEARTH_FRONT_CONNECT_H
#define HEARTH_FRONT_CONNECT_H

#include "hearth/base/arena.h"

#include "rpc/media.h"

struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;

#define HEARTH_CONNECT_NO_TIMEOUT INT64_MAX

/* The headers of a call, borrowed; headers that were not sent are empty. */
struct hearth_connect_head {
    struct hearth_str content_type, content_encoding, protocol_version, timeout_ms;
};

struct hearth_connect_call {
    enum hearth_compression compression;
    int64_t timeout_ms; /* HEARTH_CONNECT_NO_TIMEOUT if the client sent none */
};

/*
 * Reads all headers but the content type, which hearth_rpc_media_find reads.
 *
 * Returns  OK; INVALID_ARGUMENT for a malformed header; UNIMPLEMENTED for an unknown compression.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_connect_parse_head(const struct hearth_connect_head *head,
                                             struct hearth_connect_call *ret_call,
                                             struct hearth_err *err);

/* False unless the text is a number of milliseconds of at most ten digits. */
HEARTH_MUST_CHECK bool hearth_connect_parse_timeout(struct hearth_str text, int64_t *ret_ms);

/* A body as it was sent. */
struct hearth_rpc_body {
    struct hearth_str bytes;
    enum hearth_rpc_codec codec;
    enum hearth_compression compression;
    size_t max_bytes; /* as sent, and decompressed */
    struct hearth_inflater *inflater;
};

/*
 * Decodes the body of a request by any transport into a message in arena.
 *
 * Returns  OK; TOO_LARGE if the body has more than max_bytes; INVALID_ARGUMENT for a damaged body;
 *          NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_body_decode(const struct ProtobufCMessageDescriptor *descriptor,
                                      const struct hearth_rpc_body *body,
                                      struct hearth_arena *arena,
                                      struct ProtobufCMessage **ret_message,
                                      struct hearth_err *err);

/*
 * The same without a message: appends the wire form, decompressed, to `wire`. JSON is translated by
 * way of a message in the arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_body_wire(const struct ProtobufCMessageDescriptor *descriptor,
                                    const struct hearth_rpc_body *body, struct hearth_arena *arena,
                                    struct hearth_buf *wire, struct hearth_err *err);

/*
 * Appends the JSON of an error. code: the name of a status, or the code of a plain route.
 * selector_place: as in struct hearth_err; if it is not 0, the error has a detail, a
 * hearth.v1.SelectorError.
 *
 * Source: "Error end-stream" and "Unary-Response" of the Connect protocol: a detail has a type
 * and its message in base64 without padding.
 */
void hearth_connect_write_error(const char *code, const char *msg, uint32_t selector_place,
                                struct hearth_buf *out);

#endif
