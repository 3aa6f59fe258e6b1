/*
 * media.h -- Accept, Content-Type, Content-Encoding and Accept-Encoding headers.
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

/* What an Accept header says that anything here looks at. */
struct hearth_accept {
    bool utf8_label_names; /* parameter allow-utf8-labelnames=true of any element */
    bool json;             /* application/json is named */
};

/* False when malformed. An empty header is an empty list. */
HEARTH_MUST_CHECK bool hearth_accept_parse(struct hearth_str header, struct hearth_accept *ret);

enum hearth_rpc_protocol {
    HEARTH_RPC_CONNECT,
    HEARTH_RPC_GRPC, /* with trailers behind the body: Go's clients on http:// */
    HEARTH_RPC_GRPC_WEB,
    HEARTH_RPC_GRPC_WEB_TEXT, /* the same in base64 */
};

/* A type of bodies that is spoken over HTTP/1.1. */
struct hearth_rpc_media {
    const char *type;
    enum hearth_rpc_protocol protocol;
    enum hearth_rpc_codec codec;
};

/* For the header Accept-Post. */
#define HEARTH_ACCEPT_POST                                                                        \
    "application/grpc, application/grpc+proto, application/grpc-web, application/grpc-web+json, " \
    "application/grpc-web+proto, application/grpc-web-text, application/grpc-web-text+proto, "    \
    "application/json, application/proto"

/* By a Content-Type, with charset=utf-8 or without; NULL for what is not spoken. */
const struct hearth_rpc_media *hearth_rpc_media_find(struct hearth_str header);

/* Of OpenTelemetry's protocol over HTTP; false for what it does not speak. */
#define HEARTH_OTLP_PROTO "application/x-protobuf"
#define HEARTH_OTLP_JSON  "application/json"
HEARTH_MUST_CHECK bool hearth_otlp_media_find(struct hearth_str header, enum hearth_rpc_codec *ret);
/* identity (also ""), gzip, deflate, zstd: exporters can be set to any of them. */
HEARTH_MUST_CHECK bool hearth_otlp_encoding_find(struct hearth_str header,
                                                 enum hearth_compression *ret);

/* identity (also ""), gzip; UNIMPLEMENTED for others, naming what is offered. */
HEARTH_MUST_CHECK
enum hearth_status hearth_content_encoding_parse(struct hearth_str header,
                                                 enum hearth_compression *ret,
                                                 struct hearth_err *err);

/* True when gzip (or *) is offered with a weight above 0. */
bool hearth_accept_encoding_gzip(struct hearth_str header);

#endif
