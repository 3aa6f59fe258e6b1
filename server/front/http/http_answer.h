/*
 * http_answer.h -- the HTTP/1.1 answer of a request that has ended: by Connect, gRPC, gRPC-Web or
 * as a plain route.
 *
 * Threads: pure.
 */
#ifndef HEARTH_FRONT_HTTP_ANSWER_H
#define HEARTH_FRONT_HTTP_ANSWER_H

#include "rpc/media.h"
#include "rpc/rpc.h"

/* Without rpc->headers and the notes. */
#define HEARTH_HTTP_ANSWER_HEADERS 3

struct hearth_http_answer {
    unsigned code;
    const char *content_type;   /* static; NULL: none */
    struct hearth_buf body;     /* owned by the caller; has failed if there was no memory */
    bool has_trailers;          /* trailers follow the body, which is then sent in chunks */
    struct hearth_buf trailers; /* lines with CR LF; owned by the caller */
    bool is_in_pieces;          /* `body` is empty: use rpc->packed, then rpc->pieces */
    struct hearth_rpc_header headers[HEARTH_HTTP_ANSWER_HEADERS]; /* static texts */
    size_t n_headers;
};

/*
 * Makes the answer. Takes rpc->packed, unless the answer is in pieces.
 *
 * media       NULL for plain routes
 * takes_gzip  the client accepts gzip: as Content-Encoding, or for messages of gRPC
 */
void hearth_http_answer_make(struct hearth_rpc *rpc, const struct hearth_rpc_media *media,
                             bool takes_gzip, struct hearth_http_answer *ret_answer);

#endif
