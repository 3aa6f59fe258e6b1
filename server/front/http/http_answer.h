/*
 * http_answer.h -- what a request that has ended is answered with over HTTP/1.1: Connect, gRPC, gRPC-Web or a plain route.
 *
 * Threads: pure.
 */
#ifndef HEARTH_FRONT_HTTP_ANSWER_H
#define HEARTH_FRONT_HTTP_ANSWER_H

#include "rpc/media.h"
#include "rpc/rpc.h"

/* In front of what rpc->headers and, but for gRPC and gRPC-Web, the notes add. */
#define HEARTH_HTTP_ANSWER_HEADERS 3

struct hearth_http_answer {
    unsigned code;
    const char *content_type; /* static; NULL: none */
    struct hearth_buf
        body;          /* of the caller; a failed one is an answer that there is no memory for */
    bool has_trailers; /* behind the body, which is then sent in chunks */
    struct hearth_buf trailers; /* lines with CR LF; of the caller */
    bool is_in_pieces; /* instead of body: rpc->packed, and what rpc->pieces make behind it */
    struct hearth_rpc_header headers[HEARTH_HTTP_ANSWER_HEADERS]; /* static texts */
    size_t n_headers;
};

/*
 * media       NULL for plain routes
 * takes_gzip  the client reads gzip: as Content-Encoding, or of messages in gRPC
 * Takes rpc->packed, unless the answer is in pieces.
 */
void hearth_http_answer_make(struct hearth_rpc *rpc, const struct hearth_rpc_media *media,
                             bool takes_gzip, struct hearth_http_answer *ret_answer);

#endif
