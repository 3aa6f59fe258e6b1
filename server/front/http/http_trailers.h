/*
 * http_trailers.h -- a response of libmicrohttpd with trailers. Trailers follow the last chunk of a
 * body, so the body is sent in chunks.
 *
 * Threads: any.
 */
#ifndef HEARTH_FRONT_HTTP_TRAILERS_H
#define HEARTH_FRONT_HTTP_TRAILERS_H

#include "hearth/base/buf.h"

#include <microhttpd.h>

/* Takes both buffers. trailers: lines "name: value" with CR LF. NULL without memory, or if a buffer
 * has failed. */
struct MHD_Response *hearth_http_trailed_response(struct hearth_buf *body,
                                                  struct hearth_buf *trailers);

#endif
