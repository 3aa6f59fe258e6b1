/* otlp_headers.c -- Content-Type and Content-Encoding of exports by OTLP. */
#include "http/otlp_headers.h"

#include "http/http_call.h"

#include <assert.h>

#define UNSUPPORTED 415u

enum hearth_status hearth_otlp_headers_read(struct hearth_rpc *rpc,
                                            enum hearth_rpc_codec *ret_codec,
                                            enum hearth_compression *ret_compression)
{
    struct hearth_http_call *http = rpc->http;

    assert(http != NULL);
    if (!hearth_otlp_media_find(http->content_type, ret_codec)) {
        http->code = UNSUPPORTED;
        hearth_rpc_add_header(rpc, "Accept-Post", HEARTH_OTLP_PROTO ", " HEARTH_OTLP_JSON);
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "Content-Type is \"%.64s\": it has to be " HEARTH_OTLP_PROTO
                           " or " HEARTH_OTLP_JSON,
                           http->content_type.p);
    }

    if (!hearth_otlp_encoding_find(http->content_encoding, ret_compression)) {
        http->code = UNSUPPORTED;
        hearth_rpc_add_header(rpc, "Accept-Encoding", "gzip, deflate, zstd");
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "Content-Encoding is \"%.64s\": gzip, deflate and zstd are known",
                           http->content_encoding.p);
    }

    return HEARTH_OK;
}
