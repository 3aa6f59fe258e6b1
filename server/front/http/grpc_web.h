/*
 * grpc_web.h -- unary calls of gRPC and gRPC-Web over HTTP/1.1. Pure functions over header texts
 * and bytes.
 *
 * A body is a sequence of frames: a byte of flags (1: compressed, 0x80: trailers), four bytes of
 * length (big endian), the bytes. A request has one frame with a message. An answer has a frame
 * with a message, unless the call failed, and one with the trailers as lines of text; with plain
 * gRPC, the trailers are fields after the chunks of the body instead. The HTTP status is always
 * 200. Streams are not offered. The content type +json has messages in JSON; -text has the whole
 * body in base64.
 *
 * Threads:   pure.
 * Source:    grpc/grpc doc/PROTOCOL-WEB.md, doc/PROTOCOL-HTTP2.md.
 */
#ifndef HEARTH_FRONT_GRPC_WEB_H
#define HEARTH_FRONT_GRPC_WEB_H

#include "hearth/base/buf.h"
#include "hearth/codec/compress.h"

#define HEARTH_GRPC_WEB_FRAME_BYTES 5u

/* Parses at most eight digits and a unit, one of HMSmun; false for any other text. */
HEARTH_MUST_CHECK bool hearth_grpc_parse_timeout(struct hearth_str text, int64_t *ret_ns);

/* identity (also ""), gzip, deflate; UNIMPLEMENTED for others, listing the supported ones. */
HEARTH_MUST_CHECK
enum hearth_status hearth_grpc_parse_encoding(struct hearth_str text, enum hearth_compression *ret,
                                              struct hearth_err *err);

/* True if gzip is in the list (grpc-accept-encoding). */
bool hearth_grpc_accepts_gzip(struct hearth_str text);

/*
 * Finds the message in the body of a request, as a view. Trailers after it are ignored.
 *
 * encoding         from hearth_grpc_parse_encoding
 * ret_compression  `encoding` if the message is compressed, else NONE
 * Returns          OK; INVALID_ARGUMENT when there is no whole message, a flag is unknown, or the
 *                  message says that it is compressed and the head does not say how; UNIMPLEMENTED
 *                  for a second message.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_grpc_web_read(struct hearth_str body, enum hearth_compression encoding,
                                        struct hearth_str *ret_message,
                                        enum hearth_compression *ret_compression,
                                        struct hearth_err *err);

/* Writes the five bytes that precede a message of n bytes. */
void hearth_grpc_web_frame(unsigned char out[HEARTH_GRPC_WEB_FRAME_BYTES], bool is_compressed,
                           size_t n);

/* Appends the trailers as lines with CR LF: status, message (for errors), and each note. */
void hearth_grpc_trailers(enum hearth_status status, const char *msg, const char *const *notes,
                          size_t n_notes, struct hearth_buf *out);

/* Appends the frame of gRPC-Web that contains these lines. */
void hearth_grpc_web_trailers(enum hearth_status status, const char *msg, const char *const *notes,
                              size_t n_notes, struct hearth_buf *out);

#endif
