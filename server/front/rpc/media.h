/*
 * media.h -- parsers of the headers Accept, Content-Type, Content-Encoding and Accept-Encoding.
 *
 * Threads:   pure.
 * Source:    RFC 9110 sections 5.6, 8.3, 8.4, 12.5.
 */
#ifndef HEARTH_FRONT_MEDIA_H
#define HEARTH_FRONT_MEDIA_H

#include "hearth/base/status.h"
#include "hearth/codec/compress.h"

enum hearth_rpc_codec {
    HEARTH_RPC_PROTO,
    HEARTH_RPC_JSON,
};

/* The parts of an Accept header that the server uses. */
struct hearth_accept {
    bool utf8_label_names; /* an element has the parameter allow-utf8-labelnames=true */
    bool json;             /* an element is application/json */
    bool openmetrics;      /* an element is application/openmetrics-text */
};

/* False if the header is malformed. An empty header is an empty list. */
HEARTH_MUST_CHECK bool hearth_accept_parse(struct hearth_str header, struct hearth_accept *ret);

enum hearth_rpc_protocol {
    HEARTH_RPC_CONNECT,
    HEARTH_RPC_GRPC,          /* with trailers after the body: Go's clients on http:// */
    HEARTH_RPC_GRPC_WEB,      /* with trailers as the last frame of the body */
    HEARTH_RPC_GRPC_WEB_TEXT, /* the same in base64 */
};

/* A content type that is accepted over HTTP/1.1. */
struct hearth_rpc_media {
    const char *type;
    enum hearth_rpc_protocol protocol;
    enum hearth_rpc_codec codec;
};

/* The value of the header Accept-Post. */
#define HEARTH_ACCEPT_POST                                                                        \
    "application/grpc, application/grpc+proto, application/grpc-web, application/grpc-web+json, " \
    "application/grpc-web+proto, application/grpc-web-text, application/grpc-web-text+proto, "    \
    "application/json, application/proto"

/* Finds the type of a Content-Type with charset=utf-8 or without charset; NULL if not accepted. */
const struct hearth_rpc_media *hearth_rpc_media_find(struct hearth_str header);

#define HEARTH_OTLP_PROTO "application/x-protobuf"
#define HEARTH_OTLP_JSON  "application/json"
/* The same for OTLP over HTTP; false if not accepted. */
HEARTH_MUST_CHECK bool hearth_otlp_media_find(struct hearth_str header, enum hearth_rpc_codec *ret);
/* The Content-Encoding of OTLP: identity (also ""), gzip, deflate or zstd; false otherwise. */
HEARTH_MUST_CHECK bool hearth_otlp_encoding_find(struct hearth_str header,
                                                 enum hearth_compression *ret);

/* identity (also ""), gzip; UNIMPLEMENTED for others, with a list of the supported ones. */
HEARTH_MUST_CHECK
enum hearth_status hearth_content_encoding_parse(struct hearth_str header,
                                                 enum hearth_compression *ret,
                                                 struct hearth_err *err);

/* True if the coding or * is in the list, its weight above 0. False if the header is malformed. */
bool hearth_accept_encoding_has(struct hearth_str header, struct hearth_str coding);

#endif
