/*
 * fuzz_http_grpc_web.c -- headers and frames of gRPC-Web.
 *
 * Input: three lines (grpc-encoding, grpc-accept-encoding, grpc-timeout); the rest is the body.
 */
#include "http/grpc_web.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static struct hearth_str take_line(struct hearth_str *rest)
{
    size_t end = hearth_str_find(*rest, '\n', 0);
    struct hearth_str line = {rest->p, end};
    size_t used = end < rest->n ? end + 1 : end;
    *rest = hearth_str_n(rest->p + used, rest->n - used);
    return line;
}

/* The message must be read again from a frame written by the server's own function. */
static void check_round_trip(struct hearth_str message, enum hearth_compression compression)
{
    struct hearth_buf body;
    unsigned char head[HEARTH_GRPC_WEB_FRAME_BYTES];
    struct hearth_str again;
    enum hearth_compression as;
    hearth_buf_init(&body, 0);
    hearth_grpc_web_frame(head, compression != HEARTH_COMPRESSION_NONE, message.n);
    hearth_buf_append(&body, head, sizeof head);
    hearth_buf_str(&body, message);
    hearth_grpc_web_trailers(HEARTH_INTERNAL, "a\nb", NULL, 0, &body);
    if (hearth_grpc_web_read(hearth_buf_view(&body), compression, &again, &as, NULL) != HEARTH_OK ||
        as != compression || !hearth_str_eq(again, message)) {
        abort();
    }
    hearth_buf_release(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct hearth_str rest = {(const char *)bytes, size};
    struct hearth_str encoding_text = take_line(&rest);
    struct hearth_str accepted = take_line(&rest);
    struct hearth_str timeout = take_line(&rest);
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_compression encoding = HEARTH_COMPRESSION_NONE, compression;
    struct hearth_str message;
    int64_t ns = -1;
    (void)hearth_grpc_accepts_gzip(accepted);
    if (hearth_grpc_parse_timeout(timeout, &ns) && ns < 0) {
        abort();
    }
    if (hearth_grpc_parse_encoding(encoding_text, &encoding, &err) == HEARTH_OK &&
        hearth_grpc_web_read(rest, encoding, &message, &compression, &err) == HEARTH_OK) {
        if (message.p < rest.p || message.n > rest.n - HEARTH_GRPC_WEB_FRAME_BYTES) {
            abort();
        }
        check_round_trip(message, compression);
    }
    return 0;
}
