/*
 * grpc_web.h -- unary gRPC and gRPC-Web over HTTP/1.1, as pure functions over header texts and bytes.
 *
 * Bodies are frames: a byte of flags (1: compressed, 0x80: trailers), four of length, the bytes. A request is one
 * message; an answer is a message, when there is one, and the trailers as lines of text. The HTTP status is always 200.
 * gRPC itself has the trailers as fields behind the chunks of the body instead. Offers no streams; the type +json carries messages in JSON; -text is all of it in base64.
 *
 * Threads:   pure.
 * Source:    grpc/grpc doc/PROTOCOL-WEB.md, doc/PROTOCOL-HTTP2.md.
 */
#ifndef HEARTH_FRONT_GRPC_WEB_H
#define HEARTH_FRONT_GRPC_WEB_H

#include "hearth/base/buf.h"
#include "hearth/codec/compress.h"

#define HEARTH_GRPC_WEB_FRAME_BYTES 5u

/* At most eight digits and one of HMSmun. */
HEARTH_MUST_CHECK bool hearth_grpc_parse_timeout(struct hearth_str text, int64_t *ret_ns);

/* identity (also ""), gzip, deflate; UNIMPLEMENTED for others, naming what is offered. */
HEARTH_MUST_CHECK
enum hearth_status hearth_grpc_parse_encoding(struct hearth_str text, enum hearth_compression *ret,
                                              struct hearth_err *err);

/* True when gzip is one of the listed ones (grpc-accept-encoding). */
bool hearth_grpc_accepts_gzip(struct hearth_str text);

/*
 * The one message of a request's body, a view; trailers behind it are not looked at.
 *
 * encoding         by hearth_grpc_parse_encoding
 * ret_compression  NONE when the message's flag says so
 * Returns          OK; INVALID_ARGUMENT when there is no whole message, a flag is unknown, or the message says that it
 *                  is compressed and the head does not say how; UNIMPLEMENTED for a second message.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_grpc_web_read(struct hearth_str body, enum hearth_compression encoding,
                                        struct hearth_str *ret_message,
                                        enum hearth_compression *ret_compression,
                                        struct hearth_err *err);

/* Five bytes in front of a message of n bytes. */
void hearth_grpc_web_frame(unsigned char out[HEARTH_GRPC_WEB_FRAME_BYTES], bool is_compressed,
                           size_t n);

/* Append the trailers as lines, each with CR LF: status, message (of errors), and a line for each note. */
void hearth_grpc_trailers(enum hearth_status status, const char *msg, const char *const *notes,
                          size_t n_notes, struct hearth_buf *out);

/* Append the frame of gRPC-Web that holds these lines. */
void hearth_grpc_web_trailers(enum hearth_status status, const char *msg, const char *const *notes,
                              size_t n_notes, struct hearth_buf *out);

#endif
