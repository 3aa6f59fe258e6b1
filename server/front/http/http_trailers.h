/*
 * http_trailers.h -- a response of libmicrohttpd with trailers: they go behind the chunks of a body, so there are chunks.
 *
 * Threads: any.
 */
#ifndef HEARTH_FRONT_HTTP_TRAILERS_H
#define HEARTH_FRONT_HTTP_TRAILERS_H

#include "hearth/base/buf.h"

#include <microhttpd.h>

/* Takes both; `trailers` are lines "name: value" with CR LF. NULL without memory. */
struct MHD_Response *hearth_http_trailed_response(struct hearth_buf *body,
                                                  struct hearth_buf *trailers);

#endif
